// Clocks of the happens-before checker.
//
// A component counts something that only grows: for a lane of a warp the warp's synchronisation steps, for an mbarrier
// the phases whose completion was observed, for a thread's bulk or cp.async groups the operations known complete. A
// clock says of each component how far it is known; joining is the maximum of each. The lanes of a warp share one
// number until they differ. Clocks are shared, and one that is shared never changes: a join that changes nothing gives
// back the same object, so a thousand threads behind one barrier hold one clock.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace handoff::check {

class Clock;
/// A clock that others may hold too; nullptr is the clock that knows nothing.
using ClockPtr = std::shared_ptr<const Clock>;

/// See the top of the file.
class Clock {
 public:
  /// How far lane `lane` of warp `key` is known. 0: not at all.
  uint32_t warp(uint32_t key, int lane) const;
  /// Is every lane of warp `key` known up to `n`?
  bool all_lanes(uint32_t key, uint32_t n) const;
  /// How far component `key` is known.
  uint64_t other(uint64_t key) const;
  /// `a` and `b` together.
  static ClockPtr join(const ClockPtr& a, const ClockPtr& b);
  /// `a` with the lanes of `mask` of warp `key` known at least up to `n`. Who moves in the only reference to a clock
  /// gets that object back, changed in place.
  static ClockPtr with_warp(ClockPtr a, uint32_t key, uint32_t mask, uint32_t n);
  /// `a` with component `key` known at least up to `value`.
  static ClockPtr with(const ClockPtr& a, uint64_t key, uint64_t value);
  /// `a` with everything that `b` knows of asynchronous work, and nothing of what it knows of warps.
  static ClockPtr with_others(const ClockPtr& a, const ClockPtr& b);

 private:
  using Lanes = std::array<uint32_t, 32>;
  struct WarpEntry {
    uint32_t key;
    uint32_t all;                  ///< of every lane, if `lanes` is null
    std::shared_ptr<Lanes> lanes;  ///< else of each; never changed while two entries share it
    uint32_t at(int lane) const { return lanes ? (*lanes)[static_cast<size_t>(lane)] : all; }
  };
  /// The entry of warp `key`; nullptr if there is none.
  const WarpEntry* find(uint32_t key) const {
    if (warps_.empty() || key < warps_.front().key) return nullptr;
    // Behind a barrier of a block all its warps are known: the keys follow each other.
    if (const size_t guess = key - warps_.front().key; guess < warps_.size() && warps_[guess].key == key)
      return &warps_[guess];
    const auto it =
        std::lower_bound(warps_.begin(), warps_.end(), key, [](const WarpEntry& e, uint32_t k) { return e.key < k; });
    return it != warps_.end() && it->key == key ? &*it : nullptr;
  }
  static bool covers(const WarpEntry& a, const WarpEntry& b);
  static WarpEntry join(const WarpEntry& a, const WarpEntry& b);
  bool covers(const Clock& b) const;

  std::vector<WarpEntry> warps_;                       // sorted by key
  std::vector<std::pair<uint64_t, uint64_t>> others_;  // sorted by key
};

/// What a thread knows, in the shades that the rules ask for.
struct Knowledge {
  ClockPtr order;  ///< ordered before it (release/acquire with scopes that cover both)
  ClockPtr any;    ///< the same, as if every operation were acquire/release at the widest scope: tells a missing
                   ///< qualifier from no order
  ClockPtr fenced_shared;  ///< ordered, and made visible to the async proxy by a proxy fence of the thread that made
                           ///< the access
  ClockPtr fenced_global;  ///< the same for global memory
  ClockPtr path_shared;    ///< ordered, and some thread on the path executed a proxy fence
  ClockPtr path_global;    ///< the same for global memory
  ClockPtr fenced_tensor;  ///< known by any signal, and tcgen05.fence::before_thread_sync came before the first of them
  ClockPtr wide;     ///< as `order`, if every scope were wide enough: tells a scope too narrow from a relaxed signal
  ClockPtr in_time;  ///< before it in time, though perhaps not visible: as `any`, and what the issuers of asynchronous
                     ///< operations known complete had done when they issued them

  /// The same clocks, by identity of the objects.
  bool operator==(const Knowledge&) const = default;
  /// Learns everything that `k` knows.
  void join(const Knowledge& k);
  /// Learns only what needs no order: `any`, `in_time`, and what the tcgen05 fences add to it (they make up for a
  /// relaxed signal).
  void join_any(const Knowledge& k) {
    const bool same = in_time == any && k.in_time == k.any;
    any = Clock::join(any, k.any);
    in_time = same ? any : Clock::join(in_time, k.in_time);
    fenced_tensor = Clock::join(fenced_tensor, k.fenced_tensor);
  }
};

}  // namespace handoff::check
