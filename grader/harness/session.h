// The submission being graded in this process: shared by grade() and the tests that GoogleTest runs.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "grader/harness/catalog.h"
#include "grader/harness/exercise.h"
#include "grader/harness/grade.h"
#include "grader/harness/toolchain.h"

namespace handoff::harness {

/// Devices by kind, the runs made on each, and what was asked.
struct Session {
  const ExerciseInfo* exercise = nullptr;                          ///< what is graded
  const CompileResult* compiled = nullptr;                         ///< the submission
  std::filesystem::path submission;                                ///< the file graded
  CompileResult for_gpu;                                           ///< the submission compiled for the GPU at hand
  GradeOptions options;                                            ///< schedules and seed
  std::map<std::string, std::unique_ptr<device::Device>> devices;  ///< "emulator", "cuda"
  /// Runs on one device, made at first use.
  struct Results {
    std::vector<Case> cases;      ///< KernelRun::test_case points into this
    std::vector<KernelRun> runs;  ///< in order
    std::string error;            ///< could not even be launched: one line
    bool nominal_failed = false;  ///< other schedules were not run
  };
  std::map<std::string, Results> results;  ///< by device kind
};

/// The session of this process; nullptr outside grade().
Session* current_session();
void set_current_session(Session* session);

/// The schedules that `options` ask for, nominal first. 4 random ones, seeds 1–4 unless a seed is given.
std::vector<machine::Schedule> schedules_for(const GradeOptions& options);

/// Runs all cases on `device` and records the outcomes.
Session::Results run_cases(device::Device& device, const Session& session, std::vector<Case> cases);

}  // namespace handoff::harness
