// Tested by mbarrier_test.cc.
//
// mbarrier objects (PTX §9.7.13.15). An object lives in a table of its CTA, keyed by its shared offset; the eight bytes
// in memory are opaque, as the ISA says. `phase` counts without bound, so that a parity that has wrapped can be told
// from one that has not.
//
// The completion rule is one atomic step after every change: when no arrival is pending and the tx-count is zero, the
// phase completes, and the next one expects `expected` arrivals. An arrive on a phase that expects no more is undefined
// in the ISA and a fault here.
//
// A state token is phase << 20 | pending before the arrive. Waits by token compare phases; waits by parity ask whether
// the phase of that parity, the current one or the one before, is complete: true exactly if the parity differs from the
// current phase's. A fresh barrier therefore answers true for parity 1, which producers of full/empty rings rely on.
//
// try_wait answers false at once the first time it meets an incomplete phase. Asked again at the same place with
// nothing done in between it sleeps until a phase of the barrier completes.
#include <fmt/format.h>

#include <algorithm>

#include "grader/emulator/async/async_state.h"
#include "grader/emulator/machine/fault.h"
#include "grader/emulator/machine/memory_access.h"
#include "grader/emulator/machine/timing.h"

namespace handoff::async {
namespace {

using machine::DecodeContext;
using machine::for_lanes;
using machine::Fragment;
using machine::kNoOperand;
using machine::lanes;
using machine::make_fault;
using machine::MbarrierEvent;
using machine::Scope;
using machine::Sem;
using machine::WaitTarget;
using ptx::Type;

// Inst::sub.
constexpr uint8_t kWide = 1, kGenericAddress = 2, kExpectTx = 4, kNoComplete = 8, kDrop = 16, kToken = 32, kTry = 64,
                  kWideOperand = 128;

/// Inst::imm: the instruction names .shared::cluster.
constexpr uint64_t kRemote = 1;

/// Sem and scope as packed into Inst::width by the decoder.
Sem sem_of(const Inst& i) { return static_cast<Sem>(i.width & 15); }
Scope scope_of(const Inst& i) { return static_cast<Scope>(i.width >> 4); }

SharedPlace place_of(Warp& w, const Inst& i, int lane) {
  const machine::MemoryOperand m{i.a, i.offset, ptx::Space::Shared, (i.sub & kWide) != 0};
  const SharedWindow window = (i.sub & kGenericAddress) != 0 ? SharedWindow::Generic
                              : i.imm == kRemote             ? SharedWindow::Cluster
                                                             : SharedWindow::Cta;
  return shared_place(w, lane, address_of(w, m, lane), window, 8, 8, "mbarrier");
}

/// As place_of(), for instructions whose address lies in .shared::cta even where it is generic (PTX §9.7.13.15.9, .10).
SharedPlace own_place_of(Warp& w, const Inst& i, int lane) {
  const SharedPlace p = place_of(w, i, lane);
  if (p.owner != w.cta) {
    machine::fault_shared_owner(w, p.owner->window | p.offset,
                                fmt::format("{}: mbarrier", machine::describe_lanes(w, LaneMask{1} << lane)));
  }
  return p;
}

void notify(MbarrierEvent::Kind kind, Warp* w, const Inst* i, LaneMask mask, Cta& owner, const Mbarrier& b,
            uint64_t phase, uint32_t count, int64_t bytes, Sem sem, Scope scope, uint64_t op = 0) {
  machine::Observer* o = machine::watcher(*owner.launch);
  if (o != nullptr)
    o->mbarrier({kind, w, i, mask, &owner, b.offset, phase, count, bytes, b.pending, b.tx, sem, scope, op});
}

/// The completion rule, applied at time `when`. Who is waiting goes on `wakeup` cycles later.
void check_completion(Cta& owner, Mbarrier& b, const Inst* i, uint64_t when, uint64_t wakeup) {
  if (b.pending != 0 || b.tx != 0) return;
  notify(MbarrierEvent::Kind::PhaseComplete, nullptr, i, 0, owner, b, b.phase, 0, 0, Sem::Weak, Scope::None);
  b.phase++;
  b.completed = when;
  b.pending = b.expected;
  b.announced = b.arrived = 0;
  owner.launch->progress_mark = owner.launch->warp_instructions;
  machine::wake(*owner.domain, WaitTarget::Kind::Mbarrier, &owner, b.offset, when + wakeup);
}

void add_tx(Cta& owner, Mbarrier& b, int64_t bytes, const char* what) {
  b.tx += bytes;
  if (b.tx > int64_t{kMaxCount} || b.tx < -int64_t{kMaxCount}) {
    throw make_fault("tx-bytes-mismatch", fmt::format("{} takes the tx-count of `{}` to {}, outside ±{}", what,
                                                      barrier_name(owner, b.offset), b.tx, kMaxCount));
  }
}

/// Takes `count` arrivals off the phase. `who()` names the arriving thread or hardware in messages. settle() must
/// follow.
template <class Who>
void take_arrivals(Cta& owner, Mbarrier& b, uint32_t count, bool no_complete, const Who& who) {
  if (count == 0 || count > b.pending) {
    throw make_fault(
        "arrival-count-mismatch",
        count == 0 ? fmt::format("{} arrives at `{}` with count 0", who(), barrier_name(owner, b.offset))
                   : fmt::format("{} arrives at `{}` with count {}, but phase {} misses only {} of its {} arrivals",
                                 who(), barrier_name(owner, b.offset), count, b.phase, b.pending, b.expected),
        b.pending != 0 ? ""
        : b.tx != 0    ? "All arrivals of this phase are in; it still waits for bytes."
                       : "Every participant has dropped out; no further phase is expected.");
  }
  b.pending -= count;
  if (no_complete && b.pending == 0 && b.tx == 0) {
    throw make_fault("arrival-count-mismatch", fmt::format("{}: an arrive.noComplete would complete phase {} of `{}`",
                                                           who(), b.phase, barrier_name(owner, b.offset)));
  }
}

/// Makes a change of `b` at time `when` seen: wakes pollers and applies the completion rule.
void settle(Cta& owner, Mbarrier& b, const Inst* i, uint64_t when, uint64_t wakeup) {
  machine::touch_shared(owner);
  check_completion(owner, b, i, when, wakeup);
}

/// complete_tx by the hardware (`w` is nullptr) or by a thread's own instruction.
void complete_bytes(Cta& owner, uint32_t offset, int64_t bytes, Warp* w, const Inst* inst, LaneMask mask, uint64_t op,
                    uint64_t when) {
  Mbarrier& b = live_barrier(owner, offset, "complete_tx");
  add_tx(owner, b, -bytes, "complete_tx");
  b.arrived += bytes;
  notify(MbarrierEvent::Kind::CompleteTx, w, inst, mask, owner, b, b.phase, 0, bytes,
         w != nullptr ? Sem::Relaxed : Sem::Release, w != nullptr ? scope_of(*inst) : Scope::Cluster, op);
  const machine::TimingModel& timing = timing_of(*owner.launch);
  settle(owner, b, inst, when, w != nullptr ? timing.mbarrier_wakeup : timing.mbarrier_wakeup_async);
}

uint32_t operand_u32(const Warp& w, uint32_t slot, int lane) { return lanes<uint32_t>(w.regs, slot)[lane]; }

void init(Warp& w, const Inst& i, LaneMask mask) {
  machine::note_effect(w);
  for_lanes(mask, [&](int l) {
    const SharedPlace p = own_place_of(w, i, l);
    const uint32_t count = operand_u32(w, i.b, l);
    if (count == 0 || count > kMaxCount) {
      throw make_fault("arrival-count-mismatch", fmt::format("{} initialises `{}` with count {}; a count is 1 to {}",
                                                             machine::describe_lanes(w, LaneMask{1} << l),
                                                             barrier_name(*p.owner, p.offset), count, kMaxCount));
    }
    State& s = state(*p.owner);
    Mbarrier* b = s.find(p.offset);
    if (b != nullptr) {
      w.cta->launch->report(
          i, "barrier-overwritten",
          fmt::format("{} initialises `{}` a second time; it was initialised at line {} and not invalidated",
                      machine::describe_threads(w, LaneMask{1} << l), barrier_name(*p.owner, p.offset),
                      w.cta->launch->program->place(*b->init).line),
          "One thread initialises a barrier, once.");
    } else {
      b = &s.barriers.emplace_back();
    }
    *b = Mbarrier{};
    b->offset = p.offset;
    b->expected = b->pending = count;
    b->init = &i;
    p.owner->guarded_lo = std::min(p.owner->guarded_lo, p.offset);
    p.owner->guarded_hi = std::max(p.owner->guarded_hi, p.offset + 8);
    machine::touch_shared(*p.owner);
    notify(MbarrierEvent::Kind::Init, &w, &i, LaneMask{1} << l, *p.owner, *b, 0, count, 0, Sem::Weak, Scope::None);
  });
}

void inval(Warp& w, const Inst& i, LaneMask mask) {
  machine::note_effect(w);
  for_lanes(mask, [&](int l) {
    const SharedPlace p = own_place_of(w, i, l);
    Mbarrier& b = live_barrier(*p.owner, p.offset, "mbarrier.inval");
    notify(MbarrierEvent::Kind::Inval, &w, &i, LaneMask{1} << l, *p.owner, b, b.phase, 0, 0, Sem::Weak, Scope::None);
    State& s = state(*p.owner);
    s.barriers.erase(s.barriers.begin() + (&b - s.barriers.data()));
    p.owner->guarded_lo = ~0u;
    p.owner->guarded_hi = 0;
    for (const Mbarrier& x : s.barriers) {
      p.owner->guarded_lo = std::min(p.owner->guarded_lo, x.offset);
      p.owner->guarded_hi = std::max(p.owner->guarded_hi, x.offset + 8);
    }
    machine::touch_shared(*p.owner);
  });
}

void expect_tx(Warp& w, const Inst& i, LaneMask mask) {
  machine::note_effect(w);
  for_lanes(mask, [&](int l) {
    const SharedPlace p = place_of(w, i, l);
    Mbarrier& b = live_barrier(*p.owner, p.offset, "mbarrier.expect_tx");
    const uint32_t bytes = operand_u32(w, i.b, l);
    add_tx(*p.owner, b, bytes, "expect_tx");
    if (b.pending == 0 && b.tx == 0 && bytes != 0) {
      // PTX gives expect_tx no completion step, so this phase could never end.
      throw make_fault(
          "tx-bytes-mismatch",
          fmt::format("{}: expect_tx comes after the last arrival of phase {} of `{}` and after its bytes; nothing can "
                      "complete the phase any more",
                      machine::describe_lanes(w, LaneMask{1} << l), b.phase, barrier_name(*p.owner, p.offset)),
          "expect_tx belongs before the last arrive of its phase, or into it: arrive.expect_tx.");
    }
    b.announced += bytes;
    b.last_expect = &i;
    machine::touch_shared(*p.owner);
    notify(MbarrierEvent::Kind::ExpectTx, &w, &i, LaneMask{1} << l, *p.owner, b, b.phase, 0, bytes, Sem::Relaxed,
           scope_of(i));
  });
}

void software_complete_tx(Warp& w, const Inst& i, LaneMask mask) {
  machine::note_effect(w);
  for_lanes(mask, [&](int l) {
    const SharedPlace p = place_of(w, i, l);
    complete_bytes(*p.owner, p.offset, operand_u32(w, i.b, l), &w, &i, LaneMask{1} << l, 0, w.time);
  });
}

/// arrive, arrive_drop, arrive.expect_tx: b = count or bytes (or none), d = token.
void arrive(Warp& w, const Inst& i, LaneMask mask) {
  machine::note_effect(w);
  const bool expects = (i.sub & kExpectTx) != 0;
  for_lanes(mask, [&](int l) {
    const SharedPlace p = place_of(w, i, l);
    Mbarrier& b = live_barrier(*p.owner, p.offset, "mbarrier.arrive");
    const uint32_t operand = i.b == kNoOperand ? 1 : operand_u32(w, i.b, l);
    const uint32_t count = expects ? 1 : operand;
    if (expects) {
      add_tx(*p.owner, b, operand, "arrive.expect_tx");
      b.announced += operand;
      b.last_expect = &i;
    }
    if (i.d != kNoOperand) lanes<uint64_t>(w.regs, i.d)[l] = b.phase << 20 | b.pending;
    const bool drop = (i.sub & kDrop) != 0;
    const auto who = [&] { return machine::describe_lanes(w, LaneMask{1} << l); };
    take_arrivals(*p.owner, b, count, (i.sub & kNoComplete) != 0, who);
    if (drop) {
      if (count > b.expected) {
        throw make_fault("arrival-count-mismatch",
                         fmt::format("{} drops {} arrivals of `{}`, which expects only {}", who(), count,
                                     barrier_name(*p.owner, p.offset), b.expected));
      }
      b.expected -= count;
    }
    notify(expects ? MbarrierEvent::Kind::ArriveExpectTx
           : drop  ? MbarrierEvent::Kind::ArriveDrop
                   : MbarrierEvent::Kind::Arrive,
           &w, &i, LaneMask{1} << l, *p.owner, b, b.phase, count, expects ? operand : 0, sem_of(i), scope_of(i));
    const machine::TimingModel& timing = timing_of(*w.cta->launch);
    const bool own = p.owner == w.cta;
    settle(*p.owner, b, &i, w.time + (own ? 0 : timing.remote_arrive),
           own ? timing.mbarrier_wakeup : timing.mbarrier_wakeup_async);
  });
}

void pending_count(Warp& w, const Inst& i, LaneMask mask) {
  for_lanes(mask, [&](int l) {
    lanes<uint32_t>(w.regs, i.d)[l] = static_cast<uint32_t>(lanes<uint64_t>(w.regs, i.a)[l] & kMaxCount);
  });
}

/// §9.7.13.15.16: phaseParity is 0 or 1. What other values do is not defined; here the lowest bit counts.
void report_parity(Warp& w, const Inst& i, int lane, uint64_t given) {
  w.cta->launch->report(
      i, "bad-parity",
      fmt::format("{} waits for parity {}; a parity is 0 or 1", machine::describe_lanes(w, LaneMask{1} << lane), given),
      "The parity of phase k is k & 1.");
}

/// test_wait and try_wait: d = predicate, b = token or parity.
void wait(Warp& w, const Inst& i, LaneMask mask) {
  const bool by_token = (i.sub & kToken) != 0, may_sleep = (i.sub & kTry) != 0;
  LaneMask yes = 0;
  uint64_t landed = 0;  // when what completed the phases was there
  std::vector<WaitTarget> waits;
  struct Seen {
    SharedPlace place;
    uint64_t phase;
    LaneMask mask;
    bool complete;
  };
  std::vector<Seen> seen;
  for_lanes(mask, [&](int l) {
    const SharedPlace p = place_of(w, i, l);
    if (p.owner != w.cta)
      throw make_fault("out-of-bounds", fmt::format("{} waits for a barrier of another CTA; waits are local",
                                                    machine::describe_lanes(w, LaneMask{1} << l)));
    const Mbarrier& b = live_barrier(*p.owner, p.offset, "mbarrier wait");
    // The phase asked for: the current one or the one before.
    uint64_t asked = 0;
    bool complete = false;
    if (by_token) {
      asked = lanes<uint64_t>(w.regs, i.b)[l] >> 20;
      complete = asked != b.phase;
    } else {
      const uint64_t given =
          (i.sub & kWideOperand) != 0 ? lanes<uint64_t>(w.regs, i.b)[l] : lanes<uint32_t>(w.regs, i.b)[l];
      if (given > 1) report_parity(w, i, l, given);
      const uint64_t parity = given & 1;
      complete = parity != (b.phase & 1);
      asked = complete ? b.phase - 1 : b.phase;  // phase −1 of a fresh barrier wraps, and keeps its parity
    }
    if (complete) {
      yes |= LaneMask{1} << l;
      landed = std::max(landed, b.completed);
    }
    auto same = std::find_if(seen.begin(), seen.end(), [&](const Seen& s) {
      return s.place.offset == p.offset && s.place.owner == p.owner && s.phase == asked;
    });
    if (same == seen.end()) same = seen.insert(seen.end(), {p, asked, 0, complete});
    same->mask |= LaneMask{1} << l;
  });
  for (const Seen& s : seen) {
    if (!s.complete)
      waits.push_back({WaitTarget::Kind::Mbarrier, s.place.owner, s.place.offset, s.phase, s.mask, !by_token});
  }
  Fragment& f = w.fragment();
  if (yes == 0) {
    f.last_test = waits;
    f.test_pc = f.pc;
    const bool again = f.false_pc == f.pc && f.false_effects == f.effects;
    if (may_sleep && (again || f.resumed)) {
      machine::block_and_retry(w, std::move(waits));
      return;
    }
    f.false_pc = f.pc;
    f.false_effects = f.effects;
    w.cta->domain->unanswered++;
  }
  auto& d = *lanes<uint32_t>(w.regs, i.d);
  d = (d & ~mask) | yes;
  if (yes != 0) {
    w.time = std::max(w.time, landed);  // an arrival from afar lands later than it is executed
    f.last_test.clear();
    f.test_pc = ~0u;
  }
  for (const Seen& s : seen) {
    const Mbarrier& b = *state(*s.place.owner).find(s.place.offset);
    notify(s.complete ? MbarrierEvent::Kind::TestTrue : MbarrierEvent::Kind::TestFalse, &w, &i, s.mask, *s.place.owner,
           b, s.phase, 0, 0, sem_of(i), scope_of(i));
  }
}

// --- decoders --------------------------------------------------------------------------------------------------------

uint8_t pack_sem(const ptx::Resolved& r, Sem standard) {
  const Sem sem = r.has("relaxed") ? Sem::Relaxed : standard;
  const Scope scope = machine::scope_of(r) == Scope::None ? Scope::Cta : machine::scope_of(r);
  return static_cast<uint8_t>(static_cast<uint8_t>(sem) | static_cast<uint8_t>(scope) << 4);
}

void set_address(DecodeContext& c, const ptx::Resolved& r, const ptx::Operand& o, Inst* inst) {
  const machine::MemoryOperand m = c.address(o, r.space(0));
  inst->a = m.slot;
  inst->offset = m.offset;
  if (m.wide) inst->sub |= kWide;
  // `[full]` by name is resolved to shared memory even where the opcode names no space.
  if (m.space == ptx::Space::Generic) inst->sub |= kGenericAddress;
  if (m.space == ptx::Space::SharedCluster) inst->imm = kRemote;
}

std::string decode_init(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  inst->fn = init;
  set_address(c, r, s.operands[0], inst);
  inst->b = c.source(s.operands[1], Type::U32);
  inst->cost = c.timing().mbarrier_op;
  return {};
}
std::string decode_inval(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  inst->fn = inval;
  set_address(c, r, s.operands[0], inst);
  inst->cost = c.timing().mbarrier_op;
  return {};
}
std::string decode_tx(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  inst->fn = r.spec->op == ptx::Op::MbarrierExpectTx ? expect_tx : software_complete_tx;
  set_address(c, r, s.operands[0], inst);
  inst->b = c.source(s.operands[1], Type::U32);
  inst->width = pack_sem(r, Sem::Relaxed);
  inst->cost = c.timing().mbarrier_expect_tx;
  return {};
}

std::string decode_arrive(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  // `arrive state, [a]{, count}` or, for a shared::cluster barrier, `arrive _, [a]` or `arrive [a]`.
  size_t at = 0;
  inst->fn = arrive;
  if (s.operands[0].kind != ptx::Operand::Kind::Address) {
    if (s.operands[0].kind != ptx::Operand::Kind::Sink) inst->d = c.destination(s.operands[0], 8);
    at = 1;
  }
  if (at >= s.operands.size()) return "expects an address";
  set_address(c, r, s.operands[at++], inst);
  if (at < s.operands.size()) inst->b = c.source(s.operands[at], Type::U32);
  if (r.has("expect_tx")) inst->sub |= kExpectTx;
  if (r.has("noComplete")) inst->sub |= kNoComplete;
  if (r.spec->op == ptx::Op::MbarrierArriveDrop) inst->sub |= kDrop;
  inst->width = pack_sem(r, Sem::Release);
  inst->cost = inst->d != kNoOperand          ? c.timing().mbarrier_state
               : (inst->sub & kExpectTx) != 0 ? c.timing().mbarrier_expect_tx
                                              : c.timing().mbarrier_arrive;
  if (sem_of(*inst) == Sem::Release && scope_of(*inst) != Scope::Cta) inst->cost += c.timing().fence_gpu;
  return {};
}

std::string decode_wait(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  inst->fn = wait;
  inst->ends_slice = 1;
  const ptx::Operand& d = s.operands[0].kind == ptx::Operand::Kind::Pair ? s.operands[0].elements[0] : s.operands[0];
  inst->d = c.destination(d, 0);
  set_address(c, r, s.operands[1], inst);
  if (r.has("parity")) {
    inst->b = c.source(s.operands[2], Type::U32);
    if (c.width(s.operands[2], Type::U32) == 8) inst->sub |= kWideOperand;
  } else {
    inst->sub |= kToken;
    inst->b = c.source(s.operands[2], Type::B64);
  }
  if (r.spec->op == ptx::Op::MbarrierTryWait) inst->sub |= kTry;
  inst->width = pack_sem(r, Sem::Acquire);
  inst->cost = (inst->sub & kTry) != 0 ? c.timing().mbarrier_try : c.timing().mbarrier_test;
  return {};
}

std::string decode_pending_count(DecodeContext& c, const ptx::Resolved&, const ptx::Statement& s, Inst* inst) {
  inst->fn = pending_count;
  inst->d = c.destination(s.operands[0], 4);
  inst->a = c.source(s.operands[1], Type::B64);
  return {};
}

}  // namespace

Mbarrier& live_barrier(Cta& owner, uint32_t offset, const char* what) {
  Mbarrier* b = state(owner).find(offset);
  if (b == nullptr) {
    throw make_fault("barrier-not-initialized",
                     fmt::format("{} on `{}`, where no mbarrier is initialised", what, barrier_name(owner, offset)),
                     "mbarrier.init by one thread, made visible by a barrier of the block, comes first.");
  }
  return *b;
}

void complete_tx(Cta& owner, uint32_t offset, int64_t bytes, const Inst* inst, uint64_t op) {
  complete_bytes(owner, offset, bytes, nullptr, inst, 0, op, owner.domain->now);
}

void arrive_async(Cta& owner, uint32_t offset, const Inst* inst, uint64_t op, const char* what) {
  Mbarrier& b = live_barrier(owner, offset, what);
  take_arrivals(owner, b, 1, false, [what] { return what; });
  notify(MbarrierEvent::Kind::CopyArrive, nullptr, inst, 0, owner, b, b.phase, 1, 0, Sem::Release, Scope::Cta, op);
  settle(owner, b, inst, owner.domain->now, timing_of(*owner.launch).mbarrier_wakeup_async);
}

void register_mbarrier_decoders(machine::DecoderTable& table) {
  using ptx::Op;
  table[Op::MbarrierInit] = decode_init;
  table[Op::MbarrierInval] = decode_inval;
  table[Op::MbarrierExpectTx] = decode_tx;
  table[Op::MbarrierCompleteTx] = decode_tx;
  table[Op::MbarrierArrive] = decode_arrive;
  table[Op::MbarrierArriveDrop] = decode_arrive;
  table[Op::MbarrierTestWait] = decode_wait;
  table[Op::MbarrierTryWait] = decode_wait;
  table[Op::MbarrierPendingCount] = decode_pending_count;
}

}  // namespace handoff::async
