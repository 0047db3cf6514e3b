// Tested by control_ops_test.cc.
//
// Control flow, barriers, warp-wide operations and fences (PTX §9.7.12, §9.7.13), and the device runtime's vprintf and
// __assertfail.
//
// Barriers. `bar` and `barrier` with an explicit thread count complete when that many threads have arrived; an .aligned
// one counts a warp as 32 threads, as the chip does. Without a count they complete when every thread of the CTA that
// has not exited has arrived. barrier.cluster counts every thread of the cluster that has not exited; each arrives once
// in a phase and waits before it arrives again.
#include "grader/emulator/machine/control_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "grader/emulator/machine/fault.h"
#include "grader/emulator/machine/interpreter.h"
#include "grader/emulator/machine/memory_access.h"
#include "grader/emulator/machine/timing.h"
#include "grader/emulator/machine/vprintf.h"
#include "grader/emulator/machine/warp.h"

namespace handoff::machine {
namespace {

using ptx::Operand;
using ptx::Type;

Observer* observer(Warp& w) { return watcher(*w.cta->launch); }

uint32_t first_lane_u32(const Warp& w, uint32_t slot, LaneMask mask) {
  return lanes<uint32_t>(w.regs, slot)[__builtin_ctz(mask)];
}

// --- named barriers --------------------------------------------------------------------------------------------------

constexpr uint8_t kBarSync = 0, kBarArrive = 1, kBarRedPopc = 2, kBarRedAnd = 3, kBarRedOr = 4;
constexpr uint8_t kAlignedBarrier = 1;

bool everybody_arrived(const Cta& cta, const NamedBarrier& b) {
  for (const Warp& w : cta.warps) {
    if ((w.live & ~b.arrived_lanes[w.index]) != 0) return false;
  }
  return true;
}

/// The result of barrier.red for lanes that waited at `i`.
void write_reduction(Warp& w, const Inst& i, LaneMask mask, const NamedBarrier& b) {
  if ((i.sub & 7) == kBarRedPopc) {
    for_lanes(mask, [&](int l) { lanes<uint32_t>(w.regs, i.d)[l] = b.reduction; });
  } else {
    const bool v = (i.sub & 7) == kBarRedAnd ? b.reduction_and != 0 : b.reduction != 0;
    auto& d = *lanes<uint32_t>(w.regs, i.d);
    d = (d & ~mask) | (v ? mask : 0);
  }
}

/// Completes barrier `id` if its arrivals are all there.
void check_barrier(Cta& cta, uint32_t id, uint64_t when) {
  const TimingModel& timing = timing_of(*cta.launch);
  NamedBarrier& b = cta.barriers[id];
  if (!b.in_use) return;
  const bool complete = b.expected == 0 ? everybody_arrived(cta, b) : b.arrived >= b.expected;
  if (!complete) return;
  cta.domain->now = std::max(cta.domain->now, when);
  if (Observer* o = watcher(*cta.launch); o != nullptr) {
    o->barrier({BarrierEvent::Kind::Complete, cta.warps.data(), nullptr, 0, id, b.generation});
  }
  // The results of barrier.red are written now: when the waiters run again, the next use of the barrier may have begun.
  for (Warp& w : cta.warps) {
    for (const Fragment& f : w.fragments) {
      if (f.state != Fragment::State::Blocked || f.waits.empty() || f.waits[0].kind != WaitTarget::Kind::NamedBarrier ||
          f.waits[0].offset != id)
        continue;
      const Inst& i = cta.launch->program->code[f.wait_pc];
      if ((i.sub & 7) >= kBarRedPopc) write_reduction(w, i, f.mask, b);
    }
  }
  const uint32_t warps = static_cast<uint32_t>(cta.warps.size());
  const uint32_t counting = b.expected == 0 ? 0 : timing.barrier_counted;
  const uint64_t generation = b.generation + 1;
  b = NamedBarrier{};
  b.generation = generation;
  cta.launch->progress_mark = cta.launch->warp_instructions;
  wake(*cta.domain, WaitTarget::Kind::NamedBarrier, &cta, id,
       when + timing.barrier_base + warps * timing.barrier_per_warp_x2 / 2 + counting);
}

/// bar.sync/arrive/red: a = barrier id, b = thread count (or none), c = predicate of a reduction.
void barrier(Warp& w, const Inst& i, LaneMask mask) {
  const uint8_t kind = i.sub & 7;
  Cta& cta = *w.cta;
  const uint32_t id = first_lane_u32(w, i.a, mask);
  if (id >= cta.barriers.size())
    throw make_fault("bad-barrier",
                     fmt::format("{} uses barrier {}; a CTA has barriers 0–15", describe_lanes(w, mask), id));
  const uint32_t count = i.b == kNoOperand ? 0 : first_lane_u32(w, i.b, mask);
  if (i.b != kNoOperand && (count == 0 || count % kWarpSize != 0)) {
    throw make_fault("bad-barrier",
                     fmt::format("{}: barrier {} is given a count of {} threads; it must be a positive multiple of 32",
                                 describe_lanes(w, mask), id, count));
  }
  NamedBarrier& b = cta.barriers[id];
  if (b.in_use && b.expected != count) {
    throw make_fault("bad-barrier",
                     fmt::format("{}: barrier {} is used with {} threads while others wait there with {}",
                                 describe_lanes(w, mask), id, count == 0 ? std::string("all") : std::to_string(count),
                                 b.expected == 0 ? std::string("all") : std::to_string(b.expected)));
  }
  if ((b.arrived_lanes[w.index] & mask) != 0 && b.in_use) {
    throw make_fault("arrival-count-mismatch",
                     fmt::format("{} arrives at barrier {} again before the others have completed it",
                                 describe_lanes(w, mask & b.arrived_lanes[w.index]), id));
  }
  if (!b.in_use) {
    b.in_use = true;
    b.reduction = 0;
    b.reduction_and = 1;
  }
  b.expected = count;
  b.arrived_lanes[w.index] |= mask;
  b.arrived += i.width == kAlignedBarrier ? kWarpSize : static_cast<uint32_t>(__builtin_popcount(mask));
  if (kind >= kBarRedPopc) {
    const LaneMask p = *lanes<uint32_t>(w.regs, i.c) & mask;
    b.reduction += static_cast<uint32_t>(__builtin_popcount(p));
    if (p != mask) b.reduction_and = 0;
  }
  note_effect(w);
  const uint64_t generation = b.generation;
  if (observer(w) != nullptr)
    observer(w)->barrier(
        {kind == kBarArrive ? BarrierEvent::Kind::Arrive : BarrierEvent::Kind::Sync, &w, &i, mask, id, generation});
  if (kind != kBarArrive) {
    block_and_continue(w, {{WaitTarget::Kind::NamedBarrier, &cta, id, generation, mask, false}});
  }
  check_barrier(cta, id, w.time);
}

std::string decode_barrier(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  inst->fn = barrier;
  inst->ends_slice = 1;
  const bool bar = r.spec->name.starts_with("bar.") || r.spec->name == "bar";
  const bool aligned = bar || r.has("aligned");
  inst->sync = aligned ? kSyncAligned : kSyncNone;
  inst->width = aligned ? kAlignedBarrier : 0;
  size_t at = 0;
  inst->sub = r.has("arrive") ? kBarArrive : kBarSync;
  if (r.has("red")) {
    inst->sub = r.has("popc") ? kBarRedPopc : r.has("and") ? kBarRedAnd : kBarRedOr;
    inst->d = c.destination(s.operands[at++], r.has("popc") ? 4 : 0);
  }
  if (at >= s.operands.size()) return "expects a barrier number";
  inst->a = c.source(s.operands[at++], Type::U32);
  const size_t rest = s.operands.size() - at;
  const bool has_count = r.has("red") ? rest == 2 : rest == 1;
  if (has_count) inst->b = c.source(s.operands[at++], Type::U32);
  if (r.has("red")) inst->c = c.source(s.operands[at], Type::Pred);
  if (inst->sub == kBarArrive && !has_count) return "arrive needs a thread count";
  inst->cost = c.timing().alu;
  return {};
}

// --- barrier.cluster -------------------------------------------------------------------------------------------------

/// Completes the phase if every thread of the cluster that lives has arrived.
void check_cluster_barrier(Domain& d, uint64_t when) {
  bool any = false;
  for (const auto& cta : d.ctas) {
    for (const Warp& w : cta->warps) {
      if ((w.live & ~w.cluster_arrived) != 0) return;
      any = any || w.cluster_arrived != 0;
    }
  }
  if (!any) return;
  if (Observer* o = watcher(*d.launch); o != nullptr) {
    o->barrier({BarrierEvent::Kind::ClusterComplete, d.ctas[0]->warps.data(), nullptr, 0, 0, d.cluster_phase});
  }
  d.cluster_phase++;
  d.cluster_seen = when + timing_of(*d.launch).cluster_barrier;
  d.launch->progress_mark = d.launch->warp_instructions;
  for (const auto& cta : d.ctas) {
    for (Warp& w : cta->warps) w.cluster_arrived = 0;
    wake(d, WaitTarget::Kind::ClusterBarrier, cta.get(), 0, d.cluster_seen);
  }
}

/// barrier.cluster.arrive (PTX §9.7.13.3); sub 1 = .relaxed.
void cluster_arrive(Warp& w, const Inst& i, LaneMask mask) {
  if ((w.cluster_unwaited & mask) != 0) {
    throw make_fault("arrival-count-mismatch",
                     fmt::format("{} arrives at the cluster barrier again without having waited",
                                 describe_lanes(w, mask & w.cluster_unwaited)),
                     "Each barrier.cluster.arrive is followed by one barrier.cluster.wait of the same thread.");
  }
  note_effect(w);
  w.cluster_arrived |= mask;
  w.cluster_unwaited |= mask;
  if (Observer* o = observer(w); o != nullptr) {
    o->barrier({BarrierEvent::Kind::ClusterArrive, &w, &i, mask, 0, w.cta->domain->cluster_phase, i.sub != 0});
  }
  check_cluster_barrier(*w.cta->domain, w.time);
}

void cluster_wait(Warp& w, const Inst& i, LaneMask mask) {
  if ((mask & ~w.cluster_unwaited) != 0) {
    throw make_fault("bad-barrier",
                     fmt::format("{} waits at the cluster barrier without having arrived",
                                 describe_lanes(w, mask & ~w.cluster_unwaited)),
                     "barrier.cluster.arrive of the same thread comes first.");
  }
  if ((mask & w.cluster_arrived) != 0) {
    block_and_retry(w, {{WaitTarget::Kind::ClusterBarrier, w.cta, 0, 0, mask, false}});
    return;
  }
  note_effect(w);
  w.time = std::max(w.time, w.cta->domain->cluster_seen);
  w.cluster_unwaited &= ~mask;
  if (Observer* o = observer(w); o != nullptr) {
    o->barrier({BarrierEvent::Kind::ClusterWait, &w, &i, mask, 0, w.cta->domain->cluster_phase});
  }
}

std::string decode_cluster_barrier(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement&, Inst* inst) {
  inst->fn = r.has("arrive") ? cluster_arrive : cluster_wait;
  inst->sub = r.has("relaxed") ? 1 : 0;
  inst->sync = r.has("aligned") ? kSyncAligned : kSyncNone;
  inst->ends_slice = 1;
  // An arrival releases at cluster scope unless it says .relaxed.
  inst->cost = r.has("arrive") && !r.has("relaxed") ? c.timing().fence_gpu : c.timing().alu;
  return {};
}

// --- warp-wide -------------------------------------------------------------------------------------------------------

/// Completes bar.warp.sync of `member` lanes if all that still live have arrived.
void check_warp_sync(Warp& w, uint32_t member) {
  LaneMask arrived = 0;
  for (const Fragment& f : w.fragments) {
    if (waits_for_warp_sync(f) && f.waits[0].offset == member) arrived |= f.mask;
  }
  if ((member & w.live & ~arrived) != 0) return;
  for (Fragment& f : w.fragments) {
    if (waits_for_warp_sync(f) && f.waits[0].offset == member) {
      f.state = Fragment::State::Ready;
      f.wake_time = w.time;
    }
  }
}

void require_member(Warp& w, uint32_t member, LaneMask mask, const char* what) {
  if ((mask & ~member) == 0) return;
  throw make_fault("diverged-collective",
                   fmt::format("{} executes {} with member mask {:#010x}, which does not name it",
                               describe_lanes(w, mask & ~member), what, member));
}

void bar_warp_sync(Warp& w, const Inst& i, LaneMask mask) {
  const uint32_t member = first_lane_u32(w, i.x, mask);
  LaneMask same = 0;
  for_lanes(mask, [&](int l) {
    if (lanes<uint32_t>(w.regs, i.x)[l] == member) same |= LaneMask{1} << l;
  });
  if (same != mask) {
    // Lanes that name other members come back to this instruction as a fragment of their own.
    Fragment rest = w.fragment();
    rest.mask = mask & ~same;
    w.fragment().mask = mask = same;
    w.fragments.push_back(std::move(rest));
    w.reschedule = true;
  }
  require_member(w, member, mask, "bar.warp.sync");
  note_effect(w);
  w.collectives.add(w.fragment().pc, mask);
  if (observer(w) != nullptr) observer(w)->barrier({BarrierEvent::Kind::WarpSync, &w, &i, mask, member, 0});
  if ((member & w.live & ~mask) == 0) return;  // all here
  block_and_continue(w, {{WaitTarget::Kind::WarpSync, w.cta, member, 0, mask, false}});
  check_warp_sync(w, member);
}

std::string decode_bar_warp_sync(DecodeContext& c, const ptx::Resolved&, const ptx::Statement& s, Inst* inst) {
  inst->fn = bar_warp_sync;
  inst->ends_slice = 1;
  inst->cost = c.timing().warp_sync;
  inst->x = c.source(s.operands[0], Type::B32);
  return {};
}

/// shfl.sync: d = value, e = predicate (or none), a = source, b = lane or delta, c = clamp and segment mask; sub: 0 up
/// 1 down 2 bfly 3 idx.
void shuffle(Warp& w, const Inst& i, LaneMask mask) {
  require_member(w, first_lane_u32(w, i.x, mask), mask, "shfl.sync");
  const auto* a = lanes<uint32_t>(w.regs, i.a);
  const auto* b = lanes<uint32_t>(w.regs, i.b);
  const auto* c = lanes<uint32_t>(w.regs, i.c);
  uint32_t out[kWarpSize];
  LaneMask valid = 0;
  for_lanes(mask, [&](int l) {
    const auto lane = static_cast<uint32_t>(l);
    const uint32_t bval = b[l] & 0x1f, cval = c[l] & 0x1f, segment = c[l] >> 8 & 0x1f;
    const uint32_t max_lane = (lane & segment) | (cval & ~segment), min_lane = lane & segment;
    int32_t j = 0;
    bool p = false;
    switch (i.sub) {
      case 0:
        j = l - static_cast<int32_t>(bval);
        p = j >= static_cast<int32_t>(max_lane);
        break;
      case 1:
        j = l + static_cast<int32_t>(bval);
        p = j <= static_cast<int32_t>(max_lane);
        break;
      case 2:
        j = l ^ static_cast<int32_t>(bval);
        p = j <= static_cast<int32_t>(max_lane);
        break;
      default:
        j = static_cast<int32_t>(min_lane | (bval & ~segment));
        p = j <= static_cast<int32_t>(max_lane);
        break;
    }
    if (!p) j = l;
    out[l] = a[j & 31];
    if (p) valid |= LaneMask{1} << l;
  });
  auto* d = lanes<uint32_t>(w.regs, i.d);
  for_lanes(mask, [&](int l) { d[l] = out[l]; });
  if (i.e != kNoOperand) {
    auto& e = *lanes<uint32_t>(w.regs, i.e);
    e = (e & ~mask) | valid;
  }
}

std::string decode_shuffle(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  if (!r.has("sync")) return "only shfl.sync exists on this target";
  if (s.operands.size() != 5) return "expects 5 operands";
  inst->fn = shuffle;
  const Operand& dst = s.operands[0];
  if (dst.kind == Operand::Kind::Pair) {
    inst->d = c.destination(dst.elements[0], 4);
    if (dst.elements[1].kind != Operand::Kind::Sink) inst->e = c.destination(dst.elements[1], 0);
  } else {
    inst->d = c.destination(dst, 4);
  }
  inst->a = c.source(s.operands[1], Type::B32);
  inst->b = c.source(s.operands[2], Type::B32);
  inst->c = c.source(s.operands[3], Type::B32);
  inst->x = c.source(s.operands[4], Type::B32);
  inst->sub = r.has("up") ? 0 : r.has("down") ? 1 : r.has("bfly") ? 2 : 3;
  inst->sync = kSyncMask;
  inst->ends_slice = 1;
  inst->cost = c.timing().shuffle;
  return {};
}

/// vote.sync: sub 0 all 1 any 2 uni 3 ballot.
void vote(Warp& w, const Inst& i, LaneMask mask) {
  require_member(w, first_lane_u32(w, i.x, mask), mask, "vote.sync");
  const LaneMask p = *lanes<uint32_t>(w.regs, i.a) & mask;
  if (i.sub == 3) {
    for_lanes(mask, [&](int l) { lanes<uint32_t>(w.regs, i.d)[l] = p; });
    return;
  }
  const bool v = i.sub == 0 ? p == mask : i.sub == 1 ? p != 0 : p == 0 || p == mask;
  auto& d = *lanes<uint32_t>(w.regs, i.d);
  d = (d & ~mask) | (v ? mask : 0);
}

std::string decode_vote(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  if (!r.has("sync")) return "only vote.sync exists on this target";
  inst->fn = vote;
  inst->sub = r.has("all") ? 0 : r.has("any") ? 1 : r.has("uni") ? 2 : 3;
  inst->d = c.destination(s.operands[0], inst->sub == 3 ? 4 : 0);
  inst->a = c.source(s.operands[1], Type::Pred);
  inst->x = c.source(s.operands[2], Type::B32);
  inst->sync = kSyncMask;
  inst->ends_slice = 1;
  inst->cost = c.timing().vote;
  return {};
}

/// match.any/all.sync: width = bytes of the value; sub 1 = all.
void match(Warp& w, const Inst& i, LaneMask mask) {
  require_member(w, first_lane_u32(w, i.x, mask), mask, "match.sync");
  const auto value = [&](int l) {
    return i.width == 8 ? lanes<uint64_t>(w.regs, i.a)[l] : lanes<uint32_t>(w.regs, i.a)[l];
  };
  uint32_t out[kWarpSize];
  bool all = true;
  const uint64_t reference = value(__builtin_ctz(mask));
  for_lanes(mask, [&](int l) {
    out[l] = 0;
    for_lanes(mask, [&](int o) {
      if (value(o) == value(l)) out[l] |= LaneMask{1} << o;
    });
    all = all && value(l) == reference;
  });
  for_lanes(mask, [&](int l) { lanes<uint32_t>(w.regs, i.d)[l] = i.sub == 0 ? out[l] : all ? mask : 0; });
  if (i.e != kNoOperand) {
    auto& e = *lanes<uint32_t>(w.regs, i.e);
    e = (e & ~mask) | (all ? mask : 0);
  }
}

std::string decode_match(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  inst->fn = match;
  inst->sub = r.has("all") ? 1 : 0;
  const Operand& dst = s.operands[0];
  inst->d = c.destination(dst.kind == Operand::Kind::Pair ? dst.elements[0] : dst, 4);
  if (dst.kind == Operand::Kind::Pair && dst.elements[1].kind != Operand::Kind::Sink)
    inst->e = c.destination(dst.elements[1], 0);
  inst->a = c.source(s.operands[1], r.type(0));
  inst->width = static_cast<uint8_t>(ptx::size_of(r.type(0)));
  inst->x = c.source(s.operands[2], Type::B32);
  inst->sync = kSyncMask;
  inst->ends_slice = 1;
  inst->cost = c.timing().shuffle;
  return {};
}

void activemask(Warp& w, const Inst& i, LaneMask mask) {
  for_lanes(mask, [&](int l) { lanes<uint32_t>(w.regs, i.d)[l] = mask; });
}
std::string decode_activemask(DecodeContext& c, const ptx::Resolved&, const ptx::Statement& s, Inst* inst) {
  inst->fn = activemask;
  inst->d = c.destination(s.operands[0], 4);
  return {};
}

enum Redux : uint8_t {
  kReduxAdd,
  kReduxMinU,
  kReduxMinS,
  kReduxMaxU,
  kReduxMaxS,
  kReduxAnd,
  kReduxOr,
  kReduxXor,
  kReduxMinF,
  kReduxMaxF
};

/// redux.sync; width bit 0 = .abs, bit 1 = .NaN (f32 only).
void redux(Warp& w, const Inst& i, LaneMask mask) {
  require_member(w, first_lane_u32(w, i.x, mask), mask, "redux.sync");
  const auto* a = lanes<uint32_t>(w.regs, i.a);
  uint32_t r = a[__builtin_ctz(mask)];
  const auto number = [&](uint32_t v) {
    return (i.width & 1) != 0 ? std::bit_cast<float>(v & 0x7fffffffu) : std::bit_cast<float>(v);
  };
  if (i.sub >= kReduxMinF) {
    float best = number(r);
    bool nan = false;
    for_lanes(mask, [&](int l) {
      const float v = number(a[l]);
      nan = nan || std::isnan(v);
      // −0 is less than +0.
      const bool less = v < best || (v == best && std::signbit(v) && !std::signbit(best));
      const bool more = v > best || (v == best && !std::signbit(v) && std::signbit(best));
      if (std::isnan(best) || (i.sub == kReduxMinF ? less : more)) best = v;
    });
    r = std::isnan(best) || (nan && (i.width & 2) != 0) ? 0x7fffffffu : std::bit_cast<uint32_t>(best);
  } else {
    for_lanes(mask & (mask - 1), [&](int l) {
      const uint32_t v = a[l];
      switch (i.sub) {
        case kReduxAdd:
          r += v;
          break;
        case kReduxMinU:
          r = std::min(r, v);
          break;
        case kReduxMaxU:
          r = std::max(r, v);
          break;
        case kReduxMinS:
          r = static_cast<uint32_t>(std::min(static_cast<int32_t>(r), static_cast<int32_t>(v)));
          break;
        case kReduxMaxS:
          r = static_cast<uint32_t>(std::max(static_cast<int32_t>(r), static_cast<int32_t>(v)));
          break;
        case kReduxAnd:
          r &= v;
          break;
        case kReduxOr:
          r |= v;
          break;
        default:
          r ^= v;
          break;
      }
    });
  }
  for_lanes(mask, [&](int l) { lanes<uint32_t>(w.regs, i.d)[l] = r; });
}

std::string decode_redux(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  inst->fn = redux;
  const bool is_signed = r.type(0) == Type::S32, is_float = r.type(0) == Type::F32;
  inst->sub = r.has("add")   ? kReduxAdd
              : r.has("min") ? (is_float    ? kReduxMinF
                                : is_signed ? kReduxMinS
                                            : kReduxMinU)
              : r.has("max") ? (is_float    ? kReduxMaxF
                                : is_signed ? kReduxMaxS
                                            : kReduxMaxU)
              : r.has("and") ? kReduxAnd
              : r.has("or")  ? kReduxOr
                             : kReduxXor;
  inst->width = static_cast<uint8_t>((r.has("abs") ? 1 : 0) | (r.has("NaN") ? 2 : 0));
  inst->d = c.destination(s.operands[0], 4);
  inst->a = c.source(s.operands[1], r.type(0));
  inst->x = c.source(s.operands[2], Type::B32);
  inst->sync = kSyncMask;
  inst->ends_slice = 1;
  inst->cost = c.timing().shuffle;
  return {};
}

/// elect.sync: the leader is the lowest lane of the member mask that lives (the ISA leaves the choice open).
void elect(Warp& w, const Inst& i, LaneMask mask) {
  const uint32_t member = first_lane_u32(w, i.x, mask);
  require_member(w, member, mask, "elect.sync");
  const LaneMask candidates = member & mask;
  const auto leader = static_cast<uint32_t>(__builtin_ctz(candidates));
  if (i.d != kNoOperand) {
    for_lanes(mask, [&](int l) { lanes<uint32_t>(w.regs, i.d)[l] = leader; });
  }
  auto& e = *lanes<uint32_t>(w.regs, i.e);
  e = (e & ~mask) | (LaneMask{1} << leader);
}

std::string decode_elect(DecodeContext& c, const ptx::Resolved&, const ptx::Statement& s, Inst* inst) {
  inst->fn = elect;
  const Operand& dst = s.operands[0];
  if (dst.kind != Operand::Kind::Pair) return "expects d|p";
  if (dst.elements[0].kind != Operand::Kind::Sink) inst->d = c.destination(dst.elements[0], 4);
  inst->e = c.destination(dst.elements[1], 0);
  inst->x = c.source(s.operands[1], Type::B32);
  inst->sync = kSyncMask;
  inst->ends_slice = 1;
  inst->cost = c.timing().alu;
  return {};
}

// --- setmaxnreg ------------------------------------------------------------------------------------------------------
//
// The instruction is a hint (PTX §9.7.19.5): registers of this machine are not counted. What is checked is who executes
// it: all warps of a warpgroup the same one. Kernels give each role of a warp a branch of its own, so that direction
// and count are compared, request by request, and not the place in the code.

constexpr uint32_t kWarpsOfGroup = 4;

std::string describe_request(const Inst& i) { return fmt::format(".{} {}", i.sub != 0 ? "inc" : "dec", i.imm); }

void set_max_registers(Warp& w, const Inst& i, LaneMask mask) {
  note_effect(w);
  const size_t n = w.register_requests.size();
  w.register_requests.push_back(&i);
  const uint32_t first = w.index / kWarpsOfGroup * kWarpsOfGroup;
  for (uint32_t o = first; o < std::min<size_t>(first + kWarpsOfGroup, w.cta->warps.size()); o++) {
    const auto& requests = w.cta->warps[o].register_requests;
    if (requests.size() <= n || (requests[n]->imm == i.imm && requests[n]->sub == i.sub)) continue;
    w.cta->launch->report(
        i, "diverged-collective",
        fmt::format("{} executes setmaxnreg{}, but warp {} of the same warpgroup executed setmaxnreg{}",
                    describe_lanes(w, mask), describe_request(i), o, describe_request(*requests[n])),
        "The four warps of a warpgroup execute the same setmaxnreg.");
    return;
  }
}

/// At the end of a CTA: has each warp of a warpgroup made as many requests?
void check_register_requests(Cta& cta) {
  for (size_t first = 0; first < cta.warps.size(); first += kWarpsOfGroup) {
    const Warp *most = &cta.warps[first], *least = most;
    for (size_t o = first; o < std::min<size_t>(first + kWarpsOfGroup, cta.warps.size()); o++) {
      const Warp& w = cta.warps[o];
      if (w.register_requests.size() > most->register_requests.size()) most = &w;
      if (w.register_requests.size() < least->register_requests.size()) least = &w;
    }
    const size_t n = least->register_requests.size();
    if (most->register_requests.size() == n) continue;
    const Inst& i = *most->register_requests[n];
    cta.launch->report(i, "diverged-collective",
                       fmt::format("warp {} executed setmaxnreg{}, but warp {} of the same warpgroup ended without it",
                                   most->index, describe_request(i), least->index),
                       "The four warps of a warpgroup execute the same setmaxnreg.");
  }
}

std::string decode_max_registers(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  const Operand& count = s.operands[0];
  if (count.kind != Operand::Kind::Integer || count.bits < 24 || count.bits > 256 || count.bits % 8 != 0)
    return "the register count is a constant, a multiple of 8 from 24 to 256";
  inst->fn = set_max_registers;
  inst->imm = count.bits;
  inst->sub = r.has("inc") ? 1 : 0;
  inst->sync = kSyncAligned;
  inst->ends_slice = 1;
  inst->cost = c.timing().alu;
  return {};
}

// --- control flow ----------------------------------------------------------------------------------------------------

std::string decode_branch(DecodeContext& c, const ptx::Resolved&, const ptx::Statement& s, Inst* inst) {
  if (s.operands.size() != 1 || s.operands[0].kind != Operand::Kind::Label) return "expects a label";
  inst->fn = branch;
  inst->ends_slice = 1;
  inst->target = s.operands[0].target;
  inst->cost = c.timing().branch;
  return {};
}

std::string decode_branch_indexed(DecodeContext& c, const ptx::Resolved&, const ptx::Statement& s, Inst* inst) {
  std::vector<uint32_t> targets;
  for (size_t k = 1; k < s.operands.size(); k++) {
    if (s.operands[k].kind == Operand::Kind::Label) targets.push_back(s.operands[k].target);
    for (const Operand& e : s.operands[k].elements) targets.push_back(e.target);
  }
  if (targets.empty()) return "its list of branch targets was not found";
  inst->fn = branch_indexed;
  inst->ends_slice = 1;
  inst->a = c.source(s.operands[0], Type::U32);
  inst->list = c.pool(targets);
  inst->list_size = static_cast<uint16_t>(targets.size());
  inst->cost = c.timing().branch;
  return {};
}

std::string decode_return(DecodeContext& c, const ptx::Resolved&, const ptx::Statement&, Inst* inst) {
  inst->fn = return_from_function;
  inst->ends_slice = 1;
  inst->cost = c.timing().branch;
  return {};
}

void leave(Warp& w, LaneMask mask) {
  exit_lanes(w, mask);
  Cta& cta = *w.cta;
  for (uint32_t id = 0; id < cta.barriers.size(); id++) check_barrier(cta, id, w.time);
  w.cluster_arrived &= w.live;
  w.cluster_unwaited &= w.live;
  check_cluster_barrier(*cta.domain, w.time);
  for (size_t f = 0; f < w.fragments.size(); f++) {
    const Fragment& x = w.fragments[f];
    if (waits_for_warp_sync(x)) check_warp_sync(w, x.waits[0].offset);
  }
  if (cta.live_threads == 0) check_register_requests(cta);
}

void exit_thread(Warp& w, const Inst&, LaneMask mask) { leave(w, mask); }
std::string decode_exit(DecodeContext&, const ptx::Resolved&, const ptx::Statement&, Inst* inst) {
  inst->fn = exit_thread;
  inst->ends_slice = 1;
  return {};
}

void trap(Warp& w, const Inst&, LaneMask mask) {
  throw make_fault("trap", fmt::format("{} executes trap", describe_lanes(w, mask)));
}
std::string decode_trap(DecodeContext&, const ptx::Resolved&, const ptx::Statement&, Inst* inst) {
  inst->fn = trap;
  inst->ends_slice = 1;
  return {};
}

void nanosleep(Warp& w, const Inst& i, LaneMask mask) {
  // At about 1.96 GHz a nanosecond is two cycles. The ISA allows [0, 2t]; at most a millisecond.
  w.time += std::min<uint64_t>(2ull * first_lane_u32(w, i.a, mask), 2'000'000);
  w.fragment().read_clock = true;
}
std::string decode_nanosleep(DecodeContext& c, const ptx::Resolved&, const ptx::Statement& s, Inst* inst) {
  inst->fn = nanosleep;
  inst->a = c.source(s.operands[0], Type::U32);
  return {};
}

void nothing(Warp&, const Inst&, LaneMask) {}
std::string decode_nothing(DecodeContext&, const ptx::Resolved&, const ptx::Statement&, Inst* inst) {
  inst->fn = nothing;
  inst->cost = 0;
  return {};
}

// --- fences ----------------------------------------------------------------------------------------------------------

/// imm packs FenceInfo's kind, sem and scope.
void fence(Warp& w, const Inst& i, LaneMask mask) {
  if (observer(w) == nullptr) return;
  FenceInfo info{static_cast<FenceInfo::Kind>(i.imm & 0xff), static_cast<Sem>(i.imm >> 8 & 0xff),
                 static_cast<Scope>(i.imm >> 16 & 0xff), 0};
  if (i.a != kNoOperand)
    info.address = lanes<uint64_t>(w.regs, i.a)[__builtin_ctz(mask)] + static_cast<uint64_t>(i.offset);
  observer(w)->fence(w, i, mask, info);
}

std::string decode_fence(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  using Kind = FenceInfo::Kind;
  const auto has = [&](const char* m) { return r.has(m); };
  const auto mentions = [&](const char* part) {
    return std::any_of(r.modifiers.begin(), r.modifiers.end(),
                       [&](std::string_view m) { return m.find(part) != std::string_view::npos; });
  };
  Kind kind = Kind::Thread;
  Sem sem = has("sc") ? Sem::Sc : has("acquire") ? Sem::Acquire : has("release") ? Sem::Release : Sem::AcqRel;
  Scope scope = scope_of(r);
  if (r.spec->op == ptx::Op::FenceMbarrierInit) {
    kind = Kind::MbarrierInit;
  } else if (r.spec->op == ptx::Op::FenceProxy) {
    const std::string text = s.text;
    if (text.find("tensormap") != std::string::npos) {
      kind = has("acquire") ? Kind::ProxyTensormapAcquire : Kind::ProxyTensormapRelease;
    } else if (text.find("async::generic") != std::string::npos) {
      kind = has("acquire") ? Kind::ProxyGenericAcquireSharedCluster : Kind::ProxyGenericReleaseSharedCta;
    } else if (text.find("proxy.alias") != std::string::npos) {
      kind = Kind::ProxyAlias;
    } else {
      switch (r.space(0)) {
        case ptx::Space::Global:
          kind = Kind::ProxyAsyncGlobal;
          break;
        case ptx::Space::SharedCta:
        case ptx::Space::Shared:
          kind = Kind::ProxyAsyncSharedCta;
          break;
        case ptx::Space::SharedCluster:
          kind = Kind::ProxyAsyncSharedCluster;
          break;
        default:
          kind = Kind::ProxyAsync;
          break;
      }
    }
  } else if (mentions("sync_restrict")) {
    kind = has("acquire") ? Kind::SyncRestrictAcquire : Kind::SyncRestrictRelease;
  } else if (r.spec->name == "membar") {
    scope = has("cta") ? Scope::Cta : has("sys") ? Scope::Sys : Scope::Gpu;  // membar.gl
    sem = Sem::Sc;
  }
  inst->fn = fence;
  inst->imm = static_cast<uint64_t>(kind) | static_cast<uint64_t>(sem) << 8 | static_cast<uint64_t>(scope) << 16;
  if (kind == Kind::ProxyTensormapAcquire && !s.operands.empty()) {
    const MemoryOperand m = c.address(s.operands[0], ptx::Space::Generic);
    if (!m.wide) return "expects a 64-bit address";
    inst->a = m.slot;
    inst->offset = m.offset;
  }
  inst->cost = kind == Kind::MbarrierInit                    ? c.timing().fence_mbarrier_init
               : kind == Kind::Thread && scope != Scope::Cta ? c.timing().fence_gpu
                                                             : c.timing().fence;
  return {};
}

// --- device runtime --------------------------------------------------------------------------------------------------

template <class T>
T local_value(Warp& w, int lane, uint32_t offset) {
  T v;
  std::memcpy(&v, w.local_of(lane) + offset, sizeof v);
  return v;
}

std::string read_string(Warp& w, int lane, uint64_t address) {
  std::string s;
  for (char c = 0; s.size() < 65536; s += c) {
    if (!read_generic(w, lane, address + s.size(), &c, 1) || c == 0) break;
  }
  return s;
}

constexpr size_t kMaxOutput = size_t{1} << 20;

void call_vprintf(Warp& w, const Inst& i, LaneMask mask) {
  const uint32_t* args = &w.cta->launch->program->operand_pool[i.list];
  note_effect(w);
  for_lanes(mask, [&](int l) {
    const std::string format = read_string(w, l, local_value<uint64_t>(w, l, args[0]));
    const auto buffer = local_value<uint64_t>(w, l, args[1]);
    int count = 0;
    const std::string text = format_printf(
        format,
        [&](uint64_t offset, void* out, uint32_t bytes) { return read_generic(w, l, buffer + offset, out, bytes); },
        [&](uint64_t address) { return read_string(w, l, address); }, &count);
    std::string& output = w.cta->launch->output;
    if (output.size() < kMaxOutput) output += text.substr(0, kMaxOutput - output.size());
    if (i.list_size > 2 && args[i.list_size - 1u] != kNoOperand)
      std::memcpy(w.local_of(l) + args[i.list_size - 1u], &count, 4);
  });
}

void call_assertfail(Warp& w, const Inst& i, LaneMask mask) {
  const uint32_t* args = &w.cta->launch->program->operand_pool[i.list];
  const int l = __builtin_ctz(mask);
  const std::string message = read_string(w, l, local_value<uint64_t>(w, l, args[0]));
  throw make_fault("assertion-failed",
                   fmt::format("{}: assertion `{}` failed", describe_threads(w, LaneMask{1} << l), message));
}

}  // namespace

void branch(Warp&, const Inst&, LaneMask) {}  // the interpreter's own

void branch_indexed(Warp& w, const Inst& i, LaneMask mask) {
  const uint32_t* targets = &w.cta->launch->program->operand_pool[i.list];
  const auto* index = lanes<uint32_t>(w.regs, i.a);
  const uint32_t first = index[__builtin_ctz(mask)];
  LaneMask same = 0;
  for_lanes(mask, [&](int l) {
    if (index[l] == first) same |= LaneMask{1} << l;
  });
  if (first >= i.list_size)
    throw make_fault("out-of-bounds", fmt::format("{} branches through entry {} of a table of {}",
                                                  describe_lanes(w, same), first, i.list_size));
  if (same != mask) {
    // The others come back to this instruction as a fragment of their own.
    Fragment rest = w.fragment();
    rest.mask = mask & ~same;
    w.fragment().mask = same;
    w.fragments.push_back(std::move(rest));
    w.reschedule = true;
  }
  w.next_pc = targets[first];
  if (targets[first] <= w.fragment().pc) w.reschedule = true;  // the others may be lower now
}

void call_function(Warp& w, const Inst& i, LaneMask) {
  Fragment& f = w.fragment();
  Launch& launch = *w.cta->launch;
  f.stack = launch.push_stack(f.stack, f.pc + 1);
  w.next_pc = i.target;
}

void return_from_function(Warp& w, const Inst&, LaneMask mask) {
  Fragment& f = w.fragment();
  if (f.stack == 0) {
    leave(w, mask);
    return;
  }
  const Launch::StackNode& node = w.cta->launch->stacks[f.stack];
  w.next_pc = node.return_pc;
  f.stack = node.parent;
}

void copy_local(Warp& w, const Inst& i, LaneMask mask) {
  for_lanes(mask, [&](int l) {
    std::byte* base = w.local_of(l);
    std::memcpy(base + i.d, base + i.a, i.imm);
  });
}

void unsupported_instruction(Warp& w, const Inst& i, LaneMask) {
  const Program& p = *w.cta->launch->program;
  throw make_fault("unsupported-instruction",
                   fmt::format("`{}` cannot be emulated: {}", p.statement(i).text, p.unsupported[i.imm]));
}

void negate_predicate(Warp& w, const Inst& i, LaneMask mask) {
  auto& d = *lanes<uint32_t>(w.regs, i.d);
  d = (d & ~mask) | (~*lanes<uint32_t>(w.regs, i.a) & mask);
}

void read_clock(Warp& w, const Inst& i, LaneMask mask) {
  w.fragment().read_clock = true;
  // %globaltimer counts nanoseconds, about half as many as cycles.
  uint64_t t = (i.sub & 1) != 0 ? w.time / 2 : w.time;
  if ((i.sub & 2) != 0) t >>= 32;
  for_lanes(mask, [&](int l) {
    if (i.width == 8) {
      lanes<uint64_t>(w.regs, i.d)[l] = t;
    } else {
      lanes<uint32_t>(w.regs, i.d)[l] = static_cast<uint32_t>(t);
    }
  });
}

Handler builtin_function(std::string_view name) {
  if (name == "vprintf") return call_vprintf;
  if (name == "__assertfail" || name == "__assert_fail") return call_assertfail;
  return nullptr;
}

std::string describe_threads(const Warp& w, LaneMask mask) {
  std::string s;
  if (w.cta->launch->config.grid.volume() > 1) s = fmt::format("CTA {} ", w.cta->linear);
  const auto first = static_cast<uint32_t>(__builtin_ctz(mask));
  if (__builtin_popcount(mask) == 1) return s + fmt::format("thread {}", w.first_thread() + first);
  return s + fmt::format("threads {}-{}", w.first_thread() + first,
                         w.first_thread() + 31 - static_cast<uint32_t>(__builtin_clz(mask)));
}

void register_control_decoders(DecoderTable& table) {
  using ptx::Op;
  table[Op::Bra] = decode_branch;
  table[Op::BrxIdx] = decode_branch_indexed;
  table[Op::Ret] = decode_return;
  table[Op::Exit] = decode_exit;
  table[Op::Trap] = decode_trap;
  table[Op::Brkpt] = decode_nothing;
  table[Op::Pragma] = decode_nothing;
  table[Op::Nanosleep] = decode_nanosleep;
  table[Op::Bar] = decode_barrier;
  table[Op::BarRed] = decode_barrier;
  table[Op::BarWarpSync] = decode_bar_warp_sync;
  table[Op::BarrierCluster] = decode_cluster_barrier;
  table[Op::Shfl] = decode_shuffle;
  table[Op::Vote] = decode_vote;
  table[Op::Match] = decode_match;
  table[Op::Activemask] = decode_activemask;
  table[Op::Redux] = decode_redux;
  table[Op::Elect] = decode_elect;
  table[Op::Fence] = decode_fence;
  table[Op::FenceProxy] = decode_fence;
  table[Op::FenceMbarrierInit] = decode_fence;
  table[Op::Setmaxnreg] = decode_max_registers;
  // No grid comes before this one, and none depends on it.
  table[Op::GridDepControl] = decode_nothing;
  table[Op::Pmevent] = decode_nothing;
}

}  // namespace handoff::machine
