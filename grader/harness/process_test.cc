#include "grader/harness/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <new>
#include <stdexcept>
#include <thread>

namespace handoff::harness {
namespace {

using ::testing::HasSubstr;

// A process that has ended but not been collected by its new parent still answers to kill(0); its state tells.
bool is_running(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string number, name, state;
  return stat >> number >> name >> state && state != "Z" && state != "X";
}

bool ends_within(pid_t pid, int milliseconds) {
  for (int waited = 0; waited < milliseconds; waited += 10) {
    if (!is_running(pid)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST(RunProcess, CapturesBothStreamsAndTheStatus) {
  const ProcessResult run = run_process({"sh", "-c", "echo out; echo err >&2; exit 3"});
  EXPECT_EQ(run.output, "out\n");
  EXPECT_EQ(run.errors, "err\n");
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_FALSE(run.ok());
  EXPECT_EQ(describe_failure(run), "exit status 3");
}

TEST(RunProcess, ReadsMoreThanAPipeHoldsAndKeepsTheLimit) {
  ProcessOptions options;
  options.max_output = 1000;
  const ProcessResult run = run_process({"sh", "-c", "head -c 1000000 /dev/zero"}, options);
  EXPECT_TRUE(run.ok());
  EXPECT_EQ(run.output.size(), 1000U);
}

TEST(RunProcess, SaysWhyAProgramCannotBeStarted) {
  const ProcessResult run = run_process({"/nonexistent/program"});
  EXPECT_FALSE(run.ok());
  EXPECT_EQ(run.error, "cannot start /nonexistent/program: No such file or directory");
}

TEST(RunProcess, PassesFolderAndEnvironment) {
  ProcessOptions options;
  options.folder = "/";
  options.environment = {{"HANDOFF_TEST_VARIABLE", "value"}};
  EXPECT_EQ(run_process({"sh", "-c", "pwd; echo $HANDOFF_TEST_VARIABLE"}, options).output, "/\nvalue\n");
}

TEST(RunProcess, TimeOutKillsGrandchildren) {
  ProcessOptions options;
  options.timeout_s = 0.3;
  // The grandchild ignores SIGTERM and keeps the pipe open; the child waits for it.
  const ProcessResult run = run_process({"sh", "-c", "sh -c 'trap \"\" TERM; echo $$; exec sleep 60' & wait"}, options);
  EXPECT_TRUE(run.timed_out);
  EXPECT_LT(run.seconds, 10);
  const pid_t grandchild = std::atoi(run.output.c_str());
  ASSERT_GT(grandchild, 0);
  EXPECT_TRUE(ends_within(grandchild, 5000)) << grandchild << " still runs";
}

TEST(RunProcess, DoesNotWaitForWhatTheChildLeftBehind) {
  const ProcessResult run = run_process({"sh", "-c", "sleep 60 & echo $!"});
  EXPECT_TRUE(run.ok());
  EXPECT_LT(run.seconds, 10);
  EXPECT_TRUE(ends_within(std::atoi(run.output.c_str()), 5000));
}

TEST(RunProcess, ATerminationReachesTheWholeGroup) {
  std::string name = ::testing::TempDir() + "handoff-process-XXXXXX";
  const int fd = mkstemp(name.data());
  ASSERT_GE(fd, 0);
  close(fd);
  const pid_t caller = fork();
  if (caller == 0) {
    run_process({"sh", "-c", "sleep 60 & echo $! > " + name + "; wait"});
    _exit(0);
  }
  pid_t sleeper = 0;
  for (int i = 0; i < 1000 && sleeper == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::ifstream(name) >> sleeper;
  }
  ASSERT_GT(sleeper, 0);
  kill(caller, SIGTERM);
  int status = 0;
  ASSERT_EQ(waitpid(caller, &status, 0), caller);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  EXPECT_TRUE(ends_within(sleeper, 5000)) << sleeper << " still runs";
  unlink(name.c_str());
}

TEST(RunFunction, BringsBackTheString) {
  const std::string large(300000, 'x');
  const ProcessResult run = run_function([&] { return std::string(large); });
  EXPECT_TRUE(run.ok());
  EXPECT_EQ(run.output, large);
}

TEST(RunFunction, KeepsWhatItPrintsApart) {
  const ProcessResult run = run_function([] {
    (void)!write(STDOUT_FILENO, "printed", 7);
    return std::string("returned");
  });
  EXPECT_EQ(run.output, "returned");
  EXPECT_EQ(run.errors, "printed");
}

TEST(RunFunction, ReportsASignal) {
  const ProcessResult run = run_function([]() -> std::string {
    raise(SIGKILL);
    return "";
  });
  EXPECT_EQ(run.signal, SIGKILL);
  EXPECT_EQ(describe_failure(run), "ended with signal 9 (Killed)");
}

TEST(RunFunction, ReportsAnException) {
  const ProcessResult run = run_function([]() -> std::string { throw std::runtime_error("the reason"); });
  EXPECT_FALSE(run.ok());
  EXPECT_THAT(run.errors, HasSubstr("the reason"));
}

TEST(RunFunction, ReportsAnExit) {
  const ProcessResult run = run_function([]() -> std::string { _exit(5); });
  EXPECT_EQ(run.exit_code, 5);
}

TEST(RunFunction, StopsAtTheTimeLimit) {
  ProcessOptions options;
  options.timeout_s = 1;
  const ProcessResult run = run_function(
      []() -> std::string {
        for (;;) pause();
      },
      options);
  EXPECT_TRUE(run.timed_out);
  EXPECT_EQ(describe_failure(run), "timed out after 1 s");
}

#if !defined(__SANITIZE_ADDRESS__)
TEST(RunFunction, LimitsMemory) {
  ProcessOptions options;
  options.max_data_bytes = size_t{256} << 20;
  const ProcessResult run = run_function(
      [] {
        const std::string large(size_t{1} << 30, 'x');
        return large.substr(0, 1);
      },
      options);
  EXPECT_FALSE(run.ok());
  EXPECT_THAT(run.errors, HasSubstr("bad_alloc"));
}
#endif

}  // namespace
}  // namespace handoff::harness
