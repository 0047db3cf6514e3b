// Tested by catalog_test.cc.
#include "grader/harness/catalog.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <regex>
#include <set>
#include <string_view>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace handoff::harness {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> kKinds = {"write", "fix", "predict", "tune"};
constexpr std::array<std::string_view, 3> kNeeds = {"mbarrier", "tma", "tcgen05"};
constexpr std::array<std::string_view, 7> kKeys = {"title", "kernel", "kind", "chapter", "needs", "hints", "points"};
constexpr int kMaxPoints = 100;
constexpr size_t kMinHints = 3;
constexpr int kNoHazardsPercent = 40;  // design rule: a kernel with a hazard must not pass on its result alone

// One exercise.toml while it is read: collects errors with their line.
class Reader {
 public:
  Reader(std::string shown_path, const toml::table& table, std::vector<std::string>* errors)
      : shown_path_(std::move(shown_path)), table_(table), errors_(errors) {}

  void fail(uint32_t line, const std::string& what) {
    errors_->push_back(shown_path_ + ":" + std::to_string(line) + ": " + what);
    ++failures_;
  }
  void fail_at(const toml::node& node, const std::string& what) { fail(node.source().begin.line, what); }
  bool clean() const { return failures_ == 0; }

  // A one-line string that must be there unless `optional`.
  std::string text(std::string_view key, bool optional = false) {
    const toml::node* node = table_.get(key);
    if (node == nullptr) {
      if (!optional) fail(1, std::string(key) + " is missing");
      return "";
    }
    const auto value = node->value_exact<std::string>();
    if (!value || value->empty() || value->find('\n') != std::string::npos) {
      fail_at(*node, std::string(key) + " must be one line of text");
      return "";
    }
    return *value;
  }

  template <size_t N>
  std::string one_of(std::string_view key, const std::array<std::string_view, N>& allowed) {
    std::string value = text(key);
    if (value.empty() || std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return value;
    std::string names;
    for (size_t i = 0; i < N; ++i) names += (i == 0 ? "" : i + 1 == N ? " or " : ", ") + std::string(allowed[i]);
    fail_at(*table_.get(key), std::string(key) + " must be " + names + ", got \"" + value + "\"");
    return value;
  }

  std::vector<std::string> hints() {
    std::vector<std::string> hints;
    const toml::node* node = table_.get("hints");
    const toml::array* list = node == nullptr ? nullptr : node->as_array();
    if (list == nullptr) {
      fail(node == nullptr ? 1 : node->source().begin.line, "hints must be a list of strings");
      return hints;
    }
    for (const toml::node& hint : *list) {
      const auto value = hint.value_exact<std::string>();
      if (value && !value->empty()) {
        hints.push_back(*value);
      } else {
        fail_at(hint, "a hint must be a string that is not empty");
      }
    }
    if (hints.size() < kMinHints && clean()) {
      fail_at(*node, "at least 3 hints are needed, got " + std::to_string(hints.size()));
    }
    return hints;
  }

  std::vector<std::pair<std::string, int>> points(bool needs_no_hazards) {
    const toml::node* node = table_.get("points");
    const toml::table* tests = node == nullptr ? nullptr : node->as_table();
    if (tests == nullptr || tests->empty()) {
      fail(node == nullptr ? 1 : node->source().begin.line, "[points] must give the points of each test");
      return {};
    }
    struct Entry {
      uint32_t line;
      std::string name;
      int points;
    };
    std::vector<Entry> entries;
    int sum = 0, no_hazards = 0;
    for (const auto& [key, value] : *tests) {
      const std::string name(key.str());
      const auto points = value.value_exact<int64_t>();
      if (!points) {
        fail_at(value, "points of " + name + " must be a whole number");
      } else if (*points < 1 || *points > kMaxPoints) {
        fail_at(value, "points must be 1–100, got " + std::to_string(*points));
      } else {
        entries.push_back({value.source().begin.line, name, static_cast<int>(*points)});
        sum += static_cast<int>(*points);
        if (name == "no-hazards") no_hazards = static_cast<int>(*points);
      }
    }
    // toml++ keeps a table by name; the verdict shows the tests in the author's order.
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.line < b.line; });
    if (clean() && needs_no_hazards && no_hazards * 100 < sum * kNoHazardsPercent) {
      fail_at(*node, "no-hazards must carry at least 40 % of the points, got " + std::to_string(no_hazards) + " of " +
                         std::to_string(sum));
    }
    std::vector<std::pair<std::string, int>> points;
    points.reserve(entries.size());
    for (const Entry& e : entries) points.emplace_back(e.name, e.points);
    return points;
  }

  void reject_unknown_keys() {
    for (const auto& [key, value] : table_) {
      if (std::find(kKeys.begin(), kKeys.end(), key.str()) == kKeys.end()) {
        fail(key.source().begin.line, "unknown key " + std::string(key.str()));
      }
    }
  }

 private:
  std::string shown_path_;
  const toml::table& table_;
  std::vector<std::string>* errors_;
  int failures_ = 0;
};

// Appends the exercise in `folder` to `catalog`, or says in `errors` what is wrong with it.
void load_exercise(const fs::path& root, const fs::path& folder, std::vector<ExerciseInfo>* catalog,
                   std::vector<std::string>* errors) {
  const std::string folder_name = folder.filename().string();
  const std::string shown_path = "exercises/" + folder_name + "/exercise.toml";
  const fs::path file = folder / "exercise.toml";
  if (!fs::is_regular_file(file)) {
    errors->push_back(shown_path + ": missing");
    return;
  }
  const toml::parse_result parsed = toml::parse_file(file.string());
  if (!parsed) {
    errors->push_back(shown_path + ":" + std::to_string(parsed.error().source().begin.line) + ": " +
                      std::string(parsed.error().description()));
    return;
  }
  Reader reader(shown_path, parsed.table(), errors);
  ExerciseInfo info;
  info.id = folder_name.substr(0, 3);
  info.name = folder_name.substr(4);
  info.title = reader.text("title");
  info.kind = reader.one_of("kind", kKinds);
  const bool predicts = info.kind == "predict";  // a table of constants: there may be no kernel, and no hazards
  info.kernel = reader.text("kernel", predicts);
  info.chapter = reader.text("chapter");
  info.needs = reader.one_of("needs", kNeeds);
  info.hints = reader.hints();
  info.points = reader.points(!predicts);
  reader.reject_unknown_keys();
  info.folder = folder;
  info.starter = folder / "kernel.cu";
  info.solution = root / "solutions" / folder_name / "kernel.cu";
  if (!fs::is_regular_file(info.starter)) errors->push_back("exercises/" + folder_name + "/kernel.cu: missing");
  if (reader.clean()) catalog->push_back(std::move(info));
}

}  // namespace

int ExerciseInfo::max_score() const {
  int sum = 0;
  for (const auto& [name, value] : points) sum += value;
  return sum;
}

std::filesystem::path project_root() {
  const char* root = std::getenv("HANDOFF_ROOT");
  return root != nullptr && *root != '\0' ? fs::path(root) : fs::path(HANDOFF_SOURCE_DIR);
}

std::vector<ExerciseInfo> load_catalog(const std::filesystem::path& root, std::vector<std::string>* errors) {
  std::vector<ExerciseInfo> catalog;
  std::error_code failed;
  fs::directory_iterator entries(root / "exercises", failed);
  if (failed) {
    errors->push_back((root / "exercises").string() + ": " + failed.message());
    return catalog;
  }
  static const std::regex exercise_name("[0-9]{2}[a-z]-[a-z0-9-]+");
  std::vector<fs::path> folders;
  for (const fs::directory_entry& entry : entries) {
    if (entry.is_directory() && std::regex_match(entry.path().filename().string(), exercise_name)) {
      folders.push_back(entry.path());
    }
  }
  std::sort(folders.begin(), folders.end());
  std::set<std::string> ids;
  for (const fs::path& folder : folders) {
    const std::string name = folder.filename().string();
    if (!ids.insert(name.substr(0, 3)).second) {
      errors->push_back("exercises/" + name + ": a second exercise with the id " + name.substr(0, 3));
      continue;
    }
    load_exercise(root, folder, &catalog, errors);
  }
  return catalog;
}

}  // namespace handoff::harness
