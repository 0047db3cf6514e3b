// handoff run: an unmodified CUDA program on the emulator, with the checker. The program is started as it is, with the
// folder of the drop-in libcudart.so.13 and libcuda.so.1 first in LD_LIBRARY_PATH; the library in it runs the kernels
// and appends what it finds to a file (runtime/launch_report.h), which is read here while the program runs.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <tuple>

#include "grader/cli/build_folder.h"
#include "grader/cli/commands.h"
#include "grader/cli/exercises.h"
#include "grader/emulator/machine/schedule.h"
#include "grader/harness/process.h"
#include "grader/report/json.h"
#include "grader/report/terminal.h"
#include "grader/runtime/launch_report.h"

namespace handoff::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using runtime::RunRecord;

constexpr auto kPoll = std::chrono::milliseconds(20);
constexpr const char* kLibraries = "cuda";  // folder of the drop-in libraries, beside this program
constexpr const char* kFlags = "-cudart shared -lineinfo -gencode arch=compute_100a,code=compute_100a";

// --- places in the host program ---

/// Makes lines of source of addresses in a program, by addr2line (binutils), which comes with every compiler.
class HostLines {
 public:
  /// The innermost frame that lies in source which is not the toolkit's own; line 0: none is known.
  SourcePlace find(const runtime::HostFrames& frames) {
    for (const std::string& frame : frames) {
      const size_t plus = frame.rfind('+');
      if (plus == std::string::npos) continue;
      for (const SourcePlace& place : lines_of(frame.substr(0, plus), frame.substr(plus + 1))) {
        const std::string name = fs::path(place.file).filename().string();
        if (place.line != 0 && name.rfind("cuda_runtime", 0) != 0) return place;
      }
    }
    return {};
  }

 private:
  /// Innermost first: functions may be inlined.
  const std::vector<SourcePlace>& lines_of(const std::string& file, const std::string& address) {
    const auto known = known_.find({file, address});
    if (known != known_.end()) return known->second;
    std::vector<SourcePlace>& places = known_[{file, address}];
    harness::ProcessOptions options;
    options.timeout_s = 20;
    const harness::ProcessResult run = harness::run_process({"addr2line", "-i", "-e", file, address}, options);
    if (!run.ok()) return places;
    size_t at = 0;
    while (at < run.output.size()) {
      const size_t end = std::min(run.output.find('\n', at), run.output.size());
      const std::string text = run.output.substr(at, end - at);  // "/home/me/add.cu:41 (discriminator 3)"
      at = end + 1;
      const size_t colon = text.rfind(':');
      uint32_t line = 0;
      if (colon == std::string::npos || text.rfind("??", 0) == 0) continue;
      std::from_chars(text.data() + colon + 1, text.data() + text.size(), line);
      places.push_back({text.substr(0, colon), line});
    }
    return places;
  }
  std::map<std::pair<std::string, std::string>, std::vector<SourcePlace>> known_;
};

/// Lines of the user's files, which diagnostics name by the paths that nvcc wrote.
std::optional<std::string> line_of_file(const std::string& path, size_t line) {
  std::error_code failed;
  if (!fs::is_regular_file(path, failed)) return std::nullopt;
  std::ifstream file(path);
  std::string text;
  for (size_t i = 0; i < line; ++i) {
    if (!std::getline(file, text)) return std::nullopt;
  }
  return text;
}

// --- what is found, as it comes ---

const char* text_of(Severity severity) {
  return severity == Severity::Error ? "error" : severity == Severity::Warning ? "warning" : "note";
}

/// The beginning of a name that templates made longer than anybody reads; demangled names are ASCII.
std::string shortened(const std::string& name) {
  constexpr size_t kMost = 120;
  return name.size() <= kMost ? name : name.substr(0, kMost) + "…";
}

/// Prints records on standard error and keeps them for the JSON report.
class Findings {
 public:
  Findings(bool verbose, bool checked) : verbose_(verbose), checked_(checked) {}

  void add(RunRecord record) {
    switch (record.kind) {
      case RunRecord::Kind::Start:
        started_ = true;
        return;
      case RunRecord::Kind::Message:
        std::fprintf(stderr, "handoff: %s\n", record.text.c_str());
        fatal_ = fatal_ || record.fatal;
        messages_.push_back(record.text);
        return;
      case RunRecord::Kind::Launch:
        launch(std::move(record));
        return;
    }
  }

  bool started() const { return started_; }
  bool fatal() const { return fatal_; }
  size_t errors() const { return errors_; }

  /// "handoff: 3 launches, 1 error", where there is something to say.
  void summary() const {
    if (ran_ == 0) return;
    const auto count = [](size_t n, const char* one, const char* more) {
      return fmt::format("{} {}", n, n == 1 ? one : more);
    };
    std::string text = count(ran_, "launch", "launches");
    text += errors_ == 0 ? (checked_ ? ", no hazards" : ", not checked") : ", " + count(errors_, "error", "errors");
    if (warnings_ > 0) text += ", " + count(warnings_, "warning or note", "warnings and notes");
    if (repeated_ > 0) text += fmt::format(" ({} more of the same in later launches)", repeated_);
    std::fprintf(stderr, "handoff: %s\n", text.c_str());
  }

  std::string json(const std::vector<std::string>& program, int status) const {
    return Json{{"version", 1},          {"program", program},    {"exit_status", status},
                {"launches", launches_}, {"diagnostics", found_}, {"messages", messages_}}
               .dump(2, ' ', false, Json::error_handler_t::replace) +
           "\n";
  }

 private:
  void launch(RunRecord record) {
    if (record.status != "refused") ++ran_;
    launches_.push_back({{"number", record.number},
                         {"kernel", record.kernel},
                         {"shape", record.shape},
                         {"status", record.status},
                         {"failure", record.failure},
                         {"schedule", record.schedule},
                         {"modeled_cycles", record.modeled_cycles}});
    harness::Verdict shown;
    for (runtime::ReportedDiagnostic& reported : record.diagnostics) {
      Diagnostic& d = reported.diagnostic;
      if (!seen_.insert({d.id, d.place.file, d.place.line, d.place.line == 0 ? d.message : std::string()}).second) {
        ++repeated_;
        continue;
      }
      for (const runtime::HostPlace& p : reported.places) {
        const SourcePlace place = lines_.find(p.frames);
        if (place.line != 0) d.related.push_back({place, p.role});
      }
      ++(d.severity == Severity::Error ? errors_ : warnings_);
      keep(record, d);
      shown.diagnostics.push_back({d, "emulator", record.schedule, 0, ""});
    }
    if (shown.diagnostics.empty()) return;
    shown.state = record.state;
    shown.deadlock_schedule = record.schedule;
    shown.max_score = 1;  // without full marks the screen tells what was found
    report::RenderOptions options;
    options.color = report::wants_color(STDERR_FILENO);
    options.width = report::terminal_width(STDERR_FILENO);
    options.verbose = verbose_;
    options.colleague = true;
    options.source_line = line_of_file;
    // The screen's head speaks of an exercise and its points; here a launch is in its place.
    const std::string screen = report::render(shown, options);
    std::fprintf(stderr, "\n%s\n%s\n",
                 report::wrap(fmt::format("handoff: launch {} · {} · {} · schedule {}", record.number,
                                          shortened(record.kernel), record.shape, record.schedule),
                              options.width, 2, 0)
                     .c_str(),
                 screen.substr(std::min(screen.find('\n'), screen.size() - 1) + 1).c_str());
  }

  void keep(const RunRecord& record, const Diagnostic& d) {
    Json related = Json::array();
    for (const RelatedPlace& r : d.related)
      related.push_back({{"file", r.place.file}, {"line", r.place.line}, {"role", r.role}});
    found_.push_back({{"id", d.id},
                      {"severity", text_of(d.severity)},
                      {"message", d.message},
                      {"hint", d.hint},
                      {"file", d.place.file},
                      {"line", d.place.line},
                      {"related", std::move(related)},
                      {"launch", record.number},
                      {"kernel", record.kernel},
                      {"schedule", record.schedule}});
  }

  bool verbose_, checked_, started_ = false, fatal_ = false;
  size_t ran_ = 0, errors_ = 0, warnings_ = 0, repeated_ = 0;
  std::set<std::tuple<std::string, std::string, uint32_t, std::string>> seen_;
  Json launches_ = Json::array(), found_ = Json::array(), messages_ = Json::array();
  HostLines lines_;
};

/// The file to which the library appends; it goes away with the object.
class ReportFile {
 public:
  ReportFile() {
    std::string path = (fs::temp_directory_path() / "handoff-run-XXXXXX").string();
    file_ = mkstemp(path.data());
    if (file_ >= 0) path_ = path;
  }
  ~ReportFile() {
    if (file_ >= 0) close(file_);
    if (!path_.empty()) unlink(path_.c_str());
  }
  ReportFile(const ReportFile&) = delete;
  ReportFile& operator=(const ReportFile&) = delete;
  /// Empty: it could not be made.
  const std::string& path() const { return path_; }
  /// Passes on the lines that have come since the last time.
  void read_into(Findings* findings) {
    char buffer[1 << 16];
    for (ssize_t got = 0; (got = read(file_, buffer, sizeof buffer)) > 0;) pending_.append(buffer, size_t(got));
    for (size_t end = 0; (end = pending_.find('\n')) != std::string::npos;) {
      RunRecord record;
      if (runtime::from_line(pending_.substr(0, end), &record)) findings->add(std::move(record));
      pending_.erase(0, end + 1);
    }
  }

 private:
  int file_ = -1;
  std::string path_, pending_;
};

/// Starts the program in this process group, so that it has the terminal. Returns its id, or −1 and `problem`.
pid_t start(const std::vector<std::string>& program,
            const std::vector<std::pair<std::string, std::string>>& environment, std::string* problem) {
  std::vector<char*> argv;
  for (const std::string& argument : program) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  int failure[2];
  if (pipe2(failure, O_CLOEXEC) != 0) {
    *problem = std::strerror(errno);
    return -1;
  }
  const pid_t child = fork();
  if (child == 0) {
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    execvp(argv[0], argv.data());
    const int error = errno;
    _exit(write(failure[1], &error, sizeof error) == sizeof error ? 127 : 126);
  }
  close(failure[1]);
  int error = child < 0 ? errno : 0;
  if (child > 0 && read(failure[0], &error, sizeof error) == sizeof error) waitpid(child, nullptr, 0);
  close(failure[0]);
  if (error == 0) return child;
  *problem = fmt::format("cannot run {}: {}", program[0], std::strerror(error));
  return -1;
}

std::string judge(const RunArguments& a) {
  if (a.program.empty()) return "run takes a program: ./handoff run -- ./program arguments";
  if (a.check != "errors" && a.check != "all" && a.check != "off")
    return fmt::format("--check takes errors, all or off, got '{}'", a.check);
  if (!machine::schedule_from_string(a.schedule)) {
    return "no schedule '" + a.schedule + "'" +
           suggestion(a.schedule, {"nominal", "lazy", "eager", "reverse", "random"},
                      "; there are nominal, lazy, eager, reverse and random");
  }
  uint64_t seed = 0;
  const char* const end = a.seed.data() + a.seed.size();
  const auto read = std::from_chars(a.seed.data(), end, seed);
  if (!a.seed.empty() && (read.ec != std::errc() || read.ptr != end))
    return fmt::format("--seed takes a whole number, got '{}'", a.seed);
  return a.json.empty() || a.json == "-" ? "" : report::why_not_writable(a.json);
}

}  // namespace

int run_program(const RunArguments& a) {
  if (const std::string problem = judge(a); !problem.empty()) return refuse(problem);
  const fs::path libraries = build_folder() / kLibraries;
  if (!fs::exists(libraries / "libcudart.so.13")) {
    return refuse(fmt::format("{} has no libcudart.so.13; build the target handoff_cudart", libraries.string()));
  }
  ReportFile file;
  if (file.path().empty()) return refuse("cannot make a temporary file for what is found");
  const char* const before = std::getenv("LD_LIBRARY_PATH");
  const std::string search =
      libraries.string() + (before == nullptr || *before == '\0' ? "" : ":" + std::string(before));
  std::string problem;
  const pid_t child = start(a.program,
                            {{"LD_LIBRARY_PATH", search},
                             {runtime::kReportVariable, file.path()},
                             {runtime::kCheckVariable, a.check},
                             {runtime::kScheduleVariable, a.schedule},
                             {runtime::kSeedVariable, a.seed.empty() ? "0" : a.seed}},
                            &problem);
  if (child < 0) return refuse(problem);
  // Ctrl-C is for the program; what was found until then is still to be told.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGQUIT, SIG_IGN);
  Findings findings(a.verbose, a.check != "off");
  int wait_status = 0;
  while (waitpid(child, &wait_status, WNOHANG) == 0) {
    file.read_into(&findings);
    std::this_thread::sleep_for(kPoll);
  }
  file.read_into(&findings);
  int status = WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
  if (WIFSIGNALED(wait_status))
    std::fprintf(stderr, "handoff: %s ended with signal %d (%s)\n", a.program[0].c_str(), WTERMSIG(wait_status),
                 strsignal(WTERMSIG(wait_status)));
  findings.summary();
  if (!findings.started()) {
    std::fprintf(
        stderr,
        "handoff: nothing was checked: the program did not load libcudart.so.13. Build it with nvcc of CUDA 13 "
        "and %s (nvcc links the runtime into the program unless it is told -cudart shared)\n",
        kFlags);
  }
  if (findings.errors() > 0) {
    status = kHazards;
  } else if (status == 0 && (findings.fatal() || !findings.started())) {
    status = kCouldNot;
  }
  const std::string json = findings.json(a.program, status);
  if (a.json == "-") {
    std::fputs(json.c_str(), stdout);
  } else if (!a.json.empty()) {
    if (const std::string failed = report::write_whole(a.json, json); !failed.empty()) return refuse(failed);
  }
  return status;
}

}  // namespace handoff::cli
