// handoff figure: a figure of a chapter, drawn from a recorded run. For developers: the test content.figures compares
// every figure that is kept with what its recording gives.
//
// A figure is a pair of files, chapters/NN-name/figures/NAME.toml and NAME.svg. The kernel runs on the emulator on the
// nominal schedule, from the PTX that is kept beside its source where there is some, so that the same run is recorded
// wherever the program is built. Its contents matter for no figure: buffers are filled with small numbers.
#include "grader/report/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "grader/cli/commands.h"
#include "grader/cli/files.h"
#include "grader/cli/submission.h"
#include "grader/device/device.h"
#include "grader/emulator/machine/memory_access.h"
#include "grader/harness/toolchain.h"
#include "grader/report/figure_spec.h"
#include "grader/report/json.h"

namespace handoff::cli {
namespace {

namespace fs = std::filesystem;
using report::FigureArgument;
using report::FigureSpec;

constexpr int kSkipped = 77;  // as ctest's SKIP_RETURN_CODE

std::string shown(const fs::path& file) {
  const fs::path relative = fs::absolute(file).lexically_relative(harness::project_root());
  return relative.empty() || *relative.begin() == ".." ? file.string() : relative.string();
}

/// The line of a PTX module that names the compiler's release: "Cuda compilation tools, release 13.0, V13.0.88".
std::string compiler_of(const std::string& ptx) {
  const size_t at = ptx.find("Cuda compilation tools");
  return at == std::string::npos ? "an unknown compiler" : ptx.substr(at, ptx.find('\n', at) - at);
}

/// The kernel's PTX: kept, or `made` now. `problem` says why there is none; `no_compiler`, whether nvcc is what lacks.
std::string ptx_of(const FigureSpec& spec, std::string* problem, bool* no_compiler, bool* made) {
  const fs::path source = harness::project_root() / spec.source;
  const fs::path kept = fs::path(source).replace_extension(".ptx");
  std::string ptx;
  if (fs::is_regular_file(kept)) {
    ptx = read_file(kept);
  } else {
    if (*problem = why_not_a_submission(source); !problem->empty()) return "";
    const harness::Toolchain toolchain = harness::find_toolchain();
    if (!toolchain.found()) {
      *no_compiler = true;
      *problem = harness::missing_toolchain_message(toolchain);
      return "";
    }
    harness::CompileOptions options;
    options.kernel = spec.kernel;
    options.include_dir = include_folder();
    const harness::CompileResult compiled = harness::compile(toolchain, source, options);
    if (!compiled.ok) {
      *problem = spec.source + ": " + compiled.error;
      return "";
    }
    ptx = compiled.ptx;
    *made = true;
  }
  *problem = why_no_kernel(ptx, spec.kernel, spec.source);
  return ptx;
}

size_t element_bytes(const std::string& type) { return type == "f32" ? 4 : 2; }

/// Small numbers, none of them 0.
std::vector<std::byte> contents_of(const FigureArgument& argument) {
  const size_t size = element_bytes(argument.type);
  const auto count = static_cast<size_t>(argument.value);
  std::vector<std::byte> bytes(count * size);
  for (size_t i = 0; i < count; ++i) {
    const float number = static_cast<float>(1 + i % 7) / 8.0f;
    if (argument.type == "f32") {
      std::memcpy(&bytes[i * size], &number, size);
    } else {
      const uint16_t half = argument.type == "bf16" ? machine::float_to_bf16(number) : machine::float_to_half(number);
      std::memcpy(&bytes[i * size], &half, size);
    }
  }
  return bytes;
}

device::TensorMapArgs map_of(const FigureArgument& argument, device::DevicePtr base) {
  device::TensorMapArgs map;
  map.tensor_data_type = argument.type == "f32"   ? device::TensorDataType::Float32
                         : argument.type == "f16" ? device::TensorDataType::Float16
                                                  : device::TensorDataType::Bfloat16;
  map.tensor_rank = static_cast<uint32_t>(argument.dim.size());
  map.global_address = base;
  uint64_t stride = element_bytes(argument.type);
  for (size_t d = 0; d < argument.dim.size(); ++d) {
    map.global_dim[d] = argument.dim[d];
    map.box_dim[d] = argument.box[d];
    stride *= argument.dim[d];
    if (d + 1 < argument.dim.size()) map.global_strides[d] = argument.strides.empty() ? stride : argument.strides[d];
  }
  map.swizzle = argument.swizzle == "128B" ? device::TensorSwizzle::B128 : device::TensorSwizzle::None;
  return map;
}

device::Error make_arguments(device::Device& device, const FigureSpec& spec, std::vector<device::Argument>* values) {
  using Kind = FigureArgument::Kind;
  std::map<std::string, device::DevicePtr> buffers;
  for (const FigureArgument& a : spec.arguments) {
    if (a.kind != Kind::In && a.kind != Kind::Out) continue;
    device::DevicePtr& at = buffers[a.name];
    if (at != 0) return {"two buffers are named " + a.name};
    if (device::Error e = device.allocate(static_cast<size_t>(a.value) * element_bytes(a.type), &at); e) return e;
    device.name_allocation(at, a.name);
    if (a.kind == Kind::In) {
      if (device::Error e = device.write(at, contents_of(a)); e) return e;
    }
  }
  for (const FigureArgument& a : spec.arguments) {
    if (a.kind == Kind::Int) {
      values->push_back(device::Argument::value(static_cast<int32_t>(a.value)));
    } else if (a.kind == Kind::Map) {
      const auto buffer = buffers.find(a.name);
      if (buffer == buffers.end()) return {"a map is over " + a.name + ", and there is no buffer of that name"};
      std::array<std::byte, 128> image;
      if (device::Error e = device.encode_tensor_map(map_of(a, buffer->second), &image); e) return e;
      values->push_back(device::Argument::bytes_of(image));
    } else if (a.passed) {
      values->push_back(device::Argument::pointer(buffers[a.name]));
    }
  }
  return {};
}

/// The recorded run. A run that ends badly, or that the checker objects to, is no figure: `problem` says what it was.
device::LaunchResult record(const FigureSpec& spec, const std::string& ptx, std::string* problem) {
  const std::unique_ptr<device::Device> device = device::make_emulated_device();
  device::LaunchResult result;
  std::vector<device::Argument> arguments;
  device::Error error = device->load({fs::path(spec.source).filename().string(), ptx, ""});
  if (!error) error = make_arguments(*device, spec, &arguments);
  if (error) {
    *problem = error.message;
    return result;
  }
  device::LaunchConfig config;
  config.grid.x = spec.grid;
  config.block.x = spec.block;
  config.dynamic_smem = spec.smem;
  result = device->launch(spec.kernel, config, arguments);
  if (!result.ok()) *problem = result.message;
  for (const Diagnostic& d : result.diagnostics) {
    if (d.severity == Severity::Error && problem->empty())
      *problem = fmt::format("{} at line {}: {}", d.id, d.place.line, d.message);
  }
  if (result.trace.truncated && problem->empty()) *problem = "the run has more events than a trace keeps";
  return result;
}

enum class Outcome : uint8_t { Same, Skipped, Failed };

/// Draws one figure and does with it what was asked.
Outcome make_figure(const FigureArguments& a, const fs::path& file) {
  const auto failed = [&](const std::string& what) {
    std::fprintf(stderr, "handoff: %s: %s\n", shown(file).c_str(), what.c_str());
    return Outcome::Failed;
  };
  if (!fs::is_regular_file(file)) return failed("no such file");
  std::vector<std::string> errors;
  const FigureSpec spec = report::read_figure_spec(read_file(file), shown(file), &errors);
  for (const std::string& error : errors) std::fprintf(stderr, "handoff: %s\n", error.c_str());
  if (!errors.empty()) return Outcome::Failed;

  std::string problem;
  bool no_compiler = false, made = false;
  const std::string ptx = ptx_of(spec, &problem, &no_compiler, &made);
  if (no_compiler) {
    std::printf("%s: skipped: %s\n", shown(file).c_str(), problem.c_str());
    return Outcome::Skipped;
  }
  if (!problem.empty()) return failed(problem);
  const device::LaunchResult run = record(spec, ptx, &problem);
  if (!problem.empty()) return failed(problem);
  if (a.events) {
    std::fputs(report::list_events(spec, run.trace).c_str(), stdout);
    return Outcome::Same;
  }
  const report::FigureRun recorded{&run.trace, compiler_of(ptx)};
  const std::string svg = report::draw_figure(spec, recorded, &problem);
  if (!problem.empty()) return failed(problem);

  const fs::path target = a.out.empty() ? fs::path(file).replace_extension(".svg") : fs::path(a.out);
  if (!a.check) {
    if (const std::string why = report::write_whole(target.string(), svg); !why.empty()) return failed(why);
    std::printf("%s\n", shown(target).c_str());
    return Outcome::Same;
  }
  if (!fs::is_regular_file(target)) return failed("it has no " + target.filename().string() + " yet");
  const std::string kept = read_file(target);
  if (kept == svg) return Outcome::Same;
  // Another nvcc may well make another run of a source whose PTX is not kept.
  if (made && kept.find(recorded.compiler) == std::string::npos) {
    std::printf("%s: skipped: not drawn with %s\n", shown(file).c_str(), recorded.compiler.c_str());
    return Outcome::Skipped;
  }
  return failed("the recorded run gives another figure than " + target.filename().string() +
                "; `handoff figure` draws it anew. The text around it may have to follow");
}

/// Files of figures in all chapters: ".toml", or ".svg".
std::vector<fs::path> all_figures(const char* extension) {
  std::vector<fs::path> files;
  const fs::path chapters = harness::project_root() / "chapters";
  for (const fs::directory_entry& chapter : fs::directory_iterator(chapters)) {
    if (!fs::is_directory(chapter.path() / "figures")) continue;
    for (const fs::directory_entry& entry : fs::directory_iterator(chapter.path() / "figures")) {
      if (entry.path().extension() == extension) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

int run_figure(const FigureArguments& a) {
  std::vector<fs::path> files(a.files.begin(), a.files.end());
  if (files.empty()) files = all_figures(".toml");
  if (files.empty()) return refuse("there is no figure under chapters");
  if (!a.out.empty() && files.size() != 1) return refuse("--out takes one figure");
  int bad = 0, skipped = 0;
  for (const fs::path& svg : a.check&& a.files.empty() ? all_figures(".svg") : std::vector<fs::path>()) {
    if (fs::is_regular_file(fs::path(svg).replace_extension(".toml"))) continue;
    std::fprintf(stderr, "handoff: %s: nothing says what it was drawn from\n", shown(svg).c_str());
    ++bad;
  }
  for (const fs::path& file : files) {
    const Outcome outcome = make_figure(a, file);
    bad += outcome == Outcome::Failed ? 1 : 0;
    skipped += outcome == Outcome::Skipped ? 1 : 0;
  }
  if (a.check && !a.events)
    std::printf("%zu figure%s, %d not as recorded, %d skipped\n", files.size(), files.size() == 1 ? "" : "s", bad,
                skipped);
  if (bad > 0) return kNotFullMarks;
  return skipped > 0 && static_cast<size_t>(skipped) == files.size() ? kSkipped : kFullMarks;
}

}  // namespace handoff::cli
