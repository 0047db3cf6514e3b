// handoff list: every exercise with its state and points, by chapter.
#include <unistd.h>

#include <cstdio>

#include "grader/cli/commands.h"
#include "grader/cli/exercises.h"
#include "grader/cli/state.h"
#include "grader/report/terminal.h"

namespace handoff::cli {

int run_list() {
  const std::vector<harness::ExerciseInfo> catalog = exercises();
  if (catalog.empty()) return refuse("no exercise was found in " + (harness::project_root() / "exercises").string());
  const bool color = report::wants_color(STDOUT_FILENO);
  const auto ink = [&](const char* code, const std::string& text) {
    return color ? "\x1b[" + std::string(code) + "m" + text + "\x1b[0m" : text;
  };
  size_t width = 0;
  for (const harness::ExerciseInfo& info : catalog) width = std::max(width, info.name.size());
  std::string chapter, next;
  int score = 0, max_score = 0, full = 0;
  for (const harness::ExerciseInfo& info : catalog) {
    if (info.chapter != chapter) {
      chapter = info.chapter;
      std::printf("%s\n", ink("1", chapter).c_str());
    }
    const std::optional<Progress> progress = load_progress(info.id);
    const bool passed = progress && progress->score == progress->max_score;
    const std::string mark = !progress ? "–" : passed ? ink("32", "✓") : ink("31", "✗");
    const std::string points = (progress ? std::to_string(progress->score) : "–");
    // "–" is three bytes and one column, so the width is counted here.
    const size_t columns = report::display_width(points);
    std::printf("  %s %s %-*s %*s%s/%-3d %-8s %s\n", mark.c_str(), info.id.c_str(), static_cast<int>(width),
                info.name.c_str(), static_cast<int>(columns < 3 ? 3 - columns : 0), "", points.c_str(),
                info.max_score(), info.kind.c_str(), ink("2", info.title).c_str());
    if (!passed && next.empty()) next = info.id;
    full += passed ? 1 : 0;
    score += progress ? progress->score : 0;
    max_score += info.max_score();
  }
  std::printf("%d of %zu exercises with full marks · %d of %d points\n", full, catalog.size(), score, max_score);
  if (!next.empty()) std::printf("next: ./handoff check %s\n", next.c_str());
  return kFullMarks;
}

}  // namespace handoff::cli
