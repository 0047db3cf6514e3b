// Tested by certify_test.cc.
//
// handoff certify: what a GPU can say about this version, in one file. Everything that runs on it runs here: solutions
// and variants through their harnesses (one child process each, with a watchdog: submission.h), conformance kernels and
// timing probes on a device whose worker a hang ends (cuda_worker.h), large matrix products beside cuBLASLt
// (certify_gemm.h), and `handoff bench` as a program of its own. So whatever the GPU does to one item, the next one
// runs.
#include "grader/cli/certify.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <regex>
#include <sstream>
#include <thread>

#include "grader/cli/certify_gemm.h"
#include "grader/cli/commands.h"
#include "grader/cli/exercises.h"
#include "grader/cli/files.h"
#include "grader/cli/submission.h"
#include "grader/conformance/case.h"
#include "grader/conformance/compile.h"
#include "grader/conformance/inputs.h"
#include "grader/conformance/record.h"
#include "grader/conformance/run.h"
#include "grader/device/cuda_device.h"
#include "grader/device/device.h"
#include "grader/harness/grade.h"
#include "grader/harness/process.h"
#include "grader/report/json.h"
#include "grader/timing/measure.h"

namespace handoff::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;
using device::MatmulShape;
using harness::ExerciseInfo;
using harness::Verdict;

constexpr int kMinRepeats = 3;
constexpr int kMaxRepeats = 10000;
constexpr int kConformanceLaunches = 3;   // of one conformance::run_case on a GPU
constexpr double kGradingPatience = 120;  // seconds, and more for each repeat
constexpr double kPatienceARepeat = 10;
constexpr double kBenchPatience = 400;  // seconds that `handoff bench --device cuda` may take
constexpr size_t kShownEvery = 50;      // of the short items, the screen shows every so many

// The folders whose files decide what an item does.
const std::vector<std::string>& source_folders() {
  static const std::vector<std::string> folders = {"exercises", "solutions", "grader"};
  return folders;
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::string part_of(const std::string& out) { return out + ".part"; }

CertifyResult skipped(const std::string& why) {
  CertifyResult result;
  result.outcome = CertifyOutcome::Skipped;
  result.message = why;
  return result;
}

/// Everything that the items need. It outlives them.
struct Bench {
  harness::Toolchain toolchain;
  std::unique_ptr<device::Device> gpu;  // idle while a child process has the GPU
  int repeats = kMinRepeats;
  std::vector<ExerciseInfo> exercises;
  std::vector<conformance::Case> cases;
  std::vector<conformance::Code> codes;      // of `cases`, once compiled
  std::optional<conformance::Record> known;  // what another GPU answered
  std::unique_ptr<timing::Bench> timing;
};

// --- solutions and variants ------------------------------------------------------------------------------------------

/// Compiles what the items will ask for, as many files at a time as there are cores; grading then finds it in the
/// cache.
void compile_ahead(const Bench& bench, const std::vector<CertifyItem>& items) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < items.size(); i = next++) {
      if (items[i].file.empty() || !items[i].skip.empty()) continue;
      harness::CompileOptions options;
      options.kernel = items[i].kernel;
      options.include_dir = include_folder();
      harness::compile(bench.toolchain, items[i].file, options);
      options.target = conformance::target_of(*bench.gpu);
      options.want_cubin = true;
      harness::compile(bench.toolchain, items[i].file, options);
    }
  };
  std::vector<std::thread> threads;
  const size_t cores = std::max(1U, std::thread::hardware_concurrency());
  for (size_t i = 0; i < std::min(cores, items.size()); ++i) threads.emplace_back(work);
  for (std::thread& t : threads) t.join();
}

CertifyResult grade_on_gpu(const harness::Toolchain& toolchain, const ExerciseInfo& exercise, const fs::path& file,
                           int repeats) {
  SubmissionJob job{exercise, file, {}, {}, kGradingPatience + kPatienceARepeat * repeats};
  job.options.device = "cuda";
  job.options.repeats = repeats;
  const Verdict verdict = grade_submission(toolchain, job);
  CertifyResult result;
  result.repeats = repeats;
  result.outcome = verdict.passed() ? CertifyOutcome::Passed : CertifyOutcome::Failed;
  result.message = verdict.problem;
  for (const harness::TestOutcome& t : verdict.tests) {
    if (t.state == harness::TestOutcome::State::Failed && result.message.empty())
      result.message = t.name + ": " + t.message;
  }
  result.record = {{"score", verdict.score}, {"max_score", verdict.max_score}, {"nvcc_seconds", verdict.nvcc_seconds}};
  return result;
}

/// The variants of an exercise, sorted.
std::vector<fs::path> variants_of(const ExerciseInfo& exercise) {
  std::vector<fs::path> files;
  std::error_code nothing;
  for (const fs::directory_entry& e :
       fs::directory_iterator(harness::project_root() / "grader" / "variants" / exercise.folder.filename(), nothing)) {
    if (e.path().extension() == ".cu") files.push_back(e.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// --- conformance kernels ---------------------------------------------------------------------------------------------

/// The answer as conformance::to_json writes it: records can be made of a report.
Json answer_json(const std::string& name, const conformance::Answer& answer) {
  conformance::Record record;
  record.cases[name] = answer;
  return Json::parse(conformance::to_json(record)).at("cases").at(name);
}

CertifyResult run_conformance_case(Bench& bench, size_t index) {
  const conformance::Case& c = bench.cases[index];
  CertifyResult result;
  conformance::Outcome outcome;
  std::vector<uint32_t> first;
  // The encoder, and a kernel that must fault, are asked once a run.
  const int launches = c.encodes || !c.fault.empty() ? 1 : kConformanceLaunches;
  for (; result.repeats < bench.repeats && outcome.problem.empty(); result.repeats += launches) {
    outcome = conformance::run_case(*bench.gpu, c, bench.codes[index]);
    if (result.repeats == 0) first = outcome.out;
    if (outcome.problem.empty() && outcome.out != first) outcome.problem = "the answers differ between launches";
  }
  result.message = outcome.problem;
  if (!outcome.problem.empty()) {
    // Undefined behaviour may end in anything.
    if (outcome.crashed && !c.undefined.empty()) return skipped("crashed, where the ISA leaves it open");
    return result;
  }
  result.outcome = CertifyOutcome::Passed;
  const conformance::Answer answer = {outcome.out, c.fingerprint, outcome.faulted};
  result.record = answer_json(c.name, answer);
  if (!bench.known || !bench.known->cases.contains(c.name)) return result;
  const conformance::Comparison compared =
      conformance::compare_answers(c, outcome, bench.gpu->name(), bench.known->cases.at(c.name), bench.known->gpu);
  if (!compared.problem.empty()) result.message = "not compared: " + compared.problem;
  if (compared.difference.empty()) return result;
  result.message = fmt::format("{}: {}{}", bench.known->gpu, compared.difference,
                               c.undefined.empty() ? "" : ", where the ISA leaves it open");
  if (c.undefined.empty()) result.outcome = CertifyOutcome::Failed;
  return result;
}

/// The newest record that the repository has, by name.
std::optional<conformance::Record> newest_record() {
  std::vector<fs::path> records;
  if (!records_in(harness::project_root() / "docs" / "results", "conformance", &records).empty() || records.empty())
    return std::nullopt;
  conformance::Record record;
  if (!conformance::from_json(read_file(records.back()), &record).empty() ||
      record.inputs != conformance::inputs_fingerprint())
    return std::nullopt;
  return record;
}

// --- timing, GEMMs, benchmarks ---------------------------------------------------------------------------------------

CertifyResult run_probe(Bench& bench, const timing::Probe& probe) {
  CertifyResult result;
  Json rounds = Json::array();
  for (; result.repeats < bench.repeats; ++result.repeats) {
    const timing::Outcome outcome = bench.timing->run(probe);
    if (!outcome.problem.empty()) {
      result.message = outcome.problem;
      // A GPU that was restarted has no module, whatever the bench had loaded.
      bench.timing = std::make_unique<timing::Bench>(*bench.gpu, bench.toolchain, conformance::target_of(*bench.gpu));
      return result;
    }
    rounds.push_back({outcome.round.median, outcome.round.least, outcome.round.most});
  }
  result.outcome = CertifyOutcome::Passed;
  result.record = {{"fingerprint", timing::fingerprint(probe)}, {"rounds", std::move(rounds)}};
  return result;
}

std::string last_line(const std::string& text) {
  std::string last;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

/// `handoff bench --device cuda --json FILE` as a program of its own; its record goes into the report as it is.
CertifyResult run_bench_program(const std::string& out) {
  const std::string file = out + ".bench";
  harness::ProcessOptions process;
  process.timeout_s = kBenchPatience;
  const harness::ProcessResult ran =
      harness::run_process({"/proc/self/exe", "bench", "--device", "cuda", "--json", file}, process);
  CertifyResult result;
  const Json record = Json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
  if (record.is_object()) result.record = record;
  std::error_code nothing;
  fs::remove(file, nothing);
  result.repeats = record.is_object() ? 1 : 0;
  result.outcome = ran.ok() && record.is_object() ? CertifyOutcome::Passed : CertifyOutcome::Failed;
  if (ran.ok() && !record.is_object()) result.message = "bench wrote no record";
  if (!ran.ok())
    result.message = harness::describe_failure(ran) + ": " + last_line(ran.errors.empty() ? ran.output : ran.errors);
  return result;
}

std::string name_of(const MatmulShape& shape) {
  return fmt::format("{}/{}x{}x{}", shape.type == MatmulShape::Type::Bf16 ? "bf16" : "f16", shape.m, shape.n, shape.k);
}

/// The products for cuBLASLt and the GEMMs: one small enough to be quick, and the size that public measurements have.
std::vector<MatmulShape> shapes() {
  using enum MatmulShape::Type;
  return {{256, 384, 320, Bf16}, {256, 384, 320, F16}, {4096, 4096, 4096, Bf16}, {4096, 4096, 4096, F16}};
}

void add_gemms(Bench& bench, std::vector<CertifyItem>* items) {
  for (const MatmulShape& shape : shapes()) {
    items->push_back({"cublaslt/" + name_of(shape),
                      "",
                      [&bench, shape] { return certify_cublaslt(bench.toolchain, shape, bench.repeats); },
                      {},
                      {}});
  }
  for (const GemmKernel& kernel : gemm_kernels()) {
    const auto exercise = std::find_if(bench.exercises.begin(), bench.exercises.end(),
                                       [&](const ExerciseInfo& e) { return e.id == kernel.exercise; });
    if (exercise == bench.exercises.end()) continue;
    const std::string why = harness::why_not_on(*bench.gpu, *exercise);
    for (const MatmulShape& shape : shapes()) {
      CertifyItem item{fmt::format("gemm/{}/S={}/{}", kernel.exercise, kernel.stages, name_of(shape)), why, {}, {}, {}};
      item.run = [&bench, exercise, kernel, shape] {
        return certify_gemm(*bench.gpu, bench.toolchain, *exercise, kernel, shape, bench.repeats);
      };
      items->push_back(std::move(item));
    }
  }
}

// --- the whole -------------------------------------------------------------------------------------------------------

std::optional<double> number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// What is wrong with the arguments, before anything is opened; empty: nothing.
std::string judge_arguments(const CertifyArguments& a, int* repeats, double* time_limit, std::regex* only) {
  const std::optional<double> asked = number(a.repeats);
  if (!asked || *asked != static_cast<int>(*asked) || *asked < kMinRepeats || *asked > kMaxRepeats) {
    return fmt::format("--repeats takes a whole number from {} to {}, got '{}'", kMinRepeats, kMaxRepeats, a.repeats);
  }
  *repeats = static_cast<int>(*asked);
  if (!a.time_limit.empty()) {
    const std::optional<double> limit = number(a.time_limit);
    if (!limit || !(*limit > 0)) return "--time-limit takes seconds, more than 0, got '" + a.time_limit + "'";
    *time_limit = *limit;
  }
  try {
    *only = std::regex(a.only);
  } catch (const std::regex_error& e) {
    return fmt::format("--only takes a regular expression, got '{}': {}", a.only, e.what());
  }
  if (a.out.empty() || a.out == "-") return "--out takes a file: what is unfinished is kept beside it";
  return report::why_not_writable(a.out);
}

/// "Linux 6.1.0 x86_64, 16 cores". Not the machine's name: the report leaves the house.
std::string host() {
  utsname names{};
  if (uname(&names) != 0) return "unknown";
  return fmt::format("{} {} {}, {} cores", names.sysname, names.release, names.machine,
                     std::thread::hardware_concurrency());
}

/// The commit of the repository, and whether its files differ from it; "unknown" where there is no git or repository.
std::string commit() {
  const std::string root = harness::project_root().string();
  const harness::ProcessResult head = harness::run_process({"git", "-C", root, "rev-parse", "HEAD"});
  if (!head.ok()) return "unknown";
  const harness::ProcessResult changes =
      harness::run_process({"git", "-C", root, "status", "--porcelain", "--untracked-files=no"});
  std::string text = head.output.substr(0, head.output.find('\n'));
  if (!changes.ok() || !changes.output.empty()) text += ", with changes";
  return text;
}

CertifyAbout describe(const Bench& bench, const CertifyArguments& a) {
  CertifyAbout about;
  about.gpu = bench.gpu->name();
  about.compute_capability = bench.gpu->compute_capability();
  about.driver = device::cuda_driver_version();
  about.toolkit = bench.toolchain.version;
  about.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
  about.host = host();
  about.commit = commit();
  about.sources = source_fingerprint(harness::project_root().string(), source_folders());
  about.repeats = bench.repeats;
  about.only = a.only;
  return about;
}

/// All items that the filter leaves, in the order in which they run, prepared: what can be compiled ahead is.
std::vector<CertifyItem> make_items(Bench& bench, const CertifyArguments& a, const std::regex& only,
                                    const CertifyReport& report) {
  const auto wanted = [&](const std::string& name) {
    return std::regex_search(name, only) && !report.items.contains(name);
  };
  std::vector<CertifyItem> items = submission_items(*bench.gpu, bench.toolchain, bench.exercises, bench.repeats);
  std::erase_if(bench.cases, [&](const conformance::Case& c) { return !wanted("conformance/" + c.name); });
  // The encoder's first: they need no module, and after a fault a GPU has none until the next is loaded.
  std::stable_partition(bench.cases.begin(), bench.cases.end(), [](const conformance::Case& c) { return c.encodes; });
  for (size_t i = 0; i < bench.cases.size(); ++i)
    items.push_back(
        {"conformance/" + bench.cases[i].name, "", [&bench, i] { return run_conformance_case(bench, i); }, {}, {}});
  for (const timing::Probe& probe : timing::all_probes())
    items.push_back({"timing/" + probe.name, "", [&bench, &probe] { return run_probe(bench, probe); }, {}, {}});
  add_gemms(bench, &items);
  items.push_back({"bench/cuda", "", [out = a.out] { return run_bench_program(out); }, {}, {}});
  std::erase_if(items, [&](const CertifyItem& item) { return !wanted(item.name); });

  const auto submissions = std::count_if(
      items.begin(), items.end(), [](const CertifyItem& item) { return !item.file.empty() && item.skip.empty(); });
  if (submissions > 0 || !bench.cases.empty()) {
    std::printf("compiling %td submissions and %zu conformance kernels for sm_%d\n", submissions, bench.cases.size(),
                bench.gpu->compute_capability());
    std::fflush(stdout);
  }
  compile_ahead(bench, items);
  bench.codes = conformance::compile_cases(bench.toolchain, bench.cases, conformance::target_of(*bench.gpu), true);
  return items;
}

/// True for items of which there are hundreds, each a fraction of a second.
bool is_short(const std::string& item) {
  const std::string group = certify_group(item);
  return group == "conformance" || group == "timing";
}

/// Lets the screen say what is being done: a line for each long item and for what fails, now and then one for the rest.
std::vector<CertifyItem> with_progress(std::vector<CertifyItem> items) {
  const size_t count = items.size();
  for (size_t i = 0; i < count; ++i) {
    CertifyItem& item = items[i];
    item.run = [run = std::move(item.run), name = item.name, i, count] {
      const auto start = Clock::now();
      CertifyResult result = [&] {
        const Activity activity(fmt::format("{} of {}: {}", i + 1, count, name));
        return run();
      }();
      result.seconds = seconds_since(start);
      const bool tells = !is_short(name) || result.outcome == CertifyOutcome::Failed || (i + 1) % kShownEvery == 0;
      if (tells) {
        std::printf("%4zu of %zu  %-8s %s (%.1f s)%s%s\n", i + 1, count, to_string(result.outcome), name.c_str(),
                    result.seconds, result.message.empty() ? "" : ": ", result.message.c_str());
        std::fflush(stdout);
      }
      return result;
    };
  }
  return items;
}

/// Opens the GPU and reads what is there to run. Empty, or why that cannot be done.
std::string open_bench(Bench* bench) {
  bench->toolchain = harness::find_toolchain();
  std::string why;
  bench->gpu = device::make_cuda_device(0, &why);
  if (bench->gpu == nullptr) return why;
  if (!bench->toolchain.found()) return harness::missing_toolchain_message(bench->toolchain);
  bench->exercises = exercises();
  bench->known = newest_record();
  bench->timing = std::make_unique<timing::Bench>(*bench->gpu, bench->toolchain, conformance::target_of(*bench->gpu));
  return conformance::find_cases(harness::project_root() / "grader" / "conformance", &bench->cases);
}

}  // namespace

std::vector<CertifyItem> submission_items(const device::Device& gpu, const harness::Toolchain& toolchain,
                                          const std::vector<ExerciseInfo>& exercises, int repeats) {
  std::vector<CertifyItem> items;
  const auto add = [&](const std::string& name, const ExerciseInfo& exercise, const fs::path& file) {
    items.push_back({name, harness::why_not_on(gpu, exercise),
                     [toolchain, exercise, file, repeats] { return grade_on_gpu(toolchain, exercise, file, repeats); },
                     file, exercise.kernel});
  };
  for (const ExerciseInfo& e : exercises) add("solution/" + e.id, e, e.solution);
  for (const ExerciseInfo& e : exercises) {
    for (const fs::path& file : variants_of(e)) add("variant/" + e.id + "/" + file.stem().string(), e, file);
  }
  return items;
}

std::string take_up_certify(const std::string& out, bool resume, CertifyReport* report) {
  const std::string part = part_of(out);
  std::error_code nothing;
  if (!fs::exists(part, nothing)) {
    return resume ? fmt::format("there is no {}: nothing to go on with; leave --resume out to begin", part) : "";
  }
  CertifyReport earlier;
  const std::string wrong = from_json(read_file(part), &earlier);
  if (!resume) {
    return fmt::format(
        "{} has {} items of a report that was cut short: --resume goes on with it; delete it to begin anew", part,
        earlier.items.size());
  }
  if (!wrong.empty()) return part + ": " + wrong;
  if (const std::string why = why_not_resumed(earlier.about, report->about); !why.empty()) return part + ": " + why;
  const std::string date = earlier.about.date;
  report->items = std::move(earlier.items);
  report->about.date = date;
  return "";
}

std::string run_certify_items(const std::vector<CertifyItem>& items, const CertifyLimits& limits,
                              CertifyReport* report) {
  for (const CertifyItem& item : items) {
    if (report->items.contains(item.name)) continue;
    if (limits.seconds > 0 && limits.elapsed() > limits.seconds) return "";
    report->items[item.name] = item.skip.empty() ? item.run() : skipped(item.skip);
    if (std::string problem = report::write_whole(part_of(limits.out), to_json(*report)); !problem.empty())
      return problem;
  }
  report->complete = true;
  if (std::string problem = report::write_whole(limits.out, to_json(*report)); !problem.empty()) return problem;
  std::error_code nothing;
  fs::remove(part_of(limits.out), nothing);
  return "";
}

int run_certify(const CertifyArguments& a) {
  const auto start = Clock::now();
  CertifyLimits limits;
  limits.out = a.out;
  limits.elapsed = [start] { return seconds_since(start); };
  Bench bench;
  std::regex only;
  std::string problem = judge_arguments(a, &bench.repeats, &limits.seconds, &only);
  if (problem.empty()) problem = open_bench(&bench);
  if (!problem.empty()) return refuse(problem);
  CertifyReport report;
  report.about = describe(bench, a);
  if (problem = take_up_certify(a.out, a.resume, &report); !problem.empty()) return refuse(problem);
  std::vector<CertifyItem> items = make_items(bench, a, only, report);
  if (items.empty() && report.items.empty()) return refuse(fmt::format("no item's name matches '{}'", a.only));
  const size_t before = report.items.size(), all = before + items.size();
  if (problem = run_certify_items(with_progress(std::move(items)), limits, &report); !problem.empty())
    return refuse(problem);

  std::printf("\n%s", summarize(report).c_str());
  if (!report.complete) {
    std::printf("%zu of %zu items done within the time limit: go on with --resume\n", report.items.size(), all);
    return kNotFullMarks;
  }
  std::printf("report: %s\n", a.out.c_str());
  const bool good = std::none_of(report.items.begin(), report.items.end(),
                                 [](const auto& item) { return item.second.outcome == CertifyOutcome::Failed; });
  return good ? kFullMarks : kNotFullMarks;
}

}  // namespace handoff::cli
