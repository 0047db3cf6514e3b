// handoff keep-ptx: rewrites the PTX that is kept for machines without nvcc. For developers, after a solution or the
// toolkit changed.
#include <cstdio>

#include "grader/cli/commands.h"
#include "grader/cli/exercises.h"
#include "grader/cli/submission.h"
#include "grader/report/json.h"

namespace handoff::cli {

int run_keep_ptx() {
  namespace fs = std::filesystem;
  const harness::Toolchain toolchain = harness::find_toolchain();
  if (!toolchain.found()) return refuse(harness::missing_toolchain_message(toolchain));
  int kept = 0;
  for (const harness::ExerciseInfo& exercise : exercises()) {
    for (const fs::path& source : {exercise.solution, exercise.folder / "demo-wrong.cu"}) {
      if (!fs::is_regular_file(source)) continue;
      harness::CompileOptions options;
      options.kernel = exercise.kernel;
      options.include_dir = include_folder();
      const harness::CompileResult compiled = harness::compile(toolchain, source, options);
      if (!compiled.ok) return refuse(source.string() + ": " + compiled.error);
      const fs::path target = fs::path(source).replace_extension(".ptx");
      if (const std::string problem = report::write_whole(target.string(), compiled.ptx); !problem.empty())
        return refuse(problem);
      ++kept;
    }
  }
  std::printf("%d files rewritten with CUDA %s\n", kept, toolchain.version.c_str());
  return kFullMarks;
}

}  // namespace handoff::cli
