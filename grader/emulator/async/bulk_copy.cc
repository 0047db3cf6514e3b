// Tested by bulk_copy_test.cc.
//
// 1-D bulk copies (PTX §9.7.9.25.4): global → shared with an mbarrier, shared → global with a bulk group, shared →
// shared of the cluster, and the reductions; a load may be delivered to several CTAs (.multicast::cluster). One lane,
// one operation: a warp that issues with 32 lanes issues 32 copies, as the chip would. How an operation lives from here
// on: copy_engine.cc.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "grader/emulator/async/copy_engine.h"
#include "grader/emulator/async/reduce.h"
#include "grader/emulator/machine/fault.h"

namespace handoff::async {
namespace {

using machine::AsyncOpInfo;
using machine::DecodeContext;
using machine::for_lanes;
using machine::kNoOperand;
using machine::lanes;
using machine::make_fault;
using machine::Region;
using machine::WaitTarget;
using ptx::Space;
using ptx::Type;

/// Operands that do not fit into Inst live in the operand pool, in this order.
enum PoolIndex : uint32_t {
  kDst,
  kSrc = kDst + kPooledAddress,
  kBarrier = kSrc + kPooledAddress,
  kSize = kBarrier + kPooledAddress,
  kByteMask,
  kCtaMask,
  kPoolSize
};

// Inst::sub: direction and flags.
constexpr uint8_t kLoad = 0, kStore = 1, kSharedToShared = 2, kDirection = 3, kReduce = 4, kOwn = 8;

struct BulkCopy : Copy {
  std::byte* destination = nullptr;
  const std::byte* source = nullptr;
  ReduceOp reduce_op = ReduceOp::None;
  Type reduce_type = Type::None;

  void read() override { staging.assign(source, source + info.bytes); }
  void write(uint32_t from, uint32_t bytes) override {
    if (reduce_op != ReduceOp::None) {
      reduce_bytes(reduce_op, reduce_type, destination + from, staging.data() + from, bytes);
    } else if (info.byte_mask != 0xffff) {
      for (uint32_t k = from; k < from + bytes; k++) {
        if ((info.byte_mask >> (k & 15) & 1) != 0) destination[k] = staging[k];
      }
    } else {
      std::memcpy(destination + from, staging.data() + from, bytes);
    }
  }
};

/// A checked range of global memory.
std::byte* global_range(Warp& w, int lane, uint64_t address, uint32_t bytes, bool write, const char* what) {
  const machine::Allocation* a = w.cta->launch->memory->find(address, std::max(bytes, 1u));
  if (a == nullptr || (write && !a->writable)) {
    throw make_fault(
        "out-of-bounds",
        fmt::format("{}: {} of {} bytes at global address {:#x}, {}", machine::describe_lanes(w, LaneMask{1} << lane),
                    what, bytes, address,
                    w.cta->launch->memory->describe(a == nullptr && w.cta->launch->memory->find(address, 1) != nullptr
                                                        ? address + bytes - 1
                                                        : address)));
  }
  return a->host + (address - a->base);
}

std::string not_multiple(const Warp& w, int lane, uint64_t value, uint32_t of, const char* field, const char* noun) {
  return fmt::format("{}: {} {} of the {} is not a multiple of {}", machine::describe_lanes(w, LaneMask{1} << lane),
                     field, value, noun, of);
}
std::string multiples_hint(const char* noun) {
  return fmt::format("Addresses and size of a {} are multiples of 16 bytes.", noun);
}
/// Addresses break an address rule (misaligned), a size breaks a rule of the copy (bad-copy).
void require_multiple(Warp& w, int lane, uint64_t value, uint32_t of, const char* id, const char* field,
                      const char* noun = "bulk copy") {
  if (value % of != 0) throw make_fault(id, not_multiple(w, lane, value, of, field, noun), multiples_hint(noun));
}

void issue(Warp& w, const Inst& i, LaneMask mask) {
  machine::note_effect(w);
  const uint32_t* pool = &w.cta->launch->program->operand_pool[i.list];
  const uint8_t direction = i.sub & kDirection;
  const bool reduce = (i.sub & kReduce) != 0;
  for_lanes(mask, [&](int l) {
    auto copy = std::make_shared<BulkCopy>();
    AsyncOpInfo& info = copy->info;
    std::vector<Delivery> to;  // of what arrives in shared memory; empty for a store
    copy->noun = "a bulk copy";
    const uint32_t bytes = lanes<uint32_t>(w.regs, pool[kSize])[l];
    const uint64_t dst = pooled_address(w, pool + kDst, l), src = pooled_address(w, pool + kSrc, l);
    require_multiple(w, l, bytes, 16, "bad-copy", "the size");
    require_multiple(w, l, direction == kStore ? dst : dst & 0xffffffu, 16, "misaligned", "the destination address");
    require_multiple(w, l, direction == kLoad ? src : src & 0xffffffu, 16, "misaligned", "the source address");
    info.kind = reduce                ? AsyncOpInfo::Kind::BulkReduce
                : direction == kLoad  ? AsyncOpInfo::Kind::BulkLoad
                : direction == kStore ? AsyncOpInfo::Kind::BulkStore
                                      : AsyncOpInfo::Kind::BulkSharedToShared;
    info.bytes = bytes;
    info.source = src;
    info.destination = dst;
    info.source_region = direction == kLoad ? Region::Global : Region::Shared;
    info.destination_region = direction == kStore ? Region::Global : Region::Shared;
    if (direction == kLoad) {
      copy->source = global_range(w, l, src, bytes, false, "a bulk copy reads its source");
    } else {
      const SharedPlace p = shared_place(w, l, src, SharedWindow::Cta, bytes, 16, "the source of a bulk copy");
      info.source_owner = p.owner;
      info.source = p.offset;
      copy->source = p.owner->shared(p.offset);
    }
    if (direction == kStore) {
      copy->destination = global_range(w, l, dst, bytes, true, "a bulk copy writes its destination");
    } else {
      const SharedWindow window = (i.sub & kOwn) != 0 ? SharedWindow::Cta : SharedWindow::Cluster;
      const SharedPlace p = shared_place(w, l, dst, window, bytes, 16, "the destination of a bulk copy");
      info.destination = p.offset;
      // Recorded on an H200: copy/bulk_shared and cluster/own_cta_bulk_shared.
      if (direction == kSharedToShared && w.cta->launch->config.cluster.volume() == 1) {
        throw make_fault(
            "bad-copy",
            fmt::format("{}: a shared-to-shared bulk copy in a launch without clusters, where an H200 stops "
                        "with an illegal instruction",
                        machine::describe_lanes(w, LaneMask{1} << l)),
            "It is for copies to another CTA of the cluster: launch with a cluster of two or more.");
      }
      const SharedPlace b =
          shared_place(w, l, pooled_address(w, pool + kBarrier, l), SharedWindow::Cluster, 8, 8, "mbarrier");
      info.mbarrier = b.offset;
      LoadForm form;
      form.signals = LoadForm::Signals::Any;
      form.multicast = pool[kCtaMask] != kNoOperand;
      if (form.multicast) form.mask = lanes<uint32_t>(w.regs, pool[kCtaMask])[l] & 0xffff;
      to = deliveries(w, l, form, p, b, copy->noun);
    }
    if (reduce) {
      copy->reduce_op = static_cast<ReduceOp>(i.width);
      copy->reduce_type = static_cast<Type>(i.imm);
    }
    if (pool[kByteMask] != kNoOperand)
      info.byte_mask = static_cast<uint16_t>(lanes<uint32_t>(w.regs, pool[kByteMask])[l]);
    info.shared_bytes = bytes;
    copy->reduces = reduce;
    const auto land = [](BulkCopy& each) {
      each.destination = each.info.destination_owner->shared(static_cast<uint32_t>(each.info.destination));
    };
    start(w, i, l, to.empty() ? std::vector<std::shared_ptr<Copy>>{copy} : one_for_each(copy, to, land));
    space_out(w, i, l, mask);
  });
}

/// Moves nothing here, but its operands have rules (§9.7.9.25.4.3). An H200 stops at a misaligned source and lets other
/// sizes pass, and addresses outside every allocation, too.
void prefetch(Warp& w, const Inst& i, LaneMask mask) {
  const uint32_t* pool = &w.cta->launch->program->operand_pool[i.list];
  constexpr const char* kNoun = "bulk prefetch";
  for_lanes(mask, [&](int l) {
    const uint32_t bytes = lanes<uint32_t>(w.regs, pool[kSize])[l];
    if (bytes % 16 != 0) {
      w.cta->launch->report(i, "bad-copy", not_multiple(w, l, bytes, 16, "the size", kNoun), multiples_hint(kNoun));
    }
    require_multiple(w, l, pooled_address(w, pool + kSrc, l), 16, "misaligned", "the source address", kNoun);
  });
}

void commit_group(Warp& w, const Inst& i, LaneMask mask) {
  machine::note_effect(w);
  for_lanes(mask, [&](int l) {
    ThreadGroups& g = state(*w.cta).of(w, l);
    g.bulk.push_back(g.open_bulk ? g.open_bulk : std::make_shared<Group>());
    g.open_bulk.reset();
  });
  if (machine::Observer* o = machine::watcher(*w.cta->launch); o != nullptr)
    o->group({machine::GroupEvent::Kind::BulkCommit, &w, &i, mask, 0});
}

/// imm = groups that may stay pending, sub = .read.
void wait_group(Warp& w, const Inst& i, LaneMask mask) {
  const bool read_only = i.sub != 0;
  bool all = true;
  for_lanes(mask, [&](int l) {
    auto& groups = state(*w.cta).of(w, l).bulk;
    while (!groups.empty() && groups.front()->unread == 0 && groups.front()->unwritten == 0) groups.pop_front();
    for (size_t k = 0; k + i.imm < groups.size(); k++) {
      if (groups[k]->unread != 0 || (!read_only && groups[k]->unwritten != 0)) all = false;
    }
  });
  if (!all) {
    machine::block_and_retry(w, {{WaitTarget::Kind::Async, w.cta, 0, 0, mask, false}});
    return;
  }
  machine::note_effect(w);
  if (machine::Observer* o = machine::watcher(*w.cta->launch); o != nullptr) {
    o->group({read_only ? machine::GroupEvent::Kind::BulkWaitRead : machine::GroupEvent::Kind::BulkWait, &w, &i, mask,
              static_cast<uint32_t>(i.imm)});
  }
}

// --- decoders --------------------------------------------------------------------------------------------------------

std::string decode_bulk(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  const Space to = r.space(0), from = r.space(1);
  const auto shared = [](Space x) { return x == Space::Shared || x == Space::SharedCta || x == Space::SharedCluster; };
  const uint8_t direction = from == Space::Global ? kLoad
                            : to == Space::Global ? kStore
                            : shared(to)          ? kSharedToShared
                                                  : kLoad;
  inst->sub = direction;
  if (direction == kLoad && to == Space::SharedCta) inst->sub |= kOwn;
  std::vector<uint32_t> pool(kPoolSize, kNoOperand);
  bool fits = pool_address(c.address(s.operands[0], to), pool, kDst);
  fits = pool_address(c.address(s.operands[1], from), pool, kSrc) && fits;
  pool[kSize] = c.source(s.operands[2], Type::U32);
  if (c.width(s.operands[2], Type::U32) != 4) return "the size must be a 32-bit operand";
  if (direction != kStore) {
    fits = pool_address(c.address(s.operands[3], Space::Shared), pool, kBarrier) && fits;
    if (r.has("multicast::cluster")) {
      if (s.operands.size() < 5) return "a multicast has no mask of CTAs";
      pool[kCtaMask] = c.source(s.operands[4], Type::U16);
    }
  } else if (r.has("cp_mask")) {
    pool[kByteMask] = c.source(s.operands.back(), Type::U16);
  }
  if (!fits) return "an address offset is out of range";
  if (r.spec->op == ptx::Op::CpReduceAsyncBulk) {
    inst->sub |= kReduce;
    const ReduceOp op = reduce_op_from(r);
    if (op == ReduceOp::None) return "no operation that is supported";
    inst->width = static_cast<uint8_t>(op);
    inst->imm = static_cast<uint64_t>(r.type(0));
  }
  inst->fn = issue;
  inst->ends_slice = 1;
  inst->list = c.pool(pool);
  inst->list_size = static_cast<uint16_t>(pool.size());
  inst->cost = direction == kStore ? c.timing().tma_store_issue : c.timing().tma_issue;
  return {};
}

std::string decode_prefetch(DecodeContext& c, const ptx::Resolved&, const ptx::Statement& s, Inst* inst) {
  std::vector<uint32_t> pool(kPoolSize, kNoOperand);
  if (!pool_address(c.address(s.operands[0], Space::Global), pool, kSrc)) return "an address offset is out of range";
  pool[kSize] = c.source(s.operands[1], Type::U32);
  if (c.width(s.operands[1], Type::U32) != 4) return "the size must be a 32-bit operand";
  inst->fn = prefetch;
  inst->list = c.pool(pool);
  inst->list_size = static_cast<uint16_t>(pool.size());
  inst->cost = c.timing().tma_issue;
  return {};
}
std::string decode_commit(DecodeContext&, const ptx::Resolved&, const ptx::Statement&, Inst* inst) {
  inst->fn = commit_group;
  return {};
}
std::string decode_wait(DecodeContext&, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  if (s.operands[0].kind != ptx::Operand::Kind::Integer) return "the number of groups must be a constant";
  inst->fn = wait_group;
  inst->ends_slice = 1;
  inst->imm = s.operands[0].bits;
  inst->sub = r.has("read") ? 1 : 0;
  return {};
}

}  // namespace

void register_bulk_copy_decoders(machine::DecoderTable& table) {
  using ptx::Op;
  table[Op::CpAsyncBulk] = decode_bulk;
  table[Op::CpReduceAsyncBulk] = decode_bulk;
  table[Op::CpAsyncBulkPrefetch] = decode_prefetch;
  table[Op::CpAsyncBulkCommitGroup] = decode_commit;
  table[Op::CpAsyncBulkWaitGroup] = decode_wait;
}

}  // namespace handoff::async
