// Tested by conformance_test.cc and by the ctest test conformance.agrees.
#include "grader/conformance/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "grader/conformance/inputs.h"
#include "grader/emulator/async/tensor_map.h"

namespace handoff::conformance {
namespace {

using device::LaunchResult;

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

/// The buffers of one launch.
struct Buffers {
  device::DevicePtr in = 0, out = 0;
};

/// Allocates and fills the buffers: the input, and `out` as it is. Empty, or what went wrong.
std::string make_buffers(device::Device& device, const std::vector<uint32_t>& out, Buffers* buffers) {
  const std::vector<uint32_t> input = input_words();
  if (const device::Error e = device.allocate(input.size() * sizeof(uint32_t), &buffers->in); e) return e.message;
  if (const device::Error e = device.allocate(out.size() * sizeof(uint32_t), &buffers->out); e) return e.message;
  device.name_allocation(buffers->in, "in");
  device.name_allocation(buffers->out, "out");
  if (const device::Error e = device.write(buffers->in, std::as_bytes(std::span(input))); e) return e.message;
  return device.write(buffers->out, std::as_bytes(std::span(out))).message;
}

/// What a map says to the encoder, now that the buffers are there.
device::TensorMapArgs map_arguments(const MapSpec& map, const Buffers& buffers) {
  device::TensorMapArgs args = map.args;
  if (map.base == MapSpec::Base::Input) args.global_address += buffers.in;
  if (map.base == MapSpec::Base::Output) args.global_address += buffers.out;
  return args;
}

/// One launch from a freshly loaded module. Sets `outcome->out`, `problem`, `crashed` and `faulted`, and adds its
/// diagnostics. Returns the id of the first; empty: none.
std::string launch_once(device::Device& device, const Case& c, const Code& code, const machine::Schedule& schedule,
                        Outcome* outcome) {
  std::vector<uint32_t>& out = outcome->out;
  out.assign(c.out_words, kPoison);
  device::KernelInfo info;
  Buffers buffers;
  const auto failed = [&](const std::string& message) {
    outcome->problem = message;
    return !message.empty();
  };
  // A fresh module: whatever variables the kernel has start anew, and after a hang the device has no module.
  const std::string name = c.file.filename().string();
  if (failed(device.load({name, code.compiled->ptx, code.compiled->cubin}).message)) return "";
  if (failed(device.find_kernel(code.kernel, &info).message)) return "";
  if (failed(make_buffers(device, out, &buffers))) return "";
  std::vector<device::Argument> arguments = {device::Argument::pointer(buffers.in),
                                             device::Argument::pointer(buffers.out)};
  for (const MapSpec& map : c.maps) {
    std::array<std::byte, 128> image;
    if (failed(device.encode_tensor_map(map_arguments(map, buffers), &image).message)) return "";
    arguments.push_back(device::Argument::bytes_of(image));
  }

  device::LaunchConfig config;
  config.grid = c.grid;
  config.block = c.block;
  config.cluster = c.cluster;
  config.dynamic_smem = c.dynamic_smem;
  config.schedule = schedule;
  config.trace = false;
  const LaunchResult result = device.launch(code.kernel, config, arguments);
  for (const Diagnostic& d : result.diagnostics) {
    const bool known = std::any_of(outcome->diagnostics.begin(), outcome->diagnostics.end(), [&](const Diagnostic& k) {
      return k.id == d.id && k.place.file == d.place.file && k.place.line == d.place.line;
    });
    if (!known) outcome->diagnostics.push_back(d);
  }
  if (!result.ok()) {
    outcome->problem = fmt::format("{}: {}", text_of(result.status), result.message);
    outcome->faulted = result.status == LaunchResult::Status::Fault;
    outcome->crashed = outcome->faulted || result.status == LaunchResult::Status::Hang;
  } else {
    failed(device.read(std::as_writable_bytes(std::span(out)), buffers.out).message);
  }
  return result.diagnostics.empty() ? "" : result.diagnostics.front().id;
}

/// Launches a case that must fault.
void expect_fault(device::Device& device, const Case& c, const Code& code, const machine::Schedule& schedule,
                  Outcome* outcome) {
  const std::string first = launch_once(device, c, code, schedule, outcome);
  if (outcome->faulted) {
    outcome->problem.clear();
    outcome->crashed = false;
    outcome->out.clear();
    if (device.kind() == "emulator" && first != c.fault)
      outcome->problem = fmt::format("the head says 'fault: {}', and the first diagnostic is '{}'", c.fault, first);
  } else if (outcome->problem.empty()) {
    outcome->problem = fmt::format("the head says 'fault: {}', and the launch ended by itself", c.fault);
  }
}

/// Asks the encoder. What the emulator cannot execute it may refuse although the arguments are right: its answer is
/// then what it says of the rules.
void encode_once(device::Device& device, const Case& c, Outcome* outcome) {
  static constexpr std::string_view kRefused = "cuTensorMapEncodeTiled: ";
  Buffers buffers;
  outcome->problem = make_buffers(device, {kPoison}, &buffers);
  if (!outcome->problem.empty()) return;
  const device::TensorMapArgs args = map_arguments(c.maps.at(0), buffers);
  std::array<std::byte, 128> image;
  const std::string said = device.encode_tensor_map(args, &image).message;
  for (device::DevicePtr p : {buffers.in, buffers.out}) {
    if (outcome->problem.empty()) outcome->problem = device.free(p).message;
  }
  outcome->detail = said;
  outcome->out = {said.empty() ? 1U : 0U};
  if (device.kind() == "emulator") {
    const std::string rule = async::check_tiled(args);
    if (said.empty() && !rule.empty()) outcome->problem = "is accepted against the emulator's own rule: " + rule;
    if (rule.empty()) outcome->out = {1};
  } else if (!said.empty() && !said.starts_with(kRefused)) {
    outcome->problem = said;
  }
}

/// The line about diagnostics that the head does not allow, or that it promises in vain; empty: none.
std::string judge_diagnostics(const Case& c, const std::vector<Diagnostic>& found) {
  for (const Diagnostic& d : found) {
    const bool named =
        d.id == c.fault || std::find(c.diagnostics.begin(), c.diagnostics.end(), d.id) != c.diagnostics.end();
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

Outcome run_case(device::Device& device, const Case& c, const Code& code) {
  Outcome outcome;
  outcome.problem = c.head_problem;
  if (!outcome.problem.empty()) return outcome;
  if (c.encodes) {
    encode_once(device, c, &outcome);
    return outcome;
  }
  if (!code.compiled->ok) {
    outcome.problem = code.compiled->error;
    outcome.detail = code.compiled->detail;
    return outcome;
  }
  std::vector<machine::Schedule> schedules(c.fault.empty() ? kGpuLaunches : 1);
  const bool emulated = device.kind() == "emulator";
  if (emulated) schedules = {{machine::Schedule::Kind::Nominal, 0}, {machine::Schedule::Kind::Random, 1}};
  std::vector<uint32_t> first;
  for (size_t i = 0; i < schedules.size(); ++i) {
    const std::string label = emulated ? machine::to_string(schedules[i]) : fmt::format("launch {}", i + 1);
    if (c.fault.empty()) {
      launch_once(device, c, code, schedules[i], &outcome);
    } else {
      expect_fault(device, c, code, schedules[i], &outcome);
    }
    if (!outcome.problem.empty()) {
      outcome.problem = label + ": " + outcome.problem;
      return outcome;
    }
    if (i == 0) {
      first = outcome.out;
    } else if (outcome.out != first) {
      outcome.problem = "is not deterministic: " + first_difference(first, outcome.out) + " (" + label + ")";
      return outcome;
    }
  }
  // Only the emulator has a checker.
  if (emulated) outcome.problem = judge_diagnostics(c, outcome.diagnostics);
  return outcome;
}

Comparison compare_answers(const Case& c, const Outcome& outcome, const std::string& device, const Answer& recorded,
                           const std::string& gpu) {
  Comparison comparison;
  const std::vector<uint32_t>& out = outcome.out;
  const size_t words = recorded.hash.empty() ? recorded.out.size() : recorded.words;
  const bool both_ended = !recorded.fault && !outcome.faulted;
  if (recorded.fingerprint != c.fingerprint || (both_ended && words != out.size())) {
    comparison.problem = "has changed since its answer was recorded: record it again on a GPU";
    return comparison;
  }
  if (!both_ended) {
    if (recorded.fault != outcome.faulted)
      comparison.difference = fmt::format("a fault stopped the launch of {}, and that of {} ended by itself",
                                          recorded.fault ? gpu : device, recorded.fault ? device : gpu);
    return comparison;
  }
  size_t wrong = 0;
  for (size_t i = 0; i < recorded.out.size(); ++i) {
    if (out[i] == recorded.out[i]) continue;
    if (wrong++ < kShownWords)
      comparison.lines.push_back(
          fmt::format("out[{}]: {} {:#010x}, {} {:#010x}", i, device, out[i], gpu, recorded.out[i]));
  }
  if (recorded.hash.empty()) {
    if (wrong > 0) comparison.difference = fmt::format("{} of {} words differ", wrong, words);
  } else if (hash_words(out) != recorded.hash) {
    comparison.difference =
        fmt::format("the hashes of {} words differ, and {} of the first {} words, which alone are recorded", words,
                    wrong, recorded.out.size());
  }
  return comparison;
}

}  // namespace handoff::conformance
