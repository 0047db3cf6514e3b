// The device, errors, streams and events (CUDA runtime API, "Device Management", "Error Handling", "Stream Management",
// "Event Management").
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "grader/runtime/runtime.h"

namespace handoff::runtime {
namespace {

constexpr int kVersion = 13000;             // CUDA 13.0: the runtime that this library stands for
constexpr int kDriverVersion = 13020;       // as of a driver that is later than it, which runs all that it has
constexpr int kClockKhz = 1'960'000;        // timing.h
constexpr uint32_t kRegisters = 64 * 1024;  // of an SM and of a block, 32 bits each (compute capability 9.0 and 10.0)
constexpr uint32_t kSmemWithoutOptIn = 48 * 1024;  // bytes a block
constexpr uint32_t kReservedSmem = 1024;           // bytes a block

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
      {95, 1},                              // CooperativeLaunch
      {97, of(model.smem_per_cta)},         // MaxSharedMemoryPerBlockOptin
      {106, of(model.max_ctas_per_sm)},     // MaxBlocksPerMultiprocessor
      {111, of(kReservedSmem)},             // ReservedSharedMemoryPerBlock
      {115, 1},                             // MemoryPoolsSupported
      {120, 1},                             // ClusterLaunch
      {126, 1},                             // MemSyncDomainCount
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
  return call("cudaDeviceSynchronize", [](Runtime&) { return Outcome{}; });
}
HANDOFF_API Error cudaDeviceSetLimit(int, size_t) {
  // Stack, heap and printf buffers of the emulator are as large as they need to be.
  return call("cudaDeviceSetLimit", [](Runtime&) { return Outcome{}; });
}
HANDOFF_API Error cudaDeviceSetCacheConfig(int) {
  return call("cudaDeviceSetCacheConfig", [](Runtime&) { return Outcome{}; });
}
HANDOFF_API Error cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call("cudaDeviceGetStreamPriorityRange", [&](Runtime&) -> Outcome {
    *least = *greatest = 0;
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

/// 0, 1 and 2 are the default streams.
bool is_stream(Runtime& r, Stream* stream) {
  return reinterpret_cast<uintptr_t>(stream) <= 2 || r.streams.count(stream) != 0;
}
Outcome check_stream(Runtime& r, Stream* stream) {
  return is_stream(r, stream) ? Outcome{} : Outcome{kInvalidResourceHandle, "it is not a stream"};
}
Outcome check_event(Runtime& r, Event* event) {
  return r.events.count(event) != 0 ? Outcome{} : Outcome{kInvalidResourceHandle, "it is not an event"};
}
Outcome make_stream(Runtime& r, Stream** out, unsigned flags, int priority) {
  if (out == nullptr) return {kInvalidValue, "the stream's address is null"};
  constexpr unsigned kNonBlocking = 1;
  if ((flags & ~kNonBlocking) != 0) return {kInvalidValue, fmt::format("flags {:#x}", flags)};
  *out = new Stream{r.next_stream++, flags, priority};
  r.streams.insert(*out);
  return {};
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
    delete stream;
    return {};
  });
}
HANDOFF_API Error cudaStreamSynchronize(Stream* stream) {
  return call("cudaStreamSynchronize", [&](Runtime& r) { return check_stream(r, stream); });
}
HANDOFF_API Error cudaStreamQuery(Stream* stream) {
  return call("cudaStreamQuery", [&](Runtime& r) { return check_stream(r, stream); });
}
HANDOFF_API Error cudaStreamWaitEvent(Stream* stream, Event* event, unsigned) {
  return call("cudaStreamWaitEvent", [&](Runtime& r) {
    Outcome outcome = check_stream(r, stream);
    return outcome.code == kSuccess ? check_event(r, event) : outcome;
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
HANDOFF_API Error cudaStreamIsCapturing(Stream* stream, int* status) {
  return call("cudaStreamIsCapturing", [&](Runtime& r) {
    *status = 0;
    return check_stream(r, stream);
  });
}

// --- events: modeled time of the launches before them ---

HANDOFF_API Error cudaEventCreateWithFlags(Event** out, unsigned flags) {
  return call("cudaEventCreate", [&](Runtime& r) -> Outcome {
    if (out == nullptr) return {kInvalidValue, "the event's address is null"};
    *out = new Event{flags, false, 0};
    r.events.insert(*out);
    return {};
  });
}
HANDOFF_API Error cudaEventCreate(Event** out) { return cudaEventCreateWithFlags(out, 0); }
HANDOFF_API Error cudaEventDestroy(Event* event) {
  return call("cudaEventDestroy", [&](Runtime& r) -> Outcome {
    if (r.events.erase(event) == 0) return {kInvalidResourceHandle, "it is not an event"};
    delete event;
    return {};
  });
}
HANDOFF_API Error cudaEventRecord(Event* event, Stream* stream) {
  return call("cudaEventRecord", [&](Runtime& r) {
    Outcome outcome = check_event(r, event);
    if (outcome.code == kSuccess) outcome = check_stream(r, stream);
    if (outcome.code == kSuccess) {
      event->recorded = true;
      event->ms = r.modeled_ms();
    }
    return outcome;
  });
}
HANDOFF_API Error cudaEventRecordWithFlags(Event* event, Stream* stream, unsigned) {
  return cudaEventRecord(event, stream);
}
HANDOFF_API Error cudaEventQuery(Event* event) {
  return call("cudaEventQuery", [&](Runtime& r) { return check_event(r, event); });
}
HANDOFF_API Error cudaEventSynchronize(Event* event) {
  return call("cudaEventSynchronize", [&](Runtime& r) { return check_event(r, event); });
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
HANDOFF_API decltype(cudaStreamIsCapturing) cudaStreamIsCapturing_ptsz __attribute__((alias("cudaStreamIsCapturing")));
HANDOFF_API decltype(cudaEventRecord) cudaEventRecord_ptsz __attribute__((alias("cudaEventRecord")));
HANDOFF_API decltype(cudaEventRecordWithFlags) cudaEventRecordWithFlags_ptsz
    __attribute__((alias("cudaEventRecordWithFlags")));
