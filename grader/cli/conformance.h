// handoff conformance: the suite of small kernels whose answers a GPU gave and the emulator must give too.
#pragma once

#include <string>
#include <vector>

namespace handoff::cli {

/// Besides the exit statuses of commands.h, as ctest takes it: nothing to compile with, or nothing to compare with.
constexpr int kSkipped = 77;

/// What `conformance` was asked, as typed: run_conformance judges the values.
struct ConformanceArguments {
  std::string device = "emulator";   ///< emulator or cuda
  std::string only;                  ///< a regular expression, searched in "family/name"; empty: all
  std::string record;                ///< file for the GPU's answers, added to what it has; empty: none
  std::vector<std::string> compare;  ///< records, or folders with files conformance-*.json
  std::string json;                  ///< file for what came of each case; empty: none
};

/// Runs the cases of grader/conformance. kFullMarks: each ran as its head says and agrees with every record that has
/// it; kNotFullMarks: one did not; kSkipped: there is no nvcc, or nothing is recorded where `compare` looks.
int run_conformance(const ConformanceArguments& arguments);

}  // namespace handoff::cli
