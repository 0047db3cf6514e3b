// handoff conformance: runs the cases of grader/conformance on the emulator or a GPU, records a GPU's answers, compares
// answers with recorded ones. For developers.
#include "grader/cli/conformance.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "grader/cli/commands.h"
#include "grader/cli/exercises.h"
#include "grader/conformance/case.h"
#include "grader/conformance/record.h"
#include "grader/conformance/run.h"
#include "grader/device/cuda_device.h"
#include "grader/device/device.h"
#include "grader/harness/catalog.h"
#include "grader/harness/toolchain.h"
#include "grader/report/json.h"

namespace handoff::cli {
namespace {

namespace fs = std::filesystem;
using conformance::Case;
using conformance::Outcome;
using conformance::Record;
using Json = nlohmann::ordered_json;

// The GPUs at hand have it: a case that is not recorded yet must at least compile for them.
constexpr const char* kRecordingTarget = "90a";

/// A record and where it came from.
struct NamedRecord {
  fs::path file;
  Record record;
};

/// What the suite has said so far.
struct Tally {
  size_t failed = 0, agree = 0, not_recorded = 0, undefined_differ = 0;
};

/// The cases whose name `only` is found in. Empty, or what is wrong.
std::string select_cases(const std::string& only, std::vector<Case>* cases) {
  if (std::string problem = conformance::find_cases(harness::project_root() / "grader" / "conformance", cases);
      !problem.empty()) {
    return problem;
  }
  if (only.empty()) return cases->empty() ? "grader/conformance has no cases" : "";
  try {
    const std::regex wanted(only);
    std::erase_if(*cases, [&](const Case& c) { return !std::regex_search(c.name, wanted); });
  } catch (const std::regex_error& e) {
    return fmt::format("--only takes a regular expression, got '{}': {}", only, e.what());
  }
  return cases->empty() ? fmt::format("no case's name (family/name) matches '{}'", only) : "";
}

/// Reads the records that --compare names; a folder stands for its files conformance-*.json. Empty, or what is wrong.
std::string read_records(const std::vector<std::string>& paths, std::vector<NamedRecord>* records) {
  std::vector<fs::path> files;
  for (const std::string& path : paths) {
    std::error_code failed;
    if (!fs::is_directory(path, failed)) {
      files.emplace_back(path);
      continue;
    }
    for (const fs::directory_entry& e : fs::directory_iterator(path, failed)) {
      const std::string name = e.path().filename().string();
      if (name.starts_with("conformance-") && e.path().extension() == ".json") files.push_back(e.path());
    }
    if (failed) return path + ": " + failed.message();
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    if (!in) return file.string() + ": cannot be read";
    NamedRecord named{file, {}};
    if (const std::string problem = conformance::from_json(text.str(), &named.record); !problem.empty())
      return file.string() + ": " + problem;
    records->push_back(std::move(named));
  }
  return "";
}

void print_indented(const std::string& text) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) std::printf("  %s\n", line.c_str());
}

/// Compares one answer with every record that has the case; prints what differs. True: nothing that matters does.
bool agrees(const Case& c, const Outcome& outcome, const std::string& device, const std::vector<NamedRecord>& records,
            Tally* tally) {
  bool good = true, recorded = false, differs = false;
  for (const NamedRecord& named : records) {
    const auto answer = named.record.cases.find(c.name);
    if (answer == named.record.cases.end()) continue;
    recorded = true;
    const conformance::Comparison found =
        conformance::compare_answers(c, outcome.out, device, answer->second, named.record.gpu);
    if (!found.problem.empty()) {
      std::printf("FAILED  %s: %s (%s)\n", c.name.c_str(), found.problem.c_str(), named.file.filename().c_str());
      good = false;
    } else if (found.wrong > 0) {
      differs = true;
      std::printf("%s %s: %zu of %zu words differ from %s\n", c.undefined.empty() ? "FAILED " : "differs",
                  c.name.c_str(), found.wrong, outcome.out.size(), named.file.filename().c_str());
      for (const std::string& line : found.lines) std::printf("  %s %s\n", c.name.c_str(), line.c_str());
      if (c.undefined.empty()) {
        good = false;
      } else {
        std::printf("  undefined: %s\n", c.undefined.c_str());
      }
    }
  }
  tally->not_recorded += recorded ? 0 : 1;
  tally->undefined_differ += good && differs ? 1 : 0;
  tally->agree += good && recorded && !differs ? 1 : 0;
  return good;
}

Json case_json(const Case& c, const Outcome& outcome, bool good) {
  Json diagnostics = Json::array();
  for (const Diagnostic& d : outcome.diagnostics)
    diagnostics.push_back({{"id", d.id}, {"line", d.place.line}, {"message", d.message}});
  return {{"good", good},
          {"problem", outcome.problem},
          {"undefined", c.undefined},
          {"diagnostics", std::move(diagnostics)},
          {"words", outcome.out.size()},
          {"kernel", c.fingerprint},
          {"out", conformance::encode_words(outcome.out)}};
}

/// Prints the entries of the records that no case answers to any more; how many.
size_t report_orphans(const std::vector<Case>& cases, const std::vector<NamedRecord>& records) {
  size_t orphans = 0;
  for (const NamedRecord& named : records) {
    for (const auto& [name, answer] : named.record.cases) {
      if (std::any_of(cases.begin(), cases.end(), [&, name = name](const Case& c) { return c.name == name; })) continue;
      std::printf("FAILED  %s has an answer of %s, and there is no such case\n", named.file.filename().c_str(),
                  name.c_str());
      ++orphans;
    }
  }
  return orphans;
}

/// True if some record has this case.
bool is_recorded(const Case& c, const std::vector<NamedRecord>& records) {
  return std::any_of(records.begin(), records.end(),
                     [&](const NamedRecord& named) { return named.record.cases.contains(c.name); });
}

/// What is wrong with the arguments, before anything is run; empty: nothing.
std::string judge_arguments(const ConformanceArguments& a) {
  if (a.device != "emulator" && a.device != "cuda") {
    return "no device '" + a.device + "'" + suggestion(a.device, {"emulator", "cuda"}, "; there are emulator and cuda");
  }
  if (!a.record.empty() && a.device != "cuda") return "--record keeps what a GPU answers: add --device cuda";
  if (!a.record.empty()) {
    if (std::string problem = report::why_not_writable(a.record); !problem.empty()) return problem;
  }
  return a.json.empty() ? "" : report::why_not_writable(a.json);
}

}  // namespace

int run_conformance(const ConformanceArguments& a) {
  std::vector<Case> cases;
  std::vector<NamedRecord> records;
  std::string problem = judge_arguments(a);
  if (problem.empty()) problem = select_cases(a.only, &cases);
  if (problem.empty()) problem = read_records(a.compare, &records);
  if (!problem.empty()) return refuse(problem);
  const harness::Toolchain toolchain = harness::find_toolchain();
  if (!toolchain.found()) {
    std::printf("skipped: %s\n", harness::missing_toolchain_message(toolchain).c_str());
    return kSkipped;
  }
  const bool emulated = a.device == "emulator";
  const std::unique_ptr<device::Device> device =
      emulated ? device::make_emulated_device() : device::make_cuda_device(0, &problem);
  if (device == nullptr) return refuse(problem);
  const std::string target = conformance::target_of(*device);
  const std::string shown = emulated ? "emulator" : device->name();
  conformance::warm_compile_cache(toolchain, cases, target, /*want_cubin=*/!emulated);
  if (emulated) {
    std::vector<Case> unrecorded = cases;
    std::erase_if(unrecorded, [&](const Case& c) { return is_recorded(c, records); });
    conformance::warm_compile_cache(toolchain, unrecorded, kRecordingTarget, /*want_cubin=*/false);
  }

  Record record;
  Json report = Json::object();
  Tally tally;
  for (const Case& c : cases) {
    Outcome outcome =
        conformance::run_case(*device, c, conformance::compile_case(toolchain, c, target, /*want_cubin=*/!emulated));
    if (outcome.problem.empty() && emulated && !is_recorded(c, records)) {
      const harness::CompileResult other = conformance::compile_case(toolchain, c, kRecordingTarget, false);
      if (!other.ok) outcome.problem = fmt::format("for sm_{}: {}", kRecordingTarget, other.error);
      outcome.detail = other.detail;
    }
    bool good = outcome.problem.empty();
    if (good) {
      good = agrees(c, outcome, shown, records, &tally);
    } else {
      std::printf("FAILED  %s: %s\n", c.name.c_str(), outcome.problem.c_str());
      print_indented(outcome.detail);
    }
    tally.failed += good ? 0 : 1;
    report[c.name] = case_json(c, outcome, good);
    record.cases[c.name] = {std::move(outcome.out), c.fingerprint};
  }
  // With --only most recorded cases are left out on purpose.
  if (a.only.empty()) tally.failed += report_orphans(cases, records);

  std::printf("%s: %zu cases, %zu failed", shown.c_str(), cases.size(), tally.failed);
  if (!records.empty()) {
    std::printf("; %zu as recorded, %zu differ where the answer is undefined, %zu not recorded", tally.agree,
                tally.undefined_differ, tally.not_recorded);
  }
  std::printf("\n");
  if (!a.json.empty()) {
    const std::string text = Json{{"version", 1}, {"device", shown}, {"cases", std::move(report)}}.dump(
                                 1, ' ', false, Json::error_handler_t::replace) +
                             "\n";
    if (const std::string failed = report::write_whole(a.json, text); !failed.empty()) return refuse(failed);
  }
  if (tally.failed > 0) {
    if (!a.record.empty()) std::printf("nothing was recorded: every case must run first\n");
    return kNotFullMarks;
  }
  if (!a.record.empty()) {
    record.gpu = shown;
    record.driver = device::cuda_driver_version();
    record.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
    record.toolkit = toolchain.version;
    if (const std::string failed = report::write_whole(a.record, conformance::to_json(record)); !failed.empty())
      return refuse(failed);
  }
  if (!a.compare.empty() && records.empty()) {
    std::printf("skipped: nothing is recorded: no conformance-*.json\n");
    return kSkipped;
  }
  return kFullMarks;
}

}  // namespace handoff::cli
