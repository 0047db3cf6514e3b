#include "grader/emulator/ptx/instruction_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace handoff::ptx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// `text` is an instruction without its operands ("ld.global.u32"); it is given `operands` sinks.
Statement opcode(std::string_view text, size_t operands) {
  Statement statement;
  while (!text.empty()) {
    const size_t dot = std::min(text.find('.'), text.size());
    statement.opcode.push_back(std::string(text.substr(0, dot)));
    text.remove_prefix(std::min(dot + 1, text.size()));
  }
  statement.operands = std::vector<Operand>(operands);
  return statement;
}

/// The instruction `line` ("ld.global.u32 %r1, [%r2]"), in a function with plenty of registers.
Statement statement(const std::string& line) {
  Module module;
  ParseError error;
  const std::string text =
      ".version 9.0\n.target sm_100a\n.extern .func f;\n.entry k() {\n.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred "
      "%p<9>;\n"
      "T: .branchtargets L;\nL:\n" +
      line + ";\n}\n";
  EXPECT_TRUE(parse(text, &module, &error)) << line << ": " << error.message;
  return module.functions.empty() ? Statement() : module.functions.back().statements.at(0);
}

std::string problem(const std::string& line) {
  const Statement s = statement(line);
  const Resolved resolved = resolve(s);
  EXPECT_EQ(resolved.spec, nullptr) << line;
  return resolved.problem;
}

// Every form in scope that nvcc emitted for 44 public programs for sm_100a.
constexpr const char* kCensus[] = {
    "abs.bf16",
    "abs.bf16x2",
    "abs.f32",
    "add.f32",
    "add.ftz.f32",
    "add.rn.f32.bf16",
    "add.rn.f32x2",
    "add.rn.ftz.f32x2",
    "add.s16",
    "add.s32",
    "add.s64",
    "add.u64",
    "and.b16",
    "and.b32",
    "and.b64",
    "and.pred",
    "atom.global.add.u64",
    "atom.global.max.s32",
    "atom.global.max.u32",
    "atom.global.min.u32",
    "atom.release.gpu.global.add.u32",
    "atom.shared.cta.add.u32",
    "atom.sys.global.add.u64",
    "bar.arrive",
    "bar.sync",
    "bar.warp.sync",
    "barrier.cluster.arrive.aligned",
    "barrier.cluster.arrive.relaxed.aligned",
    "barrier.cluster.arrive.release.aligned",
    "barrier.cluster.wait.acquire",
    "barrier.cluster.wait.acquire.aligned",
    "barrier.cluster.wait.aligned",
    "barrier.sync",
    "bfind.shiftamt.u32",
    "bra",
    "bra.uni",
    "brev.b32",
    "call.uni",
    "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128",
    "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128",
    "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128",
    "clz.b32",
    "cp.async.bulk.commit_group",
    "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint",
    "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint",
    "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::"
    "cache_hint",
    "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group",
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint",
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint",
    "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes",
    "cp.async.bulk.tensor.3d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint",
    "cp.async.bulk.tensor.3d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::"
    "cache_hint",
    "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group",
    "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint",
    "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::1",
    "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::2",
    "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2.multicast::cluster",
    "cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group",
    "cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group.L2::cache_hint",
    "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
    "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2.multicast::cluster",
    "cp.async.bulk.wait_group",
    "cp.async.bulk.wait_group.read",
    "cp.async.cg.shared.global",
    "cp.async.commit_group",
    "cp.async.wait_group",
    "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group",
    "createpolicy.fractional.L2::evict_first.b64",
    "cvt.f32.bf16",
    "cvt.f32.f16",
    "cvt.f64.f32",
    "cvt.rn.bf16.f32",
    "cvt.rn.bf16x2.f32",
    "cvt.rn.bf16x2.ue8m0x2",
    "cvt.rn.f16.f32",
    "cvt.rn.f16.s32",
    "cvt.rn.f16x2.e2m1x2",
    "cvt.rn.f16x2.e4m3x2",
    "cvt.rn.f32.s64",
    "cvt.rn.f32.u32",
    "cvt.rn.f32.u64",
    "cvt.rn.satfinite.e4m3x2.f32",
    "cvt.rp.satfinite.ue8m0x2.f32",
    "cvt.rzi.ftz.u32.f32",
    "cvt.s16.s8",
    "cvt.s32.s8",
    "cvt.s64.s32",
    "cvt.u16.u32",
    "cvt.u32.u16",
    "cvt.u32.u64",
    "cvt.u64.u16",
    "cvt.u64.u32",
    "cvta.global.u64",
    "cvta.local.u64",
    "cvta.param.u64",
    "cvta.shared.u64",
    "cvta.to.global.u64",
    "cvta.to.shared.u64",
    "div.approx.ftz.f32",
    "div.s32",
    "div.u16",
    "div.u32",
    "elect.sync",
    "ex2.approx.f32",
    "ex2.approx.ftz.f32",
    "fence.mbarrier_init.release.cluster",
    "fence.proxy.async.shared::cta",
    "fma.rn.f32",
    "fma.rn.f32x2",
    "fma.rn.ftz.f32",
    "fma.rn.ftz.f32x2",
    "fns.b32",
    "griddepcontrol.launch_dependents",
    "griddepcontrol.wait",
    "ld.acquire.gpu.global.b32",
    "ld.acquire.sys.global.s32",
    "ld.f32",
    "ld.global.f32",
    "ld.global.nc.s64",
    "ld.global.u16",
    "ld.global.u32",
    "ld.global.u64",
    "ld.global.u8",
    "ld.global.v2.u32",
    "ld.global.v4.b32",
    "ld.global.v4.f32",
    "ld.global.v4.u32",
    "ld.global.v8.b32",
    "ld.local.u32",
    "ld.param.b32",
    "ld.param.f32",
    "ld.param.f64",
    "ld.param.s32",
    "ld.param.u32",
    "ld.param.u64",
    "ld.param.u8",
    "ld.param.v2.f32",
    "ld.param.v2.u32",
    "ld.param.v2.u64",
    "ld.param.v4.u32",
    "ld.shared.b128",
    "ld.shared.f32",
    "ld.shared.u16",
    "ld.shared.u32",
    "ld.shared.u8",
    "ld.shared.v2.f32",
    "ld.shared.v4.f32",
    "ld.shared.v4.u32",
    "ld.u32",
    "ld.v4.f32",
    "ld.volatile.global.b64",
    "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
    "ldmatrix.sync.aligned.m8n8.x4.shared::cta.b16",
    "ldmatrix.sync.aligned.x4.m8n8.shared.b16",
    "lg2.approx.ftz.f32",
    "mad.lo.s32",
    "mad.lo.s64",
    "mapa.shared::cluster.u32",
    "max.NaN.f32",
    "max.bf16",
    "max.bf16x2",
    "max.f32",
    "max.s32",
    "max.u32",
    "mbarrier.arrive.expect_tx.release.cta.shared::cluster.b64",
    "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64",
    "mbarrier.arrive.expect_tx.shared::cluster.b64",
    "mbarrier.arrive.expect_tx.shared::cta.b64",
    "mbarrier.arrive.release.cta.shared::cluster.b64",
    "mbarrier.arrive.release.cta.shared::cta.b64",
    "mbarrier.arrive.shared::cluster.b64",
    "mbarrier.arrive.shared::cta.b64",
    "mbarrier.expect_tx.shared::cta.b64",
    "mbarrier.init.shared::cta.b64",
    "mbarrier.test_wait.parity.shared::cta.b64",
    "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64",
    "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64",
    "mbarrier.try_wait.parity.shared::cta.b64",
    "min.bf16x2",
    "min.s32",
    "min.u32",
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
    "mov.b16",
    "mov.b32",
    "mov.b64",
    "mov.f32",
    "mov.pred",
    "mov.s32",
    "mov.u16",
    "mov.u32",
    "mov.u64",
    "movmatrix.sync.aligned.m8n8.trans.b16",
    "mul.bf16",
    "mul.f32",
    "mul.f32x2",
    "mul.ftz.f32",
    "mul.hi.s32",
    "mul.hi.u16",
    "mul.hi.u32",
    "mul.hi.u64",
    "mul.lo.s16",
    "mul.lo.s32",
    "mul.lo.s64",
    "mul.rn.f32x2",
    "mul.rn.ftz.f32x2",
    "mul.wide.s16",
    "mul.wide.s32",
    "mul.wide.u16",
    "mul.wide.u32",
    "neg.f32",
    "neg.ftz.f32",
    "neg.s32",
    "neg.s64",
    "not.b32",
    "not.pred",
    "or.b16",
    "or.b32",
    "or.b64",
    "or.pred",
    "popc.b32",
    "prefetch.tensormap",
    "rcp.approx.ftz.f32",
    "red.gpu.global.add.s32",
    "red.gpu.global.add.u32",
    "red.release.gpu.global.add.u32",
    "red.release.sys.global.add.s32",
    "redux.sync.add.u32",
    "redux.sync.min.u32",
    "rem.s32",
    "rem.u32",
    "ret",
    "selp.b16",
    "selp.b32",
    "selp.b64",
    "selp.f32",
    "selp.s32",
    "selp.u16",
    "selp.u32",
    "setmaxnreg.dec.sync.aligned.u32",
    "setmaxnreg.inc.sync.aligned.u32",
    "setp.eq.b32",
    "setp.eq.b64",
    "setp.eq.f16",
    "setp.eq.f32",
    "setp.eq.s16",
    "setp.eq.s32",
    "setp.eq.s64",
    "setp.eq.u32",
    "setp.equ.ftz.f32",
    "setp.ge.f32",
    "setp.ge.ftz.f32",
    "setp.ge.s32",
    "setp.ge.u32",
    "setp.ge.u64",
    "setp.gt.f32",
    "setp.gt.f64",
    "setp.gt.s32",
    "setp.gt.u32",
    "setp.gt.u64",
    "setp.le.f32",
    "setp.le.s32",
    "setp.le.u32",
    "setp.le.u64",
    "setp.leu.f32",
    "setp.leu.f64",
    "setp.lt.f32",
    "setp.lt.ftz.f32",
    "setp.lt.s32",
    "setp.lt.s64",
    "setp.lt.u32",
    "setp.lt.u64",
    "setp.nan.f32",
    "setp.ne.b32",
    "setp.ne.ftz.f32",
    "setp.ne.s16",
    "setp.ne.s32",
    "setp.ne.s64",
    "setp.neu.f32",
    "shfl.sync.bfly.b32",
    "shfl.sync.idx.b32",
    "shl.b16",
    "shl.b32",
    "shl.b64",
    "shr.s16",
    "shr.s32",
    "shr.u16",
    "shr.u32",
    "shr.u64",
    "sqrt.approx.ftz.f32",
    "st.bulk.weak.shared::cta",
    "st.f32",
    "st.global.f32",
    "st.global.u16",
    "st.global.u32",
    "st.global.u64",
    "st.global.u8",
    "st.global.v4.f32",
    "st.global.v4.u32",
    "st.global.v8.b32",
    "st.local.f64",
    "st.local.u32",
    "st.local.u64",
    "st.local.v2.f32",
    "st.local.v2.u32",
    "st.param.b32",
    "st.param.b64",
    "st.relaxed.cta.global.L1::no_allocate.v8.b32",
    "st.shared.b32",
    "st.shared.f32",
    "st.shared.u16",
    "st.shared.u32",
    "st.shared.u8",
    "st.shared.v2.f32",
    "st.shared.v4.f32",
    "st.shared.v4.u32",
    "st.u16",
    "st.u32",
    "st.u64",
    "st.v4.f32",
    "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8",
    "stmatrix.sync.aligned.m8n8.x4.shared::cta.b16",
    "stmatrix.sync.aligned.x4.m8n8.shared.b16.trans",
    "sub.f32",
    "sub.ftz.f32",
    "sub.s16",
    "sub.s32",
    "sub.s64",
    "trap",
    "vote.sync.any.pred",
    "vote.sync.ballot.b32",
    "xor.b32",
    "xor.b64",
};

TEST(InstructionTable, ResolvesWhatTheFieldUses) {
  for (const char* form : kCensus) {
    bool found = false;
    std::string why;
    for (size_t operands = 0; operands <= 6 && !found; ++operands) {
      const Statement s = opcode(form, operands);
      const Resolved resolved = resolve(s);
      found = resolved.spec != nullptr;
      if (why.empty() || why.find("operand") != std::string::npos) why = resolved.problem;
    }
    EXPECT_TRUE(found) << form << ": " << why;
  }
}

struct Form {
  const char* line;
  Op op;
};

constexpr Form kForms[] = {
    {"ld.global.nc.L1::no_allocate.L2::cache_hint.L2::128B.v4.f32 {%r1, %r2, %r3, %r4}, [%rd1], %rd2", Op::Ld},
    {"ld.volatile.shared::cta.u8 %r1, [%r2]", Op::Ld},
    {"ldmatrix.sync.aligned.m16n16.x2.trans.shared::cta.b8x16.b4x16_p64 {%r1, %r2, %r3, %r4}, [%rd1]", Op::Ldmatrix},
    {"ldmatrix.sync.aligned.m8n16.x1.b8x16.b6x16_p32 {%r1}, [%rd1]", Op::Ldmatrix},
    {"stmatrix.sync.aligned.m16n8.x2.trans.b8 [%rd1], {%r1, %r2}", Op::Stmatrix},
    {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r7}, {%r1, %r2, %r3, %r4}",
     Op::Mma},
    {"mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r7}, {%r1, %r2, %r3, %r4}",
     Op::Mma},
    {"mma.sync.aligned.m8n8k16.row.col.satfinite.s32.u8.s8.s32 {%r1, %r2}, {%r3}, {%r4}, {%r5, %r6}", Op::Mma},
    {"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r1, %r2}, {%r3, %r4, %r5, %r6}, {%r7, %r8}, {%r1, %r2}",
     Op::Mma},
    {"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%rd1, %rd2}, {%rd3}, {%rd4}, {%rd1, %rd2}", Op::Mma},
    {"tcgen05.cp.cta_group::2.64x128b.warpx2::01_23.b8x16.b4x16_p64 [%r1], %rd1", Op::Tcgen05Cp},
    {"fma.rn.oob.relu.bf16x2 %r1, %r2, %r3, %r4", Op::Fma},
    {"cvt.rs.relu.satfinite.bf16x2.f32 %r1, %r2, %r3, %r4", Op::Cvt},
    {"cvt.rs.relu.satfinite.e5m2x4.f32 %r1, {%r2, %r3, %r4, %r5}, %r6", Op::Cvt},
    {"cvt.rs.satfinite.e2m1x4.f32 %r1, {%r2, %r3, %r4, %r5}, %r6", Op::Cvt},
    {"cvt.ftz.f32.bf16 %r1, %r2", Op::Cvt},
    {"cvt.rz.ftz.f16.f32 %r1, %r2", Op::Cvt},
    {"set.lt.and.ftz.f16.f32 %r1, %r2, %r3, %p1", Op::Set},
    {"max.NaN.abs.f32 %r1, %r2, %r3, %r4", Op::Max},
    {"ld.relaxed.sys.global.u64 %rd1, [%rd2]", Op::Ld},
    {"ld.mmio.relaxed.sys.global.u32 %r1, [%rd2]", Op::Ld},
    {"ld.acquire.cluster.shared::cluster.b32 %r1, [%r2]", Op::Ld},
    {"ld.param::entry.u32 %r1, [%r2]", Op::Ld},
    {"ld.const.f64 %rd1, [%rd2]", Op::Ld},
    {"ld.global.cv.u32 %r1, [%rd1]", Op::Ld},
    {"ldu.global.f32 %r1, [%rd1]", Op::Ldu},
    {"st.release.gpu.global.u32 [%rd1], %r1", Op::St},
    {"st.global.cs.f32 [%rd1], %r1", Op::St},
    {"st.mmio.relaxed.sys.global.u32 [%rd1], %r1", Op::St},
    {"st.global.L1::evict_last.L2::cache_hint.v2.b64 [%rd1], {%rd2, %rd3}, %rd4", Op::St},
    {"st.bulk.weak.shared::cta [%rd1], %rd2, 0", Op::StBulk},
    {"st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r1], {%r2, %r3}, [%r4]", Op::StAsync},
    {"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r1], %r2, [%r3]", Op::RedAsync},
    {"clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128 [%rd1], [%rd2]", Op::LaunchTryCancel},
    {"clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 %r1, %rd1", Op::LaunchQueryCancel},
    {"tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale [%r1], %rd1, %rd2, %r2, [%r3], [%r4], %p1", Op::Tcgen05Mma},
    {"tcgen05.mma.cta_group::1.kind::mxf4.block_scale.block32 [%r1], %rd1, %rd2, %r2, [%r3], [%r4], %p1",
     Op::Tcgen05Mma},
    {"tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X [%r1], [%r5], %rd2, %r2, [%r3], [%r4], %p1",
     Op::Tcgen05Mma},
    {"tcgen05.mma.ws.cta_group::1.kind::i8.collector::b2::use [%r1], [%r3], %rd2, %r2, %p1, %rd3", Op::Tcgen05Mma},
    {"tcgen05.mma.sp.cta_group::2.kind::f16 [%r1], %rd1, %rd2, [%r3], %r2, %p1", Op::Tcgen05MmaSparse},
    {"tcgen05.mma.sp.cta_group::2.kind::mxf4nvf4.block_scale.scale_vec::4X [%r1], %rd1, %rd2, [%r3], %r2, [%r4], "
     "[%r5], "
     "%p1",
     Op::Tcgen05MmaSparse},
    {"tcgen05.mma.ws.sp.cta_group::1.kind::f16 [%r1], %rd1, %rd2, [%r3], %r2, %p1, %rd3", Op::Tcgen05MmaSparse},
    {"atom.acq_rel.gpu.global.cas.b128 %rd1, [%rd2], %rd3, %rd4", Op::Atom},
    {"atom.global.exch.b128 %rd1, [%rd2], %rd3", Op::Atom},
    {"atom.global.gpu.relaxed.add.noftz.f16x2 %r1, [%rd2], %r3", Op::Atom},
    {"atom.global.v4.f32.add {%r1, %r2, %r3, %r4}, [%rd2], {%r1, %r2, %r3, %r4}", Op::Atom},
    {"atom.shared::cta.inc.u32 %r1, [%r2], 7", Op::Atom},
    {"atom.add.f64 %rd1, [%rd2], %rd3", Op::Atom},
    {"red.relaxed.gpu.global.add.noftz.bf16x2 [%rd1], %r1", Op::Red},
    {"red.global.add.v2.f32 [%rd1], {%r1, %r2}", Op::Red},
    {"red.shared::cluster.or.b32 [%r1], %r2", Op::Red},
    {"cvta.shared::cluster.u64 %rd1, %rd2", Op::Cvta},
    {"cvta.to.param.u64 %rd1, %rd2", Op::Cvta},
    {"isspacep.shared::cluster %p1, %rd1", Op::Isspacep},
    {"prefetch.global.L2::evict_last [%rd1]", Op::Prefetch},
    {"prefetch.L1 [%rd1]", Op::Prefetch},
    {"prefetch.param.tensormap [%rd1]", Op::Prefetch},
    {"prefetchu.L1 [%rd1]", Op::Prefetch},
    {"applypriority.global.L2::evict_normal [%rd1], 128", Op::Applypriority},
    {"discard.global.L2 [%rd1], 128", Op::Discard},
    {"createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %rd1, 0.5", Op::CreatePolicy},
    {"createpolicy.fractional.L2::evict_first.b64 %rd1", Op::CreatePolicy},
    {"createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %rd1, [%rd2], 64, 128", Op::CreatePolicy},
    {"createpolicy.cvt.L2.b64 %rd1, %rd2", Op::CreatePolicy},
    {"mapa.u64 %rd1, %rd2, %r1", Op::Mapa},
    {"getctarank.shared::cluster.u32 %r1, %r2", Op::Getctarank},
    {"alloca.u64 %rd1, %rd2, 16", Op::Alloca},
    {"stacksave.u64 %rd1", Op::Stacksave},
    {"stackrestore.u64 %rd1", Op::Stackrestore},
    {"bra.uni L", Op::Bra},
    {"brx.idx %r1, T", Op::BrxIdx},
    {"call.uni (%r1), f, (%r2, %r3)", Op::Call},
    {"call f", Op::Call},
    {"ret.uni", Op::Ret},
    {"exit", Op::Exit},
    {"trap", Op::Trap},
    {"brkpt", Op::Brkpt},
    {"nanosleep.u32 100", Op::Nanosleep},
    {"pmevent 1", Op::Pmevent},
    {"pmevent.mask 3", Op::Pmevent},
    {"bar.cta.sync 0", Op::Bar},
    {"barrier.cta.sync.aligned 1, 64", Op::Bar},
    {"barrier.arrive 1, 64", Op::Bar},
    {"bar.red.popc.u32 %r1, 0, %p1", Op::BarRed},
    {"barrier.cta.red.and.aligned.pred %p1, 0, 64, !%p2", Op::BarRed},
    {"bar.red.or.pred %p1, 0, %p2", Op::BarRed},
    {"bar.warp.sync -1", Op::BarWarpSync},
    {"barrier.cluster.arrive", Op::BarrierCluster},
    {"barrier.cluster.wait", Op::BarrierCluster},
    {"shfl.sync.down.b32 %r1|%p1, %r2, 1, 31, -1", Op::Shfl},
    {"vote.sync.uni.pred %p1, %p2, -1", Op::Vote},
    {"vote.ballot.sync.b32 %r1, %p1, -1", Op::Vote},
    {"vote.sync.all.pred %p1, !%p2, -1", Op::Vote},
    {"match.any.sync.b32 %r1, %r2, -1", Op::Match},
    {"match.all.sync.b64 %r1|%p1, %rd2, -1", Op::Match},
    {"activemask.b32 %r1", Op::Activemask},
    {"redux.sync.xor.b32 %r1, %r2, -1", Op::Redux},
    {"redux.sync.max.abs.NaN.f32 %r1, %r2, -1", Op::Redux},
    {"elect.sync _|%p1, -1", Op::Elect},
    {"membar.gl", Op::Fence},
    {"membar.cta", Op::Fence},
    {"fence.sc.sys", Op::Fence},
    {"fence.acq_rel.cluster", Op::Fence},
    {"fence.acquire.gpu", Op::Fence},
    {"fence.release.cta", Op::Fence},
    {"fence.acquire.sync_restrict::shared::cluster.cluster", Op::Fence},
    {"fence.release.sync_restrict::shared::cta.cluster", Op::Fence},
    {"fence.proxy.alias", Op::FenceProxy},
    {"fence.proxy.async", Op::FenceProxy},
    {"fence.proxy.async.global", Op::FenceProxy},
    {"fence.proxy.async.shared::cluster", Op::FenceProxy},
    {"fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster", Op::FenceProxy},
    {"fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster", Op::FenceProxy},
    {"fence.proxy.tensormap::generic.release.gpu", Op::FenceProxy},
    {"fence.proxy.tensormap::generic.acquire.sys [%rd1], 128", Op::FenceProxy},
    {"mbarrier.init.shared.b64 [%r1], 32", Op::MbarrierInit},
    {"mbarrier.inval.shared::cta.b64 [%r1]", Op::MbarrierInval},
    {"mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%r1], 64", Op::MbarrierExpectTx},
    {"mbarrier.complete_tx.shared::cta.b64 [%r1], 64", Op::MbarrierCompleteTx},
    {"mbarrier.arrive.b64 %rd1, [%rd2]", Op::MbarrierArrive},
    {"mbarrier.arrive.release.cta.shared::cta.b64 %rd1, [%r1], 2", Op::MbarrierArrive},
    {"mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r1]", Op::MbarrierArrive},
    {"mbarrier.arrive.noComplete.release.cta.shared.b64 %rd1, [%r1], 2", Op::MbarrierArrive},
    {"mbarrier.arrive.expect_tx.relaxed.cluster.shared::cluster.b64 _, [%r1], 64", Op::MbarrierArrive},
    {"mbarrier.arrive_drop.shared::cta.b64 %rd1, [%r1]", Op::MbarrierArriveDrop},
    {"mbarrier.arrive_drop.noComplete.shared.b64 %rd1, [%r1], 2", Op::MbarrierArriveDrop},
    {"mbarrier.arrive_drop.expect_tx.release.cluster.shared::cluster.b64 _, [%r1], 8", Op::MbarrierArriveDrop},
    {"mbarrier.test_wait.shared.b64 %p1, [%r1], %rd1", Op::MbarrierTestWait},
    {"mbarrier.test_wait.parity.relaxed.cluster.shared::cta.b64 %p1, [%r1], 0", Op::MbarrierTestWait},
    {"mbarrier.try_wait.acquire.cta.shared::cta.b64 %p1, [%r1], %rd1, 1000", Op::MbarrierTryWait},
    {"mbarrier.pending_count.b64 %r1, %rd1", Op::MbarrierPendingCount},
    {"cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r1]", Op::CpAsyncMbarrierArrive},
    {"cp.async.ca.shared.global.L2::128B [%r1], [%rd1], 8, %r2", Op::CpAsync},
    {"cp.async.cg.shared::cta.global.L2::cache_hint [%r1], [%rd1], 16, %p1, %rd2", Op::CpAsync},
    {"cp.async.commit_group", Op::CpAsyncCommitGroup},
    {"cp.async.wait_group 1", Op::CpAsyncWaitGroup},
    {"cp.async.wait_all", Op::CpAsyncWaitAll},
    {"cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 64, [%r2]", Op::CpAsyncBulk},
    {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%r1], "
     "[%rd1], "
     "64, [%r2], %r3, %rd2",
     Op::CpAsyncBulk},
    {"cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r1], [%r2], 64, [%r3]", Op::CpAsyncBulk},
    {"cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.cp_mask [%rd1], [%r1], 64, %rd2, %r2",
     Op::CpAsyncBulk},
    {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.inc.u32 [%r1], [%r2], 64, [%r3]",
     Op::CpReduceAsyncBulk},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.add.noftz.bf16 [%rd1], [%r2], 64, %rd2",
     Op::CpReduceAsyncBulk},
    {"cp.async.bulk.prefetch.L2.global.L2::cache_hint [%rd1], 64, %rd2", Op::CpAsyncBulkPrefetch},
    {"tensormap.replace.tile.global_address.b1024.b64 [%rd1], %rd2", Op::TensormapReplace},
    {"tensormap.replace.tile.rank.global.b1024.b32 [%rd1], 4", Op::TensormapReplace},
    {"tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r1], 3, %rd2", Op::TensormapReplace},
    {"tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r1], 4, %r2", Op::TensormapReplace},
    {"tensormap.replace.tile.swizzle_atomicity.shared::cta.b1024.b32 [%r1], 3", Op::TensormapReplace},
    {"tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [%r1], 128",
     Op::TensormapCpFenceproxy},
    {"cp.async.bulk.commit_group", Op::CpAsyncBulkCommitGroup},
    {"cp.async.bulk.wait_group.read 0", Op::CpAsyncBulkWaitGroup},
};

TEST(InstructionTable, ResolvesEveryForm) {
  for (const Form& form : kForms) {
    const Statement s = statement(form.line);
    const Resolved resolved = resolve(s);
    ASSERT_NE(resolved.spec, nullptr) << form.line << ": " << resolved.problem;
    EXPECT_EQ(to_string(resolved.spec->op), to_string(form.op)) << form.line;
  }
}

// What ptxas refuses for every target, the table refuses too.
constexpr const char* kNoForms[] = {
    "lop3.xor.b32 %r1|%p1, %r2, %r3, %r4, 0x80, %p2",
    "lop3.and.b32 %r1, %r2, %r3, %r4, 0x80",
    "tcgen05.mma.cta_group::1.kind::mxf8f6f4 [%r1], %rd1, %rd2, %r2, [%r3], [%r4], %p1",
    "tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::1X [%r1], %rd1, %rd2, %r2, [%r3], [%r4], %p1",
    "tcgen05.mma.cta_group::1.kind::mxf4.block_scale.block16 [%r1], %rd1, %rd2, %r2, [%r3], [%r4], %p1",
    "tcgen05.mma.cta_group::1.kind::mxf4.block_scale [%r1], %rd1, %rd2, %r2, [%r3], [%r4], {%r1, %r2, %r3, %r4}, %p1",
    "cvt.rni.s8.bf16 %r1, %r2",
    "cvt.rzi.u8.bf16 %r1, %r2",
    "cvt.rn.bf16.s8 %r1, %r2",
    "cvt.u32.f32 %r1, %r2",
    "cvt.rn.u32.f32 %r1, %r2",
    "cvt.f32.s32 %r1, %r2",
    "cvt.rni.u32.s32 %r1, %r2",
    "cvt.rna.f16.f32 %r1, %r2",
    "cvt.f16.f32 %r1, %r2",
    "cvt.rn.f32.f16 %r1, %r2",
    "cvt.rn.f64.f32 %rd1, %r2",
    "cvt.rni.f32.f16 %r1, %r2",
    "cvt.sat.bf16.f16 %r1, %r2",
    "cvt.rn.ftz.f16x2.f32 %r1, %r2, %r3",
    "cvt.rs.f16.f32 %r1, %r2",
    "cvt.rs.e4m3x4.f32 %r1, {%r2, %r3, %r4, %r5}, %r6",
    "cvt.rn.satfinite.e4m3x4.f32 %r1, {%r2, %r3, %r4, %r5}, %r6",
    "cvt.rna.relu.tf32.f32 %r1, %r2",
    "setp.lt.b32 %p1, %r1, %r2",
    "setp.lo.s32 %p1, %r1, %r2",
    "setp.lo.f32 %p1, %r1, %r2",
    "setp.equ.u32 %p1, %r1, %r2",
    "setp.eq.ftz.s32 %p1, %r1, %r2",
    "setp.eq.ftz.f64 %p1, %rd1, %rd2",
    "setp.eq.ftz.bf16 %p1, %r1, %r2",
    "set.lo.f32.f32 %r1, %r2, %r3",
    "set.eq.ftz.u32.f64 %r1, %rd2, %rd3",
    "set.eq.bf16x2.f16x2 %r1, %r2, %r3",
    "set.eq.f16.bf16 %r1, %r2, %r3",
    "min.abs.f32 %r1, %r2, %r3",
    "min.xorsign.f32 %r1, %r2, %r3",
    "max.xorsign.abs.f32 %r1, %r2, %r3, %r4",
    "max.abs.f16 %r1, %r2, %r3",
    "fma.rn.oob.sat.f16 %r1, %r2, %r3, %r4",
    "fma.rn.oob.f32 %r1, %r2, %r3, %r4",
    "ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8 {%r1, %r2, %r3, %r4}, [%rd1]",
    "ldmatrix.sync.aligned.m16n16.x1.shared.b8 {%r1, %r2}, [%rd1]",
    "ldmatrix.sync.aligned.m8n16.x1.trans.shared.b8x16.b6x16_p32 {%r1}, [%rd1]",
    "ldmatrix.sync.aligned.m8n8.x1.shared.b8 {%r1}, [%rd1]",
    "ldmatrix.sync.aligned.m8n8.x1.shared::cluster.b16 {%r1}, [%rd1]",
    "stmatrix.sync.aligned.m16n8.x1.shared.b8 [%rd1], {%r1}",
    "movmatrix.sync.aligned.m8n8.b16 %r1, %r2",
    "mma.sync.aligned.m16n8k8.row.col.f16.bf16.bf16.f16 {%r1, %r2}, {%r3, %r4}, {%r5}, {%r1, %r2}",
    "mma.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32 {%r1, %r2}, {%r3, %r4}, {%r5}, {%r1, %r2}",
    "mma.sync.aligned.m16n8k8.row.col.s32.s8.s8.s32 {%r1, %r2}, {%r3, %r4}, {%r5}, {%r1, %r2}",
    "mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 {%r1, %r2}, {%r3, %r4}, {%r5}, {%r1, %r2}",
    "tcgen05.mma.ws.cta_group::2.kind::f16 [%r1], %rd1, %rd2, %r2, %p1",
    "tcgen05.mma.ws.cta_group::1.kind::f16.collector::a::use [%r1], %rd1, %rd2, %r2, %p1",
    "tcgen05.mma.ws.cta_group::1.kind::mxf4.block_scale [%r1], %rd1, %rd2, %r2, [%r3], [%r4], %p1",
    "tcgen05.cp.cta_group::1.128x128b.b6x16_p32 [%r1], %rd1",
    "tcgen05.cp.cta_group::1.128x128b.b8x16 [%r1], %rd1",
};

TEST(InstructionTable, RefusesWhatPtxasRefuses) {
  for (const char* line : kNoForms) {
    const Statement s = statement(line);
    EXPECT_EQ(resolve(s).spec, nullptr) << line;
    EXPECT_FALSE(resolve(s).problem.empty()) << line;
  }
}

TEST(InstructionTable, RowsAreWellFormed) {
  for (const InstructionSpec& row : instruction_table()) {
    SCOPED_TRACE(std::string(row.name) + " | " + std::string(row.modifiers));
    EXPECT_FALSE(row.name.empty());
    EXPECT_NE(row.op, Op::Unsupported);
    EXPECT_FALSE(row.section.empty());
    int open = 0;
    char previous = ' ';
    for (char c : std::string(row.modifiers) + " ") {
      if (c == '{') {
        EXPECT_EQ(++open, 1);
      }
      if (c == '}') {
        EXPECT_EQ(--open, 0);
      }
      if (c == ' ') {
        EXPECT_EQ(open, 0) << "a group holds no blanks";
      }
      // A choice begins with a dot, and a choice begins at the start of a group and after '|'.
      if (previous == '|' || previous == '{') {
        EXPECT_EQ(c, '.');
      }
      if (c == '.') {
        EXPECT_TRUE(previous == ' ' || previous == '{' || previous == '|');
      }
      previous = c;
    }
    std::string word;
    for (char c : std::string(row.types) + " ") {
      if (c != ' ' && c != '/' && c != '?') {
        word += c;
        continue;
      }
      if (!word.empty()) {
        EXPECT_NE(type_from_string(word), Type::None) << word;
      }
      word.clear();
    }
    bool optional = false;
    std::string operand;
    for (char c : std::string(row.operands) + ",") {
      if (c != ',') {
        if (c != ' ') operand += c;
        continue;
      }
      if (!operand.empty()) {
        EXPECT_TRUE(!optional || operand.back() == '?') << "a required operand after an optional one";
        optional = operand.back() == '?';
        EXPECT_EQ(operand.front() == '[', operand.find(']') != std::string::npos) << operand;
      }
      operand.clear();
    }
  }
}

TEST(InstructionTable, ModifiersMayStandInAnyOrder) {
  const Statement a = statement("mbarrier.try_wait.shared::cta.acquire.parity.cta.b64 %p1, [%r1], 0");
  const Resolved resolved = resolve(a);
  ASSERT_NE(resolved.spec, nullptr) << resolved.problem;
  EXPECT_THAT(resolved.modifiers, ElementsAre("shared::cta", "acquire", "parity", "cta"));
  EXPECT_TRUE(resolved.has("parity"));
  EXPECT_FALSE(resolved.has("relaxed"));
  EXPECT_THAT(resolved.types, ElementsAre(Type::B64));
  EXPECT_EQ(resolved.type(), Type::B64);
  EXPECT_EQ(resolved.type(1), Type::None);
}

TEST(InstructionTable, SpacesKeepTheirOrder) {
  const Statement store = statement("cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 64");
  EXPECT_EQ(resolve(store).space(0), Space::Global);
  EXPECT_EQ(resolve(store).space(1), Space::SharedCta);
  EXPECT_EQ(resolve(store).space(2), Space::Generic);
  const Statement generic = statement("ld.u32 %r1, [%rd1]");
  EXPECT_EQ(resolve(generic).space(), Space::Generic);
  const Statement param = statement("ld.param::entry.u32 %r1, [%rd1]");
  EXPECT_EQ(resolve(param).space(), Space::Param);
}

TEST(InstructionTable, TheLongestNameWins) {
  const Statement s = statement("bar.warp.sync -1");
  EXPECT_EQ(resolve(s).spec->name, "bar.warp.sync");
  const Statement wait = statement("cp.async.bulk.wait_group 0");
  EXPECT_EQ(resolve(wait).spec->name, "cp.async.bulk.wait_group");
}

TEST(InstructionTable, SaysWhatIsWrong) {
  EXPECT_THAT(problem("frobnicate.b32 %r1"), HasSubstr("unknown opcode 'frobnicate'"));
  EXPECT_THAT(problem("ld.frob.u32 %r1, [%rd1]"), HasSubstr("ld does not take modifier '.frob'"));
  EXPECT_THAT(problem("ld.global.bf16 %r1, [%rd1]"), HasSubstr("ld does not take type '.bf16'"));
  EXPECT_THAT(problem("ld.global.shared.u32 %r1, [%rd1]"), HasSubstr("ld takes only one of .global, .const"));
  EXPECT_THAT(problem("ld.global %r1, [%rd1]"), HasSubstr("ld needs a type"));
  EXPECT_THAT(problem("ld.global.u32 %r1"), HasSubstr("ld takes at least 2 operands, got 1"));
  EXPECT_THAT(problem("trap 1"), HasSubstr("trap takes 0 operands, got 1"));
  EXPECT_THAT(problem("tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale [%r1], %rd1, %rd2, %r2, [%r3], [%r4], %p1"),
              HasSubstr("tcgen05.mma needs one of .scale_vec::2X, .scale_vec::4X, .block16 or .block32"));
  EXPECT_THAT(
      problem("tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::2X [%r1], %rd1, %rd2, %r2, [%r3], [%r4], "
              "%p1"),
      HasSubstr("tcgen05.mma does not take modifier '.scale_vec::2X'"));
  EXPECT_THAT(problem("shfl.sync.b32 %r1, %r2, 0, 31, -1"), HasSubstr("shfl needs one of .up, .down, .bfly or .idx"));
  EXPECT_THAT(problem("cp.async.bulk.prefetch.global [%rd1], 64"), HasSubstr("cp.async.bulk.prefetch needs .L2"));
  EXPECT_THAT(problem("mbarrier.try_wait.parity.shared::cluster.b64 %p1, [%r1], 0"),
              HasSubstr("mbarrier.try_wait does not take modifier '.shared::cluster'"));
  EXPECT_THAT(problem("mbarrier.frob.b64 [%r1]"), HasSubstr("unknown opcode 'mbarrier.frob'"));
  const Statement good = statement("trap");
  EXPECT_THAT(resolve(good).problem, IsEmpty());
  EXPECT_THAT(resolve(Statement()).problem, HasSubstr("unknown opcode"));
}

TEST(InstructionTable, KnowsDestinations) {
  const auto destinations = [](const std::string& line) {
    const Statement s = statement(line);
    const Resolved resolved = resolve(s);
    std::vector<bool> out;
    for (size_t i = 0; resolved.spec != nullptr && i < s.operands.size(); ++i)
      out.push_back(is_destination(*resolved.spec, i));
    return out;
  };
  EXPECT_THAT(destinations("ld.global.u32 %r1, [%rd1]"), ElementsAre(true, false));
  EXPECT_THAT(destinations("st.global.u32 [%rd1], %r1"), ElementsAre(false, false));
  EXPECT_THAT(destinations("discard.global.L2 [%rd1], 128"), ElementsAre(false, false));
  EXPECT_THAT(destinations("shfl.sync.idx.b32 %r1|%p1, %r2, 0, 31, -1"), ElementsAre(true, false, false, false, false));
  EXPECT_THAT(destinations("mbarrier.arrive.b64 %rd1, [%rd2]"), ElementsAre(true, false));
}

TEST(InstructionTable, OpsHaveTheirNames) {
  EXPECT_EQ(to_string(Op::Unsupported), "Unsupported");
  EXPECT_EQ(to_string(Op::Add), "Add");
  EXPECT_EQ(to_string(Op::CpAsyncBulkWaitGroup), "CpAsyncBulkWaitGroup");
  EXPECT_EQ(to_string(Op::Count), "Unsupported");
}

}  // namespace
}  // namespace handoff::ptx
