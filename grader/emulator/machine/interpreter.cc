// Tested by interpreter_test.cc and grader/emulator/emulator_test.cc.
//
// The interpreter executes warps. A warp's live lanes form fragments: lanes with the same call stack and the same PC.
// Usually there is one. A branch that lanes take differently makes two; when a fragment arrives at another's place they
// become one again. The ready fragment with the lowest PC runs first, which is where reconvergence lies in the code
// that nvcc lays out; a turn counter keeps a fragment that loops from starving the others (Volta's independent thread
// scheduling promises progress, nothing more).
//
// Parking. An instruction with .sync names its lanes in a mask, one with .aligned means every live lane of the warp. A
// fragment that arrives there without all of them is parked until the rest comes. Lanes that have exited are not waited
// for (PTX: "all non-exited threads"). bar.warp.sync joins lanes at different PCs as well, as the ISA allows.
//
// Spinning. At a taken backward branch the fragment compares itself with its last visit: no side effect in between, and
// the registers that the loop carries unchanged. Then the next iteration can only differ if memory that it reads
// changes, so the fragment sleeps until the epoch of shared or global memory moves, or, if the loop read a clock or
// slept, for a growing stretch of virtual time. The comparison starts after eight such iterations and backs off, so
// ordinary loops pay two integer compares.
//
// A try_wait whose phase is not complete answers false at once the first time, so that code without a retry loop is
// seen to go on; a second try at the same place without a side effect in between sleeps until the barrier changes
// (async/mbarrier.cc).
//
// What this file does not do: order warps (launch.cc), or know any instruction beyond `bra`.
#include "grader/emulator/machine/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "grader/emulator/machine/control_ops.h"
#include "grader/emulator/machine/fault.h"
#include "grader/emulator/machine/timing.h"

namespace handoff::machine {
namespace {

constexpr uint32_t kFirstSpinCheck = 8;      // iterations without effect before the first comparison
constexpr uint32_t kMaxSpinSleep = 1 << 20;  // cycles
constexpr uint32_t kFairTurn = 4096;         // instructions before another ready fragment of the warp gets a turn

/// Lanes that must be present at a collective instruction, or 0 if it asks for none.
LaneMask required_lanes(const Warp& w, const Inst& i, LaneMask executing) {
  if (i.sync == kSyncAligned) return w.live;
  LaneMask named = 0;
  if (i.sync == kSyncMask) for_lanes(executing, [&](int l) { named |= lanes<uint32_t>(w.regs, i.x)[l]; });
  return named & w.live;
}

/// Which of the executing lanes can execute the collective `i` now. Lanes may name different members (tiles of
/// cooperative groups do): then one set at a time goes. 0: some member of every set is missing.
LaneMask complete_set(const Warp& w, const Inst& i, LaneMask executing) {
  if (i.sync == kSyncAligned) return (w.live & ~executing) == 0 ? executing : 0;
  const auto* member = lanes<uint32_t>(w.regs, i.x);
  for (LaneMask rest = executing; rest != 0;) {
    const uint32_t named = member[__builtin_ctz(rest)];
    LaneMask same = 0;
    for_lanes(rest, [&](int l) { same |= member[l] == named ? LaneMask{1} << l : 0; });
    if ((named & w.live & ~same) == 0) return same;
    rest &= ~same;
  }
  return 0;
}

void merge_into(Fragment& into, const Fragment& from) {
  into.mask |= from.mask;
  into.effects = std::max(into.effects, from.effects) + 1;  // a merge ends any spinning
}

/// Joins the fragment at `index` with others at the same place; returns the index of the joined one.
[[gnu::always_inline]] inline uint32_t merge_at(Warp& w, uint32_t index) {
  for (uint32_t o = 0; o < w.fragments.size(); o++) {
    if (o == index) continue;
    Fragment& a = w.fragments[index];
    Fragment& b = w.fragments[o];
    if (a.pc != b.pc || a.stack != b.stack || a.resumed != b.resumed) continue;
    if (b.state != Fragment::State::Ready && b.state != Fragment::State::Parked) continue;
    merge_into(a, b);
    w.fragments.erase(w.fragments.begin() + o);
    if (o < index) index--;
    o = ~0u;  // start again: indices moved
  }
  return index;
}

/// Picks the ready fragment that runs next, or -1.
[[gnu::always_inline]] inline int pick(Warp& w) {
  int best = -1;
  for (uint32_t f = 0; f < w.fragments.size(); f++) {
    const Fragment& x = w.fragments[f];
    if (x.state != Fragment::State::Ready || x.wake_time > w.time) continue;
    if (best < 0 || x.pc < w.fragments[static_cast<uint32_t>(best)].pc) best = static_cast<int>(f);
  }
  if (best < 0 || w.turn < kFairTurn) return best;
  // Somebody has had a long turn: the next ready one after `current` goes first.
  w.turn = 0;
  const auto n = static_cast<uint32_t>(w.fragments.size());
  for (uint32_t k = 1; k <= n; k++) {
    const uint32_t f = (w.current + k) % n;
    const Fragment& x = w.fragments[f];
    if (x.state == Fragment::State::Ready && x.wake_time <= w.time) return static_cast<int>(f);
  }
  return best;
}

/// Splits lanes off the running fragment; they go on at `pc`.
void split(Warp& w, LaneMask lanes_off, uint32_t pc) {
  Fragment& f = w.fragment();
  Fragment g;
  g.pc = pc;
  g.mask = lanes_off;
  g.stack = f.stack;
  g.effects = f.effects;
  f.mask &= ~lanes_off;
  w.fragments.push_back(std::move(g));
}

bool same_snapshot(const Warp& w, const LoopInfo& loop, LaneMask mask, std::vector<std::byte>& snapshot) {
  size_t need = 0;
  for (const CarriedSlot& s : loop.carried) need += s.width == 0 ? 4 : s.width * size_t{kWarpSize};
  bool same = snapshot.size() == need;
  snapshot.resize(need);
  std::byte* at = snapshot.data();
  for (const CarriedSlot& s : loop.carried) {
    const std::byte* now = w.regs + s.offset;
    if (s.width == 0) {
      uint32_t p;
      std::memcpy(&p, now, 4);
      p &= mask;
      same = same && std::memcmp(at, &p, 4) == 0;
      std::memcpy(at, &p, 4);
      at += 4;
      continue;
    }
    for_lanes(mask, [&](int l) {
      const size_t o = static_cast<size_t>(l) * s.width;
      same = same && std::memcmp(at + o, now + o, s.width) == 0;
      std::memcpy(at + o, now + o, s.width);
    });
    at += s.width * size_t{kWarpSize};
  }
  return same;
}

/// A backward branch was taken. Returns true if the fragment was put to sleep.
bool check_spin(Warp& w, uint32_t branch_pc) {
  Fragment& f = w.fragment();
  if (f.spin_branch != branch_pc || f.spin_effects != f.effects) {
    f.spin_branch = branch_pc;
    f.spin_effects = f.effects;
    f.spin_count = 0;
    f.spin_next_check = kFirstSpinCheck;
    f.spin_sleep = 0;
    f.spin_snapshot.clear();
    f.read_clock = false;
    return false;
  }
  if (++f.spin_count < f.spin_next_check) return false;
  const auto loop = w.cta->launch->program->loops.find(branch_pc);
  if (loop == w.cta->launch->program->loops.end()) return false;
  const bool first = f.spin_snapshot.empty() && !loop->second.carried.empty();
  const bool same = same_snapshot(w, loop->second, f.mask, f.spin_snapshot);
  if (first) {
    f.spin_next_check = f.spin_count + 1;
    f.seen_shared_epoch = shared_epoch(*w.cta->domain);
    f.seen_global_epoch = w.cta->launch->global_epoch;
    f.read_clock = false;
    return false;
  }
  if (!same) {
    // It carries something from iteration to iteration: ordinary work. Look again later.
    f.spin_snapshot.clear();
    f.spin_next_check = f.spin_count + std::min<uint32_t>(f.spin_count, 1024);
    return false;
  }
  const bool moved =
      f.seen_shared_epoch != shared_epoch(*w.cta->domain) || f.seen_global_epoch != w.cta->launch->global_epoch;
  f.seen_shared_epoch = shared_epoch(*w.cta->domain);
  f.seen_global_epoch = w.cta->launch->global_epoch;
  f.spin_next_check = f.spin_count + 1;
  if (moved) return false;
  if (f.read_clock) {
    f.read_clock = false;
    f.spin_sleep = std::min(kMaxSpinSleep, std::max<uint32_t>(64, f.spin_sleep * 2));
    f.state = Fragment::State::Sleeping;
    f.wake_time = w.time + f.spin_sleep;
  } else {
    f.state = Fragment::State::Spinning;
  }
  return true;
}

}  // namespace

std::byte* Warp::local_of(int lane) {
  const uint32_t bytes = cta->launch->program->local_bytes;
  if (local.empty()) local.assign(size_t{bytes} * kWarpSize, static_cast<std::byte>(kPoison));
  return local.data() + size_t{bytes} * static_cast<size_t>(lane);
}

void refresh(Warp& w) {
  uint64_t t = kNever;
  for (const Fragment& f : w.fragments) {
    if (f.state == Fragment::State::Ready || f.state == Fragment::State::Sleeping) t = std::min(t, f.wake_time);
  }
  w.ready_time = t == kNever ? kNever : std::max(t, w.time);
}

void block_and_continue(Warp& w, std::vector<WaitTarget> waits) {
  Fragment& f = w.fragment();
  f.state = Fragment::State::Blocked;
  f.waits = std::move(waits);
  f.wait_pc = f.pc;
  w.reschedule = true;
}

void block_and_retry(Warp& w, std::vector<WaitTarget> waits) {
  block_and_continue(w, std::move(waits));
  Fragment& f = w.fragment();
  f.resumed = true;
  w.next_pc = f.pc;
}

void wake(Domain& domain, WaitTarget::Kind kind, Cta* owner, uint32_t offset, uint64_t when) {
  for (auto& cta : domain.ctas) {
    for (Warp& w : cta->warps) {
      bool any = false;
      for (Fragment& f : w.fragments) {
        if (f.state != Fragment::State::Blocked) continue;
        for (const WaitTarget& t : f.waits) {
          if (t.kind != kind || t.owner != owner || t.offset != offset) continue;
          f.state = Fragment::State::Ready;
          f.wake_time = std::max(when, w.time);
          any = true;
          break;
        }
      }
      if (!any) continue;
      refresh(w);
      if (domain.launch->running != nullptr) domain.launch->running->end_slice = true;
    }
  }
}

void exit_lanes(Warp& w, LaneMask mask) {
  Fragment& f = w.fragment();
  f.mask &= ~mask;
  w.live &= ~mask;
  w.cta->live_threads -= static_cast<uint32_t>(__builtin_popcount(mask));
  w.reschedule = true;
}

namespace {

/// run_slice() with the handlers `kHandler`: a question asked once, not at each instruction.
template <Handler Inst::*kHandler>
uint64_t slice(Warp& w, uint64_t until, uint32_t limit) {
  Launch& launch = *w.cta->launch;
  const Inst* code = launch.program->code.data();
  const uint64_t before = launch.warp_instructions;
  uint64_t lane_count = 0;
  uint32_t left = limit;

  for (Fragment& f : w.fragments) {
    if (f.state == Fragment::State::Sleeping && f.wake_time <= w.time) f.state = Fragment::State::Ready;
  }
  w.end_slice = false;
  while (left > 0) {
    const int chosen = pick(w);
    if (chosen < 0) break;
    w.current = merge_at(w, static_cast<uint32_t>(chosen));
    w.reschedule = false;
    uint32_t pc = w.fragment().pc;
    const LaneMask active = w.fragment().mask;
    // Where another fragment stands, this one may join it, so it stops there.
    uint32_t meet = ~0u;
    for (uint32_t f = 0; f < w.fragments.size(); f++) {
      if (f != w.current && w.fragments[f].pc > pc) meet = std::min(meet, w.fragments[f].pc);
    }
    // Mostly all: counting is a call of libgcc where the host need not have the instruction.
    const uint64_t lanes_active = active == kFullMask ? kWarpSize : static_cast<uint64_t>(__builtin_popcount(active));
    const uint32_t start_left = left;
    Fragment* running = &w.fragment();  // only instructions with ends_slice may move it

    for (;;) {
      const Inst& i = code[pc];
      LaneMask mask = active;
      if (i.guard != kNoOperand) {
        const LaneMask p = *lanes<uint32_t>(w.regs, i.guard);
        mask &= i.guard_negated != 0 ? ~p : p;
      }
      left--;
      w.time += i.cost;
      if (i.ends_slice == 0) {
        if (mask != 0) {
          running->pc = pc;
          (i.*kHandler)(w, i, mask);
        }
        pc++;
      } else if (mask == 0) {
        pc++;
      } else if (i.fn == branch && mask == active) {
        const bool backward = i.target <= pc;
        const uint32_t from = pc;
        pc = i.target;
        if (backward) {
          w.fragment().pc = pc;
          if (check_spin(w, from)) break;
          if (w.fragments.size() > 1) break;  // the others may be lower now
        } else if (pc > meet) {
          break;
        }
      } else {
        Fragment& f = w.fragment();
        f.pc = pc;
        if (i.fn == branch) {
          split(w, active & ~mask, pc + 1);
          w.fragment().pc = i.target;
          if (i.target <= pc) check_spin(w, pc);
          pc = w.fragment().pc;
          break;
        }
        if (mask != active) {
          split(w, active & ~mask, pc + 1);
          break;  // the same instruction again, now for the whole fragment
        }
        if (i.sync != kSyncNone) {
          const LaneMask together = complete_set(w, i, active);
          if (together == 0) {
            f.state = Fragment::State::Parked;
            break;
          }
          if (together != active) {
            split(w, active & ~together, pc);  // they execute the same instruction next
            mask = together;
            w.reschedule = true;
          }
          w.collectives.add(pc, mask);
        }
        w.next_pc = pc + 1;
        const uint32_t current_stack = w.fragment().stack;
        i.fn(w, i, mask);
        pc = w.next_pc;
        if (w.fragment().state == Fragment::State::Ready) w.fragment().resumed = false;
        if (w.reschedule || w.fragment().stack != current_stack) break;
        running = &w.fragment();
      }
      if (pc >= meet || left == 0 || w.time >= until || w.end_slice) break;
    }
    const uint32_t executed = start_left - left;
    launch.warp_instructions += executed;
    lane_count += executed * lanes_active;
    w.turn += executed;
    Fragment& f = w.fragment();
    f.pc = pc;
    if (f.mask == 0) {
      w.fragments.erase(w.fragments.begin() + w.current);
      w.current = 0;
      // A parked fragment may have waited for the lanes that are gone.
      for (Fragment& p : w.fragments) {
        if (p.state == Fragment::State::Parked) p.state = Fragment::State::Ready;
      }
    } else if (w.fragments.size() > 1) {
      if (f.state == Fragment::State::Parked) {
        for (Fragment& p : w.fragments) {
          if (&p != &f && p.state == Fragment::State::Parked && p.pc == f.pc && p.stack == f.stack)
            p.state = Fragment::State::Ready, f.state = Fragment::State::Ready;
        }
      } else if (f.state == Fragment::State::Ready && f.wake_time < w.time) {
        f.wake_time = w.time;
      }
    }
    if (w.time >= until || w.end_slice) break;
  }
  launch.lane_instructions += lane_count;
  refresh(w);
  return launch.warp_instructions - before;
}

}  // namespace

uint64_t run_slice(Warp& w, uint64_t until, uint32_t limit) {
  return watches_accesses(*w.cta->launch) ? slice<&Inst::watched_fn>(w, until, limit)
                                          : slice<&Inst::fn>(w, until, limit);
}

namespace {

/// A fragment that waits for other lanes of its warp at a collective instruction.
struct Waiting {
  uint32_t pc;       ///< of the instruction
  LaneMask missing;  ///< lanes that are not there; 0 if all are and disagree
};
std::optional<Waiting> waits_for_lanes(const Warp& w, const Fragment& f) {
  const Inst* code = w.cta->launch->program->code.data();
  if (f.state == Fragment::State::Parked) return Waiting{f.pc, required_lanes(w, code[f.pc], f.mask) & ~f.mask};
  if (!waits_for_warp_sync(f)) return {};
  LaneMask there = 0;
  for (const Fragment& o : w.fragments) {
    if (waits_for_warp_sync(o) && o.waits[0].offset == f.waits[0].offset) there |= o.mask;
  }
  return Waiting{f.wait_pc, f.waits[0].offset & w.live & ~there};
}

[[noreturn]] void throw_stuck(Warp& w, const Fragment& f, const Waiting& at) {
  const Launch& launch = *w.cta->launch;
  const Inst& i = launch.program->code[at.pc];
  const std::string where =
      fmt::format("{} wait at `{}`", describe_lanes(w, f.mask), launch.program->statement(i).text);
  Fault fault = make_fault("diverged-collective",
                           at.missing == 0 ? fmt::format("{}, but their member masks disagree", where)
                                           : fmt::format("{} for lanes {} of the same warp, which cannot get there",
                                                         where, lane_ranges(at.missing)));
  fault.diagnostic.place = launch.program->place(i);
  for (const Fragment& o : w.fragments) {
    if (&o == &f || (o.mask & at.missing) == 0) continue;
    fault.diagnostic.related.push_back(
        {launch.program->place(launch.program->code[o.pc]), fmt::format("lanes {} are here", lane_ranges(o.mask))});
  }
  throw fault;
}

}  // namespace

bool waits_for_warp_sync(const Fragment& f) {
  return f.state == Fragment::State::Blocked && !f.waits.empty() && f.waits[0].kind == WaitTarget::Kind::WarpSync;
}

void report_stuck_collective(Warp& w) {
  // Lanes at different collectives: the fewest are the likeliest to stand in a branch of their own; of as many, those
  // at the earlier one.
  const auto before = [](const Fragment& a, const Fragment& b) {
    const int x = __builtin_popcount(a.mask), y = __builtin_popcount(b.mask);
    return x != y ? x < y : a.pc < b.pc;
  };
  const Fragment* stuck = nullptr;
  for (const Fragment& f : w.fragments) {
    if (f.state == Fragment::State::Parked && (stuck == nullptr || before(f, *stuck))) stuck = &f;
  }
  if (stuck != nullptr) throw_stuck(w, *stuck, *waits_for_lanes(w, *stuck));
}

void report_passed_collective(Warp& w) {
  for (const Fragment& f : w.fragments) {
    const std::optional<Waiting> at = waits_for_lanes(w, f);
    if (!at || at->missing == 0) continue;
    const bool passed = std::all_of(w.fragments.begin(), w.fragments.end(), [&](const Fragment& o) {
      return (o.mask & at->missing) == 0 || (o.stack == f.stack && o.pc > at->pc);
    });
    if (passed && w.collectives.never(at->pc, at->missing)) throw_stuck(w, f, *at);
  }
}

std::string lane_ranges(LaneMask mask) {
  std::string s;
  for (int l = 0; l < kWarpSize; l++) {
    if ((mask >> l & 1) == 0) continue;
    int e = l;
    while (e + 1 < kWarpSize && (mask >> (e + 1) & 1) != 0) e++;
    if (!s.empty()) s += ',';
    s += e == l ? fmt::format("{}", l) : fmt::format("{}-{}", l, e);
    l = e;
  }
  return s;
}

std::string describe_lanes(const Warp& w, LaneMask mask) {
  std::string s;
  if (w.cta->launch->config.grid.volume() > 1) s = fmt::format("CTA {} ", w.cta->linear);
  s += fmt::format("warp {}", w.index);
  s += __builtin_popcount(mask) == 1 ? fmt::format(" lane {}", lane_ranges(mask))
                                     : fmt::format(" lanes {}", lane_ranges(mask));
  return s;
}

namespace {

/// Who has not arrived in this phase of barrier.cluster: "CTA 1 warp 1 lanes 0-31 and 2 more warps".
std::string missing_at_cluster_barrier(const Domain& d) {
  std::string first;
  uint32_t more = 0;
  for (const auto& cta : d.ctas) {
    for (const Warp& w : cta->warps) {
      const LaneMask missing = w.live & ~w.cluster_arrived;
      if (missing == 0) continue;
      if (first.empty()) {
        first = describe_lanes(w, missing);
      } else {
        more++;
      }
    }
  }
  return more == 0 ? first : fmt::format("{} and {} more warp{}", first, more, more == 1 ? "" : "s");
}

}  // namespace

Waiter waiter_of(const Warp& w, const Fragment& f) {
  const Launch& launch = *w.cta->launch;
  const bool tested = f.state == Fragment::State::Spinning && f.test_pc != ~0u;
  const Inst& i = launch.program->code[f.state == Fragment::State::Blocked ? f.wait_pc : tested ? f.test_pc : f.pc];
  const SourcePlace place = launch.program->place(i);
  std::string what;
  if (f.state == Fragment::State::Parked) {
    what = fmt::format("lanes {} of their warp", lane_ranges(required_lanes(w, i, f.mask) & ~f.mask));
  } else {
    for (const WaitTarget& t : f.targets()) {
      if (!what.empty()) what += " or ";
      what += t.kind == WaitTarget::Kind::Mbarrier && launch.async != nullptr && launch.async->describe_wait != nullptr
                  ? launch.async->describe_wait(t)
              : t.kind == WaitTarget::Kind::NamedBarrier ? fmt::format("barrier {}", t.offset)
              : t.kind == WaitTarget::Kind::TensorMemory
                  ? fmt::format("{} columns of tensor memory to become free", t.offset)
              : t.kind == WaitTarget::Kind::TensorPair
                  ? fmt::format("a warp of CTA {}, the other one of its pair, to execute tcgen05.{}.cta_group::2, too",
                                w.cta->domain->ctas[w.cta->rank ^ 1]->linear, t.offset == 0 ? "alloc" : "dealloc")
              : t.kind == WaitTarget::Kind::WarpSync
                  ? fmt::format("lanes {} of its warp", lane_ranges(t.offset & w.live & ~f.mask))
              : t.kind == WaitTarget::Kind::ClusterBarrier
                  ? fmt::format("{} at barrier.cluster", missing_at_cluster_barrier(*w.cta->domain))
                  : std::string("its copies");
    }
    if (what.empty()) what = "memory to change";
  }
  return {place, std::move(what)};
}

}  // namespace handoff::machine
