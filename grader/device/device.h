// One interface for the two places a kernel can run: the emulator and a real GPU.
// Harnesses are written against Device and never know which one they have.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grader/emulator/async/tensor_map.h"
#include "grader/emulator/machine/device_model.h"
#include "grader/emulator/machine/diagnostic.h"
#include "grader/emulator/machine/schedule.h"
#include "grader/emulator/trace/trace.h"

namespace handoff::device {

/// Address on the device, in bytes, as a kernel sees it.
using DevicePtr = uint64_t;

/// Arguments of cuTensorMapEncodeTiled, which an encoded map is made of.
using async::TensorDataType;
using async::TensorInterleave;
using async::TensorL2Promotion;
using async::TensorMapArgs;
using async::TensorOobFill;
using async::TensorSwizzle;

/// Extents of a grid, block or cluster, in blocks or threads.
struct Dim3 {
  /// At least 1 each.
  ///@{
  uint32_t x = 1, y = 1, z = 1;
  ///@}
  /// x * y * z.
  uint64_t volume() const { return uint64_t{x} * y * z; }
};

/// An error of the device layer: what was asked, what went wrong, what to do. Empty message = no error.
struct Error {
  std::string message;  ///< one line; empty: no error
  /// Is this an error?
  explicit operator bool() const { return !message.empty(); }
};

/// Compiled device code. EmulatedDevice uses `ptx`, CudaDevice uses `cubin` where present, else `ptx` (JIT).
struct ModuleImage {
  std::string name;   ///< for messages: "kernel.cu"
  std::string ptx;    ///< PTX text
  std::string cubin;  ///< ELF image for `sm`, may be empty
};

/// One kernel argument, copied by value.
class Argument {
 public:
  /// The bytes of `v`, a trivially copyable value of the size that the kernel declares.
  template <class T>
  static Argument value(const T& v) {
    Argument a;
    a.bytes_.resize(sizeof(T));
    __builtin_memcpy(a.bytes_.data(), &v, sizeof(T));
    return a;
  }
  /// A device address, 8 bytes.
  static Argument pointer(DevicePtr p) { return value(p); }
  /// What is copied into the parameter; its size is the parameter's.
  /// The given bytes as they are.
  static Argument bytes_of(std::span<const std::byte> bytes) {
    Argument a;
    a.bytes_.assign(bytes.begin(), bytes.end());
    return a;
  }
  std::span<const std::byte> bytes() const { return bytes_; }  ///< what is passed

 private:
  std::vector<std::byte> bytes_;
};

/// How to launch. `dynamic_smem` in bytes.
struct LaunchConfig {
  /// In blocks, threads, blocks.
  ///@{
  Dim3 grid, block, cluster;
  ///@}
  uint32_t dynamic_smem = 0;   ///< bytes
  machine::Schedule schedule;  ///< ignored by a GPU
  bool check = true;           ///< run the checker (emulator only)
  bool trace = true;           ///< record the run's events (emulator only)
  double timeout_s = 6.0;      ///< GPU: the watchdog's patience
};

/// What one launch did.
struct LaunchResult {
  /// Fault: the kernel did what it may not. Hang: deadlock, or out of patience. Error: it could not be launched.
  enum class Status : uint8_t { Ok, Fault, Hang, Error };
  Status status = Status::Ok;           ///< how the launch ended
  std::string message;                  ///< one line; empty when Ok
  std::vector<Diagnostic> diagnostics;  ///< in order of cause
  std::vector<std::string> state;       ///< deadlock report: one line per barrier and waiter (emulator)
  std::string output;                   ///< what the kernel printed
  uint64_t modeled_cycles = 0;          ///< emulator only
  double seconds = 0;                   ///< GPU: event time of the launch
  trace::Trace trace;                   ///< emulator only
  /// Did the kernel end by itself without a fault? Diagnostics may still exist.
  bool ok() const { return status == Status::Ok; }
};

/// Resources of a kernel, as ptxas or the driver gives them.
struct KernelInfo {
  uint32_t registers = 0;             ///< a thread; 0: unknown
  uint32_t static_smem = 0;           ///< bytes a block
  uint32_t param_bytes = 0;           ///< total bytes of the parameter list
  std::vector<uint32_t> param_sizes;  ///< bytes of each parameter (emulator: exact; GPU: as the driver tells)
};

/// A device with one module loaded at a time. Not thread-safe. All methods return an Error instead of throwing.
class Device {
 public:
  virtual ~Device() = default;
  /// "emulator" or "cuda": as --device takes it.
  virtual std::string_view kind() const = 0;
  /// "B200 (emulated)" or the GPU's own name.
  virtual std::string name() const = 0;
  /// Compute capability times ten (100 for sm_100, 90 for sm_90).
  virtual int compute_capability() const = 0;
  /// Can it run tcgen05 instructions (sm_100a and its family)?
  virtual bool has_tcgen05() const = 0;

  /// Loads a module, replacing the one loaded before; allocations are freed.
  virtual Error load(const ModuleImage& image) = 0;
  /// Finds an entry by name. Error: names of the entries that do exist.
  virtual Error find_kernel(std::string_view name, KernelInfo* info) = 0;
  /// `bytes` of device memory, 512-byte aligned, contents undefined (emulator: poisoned).
  virtual Error allocate(size_t bytes, DevicePtr* out) = 0;
  /// Ends an allocation. Error: `p` is not the start of one.
  virtual Error free(DevicePtr p) = 0;
  /// Names an allocation for messages about bad addresses; a GPU ignores it.
  virtual void name_allocation(DevicePtr, std::string_view) {}
  /// Copies host bytes to device memory. Error: not wholly inside one allocation.
  virtual Error write(DevicePtr dst, std::span<const std::byte> bytes) = 0;
  /// Copies out.size() bytes of device memory to the host. Error: not wholly inside one allocation.
  virtual Error read(std::span<std::byte> out, DevicePtr src) = 0;
  /// Reads a module-scope variable (`__constant__` or `__device__`); Error if absent or of another size.
  virtual Error read_symbol(std::string_view name, std::span<std::byte> out) = 0;
  /// Encodes a tensor map, to be passed by value (Argument::bytes_of) to a parameter `const __grid_constant__
  /// CUtensorMap`; only this device reads it. Error: the argument, its value and the rule that it breaks.
  virtual Error encode_tensor_map(const TensorMapArgs& args, std::array<std::byte, 128>* out) = 0;
  /// Launches and waits. After Hang the device has restarted: load again.
  virtual LaunchResult launch(std::string_view kernel, const LaunchConfig& config, std::span<const Argument> args) = 0;
};

/// The emulator as a device of `model`. Always available.
std::unique_ptr<Device> make_emulated_device(const machine::DeviceModel& model = machine::kB200);

/// The GPU `ordinal`, driven from a child process that a watchdog can kill; nullptr and `why` (one line) where there is
/// none. libcuda is opened at run time.
std::unique_ptr<Device> make_cuda_device(int ordinal, std::string* why);

}  // namespace handoff::device
