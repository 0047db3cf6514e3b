// Tested by submission_test.cc.
#include "grader/cli/submission.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "grader/cli/exercises.h"
#include "grader/cli/files.h"
#include "grader/harness/process.h"
#include "grader/report/json.h"

namespace handoff::cli {
namespace {

namespace fs = std::filesystem;
using harness::Verdict;

constexpr uintmax_t kMaxSourceBytes = uintmax_t{4} << 20;
constexpr size_t kMaxCrashLines = 6;
// Enough for the largest exercise's checked run many times over, and less than a laptop has.
constexpr size_t kMaxEmulatorBytes = size_t{8} << 30;
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kLimitMemory = false;  // the sanitizer's shadow memory alone is larger
#else
constexpr bool kLimitMemory = true;
#endif

// A zero byte near the start; the rest of a text file of the right size is looked at once it is read.
bool begins_binary(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string head(4096, ' ');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  return head.find('\0') != std::string::npos;
}

Verdict could_not(Verdict verdict, const std::string& problem) {
  verdict.could_grade = false;
  verdict.problem = problem;
  return verdict;
}

// The emulator's memory can be bounded; a GPU's driver maps far more than it uses, so its process cannot.
bool runs_on_emulator_only(const harness::GradeOptions& options) {
  return options.device == "emulator" || (options.device == "auto" && access("/dev/nvidiactl", F_OK) != 0);
}

std::string last_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::string tail;
  for (size_t i = lines.size() - std::min(lines.size(), kMaxCrashLines); i < lines.size(); ++i) tail += lines[i] + "\n";
  return tail;
}

// Under memory pressure the kernel should end the grading, not the user's editor. The write may fail; then nothing is
// lost.
void be_the_first_to_go() { std::ofstream("/proc/self/oom_score_adj") << "1000\n"; }

Verdict grade_in_child(const SubmissionJob& job, const harness::CompileResult& compiled, const Verdict& blank) {
  harness::ProcessOptions process;
  process.timeout_s = job.timeout_s;
  process.max_output = size_t{64} << 20;
  if (kLimitMemory && runs_on_emulator_only(job.options)) process.max_data_bytes = kMaxEmulatorBytes;
  const harness::ProcessResult run = harness::run_function(
      [&] {
        be_the_first_to_go();
        return report::to_json({harness::grade(job.exercise, job.file, compiled, job.options)});
      },
      process);
  Verdict verdict = blank;
  if (!run.error.empty()) return could_not(verdict, run.error);
  std::vector<Verdict> verdicts;
  std::string error;
  if (run.ok() && report::from_json(run.output, &verdicts, &error) && verdicts.size() == 1) return verdicts.front();
  if (run.timed_out) {
    verdict.problem = "grading " + harness::describe_failure(run) + " and was stopped; --timeout S allows more";
  } else if (run.errors.find("bad_alloc") != std::string::npos || run.signal == SIGKILL) {
    verdict.problem = "grading ran out of memory and was stopped";
  } else {
    verdict.problem = "the grader failed on this kernel: " + (run.ok() ? error : harness::describe_failure(run));
    verdict.problem_detail = last_lines(run.errors);
  }
  return verdict;
}

}  // namespace

std::string why_not_a_submission(const std::filesystem::path& file) {
  std::error_code failed;
  const fs::file_status status = fs::status(file, failed);
  if (!fs::exists(status)) {
    return file.string() + ": " + (failed && failed.value() != ENOENT ? failed.message() : "no such file");
  }
  if (fs::is_directory(status)) return file.string() + ": a folder, not a CUDA source file";
  if (!fs::is_regular_file(status)) return file.string() + ": not a regular file";
  if (access(file.c_str(), R_OK) != 0) return file.string() + ": " + std::strerror(errno);
  const uintmax_t size = fs::file_size(file, failed);
  if (failed) return file.string() + ": " + failed.message();
  if (size == 0) return file.string() + ": the file is empty";
  if (begins_binary(file)) return file.string() + ": a binary file, not a CUDA source file";
  if (size > kMaxSourceBytes) return file.string() + ": larger than 4 MiB, not a CUDA source file";
  const std::string text = read_file(file);
  if (text.size() != size) return file.string() + ": cannot be read";
  if (text.find('\0') != std::string::npos) return file.string() + ": a binary file, not a CUDA source file";
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) return file.string() + ": the file is empty";
  return "";
}

std::vector<std::string> entry_names(const std::string& ptx) {
  static constexpr const char* kEntry = ".entry";
  std::vector<std::string> names;
  std::istringstream in(ptx);
  for (std::string line; std::getline(in, line);) {
    const size_t comment = line.find("//");
    const size_t at = line.find(kEntry);
    if (at == std::string::npos || comment < at) continue;
    const size_t begin = line.find_first_not_of(" \t", at + std::strlen(kEntry));
    if (begin == std::string::npos || begin == at + std::strlen(kEntry)) continue;
    names.push_back(line.substr(begin, line.find_first_of(" \t(", begin) - begin));
  }
  return names;
}

std::string why_no_kernel(const std::string& ptx, const std::string& kernel, const std::string& file) {
  const std::vector<std::string> names = entry_names(ptx);
  if (kernel.empty() || std::find(names.begin(), names.end(), kernel) != names.end()) return "";
  const std::string start = "no kernel named " + kernel + " in " + file;
  if (names.empty()) return start + "; it has no __global__ function";
  // _Z13first_handoffPKf: the name with its length before it, as the Itanium C++ ABI mangles it.
  const std::string mangled = std::to_string(kernel.size()) + kernel;
  std::string found;
  for (const std::string& name : names) {
    if (name.find(mangled) != std::string::npos)
      return start + "; it was found without extern \"C\", which the grader needs";
    found += (found.empty() ? "" : ", ") + name;
  }
  return start + "; found: " + found;
}

std::filesystem::path include_folder() { return harness::project_root() / "exercises" / "include"; }

harness::Verdict grade_submission(const harness::Toolchain& toolchain, const SubmissionJob& job) {
  const auto start = std::chrono::steady_clock::now();
  Verdict blank;
  blank.exercise = job.exercise.id;
  blank.title = job.exercise.name;
  blank.submission = job.file.string();
  blank.max_score = job.exercise.max_score();
  if (const std::string why = why_not_a_submission(job.file); !why.empty()) return could_not(blank, why);

  harness::CompileResult compiled;
  if (toolchain.found()) {
    const Activity compiling("compiling " + job.file.filename().string() + "…");
    harness::CompileOptions options;
    options.kernel = job.exercise.kernel;
    options.include_dir = include_folder();
    compiled = harness::compile(toolchain, job.file, options);
  } else if (!job.kept_ptx.empty() && fs::is_regular_file(job.kept_ptx)) {
    compiled.ok = true;
    compiled.ptx = read_file(job.kept_ptx);
  } else {
    return could_not(blank, harness::missing_toolchain_message(toolchain));
  }
  blank.resources = compiled.resources;
  Verdict verdict = blank;
  if (!compiled.ok) {
    verdict.problem = compiled.error;
    verdict.problem_detail = compiled.detail;
  } else if (const std::string why = why_no_kernel(compiled.ptx, job.exercise.kernel, job.file.filename().string());
             !why.empty()) {
    verdict.problem = why;
  } else {
    const Activity grading("grading " + job.exercise.id + " " + job.exercise.name + "…");
    verdict = grade_in_child(job, compiled, blank);
  }
  verdict.nvcc_seconds = compiled.from_cache ? 0 : compiled.seconds;
  verdict.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return verdict;
}

std::optional<std::string> source_line(const std::filesystem::path& submission, const std::string& file, size_t line) {
  const fs::path named(file);
  // A diagnostic names a file as the PTX does: relative to the submission's folder or to the course's headers.
  if (line == 0 || named.is_absolute()) return std::nullopt;
  const fs::path shown = named == submission.filename()                          ? submission
                         : fs::is_regular_file(submission.parent_path() / named) ? submission.parent_path() / named
                                                                                 : include_folder() / named;
  std::ifstream in(shown);
  std::string text;
  for (size_t i = 0; i < line; ++i) {
    if (!std::getline(in, text)) return std::nullopt;
  }
  return text;
}

Activity::Activity(const std::string& text) : shown_(isatty(STDERR_FILENO) == 1) {
  if (shown_) std::fprintf(stderr, "\r\x1b[2K%s", text.c_str());
}

Activity::~Activity() {
  if (shown_) std::fprintf(stderr, "\r\x1b[2K");
}

}  // namespace handoff::cli
