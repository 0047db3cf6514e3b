// From a file to a verdict: reads, compiles and grades one submission, whatever it does.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "grader/harness/catalog.h"
#include "grader/harness/grade.h"
#include "grader/harness/toolchain.h"
#include "grader/harness/verdict.h"

namespace handoff::cli {

/// One submission and how to grade it.
struct SubmissionJob {
  harness::ExerciseInfo exercise;  ///< what is graded
  std::filesystem::path file;      ///< CUDA C++ source
  std::filesystem::path kept_ptx;  ///< used where there is no nvcc; empty: none
  harness::GradeOptions options;   ///< devices and schedules
  double timeout_s = 60;           ///< for grading, compilation excluded
};

/// Why `file` cannot be a submission (missing, a folder, unreadable, empty, binary, too large): one line, or empty.
std::string why_not_a_submission(const std::filesystem::path& file);

/// The names of the entries of a PTX module, in order.
std::vector<std::string> entry_names(const std::string& ptx);

/// One line if `ptx` has no entry named `kernel`, which tells what was found; otherwise empty.
std::string why_no_kernel(const std::string& ptx, const std::string& kernel, const std::string& file);

/// Compiles and grades. Grading happens in a child process with a time limit, so a crash or an endless run is a verdict
/// with a problem, not the end of this program. could_grade is false where nothing was graded: unreadable file, no
/// toolchain.
harness::Verdict grade_submission(const harness::Toolchain& toolchain, const SubmissionJob& job);

/// Line `line` of the file that a diagnostic of this submission names: the submission itself, a file beside it, or a
/// header of the course.
std::optional<std::string> source_line(const std::filesystem::path& submission, const std::string& file, size_t line);

/// exercises/include
std::filesystem::path include_folder();

/// Shows what is being done while it lasts, on a terminal only; erased at the end of its life.
class Activity {
 public:
  /// Shows `text`, one short line.
  explicit Activity(const std::string& text);
  ~Activity();
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;

 private:
  bool shown_;
};

}  // namespace handoff::cli
