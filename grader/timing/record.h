// What a chip measured, as a file: docs/results/timing-*.json.
#pragma once

#include <map>
#include <string>

#include "grader/timing/measure.h"

namespace handoff::timing {

/// A probe as a chip answered it.
struct Recorded {
  Cycles round;             ///< of one round
  std::string fingerprint;  ///< of the probe that was run
};

/// All that one chip answered.
struct Record {
  /// The device's own name; the driver's version; UTC, "2026-11-30"; "13.0".
  ///@{
  std::string gpu, driver, date, toolkit;
  ///@}
  std::map<std::string, Recorded> probes;  ///< by name
};

/// The record as JSON, one line a probe.
std::string to_json(const Record& record);

/// Reads such JSON. Returns an empty string, or what is wrong with it.
std::string from_json(const std::string& text, Record* out);

}  // namespace handoff::timing
