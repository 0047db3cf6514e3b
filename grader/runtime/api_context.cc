// Devices, contexts, streams and events of the driver API (CUDA driver API, "Device Management", "Primary Context
// Management", "Context Management", "Stream Management", "Event Management").
//
// All contexts are of the one device and share what it has; a thread that has none current uses the primary one.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include "grader/runtime/capture.h"
#include "grader/runtime/driver.h"
#include "grader/runtime/graph.h"

namespace handoff::runtime {
namespace {

/// CUcontext.
struct Context {
  unsigned long long id;
  unsigned flags;
};

struct Contexts {
  Context primary{1, 0};
  unsigned retained = 0;    // of the primary one
  std::set<Context*> made;  // by cuCtxCreate
  unsigned long long next_id = 2;
};
Contexts& contexts() {
  static auto* const kContexts = new Contexts;
  return *kContexts;
}

std::vector<Context*>& stack() {
  thread_local std::vector<Context*> contexts;
  return contexts;
}

bool is_context(Context* c) { return c == &contexts().primary || contexts().made.count(c) != 0; }
Context* current() { return stack().empty() ? &contexts().primary : stack().back(); }
Outcome check_context(Context* c) {
  return is_context(c) ? Outcome{} : Outcome{kInvalidContext, "it is not a context"};
}
Outcome check_device(int device) {
  return device == 0 ? Outcome{} : Outcome{kInvalidDevice, fmt::format("device {}; there is one, 0", device)};
}

/// CUdevprop.
struct DriverProperties {
  int max_threads_per_block, max_threads[3], max_grid[3], smem_per_block, constant_memory, simd_width, pitch;
  int registers_per_block, clock_khz, texture_alignment;
};

/// A call that answers with a value of the device.
template <class Body>
Result device_call(const char* name, int device, const Body& body) {
  return driver_call(name, [&](Runtime& r) {
    Outcome outcome = check_device(device);
    return outcome.code == kSuccess ? body(r) : outcome;
  });
}

}  // namespace

void* the_context() { return current(); }

}  // namespace handoff::runtime

using namespace handoff::runtime;  // NOLINT: what follows is the C interface over it

// The runtime's, which do the same.
HANDOFF_API Error cudaDeviceReset();
HANDOFF_API Error cudaDeviceSetLimit(int limit, size_t value);
HANDOFF_API Error cudaDeviceGetLimit(size_t* value, int limit);
HANDOFF_API Error cudaDeviceGetStreamPriorityRange(int* least, int* greatest);
HANDOFF_API Error cudaDeviceGetPCIBusId(char* text, int length, int device);
HANDOFF_API Error cudaDeviceGetByPCIBusId(int* device, const char* text);
HANDOFF_API Error cudaLaunchHostFunc(Stream* stream, void (*function)(void*), void* data);
HANDOFF_API Error cudaStreamAddCallback(Stream* stream, void (*function)(Stream*, Error, void*), void* data,
                                        unsigned flags);
HANDOFF_API Error cudaStreamCreateWithFlags(Stream** out, unsigned flags);
HANDOFF_API Error cudaStreamCreateWithPriority(Stream** out, unsigned flags, int priority);
HANDOFF_API Error cudaStreamDestroy(Stream* stream);
HANDOFF_API Error cudaStreamSynchronize(Stream* stream);
HANDOFF_API Error cudaStreamQuery(Stream* stream);
HANDOFF_API Error cudaStreamWaitEvent(Stream* stream, Event* event, unsigned flags);
HANDOFF_API Error cudaStreamGetFlags(Stream* stream, unsigned* flags);
HANDOFF_API Error cudaStreamGetPriority(Stream* stream, int* priority);
HANDOFF_API Error cudaStreamGetId(Stream* stream, unsigned long long* id);
HANDOFF_API Error cudaStreamGetDevice(Stream* stream, int* device);
HANDOFF_API Error cudaStreamSetAttribute(Stream* stream, LaunchAttributeId attribute, const void* value);
HANDOFF_API Error cudaStreamGetAttribute(Stream* stream, LaunchAttributeId attribute, void* value);
HANDOFF_API Error cudaStreamCopyAttributes(Stream* to, Stream* from);
HANDOFF_API Error cudaEventCreateWithFlags(Event** out, unsigned flags);
HANDOFF_API Error cudaEventDestroy(Event* event);
HANDOFF_API Error cudaEventRecordWithFlags(Event* event, Stream* stream, unsigned flags);
HANDOFF_API Error cudaEventQuery(Event* event);
HANDOFF_API Error cudaEventSynchronize(Event* event);
HANDOFF_API Error cudaEventElapsedTime(float* ms, Event* from, Event* to);

// --- devices ---

HANDOFF_API Result cuDeviceGetCount(int* count) {
  *count = 1;
  return kSuccess;
}
HANDOFF_API Result cuDeviceGet(int* device, int ordinal) {
  return device_call("cuDeviceGet", ordinal, [&](Runtime&) -> Outcome {
    *device = 0;
    return {};
  });
}
HANDOFF_API Result cuDeviceGetName(char* name, int length, int device) {
  return device_call("cuDeviceGetName", device, [&](Runtime& r) -> Outcome {
    if (length <= 0) return {kInvalidValue, "no room for a name"};
    const std::string text = fmt::format("NVIDIA {} (emulated)", r.model().name);
    const size_t n = std::min(text.size(), static_cast<size_t>(length) - 1);
    std::memcpy(name, text.data(), n);
    name[n] = '\0';
    return {};
  });
}
HANDOFF_API Result cuDeviceGetAttribute(int* value, int attribute, int device) {
  return device_call("cuDeviceGetAttribute", device, [&](Runtime& r) -> Outcome {
    if (!device_attribute(r.model(), attribute, value)) {
      return {kInvalidValue, fmt::format("no attribute {}", attribute)};
    }
    return {};
  });
}
HANDOFF_API Result cuDeviceTotalMem_v2(size_t* bytes, int device) {
  return device_call("cuDeviceTotalMem", device, [&](Runtime& r) -> Outcome {
    *bytes = total_memory(r.model());
    return {};
  });
}
HANDOFF_API Result cuDeviceComputeCapability(int* major, int* minor, int device) {
  return device_call("cuDeviceComputeCapability", device, [&](Runtime& r) -> Outcome {
    *major = r.model().compute_capability / 10;
    *minor = r.model().compute_capability % 10;
    return {};
  });
}
HANDOFF_API Result cuDeviceGetProperties(DriverProperties* out, int device) {
  return device_call("cuDeviceGetProperties", device, [&](Runtime& r) -> Outcome {
    const auto value = [&](int attribute) {
      int v = 0;
      device_attribute(r.model(), attribute, &v);
      return v;
    };
    *out = {value(1),
            {value(2), value(3), value(4)},
            {value(5), value(6), value(7)},
            value(8),
            value(9),
            value(10),
            value(11),
            value(12),
            value(13),
            value(14)};
    return {};
  });
}
HANDOFF_API Result cuDeviceGetUuid_v2(char* uuid, int device) {
  return device_call("cuDeviceGetUuid", device, [&](Runtime&) -> Outcome {
    constexpr size_t kBytes = 16;
    std::memset(uuid, 0, kBytes);  // as the device's properties have it
    return {};
  });
}
HANDOFF_API Result cuDeviceGetPCIBusId(char* text, int length, int device) {
  return without_last_error([&] { return cudaDeviceGetPCIBusId(text, length, device); });
}
HANDOFF_API Result cuDeviceGetByPCIBusId(int* device, const char* text) {
  return without_last_error([&] { return cudaDeviceGetByPCIBusId(device, text); });
}
HANDOFF_API Result cuDeviceCanAccessPeer(int* can, int device, int peer) {
  return device_call("cuDeviceCanAccessPeer", device, [&](Runtime&) {
    *can = 0;
    return check_device(peer);
  });
}

// --- the primary context ---

HANDOFF_API Result cuDevicePrimaryCtxRetain(Context** out, int device) {
  return device_call("cuDevicePrimaryCtxRetain", device, [&](Runtime&) -> Outcome {
    if (out == nullptr) return {kInvalidValue, "the context's address is null"};
    ++contexts().retained;
    *out = &contexts().primary;
    return {};
  });
}
HANDOFF_API Result cuDevicePrimaryCtxRelease_v2(int device) {
  return device_call("cuDevicePrimaryCtxRelease", device, [&](Runtime&) -> Outcome {
    if (contexts().retained == 0) return {kInvalidContext, "it is released as often as it was retained"};
    --contexts().retained;
    return {};
  });
}
HANDOFF_API Result cuDevicePrimaryCtxReset_v2(int device) {
  const Result result = device_call("cuDevicePrimaryCtxReset", device, [](Runtime&) { return Outcome{}; });
  return result == kSuccess ? without_last_error([] { return cudaDeviceReset(); }) : result;
}
HANDOFF_API Result cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  return device_call("cuDevicePrimaryCtxGetState", device, [&](Runtime&) -> Outcome {
    *flags = contexts().primary.flags;
    *active = contexts().retained > 0 ? 1 : 0;
    return {};
  });
}
HANDOFF_API Result cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags) {
  return device_call("cuDevicePrimaryCtxSetFlags", device, [&](Runtime&) -> Outcome {
    contexts().primary.flags = flags;
    return {};
  });
}

// --- contexts ---

HANDOFF_API Result cuCtxCreate_v4(Context** out, void*, unsigned flags, int device) {
  return device_call("cuCtxCreate", device, [&](Runtime&) -> Outcome {
    if (out == nullptr) return {kInvalidValue, "the context's address is null"};
    *out = new Context{contexts().next_id++, flags};
    contexts().made.insert(*out);
    stack().push_back(*out);
    return {};
  });
}
HANDOFF_API Result cuCtxCreate_v2(Context** out, unsigned flags, int device) {
  return cuCtxCreate_v4(out, nullptr, flags, device);
}
HANDOFF_API Result cuCtxDestroy_v2(Context* c) {
  return driver_call("cuCtxDestroy", [&](Runtime&) -> Outcome {
    if (contexts().made.erase(c) == 0) return {kInvalidContext, "it is not a context of cuCtxCreate"};
    if (!stack().empty() && stack().back() == c) stack().pop_back();
    delete c;
    return {};
  });
}
HANDOFF_API Result cuCtxGetCurrent(Context** out) {
  return driver_call("cuCtxGetCurrent", [&](Runtime&) -> Outcome {
    *out = current();
    return {};
  });
}
HANDOFF_API Result cuCtxSetCurrent(Context* c) {
  return driver_call("cuCtxSetCurrent", [&](Runtime&) {
    Outcome outcome = c == nullptr ? Outcome{} : check_context(c);
    if (outcome.code != kSuccess) return outcome;
    if (!stack().empty()) stack().pop_back();
    if (c != nullptr) stack().push_back(c);
    return outcome;
  });
}
HANDOFF_API Result cuCtxPushCurrent_v2(Context* c) {
  return driver_call("cuCtxPushCurrent", [&](Runtime&) {
    Outcome outcome = check_context(c);
    if (outcome.code == kSuccess) stack().push_back(c);
    return outcome;
  });
}
HANDOFF_API Result cuCtxPopCurrent_v2(Context** out) {
  return driver_call("cuCtxPopCurrent", [&](Runtime&) -> Outcome {
    if (stack().empty()) return {kInvalidContext, "none is current"};
    if (out != nullptr) *out = stack().back();
    stack().pop_back();
    return {};
  });
}
HANDOFF_API Result cuCtxGetDevice(int* device) {
  *device = 0;
  return kSuccess;
}
HANDOFF_API Result cuCtxGetFlags(unsigned* flags) {
  return driver_call("cuCtxGetFlags", [&](Runtime&) -> Outcome {
    *flags = current()->flags;
    return {};
  });
}
HANDOFF_API Result cuCtxSetFlags(unsigned flags) {
  return driver_call("cuCtxSetFlags", [&](Runtime&) -> Outcome {
    current()->flags = flags;
    return {};
  });
}
HANDOFF_API Result cuCtxGetId(Context* c, unsigned long long* id) {
  return driver_call("cuCtxGetId", [&](Runtime&) {
    Context* const which = c == nullptr ? current() : c;
    Outcome outcome = check_context(which);
    if (outcome.code == kSuccess) *id = which->id;
    return outcome;
  });
}
HANDOFF_API Result cuCtxGetApiVersion(Context* c, unsigned* version) {
  return driver_call("cuCtxGetApiVersion", [&](Runtime&) {
    constexpr unsigned kApi = 3020;  // of contexts, since CUDA 3.2
    Outcome outcome = check_context(c == nullptr ? current() : c);
    if (outcome.code == kSuccess) *version = kApi;
    return outcome;
  });
}
HANDOFF_API Result cuCtxSynchronize() {
  return driver_call("cuCtxSynchronize", [](Runtime& r) { return check_no_capture(r); });
}
HANDOFF_API Result cuCtxSetLimit(int limit, size_t value) {
  return without_last_error([&] { return cudaDeviceSetLimit(limit, value); });
}
HANDOFF_API Result cuCtxGetLimit(size_t* value, int limit) {
  return without_last_error([&] { return cudaDeviceGetLimit(value, limit); });
}
HANDOFF_API Result cuCtxGetCacheConfig(int* config) {
  constexpr int kNoPreference = 0;
  *config = kNoPreference;
  return kSuccess;
}
HANDOFF_API Result cuCtxSetCacheConfig(int) { return kSuccess; }
HANDOFF_API Result cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return without_last_error([&] { return cudaDeviceGetStreamPriorityRange(least, greatest); });
}
HANDOFF_API Result cuCtxResetPersistingL2Cache() { return kSuccess; }
HANDOFF_API Result cuProfilerStart() { return kSuccess; }
HANDOFF_API Result cuProfilerStop() { return kSuccess; }

// --- streams and events ---

HANDOFF_API Result cuStreamCreate(Stream** out, unsigned flags) {
  return without_last_error([&] { return cudaStreamCreateWithFlags(out, flags); });
}
HANDOFF_API Result cuStreamCreateWithPriority(Stream** out, unsigned flags, int priority) {
  return without_last_error([&] { return cudaStreamCreateWithPriority(out, flags, priority); });
}
HANDOFF_API Result cuStreamDestroy_v2(Stream* stream) {
  return without_last_error([&] { return cudaStreamDestroy(stream); });
}
HANDOFF_API Result cuStreamSynchronize(Stream* stream) {
  return without_last_error([&] { return cudaStreamSynchronize(stream); });
}
HANDOFF_API Result cuStreamQuery(Stream* stream) {
  return without_last_error([&] { return cudaStreamQuery(stream); });
}
HANDOFF_API Result cuStreamWaitEvent(Stream* stream, Event* event, unsigned flags) {
  return without_last_error([&] { return cudaStreamWaitEvent(stream, event, flags); });
}
HANDOFF_API Result cuStreamGetFlags(Stream* stream, unsigned* flags) {
  return without_last_error([&] { return cudaStreamGetFlags(stream, flags); });
}
HANDOFF_API Result cuStreamGetPriority(Stream* stream, int* priority) {
  return without_last_error([&] { return cudaStreamGetPriority(stream, priority); });
}
HANDOFF_API Result cuStreamGetId(Stream* stream, unsigned long long* id) {
  return without_last_error([&] { return cudaStreamGetId(stream, id); });
}
HANDOFF_API Result cuStreamGetDevice(Stream* stream, int* device) {
  return without_last_error([&] { return cudaStreamGetDevice(stream, device); });
}
HANDOFF_API Result cuStreamGetCtx(Stream* stream, Context** out) {
  return driver_call("cuStreamGetCtx", [&](Runtime& r) {
    Outcome outcome = check_stream(r, stream);
    if (outcome.code == kSuccess) *out = current();
    return outcome;
  });
}
HANDOFF_API Result cuStreamSetAttribute(Stream* stream, LaunchAttributeId attribute, const void* value) {
  return without_last_error([&] { return cudaStreamSetAttribute(stream, attribute, value); });
}
HANDOFF_API Result cuStreamGetAttribute(Stream* stream, LaunchAttributeId attribute, void* value) {
  return without_last_error([&] { return cudaStreamGetAttribute(stream, attribute, value); });
}
HANDOFF_API Result cuStreamCopyAttributes(Stream* to, Stream* from) {
  return without_last_error([&] { return cudaStreamCopyAttributes(to, from); });
}
HANDOFF_API Result cuLaunchHostFunc(Stream* stream, void (*function)(void*), void* data) {
  return without_last_error([&] { return cudaLaunchHostFunc(stream, function, data); });
}
HANDOFF_API Result cuStreamAddCallback(Stream* stream, void (*function)(Stream*, Error, void*), void* data,
                                       unsigned flags) {
  return without_last_error([&] { return cudaStreamAddCallback(stream, function, data, flags); });
}
HANDOFF_API Result cuEventCreate(Event** out, unsigned flags) {
  return without_last_error([&] { return cudaEventCreateWithFlags(out, flags); });
}
HANDOFF_API Result cuEventDestroy_v2(Event* event) {
  return without_last_error([&] { return cudaEventDestroy(event); });
}
HANDOFF_API Result cuEventRecordWithFlags(Event* event, Stream* stream, unsigned flags) {
  return without_last_error([&] { return cudaEventRecordWithFlags(event, stream, flags); });
}
HANDOFF_API Result cuEventRecord(Event* event, Stream* stream) { return cuEventRecordWithFlags(event, stream, 0); }
HANDOFF_API Result cuEventQuery(Event* event) {
  return without_last_error([&] { return cudaEventQuery(event); });
}
HANDOFF_API Result cuEventSynchronize(Event* event) {
  return without_last_error([&] { return cudaEventSynchronize(event); });
}
HANDOFF_API Result cuEventElapsedTime_v2(float* ms, Event* from, Event* to) {
  return without_last_error([&] { return cudaEventElapsedTime(ms, from, to); });
}
