// The exercises on disk: exercises/NNx-name/exercise.toml and what belongs to it.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace handoff::harness {

/// One exercise.toml:
///   title = "two copies, one barrier"      # one line
///   kernel = "two_copies"                  # the entry that the harness launches
///   kind = "write"                         # write | fix | predict | tune
///   chapter = "04-bulk-copies"
///   needs = "mbarrier"                     # mbarrier (sm_90) | tma (sm_90) | tcgen05 (sm_100a, sm_103a)
///   hints = ["…", "…", "…"]                # gentle to near the answer, at least three
///   [points]                               # one for each test in grade.cc, no-hazards >= 40 % of the sum
///   result = 3
///   no-hazards = 4
struct ExerciseInfo {
  std::string id;    ///< "04a"
  std::string name;  ///< "two-copies-one-barrier" (from the folder)
  /// As in exercise.toml.
  ///@{
  std::string title, kernel, kind, chapter, needs;
  ///@}
  std::vector<std::string> hints;                   ///< gentle first
  std::vector<std::pair<std::string, int>> points;  ///< in file order
  /// exercises/NNx-name, kernel.cu in it, and solutions/NNx-name/kernel.cu.
  ///@{
  std::filesystem::path folder, starter, solution;
  ///@}
  /// Sum of the points.
  int max_score() const;
};

/// The project's root: $HANDOFF_ROOT, else the source folder the program was built from.
std::filesystem::path project_root();

/// All exercises, sorted by id. Errors ("exercises/01a-first-handoff/exercise.toml:7: points must be 1–100, got 0") go
/// to `errors`.
std::vector<ExerciseInfo> load_catalog(const std::filesystem::path& root, std::vector<std::string>* errors);

}  // namespace handoff::harness
