// handoff bench: the emulator's speed on this machine.
#include "grader/cli/build_folder.h"
#include "grader/cli/commands.h"
#include "grader/cli/exercises.h"

namespace handoff::cli {

int run_bench(const std::string& device) {
  if (!device.empty() && device != "emulator" && device != "cuda") {
    return refuse("no device '" + device + "'" +
                  suggestion(device, {"emulator", "cuda"}, "; there are emulator, cuda"));
  }
  if (const std::string problem = build_target("handoff_bench"); !problem.empty()) return refuse(problem);
  std::vector<std::string> argv = {(build_folder() / "handoff_bench").string()};
  if (!device.empty()) argv.push_back("--device=" + device);
  return run_in_foreground(argv) == 0 ? kFullMarks : kCouldNot;
}

}  // namespace handoff::cli
