// Tested by cp_async_test.cc.
//
// Non-bulk cp.async (PTX §9.7.9.25.3): each lane copies 4, 8 or 16 bytes from global to shared memory through the
// generic proxy. The destination is poisoned at issue; bytes beyond the source size are zeros. Groups are per thread;
// cp.async.mbarrier.arrive makes an asynchronous arrive that waits for all earlier cp.async of its thread.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "grader/emulator/async/async_state.h"
#include "grader/emulator/machine/fault.h"
#include "grader/emulator/machine/timing.h"

namespace handoff::async {
namespace {

using machine::AsyncOpInfo;
using machine::DecodeContext;
using machine::Domain;
using machine::for_lanes;
using machine::GroupEvent;
using machine::kNoOperand;
using machine::lanes;
using machine::make_fault;
using machine::WaitTarget;
using ptx::Type;

constexpr uint8_t kDstWide = 1, kSrcWide = 2, kIgnoreSource = 4;

/// One lane's share of a cp.async instruction.
struct LaneCopy {
  AsyncOpInfo info;
  std::byte* destination;
  const std::byte* source;
  uint32_t source_bytes;
  std::shared_ptr<Group> own, group;
};

void drop_in_flight(Cta& cta, uint64_t id) {
  std::erase_if(state(cta).in_flight, [id](const InFlight& f) { return f.id == id; });
}

/// Performs the arrives of threads whose copies have all landed.
void settle_arrives(ThreadGroups& g) {
  for (size_t k = 0; k < g.arrives.size();) {
    PendingArrive& a = g.arrives[k];
    std::erase_if(a.waits, [](const auto& x) { return x->unwritten == 0; });
    if (!a.waits.empty()) {
      k++;
      continue;
    }
    const PendingArrive due = a;
    g.arrives.erase(g.arrives.begin() + static_cast<std::ptrdiff_t>(k));
    try {
      arrive_async(*due.owner, due.offset, due.inst, due.op, "cp.async.mbarrier.arrive");
    } catch (machine::Fault& fault) {  // it may happen outside any instruction
      if (fault.diagnostic.place.line == 0) fault.diagnostic.place = due.owner->launch->program->place(*due.inst);
      throw;
    }
  }
}

struct LandedEvent : machine::Event {
  std::vector<LaneCopy> copies;
  void fire(Domain& domain) override {
    machine::Observer* observer = machine::watcher(*domain.launch);
    for (LaneCopy& c : copies) {
      if (observer != nullptr) observer->async_op(c.info, AsyncOpInfo::Milestone::SourceRead);
      if (c.source_bytes != 0) std::memcpy(c.destination, c.source, c.source_bytes);
      std::memset(c.destination + c.source_bytes, 0, c.info.bytes - c.source_bytes);
      machine::touch_shared(*c.info.destination_owner);
      if (observer != nullptr) observer->async_op(c.info, AsyncOpInfo::Milestone::Written);
      drop_in_flight(*c.info.destination_owner, c.info.id);
      c.own->unread = c.own->unwritten = 0;
      c.group->unread--;
      c.group->unwritten--;
      Warp& w = *c.info.warp;
      ThreadGroups& g = state(*w.cta).of(w, c.info.lane);
      std::erase_if(g.copies, [](const auto& x) { return x->unwritten == 0; });
      settle_arrives(g);
    }
    machine::wake(domain, WaitTarget::Kind::Async, copies[0].info.warp->cta, 0, domain.now);
  }
};

/// a = destination, b = source, c = source size or ignore-source predicate; imm = offsets (low: dst, high: src), width
/// = bytes.
void issue(Warp& w, const Inst& i, LaneMask mask) {
  machine::note_effect(w);
  machine::Launch& launch = *w.cta->launch;
  auto event = std::make_unique<LandedEvent>();
  const uint32_t bytes = i.width;
  for_lanes(mask, [&](int l) {
    const machine::MemoryOperand dm{i.a, static_cast<int32_t>(i.imm & 0xffffffffu), ptx::Space::Shared,
                                    (i.sub & kDstWide) != 0};
    const machine::MemoryOperand sm{i.b, static_cast<int32_t>(i.imm >> 32), ptx::Space::Global,
                                    (i.sub & kSrcWide) != 0};
    const SharedPlace to =
        shared_place(w, l, address_of(w, dm, l), SharedWindow::Cta, bytes, bytes, "the destination of cp.async");
    const uint64_t from = address_of(w, sm, l);
    uint32_t source_bytes = bytes;
    if (i.c != kNoOperand) {
      source_bytes = (i.sub & kIgnoreSource) != 0 ? ((*lanes<uint32_t>(w.regs, i.c) >> l & 1) != 0 ? 0 : bytes)
                                                  : lanes<uint32_t>(w.regs, i.c)[l];
    }
    if (source_bytes > bytes)
      throw make_fault("bad-copy", fmt::format("{}: cp.async of {} bytes with a source size of {}",
                                               machine::describe_lanes(w, LaneMask{1} << l), bytes, source_bytes));
    if (from % bytes != 0)
      throw make_fault("misaligned",
                       fmt::format("{}: the source {:#x} of a cp.async of {} bytes is not a multiple of {}",
                                   machine::describe_lanes(w, LaneMask{1} << l), from, bytes, bytes));
    const machine::Allocation* a = source_bytes == 0 ? nullptr : launch.memory->find(from, source_bytes);
    if (a == nullptr && source_bytes != 0) {
      throw make_fault("out-of-bounds", fmt::format("{}: cp.async reads {} bytes at global address {:#x}, {}",
                                                    machine::describe_lanes(w, LaneMask{1} << l), source_bytes, from,
                                                    launch.memory->describe(from)));
    }
    LaneCopy c{};
    c.info.kind = AsyncOpInfo::Kind::CpAsync;
    c.info.id = launch.next_async_id++;
    c.info.warp = &w;
    c.info.inst = &i;
    c.info.lane = l;
    c.info.source_region = machine::Region::Global;
    c.info.destination_region = machine::Region::Shared;
    c.info.source = from;
    c.info.destination = to.offset;
    c.info.destination_owner = to.owner;
    c.info.bytes = bytes;
    c.destination = to.owner->shared(to.offset);
    c.source = a == nullptr ? nullptr : a->host + (from - a->base);
    c.source_bytes = source_bytes;
    c.own = std::make_shared<Group>(Group{1, 1});
    ThreadGroups& g = state(*w.cta).of(w, l);
    if (!g.open_copy) g.open_copy = std::make_shared<Group>();
    g.open_copy->unread++;
    g.open_copy->unwritten++;
    c.group = g.open_copy;
    g.copies.push_back(c.own);
    g.last_copy = c.info.id;
    state(*to.owner).in_flight.push_back({c.info.id, &i, false, true, bytes});
    if (hooks().hits_barrier(*to.owner, to.offset, bytes)) {
      launch.report(
          i, "barrier-overwritten",
          fmt::format("cp.async to `{}` runs over a live mbarrier", launch.program->describe_shared(to.offset)));
    }
    std::memset(c.destination, machine::kPoison, bytes);
    machine::touch_shared(*to.owner);
    if (machine::Observer* o = machine::watcher(launch); o != nullptr)
      o->async_op(c.info, AsyncOpInfo::Milestone::Issued);
    event->copies.push_back(std::move(c));
  });
  w.cta->domain->add_completion(std::move(event), w.time + timing_of(*w.cta->launch).cp_async_latency);
}

void notify(Warp& w, const Inst& i, LaneMask mask, GroupEvent::Kind kind, uint32_t allowed) {
  if (machine::Observer* o = machine::watcher(*w.cta->launch); o != nullptr) o->group({kind, &w, &i, mask, allowed});
}

void commit(Warp& w, const Inst& i, LaneMask mask) {
  machine::note_effect(w);
  for_lanes(mask, [&](int l) {
    ThreadGroups& g = state(*w.cta).of(w, l);
    g.copy.push_back(g.open_copy ? g.open_copy : std::make_shared<Group>());
    g.open_copy.reset();
  });
  notify(w, i, mask, GroupEvent::Kind::CpAsyncCommit, 0);
}

/// imm = groups that may stay pending; sub = wait_all (uncommitted ones too).
void wait(Warp& w, const Inst& i, LaneMask mask) {
  bool all = true;
  for_lanes(mask, [&](int l) {
    ThreadGroups& g = state(*w.cta).of(w, l);
    while (!g.copy.empty() && g.copy.front()->unwritten == 0) g.copy.pop_front();
    for (size_t k = 0; k + i.imm < g.copy.size(); k++) all = all && g.copy[k]->unwritten == 0;
    if (i.sub != 0) all = all && g.copies.empty();
  });
  if (!all) {
    machine::block_and_retry(w, {{WaitTarget::Kind::Async, w.cta, 0, 0, mask, false}});
    return;
  }
  machine::note_effect(w);
  notify(w, i, mask, GroupEvent::Kind::CpAsyncWait, static_cast<uint32_t>(i.imm));
}

/// a = barrier; sub bit 2 = noinc.
void mbarrier_arrive(Warp& w, const Inst& i, LaneMask mask) {
  machine::note_effect(w);
  notify(w, i, mask, GroupEvent::Kind::CpAsyncMbarrierArrive, 0);  // before the arrive itself, which may come at once
  for_lanes(mask, [&](int l) {
    const machine::MemoryOperand m{i.a, i.offset, ptx::Space::Shared, (i.sub & kDstWide) != 0};
    const SharedPlace p = shared_place(w, l, address_of(w, m, l),
                                       i.width != 0 ? SharedWindow::Generic : SharedWindow::Cta, 8, 8, "mbarrier");
    Mbarrier& b = live_barrier(*p.owner, p.offset, "cp.async.mbarrier.arrive");
    if ((i.sub & kIgnoreSource) == 0) {  // without .noinc the pending count grows by one now
      if (b.pending >= kMaxCount)
        throw make_fault("arrival-count-mismatch",
                         fmt::format("cp.async.mbarrier.arrive takes the pending count of `{}` past {}",
                                     barrier_name(*p.owner, p.offset), kMaxCount));
      b.pending++;
    }
    ThreadGroups& g = state(*w.cta).of(w, l);
    g.arrives.push_back({g.copies, p.owner, p.offset, &i, g.last_copy});
    settle_arrives(g);
  });
}

std::string decode_copy(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  if (s.operands[2].kind != ptx::Operand::Kind::Integer) return "the size must be a constant";
  const uint64_t bytes = s.operands[2].bits;
  if (bytes != 4 && bytes != 8 && bytes != 16) return fmt::format("the size must be 4, 8 or 16, got {}", bytes);
  const machine::MemoryOperand to = c.address(s.operands[0], ptx::Space::Shared),
                               from = c.address(s.operands[1], ptx::Space::Global);
  inst->fn = issue;
  inst->ends_slice = 1;
  inst->a = to.slot;
  inst->b = from.slot;
  inst->imm = static_cast<uint64_t>(static_cast<uint32_t>(to.offset)) |
              static_cast<uint64_t>(static_cast<uint32_t>(from.offset)) << 32;
  inst->width = static_cast<uint8_t>(bytes);
  inst->sub = static_cast<uint8_t>((to.wide ? kDstWide : 0) | (from.wide ? kSrcWide : 0));
  const size_t extra = s.operands.size() - (r.has("L2::cache_hint") ? 1 : 0);
  if (extra > 3) {
    const bool predicate = c.width(s.operands[3], Type::U32) == 0;
    inst->c = c.source(s.operands[3], predicate ? Type::Pred : Type::U32);
    if (predicate) inst->sub |= kIgnoreSource;
  }
  inst->cost = c.timing().global_store;
  return {};
}
std::string decode_commit(DecodeContext&, const ptx::Resolved&, const ptx::Statement&, Inst* inst) {
  inst->fn = commit;
  return {};
}
std::string decode_wait(DecodeContext&, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  inst->fn = wait;
  inst->ends_slice = 1;
  if (r.spec->op == ptx::Op::CpAsyncWaitAll) {
    inst->sub = 1;
  } else if (s.operands[0].kind == ptx::Operand::Kind::Integer) {
    inst->imm = s.operands[0].bits;
  } else {
    return "the number of groups must be a constant";
  }
  return {};
}
std::string decode_mbarrier_arrive(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  inst->fn = mbarrier_arrive;
  const machine::MemoryOperand m = c.address(s.operands[0], r.space(0));
  inst->a = m.slot;
  inst->offset = m.offset;
  inst->sub = static_cast<uint8_t>((m.wide ? kDstWide : 0) | (r.has("noinc") ? kIgnoreSource : 0));
  inst->width = m.space == ptx::Space::Generic ? 1 : 0;
  inst->cost = c.timing().mbarrier_op;
  return {};
}

}  // namespace

void register_cp_async_decoders(machine::DecoderTable& table) {
  using ptx::Op;
  table[Op::CpAsync] = decode_copy;
  table[Op::CpAsyncCommitGroup] = decode_commit;
  table[Op::CpAsyncWaitGroup] = decode_wait;
  table[Op::CpAsyncWaitAll] = decode_wait;
  table[Op::CpAsyncMbarrierArrive] = decode_mbarrier_arrive;
}

}  // namespace handoff::async
