// What is remembered between calls, for each user: the last score of each exercise and the hints already given. One
// small file for each, in $XDG_STATE_HOME/handoff or ~/.local/state/handoff, so that two checks at the same time do not
// undo each other.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace handoff::cli {

/// The last graded check of one's own file.
struct Progress {
  int score = 0;      ///< points
  int max_score = 0;  ///< points there were to get
};

/// Empty where neither variable is set.
std::filesystem::path state_folder();
/// nullopt: never checked, or not readable.
std::optional<Progress> load_progress(const std::string& exercise);
/// Empty, or one line that says why it was not saved; what was there before is still there.
std::string save_progress(const std::string& exercise, const Progress& progress);
/// How many hints have been given.
int load_hints(const std::string& exercise);
/// As save_progress.
std::string save_hints(const std::string& exercise, int given);

}  // namespace handoff::cli
