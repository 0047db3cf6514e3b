// For reports of hangs: where could threads that wait still come to, if they went on?
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "grader/emulator/machine/warp.h"

namespace handoff::machine {

/// Answers from the text of the program: conditions are not looked at, so "no" is certain and "yes" is not.
class Reachability {
 public:
  /// An instruction that may signal an mbarrier, by an arrival or by bytes; an arrival of bar/barrier `id`; one of
  /// barrier.cluster.
  enum class Goal : uint8_t { Signal, NamedBarrier, ClusterBarrier };
  /// Of the program of `launch`, which must outlive this.
  explicit Reachability(const Launch& launch) : launch_(launch) {}

  /// Is there a way for fragment `f` to such an instruction? `forward`: without the next turn of a loop.
  bool reaches(const Fragment& f, Goal goal, uint32_t id = 0, bool forward = false);
  /// Is fragment `f` of warp `w` blocked at a barrier of its warp, block or cluster, or on the way to it by lanes of
  /// its warp, that waits for fragment `o` of `x`? Where a bar names how many threads it takes, it waits for those that
  /// can come to it.
  bool waits_for(const Warp& w, const Fragment& f, const Warp& x, const Fragment& o);
  /// Is fragment `f` of warp `w` blocked at such a barrier, to which some thread that waits for an mbarrier cannot
  /// come, while `f` could signal one behind it? Then the barrier, not the mbarrier, stands in the wrong place.
  bool misplaced_barrier(const Warp& w, const Fragment& f);

 private:
  bool is(const Inst& inst, Goal goal, uint32_t id) const;

  const Launch& launch_;
  std::map<std::tuple<uint32_t, uint32_t, Goal, uint32_t, bool>, bool> known_;  // pc, stack, goal, id, forward
};

/// Is the fragment blocked at, or does it spin on, an mbarrier?
bool waits_for_mbarrier(const Fragment& f);

}  // namespace handoff::machine
