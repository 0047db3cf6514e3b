// For tests: the rules of the checker once more, slow and obvious, to compare with.
//
// The reference keeps everything. Each thing that a thread does is a node of a graph; an asynchronous operation has
// three nodes: its start, the end of its reading and the end of its writing. Edges are those of PTX §8.9.4 and §8.9.5:
// program order, barriers, release → acquire where something released was observed, the completion of a copy → who
// observed it. An operation's start has no way to its ends, because a completion carries the operation's own effects
// and nothing of its issuer's (§8.9.1.1). Four graphs have the same nodes: `order`; `wide`, in which every scope is
// wide enough; `any`, in which moreover every signal counts as released and acquired; and `time`, in which moreover a
// copy's start comes before what is signalled by it. When the launch is over, "is ordered before" is "has a path to",
// computed over the whole graph, and each byte's accesses are compared pair by pair.
//
// No clock, no step, no cell, no sharing between lanes: nothing here is kept the way checker.cc keeps it.
//
// What is left out, as in checker.cc: order between two fence.sc by the order in which they ran (another schedule runs
// them the other way round), and what a plain store does to a release pattern that it overwrites (either it is ordered
// in between, or it is a race itself). stale-parity, missing-retry-loop, tx-bytes-mismatch and deadlock are
// explanations, not order; checker_test.cc covers them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "grader/emulator/machine/observer.h"
#include "grader/emulator/machine/warp.h"

namespace handoff::check::testing {

/// An id of the catalogue and the line that it is reported at.
using Found = std::set<std::pair<std::string, uint32_t>>;

/// See the top of the file.
class ReferenceChecker : public machine::Observer {
 public:
  /// Two lanes' copies by one instruction meet. Issued at once that is many-lanes-issue, one after the other a
  /// data-race; no event tells which.
  static constexpr const char* kSameInstruction = "many-lanes-issue or data-race";
  /// A write over what an operation writes whose issue is ordered before: if somebody waited for groups, that wait did
  /// not cover it.
  static constexpr const char* kOverwritten = "data-race or group-not-awaited";
  /// The verdict, once the launch has ended.
  struct Verdict {
    Found all;      ///< every pair of accesses to a byte, however far apart, and the rules of mbarriers
    Found nearest;  ///< only with the last write before an access, and with the last read of each thread and strength
                    ///< since
    size_t hidden = 0;    ///< bytes whose first finding in `all` is at another access than the one in `nearest`
    size_t exempted = 0;  ///< of those, with a pair before it that no order but an exemption (strong accesses, two
                          ///< reductions, lanes that store one value together) excused
    /// Lanes of one weak instruction wrote different values to one byte: in what order is nobody's business.
    bool lanes_collide = false;
    size_t nodes = 0;  ///< of the graph
  };
  /// Compares. The launch's Program must still live.
  Verdict verdict();

  void launch_begin(machine::Launch& launch) override { launch_ = &launch; }
  void cta_end(machine::Cta& cta) override;
  void access(const machine::Access& a) override;
  void fence(machine::Warp& warp, const machine::Inst& inst, machine::LaneMask mask,
             const machine::FenceInfo& info) override;
  void barrier(const machine::BarrierEvent& e) override;
  void mbarrier(const machine::MbarrierEvent& e) override;
  void async_op(const machine::AsyncOpInfo& info, machine::AsyncOpInfo::Milestone milestone) override;
  void group(const machine::GroupEvent& e) override;

 private:
  static constexpr int kNone = -1;
  using Place = std::tuple<machine::Region, uint32_t, uint64_t>;  // region, CTA (shared memory), address

  /// How far apart two CTAs are, or how far a scope reaches: the CTA itself, its cluster, farther.
  using Distance = size_t;
  static constexpr Distance kDistances = 3;
  /// What a signal publishes, as a node; kNone: nothing.
  struct Source {
    int node = kNone;  ///< to the one who sees it, whose distance decides
    int wide = kNone;  ///< if every scope were wide enough
  };
  /// Something observed without acquiring: taken over by the next acquire fence, or acquire of the same location.
  struct Seen {
    Source source;
    Distance from;  ///< the fence's scope must reach there
    Place where;
  };
  struct ProxyFence {
    int node;
    bool shared, global;
  };
  struct Thread {
    uint32_t cta = 0, warp = 0;
    std::array<uint32_t, 3> cluster{};  ///< %clusterid
    int lane = 0, last = kNone;
    std::array<int, kDistances> release_fence{kNone, kNone, kNone};  ///< the last one whose scope reaches so far
    std::array<std::map<Place, int>, kDistances> released;  ///< last release operation on each location, the same
    std::vector<Seen> seen;
    std::vector<ProxyFence> proxy_fences;
    std::vector<int> bulk_open, copies, copies_open;
    std::vector<std::vector<int>> bulk_groups, copy_groups;
  };
  struct Op {
    machine::AsyncOpInfo::Kind kind{};
    int thread = 0, start = 0, read_end = 0, write_end = 0, barrier = kNone;
    uint32_t line = 0, bytes = 0;
    uint64_t phase = 0, counted = 0;
    int instruction = 0;
  };
  struct Arrival {
    Source source;
    int node;
    Distance from, reach;
    uint64_t phase;
  };
  /// Lanes of one wait that answered true.
  struct Waiter {
    uint32_t warp, line;
    machine::LaneMask mask;
    uint64_t phase;
    std::vector<int> nodes;
    int completion = kNone;  ///< of the next phase
  };
  struct Barrier {
    int init_node = 0, init_thread = 0;
    std::vector<int> init_fences;  ///< nodes: fence.mbarrier_init and proxy fences
    std::vector<int> fenced;       ///< nodes: fence.mbarrier_init
    std::vector<Arrival> arrivals;
    std::vector<std::pair<std::vector<int>, uint64_t>>
        copies;                            ///< cp.async operations and the phase of the arrive that stands for them
    uint64_t completed = 0, observed = 0;  ///< phases
    int completion = kNone;                ///< node of the last one; of the graph `time` only
    std::vector<Waiter> waiters;           ///< whose wait has seen the latest phase
    std::vector<Waiter> overtaken;         ///< candidates: who had seen the phase before the latest, at its completion
  };
  struct Use {
    int node, thread, barrier;
    uint32_t line;
    bool remote;
  };
  /// Lanes of an instruction that use another CTA's shared memory.
  struct RemoteUse {
    uint32_t owner, line;
    std::vector<int> nodes;
  };
  struct Signal {
    int node, thread;
    std::array<int, kDistances> source;  ///< what it publishes to one so far away, if its scope reaches there
    Distance reach;
  };
  /// An access to one byte.
  struct ByteAccess {
    bool write, reduction;
    int thread;       ///< of the access, or of the operation's issuer
    int op;           ///< kNone: a thread's own
    int node;         ///< a thread's access; an operation's start
    int end;          ///< a thread's access; the end of an operation's reading or writing
    int instruction;  ///< accesses of one execution of an instruction have the same; of operations: of one instruction
                      ///< of a warp
    uint32_t line;
    machine::Scope strong;  ///< None: weak
    uint64_t address;
    uint32_t bytes;
    bool asynchronous_proxy;
    const machine::Inst* inst = nullptr;  ///< of a thread's access
    std::set<int> as_one{};  ///< threads that store the same value here by the same execution of it, weakly
  };
  struct Named {
    std::vector<int> arrived, waiting;  ///< nodes, threads
  };
  /// barrier.cluster: arrivals of this phase and of the one that is complete.
  struct ClusterBarrier {
    std::vector<Arrival> arrived, completed;
  };

  static bool releases(machine::Sem s) {
    return s == machine::Sem::Release || s == machine::Sem::AcqRel || s == machine::Sem::Sc;
  }
  static bool acquires(machine::Sem s) {
    return s == machine::Sem::Acquire || s == machine::Sem::AcqRel || s == machine::Sem::Sc;
  }
  static Distance reach_of(machine::Scope s) {
    return s == machine::Scope::Gpu || s == machine::Scope::Sys ? 2 : s == machine::Scope::Cluster ? 1 : 0;
  }
  Distance distance(int thread, int other) const {
    const Thread &a = threads_[static_cast<size_t>(thread)], &b = threads_[static_cast<size_t>(other)];
    return a.cta == b.cta ? 0 : a.cluster == b.cluster ? 1 : 2;
  }

  int thread_of(const machine::Warp& w, int lane);
  uint32_t line_of(const machine::Inst* i) const { return i == nullptr ? 0 : launch_->program->place(*i).line; }
  int add_node();
  /// The next thing that a thread does.
  int step(int thread);
  void edge(int from, int to) {
    if (from == kNone || from == to) return;
    order_[static_cast<size_t>(to)].push_back(from);
    wide_[static_cast<size_t>(to)].push_back(from);
    any_[static_cast<size_t>(to)].push_back(from);
    time_[static_cast<size_t>(to)].push_back(from);
  }
  void wide_edge(int from, int to) {
    if (from != kNone && from != to) wide_[static_cast<size_t>(to)].push_back(from);
  }
  void any_edge(int from, int to) {
    if (from != kNone && from != to) any_[static_cast<size_t>(to)].push_back(from);
    time_edge(from, to);
  }
  void time_edge(int from, int to) {
    if (from != kNone && from != to) time_[static_cast<size_t>(to)].push_back(from);
  }
  /// `source`, from so far away, was observed by `thread` at its node `at`, by an operation of scope `reach`.
  void observe(int thread, int at, Source source, bool acquire, Distance reach, Distance from, const Place& where);
  /// An acquire fence or operation: what it takes over of `seen`. True: nothing is left of it.
  bool take_over(const Seen& seen, int at, Distance reach);
  void used_from_outside(const machine::Cta& owner, machine::Warp& warp, const machine::Inst* inst,
                         std::vector<int> nodes);
  /// `mask`: bit j for byte j of each 16.
  void touch(const Place& first, uint32_t bytes, ByteAccess a, uint32_t mask = 0xffff);

  bool ordered(int before, int after) const {
    return before == after || before_order_[static_cast<size_t>(after)][static_cast<size_t>(before)];
  }
  bool ordered_wide(int before, int after) const {
    return before == after || before_wide_[static_cast<size_t>(after)][static_cast<size_t>(before)];
  }
  bool ordered_any(int before, int after) const {
    return before == after || before_any_[static_cast<size_t>(after)][static_cast<size_t>(before)];
  }
  static std::vector<std::vector<bool>> close(const std::vector<std::vector<int>>& predecessors);
  bool morally_strong(const ByteAccess& a, const ByteAccess& b) const;
  /// The rule that `later` breaks against `earlier`; "" if none. `excused`: only an exemption makes it none.
  std::string judge(const ByteAccess& earlier, const ByteAccess& later, machine::Region region, bool* excused) const;
  std::string judge_fence(const ByteAccess& write, const ByteAccess& later, machine::Region region) const;

  machine::Launch* launch_ = nullptr;
  std::map<std::tuple<uint32_t, uint32_t, int>, int> thread_index_;
  std::vector<Thread> threads_;
  std::vector<std::vector<int>> order_, wide_, any_,
      time_;  ///< predecessors of each node; edges only lead to later nodes
  std::vector<std::vector<bool>> before_order_, before_wide_, before_any_, before_time_;
  std::vector<Op> ops_;
  std::map<uint64_t, int> op_index_;
  std::vector<Barrier> barriers_;
  std::map<std::pair<uint32_t, uint32_t>, int> barrier_at_;
  std::vector<Use> uses_;
  std::vector<RemoteUse> remote_uses_;
  std::map<uint32_t, std::vector<int>> remote_ops_;  ///< copies of other CTAs into a CTA, or to a barrier there
  std::map<uint32_t, std::vector<int>> last_of_;     ///< last node of each thread of a CTA that has ended
  std::map<std::array<uint32_t, 3>, ClusterBarrier> cluster_barriers_;
  std::map<const machine::Inst*, std::vector<std::vector<int>>> copy_arrives_;
  std::vector<Waiter> overtaken_;  ///< of blocks that are over
  std::map<std::pair<uint32_t, uint32_t>, Named> named_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, std::pair<machine::LaneMask, Named>> warp_syncs_;
  std::map<Place, std::vector<Signal>> locations_;
  std::map<Place, std::vector<ByteAccess>> bytes_;
  std::map<std::pair<const machine::Inst*, const machine::Warp*>, int> issue_instruction_;
  std::vector<int> issues_;  ///< operations that signal an mbarrier
  Found direct_;             ///< found while it ran: needs no order
  int next_instruction_ = 0;
};

inline int ReferenceChecker::thread_of(const machine::Warp& w, int lane) {
  const auto [at, fresh] = thread_index_.try_emplace({w.cta->linear, w.index, lane}, static_cast<int>(threads_.size()));
  if (fresh) {
    threads_.emplace_back();
    threads_.back().cta = w.cta->linear;
    const machine::Dim& c = launch_->config.cluster;
    threads_.back().cluster = {w.cta->id[0] / c.x, w.cta->id[1] / c.y, w.cta->id[2] / c.z};
    threads_.back().warp = w.index;
    threads_.back().lane = lane;
  }
  return at->second;
}

inline int ReferenceChecker::add_node() {
  order_.emplace_back();
  wide_.emplace_back();
  any_.emplace_back();
  time_.emplace_back();
  return static_cast<int>(order_.size()) - 1;
}

inline int ReferenceChecker::step(int thread) {
  const int n = add_node();
  Thread& t = threads_[static_cast<size_t>(thread)];
  edge(t.last, n);
  t.last = n;
  return n;
}

inline void ReferenceChecker::observe(int thread, int at, Source source, bool acquire, Distance reach, Distance from,
                                      const Place& where) {
  if (reach < from) source.node = kNone;
  if (!acquire) {
    threads_[static_cast<size_t>(thread)].seen.push_back({source, from, where});
    return;
  }
  edge(source.node, at);
  wide_edge(source.wide, at);
}

inline bool ReferenceChecker::take_over(const Seen& seen, int at, Distance reach) {
  wide_edge(seen.source.wide, at);
  if (reach < seen.from) return false;
  edge(seen.source.node, at);
  return true;
}

inline void ReferenceChecker::used_from_outside(const machine::Cta& owner, machine::Warp& warp,
                                                const machine::Inst* inst, std::vector<int> nodes) {
  if (warp.cta != &owner) remote_uses_.push_back({owner.linear, line_of(inst), std::move(nodes)});
}

inline void ReferenceChecker::cta_end(machine::Cta& cta) {
  for (const auto& [place, index] : barrier_at_) {
    if (place.first != cta.linear || index == kNone) continue;
    for (const Waiter& w : barriers_[static_cast<size_t>(index)].overtaken) overtaken_.push_back(w);
  }
  std::vector<int>& last = last_of_[cta.linear];
  for (const Thread& t : threads_) {
    if (t.cta == cta.linear && t.last != kNone) last.push_back(t.last);
  }
  for (const int index : remote_ops_[cta.linear]) {  // those under way are the machine's to report
    const Op& o = ops_[static_cast<size_t>(index)];
    if (o.counted >= o.bytes) remote_uses_.push_back({cta.linear, o.line, {o.write_end}});
  }
}

inline void ReferenceChecker::touch(const Place& first, uint32_t bytes, ByteAccess a, uint32_t mask) {
  auto [region, cta, address] = first;
  for (uint64_t b = address; b < address + bytes; b++) {
    if ((mask >> (b - address) % 16 & 1) != 0) bytes_[{region, cta, b}].push_back(a);
  }
}

inline void ReferenceChecker::access(const machine::Access& a) {
  using Kind = machine::Access::Kind;
  if (a.region == machine::Region::Local) return;
  const bool strong = a.sem != machine::Sem::Weak;
  const machine::Scope scope = !strong ? machine::Scope::None
                               : a.sem == machine::Sem::Volatile || a.scope == machine::Scope::None
                                   ? machine::Scope::Sys
                                   : a.scope;
  const int instruction = next_instruction_++;
  const Distance reach = reach_of(scope);
  std::vector<int> nodes;
  machine::for_lanes(a.mask, [&](int l) {
    const int t = thread_of(*a.warp, l), n = step(t);
    nodes.push_back(n);
    Thread& me = threads_[static_cast<size_t>(t)];
    const Place place{a.region, a.owner != nullptr ? a.owner->linear : 0, a.address[l]};
    if (strong && (a.kind == Kind::Read || a.kind == Kind::Atomic)) {
      const bool acquire = acquires(a.sem);
      if (acquire) {  // §8.8: a strong read followed by an acquire operation on the same location
        std::erase_if(me.seen, [&](const Seen& s) { return s.where == place && take_over(s, n, reach); });
      }
      for (const Signal& s : locations_[place]) {
        any_edge(s.node, n);
        const Distance from = distance(s.thread, t);
        observe(t, n, {s.reach >= from ? s.source[from] : kNone, s.source[0]}, acquire, reach, from, place);
      }
    }
    const bool write = a.kind != Kind::Read;
    ByteAccess mine{write, false, t, kNone, n, n, instruction, line_of(a.inst), scope, a.address[l], a.bytes, false};
    mine.inst = a.inst;
    machine::for_lanes(a.mask, [&](int other) {
      const machine::LaneMask both = machine::LaneMask{1} << l | machine::LaneMask{1} << other;
      if (!strong && a.address[other] == a.address[l] && machine::stores_alike(a, both))
        mine.as_one.insert(thread_of(*a.warp, other));
    });
    touch(place, a.bytes, mine);
    if (!strong || !write) return;
    for (Distance d = 0; d <= reach && releases(a.sem); d++) me.released[d][place] = n;
    if (a.kind == Kind::Write) locations_[place].clear();  // a release sequence: one store and the atomics after it
    Signal s{n, t, {}, reach};
    for (Distance d = 0; d < kDistances; d++) {
      // Of the fence and of the operation that may stand at the head of the release pattern the later one knows more.
      const auto at = me.released[d].find(place);
      s.source[d] = std::max(me.release_fence[d], at == me.released[d].end() ? kNone : at->second);
    }
    locations_[place].push_back(s);
  });
  if (a.region == machine::Region::Shared) used_from_outside(*a.owner, *a.warp, a.inst, std::move(nodes));
}

inline void ReferenceChecker::fence(machine::Warp& warp, const machine::Inst&, machine::LaneMask mask,
                                    const machine::FenceInfo& info) {
  using Kind = machine::FenceInfo::Kind;
  const bool all = info.kind == Kind::ProxyAsync;
  const bool shared = all || info.kind == Kind::ProxyAsyncSharedCta || info.kind == Kind::ProxyAsyncSharedCluster ||
                      info.kind == Kind::ProxyGenericReleaseSharedCta ||
                      info.kind == Kind::ProxyGenericAcquireSharedCluster;
  const bool global = all || info.kind == Kind::ProxyAsyncGlobal;
  const bool orders_threads =
      info.kind == Kind::Thread || info.kind == Kind::SyncRestrictAcquire || info.kind == Kind::SyncRestrictRelease;
  machine::for_lanes(mask, [&](int l) {
    const int t = thread_of(warp, l), n = step(t);
    Thread& me = threads_[static_cast<size_t>(t)];
    if (shared || global) me.proxy_fences.push_back({n, shared, global});
    for (Barrier& b : barriers_) {
      if (b.init_thread != t) continue;
      if (shared || info.kind == Kind::MbarrierInit) b.init_fences.push_back(n);
      if (info.kind == Kind::MbarrierInit) b.fenced.push_back(n);
    }
    if (!orders_threads) return;
    const Distance reach = reach_of(info.scope);
    if (acquires(info.sem)) std::erase_if(me.seen, [&](const Seen& s) { return take_over(s, n, reach); });
    for (Distance d = 0; d <= reach && releases(info.sem); d++) me.release_fence[d] = n;
  });
}

inline void ReferenceChecker::barrier(const machine::BarrierEvent& e) {
  using Kind = machine::BarrierEvent::Kind;
  const uint32_t cta = e.warp->cta->linear;
  const auto complete = [&](Named& b) {
    const int all = add_node();
    for (const int n : b.arrived) edge(n, all);
    for (const int t : b.waiting) edge(all, step(t));
    b = Named{};
  };
  const auto arrive = [&](Named& b) {
    machine::for_lanes(e.mask, [&](int l) {
      const int t = thread_of(*e.warp, l);
      b.arrived.push_back(step(t));
      if (e.kind != Kind::Arrive) b.waiting.push_back(t);
    });
  };
  if (e.kind == Kind::ClusterComplete) {
    const machine::Cta& c = *e.warp->cta;
    const machine::Dim& size = launch_->config.cluster;
    ClusterBarrier& b = cluster_barriers_[{c.id[0] / size.x, c.id[1] / size.y, c.id[2] / size.z}];
    b.completed = std::exchange(b.arrived, {});
  } else if (e.kind == Kind::ClusterArrive || e.kind == Kind::ClusterWait) {
    machine::for_lanes(e.mask, [&](int l) {
      const int t = thread_of(*e.warp, l), n = step(t);
      const Thread& me = threads_[static_cast<size_t>(t)];
      ClusterBarrier& b = cluster_barriers_[me.cluster];
      if (e.kind == Kind::ClusterArrive) {
        const Source source = e.relaxed ? Source{me.release_fence[1], me.release_fence[0]} : Source{n, n};
        b.arrived.push_back({source, n, 1, 1, 0});
        return;
      }
      for (const Arrival& a : b.completed) {
        any_edge(a.node, n);
        wide_edge(a.source.wide, n);
        edge(a.source.node, n);
      }
    });
  } else if (e.kind == Kind::Complete) {
    complete(named_[{cta, e.id}]);
  } else if (e.kind == Kind::WarpSync) {
    auto& [lanes, b] = warp_syncs_[{cta, e.warp->index, e.id}];
    arrive(b);
    lanes |= e.mask;
    if ((e.id & e.warp->live & ~lanes) == 0) {
      complete(b);
      lanes = 0;
    }
  } else {
    arrive(named_[{cta, e.id}]);
  }
}

inline void ReferenceChecker::mbarrier(const machine::MbarrierEvent& e) {
  using Kind = machine::MbarrierEvent::Kind;
  int& index = barrier_at_.try_emplace({e.owner->linear, e.offset}, kNone).first->second;
  if (e.kind == Kind::Init) {
    index = static_cast<int>(barriers_.size());
    barriers_.emplace_back();
    barriers_.back().init_thread = thread_of(*e.warp, __builtin_ctz(e.mask));
    barriers_.back().init_node = step(barriers_.back().init_thread);
    return;
  }
  Barrier& b = barriers_[static_cast<size_t>(index)];
  const uint32_t line = line_of(e.inst);
  const Place place{machine::Region::Shared, e.owner->linear, e.offset};
  if (e.kind == Kind::PhaseComplete) {
    b.completed = e.phase + 1;
    b.completion = add_node();
    for (const Arrival& a : b.arrivals) time_edge(a.node, b.completion);
    for (const Op& o : ops_) {
      if (o.barrier == index) time_edge(o.start, b.completion);
    }
    for (const auto& [copies, phase] : b.copies) {
      if (phase != e.phase) continue;
      for (const int copy : copies) time_edge(ops_[static_cast<size_t>(copy)].start, b.completion);
    }
    b.overtaken.clear();
    for (Waiter& w : b.waiters) {
      if (w.phase + 1 != e.phase || !b.copies.empty()) continue;  // of an arrive of cp.async nothing is known
      w.completion = b.completion;
      b.overtaken.push_back(std::move(w));
    }
    b.waiters.clear();
  }
  if (e.kind == Kind::CompleteTx && e.op != 0) {
    Op& o = ops_[static_cast<size_t>(op_index_.at(e.op))];
    o.counted += static_cast<uint64_t>(e.bytes);
    o.phase = e.phase;
  }
  if (e.kind == Kind::CopyArrive) {
    auto& pending = copy_arrives_[e.inst];
    if (!pending.empty()) {
      b.copies.emplace_back(pending.front(), e.phase);
      pending.erase(pending.begin());
    }
  }
  if (e.warp == nullptr) return;
  const Distance reach = reach_of(e.scope);
  std::vector<int> nodes;
  machine::for_lanes(e.mask, [&](int l) {
    const int t = thread_of(*e.warp, l);
    const Thread& me = threads_[static_cast<size_t>(t)];
    // What came before is asked whether it follows the init: what a wait brings does not vouch for the barrier that is
    // waited for.
    uses_.push_back({me.last, t, index, line, e.warp->cta != e.owner});
    const int n = step(t);
    nodes.push_back(n);
    if (e.kind == Kind::Arrive || e.kind == Kind::ArriveDrop || e.kind == Kind::ArriveExpectTx) {
      if (e.phase > b.observed) direct_.emplace("phase-overrun", line);
      const Distance to = distance(t, b.init_thread);
      const Source source = releases(e.sem) ? Source{n, n} : Source{me.release_fence[to], me.release_fence[0]};
      b.arrivals.push_back({source, n, to, reach, e.phase});
    }
    if (e.kind != Kind::TestTrue || e.phase + 1 == 0) return;  // phase −1 of a fresh barrier brings nothing
    time_edge(b.completion, n);
    b.observed = std::max(b.observed, e.phase + 1);
    const bool acquire = acquires(e.sem);
    for (const Arrival& a : b.arrivals) {
      if (a.phase >= b.completed) continue;
      any_edge(a.node, n);
      observe(t, n, {a.reach >= a.from ? a.source.node : kNone, a.source.wide}, acquire, reach, a.from, place);
    }
    const auto see_copy = [&](const Op& o) {
      any_edge(o.write_end, n);
      observe(t, n, {o.write_end, o.write_end}, acquire, reach, 0, place);
    };
    for (const Op& o : ops_) {
      if (o.barrier == index && o.counted >= o.bytes && o.phase <= e.phase) see_copy(o);
    }
    for (const auto& [copies, phase] : b.copies) {
      if (phase > e.phase) continue;
      for (const int o : copies) see_copy(ops_[static_cast<size_t>(o)]);
    }
  });
  if (e.kind == Kind::TestTrue) {
    const uint32_t warp = e.warp->cta->linear << 8 | e.warp->index;
    const bool again = std::any_of(b.waiters.begin(), b.waiters.end(), [&](const Waiter& w) {
      return w.warp == warp && w.phase == e.phase && (e.mask & ~w.mask) == 0;
    });
    if (!again) b.waiters.push_back({warp, line, e.mask, e.phase, nodes});
  }
  used_from_outside(*e.owner, *e.warp, e.inst, std::move(nodes));
}

inline void ReferenceChecker::async_op(const machine::AsyncOpInfo& info, machine::AsyncOpInfo::Milestone milestone) {
  using Kind = machine::AsyncOpInfo::Kind;
  if (milestone != machine::AsyncOpInfo::Milestone::Issued) return;
  const int index = static_cast<int>(ops_.size());
  op_index_[info.id] = index;
  Op o;
  o.kind = info.kind;
  o.thread = thread_of(*info.warp, info.lane);
  o.line = line_of(info.inst);
  o.bytes = info.bytes;
  Thread& me = threads_[static_cast<size_t>(o.thread)];
  o.start = add_node();
  edge(me.last, o.start);
  me.last = o.start;
  o.read_end = add_node();
  o.write_end = add_node();
  edge(o.read_end, o.write_end);
  const auto [instruction, fresh] = issue_instruction_.try_emplace({info.inst, info.warp}, next_instruction_);
  if (fresh) next_instruction_++;
  o.instruction = instruction->second;
  if (info.mbarrier_owner != nullptr) {
    o.barrier = barrier_at_.at({info.mbarrier_owner->linear, info.mbarrier});
    issues_.push_back(index);
    for (const machine::Cta* to : {info.destination_owner, info.mbarrier_owner}) {
      if (to != nullptr && to != info.warp->cta) remote_ops_[to->linear].push_back(index);
    }
  } else if (info.kind == Kind::CpAsync) {
    me.copies.push_back(index);
    me.copies_open.push_back(index);
  } else {
    me.bulk_open.push_back(index);
  }
  ops_.push_back(o);
  if (info.kind == Kind::BulkPrefetch) return;
  const bool remote_reduction = info.kind == Kind::RemoteReduce;
  const bool reduction = info.kind == Kind::BulkReduce || remote_reduction,
             bulk = info.kind != Kind::CpAsync && info.kind != Kind::RemoteStore && !remote_reduction;
  const auto cta_of = [](const machine::Cta* c) { return c == nullptr ? 0 : c->linear; };
  if (info.source_region != machine::Region::Local)
    touch({info.source_region, cta_of(info.source_owner), info.source}, info.bytes,
          {false, false, o.thread, index, o.start, o.read_end, o.instruction, o.line, machine::Scope::None, info.source,
           info.bytes, bulk});
  touch({info.destination_region, cta_of(info.destination_owner), info.destination}, info.bytes,
        {true, reduction, o.thread, index, o.start, o.write_end, o.instruction, o.line, machine::Scope::None,
         info.destination, info.bytes, bulk},
        info.byte_mask);
}

inline void ReferenceChecker::group(const machine::GroupEvent& e) {
  using Kind = machine::GroupEvent::Kind;
  machine::for_lanes(e.mask, [&](int l) {
    const int t = thread_of(*e.warp, l), n = step(t);
    Thread& me = threads_[static_cast<size_t>(t)];
    const auto finish = [&](const std::vector<int>& ops, bool reading_only) {
      for (const int o : ops)
        edge(reading_only ? ops_[static_cast<size_t>(o)].read_end : ops_[static_cast<size_t>(o)].write_end, n);
    };
    const auto finish_groups = [&](const std::vector<std::vector<int>>& groups, bool reading_only) {
      for (size_t g = 0; g + e.allowed < groups.size(); g++) finish(groups[g], reading_only);
    };
    switch (e.kind) {
      case Kind::BulkCommit:
        me.bulk_groups.push_back(std::exchange(me.bulk_open, {}));
        break;
      case Kind::CpAsyncCommit:
        me.copy_groups.push_back(std::exchange(me.copies_open, {}));
        break;
      case Kind::BulkWait:
        finish_groups(me.bulk_groups, false);
        break;
      case Kind::BulkWaitRead:
        finish_groups(me.bulk_groups, true);
        break;
      case Kind::CpAsyncWait:
        if (e.inst->sub != 0) {  // wait_all: uncommitted ones too
          finish(me.copies, false);
        } else {
          finish_groups(me.copy_groups, false);
        }
        break;
      case Kind::CpAsyncMbarrierArrive:
        copy_arrives_[e.inst].push_back(me.copies);
        break;
    }
  });
}

// --- the comparison
// ---------------------------------------------------------------------------------------------------

inline std::vector<std::vector<bool>> ReferenceChecker::close(const std::vector<std::vector<int>>& predecessors) {
  const size_t n = predecessors.size();
  std::vector<std::vector<bool>> before(n, std::vector<bool>(n));
  for (size_t k = 0; k < n; k++) {  // edges only lead to later nodes, so one pass does
    for (const int p : predecessors[k]) {
      const std::vector<bool>& more = before[static_cast<size_t>(p)];
      for (size_t j = 0; j < k; j++) {
        if (more[j]) before[k][j] = true;
      }
      before[k][static_cast<size_t>(p)] = true;
    }
  }
  return before;
}

inline bool ReferenceChecker::morally_strong(const ByteAccess& a, const ByteAccess& b) const {
  if (a.strong == machine::Scope::None || b.strong == machine::Scope::None) return false;
  if (a.address != b.address || a.bytes != b.bytes) return false;  // §8.7: complete overlap
  return std::min(reach_of(a.strong), reach_of(b.strong)) >= distance(a.thread, b.thread);
}

inline std::string ReferenceChecker::judge_fence(const ByteAccess& write, const ByteAccess& later,
                                                 machine::Region region) const {
  bool by_writer = false, on_path = false;
  for (size_t t = 0; t < threads_.size(); t++) {
    for (const ProxyFence& f : threads_[t].proxy_fences) {
      if (!(region == machine::Region::Global ? f.global : f.shared)) continue;
      if (!ordered(write.node, f.node) || !ordered(f.node, later.node)) continue;
      on_path = true;
      by_writer = by_writer || static_cast<int>(t) == write.thread;
    }
  }
  return by_writer ? "" : on_path ? "proxy-fence-misplaced" : "missing-proxy-fence";
}

inline std::string ReferenceChecker::judge(const ByteAccess& earlier, const ByteAccess& later, machine::Region region,
                                           bool* excused) const {
  if ((!earlier.write && !later.write) || (earlier.op != kNone && earlier.op == later.op)) return {};
  if (ordered(earlier.end, later.node)) {
    return earlier.op == kNone && earlier.write && later.op != kNone && later.asynchronous_proxy
               ? judge_fence(earlier, later, region)
               : std::string();
  }
  if (earlier.op == kNone && later.op == kNone && morally_strong(earlier, later)) {
    *excused = true;
    return {};
  }
  // Whatever the order, the value that these threads agree on stays. (In a loop only if all of them write again.)
  if (earlier.op == kNone && later.op == kNone && earlier.write && earlier.inst == later.inst && later.write &&
      std::includes(later.as_one.begin(), later.as_one.end(), earlier.as_one.begin(), earlier.as_one.end()) &&
      later.as_one.count(earlier.thread) != 0) {
    *excused = true;
    return {};
  }
  // Who reads what it wrote itself reads that value.
  if (earlier.op == kNone && later.op == kNone && earlier.write && !later.write &&
      earlier.as_one.count(later.thread) != 0) {
    *excused = true;
    return {};
  }
  if (earlier.op == kNone && distance(earlier.thread, later.thread) > 0 && ordered_wide(earlier.node, later.node))
    return "scope-too-narrow";
  if (earlier.op == kNone && later.op == kNone) return "data-race";
  if (!earlier.write) return earlier.op != kNone && later.op == kNone ? "source-overwritten" : "refill-before-release";
  if (!later.write) return earlier.op != kNone ? "async-read-before-complete" : "data-race";
  if (earlier.reduction && later.reduction) {
    *excused = true;
    return {};
  }
  if (earlier.op == kNone) return "data-race";
  if (later.op != kNone && earlier.instruction == later.instruction) return kSameInstruction;
  return ordered(earlier.node, later.node) ? kOverwritten : "data-race";
}

inline ReferenceChecker::Verdict ReferenceChecker::verdict() {
  before_order_ = close(order_);
  before_wide_ = close(wide_);
  before_any_ = close(any_);
  before_time_ = close(time_);
  Verdict v;
  v.nodes = order_.size();
  v.all = direct_;
  // Is the init known, and to others than the threads of the block? What fence.mbarrier_init covers any signal tells.
  const auto fenced = [&](const Barrier& b, int at) {
    return std::any_of(b.fenced.begin(), b.fenced.end(), [&](int f) { return ordered_any(f, at); });
  };
  const auto visible = [&](const Barrier& b, int at) {
    return fenced(b, at) ||
           std::any_of(b.init_fences.begin(), b.init_fences.end(), [&](int f) { return ordered(f, at); });
  };
  for (const Use& u : uses_) {
    const Barrier& b = barriers_[static_cast<size_t>(u.barrier)];
    if (u.thread == b.init_thread) continue;
    if (u.node == kNone ||
        (!ordered(b.init_node, u.node) && !fenced(b, u.node) && !(u.remote && ordered_any(b.init_node, u.node)))) {
      v.all.emplace("barrier-not-initialized", u.line);
    } else if (u.remote && !visible(b, u.node)) {
      v.all.emplace("barrier-init-not-visible", u.line);
    }
  }
  for (const int index : issues_) {
    const Op& o = ops_[static_cast<size_t>(index)];
    const Barrier& b = barriers_[static_cast<size_t>(o.barrier)];
    const bool met = distance(o.thread, b.init_thread) > 0 && ordered_any(b.init_node, o.start);
    if (!ordered(b.init_node, o.start) && !fenced(b, o.start) && !met) {
      v.all.emplace("barrier-not-initialized", o.line);
    } else if (!visible(b, o.start)) {
      v.all.emplace("barrier-init-not-visible", o.line);
    }
  }
  for (const RemoteUse& u : remote_uses_) {
    const auto ended = last_of_.find(u.owner);
    if (ended == last_of_.end()) continue;
    const bool over = std::any_of(ended->second.begin(), ended->second.end(), [&](int last) {
      return std::all_of(u.nodes.begin(), u.nodes.end(), [&](int n) { return ordered_any(n, last); });
    });
    if (!over) v.all.emplace("remote-cta-gone", u.line);
  }
  for (const Waiter& w : overtaken_) {
    const bool in_time = std::any_of(w.nodes.begin(), w.nodes.end(), [&](int n) {
      return before_time_[static_cast<size_t>(w.completion)][static_cast<size_t>(n)];
    });
    if (!in_time) v.all.emplace("phase-overrun", w.line);
  }
  v.nearest = v.all;

  for (const auto& [place, list] : bytes_) {
    const machine::Region region = std::get<0>(place);
    size_t first_of_all = list.size(), first_of_nearest = list.size();
    bool excused = false, excused_before = false;
    for (size_t k = 0; k < list.size(); k++) {
      const ByteAccess& later = list[k];
      // All earlier accesses.
      for (size_t i = 0; i < k; i++) {
        const ByteAccess& earlier = list[i];
        if (earlier.op == kNone && later.op == kNone && earlier.instruction == later.instruction && later.write &&
            later.strong == machine::Scope::None && later.as_one.count(earlier.thread) == 0)
          v.lanes_collide = true;
        // What a write has covered in the meantime is out of the story: a thread's read, then the copy that overwrites
        // it, then who saw that copy complete are in order on this byte, though the completion tells nothing of the
        // thread. It needs no proxy fence any more either.
        const bool covered = std::any_of(
            list.begin() + static_cast<std::ptrdiff_t>(i) + 1, list.begin() + static_cast<std::ptrdiff_t>(k),
            [&](const ByteAccess& m) { return m.write && ordered(earlier.end, m.node) && ordered(m.end, later.node); });
        if (covered) continue;
        const std::string id = judge(earlier, later, region, &excused);
        if (id.empty()) continue;
        v.all.emplace(id, later.line);
        if (first_of_all == list.size()) first_of_all = k;
      }
      if (first_of_all == k) excused_before = excused;
      // The nearest ones: reads of one instruction that are unordered are one finding.
      std::map<int, std::set<std::string>> ids;
      std::set<std::pair<int, machine::Scope>> readers;
      bool ignored = false;
      for (size_t i = k; i-- > 0;) {
        const ByteAccess& earlier = list[i];
        if (!earlier.write && earlier.op == kNone && !readers.insert({earlier.thread, earlier.strong}).second) continue;
        const std::string id = judge(earlier, later, region, &ignored);
        if (!id.empty())
          ids[earlier.write         ? kNone
              : earlier.op != kNone ? next_instruction_ + earlier.op
                                    : earlier.instruction]
              .insert(id);
        // Writes of one value by one execution of an instruction are one write.
        const bool together = earlier.instruction == later.instruction && later.as_one.count(earlier.thread) != 0;
        if (!earlier.write || together) continue;
        const bool more = i > 0 && list[i - 1].instruction == earlier.instruction && list[i - 1].op == kNone &&
                          earlier.op == kNone && earlier.as_one.count(list[i - 1].thread) != 0;
        if (!more) break;
      }
      for (const auto& [source, of_source] : ids) {
        v.nearest.emplace(of_source.count("data-race") != 0 ? "data-race" : *of_source.begin(), later.line);
        if (first_of_nearest == list.size()) first_of_nearest = k;
      }
    }
    if (first_of_all != first_of_nearest) {
      v.hidden++;
      if (excused_before) v.exempted++;
    }
  }
  return v;
}

}  // namespace handoff::check::testing
