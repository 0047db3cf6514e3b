// Register colouring: virtual registers of a function get slots of the warp's register file by liveness.
#pragma once

#include <cstdint>
#include <vector>

#include "grader/emulator/machine/instruction.h"
#include "grader/emulator/ptx/module.h"

namespace handoff::machine {

/// What one statement reads and writes, by register index, and where control goes.
struct Flow {
  /// Registers read; registers written.
  ///@{
  std::vector<uint32_t> uses, defs;
  ///@}
  std::vector<uint32_t> targets;  ///< statement indices that a branch may reach
  bool falls_through = true;      ///< the next statement may follow
};

/// Result of colouring: slot offsets relative to the function's own area, and the loop-carried registers.
struct Colouring {
  std::vector<uint32_t> slot;  ///< by register index; kNoOperand if never used
  uint32_t bytes = 0;          ///< size of the area, a multiple of 64
  /// For each backward branch statement: registers live at its target that the loop body writes.
  struct Loop {
    uint32_t branch;                ///< statement index
    std::vector<uint32_t> carried;  ///< register indices
  };
  std::vector<Loop> loops;  ///< in order of the branches
};

/// Storage class of a register type: 0 predicate, 4, 8 or 16 bytes a lane.
SlotWidth slot_width(ptx::Type type);

/// Backward dataflow over basic blocks, then linear scan. Slots of different widths never share bytes: lanes of a
/// divergent warp may be at different places, and lane l of a 32-bit slot overlaps another lane of a 64-bit one.
Colouring colour(const ptx::Function& function, const std::vector<Flow>& flow);

}  // namespace handoff::machine
