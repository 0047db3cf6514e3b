// handoff hint: one more hint at each call.
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "grader/cli/commands.h"
#include "grader/cli/exercises.h"
#include "grader/cli/state.h"
#include "grader/report/terminal.h"

namespace handoff::cli {

int run_hint(const std::string& id, bool all, bool reset) {
  if (id.empty()) return refuse("which exercise? ./handoff hint 01a");
  const std::optional<harness::ExerciseInfo> info = find_exercise(id);
  if (!info) return kCouldNot;
  const int total = static_cast<int>(info->hints.size());
  const int given = std::min(load_hints(info->id), total);
  const int wanted = reset ? 0 : all ? total : std::min(given + 1, total);
  const size_t width = std::min<size_t>(report::terminal_width(STDOUT_FILENO), 90);
  if (reset) {
    std::printf("%s %s: the next hint is the first again\n", info->id.c_str(), info->name.c_str());
  } else {
    for (int i = all ? 1 : wanted; i <= wanted; ++i) {
      const std::string head = "hint " + std::to_string(i) + " of " + std::to_string(total) + ": ";
      std::printf("%s%s\n", head.c_str(),
                  report::wrap(info->hints[static_cast<size_t>(i - 1)], width, 2, head.size()).c_str());
    }
    if (!all && given == total) std::printf("That was the last one. --all shows all, --reset begins again.\n");
  }
  if (const std::string problem = save_hints(info->id, wanted); !problem.empty()) {
    std::fprintf(stderr, "handoff: the hints given were not saved: %s\n", problem.c_str());
  }
  return kFullMarks;
}

}  // namespace handoff::cli
