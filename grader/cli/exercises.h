// Which exercise, diagnostic or value the user meant.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "grader/harness/catalog.h"

namespace handoff::cli {

/// The candidate that takes the fewest single-character edits from `text`, case ignored; the first of equals. Empty
/// where none is near: more edits than half of the longer text.
std::string nearest(const std::string& text, const std::vector<std::string>& candidates);

/// " did you mean X?" with its separator, or `otherwise` where nothing is near.
std::string suggestion(const std::string& text, const std::vector<std::string>& candidates,
                       const std::string& otherwise);

/// How "no exercise 'id'" goes on: "; did you mean 01a?" where `id` is the path of an exercise's folder or of a file in
/// it, or is near an id or a name; "; chapter 3 has 03b" where it has the form of an id and that chapter has others;
/// else where all exercises are shown.
std::string exercise_suggestion(const std::string& id, const std::vector<harness::ExerciseInfo>& catalog);

/// All exercises; a broken exercise.toml is told on standard error, and that exercise is left out.
std::vector<harness::ExerciseInfo> exercises();

/// The exercise with this id ("01a"), name ("first-handoff") or folder ("01a-first-handoff"). Otherwise nullopt, after
/// one line on standard error.
std::optional<harness::ExerciseInfo> find_exercise(const std::string& id);

/// The exercise after `id`, as "01b count-the-arrivals"; empty after the last.
std::string next_exercise(const std::string& id);

}  // namespace handoff::cli
