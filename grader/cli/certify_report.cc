// Tested by certify_test.cc.
#include "grader/cli/certify_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "grader/harness/compile_cache.h"

namespace handoff::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;  // raised only where a field is removed or changes its meaning

constexpr std::array<CertifyOutcome, 3> kOutcomes = {CertifyOutcome::Passed, CertifyOutcome::Failed,
                                                     CertifyOutcome::Skipped};

/// The groups in the order in which they run, with their names on the screen.
constexpr std::array<std::pair<const char*, const char*>, 7> kGroups = {{{"solution", "solutions"},
                                                                         {"variant", "variants"},
                                                                         {"conformance", "conformance kernels"},
                                                                         {"timing", "timing probes"},
                                                                         {"cublaslt", "cuBLASLt itself"},
                                                                         {"gemm", "GEMMs beside cuBLASLt"},
                                                                         {"bench", "benchmarks"}}};

constexpr size_t kShownFailures = 20;  // on the screen; the report has all

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json about_json(const CertifyAbout& a) {
  return {{"gpu", a.gpu},         {"compute_capability", a.compute_capability},
          {"driver", a.driver},   {"toolkit", a.toolkit},
          {"date", a.date},       {"host", a.host},
          {"commit", a.commit},   {"sources", a.sources},
          {"repeats", a.repeats}, {"only", a.only}};
}

CertifyAbout about_from(const Json& j) {
  CertifyAbout a;
  a.gpu = j.at("gpu");
  a.compute_capability = j.at("compute_capability");
  a.driver = j.at("driver");
  a.toolkit = j.at("toolkit");
  a.date = j.at("date");
  a.host = j.at("host");
  a.commit = j.at("commit");
  a.sources = j.at("sources");
  a.repeats = j.at("repeats");
  a.only = j.at("only");
  return a;
}

Json result_json(const CertifyResult& r) {
  Json json = {
      {"outcome", to_string(r.outcome)}, {"repeats", r.repeats}, {"seconds", r.seconds}, {"message", r.message}};
  if (!r.record.empty()) json["record"] = r.record;
  return json;
}

CertifyResult result_from(const Json& j) {
  CertifyResult r;
  const std::string outcome = j.at("outcome");
  const auto found =
      std::find_if(kOutcomes.begin(), kOutcomes.end(), [&](CertifyOutcome o) { return to_string(o) == outcome; });
  if (found == kOutcomes.end()) throw std::invalid_argument("no outcome '" + outcome + "'");
  r.outcome = *found;
  r.repeats = j.at("repeats");
  r.seconds = j.at("seconds");
  r.message = j.at("message");
  if (j.contains("record")) r.record = j.at("record");
  return r;
}

using Counts = std::map<CertifyOutcome, size_t>;

/// How often each outcome was, by group.
std::map<std::string, Counts> counts_of(const CertifyReport& report) {
  std::map<std::string, Counts> counts;
  for (const auto& [name, result] : report.items) ++counts[certify_group(name)][result.outcome];
  return counts;
}

bool is_source(const fs::path& file) {
  static constexpr std::array<const char*, 7> kEndings = {".cc", ".h", ".inc", ".cu", ".cuh", ".toml", ".txt"};
  const std::string ending = file.extension().string();
  return std::any_of(kEndings.begin(), kEndings.end(), [&](const char* e) { return ending == e; });
}

}  // namespace

const char* to_string(CertifyOutcome outcome) {
  switch (outcome) {
    case CertifyOutcome::Passed:
      return "passed";
    case CertifyOutcome::Failed:
      return "failed";
    case CertifyOutcome::Skipped:
      break;
  }
  return "skipped";
}

std::string certify_group(const std::string& item) { return item.substr(0, item.find('/')); }

std::string to_json(const CertifyReport& report) {
  Json summary = Json::object();
  for (const auto& [group, counts] : counts_of(report)) {
    for (const CertifyOutcome outcome : kOutcomes) {
      const auto found = counts.find(outcome);
      summary[group][to_string(outcome)] = found == counts.end() ? 0 : found->second;
    }
  }
  std::string text =
      fmt::format("{{\n \"version\": {},\n \"about\": {},\n \"complete\": {},\n \"summary\": {},\n \"items\": {{",
                  kVersion, dump(about_json(report.about)), report.complete, dump(summary));
  const char* before = "\n";
  for (const auto& [name, result] : report.items) {
    text += fmt::format("{}  {}: {}", before, dump(name), dump(result_json(result)));
    before = ",\n";
  }
  return text + "\n }\n}\n";
}

std::string from_json(const std::string& text, CertifyReport* out) {
  *out = {};
  try {
    const Json json = Json::parse(text);
    if (json.at("version") != kVersion) return fmt::format("a report of another version than {}", kVersion);
    out->about = about_from(json.at("about"));
    out->complete = json.at("complete");
    for (const auto& [name, item] : json.at("items").items()) out->items[name] = result_from(item);
  } catch (const std::exception& e) {
    *out = {};
    const std::string what = e.what();
    return "not a report of certify: " + what.substr(0, what.find('\n'));
  }
  return "";
}

std::string why_not_resumed(const CertifyAbout& earlier, const CertifyAbout& now) {
  const std::array<std::array<std::string, 3>, 7> compared = {{
      {"GPU", earlier.gpu, now.gpu},
      {"compute capability", std::to_string(earlier.compute_capability), std::to_string(now.compute_capability)},
      {"driver", earlier.driver, now.driver},
      {"toolkit", earlier.toolkit, now.toolkit},
      {"--repeats", std::to_string(earlier.repeats), std::to_string(now.repeats)},
      {"--only", earlier.only, now.only},
      {"state of the sources", earlier.sources, now.sources},
  }};
  for (const auto& [what, before, after] : compared) {
    if (before != after) return fmt::format("it was begun with another {}: '{}', now '{}'", what, before, after);
  }
  return "";
}

std::string summarize(const CertifyReport& report) {
  const CertifyAbout& a = report.about;
  std::string text =
      fmt::format("{} (sm_{}) · {} · nvcc {} · {}\n", a.gpu, a.compute_capability, a.driver, a.toolkit, a.date);
  const std::map<std::string, Counts> counts = counts_of(report);
  for (const auto& [group, shown] : kGroups) {
    const auto found = counts.find(group);
    if (found == counts.end()) continue;
    std::string line;
    for (const CertifyOutcome outcome : kOutcomes) {
      const auto count = found->second.find(outcome);
      if (count != found->second.end())
        line += fmt::format("{}{} {}", line.empty() ? "" : ", ", count->second, to_string(outcome));
    }
    text += fmt::format("  {:<22} {}\n", shown, line);
  }
  std::map<std::string, size_t> reasons;
  size_t failures = 0;
  for (const auto& [name, result] : report.items) {
    if (result.outcome == CertifyOutcome::Skipped) ++reasons[result.message];
    if (result.outcome == CertifyOutcome::Failed && failures++ < kShownFailures)
      text += fmt::format("  FAILED {}: {}\n", name, result.message);
  }
  if (failures > kShownFailures)
    text += fmt::format("  and {} more failures: see the report\n", failures - kShownFailures);
  for (const auto& [reason, count] : reasons) text += fmt::format("  skipped {}: {}\n", count, reason);
  for (const auto& [name, result] : report.items) {
    const std::string group = certify_group(name);
    if ((group == "cublaslt" || group == "gemm") && result.outcome == CertifyOutcome::Passed)
      text += fmt::format("  {}: {}\n", name, result.message);
  }
  return text;
}

std::string source_fingerprint(const std::string& root, const std::vector<std::string>& folders) {
  std::vector<fs::path> files;
  std::error_code failed;
  for (const std::string& folder : folders) {
    for (auto it = fs::recursive_directory_iterator(fs::path(root) / folder, failed);
         it != fs::recursive_directory_iterator(); it.increment(failed)) {
      if (it->is_regular_file(failed) && is_source(it->path())) files.push_back(it->path());
      if (failed) break;
    }
  }
  std::sort(files.begin(), files.end());
  harness::Fingerprint print;
  for (const fs::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    print.add(file.lexically_relative(root).generic_string());
    print.add(text.str());
  }
  return print.hex();
}

}  // namespace handoff::cli
