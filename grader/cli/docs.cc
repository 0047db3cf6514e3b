// handoff docs: builds the documentation site.
#include <cstdio>

#include "grader/cli/build_folder.h"
#include "grader/cli/commands.h"
#include "grader/harness/process.h"

namespace handoff::cli {

int run_docs() {
  if (!harness::run_process({"doxygen", "--version"}).ok()) {
    return refuse("doxygen was not found. Install it: apt install doxygen graphviz");
  }
  if (const std::string problem = build_target("docs"); !problem.empty()) return refuse(problem);
  const std::filesystem::path index = build_folder() / "docs" / "html" / "index.html";
  if (!std::filesystem::exists(index)) return refuse("the build left no " + index.string());
  std::printf("%s\n", index.c_str());
  return kFullMarks;
}

}  // namespace handoff::cli
