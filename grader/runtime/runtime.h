// The emulated CUDA runtime behind the API's functions: one object for the process, which holds the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "grader/emulator/emulator.h"
#include "grader/runtime/cuda_abi.h"
#include "grader/runtime/device_memory.h"
#include "grader/runtime/fatbin.h"
#include "grader/runtime/launch_report.h"
#include "grader/runtime/trace_file.h"

namespace handoff::runtime {

/// What a call came to: an error code, and where it is one, why, for the user.
struct Outcome {
  Error code = kSuccess;  ///< what the call returns
  std::string why;        ///< one line; empty: the code says it all
};

struct Code;

/// cudaKernel_t, cudaFunction_t, CUfunction and CUkernel: an entry of some code, and its attributes.
struct Kernel {
  Code* code = nullptr;                       ///< where it stands
  std::string name;                           ///< as in the PTX
  const machine::Program* program = nullptr;  ///< decoded; nullptr until it is first needed
  uint32_t max_dynamic_smem = 0;              ///< bytes, once decoded
  int carveout = -1;                          ///< as set; of no effect
  bool non_portable_cluster = false;          ///< more than 8 blocks are allowed
};

/// CUmodule and CUlibrary, or one registered fat binary: PTX, placed in memory when it is first needed.
struct Code {
  std::vector<FatbinEntry> entries;                        ///< of a fat binary
  std::string ptx;                                         ///< of a module loaded as text
  std::string problem;                                     ///< why there is none; one line
  Outcome load_outcome;                                    ///< of placing it
  bool load_tried = false;                                 ///< then `load_outcome` holds
  std::unique_ptr<machine::LoadedModule> module;           ///< placed; nullptr: not yet, or it cannot be
  std::map<std::string, std::unique_ptr<Kernel>> kernels;  ///< by name
  std::map<std::string, void**> managed;  ///< `__managed__` variables: where the host keeps the address
};

/// A `__device__`, `__constant__` or `__managed__` variable that a program registered.
struct Variable {
  Code* code = nullptr;  ///< where it stands
  std::string name;      ///< as in the PTX
  uint64_t bytes = 0;    ///< as registered
};

/// cudaStream_t other than the default ones. All work is done when it is asked for, so that a stream has nothing in it.
struct Stream {
  uint64_t id = 0;     ///< from 1
  unsigned flags = 0;  ///< as created
  int priority = 0;    ///< as created
};

/// cudaEvent_t.
struct Event {
  unsigned flags = 0;     ///< as created
  bool recorded = false;  ///< at least once
  double ms = 0;          ///< modeled time at which it was recorded last
};

/// How a kernel is launched.
struct LaunchShape {
  /// In blocks, threads, blocks.
  ///@{
  machine::Dim grid, block, cluster;
  ///@}
  uint64_t dynamic_smem = 0;  ///< bytes
  bool cooperative = false;   ///< all blocks must be resident together
};

/// The runtime of this process. Every method needs the lock, which the functions of the API take.
class Runtime {
 public:
  /// The one object; it is never destroyed, since programs call the API from destructors of their own.
  static Runtime& get();
  /// Held during each call.
  std::recursive_mutex& lock() { return lock_; }

  /// The device: a B200, or an H200 where all PTX of the program is for that one.
  const machine::DeviceModel& model();
  /// Its memory.
  DeviceMemory& memory() { return memory_; }
  /// Modeled time of all launches so far, ms.
  double modeled_ms() const;

  // Code.
  /// Registers a fat binary of the program, as its wrapper describes it.
  Code* add_fat_binary(const void* wrapper);
  /// Loads PTX text, or a fat binary, from memory (`bytes` 0: as long as it says itself). `lazy`: what is wrong with it
  /// is found when it is placed.
  Outcome load_code(const void* image, size_t bytes, bool lazy, Code** out);
  /// Forgets the code, its kernels and its variables.
  void remove_code(Code* code);
  /// Is it code that load_code made and remove_code did not end?
  bool is_code(const void* handle) const { return codes_.count(static_cast<Code*>(const_cast<void*>(handle))) != 0; }
  /// Places the code in memory unless that was done before.
  Outcome place(Code& code);
  /// The entry `name`, known by name only.
  Kernel* kernel_of(Code& code, const std::string& name);
  /// Makes a host function, or a host variable, stand for what the device has.
  ///@{
  void register_function(const void* host, Code& code, const char* name);
  void register_variable(const void* host, Code& code, const char* name, uint64_t bytes);
  ///@}
  /// Makes a `__managed__` variable's address appear at `host` when the code is placed.
  void register_managed(void** host, Code& code, const char* name);
  /// The kernel that a host function or a handle stands for; nullptr: none.
  Kernel* find_kernel(const void* function);
  /// Decodes the kernel unless that was done before.
  Outcome decode(Kernel& kernel);
  /// Device address and size of a registered variable.
  Outcome find_variable(const void* host, machine::LoadedModule::Symbol* out);

  // Launches.
  /// Runs a kernel to its end. `args`: one pointer for each parameter; `packed`: the whole block instead (where not
  /// nullptr). A fault is not the launch's own error: it is what the calls after it return.
  Outcome launch(Kernel& kernel, const LaunchShape& shape, void** args, const std::vector<std::byte>* packed = nullptr);
  /// Can the kernel, which has been decoded, be launched so?
  Outcome check_shape(Kernel& kernel, const LaunchShape& shape);
  /// Blocks of this kernel that one SM holds at a time.
  uint32_t resident_blocks(const Kernel& kernel, uint64_t threads, uint64_t dynamic_smem);

  // Errors.
  /// The error that all calls return once the device has failed; kSuccess: it has not.
  Error device_error() const { return device_error_; }
  /// cudaDeviceReset: frees all that the program allocated, ends its streams and events, and forgets that the device
  /// has failed. Code is placed anew, with its variables as they were at first.
  void reset();
  /// Error of this thread's last failed call.
  static Error& last_error();

  std::set<Stream*> streams;  ///< those that are alive
  std::set<Event*> events;    ///< those that are alive
  uint64_t next_stream = 1;   ///< Stream::id of the next one

  // What the user is told.
  /// A message for the user, once.
  void tell(const std::string& text, bool fatal = false);
  /// A call failed: `name` as in the API.
  void tell_failed(const char* name, const Outcome& outcome);

 private:
  Runtime();
  void report(const RunRecord& record);
  Outcome share_managed(Code& code);
  uint64_t grid_workspace();  // LaunchConfig::grid_workspace, as a launch finds it; 0: there is no memory
  std::recursive_mutex lock_;
  DeviceMemory memory_;
  bool model_chosen_ = false;
  machine::DeviceModel model_ = machine::kB200;
  std::set<Code*> codes_;
  std::vector<std::unique_ptr<Code>> owned_;  // what was removed stays: programs keep pointers into it
  std::unordered_map<const void*, Kernel*> functions_;
  std::unordered_map<const void*, Variable> variables_;
  std::set<Kernel*> kernels_;
  uint64_t modeled_cycles_ = 0;  // of all launches so far
  uint64_t launches_ = 0;
  Error device_error_ = kSuccess;
  std::string report_path_;
  bool check_ = true, warnings_ = false;
  machine::Schedule schedule_;
  TraceFile trace_;
  std::set<std::string> told_;
  bool told_fatal_ = false;
  const machine::Allocation* grid_workspace_ = nullptr;
};

// What the runtime's and the driver's functions share (api_launch.cc, api_memory.cc).
/// Takes over what launch attributes say of the shape.
void apply_attributes(const LaunchAttribute* attributes, unsigned count, LaunchShape* shape);
/// cudaFuncSetAttribute on a decoded kernel.
Outcome set_attribute(Runtime& r, Kernel& kernel, int attribute, int value);
/// cudaFuncGetAttributes of a decoded kernel.
FunctionAttributes attributes_of(Runtime& r, const Kernel& kernel);
/// Allocates `bytes` (0: a null pointer, as the API has it); `name` is the call's.
Outcome allocate(Runtime& r, void** out, uint64_t bytes, MemoryType type, const char* name);
/// Frees what `allocate` made of this type or types; a null pointer is none.
Outcome release(Runtime& r, void* p, bool host);
/// Copies; the direction is checked where `kind` names one.
Outcome copy(Runtime& r, void* to, const void* from, uint64_t bytes, MemcpyKind kind);
/// Fills `count` elements of 1, 2 or 4 bytes.
Outcome fill(Runtime& r, uint64_t to, uint32_t value, uint64_t count, uint32_t element_bytes);
/// Value of a device attribute (cudaDeviceAttr, CUdevice_attribute: the same numbers); false: no such attribute.
bool device_attribute(const machine::DeviceModel& model, int attribute, int* value);
/// Bytes of memory that the device is said to have.
uint64_t total_memory(const machine::DeviceModel& model);
/// The call that a program finds under this name: null where the library has none, or only a refusal.
void* find_entry_point(const char* name);

/// cudaGetErrorName and cudaGetErrorString.
///@{
const char* error_name(Error code);
const char* error_text(Error code);
///@}

/// Runs one call of the API: takes the lock, answers with the device's error where it has failed, keeps the error for
/// cudaGetLastError and tells the user why. `body` takes the Runtime and returns an Outcome.
template <class Body>
Error call(const char* name, const Body& body, bool whatever_the_device = false) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard<std::recursive_mutex> guard(runtime.lock());
  Outcome outcome{whatever_the_device ? kSuccess : runtime.device_error(), {}};
  if (outcome.code == kSuccess) {
    outcome = body(runtime);
    if (outcome.code != kSuccess && outcome.code != kNotReady) runtime.tell_failed(name, outcome);
  }
  if (outcome.code != kSuccess) Runtime::last_error() = outcome.code;
  return outcome.code;
}

/// The same for the few calls that answer although the device has failed.
template <class Body>
Error query(const char* name, const Body& body) {
  return call(name, body, true);
}

}  // namespace handoff::runtime

/// The functions that the library exports.
#define HANDOFF_API extern "C" __attribute__((visibility("default")))
