// Memory of the host, and memory of both sides (CUDA runtime API, "Memory Management", "Unified Addressing"; driver
// API, the same).
//
// Page-locked memory that the API allocated and memory of the program that it registered have one address for both
// sides. Advice about where managed memory should lie is taken, and has no effect.
#include <fmt/format.h>

#include <cstring>

#include "grader/runtime/driver.h"
#include "grader/runtime/graph.h"

namespace handoff::runtime {
namespace {

constexpr unsigned kPortable = 1, kMapped = 2, kWriteCombined = 4;  // cudaHostAlloc…
constexpr unsigned kIoMemory = 4, kReadOnly = 8;                    // cudaHostRegister…
constexpr unsigned kFirstAdvice = 1, kLastAdvice = 6;               // cudaMemoryAdvise

Outcome allocate_host(Runtime& r, void** out, uint64_t bytes, unsigned flags, const char* name) {
  if ((flags & ~(kPortable | kMapped | kWriteCombined)) != 0) return {kInvalidValue, fmt::format("flags {:#x}", flags)};
  Outcome outcome = allocate(r, out, bytes, MemoryType::Host, name);
  if (outcome.code == kSuccess) r.memory().set_flags(reinterpret_cast<uint64_t>(*out), flags);
  return outcome;
}

Outcome register_host(Runtime& r, void* p, size_t bytes, unsigned flags, const char* name) {
  if (p == nullptr || bytes == 0) return {kInvalidValue, "no memory"};
  if ((flags & ~(kPortable | kMapped | kIoMemory | kReadOnly)) != 0) {
    return {kInvalidValue, fmt::format("flags {:#x}", flags)};
  }
  if ((flags & (kIoMemory | kReadOnly)) != 0) return {kNotSupported, "memory of a device, or read-only"};
  Outcome outcome = check_no_capture(r);
  if (outcome.code != kSuccess) return outcome;
  const AllocationRecord* const a = r.memory().find(reinterpret_cast<uint64_t>(p));
  if (a != nullptr && a->origin != Origin::Registered) {
    return {kInvalidValue, r.memory().describe(reinterpret_cast<uint64_t>(p))};
  }
  if (r.memory().adopt(p, bytes, flags, name) == nullptr) {
    return {kHostMemoryAlreadyRegistered, r.memory().describe(reinterpret_cast<uint64_t>(p))};
  }
  return {};
}

Outcome unregister_host(Runtime& r, void* p) {
  Outcome outcome = check_no_capture(r);
  if (outcome.code != kSuccess) return outcome;
  const auto address = reinterpret_cast<uint64_t>(p);
  const AllocationRecord* const a = r.memory().find(address);
  if (p == nullptr) return {kInvalidValue, "a null pointer"};
  if (a == nullptr) return {kHostMemoryNotRegistered, r.memory().describe(address)};
  if (a->origin != Origin::Registered || a->base != address) return {kInvalidValue, r.memory().describe(address)};
  r.memory().free(address);
  return {};
}

Outcome device_pointer(Runtime& r, void** out, void* host, unsigned flags) {
  if (out == nullptr || flags != 0) return {kInvalidValue, "flags, or no place for the pointer"};
  const AllocationRecord* const a = r.memory().find(reinterpret_cast<uint64_t>(host));
  if (a == nullptr || a->type != MemoryType::Host) return {kInvalidValue, "it is not page-locked memory"};
  *out = host;
  return {};
}

Outcome flags_of(Runtime& r, unsigned* out, void* host) {
  const AllocationRecord* const a = r.memory().find(reinterpret_cast<uint64_t>(host));
  if (out == nullptr || a == nullptr || a->type != MemoryType::Host)
    return {kInvalidValue, "it is not page-locked memory"};
  // Where both sides have the same addresses, all such memory is mapped.
  *out = a->flags | kMapped;
  return {};
}

Outcome check_managed(Runtime& r, const void* p, size_t bytes) {
  const auto address = reinterpret_cast<uint64_t>(p);
  const AllocationRecord* const a = r.memory().find(address);
  if (a == nullptr || a->type != MemoryType::Managed || bytes == 0 || bytes > a->base + a->bytes - address) {
    return {kInvalidValue, fmt::format("{} bytes of managed memory: {}", bytes, r.memory().describe(address))};
  }
  return {};
}

Outcome check_location(const MemoryLocation& location) {
  if (location.type == LocationType::Device && location.id != 0) {
    return {kInvalidDevice, fmt::format("device {}; there is one, 0", location.id)};
  }
  const bool known = location.type >= LocationType::Device && location.type <= LocationType::HostNumaCurrent;
  return known ? Outcome{} : Outcome{kInvalidValue, "no such location"};
}

Outcome prefetch(Runtime& r, const void* p, size_t bytes, const MemoryLocation& location, unsigned flags,
                 Stream* stream) {
  if (flags != 0) return {kInvalidValue, fmt::format("flags {:#x}", flags)};
  Outcome outcome = check_managed(r, p, bytes);
  if (outcome.code == kSuccess) outcome = check_location(location);
  return outcome.code == kSuccess ? check_stream(r, stream) : outcome;
}

Outcome advise(Runtime& r, const void* p, size_t bytes, unsigned advice, const MemoryLocation& location) {
  if (advice < kFirstAdvice || advice > kLastAdvice) return {kInvalidValue, fmt::format("no advice {}", advice)};
  Outcome outcome = check_managed(r, p, bytes);
  constexpr unsigned kReadMostly = 1, kNotReadMostly = 2;  // these have no place
  return outcome.code != kSuccess || advice == kReadMostly || advice == kNotReadMostly ? outcome
                                                                                       : check_location(location);
}

}  // namespace
}  // namespace handoff::runtime

using namespace handoff::runtime;  // NOLINT: what follows is the C interface over it

HANDOFF_API Error cudaHostAlloc(void** out, size_t bytes, unsigned flags) {
  return call("cudaHostAlloc", [&](Runtime& r) { return allocate_host(r, out, bytes, flags, "cudaHostAlloc"); });
}
HANDOFF_API Error cudaHostRegister(void* p, size_t bytes, unsigned flags) {
  return call("cudaHostRegister", [&](Runtime& r) { return register_host(r, p, bytes, flags, "cudaHostRegister"); });
}
HANDOFF_API Error cudaHostUnregister(void* p) {
  return call("cudaHostUnregister", [&](Runtime& r) { return unregister_host(r, p); });
}
HANDOFF_API Error cudaHostGetDevicePointer(void** out, void* host, unsigned flags) {
  return call("cudaHostGetDevicePointer", [&](Runtime& r) { return device_pointer(r, out, host, flags); });
}
HANDOFF_API Error cudaHostGetFlags(unsigned* out, void* host) {
  return call("cudaHostGetFlags", [&](Runtime& r) { return flags_of(r, out, host); });
}
HANDOFF_API Error cudaMemPrefetchAsync(const void* p, size_t bytes, MemoryLocation location, unsigned flags,
                                       Stream* stream) {
  return call("cudaMemPrefetchAsync", [&](Runtime& r) { return prefetch(r, p, bytes, location, flags, stream); });
}
HANDOFF_API Error cudaMemAdvise(const void* p, size_t bytes, unsigned advice, MemoryLocation location) {
  return call("cudaMemAdvise", [&](Runtime& r) { return advise(r, p, bytes, advice, location); });
}
HANDOFF_API Error cudaStreamAttachMemAsync(Stream* stream, void* p, size_t bytes, unsigned flags) {
  return call("cudaStreamAttachMemAsync", [&](Runtime& r) -> Outcome {
    if (flags != 1 && flags != 2 && flags != 4) return {kInvalidValue, fmt::format("flags {:#x}", flags)};
    Outcome outcome = check_managed(r, p, bytes == 0 ? 1 : bytes);
    return outcome.code == kSuccess ? check_stream(r, stream) : outcome;
  });
}

// --- the driver's ---

HANDOFF_API Result cuMemHostAlloc(void** out, size_t bytes, unsigned flags) {
  return driver_call("cuMemHostAlloc", [&](Runtime& r) {
    return bytes == 0 ? Outcome{kInvalidValue, "0 bytes"} : allocate_host(r, out, bytes, flags, "cuMemHostAlloc");
  });
}
HANDOFF_API Result cuMemAllocHost_v2(void** out, size_t bytes) { return cuMemHostAlloc(out, bytes, 0); }
HANDOFF_API Result cuMemHostRegister_v2(void* p, size_t bytes, unsigned flags) {
  return driver_call("cuMemHostRegister",
                     [&](Runtime& r) { return register_host(r, p, bytes, flags, "cuMemHostRegister"); });
}
HANDOFF_API Result cuMemHostUnregister(void* p) {
  return driver_call("cuMemHostUnregister", [&](Runtime& r) { return unregister_host(r, p); });
}
HANDOFF_API Result cuMemHostGetDevicePointer_v2(Address* out, void* host, unsigned flags) {
  return driver_call("cuMemHostGetDevicePointer",
                     [&](Runtime& r) { return device_pointer(r, reinterpret_cast<void**>(out), host, flags); });
}
HANDOFF_API Result cuMemHostGetFlags(unsigned* out, void* host) {
  return driver_call("cuMemHostGetFlags", [&](Runtime& r) { return flags_of(r, out, host); });
}
HANDOFF_API Result cuMemPrefetchAsync_v2(Address p, size_t bytes, MemoryLocation location, unsigned flags,
                                         Stream* stream) {
  return driver_call("cuMemPrefetchAsync",
                     [&](Runtime& r) { return prefetch(r, pointer(p), bytes, location, flags, stream); });
}
HANDOFF_API Result cuMemAdvise_v2(Address p, size_t bytes, unsigned advice, MemoryLocation location) {
  return driver_call("cuMemAdvise", [&](Runtime& r) { return advise(r, pointer(p), bytes, advice, location); });
}
HANDOFF_API Result cuMemGetAddressRange_v2(Address* base, size_t* bytes, Address p) {
  return driver_call("cuMemGetAddressRange", [&](Runtime& r) -> Outcome {
    const AllocationRecord* const a = r.memory().find(p);
    if (a == nullptr) return {kSymbolNotFound, r.memory().describe(p)};
    if (base != nullptr) *base = a->base;
    if (bytes != nullptr) *bytes = a->bytes;
    return {};
  });
}

namespace {

/// CUpointer_attribute: those that the library has.
enum class PointerAttribute : int {
  Context = 1,
  MemoryType = 2,
  DevicePointer = 3,
  HostPointer = 4,
  BufferId = 7,
  IsManaged = 8,
  DeviceOrdinal = 9,
  RangeStart = 11,
  RangeSize = 12,
  Mapped = 13,
};

/// Bytes of a value.
size_t width_of(PointerAttribute which) {
  switch (which) {
    case PointerAttribute::MemoryType:
    case PointerAttribute::IsManaged:
    case PointerAttribute::DeviceOrdinal:
    case PointerAttribute::Mapped:
      return 4;
    default:
      return 8;
  }
}

template <class Value>
Outcome put(void* out, Value value) {
  std::memcpy(out, &value, sizeof value);
  return {};
}

Outcome pointer_attribute(Runtime& r, void* out, PointerAttribute which, Address p) {
  const AllocationRecord* const a = r.memory().find(p);
  if (out == nullptr || a == nullptr) return {kInvalidValue, r.memory().describe(p)};
  const bool managed = a->type == MemoryType::Managed, host = a->type == MemoryType::Host;
  switch (which) {
    case PointerAttribute::Context:
      return put(out, the_context());
    case PointerAttribute::MemoryType:
      return put(out, static_cast<int>(host ? DriverMemoryType::Host : DriverMemoryType::Device));
    case PointerAttribute::DevicePointer:
      return put(out, p);
    case PointerAttribute::HostPointer:
      return managed || host ? put(out, p) : Outcome{kInvalidValue, "the host cannot reach it"};
    case PointerAttribute::BufferId:
      return put(out, static_cast<unsigned long long>(a->base));
    case PointerAttribute::IsManaged:
      return put(out, static_cast<unsigned>(managed ? 1 : 0));
    case PointerAttribute::DeviceOrdinal:
      return put(out, 0);
    case PointerAttribute::RangeStart:
      return put(out, a->base);
    case PointerAttribute::RangeSize:
      return put(out, static_cast<size_t>(a->bytes));
    case PointerAttribute::Mapped:
      return put(out, 1);
  }
  return {kNotSupported, fmt::format("pointer attribute {}", static_cast<int>(which))};
}

}  // namespace

HANDOFF_API Result cuPointerGetAttribute(void* out, PointerAttribute which, Address p) {
  return driver_call("cuPointerGetAttribute", [&](Runtime& r) { return pointer_attribute(r, out, which, p); });
}
HANDOFF_API Result cuPointerGetAttributes(unsigned count, PointerAttribute* which, void** out, Address p) {
  return driver_call("cuPointerGetAttributes", [&](Runtime& r) -> Outcome {
    // An address that is in no allocation has all of its attributes zero, and is no error here.
    const bool known = r.memory().find(p) != nullptr;
    for (unsigned i = 0; i < count; ++i) {
      Outcome outcome = known ? pointer_attribute(r, out[i], which[i], p) : Outcome{kInvalidValue, {}};
      if (outcome.code == kNotSupported) return outcome;
      if (outcome.code != kSuccess) std::memset(out[i], 0, width_of(which[i]));
    }
    return {};
  });
}

// --- programs built with --default-stream per-thread ---

HANDOFF_API decltype(cudaMemPrefetchAsync) cudaMemPrefetchAsync_ptsz __attribute__((alias("cudaMemPrefetchAsync")));
HANDOFF_API decltype(cudaStreamAttachMemAsync) cudaStreamAttachMemAsync_ptsz
    __attribute__((alias("cudaStreamAttachMemAsync")));
