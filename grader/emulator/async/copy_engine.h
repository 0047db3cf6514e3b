// What bulk copies and tensor copies have in common: an operation on its way through the copy engine of an SM.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "grader/emulator/async/async_state.h"
#include "grader/emulator/machine/timing.h"

namespace handoff::async {

/// An operation of the copy engine. Who issues one fills `info` (all but `id`) and the fields below, then calls
/// start().
struct Copy {
  machine::AsyncOpInfo info{};  ///< what observers are told
  bool reduces = false;         ///< the destination keeps its contents until it is combined with
  const char* noun = "";        ///< for messages: "a bulk copy"
  // Set by start():
  machine::Domain* domain = nullptr;  ///< whose events complete it
  std::shared_ptr<Group> group;       ///< of operations that signal no mbarrier
  std::vector<std::byte> staging;     ///< info.bytes bytes between source read and destination written
  uint32_t pieces_left = 1;           ///< pieces of `staging` that are not written yet

  virtual ~Copy() = default;
  /// Fills `staging` from the source.
  virtual void read() = 0;
  /// Writes bytes [from, from + bytes) of `staging` to where they belong; both are multiples of 16.
  virtual void write(uint32_t from, uint32_t bytes) = 0;
};

/// Issues `copy` for a lane of `w`: tells the observer, poisons a destination in shared memory, books the copy engine
/// and queues the milestones. Reports `barrier-overwritten`. The operands must have been checked.
void start(Warp& w, const Inst& inst, int lane, std::shared_ptr<Copy> copy);
/// Makes the lanes of one instruction issue one behind the other: to be called behind start() for each lane of `mask`.
inline void space_out(Warp& w, int lane, LaneMask mask) {
  w.time += lane == 31 - __builtin_clz(mask) ? 0 : machine::timing::kTmaIssue;
}

/// Operands of copies do not fit into Inst: they lie in the operand pool, an address in three entries.
inline constexpr uint32_t kPooledAddress = 3;
/// Writes the entries [at, at + kPooledAddress). False: the offset does not fit.
bool pool_address(const machine::MemoryOperand& operand, std::vector<uint32_t>& pool, uint32_t at);
/// The address of a lane; `entries` are the three.
uint64_t pooled_address(const Warp& w, const uint32_t* entries, int lane);

}  // namespace handoff::async
