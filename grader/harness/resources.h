// What a kernel takes of an SM and of a thread's local memory: plain data, from ptxas to the reports.
#pragma once

#include <cstdint>

namespace handoff::harness {

/// Resources of a kernel as ptxas -v gives them, and what the launches add. Without ptxas (kept PTX) all is 0.
struct Resources {
  uint32_t registers = 0;    ///< a thread; 0: unknown
  uint32_t static_smem = 0;  ///< bytes a block; what the system reserves for itself is not in it
  /// Bytes a thread stores to local memory, and loads from there, for want of registers; functions it calls included.
  ///@{
  uint32_t spill_stores = 0, spill_loads = 0;
  ///@}
  uint32_t stack = 0;  ///< bytes of local memory a thread, at the greatest depth of calls; spilled values included
  uint32_t dynamic_smem = 0;  ///< bytes a block of the largest launch; 0: none, or not launched
};

}  // namespace handoff::harness
