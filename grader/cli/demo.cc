// handoff demo: what a verdict looks like, for a wrong and a right submission of the first exercise. Needs neither nvcc
// nor a GPU.
#include <unistd.h>

#include <cstdio>

#include "grader/cli/commands.h"
#include "grader/cli/exercises.h"
#include "grader/cli/submission.h"
#include "grader/report/terminal.h"

namespace handoff::cli {

int run_demo() {
  const std::optional<harness::ExerciseInfo> exercise = find_exercise("01a");
  if (!exercise) return kCouldNot;
  const harness::Toolchain toolchain = harness::find_toolchain();
  if (!toolchain.found()) std::printf("There is no nvcc here, so the demo runs PTX that was compiled before.\n\n");
  struct Part {
    const char* text;
    std::filesystem::path file, ptx;
    bool expect_full;
  };
  const std::filesystem::path wrong = exercise->folder / "demo-wrong.cu";
  const Part parts[] = {
      {"A wrong submission. Its result may even be right on a GPU; the grader says what is missing, and where:", wrong,
       std::filesystem::path(wrong).replace_extension(".ptx"), false},
      {"The same kernel put right:", exercise->solution,
       std::filesystem::path(exercise->solution).replace_extension(".ptx"), true},
  };
  bool as_expected = true;
  for (const Part& part : parts) {
    SubmissionJob job{*exercise, part.file, part.ptx, {}, 60};
    job.options.device = "emulator";  // so that it looks the same everywhere
    const harness::Verdict verdict = grade_submission(toolchain, job);
    if (!verdict.could_grade) return refuse(verdict.problem);
    report::RenderOptions look;
    look.color = report::wants_color(STDOUT_FILENO);
    look.width = report::terminal_width(STDOUT_FILENO);
    look.colleague = true;
    look.arguments = "--submission " + part.file.lexically_relative(harness::project_root()).string();
    look.source_line = [&](const std::string& name, size_t line) { return source_line(part.file, name, line); };
    std::printf("%s\n\n%s\n", part.text, report::render(verdict, look).c_str());
    as_expected = as_expected && verdict.passed() == part.expect_full;
  }
  std::printf("Your turn: edit %s, then ./handoff check 01a\n",
              exercise->starter.lexically_relative(harness::project_root()).c_str());
  return as_expected ? kFullMarks : kNotFullMarks;
}

}  // namespace handoff::cli
