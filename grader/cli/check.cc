// handoff check: grades one exercise, or all.
#include <unistd.h>

#include <cctype>
#include <charconv>
#include <cstdio>

#include "grader/cli/commands.h"
#include "grader/cli/exercises.h"
#include "grader/cli/state.h"
#include "grader/cli/submission.h"
#include "grader/report/json.h"
#include "grader/report/terminal.h"

namespace handoff::cli {
namespace {

namespace fs = std::filesystem;
using harness::ExerciseInfo;
using harness::Verdict;

constexpr double kMaxTimeout = 24 * 3600;
constexpr uint64_t kMaxRepeats = 10000;

// An unsigned number that is the whole of `text`.
std::optional<uint64_t> whole_number(const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_one_of(const std::string& value, const std::vector<std::string>& allowed) {
  for (const std::string& a : allowed) {
    if (a == value) return true;
  }
  return false;
}

std::string choices(const std::vector<std::string>& allowed) {
  std::string text;
  for (const std::string& a : allowed) text += (text.empty() ? "" : ", ") + a;
  return text;
}

// What is wrong with the arguments: one line, or empty; then `options` and `timeout_s` are set.
std::string judge(const CheckArguments& a, harness::GradeOptions* options, double* timeout_s) {
  static const std::vector<std::string> devices = {"auto", "emulator", "cuda"};
  static const std::vector<std::string> schedules = {"all", "nominal", "lazy", "eager", "reverse", "random"};
  if (a.all && !a.id.empty()) return "check takes an exercise or --all, not both";
  if (!a.all && a.id.empty()) return "which exercise? ./handoff check 01a, or --all";
  if (a.solution && !a.submission.empty()) return "--solution and --submission exclude each other";
  if (a.all && !a.submission.empty()) return "--submission is for one exercise, not for --all";
  if (!is_one_of(a.device, devices)) {
    return "no device '" + a.device + "'" + suggestion(a.device, devices, "; there are " + choices(devices));
  }
  if (!is_one_of(a.schedule, schedules)) {
    return "no schedule '" + a.schedule + "'" + suggestion(a.schedule, schedules, "; there are " + choices(schedules));
  }
  if (!a.seed.empty()) {
    options->seed = whole_number(a.seed);
    if (!options->seed) return "--seed takes a whole number from 0 to 18446744073709551615, got '" + a.seed + "'";
  }
  const std::optional<uint64_t> timeout = whole_number(a.timeout);
  if (!timeout || *timeout < 1 || static_cast<double>(*timeout) > kMaxTimeout) {
    return "--timeout takes seconds from 1 to 86400, got '" + a.timeout + "'";
  }
  *timeout_s = static_cast<double>(*timeout);
  const std::optional<uint64_t> repeats = whole_number(a.repeats);
  if (!repeats || *repeats < 1 || *repeats > kMaxRepeats) {
    return "--repeats takes a whole number from 1 to 10000, got '" + a.repeats + "'";
  }
  options->repeats = static_cast<int>(*repeats);
  options->device = a.device;
  options->schedule = a.schedule;
  options->verbose = a.verbose;
  if (!a.json.empty() && a.json != "-") return report::why_not_writable(a.json);
  return "";
}

report::RenderOptions render_options(const CheckArguments& a, const SubmissionJob& job) {
  report::RenderOptions options;
  options.color = report::wants_color(STDOUT_FILENO);
  options.width = report::terminal_width(STDOUT_FILENO);
  options.verbose = a.verbose;
  options.colleague = a.solution || !a.submission.empty();
  options.next = next_exercise(job.exercise.id);
  options.one_schedule = a.schedule != "all";
  if (a.solution) options.arguments = "--solution";
  if (!a.submission.empty()) options.arguments = "--submission " + a.submission;
  options.source_line = [file = job.file](const std::string& name, size_t line) {
    return source_line(file, name, line);
  };
  return options;
}

int status_of(const Verdict& verdict) {
  if (!verdict.could_grade) return kCouldNot;
  return verdict.passed() ? kFullMarks : kNotFullMarks;
}

void remember(const CheckArguments& a, const Verdict& verdict) {
  // Progress is that of the learner's own file, under all schedules.
  if (!verdict.could_grade || a.solution || !a.submission.empty() || a.schedule != "all") return;
  const std::string problem = save_progress(verdict.exercise, {verdict.score, verdict.max_score});
  if (!problem.empty()) std::fprintf(stderr, "handoff: the score was not saved: %s\n", problem.c_str());
}

}  // namespace

int run_check(const CheckArguments& a) {
  harness::GradeOptions options;
  double timeout_s = 0;
  if (const std::string problem = judge(a, &options, &timeout_s); !problem.empty()) return refuse(problem);
  std::vector<ExerciseInfo> chosen;
  if (a.all) {
    chosen = exercises();
    if (chosen.empty()) return refuse("no exercise was found in " + (harness::project_root() / "exercises").string());
  } else if (std::optional<ExerciseInfo> one = find_exercise(a.id)) {
    chosen.push_back(std::move(*one));
  } else {
    return kCouldNot;
  }

  const harness::Toolchain toolchain = harness::find_toolchain();
  const bool speak = a.json != "-";
  std::vector<Verdict> verdicts;
  int status = kFullMarks, full = 0, score = 0, max_score = 0;
  for (const ExerciseInfo& exercise : chosen) {
    SubmissionJob job{exercise, a.solution ? exercise.solution : exercise.starter, {}, options, timeout_s};
    if (!a.submission.empty()) job.file = a.submission;
    if (a.solution) job.kept_ptx = fs::path(exercise.solution).replace_extension(".ptx");
    const Verdict verdict = grade_submission(toolchain, job);
    status = std::max(status, status_of(verdict));
    remember(a, verdict);
    const report::RenderOptions look = render_options(a, job);
    if (a.all && speak) {
      std::puts(report::render_line(verdict, look).c_str());
    } else if (!verdict.could_grade) {
      refuse(verdict.problem);
    } else if (speak) {
      std::fputs(report::render(verdict, look).c_str(), stdout);
    }
    std::fflush(stdout);
    full += verdict.passed() ? 1 : 0;
    score += verdict.score;
    max_score += verdict.max_score;
    verdicts.push_back(verdict);
  }
  if (a.all && speak) {
    for (const std::string& note : report::shared_notes(verdicts)) std::puts(note.c_str());
    std::printf("%d of %zu exercises with full marks · %d of %d points\n", full, verdicts.size(), score, max_score);
  }
  if (a.json == "-") {
    std::fputs(report::to_json(verdicts).c_str(), stdout);
  } else if (!a.json.empty()) {
    if (const std::string problem = report::write_whole(a.json, report::to_json(verdicts)); !problem.empty())
      return refuse(problem);
  }
  return status;
}

}  // namespace handoff::cli
