// Child processes with a time limit: tools (nvcc, ptxas) and functions of this program that may crash or never end.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace handoff::harness {

/// How to run a child.
struct ProcessOptions {
  std::filesystem::path folder;                                  ///< working folder; empty: the parent's
  std::vector<std::pair<std::string, std::string>> environment;  ///< added to (or replacing parts of) the parent's
  double timeout_s = 120;                                        ///< wall time; 0: no limit
  size_t max_output = size_t{4} << 20;  ///< bytes kept of each stream; the rest is read and dropped
  bool show_output = false;             ///< the child writes to the parent's streams, nothing is captured
  size_t max_data_bytes = 0;            ///< limit of the child's data segment (RLIMIT_DATA); 0: none
};

/// How the child ended. Exactly one of: error set, timed_out, signal != 0, or exit_code valid.
struct ProcessResult {
  std::string error;       ///< it could not be started: one line
  int exit_code = -1;      ///< its exit status
  int signal = 0;          ///< the signal that ended it
  bool timed_out = false;  ///< the whole process group was killed at the limit
  std::string output;      ///< standard output; for run_function, what the function returned
  std::string errors;      ///< standard error; for run_function, both streams
  double seconds = 0;      ///< wall time
  /// It ran to its end with status 0.
  bool ok() const { return error.empty() && !timed_out && signal == 0 && exit_code == 0; }
};

/// Runs argv[0] (found by PATH) in a process group of its own. At the limit the group is killed, grandchildren
/// included; so it is when this program gets SIGINT, SIGTERM or SIGHUP meanwhile.
ProcessResult run_process(const std::vector<std::string>& argv, const ProcessOptions& options = {});

/// Calls `function` in a forked copy of this process, under the same limits, and brings back the string it returns.
/// REQUIRES: no other thread runs. An exception that leaves the function counts as exit code 70 with its text in
/// `errors`.
ProcessResult run_function(const std::function<std::string()>& function, const ProcessOptions& options = {});

/// "ended with signal 11 (Segmentation fault)", "timed out after 60 s", "exit status 3"; empty when ok().
std::string describe_failure(const ProcessResult& result);

}  // namespace handoff::harness
