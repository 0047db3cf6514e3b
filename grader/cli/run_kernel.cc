// handoff run-kernel: one launch of a bare kernel on the emulator, checker included, without an exercise around it. For
// developers: the catalogue's examples (docs/diagnostics/examples) are run with it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "grader/cli/commands.h"
#include "grader/cli/exercises.h"
#include "grader/cli/submission.h"
#include "grader/device/device.h"
#include "grader/harness/session.h"
#include "grader/harness/toolchain.h"
#include "grader/report/diagnostic_json.h"
#include "grader/report/json.h"

namespace handoff::cli {
namespace {

namespace fs = std::filesystem;
using device::LaunchResult;
using Json = nlohmann::ordered_json;

constexpr int64_t kMaxFloats = 1 << 24;        // 64 MiB a buffer
constexpr int64_t kMaxGrid = 1 << 16;          // blocks
constexpr int64_t kMaxBlock = 1024;            // threads
constexpr int64_t kMaxCluster = 16;            // blocks
constexpr int64_t kMaxSmem = 227 * 1024;       // bytes a block may have
constexpr int64_t kMaxInt = INT64_C(1) << 31;  // an int's range

/// One --arg: a buffer of floats, a tensor map over the buffer before it, or an int.
struct KernelArgument {
  bool buffer = false;
  bool input = false;
  bool map = false;
  int64_t value = 0;                 ///< floats of a buffer; the int
  device::TensorMapArgs map_args{};  ///< of a map, without the address
};

std::optional<int64_t> integer_in(const std::string& text, int64_t low, int64_t high) {
  int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size() || value < low || value > high) return std::nullopt;
  return value;
}

/// Reads `text` into `out`; a line that says what is wrong, or empty.
std::string read_extent(const char* option, const std::string& text, int64_t low, int64_t high, uint32_t* out) {
  const std::optional<int64_t> value = integer_in(text, low, high);
  if (!value) return fmt::format("{} takes a whole number from {} to {}, got '{}'", option, low, high, text);
  *out = static_cast<uint32_t>(*value);
  return "";
}

/// "32,16,8,8": a matrix of 16 rows of 32 floats, and a box of 8 rows of 8. The encoder judges the numbers.
bool read_map(const std::string& text, device::TensorMapArgs* out) {
  std::array<uint32_t, 4> extents{};
  size_t at = 0;
  for (size_t i = 0; i < extents.size(); ++i) {
    const size_t end = i + 1 < extents.size() ? text.find(',', at) : text.size();
    if (end == std::string::npos) return false;
    const std::optional<int64_t> value = integer_in(text.substr(at, end - at), 0, kMaxFloats);
    if (!value) return false;
    extents[i] = static_cast<uint32_t>(*value);
    at = end + 1;
  }
  out->tensor_data_type = device::TensorDataType::Float32;
  out->tensor_rank = 2;
  out->global_dim = {extents[0], extents[1]};
  out->global_strides = {uint64_t{extents[0]} * sizeof(float)};
  out->box_dim = {extents[2], extents[3]};
  return true;
}

std::string read_argument(const std::string& text, KernelArgument* out) {
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  out->map = kind == "map";
  if (out->map) {
    if (colon != std::string::npos && read_map(text.substr(colon + 1), &out->map_args)) return "";
    return fmt::format("--arg takes map:WIDTH,HEIGHT,BOX_WIDTH,BOX_HEIGHT, got '{}'", text);
  }
  out->buffer = kind == "in" || kind == "out";
  out->input = kind == "in";
  const std::optional<int64_t> value =
      colon == std::string::npos
          ? std::nullopt
          : integer_in(text.substr(colon + 1), out->buffer ? 1 : -kMaxInt, out->buffer ? kMaxFloats : kMaxInt - 1);
  if ((!out->buffer && kind != "int") || !value) {
    return fmt::format("--arg takes in:FLOATS, out:FLOATS, map:… or int:VALUE, got '{}'", text);
  }
  out->value = *value;
  return "";
}

/// PTX of a .ptx file, or of what nvcc makes of a .cu file; a line that says what is wrong, or empty.
std::string ptx_of(const fs::path& file, const std::string& kernel, std::string* ptx) {
  if (file.extension() != ".cu" && file.extension() != ".ptx") return file.string() + ": neither a .cu nor a .ptx file";
  if (std::string problem = why_not_a_submission(file); !problem.empty()) return problem;
  if (file.extension() == ".ptx") {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    *ptx = text.str();
  } else {
    const harness::Toolchain toolchain = harness::find_toolchain();
    if (!toolchain.found()) return harness::missing_toolchain_message(toolchain);
    harness::CompileOptions options;
    options.kernel = kernel;
    options.include_dir = include_folder();
    const harness::CompileResult compiled = harness::compile(toolchain, file, options);
    if (!compiled.ok) {
      std::fputs(compiled.detail.c_str(), stderr);
      return file.string() + ": " + compiled.error;
    }
    *ptx = compiled.ptx;
  }
  return why_no_kernel(*ptx, kernel, file.string());
}

/// Allocates the buffers and launches once. Every run starts from the same memory: in[i] is i, out is poison.
LaunchResult run_once(const std::string& name, const std::string& ptx, const std::string& kernel,
                      const device::LaunchConfig& config, const std::vector<KernelArgument>& arguments) {
  const auto failed = [](const device::Error& error) {
    LaunchResult result;
    result.status = LaunchResult::Status::Error;
    result.message = error.message;
    return result;
  };
  const std::unique_ptr<device::Device> device = device::make_emulated_device();
  if (const device::Error e = device->load({name, ptx, ""}); e) return failed(e);
  std::vector<device::Argument> values;
  int inputs = 0, outputs = 0;
  device::DevicePtr last = 0;
  for (const KernelArgument& a : arguments) {
    if (a.map) {
      if (last == 0) return failed({"--arg map:… describes the buffer before it, and there is none"});
      device::TensorMapArgs map = a.map_args;
      map.global_address = last;
      std::array<std::byte, 128> image;
      if (const device::Error e = device->encode_tensor_map(map, &image); e) return failed(e);
      values.push_back(device::Argument::bytes_of(image));
      continue;
    }
    if (!a.buffer) {
      values.push_back(device::Argument::value(static_cast<int32_t>(a.value)));
      continue;
    }
    const auto count = static_cast<size_t>(a.value);
    device::DevicePtr p = 0;
    if (const device::Error e = device->allocate(count * sizeof(float), &p); e) return failed(e);
    const int number = a.input ? ++inputs : ++outputs;
    device->name_allocation(p, (a.input ? "in" : "out") + (number == 1 ? std::string() : std::to_string(number)));
    if (a.input) {
      std::vector<float> data(count);
      for (size_t i = 0; i < count; ++i) data[i] = static_cast<float>(i);
      if (const device::Error e = device->write(p, std::as_bytes(std::span(data))); e) return failed(e);
    }
    values.push_back(device::Argument::pointer(p));
    last = p;
  }
  return device->launch(kernel, config, values);
}

const char* text_of(LaunchResult::Status status) {
  switch (status) {
    case LaunchResult::Status::Ok:
      return "ok";
    case LaunchResult::Status::Fault:
      return "fault";
    case LaunchResult::Status::Hang:
      return "hang";
    case LaunchResult::Status::Error:
      return "error";
  }
  return "error";
}

Json run_json(const machine::Schedule& schedule, const LaunchResult& result) {
  Json diagnostics = Json::array();
  for (const Diagnostic& d : result.diagnostics) diagnostics.push_back(report::diagnostic_json(d));
  return {{"schedule", machine::to_string(schedule.kind)},
          {"seed", schedule.seed},
          {"status", text_of(result.status)},
          {"message", result.message},
          {"modeled_cycles", result.modeled_cycles},
          {"output", result.output},
          {"diagnostics", std::move(diagnostics)}};
}

void print_run(const machine::Schedule& schedule, const LaunchResult& result) {
  std::printf("%s: %s, %llu modeled cycles\n", machine::to_string(schedule).c_str(), text_of(result.status),
              static_cast<unsigned long long>(result.modeled_cycles));
  for (const Diagnostic& d : result.diagnostics) {
    std::printf("  %s[%s] %s:%u: %s\n", report::to_text(d.severity), d.id.c_str(), d.place.file.c_str(), d.place.line,
                d.message.c_str());
    for (const RelatedPlace& r : d.related)
      std::printf("    %s:%u: %s\n", r.place.file.c_str(), r.place.line, r.role.c_str());
    if (!d.hint.empty()) std::printf("    %s\n", d.hint.c_str());
  }
  std::fputs(result.output.c_str(), stdout);
}

}  // namespace

int run_kernel(const RunKernelArguments& a) {
  device::LaunchConfig config;
  config.trace = false;
  std::vector<KernelArgument> arguments(a.arguments.size());
  std::string problem = read_extent("--grid", a.grid, 1, kMaxGrid, &config.grid.x);
  if (problem.empty()) problem = read_extent("--block", a.block, 1, kMaxBlock, &config.block.x);
  if (problem.empty()) problem = read_extent("--cluster", a.cluster, 1, kMaxCluster, &config.cluster.x);
  if (problem.empty()) problem = read_extent("--smem", a.smem, 0, kMaxSmem, &config.dynamic_smem);
  if (problem.empty() && config.grid.x % config.cluster.x != 0) {
    problem = fmt::format("--grid {} is not a multiple of --cluster {}: a grid has whole clusters", a.grid, a.cluster);
  }
  for (size_t i = 0; problem.empty() && i < arguments.size(); ++i)
    problem = read_argument(a.arguments[i], &arguments[i]);
  if (problem.empty() && a.schedule != "all" && !machine::schedule_from_string(a.schedule)) {
    problem = "no schedule '" + a.schedule + "'" +
              suggestion(a.schedule, {"all", "nominal", "lazy", "eager", "reverse", "random"},
                         "; there are all, nominal, lazy, eager, reverse and random");
  }
  harness::GradeOptions grade;
  grade.schedule = a.schedule;
  if (problem.empty() && !a.seed.empty()) {
    const std::optional<int64_t> seed = integer_in(a.seed, 0, INT64_MAX);
    if (seed) {
      grade.seed = static_cast<uint64_t>(*seed);
    } else {
      problem = fmt::format("--seed takes a whole number from 0 to {}, got '{}'", INT64_MAX, a.seed);
    }
  }
  if (problem.empty() && !a.json.empty() && a.json != "-") problem = report::why_not_writable(a.json);
  std::string ptx;
  if (problem.empty()) problem = ptx_of(a.file, a.kernel, &ptx);
  if (!problem.empty()) return refuse(problem);

  Json runs = Json::array();
  bool clean = true;
  const std::string name = fs::path(a.file).filename().string();
  for (const machine::Schedule& schedule : harness::schedules_for(grade)) {
    config.schedule = schedule;
    const LaunchResult result = run_once(name, ptx, a.kernel, config, arguments);
    if (result.status == LaunchResult::Status::Error) return refuse(a.file + ": " + result.message);
    clean = clean && result.ok() && result.diagnostics.empty();
    runs.push_back(run_json(schedule, result));
    if (a.json != "-") print_run(schedule, result);
  }
  const std::string text = Json{{"version", 1}, {"file", a.file}, {"kernel", a.kernel}, {"runs", std::move(runs)}}.dump(
                               2, ' ', false, Json::error_handler_t::replace) +
                           "\n";
  if (a.json == "-") {
    std::fputs(text.c_str(), stdout);
  } else if (!a.json.empty()) {
    if (const std::string failed = report::write_whole(a.json, text); !failed.empty()) return refuse(failed);
  }
  return clean ? kFullMarks : kNotFullMarks;
}

}  // namespace handoff::cli
