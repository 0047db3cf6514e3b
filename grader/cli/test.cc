// handoff test: the project's own tests. Starters fail by design, so grading tests (*.grade) are not among them.
#include <thread>

#include "grader/cli/build_folder.h"
#include "grader/cli/commands.h"

namespace handoff::cli {

int run_test(bool mutants) {
  if (const std::string problem = build_target("all"); !problem.empty()) return refuse(problem);
  std::vector<std::string> argv = {"ctest", "--test-dir", build_folder().string(), "--no-tests=error"};
  if (mutants) {
    argv.insert(argv.end(), {"-L", "mutants", "--verbose"});
  } else {
    const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
    argv.insert(argv.end(), {"--progress", "--output-on-failure", "--parallel", std::to_string(cores)});
  }
  return run_in_foreground(argv) == 0 ? kFullMarks : kNotFullMarks;
}

}  // namespace handoff::cli
