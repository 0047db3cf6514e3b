#include "grader/bench/kernels.h"

#include <fmt/format.h>

namespace handoff::bench {
namespace {

constexpr std::string_view kHeader = R"(.version 9.0
.target sm_100a
.address_size 64
)";

constexpr std::string_view kNoop = R"(
.visible .entry noop()
{
  ret;
}
)";

// Registers and prologue that the three loops over `iterations` share: %rd1 = &out[global thread], %r1 = iterations,
// %r4 = thread, f32 operands from the thread's number.
constexpr std::string_view kPrologue = R"((
  .param .u64 out,
  .param .u32 iterations
)
{
  .reg .pred %p<4>;
  .reg .f32 %f<12>;
  .reg .b32 %r<24>;
  .reg .b64 %rd<8>;
  .loc 1 10 3
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [iterations];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  mul.wide.u32 %rd2, %r5, 4;
  add.s64 %rd1, %rd1, %rd2;
  cvt.rn.f32.u32 %f1, %r4;
  mov.f32 %f2, 0f3F7FF000;
  mov.f32 %f3, 0f3DCCCCCD;
  mov.f32 %f4, 0f3F800000;
  mov.f32 %f5, 0f00000000;
  mov.f32 %f6, 0f40000000;
  mov.u32 %r10, 0;
  mov.u32 %r11, %r4;
  mov.u32 %r12, 1;
  mov.u64 %rd3, 0;
)";

constexpr std::string_view kArithmetic = R"(
$L_loop:
  .loc 1 14 5
  fma.rn.f32 %f1, %f1, %f2, %f3;
  fma.rn.f32 %f4, %f4, %f2, %f1;
  mul.f32 %f7, %f1, %f4;
  add.f32 %f5, %f5, %f7;
  .loc 1 15 5
  mad.lo.s32 %r11, %r11, 1664525, %r12;
  shr.u32 %r13, %r11, 3;
  xor.b32 %r12, %r12, %r13;
  and.b32 %r14, %r12, 1023;
  shl.b32 %r15, %r14, 2;
  add.s32 %r16, %r15, %r11;
  mul.wide.u32 %rd4, %r16, 4;
  add.s64 %rd3, %rd3, %rd4;
  .loc 1 16 5
  min.f32 %f5, %f5, %f6;
  add.s32 %r10, %r10, 1;
  setp.lt.u32 %p1, %r10, %r1;
  @%p1 bra $L_loop;
  cvt.u32.u64 %r17, %rd3;
  cvt.rn.f32.u32 %f8, %r17;
  add.f32 %f5, %f5, %f8;
  st.global.f32 [%rd1], %f5;
  ret;
}
)";

constexpr std::string_view kShared = R"(
  .shared .align 16 .b8 tile[16512];
  mov.u32 %r6, tile;
  shl.b32 %r7, %r4, 2;
  and.b32 %r7, %r7, 4095;
  add.s32 %r8, %r6, %r7;
  st.shared.f32 [%r8], %f1;
  st.shared.f32 [%r8+4096], %f2;
  st.shared.f32 [%r8+8192], %f3;
  st.shared.f32 [%r8+12288], %f4;
  bar.sync 0;
$L_loop:
  .loc 1 24 5
  shl.b32 %r13, %r10, 7;
  and.b32 %r14, %r13, 4095;
  xor.b32 %r14, %r14, %r7;
  add.s32 %r15, %r6, %r14;
  .loc 1 25 5
  ld.shared.f32 %f7, [%r15];
  ld.shared.f32 %f8, [%r15+4096];
  ld.shared.f32 %f9, [%r15+8192];
  ld.shared.f32 %f10, [%r8+12288];
  fma.rn.f32 %f1, %f7, %f2, %f1;
  fma.rn.f32 %f4, %f8, %f2, %f4;
  fma.rn.f32 %f5, %f9, %f10, %f5;
  add.f32 %f11, %f1, %f4;
  .loc 1 26 5
  st.shared.f32 [%r8+12288], %f11;
  add.s32 %r10, %r10, 1;
  setp.lt.u32 %p1, %r10, %r1;
  @%p1 bra $L_loop;
  add.f32 %f5, %f5, %f11;
  st.global.f32 [%rd1], %f5;
  ret;
}
)";

// Each side has five instructions, so a lane executes 16 in an iteration and its warp 21.
constexpr std::string_view kDivergent = R"(
  and.b32 %r13, %r4, 1;
$L_loop:
  .loc 1 34 5
  setp.eq.s32 %p2, %r13, 1;
  @%p2 bra $L_odd;
  .loc 1 35 7
  fma.rn.f32 %f1, %f1, %f2, %f3;
  mad.lo.s32 %r11, %r11, 1664525, %r12;
  xor.b32 %r12, %r12, %r11;
  add.f32 %f5, %f5, %f1;
  bra.uni $L_join;
$L_odd:
  .loc 1 37 7
  fma.rn.f32 %f4, %f4, %f2, %f6;
  mad.lo.s32 %r12, %r12, 22695477, %r11;
  and.b32 %r11, %r11, %r12;
  add.f32 %f5, %f5, %f4;
  max.f32 %f5, %f5, %f3;
$L_join:
  .loc 1 39 5
  shr.u32 %r14, %r12, 3;
  add.s32 %r15, %r14, %r11;
  mul.wide.u32 %rd4, %r15, 4;
  add.s64 %rd3, %rd3, %rd4;
  xor.b32 %r16, %r15, %r14;
  min.f32 %f5, %f5, %f6;
  add.s32 %r10, %r10, 1;
  setp.lt.u32 %p1, %r10, %r1;
  @%p1 bra $L_loop;
  cvt.u32.u64 %r17, %rd3;
  add.s32 %r17, %r17, %r16;
  cvt.rn.f32.u32 %f8, %r17;
  add.f32 %f5, %f5, %f8;
  st.global.f32 [%rd1], %f5;
  ret;
}
)";

constexpr std::string_view kCopy = R"((
  .param .u64 in,
  .param .u32 iterations
)
{
  .reg .pred %p<4>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<4>;
  .shared .align 128 .b8 tile[16384];
  .shared .align 8 .b64 full;
  .loc 1 44 3
  mov.u32 %r2, %tid.x;
  setp.ne.s32 %p1, %r2, 0;
  @%p1 bra $L_exit;
  ld.param.u64 %rd1, [in];
  ld.param.u32 %r1, [iterations];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r3, tile;
  mov.u32 %r4, full;
  mbarrier.init.shared.b64 [%r4], 1;
  fence.proxy.async.shared::cta;
  mov.u32 %r5, 0;
$L_loop:
  .loc 1 50 5
  mbarrier.arrive.expect_tx.shared.b64 %rd2, [%r4], 16384;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r3], [%rd1], 16384, [%r4];
  and.b32 %r6, %r5, 1;
$L_wait:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r4], %r6;
  @!%p2 bra $L_wait;
  add.s32 %r5, %r5, 1;
  setp.lt.u32 %p3, %r5, %r1;
  @%p3 bra $L_loop;
  mbarrier.inval.shared.b64 [%r4];
$L_exit:
  ret;
}
)";

// The tiles of a tensor of 64 bf16 a row, 64 rows a tile, in turn: 128-byte swizzle, as a GEMM loads its operands.
constexpr std::string_view kTensorCopy = R"((
  .param .align 64 .b8 map[128],
  .param .u32 iterations
)
{
  .reg .pred %p<4>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<4>;
  .shared .align 1024 .b8 tile[8192];
  .shared .align 8 .b64 full;
  .loc 1 80 3
  mov.u32 %r2, %tid.x;
  setp.ne.s32 %p1, %r2, 0;
  @%p1 bra $L_exit;
  mov.b64 %rd1, map;
  cvta.param.u64 %rd1, %rd1;
  ld.param.u32 %r1, [iterations];
  mov.u32 %r3, tile;
  mov.u32 %r4, full;
  mbarrier.init.shared.b64 [%r4], 1;
  fence.proxy.async.shared::cta;
  mov.u32 %r5, 0;
  mov.u32 %r8, 0;
$L_loop:
  .loc 1 86 5
  and.b32 %r6, %r5, 1;
  shl.b32 %r7, %r6, 6;
  mbarrier.arrive.expect_tx.shared.b64 %rd2, [%r4], 8192;
  cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r3], [%rd1, {%r8, %r7}], [%r4];
$L_wait:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r4], %r6;
  @!%p2 bra $L_wait;
  add.s32 %r5, %r5, 1;
  setp.lt.u32 %p3, %r5, %r1;
  @%p3 bra $L_loop;
  mbarrier.inval.shared.b64 [%r4];
$L_exit:
  ret;
}
)";

// One warp; lane 0 issues four MMAs of 128×256×16, the K of a swizzle atom, commits and waits. A: 128 rows, B: 256 rows
// of 128 bytes, 128-byte swizzle.
constexpr std::string_view kMma = R"((
  .param .u64 in,
  .param .u32 iterations
)
{
  .reg .pred %p<6>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<8>;
  .shared .align 1024 .b8 tiles[40960];
  .shared .align 8 .b64 full;
  .shared .align 8 .b64 done;
  .shared .align 4 .b32 slot;
  .loc 1 60 3
  ld.param.u64 %rd1, [in];
  ld.param.u32 %r1, [iterations];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r2, slot;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 256;
  mov.u32 %r3, %tid.x;
  setp.ne.s32 %p1, %r3, 0;
  @%p1 bra $L_done;
  mbarrier.init.shared.b64 [full], 1;
  mbarrier.init.shared.b64 [done], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 %rd2, [full], 40960;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tiles], [%rd1], 16384, [full];
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tiles+16384], [%rd1], 16384, [full];
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tiles+32768], [%rd1], 8192, [full];
$L_full:
  mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;
  @!%p2 bra $L_full;
  ld.shared.u32 %r4, [slot];
  mov.u32 %r5, tiles;
  shr.u32 %r5, %r5, 4;
  or.b32 %r5, %r5, 65536;
  mov.u32 %r6, 0x40004040;
  mov.b64 %rd3, {%r5, %r6};
  add.s64 %rd4, %rd3, 512;
  mov.u32 %r7, 0;
  setp.ne.s32 %p3, %r7, 0;
  setp.eq.s32 %p4, %r7, 0;
$L_loop:
  .loc 1 70 5
  tcgen05.mma.cta_group::1.kind::f16 [%r4], %rd3, %rd4, 0x08400490, %p3;
  add.s64 %rd5, %rd3, 2;
  add.s64 %rd6, %rd4, 2;
  tcgen05.mma.cta_group::1.kind::f16 [%r4], %rd5, %rd6, 0x08400490, %p4;
  add.s64 %rd5, %rd3, 4;
  add.s64 %rd6, %rd4, 4;
  tcgen05.mma.cta_group::1.kind::f16 [%r4], %rd5, %rd6, 0x08400490, %p4;
  add.s64 %rd5, %rd3, 6;
  add.s64 %rd6, %rd4, 6;
  tcgen05.mma.cta_group::1.kind::f16 [%r4], %rd5, %rd6, 0x08400490, %p4;
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];
  and.b32 %r8, %r7, 1;
$L_wait:
  mbarrier.try_wait.parity.shared.b64 %p2, [done], %r8;
  @!%p2 bra $L_wait;
  add.s32 %r7, %r7, 1;
  setp.lt.u32 %p5, %r7, %r1;
  @%p5 bra $L_loop;
$L_done:
  bar.warp.sync -1;
  ld.shared.u32 %r4, [slot];
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4, 256;
  ret;
}
)";

std::string loop(std::string_view name, std::string_view body) {
  return fmt::format(".visible .entry {}{}{}", name, kPrologue, body);
}

}  // namespace

std::string_view kernels() {
  static const std::string kText = fmt::format(
      "{}.file 1 \"bench.cu\"\n{}{}{}{}.visible .entry copy{}.visible .entry tensor_copy{}.visible .entry mma{}",
      kHeader, kNoop, loop("arithmetic", kArithmetic), loop("shared", kShared), loop("divergent", kDivergent), kCopy,
      kTensorCopy, kMma);
  return kText;
}

std::string large_module(size_t bytes) {
  std::string text = fmt::format("{}.file 1 \"bench.cu\"\n", kHeader);
  for (int k = 0; text.size() < bytes; k++) {
    text += loop(fmt::format("arithmetic{}", k), kArithmetic);
    text += loop(fmt::format("shared{}", k), kShared);
    text += loop(fmt::format("divergent{}", k), kDivergent);
    text += fmt::format(".visible .entry copy{}{}", k, kCopy);
  }
  return text;
}

}  // namespace handoff::bench
