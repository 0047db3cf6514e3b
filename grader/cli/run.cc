// handoff run: an unmodified CUDA program on the emulator, with the checker. The program is started as it is, with the
// folder of the drop-in libcudart.so.13 and libcuda.so.1 first in LD_LIBRARY_PATH; the library in it runs the kernels
// and appends what it finds to a file (runtime/launch_report.h), which is read here while the program runs. That file
// has no name in any folder, so that nothing is left behind, however this program ends.
//
// With --schedule all the program runs once for each schedule. It then writes to a pipe: the first run's output goes on
// to this program's, and that of the others is compared with it.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "grader/cli/build_folder.h"
#include "grader/cli/commands.h"
#include "grader/cli/exercises.h"
#include "grader/cli/run_findings.h"
#include "grader/cli/run_output.h"
#include "grader/emulator/machine/schedule.h"
#include "grader/report/json.h"
#include "grader/runtime/launch_report.h"

namespace handoff::cli {
namespace {

namespace fs = std::filesystem;
using machine::Schedule;

constexpr int kPollMs = 20;
constexpr const char* kLibraries = "cuda";  // folder of the drop-in libraries, beside this program
constexpr const char* kFlags = "-cudart shared -lineinfo -gencode arch=compute_100a,code=compute_100a";

// --- signals ---

volatile std::sig_atomic_t stopped_by = 0;  // the last signal; 0: none
volatile std::sig_atomic_t running = 0;     // the program's process id

/// Takes the signals that end a program: what was found until then is still to be told. The program gets them too: from
/// the terminal, as a member of the same process group, or else from here.
class Signals {
 public:
  Signals() {
    struct sigaction ours {};
    ours.sa_flags = SA_SIGINFO;
    ours.sa_sigaction = [](int signal, siginfo_t* info, void*) {
      stopped_by = signal;
      if (info->si_code <= 0 && running > 0) kill(running, signal);  // sent by a process
    };
    for (size_t i = 0; i < kSignals.size(); ++i) {
      sigaction(kSignals[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &ours, nullptr);
    }
  }
  ~Signals() { restore(); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  /// As they were: also in a new process, before it becomes the program.
  void restore() const {
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }
  /// Holds them back in this thread while one lives.
  class Blocked {
   public:
    Blocked() {
      sigset_t all;
      sigemptyset(&all);
      for (const int s : kSignals) sigaddset(&all, s);
      sigprocmask(SIG_BLOCK, &all, &before_);
    }
    ~Blocked() { restore(); }
    Blocked(const Blocked&) = delete;
    Blocked& operator=(const Blocked&) = delete;
    void restore() const { sigprocmask(SIG_SETMASK, &before_, nullptr); }

   private:
    sigset_t before_;
  };

 private:
  static constexpr std::array kSignals = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_{};
};

// --- what goes between this program and the one that it runs ---

/// The file to which the library appends. It lies in memory, and programs find it as one that this process has open.
class ReportFile {
 public:
  ReportFile() : file_(memfd_create("handoff-run", MFD_CLOEXEC)) {}
  ~ReportFile() {
    if (file_ >= 0) close(file_);
  }
  ReportFile(const ReportFile&) = delete;
  ReportFile& operator=(const ReportFile&) = delete;
  std::string path() const { return fmt::format("/proc/{}/fd/{}", getpid(), file_); }
  /// Can a program append to it?
  bool usable() const { return file_ >= 0 && access(path().c_str(), W_OK) == 0; }
  /// Passes on the lines that have come since the last time.
  void read_into(Findings* findings) {
    char buffer[1 << 16];
    for (ssize_t got = 0; (got = read(file_, buffer, sizeof buffer)) > 0; read_ += got)
      pending_.append(buffer, size_t(got));
    if (read_ - dropped_ > (off_t{1} << 20)) {
      fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, read_);
      dropped_ = read_;
    }
    size_t begin = 0;
    for (size_t end = 0; (end = pending_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      runtime::RunRecord record;
      if (runtime::from_line(pending_.substr(begin, end - begin), &record)) findings->add(std::move(record));
    }
    pending_.erase(0, begin);
  }

 private:
  int file_ = -1;
  off_t read_ = 0, dropped_ = 0;  // bytes; those dropped take no memory
  std::string pending_;
};

/// The brackets around the events that the library appends (runtime/trace_file.h). Without the second one, as when this
/// program is killed, viewers still read the file.
class TraceBrackets {
 public:
  /// `path` empty: there is no trace. Returns what failed, or empty.
  std::string begin(const std::string& path) {
    if (path.empty()) return {};
    path_ = fs::absolute(path).string();  // the program may change its folder
    file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
    return file_ >= 0 && write(file_, "[\n", 2) == 2 ? ""
                                                     : fmt::format("cannot write {}: {}", path, std::strerror(errno));
  }
  ~TraceBrackets() {
    if (file_ >= 0) close(file_);
  }
  /// Puts an end to the list of events; what failed, or empty.
  std::string end() const {
    if (file_ < 0) return {};
    char last[2] = {};
    const off_t size = lseek(file_, 0, SEEK_END);
    const bool comma = size > 2 && pread(file_, last, 2, size - 2) == 2 && last[0] == ',';
    const bool done = (!comma || ftruncate(file_, size - 2) == 0) && write(file_, "\n]\n", 3) == 3;
    return done ? "" : fmt::format("cannot write {}: {}", path_, std::strerror(errno));
  }
  /// For the program; empty: it writes none.
  const std::string& path() const { return path_; }

 private:
  int file_ = -1;
  std::string path_;
};

// --- the program ---

/// How the program is run.
struct Start {
  const std::vector<std::string>& program;
  std::vector<std::pair<std::string, std::string>> environment;
  int input = -1, output = -1;  // in place of standard input and output; −1: this program's
};

/// How "cannot run PROGRAM" goes on, where what was meant can be guessed: "; did you mean ./PROGRAM?".
std::string instead_of(const std::filesystem::path& program) {
  std::error_code ignored;
  if (program.extension() == ".cu") return "; it is source: build it first, see docs/run.md";
  if (!program.has_parent_path() && std::filesystem::is_regular_file(program, ignored))
    return "; did you mean ./" + program.string() + "?";
  const std::filesystem::path folder = program.has_parent_path() ? program.parent_path() : ".";
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.is_regular_file(ignored) && access(entry.path().c_str(), X_OK) == 0 && entry.path() != program)
      names.push_back(entry.path().string());
  }
  return suggestion(program.has_parent_path() ? program.string() : "./" + program.string(), names, "");
}

/// Starts the program in this process group, so that it has the terminal. Returns its id, or −1 and `problem`.
pid_t start(const Start& how, const Signals& signals, std::string* problem) {
  std::vector<char*> argv;
  for (const std::string& argument : how.program) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  int failure[2];
  if (pipe2(failure, O_CLOEXEC) != 0) {
    *problem = std::strerror(errno);
    return -1;
  }
  const Signals::Blocked blocked;  // none gets lost between here and the program
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // it does not outlive this program
    if (getppid() != parent) _exit(126);
    if (how.input >= 0) dup2(how.input, STDIN_FILENO);
    if (how.output >= 0) dup2(how.output, STDOUT_FILENO);
    for (const auto& [name, value] : how.environment) setenv(name.c_str(), value.c_str(), 1);
    signals.restore();
    blocked.restore();
    execvp(argv[0], argv.data());
    const int error = errno;
    _exit(write(failure[1], &error, sizeof error) == sizeof error ? 127 : 126);
  }
  if (child > 0) running = child;
  close(failure[1]);
  int error = child < 0 ? errno : 0;
  if (child > 0 && read(failure[0], &error, sizeof error) == sizeof error) {
    waitpid(child, nullptr, 0);
    running = 0;
  }
  close(failure[0]);
  if (error == 0) return child;
  *problem = fmt::format("cannot run {}: {}{}", how.program[0], std::strerror(error), instead_of(how.program[0]));
  return -1;
}

/// Passes on what is in the pipe: to `output`, and to standard output where `show`.
void drain(int pipe, Output* output, bool show) {
  char buffer[1 << 16];
  for (ssize_t got = 0; (got = read(pipe, buffer, sizeof buffer)) > 0;) {
    output->add({buffer, size_t(got)});
    for (ssize_t done = 0, now = 0; show && done < got; done += now) {
      now = write(STDOUT_FILENO, buffer + done, size_t(got - done));
      if (now < 0 && errno != EINTR) return;
      now = std::max<ssize_t>(now, 0);
    }
  }
}

/// Waits for the program, reading what it reports and, where there is a pipe, what it writes. Returns its wait status.
int watch(pid_t child, ReportFile* file, Findings* findings, int pipe, Output* output, bool show) {
  int wait_status = 0;
  while (waitpid(child, &wait_status, WNOHANG) == 0) {
    file->read_into(findings);
    pollfd wanted = {pipe, POLLIN, 0};  // a negative one is only a pause
    if (poll(&wanted, 1, kPollMs) > 0) {
      drain(pipe, output, show);
      // Nobody has the other end any more: poll would not pause.
      if ((wanted.revents & POLLIN) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(kPollMs));
    }
  }
  running = 0;
  file->read_into(findings);
  if (pipe >= 0) drain(pipe, output, show);
  return wait_status;
}

/// As a shell has it.
int status_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

std::string describe_status(int wait_status) {
  if (!WIFSIGNALED(wait_status)) return fmt::format("exit status {}", WEXITSTATUS(wait_status));
  return fmt::format("signal {} ({})", WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)));
}

/// Standard input for one run after another. A file is read again from where it was; a terminal is there for each; what
/// came through a pipe is gone after the first.
class Input {
 public:
  Input() : begin_(lseek(STDIN_FILENO, 0, SEEK_CUR)), gone_(begin_ < 0 && isatty(STDIN_FILENO) == 0) {}
  ~Input() {
    if (nothing_ >= 0) close(nothing_);
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;
  /// What a run after the first reads; −1: standard input.
  int again() {
    if (begin_ >= 0) lseek(STDIN_FILENO, begin_, SEEK_SET);
    if (gone_ && nothing_ < 0) nothing_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return nothing_;
  }
  /// Did runs after the first have to do without?
  bool gone() const { return gone_; }

 private:
  off_t begin_;
  bool gone_;
  int nothing_ = -1;
};

/// What `arguments` ask for, judged.
struct Plan {
  std::vector<Schedule> schedules;
  FindingOptions findings;
};

std::string judge(const RunArguments& a, Plan* plan) {
  if (a.program.empty()) return "run takes a program: ./handoff run -- ./program arguments";
  if (a.check != "errors" && a.check != "all" && a.check != "off")
    return fmt::format("--check takes errors, all or off, got '{}'", a.check);
  uint64_t seed = 0;
  const char* const end = a.seed.data() + a.seed.size();
  const auto read = std::from_chars(a.seed.data(), end, seed);
  if (!a.seed.empty() && (read.ec != std::errc() || read.ptr != end))
    return fmt::format("--seed takes a whole number, got '{}'", a.seed);
  if (a.schedule == "all") {
    using Kind = Schedule::Kind;
    for (const Kind kind : {Kind::Nominal, Kind::Lazy, Kind::Eager, Kind::Reverse, Kind::Random})
      plan->schedules.push_back({kind, seed});
  } else if (const auto kind = machine::schedule_from_string(a.schedule)) {
    plan->schedules.push_back({*kind, seed});
  } else {
    return "no schedule '" + a.schedule + "'" +
           suggestion(a.schedule, {"all", "nominal", "lazy", "eager", "reverse", "random"},
                      "; there are all, nominal, lazy, eager, reverse and random");
  }
  plan->findings.schedules = plan->schedules.size();
  plan->findings.verbose = a.verbose;
  plan->findings.checked = a.check != "off";
  plan->findings.keep_launches = !a.json.empty();
  plan->findings.suppressions_file = a.suppress;
  if (!a.suppress.empty()) {
    std::error_code failed;
    std::ifstream file(a.suppress);
    if (!file || fs::is_directory(a.suppress, failed)) return "cannot read " + a.suppress;
    std::stringstream text;
    text << file.rdbuf();
    if (std::string wrong = plan->findings.suppressions.read(text.str(), a.suppress, catalogue_ids()); !wrong.empty())
      return wrong;
  }
  if (!a.trace.empty()) {
    if (std::string failed = report::why_not_writable(a.trace); !failed.empty()) return failed;
  }
  return a.json.empty() || a.json == "-" ? "" : report::why_not_writable(a.json);
}

/// Runs the program on each schedule. Returns its own exit status, the first that is not 0; or refuses.
int run_on_schedules(const RunArguments& a, const std::vector<Schedule>& schedules, const std::string& library_path,
                     const std::string& trace, Findings* findings, std::string* problem) {
  const Signals signals;
  ReportFile file;
  if (!file.usable()) {
    *problem = "programs cannot write to " + file.path() + "; is /proc mounted?";
    return kCouldNot;
  }
  const bool several = schedules.size() > 1;
  int pipe[2] = {-1, -1};
  Input input;
  Output first;
  int first_wait_status = 0, status = 0;
  for (size_t i = 0; i < schedules.size(); ++i) {
    Start how{a.program,
              {{"LD_LIBRARY_PATH", library_path},
               {runtime::kReportVariable, file.path()},
               {runtime::kCheckVariable, a.check},
               {runtime::kScheduleVariable, std::string(machine::to_string(schedules[i].kind))},
               {runtime::kSeedVariable, std::to_string(schedules[i].seed)},
               {runtime::kTraceVariable, trace}}};
    if (several && pipe2(pipe, O_CLOEXEC) != 0) {
      *problem = std::strerror(errno);
      return kCouldNot;
    }
    how.output = pipe[1];
    if (i > 0) how.input = input.again();
    findings->begin_run(machine::to_string(schedules[i]));
    const pid_t child = start(how, signals, problem);
    if (several) {
      close(pipe[1]);
      fcntl(pipe[0], F_SETFL, O_NONBLOCK);
    }
    if (child < 0) return kCouldNot;
    Output later;
    const int wait_status = watch(child, &file, findings, pipe[0], i == 0 ? &first : &later, i == 0);
    if (several) close(pipe[0]);
    if (WIFSIGNALED(wait_status))
      std::fprintf(stderr, "handoff: %s ended with %s\n", a.program[0].c_str(), describe_status(wait_status).c_str());
    if (status == 0) status = status_of(wait_status);
    std::string difference;
    if (i == 0) {
      first_wait_status = wait_status;
    } else if (stopped_by == 0) {
      if (wait_status != first_wait_status)
        difference = fmt::format("{}, was {}", describe_status(wait_status), describe_status(first_wait_status));
      if (const std::string output = first.difference(later); !output.empty())
        difference += (difference.empty() ? "" : "; ") + output;
      if (!difference.empty() && input.gone())
        difference += " (standard input was a pipe, which only the first run could read)";
    }
    findings->end_run(status_of(wait_status), difference);
    if (stopped_by != 0 || findings->fatal() || !findings->started()) break;
  }
  return status;
}

}  // namespace

int run_program(const RunArguments& a) {
  Plan plan;
  if (const std::string problem = judge(a, &plan); !problem.empty()) return refuse(problem);
  const fs::path libraries = build_folder() / kLibraries;
  if (!fs::exists(libraries / "libcudart.so.13")) {
    return refuse(fmt::format("{} has no libcudart.so.13; build the target handoff_cudart", libraries.string()));
  }
  TraceBrackets trace;
  if (const std::string problem = trace.begin(a.trace); !problem.empty()) return refuse(problem);
  const char* const before = std::getenv("LD_LIBRARY_PATH");
  const std::string search =
      libraries.string() + (before == nullptr || *before == '\0' ? "" : ":" + std::string(before));
  Findings findings(std::move(plan.findings));
  std::string problem;
  int status = run_on_schedules(a, plan.schedules, search, trace.path(), &findings, &problem);
  if (!problem.empty()) return refuse(problem);
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
  } else if (findings.fatal() || !findings.started()) {
    status = kCouldNot;
  }
  if (const std::string failed = trace.end(); !failed.empty()) return refuse(failed);
  const std::string json = findings.json(a.program, status);
  if (a.json == "-") {
    std::fputs(json.c_str(), stdout);
  } else if (!a.json.empty()) {
    if (const std::string failed = report::write_whole(a.json, json); !failed.empty()) return refuse(failed);
  }
  return status;
}

}  // namespace handoff::cli
