// A verdict as text for a person: did it pass, what broke, where, why, what next; on one screen.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "grader/harness/verdict.h"

namespace handoff::report {

/// What render needs to know beyond the verdict.
struct RenderOptions {
  bool color = false;         ///< escape sequences of ECMA-48
  size_t width = 100;         ///< columns; text is wrapped, source lines are cut
  bool verbose = false;       ///< every diagnostic and every line of output, however many screens that takes
  bool one_schedule = false;  ///< --schedule chose one: full marks say nothing of the others, and do not lead on
  bool colleague = false;     ///< not the learner's own file (--solution, --submission): no hints are offered
  std::string next;           ///< the exercise after this one, "04b ragged-tail"; empty: none
  std::string arguments;      ///< between the ID and the schedule in the command that reproduces: "--solution"
  /// Line `line` (1-based) of `file` as a diagnostic names it; nullopt where there is none.
  std::function<std::optional<std::string>(const std::string& file, size_t line)> source_line;
};

/// The whole screen, with a final newline. Text that came from the submission (its lines, what it printed) has control
/// characters removed, so that it can not draw a verdict of its own.
std::string render(const harness::Verdict& verdict, const RenderOptions& options);

/// One line for `check --all`: mark, exercise, points, the cause where it failed. No newline.
std::string render_line(const harness::Verdict& verdict, const RenderOptions& options);

/// The notes of several verdicts, each once, with the exercises that have it: "09a, 10a: cuda: skipped: …".
std::vector<std::string> shared_notes(const std::vector<harness::Verdict>& verdicts);

/// True if `fd` is a terminal that takes colour and the user did not set NO_COLOR (https://no-color.org) or TERM=dumb.
bool wants_color(int fd);

/// Columns of the terminal at `fd`, between 60 and 120; 100 where it is none.
size_t terminal_width(int fd);

/// Columns that UTF-8 `text` takes: its code points. All that the project prints itself is one column wide.
size_t display_width(const std::string& text);

/// `text`, which begins in column `start`, wrapped at spaces to lines of `width` columns; later lines begin with
/// `indent` spaces. A word wider than a line stays whole.
std::string wrap(const std::string& text, size_t width, size_t indent, size_t start);

}  // namespace handoff::report
