// Tested by bulk_copy_test.cc.
//
// 1-D bulk copies (PTX §9.7.9.25.4): global → shared with an mbarrier, shared → global with a bulk group, shared →
// shared of the cluster, and the reductions. One lane, one operation: a warp that issues with 32 lanes issues 32
// copies, as the chip would.
//
// An operation passes milestones: issued, source read, destination written, signalled. Each is an event in the domain's
// queue, so the schedule decides when it happens. At issue a shared destination is filled with poison: until the bytes
// are written, whoever reads them gets NaN. Global destinations and those of reductions keep their contents. On random
// schedules a load is delivered in up to four pieces, each with its own complete_tx, which the ISA allows.
//
// The copy engine of an SM moves kTmaBytesPerCycle; transfers queue behind each other, latencies overlap
// (machine/timing.h).
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "grader/emulator/async/async_state.h"
#include "grader/emulator/async/reduce.h"
#include "grader/emulator/machine/fault.h"
#include "grader/emulator/machine/timing.h"

namespace handoff::async {
namespace {

namespace timing = machine::timing;
using machine::AsyncOpInfo;
using machine::DecodeContext;
using machine::Domain;
using machine::for_lanes;
using machine::kNoOperand;
using machine::lanes;
using machine::make_fault;
using machine::MemoryOperand;
using machine::Region;
using machine::WaitTarget;
using ptx::Space;
using ptx::Type;

/// Operands that do not fit into Inst live in the operand pool, in this order.
enum PoolIndex : uint32_t {
  kDst,
  kDstWide,
  kSrc,
  kSrcWide,
  kSize,
  kBarrier,
  kBarrierWide,
  kMask,
  kDstOffset,
  kSrcOffset,
  kBarrierOffset,
  kPoolSize
};

// Inst::sub: direction and flags.
constexpr uint8_t kLoad = 0, kStore = 1, kSharedToShared = 2, kDirection = 3, kReduce = 4;

struct Copy {
  AsyncOpInfo info;
  Domain* domain = nullptr;
  std::byte* destination = nullptr;
  const std::byte* source = nullptr;
  std::vector<std::byte> staging;
  std::shared_ptr<Group> group;  ///< stores
  ReduceOp reduce_op = ReduceOp::None;
  Type reduce_type = Type::None;
  uint32_t byte_mask = 0xffff;  ///< .cp_mask: bytes of each 16 that are written
  uint32_t pieces_left = 1;
};

InFlight* entry(Cta& cta, uint64_t id) {
  for (InFlight& f : state(cta).in_flight) {
    if (f.id == id) return &f;
  }
  return nullptr;
}
void retire(Cta* cta, uint64_t id, bool read, bool written) {
  if (cta == nullptr) return;
  InFlight* f = entry(*cta, id);
  if (f == nullptr) return;
  if (read) f->reads_shared = false;
  if (written) f->writes_shared = false;
  if (!f->reads_shared && !f->writes_shared) {
    auto& list = state(*cta).in_flight;
    list.erase(list.begin() + (f - list.data()));
  }
}

void notify(const Copy& c, AsyncOpInfo::Milestone m) {
  if (machine::Observer* o = machine::watcher(*c.domain->launch); o != nullptr) o->async_op(c.info, m);
}

/// Re-throws a fault with the copy's own place: events fire outside any instruction.
template <class F>
void at_place_of(const Copy& c, F&& f) {
  try {
    f();
  } catch (machine::Fault& fault) {
    if (fault.diagnostic.place.line == 0) fault.diagnostic.place = c.domain->launch->program->place(*c.info.inst);
    throw;
  }
}

void write_bytes(const Copy& c, uint32_t from, uint32_t bytes) {
  if (bytes == 0) return;
  if (c.reduce_op != ReduceOp::None) {
    reduce_bytes(c.reduce_op, c.reduce_type, c.destination + from, c.staging.data() + from, bytes);
  } else if (c.byte_mask != 0xffff) {
    for (uint32_t k = from; k < from + bytes; k++) {
      if ((c.byte_mask >> (k & 15) & 1) != 0) c.destination[k] = c.staging[k];
    }
  } else {
    std::memcpy(c.destination + from, c.staging.data() + from, bytes);
  }
  if (c.info.destination_owner != nullptr) {
    machine::touch_shared(*c.info.destination_owner);
  } else {
    machine::touch_global(*c.domain->launch);
  }
}

/// Destination written and, for loads, signalled: one event for each piece.
struct WrittenEvent : machine::Event {
  std::shared_ptr<Copy> copy;
  uint32_t from = 0, bytes = 0;
  void fire(Domain& domain) override {
    Copy& c = *copy;
    write_bytes(c, from, bytes);
    const bool last = --c.pieces_left == 0;
    if (last) {
      notify(c, AsyncOpInfo::Milestone::Written);
      retire(c.info.destination_owner, c.info.id, false, true);
    }
    if (c.info.mbarrier_owner != nullptr) {
      at_place_of(c, [&] { complete_tx(*c.info.mbarrier_owner, c.info.mbarrier, bytes, c.info.inst, c.info.id); });
      if (last) notify(c, AsyncOpInfo::Milestone::Signalled);
    }
    if (c.group) {
      c.group->unwritten--;
      machine::wake(domain, WaitTarget::Kind::Async, c.info.warp->cta, 0, domain.now);
    }
  }
};

struct SourceReadEvent : machine::Event {
  std::shared_ptr<Copy> copy;
  uint64_t written_time = 0;
  void fire(Domain& domain) override {
    Copy& c = *copy;
    c.staging.assign(c.source, c.source + c.info.bytes);
    notify(c, AsyncOpInfo::Milestone::SourceRead);
    retire(c.info.source_owner, c.info.id, true, false);
    if (c.group) {
      c.group->unread--;
      machine::wake(domain, WaitTarget::Kind::Async, c.info.warp->cta, 0, domain.now);
    }
    const bool random = domain.launch->config.schedule.kind == machine::Schedule::Kind::Random;
    const uint32_t chunks = c.info.bytes / 16;
    const uint32_t pieces = random && c.info.mbarrier_owner != nullptr && chunks > 1
                                ? 1 + static_cast<uint32_t>(domain.launch->random.below(std::min(4u, chunks)))
                                : 1;
    c.pieces_left = pieces;
    for (uint32_t p = 0; p < pieces; p++) {
      auto e = std::make_unique<WrittenEvent>();
      e->copy = copy;
      e->from = chunks * p / pieces * 16;
      e->bytes = pieces == 1 ? c.info.bytes : chunks * (p + 1) / pieces * 16 - e->from;
      domain.add_completion(std::move(e), std::max(written_time, domain.now));
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

/// Addresses break an address rule (misaligned), a size breaks a rule of the copy (bad-copy).
void require_multiple(Warp& w, int lane, uint64_t value, uint32_t of, const char* id, const char* field) {
  if (value % of == 0) return;
  throw make_fault(id,
                   fmt::format("{}: {} {} of the bulk copy is not a multiple of {}",
                               machine::describe_lanes(w, LaneMask{1} << lane), field, value, of),
                   "Source, destination and size of a bulk copy are multiples of 16 bytes.");
}

void issue(Warp& w, const Inst& i, LaneMask mask) {
  machine::note_effect(w);
  machine::Launch& launch = *w.cta->launch;
  const uint32_t* pool = &launch.program->operand_pool[i.list];
  const auto address = [&](uint32_t slot, uint32_t wide, uint32_t offset, int lane) {
    const uint64_t base =
        pool[wide] != 0 ? lanes<uint64_t>(w.regs, pool[slot])[lane] : lanes<uint32_t>(w.regs, pool[slot])[lane];
    return base + static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(pool[offset])));
  };
  const uint8_t direction = i.sub & kDirection;
  const bool reduce = (i.sub & kReduce) != 0;
  for_lanes(mask, [&](int l) {
    auto copy = std::make_shared<Copy>();
    AsyncOpInfo& info = copy->info;
    const uint32_t bytes = lanes<uint32_t>(w.regs, pool[kSize])[l];
    const uint64_t dst = address(kDst, kDstWide, kDstOffset, l), src = address(kSrc, kSrcWide, kSrcOffset, l);
    require_multiple(w, l, bytes, 16, "bad-copy", "the size");
    require_multiple(w, l, direction == kStore ? dst : dst & 0xffffffu, 16, "misaligned", "the destination address");
    require_multiple(w, l, direction == kLoad ? src : src & 0xffffffu, 16, "misaligned", "the source address");
    info.kind = reduce                ? AsyncOpInfo::Kind::BulkReduce
                : direction == kLoad  ? AsyncOpInfo::Kind::BulkLoad
                : direction == kStore ? AsyncOpInfo::Kind::BulkStore
                                      : AsyncOpInfo::Kind::BulkSharedToShared;
    info.id = launch.next_async_id++;
    info.warp = &w;
    info.inst = &i;
    info.lane = l;
    info.bytes = bytes;
    info.source = src;
    info.destination = dst;
    info.source_region = direction == kLoad ? Region::Global : Region::Shared;
    info.destination_region = direction == kStore ? Region::Global : Region::Shared;
    info.source_owner = info.destination_owner = info.mbarrier_owner = nullptr;
    info.mbarrier = 0;
    copy->domain = w.cta->domain;
    if (direction == kLoad) {
      copy->source = global_range(w, l, src, bytes, false, "a bulk copy reads its source");
    } else {
      const SharedPlace p = shared_place(w, l, src, false, bytes, 16, "the source of a bulk copy");
      info.source_owner = p.owner;
      info.source = p.offset;
      copy->source = p.owner->shared(p.offset);
    }
    if (direction == kStore) {
      copy->destination = global_range(w, l, dst, bytes, true, "a bulk copy writes its destination");
    } else {
      const SharedPlace p = shared_place(w, l, dst, false, bytes, 16, "the destination of a bulk copy");
      info.destination_owner = p.owner;
      info.destination = p.offset;
      copy->destination = p.owner->shared(p.offset);
      if (direction == kSharedToShared && p.owner == w.cta) {
        throw make_fault(
            "bad-copy",
            fmt::format("{}: a shared-to-shared bulk copy must have its destination in another CTA of the cluster",
                        machine::describe_lanes(w, LaneMask{1} << l)));
      }
      const uint64_t raw = address(kBarrier, kBarrierWide, kBarrierOffset, l);
      const SharedPlace b = shared_place(w, l, raw, false, 8, 8, "mbarrier");
      live_barrier(*b.owner, b.offset, "a bulk copy that signals");
      info.mbarrier = b.offset;
      info.mbarrier_owner = b.owner;
    }
    if (reduce) {
      copy->reduce_op = static_cast<ReduceOp>(i.width);
      copy->reduce_type = static_cast<Type>(i.imm);
    }
    if (pool[kMask] != kNoOperand) copy->byte_mask = lanes<uint32_t>(w.regs, pool[kMask])[l] & 0xffff;
    if (info.destination_owner != nullptr) {
      Cta& owner = *info.destination_owner;
      const auto offset = static_cast<uint32_t>(info.destination);
      if (hooks().hits_barrier(owner, offset, bytes)) {
        launch.report(i, "barrier-overwritten",
                      fmt::format("a bulk copy of {} bytes to `{}` runs over a live mbarrier", bytes,
                                  launch.program->describe_shared(offset)));
      }
      state(owner).in_flight.push_back({info.id, &i, false, true, bytes});
      if (!reduce) {
        std::memset(copy->destination, machine::kPoison, bytes);
        machine::touch_shared(owner);
      }
    }
    if (info.source_owner != nullptr) {
      if (InFlight* f = entry(*info.source_owner, info.id); f != nullptr) {
        f->reads_shared = true;
      } else {
        state(*info.source_owner).in_flight.push_back({info.id, &i, true, false, bytes});
      }
    }
    if (info.mbarrier_owner == nullptr) {
      ThreadGroups& groups = state(*w.cta).of(w, l);
      if (!groups.open_bulk) groups.open_bulk = std::make_shared<Group>();
      groups.open_bulk->unread++;
      groups.open_bulk->unwritten++;
      copy->group = groups.open_bulk;
    }
    notify(*copy, AsyncOpInfo::Milestone::Issued);

    Domain& d = *w.cta->domain;
    const uint64_t start = std::max(w.time, d.copy_engine_free);
    const uint64_t duration = std::max<uint64_t>(1, bytes / timing::kTmaBytesPerCycle);
    d.copy_engine_free = start + duration;
    auto read = std::make_unique<SourceReadEvent>();
    read->copy = copy;
    const uint64_t read_time =
        start + duration + (direction == kStore ? timing::kTmaStoreRead : timing::kTmaLatency / 2);
    read->written_time = start + duration + timing::kTmaLatency;
    d.add_completion(std::move(read), read_time);
    w.time += l == 31 - __builtin_clz(mask) ? 0 : timing::kTmaIssue;
  });
}

void prefetch(Warp&, const Inst&, LaneMask) {}

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
  if (r.has("multicast::cluster")) return "multicast needs clusters, which are not emulated yet";
  inst->sub = direction;
  std::vector<uint32_t> pool(kPoolSize, kNoOperand);
  const auto put = [&](const ptx::Operand& o, Space space, uint32_t slot, uint32_t wide, uint32_t offset) {
    const MemoryOperand m = c.address(o, space);
    pool[slot] = m.slot;
    pool[wide] = m.wide ? 1 : 0;
    pool[offset] = static_cast<uint32_t>(m.offset);
    return m.offset == static_cast<int32_t>(m.offset);
  };
  bool fits =
      put(s.operands[0], to, kDst, kDstWide, kDstOffset) && put(s.operands[1], from, kSrc, kSrcWide, kSrcOffset);
  pool[kSize] = c.source(s.operands[2], Type::U32);
  if (c.width(s.operands[2], Type::U32) != 4) return "the size must be a 32-bit operand";
  if (direction != kStore) {
    fits = fits && put(s.operands[3], Space::Shared, kBarrier, kBarrierWide, kBarrierOffset);
  } else if (r.has("cp_mask")) {
    pool[kMask] = c.source(s.operands.back(), Type::U16);
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
  inst->cost = timing::kTmaIssue;
  return {};
}

std::string decode_prefetch(DecodeContext&, const ptx::Resolved&, const ptx::Statement&, Inst* inst) {
  inst->fn = prefetch;
  inst->cost = timing::kTmaIssue;
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
