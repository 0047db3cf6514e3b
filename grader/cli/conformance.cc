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
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "grader/cli/commands.h"
#include "grader/cli/exercises.h"
#include "grader/cli/files.h"
#include "grader/conformance/case.h"
#include "grader/conformance/compile.h"
#include "grader/conformance/inputs.h"
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
using conformance::Code;
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
  size_t failed = 0, agree = 0, not_recorded = 0, undefined_differ = 0, undefined_crashed = 0;
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

/// Reads one record. Empty, or what is wrong.
std::string read_record(const fs::path& file, Record* record) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return file.string() + ": cannot be read";
  std::string problem = conformance::from_json(text.str(), record);
  if (problem.empty() && record->inputs != conformance::inputs_fingerprint())
    problem = "its cases had another input (grader/conformance/inputs.cc): record all of them again, in another file";
  return problem.empty() ? "" : file.string() + ": " + problem;
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
    if (std::string problem = records_in(path, "conformance", &files); !problem.empty()) return problem;
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    NamedRecord named{file, {}};
    if (std::string problem = read_record(file, &named.record); !problem.empty()) return problem;
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
        conformance::compare_answers(c, outcome, device, answer->second, named.record.gpu);
    if (!found.problem.empty()) {
      std::printf("FAILED  %s: %s (%s)\n", c.name.c_str(), found.problem.c_str(), named.file.filename().c_str());
      good = false;
    } else if (!found.difference.empty()) {
      differs = true;
      std::printf("%s %s: %s (%s)\n", c.undefined.empty() ? "FAILED " : "differs", c.name.c_str(),
                  found.difference.c_str(), named.file.filename().c_str());
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
          {"fault", outcome.faulted},
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

/// The cases in the order in which they run: the encoder's first, because they need no module, and after a fault a GPU
/// has none until the next is loaded.
void order_for_run(std::vector<Case>* cases) {
  std::stable_partition(cases->begin(), cases->end(), [](const Case& c) { return c.encodes; });
}

/// Compiles the cases for `target`, and says so: it takes a while.
std::vector<Code> compile(const harness::Toolchain& toolchain, const std::vector<Case>& cases,
                          const std::string& target, bool want_cubin) {
  const auto kernels = std::count_if(cases.begin(), cases.end(), [](const Case& c) { return !c.encodes; });
  if (kernels > 0) {
    std::printf("compiling %td kernels for sm_%s\n", kernels, target.c_str());
    std::fflush(stdout);
  }
  return conformance::compile_cases(toolchain, cases, target, want_cubin);
}

/// Prints what went wrong with a case that gave no answer, and counts it. Undefined behaviour may end in anything: that
/// is told and is no failure.
void tell_problem(const Case& c, const Outcome& outcome, Tally* tally) {
  const bool excused = outcome.crashed && !c.undefined.empty();
  std::printf("%s %s: %s\n", excused ? "crashed" : "FAILED ", c.name.c_str(), outcome.problem.c_str());
  if (excused) std::printf("  undefined: %s\n", c.undefined.c_str());
  print_indented(outcome.detail);
  tally->failed += excused ? 0 : 1;
  tally->undefined_crashed += excused ? 1 : 0;
}

/// Completes what was recorded now by what the file already had of the same GPU, driver and toolkit: answers of cases
/// that did not run this time (`ran` says which did) and have not changed.
std::string add_earlier_answers(const fs::path& file, const std::vector<Case>& ran, Record* record) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return "";
  Record earlier;
  if (std::string problem = read_record(file, &earlier); !problem.empty()) return problem;
  if (earlier.gpu != record->gpu || earlier.driver != record->driver || earlier.toolkit != record->toolkit) {
    return fmt::format("{} has the answers of {}, {}, toolkit {}; these are of {}, {}, toolkit {}: name another file",
                       file.string(), earlier.gpu, earlier.driver, earlier.toolkit, record->gpu, record->driver,
                       record->toolkit);
  }
  std::vector<Case> cases;
  if (std::string problem = select_cases("", &cases); !problem.empty()) return problem;
  for (const Case& c : cases) {
    const auto answer = earlier.cases.find(c.name);
    if (answer == earlier.cases.end() || answer->second.fingerprint != c.fingerprint) continue;
    if (std::any_of(ran.begin(), ran.end(), [&](const Case& r) { return r.name == c.name; })) continue;
    record->cases.insert(*answer);
  }
  return "";
}

/// Writes the answers of the cases that gave one; prints which gave none. Empty, or why the file cannot be written.
std::string write_record(const ConformanceArguments& a, const std::vector<Case>& ran, Record* record) {
  size_t missing = 0;
  for (const Case& c : ran) {
    if (record->cases.contains(c.name)) continue;
    if (missing++ == 0) std::printf("not recorded:\n");
    std::printf("  %s\n", c.name.c_str());
  }
  const size_t fresh = record->cases.size();
  if (std::string problem = add_earlier_answers(a.record, ran, record); !problem.empty()) return problem;
  std::printf("recorded: %zu answers, %zu kept from before, %zu cases gave none\n", fresh, record->cases.size() - fresh,
              missing);
  return report::write_whole(a.record, conformance::to_json(*record));
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
  const std::string shown = emulated ? "emulator" : device->name();
  order_for_run(&cases);
  const std::vector<Code> codes = compile(toolchain, cases, conformance::target_of(*device), /*want_cubin=*/!emulated);
  // A case that is not recorded yet must at least compile for the GPU that will answer it.
  std::vector<Case> unrecorded;
  std::vector<Code> unrecorded_codes;
  if (emulated) {
    std::copy_if(cases.begin(), cases.end(), std::back_inserter(unrecorded),
                 [&](const Case& c) { return !is_recorded(c, records); });
    unrecorded_codes = compile(toolchain, unrecorded, kRecordingTarget, /*want_cubin=*/false);
  }

  Record record;
  Json report = Json::object();
  Tally tally;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    Outcome outcome = conformance::run_case(*device, c, codes[i]);
    const auto other =
        std::find_if(unrecorded.begin(), unrecorded.end(), [&](const Case& u) { return u.name == c.name; });
    if (outcome.problem.empty() && other != unrecorded.end()) {
      const Code& code = unrecorded_codes[static_cast<size_t>(other - unrecorded.begin())];
      if (code.compiled != nullptr && !code.compiled->ok) {
        outcome.problem = fmt::format("for sm_{}: {}", kRecordingTarget, code.compiled->error);
        outcome.detail = code.compiled->detail;
      }
    }
    bool good = outcome.problem.empty();
    if (good) {
      good = agrees(c, outcome, shown, records, &tally);
      tally.failed += good ? 0 : 1;
    } else {
      tell_problem(c, outcome, &tally);
    }
    std::fflush(stdout);
    report[c.name] = case_json(c, outcome, good);
    // What differs from another record is recorded all the same: it is what this GPU answered.
    // So is a fault, also one that the head does not name.
    if (outcome.faulted) {
      record.cases[c.name] = {{}, c.fingerprint, /*fault=*/true};
    } else if (outcome.problem.empty()) {
      record.cases[c.name] = {std::move(outcome.out), c.fingerprint};
    }
  }
  // With --only most recorded cases are left out on purpose.
  if (a.only.empty()) tally.failed += report_orphans(cases, records);

  std::printf("%s: %zu cases, %zu failed", shown.c_str(), cases.size(), tally.failed);
  if (tally.undefined_crashed > 0) std::printf(", %zu crashed where that is undefined", tally.undefined_crashed);
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
  if (!a.record.empty()) {
    record.gpu = shown;
    record.driver = device::cuda_driver_version();
    record.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
    record.toolkit = toolchain.version;
    record.inputs = conformance::inputs_fingerprint();
    if (const std::string failed = write_record(a, cases, &record); !failed.empty()) return refuse(failed);
  }
  if (tally.failed > 0) return kNotFullMarks;
  if (!a.compare.empty() && records.empty()) {
    std::printf("skipped: nothing is recorded: no conformance-*.json\n");
    return kSkipped;
  }
  return kFullMarks;
}

}  // namespace handoff::cli
