// handoff timing: runs the probes of grader/timing on the emulator or a GPU, records a GPU's figures, compares the
// model's with recorded ones. For developers.
#include "grader/cli/timing.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>
#include <sstream>

#include "grader/cli/commands.h"
#include "grader/cli/conformance.h"
#include "grader/cli/exercises.h"
#include "grader/cli/files.h"
#include "grader/device/cuda_device.h"
#include "grader/device/device.h"
#include "grader/harness/toolchain.h"
#include "grader/report/json.h"
#include "grader/timing/measure.h"
#include "grader/timing/record.h"

namespace handoff::cli {
namespace {

namespace fs = std::filesystem;
using timing::Outcome;
using timing::Probe;
using timing::Record;

// A line agrees within either. The second is for figures of a few cycles: the model counts whole ones.
constexpr double kTolerance = 0.15;
constexpr double kToleranceCycles = 1.0;

/// The probes whose name `only` is found in, and those of the clock, without which the others say nothing. Empty, or
/// what is wrong.
std::string select_probes(const std::string& only, std::vector<Probe>* probes) {
  *probes = timing::all_probes();
  if (only.empty()) return "";
  try {
    const std::regex wanted(only);
    std::erase_if(*probes, [&](const Probe& p) {
      return p.name != timing::clock_probe(p) && !std::regex_search(p.name, wanted);
    });
  } catch (const std::regex_error& e) {
    return fmt::format("--only takes a regular expression, got '{}': {}", only, e.what());
  }
  return "";
}

/// The record that --compare names; a folder stands for the last of its files timing-*.json. Returns what is wrong, or
/// empty; no record where the folder has none.
std::string read_record(const std::string& path, std::optional<Record>* out) {
  if (path.empty()) return "";
  fs::path file = path;
  std::error_code failed;
  if (fs::is_directory(path, failed)) {
    std::vector<fs::path> records;
    if (std::string problem = records_in(path, "timing", &records); !problem.empty()) return problem;
    if (records.empty()) return "";
    file = records.back();
  }
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return file.string() + ": cannot be read";
  const std::string problem = timing::from_json(text.str(), &out->emplace());
  return problem.empty() ? "" : file.string() + ": " + problem;
}

/// What is wrong with the arguments, before anything is run; empty: nothing.
std::string judge_arguments(const TimingArguments& a) {
  if (a.device != "emulator" && a.device != "cuda") {
    return "no device '" + a.device + "'" + suggestion(a.device, {"emulator", "cuda"}, "; there are emulator and cuda");
  }
  if (a.model != "blackwell" && a.model != "hopper") {
    return "no model '" + a.model + "'" +
           suggestion(a.model, {"blackwell", "hopper"}, "; there are blackwell and hopper");
  }
  if (a.device == "cuda" && a.model != "blackwell") return "--model chooses what is emulated: leave --device cuda out";
  if (a.record.empty()) return "";
  if (a.device != "cuda") return "--record keeps what a GPU measures: add --device cuda";
  if (!a.only.empty()) return "--record keeps all probes: leave --only out";
  return report::why_not_writable(a.record);
}

/// What becomes of the lines of a comparison.
struct Tally {
  size_t agree = 0, not_compared = 0;
};

/// Prints a probe's line of the comparison. False: the two disagree, or cannot be compared.
bool print_comparison(const Probe& p, double cycles, const Record& record, Tally* tally) {
  const auto found = record.probes.find(p.name);
  if (found == record.probes.end()) {
    std::printf("| %s | %.1f | | not recorded |\n", p.name.c_str(), cycles);
    return false;
  }
  if (found->second.fingerprint != timing::fingerprint(p)) {
    std::printf("| %s | %.1f | | has changed since it was recorded |\n", p.name.c_str(), cycles);
    return false;
  }
  if (!p.not_measured.empty()) {
    std::printf("| %s | %.1f | | not measured: %s |\n", p.name.c_str(), cycles, p.not_measured.c_str());
    ++tally->not_compared;
    return true;
  }
  const auto clock = record.probes.find(timing::clock_probe(p));
  if (clock == record.probes.end()) {
    std::printf("| %s | %.1f | | `%s` is not recorded |\n", p.name.c_str(), cycles, timing::clock_probe(p));
    return false;
  }
  const double chip = timing::cycles_of(p, found->second.round, clock->second.round.median);
  if (!p.not_modelled.empty()) {
    std::printf("| %s | %.1f | %.1f | not modelled: %s |\n", p.name.c_str(), cycles, chip, p.not_modelled.c_str());
    ++tally->not_compared;
    return true;
  }
  const double difference = cycles - chip;
  const bool close = std::fabs(difference) <= std::max(kTolerance * std::fabs(chip), kToleranceCycles);
  // A relative error says little of a figure below a cycle.
  const std::string error = std::fabs(chip) < kToleranceCycles ? fmt::format("{:+.1f} cycles", difference)
                                                               : fmt::format("{:+.0f} %", difference / chip * 100);
  std::printf("| %s | %.1f | %.1f | %s%s |\n", p.name.c_str(), cycles, chip, error.c_str(), close ? "" : " **off**");
  tally->agree += close ? 1 : 0;
  return close;
}

void print_indented(const std::string& text) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) std::printf("  %s\n", line.c_str());
}

}  // namespace

int run_timing(const TimingArguments& a) {
  std::vector<Probe> probes;
  std::optional<Record> recorded;
  std::string problem = judge_arguments(a);
  if (problem.empty()) problem = select_probes(a.only, &probes);
  if (problem.empty()) problem = read_record(a.compare, &recorded);
  if (!problem.empty()) return refuse(problem);
  if (!a.compare.empty() && !recorded) {
    std::printf("skipped: nothing is recorded: no timing-*.json in %s\n", a.compare.c_str());
    return kSkipped;
  }
  const harness::Toolchain toolchain = harness::find_toolchain();
  if (!toolchain.found()) {
    std::printf("skipped: %s\n", harness::missing_toolchain_message(toolchain).c_str());
    return kSkipped;
  }
  const std::unique_ptr<device::Device> device =
      a.device == "emulator" ? device::make_emulated_device(a.model == "hopper" ? machine::kH200 : machine::kB200)
                             : device::make_cuda_device(0, &problem);
  if (device == nullptr) return refuse(problem);
  timing::Bench bench(*device, toolchain, fmt::format("{}a", device->compute_capability()));

  if (recorded) {
    std::printf("| probe | %s | %s | error |\n|---|---|---|---|\n", device->name().c_str(), recorded->gpu.c_str());
  } else {
    std::printf("| probe | %s: cycles | least and most of a round |\n|---|---|---|\n", device->name().c_str());
  }
  Record record;
  size_t failed = 0;
  Tally tally;
  for (const Probe& p : probes) {
    const Outcome outcome = bench.run(p);
    if (!outcome.problem.empty()) {
      std::printf("| %s | %s |\n", p.name.c_str(), outcome.problem.c_str());
      print_indented(outcome.detail);
      ++failed;
      continue;
    }
    record.probes[p.name] = {outcome.round, timing::fingerprint(p)};
    const auto clock = record.probes.find(a.device == "cuda" ? timing::clock_probe(p) : "clock");
    const double cycles =
        timing::cycles_of(p, outcome.round, clock == record.probes.end() ? 0 : clock->second.round.median);
    if (recorded) {
      failed += print_comparison(p, cycles, *recorded, &tally) ? 0 : 1;
    } else {
      std::printf("| %s | %.2f | %.0f – %.0f |\n", p.name.c_str(), cycles, outcome.round.least, outcome.round.most);
    }
  }
  std::printf("\n%zu probes, %zu failed", probes.size(), failed);
  if (recorded) {
    std::printf("; %zu agree within %.0f %% or %.0f cycle, %zu are not compared; recorded %s, driver %s, toolkit %s",
                tally.agree, kTolerance * 100, kToleranceCycles, tally.not_compared, recorded->date.c_str(),
                recorded->driver.c_str(), recorded->toolkit.c_str());
  }
  std::printf("\n");
  if (failed > 0 && !a.record.empty()) std::printf("recorded without those that failed\n");
  if (!a.record.empty()) {
    record.gpu = device->name();
    record.driver = device::cuda_driver_version();
    record.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
    record.toolkit = toolchain.version;
    if (const std::string wrong = report::write_whole(a.record, timing::to_json(record)); !wrong.empty())
      return refuse(wrong);
  }
  return failed > 0 ? kNotFullMarks : kFullMarks;
}

}  // namespace handoff::cli
