// Tested by bulk_copy_test.cc and tensor_copy_test.cc.
//
// An operation passes milestones: issued, source read, destination written, signalled. Each is an event in the domain's
// queue, so the schedule decides when it happens. At issue a shared destination is filled with poison: until the bytes
// are written, whoever reads them gets NaN. Global destinations and those of reductions keep their contents. On random
// schedules a load is delivered in up to four pieces, each with its own complete_tx, which the ISA allows.
//
// A multicast load is read once and delivered to several CTAs: to the same offset in each, and each one's mbarrier at
// the same offset is told the bytes that were written there. From then on these are separate operations: the ISA orders
// them no more than two copies, and observers see them so.
//
// The copy engine of an SM moves so many bytes a cycle. Loads queue behind loads, and loads and stores share one way
// between the SM and L2, on which a byte that goes out takes four times as long as one that comes in, and a load goes
// ahead of stores that wait. Latencies overlap (machine/timing.h).
#include "grader/emulator/async/copy_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "grader/emulator/machine/fault.h"

namespace handoff::async {
namespace {

using machine::AsyncOpInfo;
using machine::Domain;
using machine::lanes;
using machine::make_fault;
using machine::WaitTarget;

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

/// Destination written and, for loads, signalled: one event for each piece.
struct WrittenEvent : machine::Event {
  std::shared_ptr<Copy> copy;
  uint32_t from = 0, bytes = 0;
  void fire(Domain& domain) override {
    Copy& c = *copy;
    if (bytes != 0) {
      c.write(from, bytes);
      if (c.info.destination_owner != nullptr) {
        machine::touch_shared(*c.info.destination_owner);
      } else {
        machine::touch_global(*c.domain->launch);
      }
    }
    const bool last = --c.pieces_left == 0;
    if (last) {
      state(*c.info.warp->cta).spare_staging.push_back(std::move(c.staging));
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
    auto& spare = state(*c.info.warp->cta).spare_staging;
    if (!spare.empty()) {
      c.staging = std::move(spare.back());
      spare.pop_back();
    }
    c.read();
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

/// Enters the copy in the lists of the CTAs whose shared memory it touches, and poisons what it will write.
void enter(Copy& c) {
  AsyncOpInfo& info = c.info;
  machine::Launch& launch = *c.domain->launch;
  if (info.destination_owner != nullptr) {
    Cta& owner = *info.destination_owner;
    const auto offset = static_cast<uint32_t>(info.destination);
    if (hooks().hits_barrier(owner, offset, info.shared_bytes)) {
      launch.report(*info.inst, "barrier-overwritten",
                    fmt::format("{} of {} bytes to `{}` runs over a live mbarrier", c.noun, info.bytes,
                                launch.program->describe_shared(offset)));
    }
    state(owner).in_flight.push_back({info.id, info.inst, false, true, info.bytes});
    if (!c.reduces) {
      c.poison();
      machine::touch_shared(owner);
    }
  }
  if (info.source_owner != nullptr) {
    const auto offset = static_cast<uint32_t>(info.source);
    if (hooks().hits_barrier(*info.source_owner, offset, info.shared_bytes)) {
      launch.report(*info.inst, "barrier-overwritten",
                    fmt::format("{} of {} bytes from `{}` reads a live mbarrier", c.noun, info.bytes,
                                launch.program->describe_shared(offset)));
    }
    if (InFlight* f = entry(*info.source_owner, info.id); f != nullptr) {
      f->reads_shared = true;
    } else {
      state(*info.source_owner).in_flight.push_back({info.id, info.inst, true, false, info.bytes});
    }
  }
}

}  // namespace

std::vector<Delivery> deliveries(Warp& w, int lane, const LoadForm& form, const SharedPlace& destination,
                                 const SharedPlace& barrier, const char* noun) {
  const auto who = [&] { return machine::describe_lanes(w, LaneMask{1} << lane); };  // for messages
  const auto& ctas = w.cta->domain->ctas;
  const auto signals = [&](const Delivery& d) {
    if (state(*d.barrier).find(barrier.offset) == nullptr)
      live_barrier(*d.barrier, barrier.offset, fmt::format("{} that signals", noun).c_str());  // a fault
    return d;
  };
  if (!form.multicast) {
    const uint32_t to = destination.owner->rank, told = barrier.owner->rank;
    if (form.signals == LoadForm::Signals::Own && to != told) {
      throw make_fault("bad-copy",
                       fmt::format("{}: {} into the CTA of rank {} names an mbarrier of the CTA of rank {}: without "
                                   ".cta_group::2 both lie in one CTA",
                                   who(), noun, to, told),
                       "mapa the mbarrier's address to the CTA that receives the data.");
    }
    if (form.signals == LoadForm::Signals::Pair && to / 2 != told / 2) {
      throw make_fault("bad-copy",
                       fmt::format("{}: {} into the CTA of rank {} names an mbarrier of the CTA of rank {}: with "
                                   ".cta_group::2 it lies in the destination's CTA or in that of rank {}",
                                   who(), noun, to, told, to ^ 1));
    }
    return {signals({destination.owner, barrier.owner})};
  }
  if (form.mask == 0)
    throw make_fault("bad-copy", fmt::format("{}: the mask of this multicast is 0: it names no CTA", who()));
  std::vector<Delivery> all;
  for (uint32_t mask = form.mask; mask != 0; mask &= mask - 1) {
    const auto rank = static_cast<uint32_t>(__builtin_ctz(mask));
    // With pairs the signal goes to the member of the destination's own pair that the mbarrier operand stands for.
    const bool pair = form.signals == LoadForm::Signals::Pair;
    const uint32_t told = pair ? (rank & ~1u) | (barrier.owner->rank & 1) : rank;
    if (rank >= ctas.size()) {
      throw make_fault("bad-copy",
                       fmt::format("{}: bit {} of the multicast mask {:#x} is set, but the cluster has {} CTA{}", who(),
                                   rank, form.mask, ctas.size(), ctas.size() == 1 ? "" : "s"),
                       "Bit r of the mask names the CTA of rank r in the cluster.");
    }
    if (told >= ctas.size()) {
      throw make_fault("bad-copy",
                       fmt::format("{}: {} with .cta_group::2 signals the CTA of rank {}, but the cluster has {} CTAs",
                                   who(), noun, told, ctas.size()));
    }
    for (const uint32_t r : {rank, told}) {
      if (!ctas[r]->done) continue;
      throw make_fault("remote-cta-gone",
                       fmt::format("{}: {} is delivered to the CTA of rank {}, which has ended", who(), noun, r),
                       "A CTA that receives a multicast must not end before it has seen it complete.");
    }
    all.push_back(signals({ctas[rank].get(), ctas[told].get()}));
  }
  return all;
}

void start_at(Warp& w, const Inst& inst, int lane, std::shared_ptr<Copy> copy, uint64_t read_at, uint64_t written_at) {
  Copy& c = *copy;
  AsyncOpInfo& info = c.info;
  c.domain = w.cta->domain;
  info.id = w.cta->launch->next_async_id++;
  info.warp = &w;
  info.inst = &inst;
  info.lane = lane;
  enter(c);
  if (info.mbarrier_owner == nullptr) {
    ThreadGroups& groups = state(*w.cta).of(w, lane);
    if (!groups.open_bulk) groups.open_bulk = std::make_shared<Group>();
    groups.open_bulk->unread++;
    groups.open_bulk->unwritten++;
    c.group = groups.open_bulk;
  }
  notify(c, AsyncOpInfo::Milestone::Issued);

  auto read = std::make_unique<SourceReadEvent>();
  read->copy = std::move(copy);
  read->written_time = written_at;
  w.cta->domain->add_completion(std::move(read), read_at);
}

void start(Warp& w, const Inst& inst, int lane, const std::vector<std::shared_ptr<Copy>>& copies) {
  const machine::TimingModel& timing = timing_of(*w.cta->launch);
  const AsyncOpInfo& info = copies.front()->info;
  const bool load = info.source_region == machine::Region::Global;
  const bool store = info.destination_region == machine::Region::Global;  // else a load, or from CTA to CTA
  const uint64_t rate = load    ? timing.tma_bytes_per_cycle
                        : store ? timing.tma_store_bytes_per_cycle
                                : timing.tma_cluster_bytes_per_cycle;
  const uint64_t latency = load ? timing.tma_latency : store ? timing.tma_store_latency : timing.tma_cluster_latency;
  const uint64_t more = store && copies.front()->reduces ? timing.tma_reduce : 0;
  Cta& cta = *w.cta;
  const uint64_t begin = std::max(w.time, load ? cta.load_engine_free : cta.copy_port_free);
  const uint64_t ready = begin + std::max<uint64_t>(1, info.bytes / rate);
  AsyncOpInfo& work = copies.front()->info;
  work.busy_from = begin;
  work.busy_until = ready;
  work.port_cycles = load ? info.bytes / timing.tma_port_bytes_per_cycle : ready - begin;
  cta.copy_port_free = std::max(begin, cta.copy_port_free) + work.port_cycles;
  if (load) cta.load_engine_free = ready;
  const uint64_t read_at = ready + (store ? timing.tma_store_read : latency / 2) + more;
  for (const std::shared_ptr<Copy>& copy : copies) start_at(w, inst, lane, copy, read_at, ready + latency + more);
}

bool pool_address(const machine::MemoryOperand& m, std::vector<uint32_t>& pool, uint32_t at) {
  pool[at] = m.slot;
  pool[at + 1] = m.wide ? 1 : 0;
  pool[at + 2] = static_cast<uint32_t>(m.offset);
  return m.offset == static_cast<int32_t>(m.offset);
}

uint64_t pooled_address(const Warp& w, const uint32_t* entries, int lane) {
  const uint64_t base =
      entries[1] != 0 ? lanes<uint64_t>(w.regs, entries[0])[lane] : lanes<uint32_t>(w.regs, entries[0])[lane];
  return base + static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(entries[2])));
}

}  // namespace handoff::async
