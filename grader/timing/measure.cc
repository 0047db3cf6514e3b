// Tested by timing_test.cc and by the ctest test timing.agrees.
#include "grader/timing/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

namespace handoff::timing {
namespace {

/// The tensor map of a probe: a tensor in float32 as large as the box.
device::Error encode_map(device::Device& device, const Probe& probe, device::DevicePtr global,
                         std::array<std::byte, 128>* image) {
  const uint32_t row = probe.map == ProbeMap::Swizzled ? 128 : 1024;
  device::TensorMapArgs map;
  map.tensor_data_type = device::TensorDataType::Float32;
  map.tensor_rank = 2;
  map.global_address = global;
  map.global_dim = {row / 4, probe.n / row};
  map.global_strides = {row};
  map.box_dim = {row / 4, probe.n / row};
  if (probe.map == ProbeMap::Swizzled) map.swizzle = device::TensorSwizzle::B128;
  return device.encode_tensor_map(map, image);
}

/// An allocation that ends with its scope.
class Buffer {
 public:
  Buffer(device::Device& device, size_t bytes) : device_(device) { error_ = device.allocate(bytes, &address_); }
  ~Buffer() {
    // An error here would only repeat one that the launch has told already.
    if (!error_) device_.free(address_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  const device::Error& error() const { return error_; }
  device::DevicePtr address() const { return address_; }

 private:
  device::Device& device_;
  device::Error error_;
  device::DevicePtr address_ = 0;
};

}  // namespace

Cycles summarize(const std::vector<uint32_t>& samples) {
  std::vector<uint32_t> kept(samples.begin() + std::min(kWarmUp, samples.size()), samples.end());
  if (kept.empty()) return {};
  std::sort(kept.begin(), kept.end());
  const size_t half = kept.size() / 2;
  const double median = kept.size() % 2 != 0 ? kept[half] : (kept[half - 1] + static_cast<double>(kept[half])) / 2;
  return {median, static_cast<double>(kept.front()), static_cast<double>(kept.back())};
}

double cycles_of(const Probe& probe, const Cycles& round, double clock) {
  return probe.name == "clock" ? round.median : (round.median - clock) / probe.operations;
}

Outcome Bench::load(const Probe& probe) {
  Outcome outcome;
  const std::filesystem::path file = kernel_folder() / (probe.file + ".cu");
  harness::CompileOptions options;
  options.target = target_;
  options.want_cubin = device_.kind() == "cuda";
  options.include_dir = kernel_folder();
  const harness::CompileResult compiled = harness::compile(toolchain_, file, options);
  outcome.problem = compiled.error;
  outcome.detail = compiled.detail;
  if (!compiled.ok) return outcome;
  outcome.problem = device_.load({file.filename().string(), compiled.ptx, compiled.cubin}).message;
  if (outcome.problem.empty()) loaded_ = probe.file;
  return outcome;
}

std::string Bench::launch(const Probe& probe, std::vector<uint32_t>* samples) {
  samples->assign(kRounds, 0);
  const Buffer out(device_, kRounds * sizeof(uint32_t)), global(device_, probe.global_bytes);
  for (const Buffer* b : {&out, &global}) {
    if (b->error()) return b->error().message;
  }
  if (const device::Error e = device_.write(out.address(), std::as_bytes(std::span(*samples))); e) return e.message;

  std::vector<device::Argument> arguments = {device::Argument::pointer(out.address()),
                                             device::Argument::pointer(global.address()),
                                             device::Argument::value(probe.n), device::Argument::value(uint32_t{0})};
  std::array<std::byte, 128> map{};
  if (probe.map != ProbeMap::None) {
    if (const device::Error e = encode_map(device_, probe, global.address(), &map); e) return e.message;
    arguments.push_back(device::Argument::bytes_of(map));
  }
  device::KernelInfo info;
  if (const device::Error e = device_.find_kernel(probe.kernel, &info); e) return e.message;
  device::LaunchConfig config;
  config.grid.x = probe.grid;
  config.block.x = probe.block;
  config.cluster.x = probe.cluster;
  config.dynamic_smem = probe.dynamic_smem;
  config.check = config.trace = false;
  const device::LaunchResult result = device_.launch(probe.kernel, config, arguments);
  if (!result.ok()) return result.message;
  return device_.read(std::as_writable_bytes(std::span(*samples)), out.address()).message;
}

Outcome Bench::run(const Probe& probe) {
  Outcome outcome;
  if (loaded_ != probe.file) outcome = load(probe);
  if (!outcome.problem.empty()) return outcome;
  std::vector<uint32_t> samples;
  outcome.problem = launch(probe, &samples);
  if (!outcome.problem.empty()) {
    loaded_.clear();  // after a fault the device may have no module
    return outcome;
  }
  outcome.round = summarize(samples);
  if (outcome.round.least == 0) outcome.problem = "the kernel left a sample without a figure";
  return outcome;
}

}  // namespace handoff::timing
