// Tested by grade_test.cc and by every exercise's tests.
//
// Grading is a GoogleTest run inside this process: the tests of the exercise, once for each device, with a listener
// that collects outcomes in place of the usual printer. Points come from exercise.toml by test name. Where a GPU takes
// part beside the emulator, a test that fails on either device gets no points.
#include "grader/harness/grade.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <regex>
#include <sstream>

#include "grader/harness/session.h"

namespace handoff::harness {
namespace {

/// The line of a GoogleTest message that tells a learner most: a matcher's explanation, else what the test's author
/// streamed into the assertion, else the first line.
std::string first_line_of(const std::string& message) {
  static const std::regex kActual(R"(Actual: ([^\n]*))");
  std::smatch m;
  // EXPECT_TRUE and EXPECT_FALSE have "Actual: false" and "Actual: true", which explain nothing.
  if (std::regex_search(message, m, kActual) && m[1].str() != "true" && m[1].str() != "false") {
    // "nominal, n = 1 (of type handoff::harness::KernelRun), 3 of 5 elements wrong": the type says nothing to a
    // learner.
    static const std::regex kType(R"( \(of type [^)]*\))");
    std::string text = std::regex_replace(m[1].str(), kType, "");
    // "[nominal, n = 1], 3 of 5 elements wrong" reads better with a colon.
    const size_t bracket = text.find("], ");
    if (text.starts_with('[') && bracket != std::string::npos)
      text = text.substr(1, bracket - 1) + ": " + text.substr(bracket + 3);
    return text;
  }
  std::istringstream lines(message);
  std::string first;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line == "Failed" || line == "Skipped") continue;
    if (first.empty()) first = line;
    const bool assertion = line.starts_with("Value of: ") || line.starts_with("Expected: ") ||
                           line.starts_with("Expected equality of these values:") || line.starts_with("  ");
    if (!assertion) return line;
  }
  return first;
}

class Collector : public ::testing::EmptyTestEventListener {
 public:
  struct Outcome {
    std::string device, name, message;
    bool failed = false, skipped = false;
  };
  std::vector<Outcome> outcomes;

 private:
  void OnTestStart(const ::testing::TestInfo& info) override {
    const std::string suite = info.test_suite_name();
    outcomes.push_back({suite.substr(suite.find('/') + 1), info.name(), {}, false, false});
  }
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (outcomes.empty()) return;
    Outcome& o = outcomes.back();
    if (result.failed() || result.skipped()) {
      if (o.message.empty() || (result.failed() && !o.failed)) o.message = first_line_of(result.message());
      o.failed = o.failed || result.failed();
      o.skipped = o.skipped || result.skipped();
    }
  }
};

/// Runs the tests whose suite is one of the session's devices.
std::vector<Collector::Outcome> run_tests(const Session& session) {
  static bool initialised = false;
  if (!initialised) {
    int argc = 1;
    char name[] = "handoff";
    char* argv[] = {name, nullptr};
    ::testing::InitGoogleTest(&argc, argv);
    initialised = true;
  }
  std::string filter;
  for (const auto& [kind, device] : session.devices)
    filter += (filter.empty() ? "" : ":") + session.exercise->id + "/" + kind + ".*";
  ::testing::GTEST_FLAG(filter) = filter;
  ::testing::GTEST_FLAG(catch_exceptions) = true;
  auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
  std::unique_ptr<::testing::TestEventListener> printer(listeners.Release(listeners.default_result_printer()));
  auto* collector = new Collector;
  listeners.Append(collector);
  // The outcome of each test is what counts, not the program's.
  [[maybe_unused]] const int status = RUN_ALL_TESTS();
  std::unique_ptr<::testing::TestEventListener> owned(listeners.Release(collector));
  return collector->outcomes;
}

/// Compiles the submission for a GPU into session.for_gpu. Returns why that cannot be done, or an empty string.
std::string compile_for(const device::Device& gpu, Session& session) {
  const Toolchain toolchain = find_toolchain();
  if (!toolchain.found()) return missing_toolchain_message(toolchain);
  CompileOptions options;
  options.target = fmt::format("{}a", gpu.compute_capability());
  options.want_cubin = true;
  options.kernel = session.exercise->kernel;
  options.include_dir = project_root() / "exercises" / "include";
  session.for_gpu = compile(toolchain, session.submission, options);
  return session.for_gpu.ok ? std::string()
                            : fmt::format("{} for sm_{}: {}", session.submission.filename().string(), options.target,
                                          session.for_gpu.error);
}

void open_devices(Session& session, Verdict& verdict) {
  const std::string& asked = session.options.device;
  if (asked != "cuda") session.devices["emulator"] = device::make_emulated_device();
  if (asked == "emulator") return;
  std::string why;
  std::unique_ptr<device::Device> gpu =
      session.options.open_gpu ? session.options.open_gpu(&why) : device::make_cuda_device(0, &why);
  if (gpu == nullptr) {
    if (asked == "cuda") {
      verdict.could_grade = false;
      verdict.problem = why;
    }
    return;
  }
  why = why_not_on(*gpu, *session.exercise);
  if (why.empty()) why = compile_for(*gpu, session);
  if (why.empty()) {
    session.devices["cuda"] = std::move(gpu);
    return;
  }
  if (asked == "cuda") {
    verdict.could_grade = false;
    verdict.problem = why;
  } else {
    verdict.notes.push_back("cuda: skipped: " + why);
  }
}

/// Columns of a verdict's timeline: what fits on a screen beside the names of the units.
constexpr size_t kTimelineColumns = 64;

SharedMemoryUse shared_memory_of(const trace::Trace& trace) {
  const trace::Totals& t = trace.totals;
  SharedMemoryUse use{t.shared_accesses, t.shared_wavefronts, t.shared_minimum, t.distributed_accesses, {}};
  for (const trace::SharedLine& line : trace.shared_lines) {
    if (line.above() > 0) use.conflicts.push_back(line);
  }
  return use;
}

void collect_diagnostics(const Session& session, Verdict& verdict) {
  for (const auto& [kind, results] : session.results) {
    for (const KernelRun& run : results.runs) {
      for (const Diagnostic& d : run.result.diagnostics) {
        const bool known =
            std::any_of(verdict.diagnostics.begin(), verdict.diagnostics.end(), [&](const FoundDiagnostic& f) {
              return (f.diagnostic.id == d.id && f.diagnostic.place == d.place) || mirrors(f.diagnostic, d);
            });
        if (known) continue;
        verdict.diagnostics.push_back(
            {d, run.device,
             run.device == "emulator" ? std::string(machine::to_string(run.schedule.kind)) : std::string(),
             run.schedule.seed, run.test_case->name()});
      }
      if (verdict.state.empty() && !run.result.state.empty()) {
        verdict.state = run.result.state;
        verdict.deadlock_schedule = machine::to_string(run.schedule);
      }
      const bool bad = !run.result.ok() || !run.outputs.right() ||
                       std::any_of(run.result.diagnostics.begin(), run.result.diagnostics.end(),
                                   [](const Diagnostic& d) { return d.severity == Severity::Error; });
      if (bad && verdict.reproduce.empty() && run.device == "emulator") {
        verdict.reproduce = fmt::format("--schedule {}", machine::to_string(run.schedule.kind));
        if (run.schedule.kind == machine::Schedule::Kind::Random)
          verdict.reproduce += fmt::format(" --seed {}", run.schedule.seed);
      }
    }
    if (kind == "emulator" && !results.runs.empty()) {
      std::vector<std::string> seen;
      for (const KernelRun& run : results.runs) {
        const std::string s = machine::to_string(run.schedule);
        if (std::find(seen.begin(), seen.end(), s) == seen.end()) seen.push_back(s);
      }
      verdict.runs = static_cast<int>(seen.size());
      verdict.cases = static_cast<int>(results.cases.size());
      verdict.output = results.runs.front().result.output;
      for (const KernelRun& run : results.runs) {
        if (run.schedule.kind != results.runs.front().schedule.kind || !run.result.ok()) continue;
        verdict.modeled_cycles = run.result.modeled_cycles;
        verdict.shared_memory = shared_memory_of(run.result.trace);
        const trace::Totals& t = run.result.trace.totals;
        verdict.units = {t.cta_cycles, t.load_busy, t.store_busy, t.mma_busy, t.port_busy};
        verdict.timeline = trace::timeline_of(run.result.trace.first_cta, kTimelineColumns);
      }
    } else if (verdict.output.empty() && !results.runs.empty()) {
      verdict.output = results.runs.front().result.output;
    }
  }
}

}  // namespace

std::string why_not_on(const device::Device& gpu, const ExerciseInfo& exercise) {
  const int capability = gpu.compute_capability();
  std::string needs;
  if (exercise.needs == "tcgen05" && !gpu.has_tcgen05()) {
    needs = "tcgen05 (sm_100, sm_103)";
  } else if (capability < 90) {
    needs = "sm_90 or newer";
  }
  return needs.empty() ? needs : fmt::format("needs {}; this GPU is {} (sm_{})", needs, gpu.name(), capability);
}

Verdict grade(const ExerciseInfo& exercise, const std::filesystem::path& submission_file, const CompileResult& compiled,
              const GradeOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  Verdict verdict;
  verdict.exercise = exercise.id;
  verdict.title = exercise.name;
  verdict.submission = submission_file.string();
  verdict.max_score = exercise.max_score();
  verdict.resources = compiled.resources;
  verdict.nvcc_seconds = compiled.seconds;

  Session session;
  session.exercise = &exercise;
  session.compiled = &compiled;
  session.submission = submission_file;
  session.options = options;
  open_devices(session, verdict);
  if (!verdict.could_grade) return verdict;
  for (const auto& [kind, device] : session.devices) {
    verdict.devices +=
        (verdict.devices.empty() ? "" : " + ") + (kind == "emulator" ? std::string("emulator") : device->name());
  }

  set_current_session(&session);
  const std::vector<Collector::Outcome> outcomes = run_tests(session);
  set_current_session(nullptr);

  for (const auto& [kind, results] : session.results) {
    if (!results.error.empty() && verdict.problem.empty()) verdict.problem = results.error;
    for (const Case& c : results.cases)
      verdict.resources.dynamic_smem = std::max(verdict.resources.dynamic_smem, c.config().dynamic_smem);
  }
  const bool both = session.devices.size() == 2;
  const auto failed_somewhere = [&](const std::string& name) {
    return std::any_of(outcomes.begin(), outcomes.end(), [&](const auto& o) { return o.name == name && o.failed; });
  };
  for (const auto& [kind, device] : session.devices) {
    for (const auto& [name, points] : exercise.points) {
      const auto o = std::find_if(outcomes.begin(), outcomes.end(), [&, kind = kind, name = name](const auto& x) {
        return x.device == kind && x.name == name;
      });
      TestOutcome t;
      t.name = name;
      t.device = kind;
      if (o == outcomes.end()) {
        t.message = "the harness has no such test";
      } else {
        t.state = o->failed    ? TestOutcome::State::Failed
                  : o->skipped ? TestOutcome::State::NotRun
                               : TestOutcome::State::Passed;
        t.message = o->message;
      }
      // A test that only the emulator can decide costs nothing when only a GPU was asked for; beside the emulator a
      // GPU's tests are a second opinion: they bring no points of their own, but failing one takes the points of its
      // namesake.
      const bool counts = kind == "emulator" || (!both && t.state != TestOutcome::State::NotRun);
      t.max_score = counts ? points : 0;
      t.score = counts && t.state == TestOutcome::State::Passed && !failed_somewhere(name) ? points : 0;
      verdict.score += t.score;
      verdict.tests.push_back(std::move(t));
    }
  }
  if (!both && session.devices.contains("cuda")) {
    verdict.max_score = 0;
    for (const TestOutcome& t : verdict.tests) verdict.max_score += t.max_score;
  }
  collect_diagnostics(session, verdict);
  verdict.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return verdict;
}

}  // namespace handoff::harness
