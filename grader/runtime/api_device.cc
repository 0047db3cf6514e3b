// The device, errors, streams and events (CUDA runtime API, "Device Management", "Error Handling", "Stream Management",
// "Event Management").
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>

#include "grader/runtime/capture.h"
#include "grader/runtime/graph.h"
#include "grader/runtime/pool.h"

namespace handoff::runtime {
namespace {

constexpr int kVersion = 13000;             // CUDA 13.0: the runtime that this library stands for
constexpr int kDriverVersion = 13020;       // as of a driver that is later than it, which runs all that it has
constexpr int kClockKhz = 1'960'000;        // timing.h
constexpr uint32_t kRegisters = 64 * 1024;  // of an SM and of a block, 32 bits each (compute capability 9.0 and 10.0)
constexpr uint32_t kSmemWithoutOptIn = 48 * 1024;          // bytes a block
constexpr uint32_t kReservedSmem = 1024;                   // bytes a block
constexpr int kLeastPriority = 0, kGreatestPriority = -5;  // of streams
constexpr unsigned kExternal = 1;                          // cudaEventRecordExternal, cudaEventWaitExternal

/// What differs between the models and concerns programs, not the emulator (NVIDIA's data sheets; L2 as the driver
/// reports it).
struct Facts {
  uint64_t memory;  // bytes
  int l2, bus;      // bytes, bits
};
Facts facts_of(const machine::DeviceModel& model) {
  return model.compute_capability >= 100 ? Facts{uint64_t{180} << 30, 126 << 20, 8192}
                                         : Facts{uint64_t{141'000'000'000}, 60 << 20, 6144};
}

Outcome check_device(int device) {
  return device == 0 ? Outcome{} : Outcome{kInvalidDevice, fmt::format("device {}; there is one, 0", device)};
}

/// Attributes of streams concern caches and how work is shared out: they are kept, and of no effect.
constexpr LaunchAttributeId kStreamAttributes[] = {
    LaunchAttributeId::AccessPolicyWindow, LaunchAttributeId::SynchronizationPolicy, LaunchAttributeId::Priority,
    LaunchAttributeId::MemSyncDomainMap, LaunchAttributeId::MemSyncDomain};
constexpr size_t kAttributeBytes = 64;  // cudaLaunchAttributeValue
using AttributeValue = std::array<std::byte, kAttributeBytes>;

std::map<std::pair<Stream*, LaunchAttributeId>, AttributeValue>& stream_attributes() {
  static auto* const kValues = new std::map<std::pair<Stream*, LaunchAttributeId>, AttributeValue>;
  return *kValues;
}

constexpr char kPciBusId[] = "0000:00:00.0";  // as the device's properties have it

/// cudaLimit. The emulator's stacks, heaps and buffers are as large as they need to be: limits are kept, and of no
/// effect. At first they are those of an H200 with driver 580, whose buffer for printf has 64 KiB for each of its SMs.
constexpr int kStackLimit = 0, kLimits = 7, kSyncDepth = 3;
size_t& limit_value(Runtime& r, int limit) {
  static std::array<size_t, kLimits> values = {1024, size_t{r.model().sms} << 16, 8 << 20, 0, 2048, 64, 0};
  return values[static_cast<size_t>(limit)];
}
Outcome check_limit(int limit) {
  if (limit == kSyncDepth) return {kUnsupportedLimit, fmt::format("no device since sm_90 has limit {}", limit)};
  return limit >= kStackLimit && limit < kLimits ? Outcome{}
                                                 : Outcome{kInvalidValue, fmt::format("no limit {}", limit)};
}
Outcome set_limit(Runtime& r, int limit, size_t value) {
  Outcome outcome = check_limit(limit);
  if (outcome.code == kSuccess) limit_value(r, limit) = value;
  return outcome;
}
Outcome get_limit(Runtime& r, size_t* value, int limit) {
  Outcome outcome = check_limit(limit);
  if (outcome.code == kSuccess) *value = limit_value(r, limit);
  return outcome;
}

DeviceProperties properties_of(const machine::DeviceModel& model) {
  const auto value = [&](int attribute) {
    int v = 0;
    device_attribute(model, attribute, &v);
    return v;
  };
  DeviceProperties p{};
  const std::string name = fmt::format("NVIDIA {} (emulated)", model.name);
  std::memcpy(p.name, name.c_str(), name.size() + 1);
  p.totalGlobalMem = total_memory(model);
  p.sharedMemPerBlock = kSmemWithoutOptIn;
  p.regsPerBlock = p.regsPerMultiprocessor = kRegisters;
  p.warpSize = 32;
  p.memPitch = INT32_MAX;
  p.maxThreadsPerBlock = 1024;
  for (int i = 0; i < 3; ++i) {
    p.maxThreadsDim[i] = value(2 + i);
    p.maxGridSize[i] = value(5 + i);
  }
  p.totalConstMem = 64 * 1024;
  p.major = model.compute_capability / 10;
  p.minor = model.compute_capability % 10;
  p.textureAlignment = p.surfaceAlignment = 512;
  p.texturePitchAlignment = 32;
  p.multiProcessorCount = static_cast<int>(model.sms);
  p.canMapHostMemory = p.concurrentKernels = p.unifiedAddressing = p.managedMemory = 1;
  p.asyncEngineCount = 1;
  p.memoryBusWidth = facts_of(model).bus;
  p.l2CacheSize = facts_of(model).l2;
  p.maxThreadsPerMultiProcessor = static_cast<int>(model.max_threads_per_sm);
  p.streamPrioritiesSupported = p.globalL1CacheSupported = p.localL1CacheSupported = 1;
  p.sharedMemPerMultiprocessor = model.smem_per_sm;
  p.cooperativeLaunch = p.clusterLaunch = p.unifiedFunctionPointers = p.memoryPoolsSupported = 1;
  p.concurrentManagedAccess = p.computePreemptionSupported = 1;
  p.canUseHostPointerForRegisteredMem = p.hostRegisterSupported = 1;
  p.sharedMemPerBlockOptin = model.smem_per_cta;
  p.maxBlocksPerMultiProcessor = static_cast<int>(model.max_ctas_per_sm);
  p.reservedSharedMemPerBlock = kReservedSmem;
  return p;
}

}  // namespace

uint64_t total_memory(const machine::DeviceModel& model) { return facts_of(model).memory; }

bool device_attribute(const machine::DeviceModel& model, int attribute, int* value) {
  struct Entry {
    int attribute, value;
  };
  const auto of = [](uint32_t v) { return static_cast<int>(v); };
  // By their numbers in cudaDeviceAttr; what the emulator has nothing of (textures, peers, IPC) is 0.
  const Entry entries[] = {
      {1, 1024},                            // MaxThreadsPerBlock
      {2, 1024},                            // MaxBlockDimX
      {3, 1024},                            // MaxBlockDimY
      {4, 64},                              // MaxBlockDimZ
      {5, INT32_MAX},                       // MaxGridDimX
      {6, 65535},                           // MaxGridDimY
      {7, 65535},                           // MaxGridDimZ
      {8, of(kSmemWithoutOptIn)},           // MaxSharedMemoryPerBlock
      {9, 64 * 1024},                       // TotalConstantMemory
      {10, 32},                             // WarpSize
      {11, INT32_MAX},                      // MaxPitch
      {12, of(kRegisters)},                 // MaxRegistersPerBlock
      {13, kClockKhz},                      // ClockRate
      {14, 512},                            // TextureAlignment
      {15, 1},                              // GpuOverlap
      {16, of(model.sms)},                  // MultiProcessorCount
      {19, 1},                              // CanMapHostMemory
      {31, 1},                              // ConcurrentKernels
      {37, facts_of(model).bus},            // GlobalMemoryBusWidth
      {38, facts_of(model).l2},             // L2CacheSize
      {39, of(model.max_threads_per_sm)},   // MaxThreadsPerMultiProcessor
      {40, 1},                              // AsyncEngineCount
      {41, 1},                              // UnifiedAddressing
      {75, model.compute_capability / 10},  // ComputeCapabilityMajor
      {76, model.compute_capability % 10},  // ComputeCapabilityMinor
      {78, 1},                              // StreamPrioritiesSupported
      {79, 1},                              // GlobalL1CacheSupported
      {80, 1},                              // LocalL1CacheSupported
      {81, of(model.smem_per_sm)},          // MaxSharedMemoryPerMultiprocessor
      {82, of(kRegisters)},                 // MaxRegistersPerMultiprocessor
      {83, 1},                              // ManagedMemory
      {87, 2},                              // SingleToDoublePrecisionPerfRatio
      {89, 1},                              // ConcurrentManagedAccess
      {90, 1},                              // ComputePreemptionSupported
      {91, 1},                              // CanUseHostPointerForRegisteredMem
      {95, 1},                              // CooperativeLaunch
      {97, of(model.smem_per_cta)},         // MaxSharedMemoryPerBlockOptin
      {99, 1},                              // HostRegisterSupported
      {106, of(model.max_ctas_per_sm)},     // MaxBlocksPerMultiprocessor
      {111, of(kReservedSmem)},             // ReservedSharedMemoryPerBlock
      {115, 1},                             // MemoryPoolsSupported
      {120, 1},                             // ClusterLaunch
      {126, 1},                             // MemSyncDomainCount
      {127, 1},                             // TensorMapAccessSupported
      {129, 1},                             // UnifiedFunctionPointers
  };
  constexpr int kLast = 147;  // of CUDA 13.0
  if (attribute < 1 || attribute > kLast) return false;
  *value = 0;
  for (const Entry& e : entries) {
    if (e.attribute == attribute) *value = e.value;
  }
  return true;
}

}  // namespace handoff::runtime

using namespace handoff::runtime;  // NOLINT: what follows is the C interface over it

// --- devices ---

HANDOFF_API Error cudaGetDeviceCount(int* count) {
  return query("cudaGetDeviceCount", [&](Runtime&) -> Outcome {
    *count = 1;
    return {};
  });
}
HANDOFF_API Error cudaGetDevice(int* device) {
  return query("cudaGetDevice", [&](Runtime&) -> Outcome {
    *device = 0;
    return {};
  });
}
HANDOFF_API Error cudaSetDevice(int device) {
  return call("cudaSetDevice", [&](Runtime&) { return check_device(device); });
}
HANDOFF_API Error cudaInitDevice(int device, unsigned, unsigned) {
  return call("cudaInitDevice", [&](Runtime&) { return check_device(device); });
}
HANDOFF_API Error cudaSetDeviceFlags(unsigned) {
  return call("cudaSetDeviceFlags", [](Runtime&) { return Outcome{}; });
}
HANDOFF_API Error cudaGetDeviceFlags(unsigned* flags) {
  return call("cudaGetDeviceFlags", [&](Runtime&) -> Outcome {
    *flags = 0;
    return {};
  });
}
HANDOFF_API Error cudaGetDeviceProperties(DeviceProperties* out, int device) {
  return query("cudaGetDeviceProperties", [&](Runtime& r) {
    Outcome outcome = check_device(device);
    if (outcome.code == kSuccess) *out = properties_of(r.model());
    return outcome;
  });
}
HANDOFF_API Error cudaDeviceGetAttribute(int* value, int attribute, int device) {
  return query("cudaDeviceGetAttribute", [&](Runtime& r) -> Outcome {
    Outcome outcome = check_device(device);
    if (outcome.code != kSuccess) return outcome;
    if (!device_attribute(r.model(), attribute, value))
      return {kInvalidValue, fmt::format("no attribute {}", attribute)};
    return {};
  });
}
HANDOFF_API Error cudaDeviceCanAccessPeer(int* can, int device, int) {
  return call("cudaDeviceCanAccessPeer", [&](Runtime&) {
    *can = 0;
    return check_device(device);
  });
}
HANDOFF_API Error cudaDeviceSynchronize() {
  return call("cudaDeviceSynchronize", [](Runtime& r) { return check_no_capture(r); });
}
HANDOFF_API Error cudaDeviceReset() {
  return query("cudaDeviceReset", [](Runtime& r) -> Outcome {
    Outcome outcome = check_no_capture(r);
    if (outcome.code != kSuccess) return outcome;
    r.reset();
    reset_pools();
    captures() = {};
    stream_attributes().clear();
    return outcome;
  });
}
HANDOFF_API Error cudaDeviceSetLimit(int limit, size_t value) {
  return call("cudaDeviceSetLimit", [&](Runtime& r) { return set_limit(r, limit, value); });
}
HANDOFF_API Error cudaDeviceGetLimit(size_t* value, int limit) {
  return call("cudaDeviceGetLimit", [&](Runtime& r) { return get_limit(r, value, limit); });
}
HANDOFF_API Error cudaDeviceSetCacheConfig(int) {
  return call("cudaDeviceSetCacheConfig", [](Runtime&) { return Outcome{}; });
}
HANDOFF_API Error cudaDeviceGetCacheConfig(int* config) {
  return call("cudaDeviceGetCacheConfig", [&](Runtime&) -> Outcome {
    constexpr int kNoPreference = 0;
    *config = kNoPreference;
    return {};
  });
}
HANDOFF_API Error cudaDeviceSetSharedMemConfig(int) {
  return call("cudaDeviceSetSharedMemConfig", [](Runtime&) { return Outcome{}; });
}
HANDOFF_API Error cudaDeviceGetSharedMemConfig(int* config) {
  return call("cudaDeviceGetSharedMemConfig", [&](Runtime&) -> Outcome {
    constexpr int kFourBytes = 1;
    *config = kFourBytes;
    return {};
  });
}
HANDOFF_API Error cudaCtxResetPersistingL2Cache() {
  return call("cudaCtxResetPersistingL2Cache", [](Runtime&) { return Outcome{}; });
}
HANDOFF_API Error cudaDeviceGetPCIBusId(char* text, int length, int device) {
  return call("cudaDeviceGetPCIBusId", [&](Runtime&) -> Outcome {
    Outcome outcome = check_device(device);
    if (outcome.code != kSuccess) return outcome;
    if (text == nullptr || length < static_cast<int>(sizeof kPciBusId)) {
      return {kInvalidValue, fmt::format("room for {} characters", length)};
    }
    std::memcpy(text, kPciBusId, sizeof kPciBusId);
    return {};
  });
}
HANDOFF_API Error cudaDeviceGetByPCIBusId(int* device, const char* text) {
  return call("cudaDeviceGetByPCIBusId", [&](Runtime&) -> Outcome {
    if (device == nullptr || text == nullptr) return {kInvalidValue, "a null pointer"};
    if (std::strcmp(text, kPciBusId) != 0) return {kInvalidDevice, fmt::format("the device is {}", kPciBusId)};
    *device = 0;
    return {};
  });
}
HANDOFF_API Error cudaChooseDevice(int* device, const DeviceProperties* wanted) {
  return call("cudaChooseDevice", [&](Runtime&) -> Outcome {
    if (device == nullptr || wanted == nullptr) return {kInvalidValue, "a null pointer"};
    *device = 0;
    return {};
  });
}
HANDOFF_API Error cudaSetValidDevices(int* devices, int count) {
  return call("cudaSetValidDevices", [&](Runtime&) -> Outcome {
    if (count < 0 || (count > 0 && devices == nullptr)) return {kInvalidValue, "no list of devices"};
    for (int i = 0; i < count; ++i) {
      Outcome outcome = check_device(devices[i]);
      if (outcome.code != kSuccess) return outcome;
    }
    return {};
  });
}
HANDOFF_API Error cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call("cudaDeviceGetStreamPriorityRange", [&](Runtime&) -> Outcome {
    if (least != nullptr) *least = kLeastPriority;
    if (greatest != nullptr) *greatest = kGreatestPriority;
    return {};
  });
}
HANDOFF_API Error cudaDriverGetVersion(int* version) {
  *version = kDriverVersion;
  return kSuccess;
}
HANDOFF_API Error cudaRuntimeGetVersion(int* version) {
  *version = kVersion;
  return kSuccess;
}
HANDOFF_API Error cudaProfilerStart() { return kSuccess; }
HANDOFF_API Error cudaProfilerStop() { return kSuccess; }

// --- errors ---

HANDOFF_API Error cudaGetLastError() { return std::exchange(Runtime::last_error(), kSuccess); }
HANDOFF_API Error cudaPeekAtLastError() { return Runtime::last_error(); }
HANDOFF_API const char* cudaGetErrorName(Error error) { return error_name(error); }
HANDOFF_API const char* cudaGetErrorString(Error error) { return error_text(error); }

// --- streams: all work is done when it is asked for ---

namespace {

Outcome make_stream(Runtime& r, Stream** out, unsigned flags, int priority) {
  if (out == nullptr) return {kInvalidValue, "the stream's address is null"};
  constexpr unsigned kNonBlocking = 1;
  if ((flags & ~kNonBlocking) != 0) return {kInvalidValue, fmt::format("flags {:#x}", flags)};
  // A priority beyond the ends of the range is the end.
  *out = new Stream{r.next_stream++, flags, std::clamp(priority, kGreatestPriority, kLeastPriority)};
  r.streams.insert(*out);
  return {};
}

Outcome check_stream_attribute(Runtime& r, Stream* stream, LaunchAttributeId attribute) {
  Outcome outcome = check_stream(r, stream);
  if (outcome.code != kSuccess) return outcome;
  const auto* const end = std::end(kStreamAttributes);
  return std::find(std::begin(kStreamAttributes), end, attribute) != end
             ? Outcome{}
             : Outcome{kInvalidValue, fmt::format("a stream has no attribute {}", static_cast<int>(attribute))};
}

}  // namespace

HANDOFF_API Error cudaStreamCreate(Stream** out) {
  return call("cudaStreamCreate", [&](Runtime& r) { return make_stream(r, out, 0, 0); });
}
HANDOFF_API Error cudaStreamCreateWithFlags(Stream** out, unsigned flags) {
  return call("cudaStreamCreateWithFlags", [&](Runtime& r) { return make_stream(r, out, flags, 0); });
}
HANDOFF_API Error cudaStreamCreateWithPriority(Stream** out, unsigned flags, int priority) {
  return call("cudaStreamCreateWithPriority", [&](Runtime& r) { return make_stream(r, out, flags, priority); });
}
HANDOFF_API Error cudaStreamDestroy(Stream* stream) {
  return call("cudaStreamDestroy", [&](Runtime& r) -> Outcome {
    if (r.streams.erase(stream) == 0) return {kInvalidResourceHandle, "it is not a stream"};
    forget_stream(stream);
    for (const LaunchAttributeId attribute : kStreamAttributes) stream_attributes().erase({stream, attribute});
    delete stream;
    return {};
  });
}
HANDOFF_API Error cudaStreamSynchronize(Stream* stream) {
  return call("cudaStreamSynchronize", [&](Runtime& r) { return check_not_captured(r, stream); });
}
HANDOFF_API Error cudaStreamQuery(Stream* stream) {
  return call("cudaStreamQuery", [&](Runtime& r) { return check_not_captured(r, stream); });
}
HANDOFF_API Error cudaStreamWaitEvent(Stream* stream, Event* event, unsigned flags) {
  return call("cudaStreamWaitEvent", [&](Runtime& r) -> Outcome {
    if (flags > kExternal) return {kInvalidValue, fmt::format("flags {:#x}", flags)};
    return wait_event(r, stream, event, flags == kExternal);
  });
}
HANDOFF_API Error cudaStreamGetFlags(Stream* stream, unsigned* flags) {
  return call("cudaStreamGetFlags", [&](Runtime& r) {
    *flags = r.streams.count(stream) != 0 ? stream->flags : 0;
    return check_stream(r, stream);
  });
}
HANDOFF_API Error cudaStreamGetPriority(Stream* stream, int* priority) {
  return call("cudaStreamGetPriority", [&](Runtime& r) {
    *priority = r.streams.count(stream) != 0 ? stream->priority : 0;
    return check_stream(r, stream);
  });
}
HANDOFF_API Error cudaStreamGetId(Stream* stream, unsigned long long* id) {
  return call("cudaStreamGetId", [&](Runtime& r) {
    *id = r.streams.count(stream) != 0 ? stream->id : reinterpret_cast<uintptr_t>(stream);
    return check_stream(r, stream);
  });
}
HANDOFF_API Error cudaStreamGetDevice(Stream* stream, int* device) {
  return call("cudaStreamGetDevice", [&](Runtime& r) {
    *device = 0;
    return check_stream(r, stream);
  });
}
HANDOFF_API Error cudaStreamSetAttribute(Stream* stream, LaunchAttributeId attribute, const void* value) {
  return call("cudaStreamSetAttribute", [&](Runtime& r) {
    Outcome outcome = check_stream_attribute(r, stream, attribute);
    if (outcome.code == kSuccess) std::memcpy(stream_attributes()[{stream, attribute}].data(), value, kAttributeBytes);
    return outcome;
  });
}
HANDOFF_API Error cudaStreamGetAttribute(Stream* stream, LaunchAttributeId attribute, void* value) {
  return call("cudaStreamGetAttribute", [&](Runtime& r) {
    Outcome outcome = check_stream_attribute(r, stream, attribute);
    if (outcome.code == kSuccess) std::memcpy(value, stream_attributes()[{stream, attribute}].data(), kAttributeBytes);
    return outcome;
  });
}
HANDOFF_API Error cudaStreamCopyAttributes(Stream* to, Stream* from) {
  return call("cudaStreamCopyAttributes", [&](Runtime& r) {
    Outcome outcome = check_stream(r, to);
    if (outcome.code == kSuccess) outcome = check_stream(r, from);
    if (outcome.code != kSuccess) return outcome;
    for (const LaunchAttributeId attribute : kStreamAttributes) {
      stream_attributes()[{to, attribute}] = stream_attributes()[{from, attribute}];
    }
    return outcome;
  });
}

// --- events: modeled time of the launches before them ---

HANDOFF_API Error cudaEventCreateWithFlags(Event** out, unsigned flags) {
  return call("cudaEventCreate", [&](Runtime& r) -> Outcome {
    constexpr unsigned kKnown = 7;  // cudaEventBlockingSync, cudaEventDisableTiming, cudaEventInterprocess
    if (out == nullptr) return {kInvalidValue, "the event's address is null"};
    if ((flags & ~kKnown) != 0) return {kInvalidValue, fmt::format("flags {:#x}", flags)};
    *out = new Event{flags, false, 0};
    r.events.insert(*out);
    return {};
  });
}
HANDOFF_API Error cudaEventCreate(Event** out) { return cudaEventCreateWithFlags(out, 0); }
HANDOFF_API Error cudaEventDestroy(Event* event) {
  return call("cudaEventDestroy", [&](Runtime& r) -> Outcome {
    if (r.events.erase(event) == 0) return {kInvalidResourceHandle, "it is not an event"};
    forget_event(event);
    delete event;
    return {};
  });
}
HANDOFF_API Error cudaEventRecordWithFlags(Event* event, Stream* stream, unsigned flags) {
  return call("cudaEventRecord", [&](Runtime& r) -> Outcome {
    if (flags > kExternal) return {kInvalidValue, fmt::format("flags {:#x}", flags)};
    return record_event(r, event, stream, flags == kExternal);
  });
}
HANDOFF_API Error cudaEventRecord(Event* event, Stream* stream) { return cudaEventRecordWithFlags(event, stream, 0); }
HANDOFF_API Error cudaEventQuery(Event* event) {
  return call("cudaEventQuery", [&](Runtime& r) { return check_not_captured(r, event); });
}
HANDOFF_API Error cudaEventSynchronize(Event* event) {
  return call("cudaEventSynchronize", [&](Runtime& r) { return check_not_captured(r, event); });
}
HANDOFF_API Error cudaEventElapsedTime(float* ms, Event* from, Event* to) {
  return call("cudaEventElapsedTime", [&](Runtime& r) -> Outcome {
    if (r.events.count(from) == 0 || r.events.count(to) == 0) return {kInvalidResourceHandle, "it is not an event"};
    constexpr unsigned kDisableTiming = 2;
    if (((from->flags | to->flags) & kDisableTiming) != 0 || !from->recorded || !to->recorded) {
      return {kInvalidResourceHandle, "an event that was not recorded, or has no time"};
    }
    *ms = static_cast<float>(to->ms - from->ms);
    return {};
  });
}

// --- programs built with --default-stream per-thread ---

HANDOFF_API decltype(cudaStreamSynchronize) cudaStreamSynchronize_ptsz __attribute__((alias("cudaStreamSynchronize")));
HANDOFF_API decltype(cudaStreamQuery) cudaStreamQuery_ptsz __attribute__((alias("cudaStreamQuery")));
HANDOFF_API decltype(cudaStreamWaitEvent) cudaStreamWaitEvent_ptsz __attribute__((alias("cudaStreamWaitEvent")));
HANDOFF_API decltype(cudaStreamGetFlags) cudaStreamGetFlags_ptsz __attribute__((alias("cudaStreamGetFlags")));
HANDOFF_API decltype(cudaStreamGetPriority) cudaStreamGetPriority_ptsz __attribute__((alias("cudaStreamGetPriority")));
HANDOFF_API decltype(cudaStreamGetId) cudaStreamGetId_ptsz __attribute__((alias("cudaStreamGetId")));
HANDOFF_API decltype(cudaStreamGetDevice) cudaStreamGetDevice_ptsz __attribute__((alias("cudaStreamGetDevice")));
HANDOFF_API decltype(cudaStreamSetAttribute) cudaStreamSetAttribute_ptsz
    __attribute__((alias("cudaStreamSetAttribute")));
HANDOFF_API decltype(cudaStreamGetAttribute) cudaStreamGetAttribute_ptsz
    __attribute__((alias("cudaStreamGetAttribute")));
HANDOFF_API decltype(cudaStreamCopyAttributes) cudaStreamCopyAttributes_ptsz
    __attribute__((alias("cudaStreamCopyAttributes")));
HANDOFF_API decltype(cudaEventRecord) cudaEventRecord_ptsz __attribute__((alias("cudaEventRecord")));
HANDOFF_API decltype(cudaEventRecordWithFlags) cudaEventRecordWithFlags_ptsz
    __attribute__((alias("cudaEventRecordWithFlags")));
