// Tested by exercises_test.cc.
#include "grader/cli/exercises.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <numeric>

#include "grader/cli/commands.h"

namespace handoff::cli {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// Levenshtein distance: insertions, deletions and replacements.
size_t edits(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest(const std::string& text, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_edits = 0;
  for (const std::string& candidate : candidates) {
    const size_t n = edits(lower(text), lower(candidate));
    if (n * 2 <= std::max(text.size(), candidate.size()) && (best.empty() || n < best_edits)) {
      best = candidate;
      best_edits = n;
    }
  }
  return best;
}

std::string suggestion(const std::string& text, const std::vector<std::string>& candidates,
                       const std::string& otherwise) {
  const std::string best = nearest(text, candidates);
  return best.empty() ? otherwise : "; did you mean " + best + "?";
}

std::string exercise_suggestion(const std::string& id, const std::vector<harness::ExerciseInfo>& catalog) {
  for (const std::filesystem::path& part : std::filesystem::path(id)) {
    for (const harness::ExerciseInfo& info : catalog) {
      if (part == info.id + "-" + info.name) return "; did you mean " + info.id + "?";
    }
  }
  std::vector<std::string> ids, names;
  std::string same_chapter;
  const auto digit = [&id](size_t i) { return id[i] >= '0' && id[i] <= '9'; };
  const bool id_like = id.size() == 3 && digit(0) && digit(1) && id[2] >= 'a' && id[2] <= 'z';
  for (const harness::ExerciseInfo& info : catalog) {
    if (id_like && info.id.compare(0, 2, id, 0, 2) == 0) same_chapter += (same_chapter.empty() ? "" : ", ") + info.id;
    ids.push_back(info.id);
    names.push_back(info.name);
  }
  if (!same_chapter.empty()) {
    return "; chapter " + std::to_string((id[0] - '0') * 10 + (id[1] - '0')) + " has " + same_chapter;
  }
  ids.insert(ids.end(), names.begin(), names.end());  // where both are as near, the id is the better answer
  return suggestion(id, ids, "; ./handoff list shows them");
}

std::vector<harness::ExerciseInfo> exercises() {
  std::vector<std::string> errors;
  std::vector<harness::ExerciseInfo> catalog = harness::load_catalog(harness::project_root(), &errors);
  for (const std::string& error : errors) std::fprintf(stderr, "handoff: %s\n", error.c_str());
  return catalog;
}

std::optional<harness::ExerciseInfo> find_exercise(const std::string& id) {
  std::vector<std::string> errors;
  std::vector<harness::ExerciseInfo> catalog = harness::load_catalog(harness::project_root(), &errors);
  for (harness::ExerciseInfo& info : catalog) {
    if (id == info.id || id == info.name || id == info.id + "-" + info.name) return std::move(info);
  }
  // An exercise whose exercise.toml is broken is missing from the catalogue: the reason is the answer.
  for (const std::string& error : errors) {
    if (!id.empty() && error.rfind("exercises/" + id, 0) == 0) {
      refuse(error);
      return std::nullopt;
    }
  }
  refuse("no exercise '" + id + "'" + exercise_suggestion(id, catalog));
  return std::nullopt;
}

std::string next_exercise(const std::string& id) {
  std::vector<std::string> ignored;
  for (const harness::ExerciseInfo& info : harness::load_catalog(harness::project_root(), &ignored)) {
    if (info.id > id) return info.id + " " + info.name;
  }
  return "";
}

}  // namespace handoff::cli
