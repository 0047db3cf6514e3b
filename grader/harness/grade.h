// Grades one compiled submission: the entry point of the harness.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "grader/device/device.h"
#include "grader/harness/catalog.h"
#include "grader/harness/toolchain.h"
#include "grader/harness/verdict.h"

namespace handoff::harness {

/// Opens a GPU; nullptr and `why` (one line) where there is none.
using OpenGpu = std::function<std::unique_ptr<device::Device>(std::string* why)>;

/// What to run.
struct GradeOptions {
  std::string device = "auto";   ///< auto | emulator | cuda
  std::string schedule = "all";  ///< all, or the name of one schedule
  std::optional<uint64_t> seed;  ///< of the random schedule; none: the harness's own seeds
  int repeats = 3;               ///< launches of each case on a GPU, at least 1; what goes wrong there may be rare
  bool verbose = false;          ///< nothing is shortened
  OpenGpu open_gpu;              ///< which GPU; none: the machine's first
};

/// Why `exercise` cannot run on `gpu`, whatever the submission: "needs tcgen05 (sm_100, sm_103); this GPU is NVIDIA
/// H200 (sm_90)". Empty where it can.
std::string why_not_on(const device::Device& gpu, const ExerciseInfo& exercise);

/// Grades one compiled submission in this process (GoogleTest inside).
Verdict grade(const ExerciseInfo& exercise, const std::filesystem::path& submission_file, const CompileResult& compiled,
              const GradeOptions& options);

}  // namespace handoff::harness
