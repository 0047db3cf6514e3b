// Tested by conformance_test.cc and by the ctest test conformance.agrees.
#include "grader/conformance/run.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <span>
#include <thread>

#include "grader/conformance/inputs.h"
#include "grader/harness/catalog.h"

namespace handoff::conformance {
namespace {

using device::LaunchResult;

constexpr const char* kKernel = "conformance";
constexpr uint32_t kPoison = 0xffffffff;
constexpr size_t kShownWords = 3;
constexpr int kGpuLaunches = 3;

const char* text_of(LaunchResult::Status status) {
  switch (status) {
    case LaunchResult::Status::Ok:
      return "ok";
    case LaunchResult::Status::Fault:
      return "fault";
    case LaunchResult::Status::Hang:
      return "hang";
    case LaunchResult::Status::Error:
      break;
  }
  return "cannot be launched";
}

/// One launch from a freshly loaded module. Sets `out`; a line that says what went wrong, or empty.
std::string launch_once(device::Device& device, const Case& c, const harness::CompileResult& compiled,
                        const machine::Schedule& schedule, std::vector<uint32_t>* out,
                        std::vector<Diagnostic>* diagnostics) {
  const std::vector<uint32_t> input = input_words();
  out->assign(c.out_words, kPoison);
  device::KernelInfo info;
  device::DevicePtr in_ptr = 0, out_ptr = 0;
  // A fresh module: whatever variables the kernel has start anew, and after a hang the device has no module.
  if (const device::Error e = device.load({c.file.filename().string(), compiled.ptx, compiled.cubin}); e)
    return e.message;
  if (const device::Error e = device.find_kernel(kKernel, &info); e) return e.message;
  if (const device::Error e = device.allocate(input.size() * sizeof(uint32_t), &in_ptr); e) return e.message;
  if (const device::Error e = device.allocate(out->size() * sizeof(uint32_t), &out_ptr); e) return e.message;
  device.name_allocation(in_ptr, "in");
  device.name_allocation(out_ptr, "out");
  if (const device::Error e = device.write(in_ptr, std::as_bytes(std::span(input))); e) return e.message;
  if (const device::Error e = device.write(out_ptr, std::as_bytes(std::span(*out))); e) return e.message;

  device::LaunchConfig config;
  config.grid.x = c.grid;
  config.block.x = c.block;
  config.cluster.x = c.cluster;
  config.dynamic_smem = c.dynamic_smem;
  config.schedule = schedule;
  config.trace = false;
  const device::Argument arguments[] = {device::Argument::pointer(in_ptr), device::Argument::pointer(out_ptr)};
  const LaunchResult result = device.launch(kKernel, config, arguments);
  for (const Diagnostic& d : result.diagnostics) {
    const bool known = std::any_of(diagnostics->begin(), diagnostics->end(), [&](const Diagnostic& k) {
      return k.id == d.id && k.place.file == d.place.file && k.place.line == d.place.line;
    });
    if (!known) diagnostics->push_back(d);
  }
  if (!result.ok()) return fmt::format("{}: {}", text_of(result.status), result.message);
  return device.read(std::as_writable_bytes(std::span(*out)), out_ptr).message;
}

/// The line about diagnostics that the head does not allow, or that it promises in vain; empty: none.
std::string judge_diagnostics(const Case& c, const std::vector<Diagnostic>& found) {
  for (const Diagnostic& d : found) {
    const bool named = std::find(c.diagnostics.begin(), c.diagnostics.end(), d.id) != c.diagnostics.end();
    if (d.severity == Severity::Error && !named)
      return fmt::format("error[{}] {}:{}: {}", d.id, d.place.file, d.place.line, d.message);
  }
  for (const std::string& id : c.diagnostics) {
    if (std::none_of(found.begin(), found.end(), [&](const Diagnostic& d) { return d.id == id; }))
      return fmt::format("the head says 'diagnostic: {}', and no launch reported it", id);
  }
  return "";
}

/// "out[7] was 0x00000001, then 0x00000002": the first word that differs between two launches.
std::string first_difference(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  const auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin());
  return fmt::format("out[{}] was {:#010x}, then {:#010x}", x - a.begin(), *x, *y);
}

}  // namespace

std::string target_of(const device::Device& device) { return fmt::format("{}a", device.compute_capability()); }

harness::CompileResult compile_case(const harness::Toolchain& toolchain, const Case& c, const std::string& target,
                                    bool want_cubin) {
  harness::CompileOptions options;
  options.target = target;
  options.want_cubin = want_cubin;
  options.kernel = kKernel;
  options.include_dir = harness::project_root() / "exercises" / "include";
  return harness::compile(toolchain, c.file, options);
}

void warm_compile_cache(const harness::Toolchain& toolchain, const std::vector<Case>& cases, const std::string& target,
                        bool want_cubin) {
  // Processes and not threads: harness::run_process runs one child at a time, because it forwards signals to it.
  const size_t jobs = std::min<size_t>(std::max(1U, std::thread::hardware_concurrency()), cases.size());
  if (jobs < 2) return;
  std::fflush(nullptr);
  std::vector<pid_t> children;
  for (size_t job = 0; job < jobs; ++job) {
    const pid_t child = fork();
    if (child < 0) break;
    if (child > 0) {
      children.push_back(child);
      continue;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (size_t i = job; i < cases.size(); i += jobs) compile_case(toolchain, cases[i], target, want_cubin);
    _exit(0);
  }
  for (pid_t child : children) {
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

Outcome run_case(device::Device& device, const Case& c, const harness::CompileResult& compiled) {
  Outcome outcome;
  outcome.problem = c.head_problem;
  if (!outcome.problem.empty()) return outcome;
  if (!compiled.ok) {
    outcome.problem = compiled.error;
    outcome.detail = compiled.detail;
    return outcome;
  }
  std::vector<machine::Schedule> schedules(kGpuLaunches);
  const bool emulated = device.kind() == "emulator";
  if (emulated) schedules = {{machine::Schedule::Kind::Nominal, 0}, {machine::Schedule::Kind::Random, 1}};
  for (size_t i = 0; i < schedules.size(); ++i) {
    const std::string label = emulated ? machine::to_string(schedules[i]) : fmt::format("launch {}", i + 1);
    std::vector<uint32_t> out;
    outcome.problem = launch_once(device, c, compiled, schedules[i], &out, &outcome.diagnostics);
    if (!outcome.problem.empty()) {
      outcome.problem = label + ": " + outcome.problem;
      return outcome;
    }
    if (i == 0) {
      outcome.out = std::move(out);
    } else if (out != outcome.out) {
      outcome.problem = "is not deterministic: " + first_difference(outcome.out, out) + " (" + label + ")";
      return outcome;
    }
  }
  // Only the emulator has a checker.
  if (emulated) outcome.problem = judge_diagnostics(c, outcome.diagnostics);
  return outcome;
}

Comparison compare_answers(const Case& c, const std::vector<uint32_t>& out, const std::string& device,
                           const Answer& recorded, const std::string& gpu) {
  Comparison comparison;
  if (recorded.fingerprint != c.fingerprint || recorded.out.size() != out.size()) {
    comparison.problem = "has changed since its answer was recorded: record it again on a GPU";
    return comparison;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] == recorded.out[i]) continue;
    if (comparison.wrong++ < kShownWords)
      comparison.lines.push_back(
          fmt::format("out[{}]: {} {:#010x}, {} {:#010x}", i, device, out[i], gpu, recorded.out[i]));
  }
  return comparison;
}

}  // namespace handoff::conformance
