// Tested by bulk_copy_test.cc and tensor_copy_test.cc.
//
// An operation passes milestones: issued, source read, destination written, signalled. Each is an event in the domain's
// queue, so the schedule decides when it happens. At issue a shared destination is filled with poison: until the bytes
// are written, whoever reads them gets NaN. Global destinations and those of reductions keep their contents. On random
// schedules a load is delivered in up to four pieces, each with its own complete_tx, which the ISA allows.
//
// The copy engine of an SM moves kTmaBytesPerCycle; transfers queue behind each other, latencies overlap
// (machine/timing.h).
#include "grader/emulator/async/copy_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "grader/emulator/machine/fault.h"

namespace handoff::async {
namespace {

namespace timing = machine::timing;
using machine::AsyncOpInfo;
using machine::Domain;
using machine::lanes;
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
      std::memset(owner.shared(offset), machine::kPoison, info.shared_bytes);
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

void start(Warp& w, const Inst& inst, int lane, std::shared_ptr<Copy> copy) {
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

  Domain& d = *w.cta->domain;
  const bool store = info.destination_region == machine::Region::Global;
  const uint64_t begin = std::max(w.time, d.copy_engine_free);
  const uint64_t duration = std::max<uint64_t>(1, info.bytes / timing::kTmaBytesPerCycle);
  d.copy_engine_free = begin + duration;
  auto read = std::make_unique<SourceReadEvent>();
  read->copy = std::move(copy);
  read->written_time = begin + duration + timing::kTmaLatency;
  d.add_completion(std::move(read), begin + duration + (store ? timing::kTmaStoreRead : timing::kTmaLatency / 2));
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
