// Tested by remote_store_test.cc.
//
// st.async and red.async (PTX §9.7.9.12, §9.7.13.8): stores and reductions of registers into shared memory of the
// cluster, whose completion is counted in bytes by an mbarrier of the CTA that they go to. Unlike bulk copies they work
// through the generic proxy and do not pass the copy engine. One lane, one operation.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "grader/emulator/async/copy_engine.h"
#include "grader/emulator/async/reduce.h"
#include "grader/emulator/machine/fault.h"

namespace handoff::async {
namespace {

using machine::AsyncOpInfo;
using machine::DecodeContext;
using machine::for_lanes;
using machine::make_fault;
using machine::Region;
using ptx::Space;
using ptx::Type;

/// Operands in the pool, in this order; the registers of the value follow.
enum PoolIndex : uint32_t { kDst, kBarrier = kDst + kPooledAddress, kElements = kBarrier + kPooledAddress };

// Inst::sub: which address spaces are generic.
constexpr uint8_t kGeneric = 1;

constexpr size_t kMaxBytes = 32;  // .v4.b64

struct RemoteStore : Copy {
  ReduceOp op = ReduceOp::None;
  Type type = Type::None;

  std::array<std::byte, kMaxBytes> value{};  ///< of the registers, read at issue

  void read() override { staging.assign(value.begin(), value.begin() + info.bytes); }
  void write(uint32_t from, uint32_t bytes) override {
    std::byte* to = info.destination_owner->shared(static_cast<uint32_t>(info.destination)) + from;
    if (op == ReduceOp::None) {
      std::memcpy(to, staging.data() + from, bytes);
    } else {
      reduce_bytes(op, type, to, staging.data() + from, bytes);
    }
  }
};

/// imm = type, width = ReduceOp, list = the pool, list_size = its entries.
void issue(Warp& w, const Inst& i, LaneMask mask) {
  machine::note_effect(w);
  const uint32_t* pool = &w.cta->launch->program->operand_pool[i.list];
  const auto type = static_cast<Type>(i.imm);
  const auto op = static_cast<ReduceOp>(i.width);
  const auto element = static_cast<uint32_t>(ptx::size_of(type));
  const uint32_t count = i.list_size - kElements;
  if (w.cta->launch->config.cluster.volume() == 1) {
    throw make_fault(
        "bad-copy",
        fmt::format("{} in a launch without clusters, where an H200 stops with an illegal instruction",
                    op == ReduceOp::None ? "st.async" : "red.async"),
        "It stores to another CTA of the cluster: launch with a cluster of two or more, or store plainly.");
  }
  const SharedWindow window = (i.sub & kGeneric) != 0 ? SharedWindow::Generic : SharedWindow::Cluster;
  for_lanes(mask, [&](int l) {
    auto copy = std::make_shared<RemoteStore>();
    copy->op = op;
    copy->type = type;
    copy->noun = op == ReduceOp::None ? "st.async" : "red.async";
    copy->reduces = op != ReduceOp::None;
    AsyncOpInfo& info = copy->info;
    info.kind = op == ReduceOp::None ? AsyncOpInfo::Kind::RemoteStore : AsyncOpInfo::Kind::RemoteReduce;
    info.bytes = info.shared_bytes = element * count;
    info.source_region = Region::Local;
    info.destination_region = Region::Shared;
    const SharedPlace to =
        shared_place(w, l, pooled_address(w, pool + kDst, l), window, info.bytes, info.bytes,
                     op == ReduceOp::None ? "the destination of st.async" : "the destination of red.async");
    const SharedPlace b = shared_place(w, l, pooled_address(w, pool + kBarrier, l), window, 8, 8, "mbarrier");
    if (b.owner != to.owner) {
      throw make_fault(
          "bad-copy",
          fmt::format("{}: {} writes to the CTA of rank {}, but its mbarrier lies in the CTA of rank {}",
                      machine::describe_lanes(w, LaneMask{1} << l), copy->noun, to.owner->rank, b.owner->rank),
          "Destination and mbarrier lie in one CTA: mapa both addresses to the same rank.");
    }
    live_barrier(*b.owner, b.offset, copy->noun);
    info.destination_owner = to.owner;
    info.destination = to.offset;
    info.mbarrier_owner = b.owner;
    info.mbarrier = b.offset;
    for (uint32_t e = 0; e < count; e++) {
      const std::byte* reg = w.regs + pool[kElements + e] + static_cast<size_t>(l) * std::max(element, 4u);
      std::memcpy(copy->value.data() + size_t{e} * element, reg, element);
    }
    start_at(w, i, l, std::move(copy), w.time, w.time + timing_of(*w.cta->launch).remote_store);
  });
}

std::string decode(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  const Type type = r.type(0);
  const ptx::Operand& value = s.operands[1];
  std::vector<uint32_t> pool(kElements, machine::kNoOperand);
  const Space space = r.space(0) == Space::None ? Space::Generic : r.space(0);
  const machine::MemoryOperand to = c.address(s.operands[0], space), barrier = c.address(s.operands[2], space);
  if (!pool_address(to, pool, kDst) || !pool_address(barrier, pool, kBarrier))
    return "an address offset is out of range";
  if ((to.space == Space::Generic) != (barrier.space == Space::Generic))
    return "expects both addresses in the same form";
  if (to.space == Space::Generic) inst->sub |= kGeneric;
  const auto add = [&](const ptx::Operand& o) {
    if (c.width(o, type) != std::max<size_t>(ptx::size_of(type), 4)) return false;
    pool.push_back(c.source(o, type));
    return true;
  };
  bool fits = true;
  if (value.kind == ptx::Operand::Kind::Vector) {
    for (const ptx::Operand& e : value.elements) fits = add(e) && fits;
  } else {
    fits = add(value);
  }
  if (!fits) return "expects registers as wide as its type";
  if (r.spec->op == ptx::Op::RedAsync) {
    const ReduceOp op = reduce_op_from(r);
    if (op == ReduceOp::None) return "no operation that is supported";
    inst->width = static_cast<uint8_t>(op);
  }
  inst->imm = static_cast<uint64_t>(type);
  inst->fn = issue;
  inst->ends_slice = 1;
  inst->list = c.pool(pool);
  inst->list_size = static_cast<uint16_t>(pool.size());
  inst->cost = c.timing().shared_store;
  return {};
}

}  // namespace

void register_remote_store_decoders(machine::DecoderTable& table) {
  table[ptx::Op::StAsync] = decode;
  table[ptx::Op::RedAsync] = decode;
}

}  // namespace handoff::async
