// Runs a probe on a device.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "grader/device/device.h"
#include "grader/harness/toolchain.h"
#include "grader/timing/probe.h"

namespace handoff::timing {

/// Rounds of a kernel, and how many of the first only warm caches: as kernels/probe.cuh has them.
///@{
inline constexpr size_t kRounds = 40;
inline constexpr size_t kWarmUp = 8;
///@}

/// Cycles of one round, as the clock was read, over the rounds behind the warm-up.
struct Cycles {
  double median = 0;  ///< the figure that counts
  /// Of all.
  ///@{
  double least = 0, most = 0;
  ///@}
};

/// What became of a probe.
struct Outcome {
  std::string problem;  ///< one line: why there is no figure; empty otherwise
  std::string detail;   ///< the compiler's messages, may be several lines; usually empty
  Cycles round;         ///< of one round
};

/// Summary of the kRounds samples of a kernel.
Cycles summarize(const std::vector<uint32_t>& samples);

/// Cycles of one operation of `probe`: those of a round less `clock`, a round of the probe that clock_probe() names (on
/// the emulator always "clock"), shared among the operations; a whole round for the probe "clock".
double cycles_of(const Probe& probe, const Cycles& round, double clock);

/// Compiles and loads the kernel files as the probes need them. Not to be used beside other users of the device.
class Bench {
 public:
  /// Kernels are compiled for `target`: "90a".
  Bench(device::Device& device, const harness::Toolchain& toolchain, std::string target)
      : device_(device), toolchain_(toolchain), target_(std::move(target)) {}
  /// Runs a probe: one launch.
  Outcome run(const Probe& probe);

 private:
  Outcome load(const Probe& probe);
  std::string launch(const Probe& probe, std::vector<uint32_t>* samples);

  device::Device& device_;
  const harness::Toolchain& toolchain_;
  std::string target_;
  std::string loaded_;  // the file whose module the device has
};

}  // namespace handoff::timing
