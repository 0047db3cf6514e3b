// Runs warps. See interpreter.cc for how fragments, parking and spinning work.
#pragma once

#include <cstdint>
#include <string>

#include "grader/emulator/machine/warp.h"

namespace handoff::machine {

/// Runs one ready fragment of `w` until it blocks, parks, diverges from the warp's other fragments, passes virtual time
/// `until`, or has executed `limit` instructions. Returns the number of warp-instructions executed. Throws Fault.
uint64_t run_slice(Warp& w, uint64_t until, uint32_t limit);

/// Lanes parked at a .sync/.aligned instruction that can never be joined (nothing else of the warp can run or be
/// woken): the fault.
void report_stuck_collective(Warp& w);
/// Is the fragment blocked at bar.warp.sync?
bool waits_for_warp_sync(const Fragment& f);
/// In a deadlock: lanes parked at such an instruction while the lanes they miss have gone past it, are stuck further on
/// and have never executed it. Then that is the cause: the fault.
void report_passed_collective(Warp& w);

/// What a fragment that cannot run waits for, for deadlock reports: place of the wait, "full, parity 0".
struct Waiter {
  SourcePlace place;  ///< of the wait
  std::string what;   ///< what it waits for
};
/// The wait of fragment `f` of warp `w`, which is not Ready.
Waiter waiter_of(const Warp& w, const Fragment& f);

}  // namespace handoff::machine
