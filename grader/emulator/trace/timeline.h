// One CTA's modeled time in a few columns: how busy its units were in each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "grader/emulator/trace/trace.h"

namespace handoff::trace {

/// Columns of equal length from the start of a CTA to its end. Of each unit: percent (0 to 100) of a column's cycles in
/// which it worked.
struct Timeline {
  /// Cycles.
  ///@{
  uint64_t begin = 0, end = 0;
  ///@}
  std::vector<uint8_t> loads;    ///< the copy engine, into shared memory
  std::vector<uint8_t> mmas;     ///< the tensor core
  std::vector<uint8_t> stores;   ///< the copy engine, out of shared memory
  std::vector<uint8_t> threads;  ///< all warps: 100 where each of them works all the time
  uint64_t operations = 0;       ///< copies and MMAs of the CTA
};

/// The timeline of `activity` in `columns` columns, at least one; empty rows where the CTA took no time.
Timeline timeline_of(const Activity& activity, size_t columns);

}  // namespace handoff::trace
