// How often the banks of shared memory serve one warp-level access, and how often they would without conflicts.
#pragma once

#include <cstdint>

#include "grader/emulator/machine/observer.h"

namespace handoff::trace {

/// What one access of a warp costs shared memory. A wavefront is one pass through its banks.
struct Wavefronts {
  uint32_t taken = 0;    ///< wavefronts
  uint32_t minimum = 0;  ///< wavefronts that lanes of this width need where no two of them meet in a bank
  uint32_t ways = 0;     ///< the most words that one bank had to serve for the lanes of one pass; 1: no conflict
};

/// What the lanes of an access do with their words, as far as the banks care.
enum class SharedOp : uint8_t {
  Load,        ///< ld
  LoadMatrix,  ///< ldmatrix: a lane gives the address of a row of 16 bytes
  Store,       ///< st, and stmatrix
  Atomic       ///< atom and red
};

/// The operation of an access whose instruction was written as `statement`.
SharedOp shared_op(machine::Access::Kind kind, const ptx::Statement& statement);

/// Counts the wavefronts of an access of `bytes` (1, 2, 4, 8 or 16) by each lane of `mask` (not empty) at the
/// shared::cta offsets `address`[32]. Entries of lanes outside `mask` are not looked at.
Wavefronts count_wavefronts(SharedOp op, uint32_t bytes, machine::LaneMask mask, const uint64_t* address);

}  // namespace handoff::trace
