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
  bool verbose = false;          ///< nothing is shortened
  OpenGpu open_gpu;              ///< which GPU; none: the machine's first
};

/// Grades one compiled submission in this process (GoogleTest inside).
Verdict grade(const ExerciseInfo& exercise, const std::filesystem::path& submission_file, const CompileResult& compiled,
              const GradeOptions& options);

}  // namespace handoff::harness
