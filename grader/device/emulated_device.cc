// Device on the emulator: see device.h. One emulator an object, with the module that load() placed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

#include "grader/device/device.h"
#include "grader/emulator/emulator.h"

namespace handoff::device {
namespace {

class EmulatedDevice final : public Device {
 public:
  explicit EmulatedDevice(const machine::DeviceModel& model) : model_(model), emulator_(model) {}

  std::string_view kind() const override { return "emulator"; }
  std::string name() const override { return fmt::format("{} (emulated)", model_.name); }
  int compute_capability() const override { return model_.compute_capability; }
  bool has_tcgen05() const override { return model_.compute_capability >= 100; }

  Error load(const ModuleImage& image) override {
    const std::string error = emulator_.load(image.ptx);
    if (!error.empty()) return {fmt::format("{}: {}", image.name, error)};
    for (DevicePtr p : allocations_) emulator_.memory().free(p);
    allocations_.clear();
    return {};
  }

  Error find_kernel(std::string_view name, KernelInfo* info) override {
    if (emulator_.module() == nullptr) return {"no module is loaded"};
    const machine::Program* program = emulator_.module()->kernel(name);
    if (program == nullptr) {
      const std::vector<std::string> entries = emulator_.module()->entries();
      return {entries.empty() ? fmt::format("no kernel named {}; the module has none", name)
                              : fmt::format("no kernel named {}; the module has {}", name, fmt::join(entries, ", "))};
    }
    *info = KernelInfo{};
    info->static_smem = program->static_smem;
    info->param_bytes = program->param_bytes;
    for (const machine::Parameter& p : program->parameters) info->param_sizes.push_back(p.size);
    return {};
  }

  Error allocate(size_t bytes, DevicePtr* out) override {
    const machine::Allocation* a = emulator_.memory().allocate(bytes, "");
    if (a == nullptr) return {fmt::format("{} bytes of device memory are not to be had", bytes)};
    *out = a->base;
    allocations_.push_back(a->base);
    return {};
  }
  Error free(DevicePtr p) override {
    std::erase(allocations_, p);
    if (!emulator_.memory().free(p)) return {fmt::format("{:#x} is not the start of an allocation", p)};
    return {};
  }
  void name_allocation(DevicePtr p, std::string_view name) override { emulator_.memory().rename(p, std::string(name)); }
  Error write(DevicePtr dst, std::span<const std::byte> bytes) override {
    std::byte* host = nullptr;
    if (Error e = locate(dst, bytes.size(), &host); e) return e;
    if (!bytes.empty()) std::memcpy(host, bytes.data(), bytes.size());
    return {};
  }
  Error read(std::span<std::byte> out, DevicePtr src) override {
    std::byte* host = nullptr;
    if (Error e = locate(src, out.size(), &host); e) return e;
    if (!out.empty()) std::memcpy(out.data(), host, out.size());
    return {};
  }
  Error read_symbol(std::string_view name, std::span<std::byte> out) override {
    if (emulator_.module() == nullptr) return {"no module is loaded"};
    const auto symbol = emulator_.module()->symbol(name);
    if (!symbol) return {fmt::format("the module has no variable {}", name)};
    if (symbol->size != out.size())
      return {fmt::format("variable {} has {} bytes, expected {}", name, symbol->size, out.size())};
    return read(out, symbol->address);
  }

  Error encode_tensor_map(const TensorMapArgs& args, std::array<std::byte, 128>* out) override {
    const std::string problem = async::encode_tiled(args, out);
    return {problem.empty() ? problem : "cuTensorMapEncodeTiled: " + problem};
  }

  LaunchResult launch(std::string_view kernel, const LaunchConfig& config, std::span<const Argument> args) override {
    LaunchResult result;
    if (emulator_.module() == nullptr) {
      result.status = LaunchResult::Status::Error;
      result.message = "no module is loaded";
      return result;
    }
    machine::LaunchConfig c;
    c.grid = {config.grid.x, config.grid.y, config.grid.z};
    c.block = {config.block.x, config.block.y, config.block.z};
    c.cluster = {config.cluster.x, config.cluster.y, config.cluster.z};
    c.dynamic_smem = config.dynamic_smem;
    c.schedule = config.schedule;
    std::vector<std::vector<std::byte>> bytes;
    for (const Argument& a : args) bytes.emplace_back(a.bytes().begin(), a.bytes().end());
    EmulatedRun run = emulator_.launch(kernel, c, bytes, {config.check, config.trace, config.trace});
    result.diagnostics = std::move(run.diagnostics);
    result.state = std::move(run.state);
    result.output = std::move(run.output);
    result.modeled_cycles = run.modeled_cycles;
    result.trace = std::move(run.trace);
    if (!run.config_error.empty()) {
      result.status = LaunchResult::Status::Error;
      result.message = std::move(run.config_error);
    } else if (run.status != machine::LaunchStatus::Ok) {
      result.status =
          run.status == machine::LaunchStatus::Hang ? LaunchResult::Status::Hang : LaunchResult::Status::Fault;
      result.message = run.failure;
    }
    return result;
  }

 private:
  Error locate(DevicePtr address, size_t bytes, std::byte** host) {
    const machine::Allocation* a = emulator_.memory().find(address, std::max<size_t>(bytes, 1));
    if (a == nullptr)
      return {fmt::format("{} bytes at {:#x}: {}", bytes, address, emulator_.memory().describe(address))};
    *host = a->host + (address - a->base);
    return {};
  }

  machine::DeviceModel model_;
  Emulator emulator_;
  std::vector<DevicePtr> allocations_;
};

}  // namespace

std::unique_ptr<Device> make_emulated_device(const machine::DeviceModel& model) {
  return std::make_unique<EmulatedDevice>(model);
}

}  // namespace handoff::device
