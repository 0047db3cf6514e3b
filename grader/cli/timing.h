// handoff timing: measures what the timing model is made of, on the emulator or a GPU, and compares the two.
#pragma once

#include <string>

namespace handoff::cli {

/// What `timing` was asked, as typed: run_timing judges the values.
struct TimingArguments {
  std::string device = "emulator";  ///< emulator or cuda
  std::string model = "blackwell";  ///< of the emulator: blackwell or hopper
  std::string only;                 ///< a regular expression, searched in the names of the probes; empty: all
  std::string record;               ///< file for the GPU's figures; empty: none
  std::string compare;              ///< a record, or a folder, of whose timing-*.json the last by name counts
};

/// Runs the probes of grader/timing and prints a table in Markdown. kFullMarks: every probe ran and, with `compare`,
/// agrees with the record within the tolerance that the table's last line states; kNotFullMarks: one did not; kSkipped
/// (conformance.h): there is no nvcc, or nothing is recorded where `compare` looks.
int run_timing(const TimingArguments& arguments);

}  // namespace handoff::cli
