#include "grader/cli/build_folder.h"

#include <cstdio>

#include "grader/harness/process.h"

namespace handoff::cli {

namespace fs = std::filesystem;

std::filesystem::path build_folder() {
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  return failed ? fs::path() : program.parent_path();
}

int run_in_foreground(const std::vector<std::string>& argv) {
  harness::ProcessOptions options;
  options.timeout_s = 0;
  options.show_output = true;
  const harness::ProcessResult run = harness::run_process(argv, options);
  if (!run.error.empty()) {
    std::fprintf(stderr, "handoff: %s\n", run.error.c_str());
    return 127;
  }
  return run.signal != 0 ? 128 + run.signal : run.exit_code;
}

std::string build_target(const std::string& target) {
  const fs::path folder = build_folder();
  if (folder.empty() || !fs::exists(folder / "CMakeCache.txt")) {
    return "no build folder around this program; configure one: cmake --preset default";
  }
  const int status = run_in_foreground({"cmake", "--build", folder.string(), "--target", target, "--parallel"});
  return status == 0 ? "" : "building " + target + " failed; its messages are above";
}

}  // namespace handoff::cli
