// Tested by gpu_speed_test.cc.
//
// Two questions. How near does a kernel come to the bandwidth of the GPU's memory? The yardstick is the driver's own
// copy on the device, of as many bytes, measured in the same run and in turns with the kernel, so that clocks and
// temperature are the same for both. And does the timing model rank pipelines as a chip does? There a cycle of the
// model cannot be compared with a second, but a ratio of two kernels can: one block on one SM, whose tiles lie in L2,
// with the difference of two trip counts, so that neither launch overhead nor contention for memory, which the model
// does not have, is in it.
#include "grader/timing/gpu_speed.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "grader/harness/catalog.h"

namespace handoff::timing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kChunk = size_t{64} << 20;  // bytes written or read at a time

/// Compiles for the device and loads.
std::string load(device::Device& device, const harness::Toolchain& toolchain, const StreamKernel& k) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(k.file, failed))
    return fmt::format("{}: {} is not there", k.name, k.file.string());
  harness::CompileOptions options;
  options.target = fmt::format("{}a", device.compute_capability());
  options.want_cubin = device.kind() == "cuda";
  options.include_dir = harness::project_root() / "exercises" / "include";
  const harness::CompileResult compiled = harness::compile(toolchain, k.file, options);
  if (!compiled.ok) return fmt::format("{}: {}", k.name, compiled.error);
  const device::Error e = device.load({k.file.filename().string(), compiled.ptx, compiled.cubin});
  return e ? fmt::format("{}: {}", k.name, e.message) : "";
}

std::string launch(device::Device& device, const StreamKernel& k, uint32_t blocks, uint64_t tiles, device::DevicePtr in,
                   device::DevicePtr out, device::LaunchResult* result) {
  device::LaunchConfig config;
  config.grid.x = blocks;
  config.block.x = k.threads;
  config.dynamic_smem = k.dynamic_smem;
  config.check = config.trace = false;
  const device::Argument arguments[] = {device::Argument::pointer(in), device::Argument::pointer(out),
                                        device::Argument::value(static_cast<int32_t>(tiles)),
                                        device::Argument::value(k.option)};
  *result = device.launch(k.kernel, config, arguments);
  return result->ok() ? "" : fmt::format("{}: {}", k.name, result->message);
}

/// Fills `bytes` of device memory at `to` with stream_input.
std::string write_input(device::Device& device, device::DevicePtr to, uint64_t bytes) {
  std::vector<float> chunk;
  for (uint64_t at = 0; at < bytes; at += kChunk) {
    chunk.resize(std::min<uint64_t>(kChunk, bytes - at) / sizeof(float));
    for (size_t i = 0; i < chunk.size(); ++i) chunk[i] = stream_input(at / sizeof(float) + i);
    if (const device::Error e = device.write(to + at, std::as_bytes(std::span(chunk))); e) return e.message;
  }
  return "";
}

/// Compares the output at `from` with what it should be.
std::string verify(device::Device& device, device::DevicePtr from, const std::function<float(float)>& expected,
                   Bandwidth* b) {
  std::vector<float> chunk;
  for (uint64_t at = 0; at < b->bytes; at += kChunk) {
    chunk.resize(std::min<uint64_t>(kChunk, b->bytes - at) / sizeof(float));
    if (const device::Error e = device.read(std::as_writable_bytes(std::span(chunk)), from + at); e) return e.message;
    for (size_t i = 0; i < chunk.size(); ++i) {
      const uint64_t element = at / sizeof(float) + i;
      const float wanted = expected(stream_input(element));
      if (chunk[i] == wanted) continue;
      if (b->wrong++ == 0) b->first_wrong = fmt::format("element {} is {:g}, expected {:g}", element, chunk[i], wanted);
    }
  }
  return "";
}

/// An input and an output of the loaded module, which end with it.
std::string allocate(device::Device& device, uint64_t bytes, device::DevicePtr* in, device::DevicePtr* out) {
  for (device::DevicePtr* p : {in, out}) {
    if (const device::Error e = device.allocate(bytes, p); e) return e.message;
  }
  return write_input(device, *in, bytes);
}

}  // namespace

double median(std::vector<double> samples) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  const size_t half = samples.size() / 2;
  return samples.size() % 2 != 0 ? samples[half] : (samples[half - 1] + samples[half]) / 2;
}

float stream_input(uint64_t i) {
  // The finalizer of splitmix64, so that no two tiles are alike.
  uint64_t z = (i + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return static_cast<float>(static_cast<int>(z >> 54) - 512) / 64;
}

// --- the whole GPU ---------------------------------------------------------------------------------------------------

double Bandwidth::kernel_rate() const { return 2 * static_cast<double>(bytes) / median(kernel_seconds); }
double Bandwidth::copy_rate() const { return 2 * static_cast<double>(bytes) / median(copy_seconds); }
double Bandwidth::share() const { return kernel_rate() / copy_rate(); }

std::string measure_bandwidth(device::GpuDevice& gpu, const harness::Toolchain& toolchain, const StreamKernel& k,
                              const std::function<float(float)>& expected, const BandwidthPlan& plan, Bandwidth* b) {
  *b = Bandwidth{};
  b->kernel = k.name;
  b->bytes = plan.bytes;
  if (std::string problem = load(gpu, toolchain, k); !problem.empty()) return problem;
  if (const device::Error e = gpu.occupancy(k.kernel, k.threads, k.dynamic_smem, &b->occupancy); e)
    return fmt::format("{}: {}", k.name, e.message);
  const uint32_t blocks = b->occupancy.multiprocessors * b->occupancy.blocks;
  if (blocks == 0) return fmt::format("{}: no block of it fits on this GPU", k.name);

  device::DevicePtr in = 0, out = 0, copied = 0;
  if (std::string problem = allocate(gpu, plan.bytes, &in, &out); !problem.empty()) return problem;
  if (const device::Error e = gpu.allocate(plan.bytes, &copied); e) return e.message;
  for (int i = 0; i < plan.warm_up + plan.repeats; ++i) {
    device::LaunchResult result;
    if (std::string problem = launch(gpu, k, blocks, plan.bytes / k.tile_bytes, in, out, &result); !problem.empty())
      return problem;
    double copy_seconds = 0;
    if (const device::Error e = gpu.copy(copied, in, plan.bytes, &copy_seconds); e) return e.message;
    if (i < plan.warm_up) continue;
    b->kernel_seconds.push_back(result.seconds);
    b->copy_seconds.push_back(copy_seconds);
  }
  return verify(gpu, out, expected, b);
}

// --- one block on one SM ---------------------------------------------------------------------------------------------

double TileCost::per_tile() const { return (median(many) - median(few)) / static_cast<double>(tiles); }

std::string measure_tiles(device::Device& device, const harness::Toolchain& toolchain, const StreamKernel& k,
                          const TilePlan& plan, TileCost* out) {
  *out = TileCost{};
  out->tiles = (plan.many - plan.few) / k.tile_bytes;
  const bool modeled = device.kind() != "cuda";
  if (std::string problem = load(device, toolchain, k); !problem.empty()) return problem;
  device::DevicePtr in = 0, result = 0;
  if (std::string problem = allocate(device, plan.many, &in, &result); !problem.empty()) return problem;

  std::string problem;
  const auto cost_of = [&](uint64_t bytes) {
    device::LaunchResult ran;
    problem = launch(device, k, 1, bytes / k.tile_bytes, in, result, &ran);
    return modeled ? static_cast<double>(ran.modeled_cycles) : ran.seconds;
  };
  if (!modeled) {
    const auto end = Clock::now() + std::chrono::duration<double>(plan.warm_up_seconds);
    do {
      cost_of(plan.many);
    } while (problem.empty() && Clock::now() < end);
  }
  for (int i = 0; problem.empty() && i < (modeled ? 1 : plan.repeats); ++i) {
    out->few.push_back(cost_of(plan.few));
    if (problem.empty()) out->many.push_back(cost_of(plan.many));
  }
  if (!problem.empty()) return problem;
  out->output.resize(plan.many / sizeof(float));
  return device.read(std::as_writable_bytes(std::span(out->output)), result).message;
}

// --- model against chip, and the record ------------------------------------------------------------------------------

std::vector<std::string> shortfalls(const SpeedRecord& r) {
  std::vector<std::string> lines;
  const Bandwidth& b = r.bandwidth;
  if (b.wrong > 0)
    lines.push_back(
        fmt::format("{}: {} of {} elements are wrong: {}", b.kernel, b.wrong, b.bytes / sizeof(float), b.first_wrong));
  if (!(b.share() >= kWantedShare))
    lines.push_back(fmt::format("{} reaches {:.1f} % of the copy; {:.0f} % are wanted", b.kernel, b.share() * 100,
                                kWantedShare * 100));
  for (const StreamCost& s : r.streams) {
    if (!s.same) lines.push_back(fmt::format("{}: the GPU's output is not the emulator's", s.name));
  }
  for (const Speedup& s : r.speedups) {
    if (!(std::fabs(r.difference(s)) <= kSpeedupTolerance))
      lines.push_back(fmt::format("{}: {:.2f} on the chip, {:.2f} in the model, more than {:.0f} % apart", s.name,
                                  r.chip(s), r.modeled(s), kSpeedupTolerance * 100));
  }
  return lines;
}

std::string bandwidth_table(const SpeedRecord& r) {
  const Bandwidth& b = r.bandwidth;
  std::string text = "| | GB/s, read plus written | ms, median | launches |\n|---|---|---|---|\n";
  text += fmt::format("| {}, {} blocks on each of {} SMs | {:.0f} | {:.3f} | {} |\n", b.kernel, b.occupancy.blocks,
                      b.occupancy.multiprocessors, b.kernel_rate() * 1e-9, median(b.kernel_seconds) * 1e3,
                      b.kernel_seconds.size());
  text += fmt::format("| cuMemcpyDtoDAsync | {:.0f} | {:.3f} | {} |\n", b.copy_rate() * 1e-9,
                      median(b.copy_seconds) * 1e3, b.copy_seconds.size());
  return text + fmt::format("\n{:.1f} % of the copy; {} MiB in, as many out; {} of {} results are right\n",
                            b.share() * 100, b.bytes >> 20, b.bytes / sizeof(float) - b.wrong, b.bytes / sizeof(float));
}

std::string speedup_table(const SpeedRecord& r) {
  std::string text =
      fmt::format("| one block on one SM | {}: ns a tile | {}: cycles a tile |\n|---|---|---|\n", r.gpu, r.model);
  for (const StreamCost& s : r.streams)
    text += fmt::format("| {} | {:.1f} | {:.1f} |\n", s.name, s.seconds * 1e9, s.cycles);
  text += fmt::format("\n| speed-up | {} | {} | difference |\n|---|---|---|---|\n", r.gpu, r.model);
  for (const Speedup& s : r.speedups)
    text +=
        fmt::format("| {} | {:.2f} | {:.2f} | {:+.1f} % |\n", s.name, r.chip(s), r.modeled(s), r.difference(s) * 100);
  return text;
}

std::string to_json(const SpeedRecord& r) {
  using Json = nlohmann::ordered_json;
  const Bandwidth& b = r.bandwidth;
  Json json;
  json["about"] = {{"date", r.date}, {"driver", r.driver}, {"gpu", r.gpu}, {"model", r.model}, {"toolkit", r.toolkit}};
  json["bandwidth"] = {{"kernel", b.kernel},
                       {"bytes_in", b.bytes},
                       {"multiprocessors", b.occupancy.multiprocessors},
                       {"blocks_each", b.occupancy.blocks},
                       {"wrong", b.wrong},
                       {"kernel_gb_s", b.kernel_rate() * 1e-9},
                       {"copy_gb_s", b.copy_rate() * 1e-9},
                       {"share", b.share()},
                       {"kernel_seconds", b.kernel_seconds},
                       {"copy_seconds", b.copy_seconds}};
  json["one_sm"] = Json::array();
  for (const StreamCost& s : r.streams) {
    json["one_sm"].push_back(
        {{"kernel", s.name}, {"seconds_a_tile", s.seconds}, {"cycles_a_tile", s.cycles}, {"same_output", s.same}});
  }
  json["speedups"] = Json::array();
  for (const Speedup& s : r.speedups) {
    json["speedups"].push_back(
        {{"name", s.name}, {"chip", r.chip(s)}, {"model", r.modeled(s)}, {"difference", r.difference(s)}});
  }
  json["shortfalls"] = shortfalls(r);
  return json.dump(1) + "\n";
}

}  // namespace handoff::timing
