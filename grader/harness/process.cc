// Tested by process_test.cc.
//
// Every child leads a process group of its own, so that one kill reaches its children too: nvcc runs cicc, gcc and
// ptxas below itself, and a time limit that killed nvcc alone would leave them running. The price is that the
// terminal's Ctrl-C no longer reaches the child; while one runs, SIGINT, SIGTERM and SIGHUP are therefore caught,
// passed on as SIGKILL to the group, and then delivered to this process as before.
//
// The end of a child is seen at the child itself (waitpid), not at the end of its output: a daemon that it left behind
// may hold the pipe open for ever. After the child has ended, its group is killed and what the pipes still hold is read
// without blocking.
#include "grader/harness/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

namespace handoff::harness {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<int, 3> kForwarded = {SIGINT, SIGTERM, SIGHUP};
constexpr int kExecFailed = 127;
constexpr int kFunctionThrew = 70;  // EX_SOFTWARE of sysexits.h

volatile sig_atomic_t running_group = 0;

extern "C" void pass_on(int signal_number) {
  if (running_group > 0) kill(-running_group, SIGKILL);
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

// Installs pass_on for the life of one child.
class ForwardSignals {
 public:
  explicit ForwardSignals(pid_t group) {
    running_group = group;
    for (size_t i = 0; i < kForwarded.size(); ++i) {
      struct sigaction action = {};
      action.sa_handler = pass_on;
      sigaction(kForwarded[i], &action, &before_[i]);
      // What the user chose to ignore (nohup) stays ignored.
      if (before_[i].sa_handler == SIG_IGN) sigaction(kForwarded[i], &before_[i], nullptr);
    }
  }
  ~ForwardSignals() {
    for (size_t i = 0; i < kForwarded.size(); ++i) sigaction(kForwarded[i], &before_[i], nullptr);
    running_group = 0;
  }
  ForwardSignals(const ForwardSignals&) = delete;
  ForwardSignals& operator=(const ForwardSignals&) = delete;

 private:
  std::array<struct sigaction, kForwarded.size()> before_ = {};
};

struct Pipe {
  int read_end = -1, write_end = -1;
  bool open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    read_end = ends[0];
    write_end = ends[1];
    return true;
  }
  void close_read() { close_end(&read_end); }
  void close_write() { close_end(&write_end); }
  ~Pipe() {
    close_read();
    close_write();
  }

 private:
  static void close_end(int* end) {
    if (*end >= 0) close(*end);
    *end = -1;
  }
};

// Reads what is there. False at the end of the stream.
bool drain(int fd, size_t limit, std::string* text) {
  char buffer[16384];
  for (;;) {
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n > 0) {
      const size_t room = limit > text->size() ? limit - text->size() : 0;
      text->append(buffer, std::min(room, static_cast<size_t>(n)));
    } else if (n == 0) {
      return false;
    } else if (errno == EINTR) {
      continue;
    } else {
      return errno == EAGAIN;
    }
  }
}

// In the child, before it does its work.
void become_child(const ProcessOptions& options) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (options.max_data_bytes > 0) {
    const rlimit limit = {options.max_data_bytes, options.max_data_bytes};
    setrlimit(RLIMIT_DATA, &limit);
  }
  for (const auto& [name, value] : options.environment) setenv(name.c_str(), value.c_str(), 1);
}

// In the parent: reads both pipes until the child ends or its time is up, then clears its group away.
void supervise(pid_t child, Pipe* out, Pipe* err, const ProcessOptions& options, ProcessResult* result) {
  setpgid(child, child);  // both sides do it, so that neither has to wait for the other
  const ForwardSignals forward(child);
  const auto start = Clock::now();
  out->close_write();
  err->close_write();
  for (int fd : {out->read_end, err->read_end}) {
    if (fd >= 0) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  }
  int status = 0;
  int wait_ms = 1;
  for (;;) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR)) break;
    result->seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (options.timeout_s > 0 && result->seconds > options.timeout_s) {
      result->timed_out = true;
      kill(-child, SIGKILL);
      while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
      }
      break;
    }
    // A pipe that has ended is no longer watched; its index holds -1, which poll() skips.
    pollfd watched[2] = {{out->read_end, POLLIN, 0}, {err->read_end, POLLIN, 0}};
    poll(watched, 2, wait_ms);
    wait_ms = std::min(wait_ms * 2, 20);
    if (out->read_end >= 0 && !drain(out->read_end, options.max_output, &result->output)) out->close_read();
    if (err->read_end >= 0 && !drain(err->read_end, options.max_output, &result->errors)) err->close_read();
  }
  kill(-child, SIGKILL);
  if (out->read_end >= 0) drain(out->read_end, options.max_output, &result->output);
  if (err->read_end >= 0) drain(err->read_end, options.max_output, &result->errors);
  result->seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (result->timed_out) return;
  if (WIFSIGNALED(status)) {
    result->signal = WTERMSIG(status);
  } else {
    result->exit_code = WEXITSTATUS(status);
  }
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& argv, const ProcessOptions& options) {
  ProcessResult result;
  Pipe out, err, failure;
  if ((!options.show_output && (!out.open() || !err.open())) || !failure.open()) {
    result.error = "cannot make a pipe: " + std::string(std::strerror(errno));
    return result;
  }
  std::vector<char*> arguments;
  arguments.reserve(argv.size() + 1);
  for (const std::string& a : argv) arguments.push_back(const_cast<char*>(a.c_str()));
  arguments.push_back(nullptr);
  fflush(nullptr);  // or the child would write the parent's buffered text a second time
  const pid_t child = fork();
  if (child < 0) {
    result.error = "cannot start " + argv[0] + ": " + std::strerror(errno);
    return result;
  }
  if (child == 0) {
    become_child(options);
    const int null_input = open("/dev/null", O_RDONLY);
    if (null_input >= 0) dup2(null_input, STDIN_FILENO);
    if (!options.show_output) {
      dup2(out.write_end, STDOUT_FILENO);
      dup2(err.write_end, STDERR_FILENO);
    }
    if (options.folder.empty() || chdir(options.folder.c_str()) == 0) execvp(arguments[0], arguments.data());
    const int reason = errno;
    (void)!write(failure.write_end, &reason, sizeof reason);
    _exit(kExecFailed);
  }
  failure.close_write();
  supervise(child, &out, &err, options, &result);
  int reason = 0;
  fcntl(failure.read_end, F_SETFL, O_NONBLOCK);
  if (read(failure.read_end, &reason, sizeof reason) == sizeof reason) {
    result.error = "cannot start " + argv[0] + ": " + std::strerror(reason);
  }
  return result;
}

ProcessResult run_function(const std::function<std::string()>& function, const ProcessOptions& options) {
  ProcessResult result;
  Pipe answer, streams;
  if (!answer.open() || !streams.open()) {
    result.error = "cannot make a pipe: " + std::string(std::strerror(errno));
    return result;
  }
  fflush(nullptr);  // or the child would write the parent's buffered text a second time
  const pid_t child = fork();
  if (child < 0) {
    result.error = "cannot start a child process: " + std::string(std::strerror(errno));
    return result;
  }
  if (child == 0) {
    become_child(options);
    if (!options.show_output) {
      dup2(streams.write_end, STDOUT_FILENO);
      dup2(streams.write_end, STDERR_FILENO);
    }
    int code = 0;
    std::string text;
    try {
      text = function();
    } catch (const std::exception& e) {
      (void)!write(STDERR_FILENO, e.what(), std::strlen(e.what()));
      code = kFunctionThrew;
    } catch (...) {
      code = kFunctionThrew;
    }
    for (size_t sent = 0; sent < text.size();) {
      const ssize_t n = write(answer.write_end, text.data() + sent, text.size() - sent);
      if (n < 0 && errno != EINTR) _exit(kFunctionThrew);
      if (n > 0) sent += static_cast<size_t>(n);
    }
    fflush(nullptr);
    _exit(code);
  }
  supervise(child, &answer, &streams, options, &result);
  return result;
}

std::string describe_failure(const ProcessResult& result) {
  if (!result.error.empty()) return result.error;
  if (result.timed_out) return "timed out after " + std::to_string(static_cast<long>(result.seconds)) + " s";
  if (result.signal != 0) {
    return "ended with signal " + std::to_string(result.signal) + " (" + strsignal(result.signal) + ")";
  }
  if (result.exit_code != 0) return "exit status " + std::to_string(result.exit_code);
  return "";
}

}  // namespace handoff::harness
