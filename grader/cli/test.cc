// handoff test: the project's own tests. Starters fail by design, so grading tests (*.grade) are not among them.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <thread>

#include "grader/cli/build_folder.h"
#include "grader/cli/commands.h"

namespace handoff::cli {

int run_test(bool mutants) {
  if (const std::string problem = build_target("all"); !problem.empty()) return refuse(problem);
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::string> argv = {"ctest",      "--test-dir", build_folder().string(), "--no-tests=error",
                                   "--progress", "--parallel", std::to_string(cores)};
  if (!mutants) {
    argv.emplace_back("--output-on-failure");
    return run_in_foreground(argv) == 0 ? kFullMarks : kNotFullMarks;
  }
  argv.insert(argv.end(), {"-L", "mutants"});
  // The test content.mutants leaves the table of all wrong submissions here.
  const std::filesystem::path table = build_folder() / "content" / "mutants.txt";
  std::error_code nothing_there;
  std::filesystem::remove(table, nothing_there);
  const int status = run_in_foreground(argv);
  std::ifstream in(table);
  if (!in)
    return refuse("no wrong submission was graded; ctest --test-dir " + build_folder().string() +
                  " -L mutants -V says why");
  std::cout << '\n' << in.rdbuf() << std::flush;
  return status == 0 ? kFullMarks : kNotFullMarks;
}

}  // namespace handoff::cli
