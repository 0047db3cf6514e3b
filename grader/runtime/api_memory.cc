// Memory (CUDA runtime API, "Memory Management", "Stream Ordered Memory Allocator", "Unified Addressing").
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "grader/runtime/runtime.h"

namespace handoff::runtime {
namespace {

constexpr size_t kPitch = 512;  // bytes to which rows of cudaMallocPitch are rounded up

/// The host's bytes for either end of a copy. A device address must lie in live memory; another one is the host's own.
Outcome resolve(Runtime& r, const void* p, uint64_t bytes, bool on_device, const char* which, std::byte** out) {
  const auto address = reinterpret_cast<uint64_t>(p);
  if (!on_device) {
    *out = static_cast<std::byte*>(const_cast<void*>(p));
    return {};
  }
  *out = r.memory().host(address, bytes);
  if (*out != nullptr) return {};
  return {kInvalidValue, fmt::format("{} bytes at the {}: {}", bytes, which, r.memory().describe(address))};
}

/// Does the direction say that this end is the device's?
bool on_device(Runtime& r, const void* p, MemcpyKind kind, bool destination) {
  switch (kind) {
    case MemcpyKind::HostToHost:
      return false;
    case MemcpyKind::HostToDevice:
      return destination;
    case MemcpyKind::DeviceToHost:
      return !destination;
    case MemcpyKind::DeviceToDevice:
      return true;
    case MemcpyKind::Default:
      break;
  }
  return r.memory().is_device(reinterpret_cast<uint64_t>(p));
}

Outcome copy_rows(Runtime& r, void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                  size_t height, MemcpyKind kind) {
  if (width > to_pitch || width > from_pitch) {
    return {kInvalidPitchValue, fmt::format("rows of {} bytes, pitches {} and {}", width, to_pitch, from_pitch)};
  }
  for (size_t row = 0; row < height; ++row) {
    Outcome outcome = copy(r, static_cast<std::byte*>(to) + row * to_pitch,
                           static_cast<const std::byte*>(from) + row * from_pitch, width, kind);
    if (outcome.code != kSuccess) return outcome;
  }
  return {};
}

Outcome fill_rows(Runtime& r, void* to, size_t pitch, int value, size_t width, size_t height) {
  if (width > pitch) return {kInvalidValue, fmt::format("rows of {} bytes, a pitch of {}", width, pitch)};
  for (size_t row = 0; row < height; ++row) {
    Outcome outcome = fill(r, reinterpret_cast<uint64_t>(to) + row * pitch, static_cast<uint8_t>(value), width, 1);
    if (outcome.code != kSuccess) return outcome;
  }
  return {};
}

/// Copies to or from a registered variable.
Outcome copy_symbol(Runtime& r, const void* symbol, void* other, size_t count, size_t offset, MemcpyKind kind,
                    bool to_symbol) {
  machine::LoadedModule::Symbol place;
  Outcome found = r.find_variable(symbol, &place);
  if (found.code != kSuccess) return found;
  if (offset > place.size || count > place.size - offset) {
    return {kInvalidValue, fmt::format("bytes {} to {} of a variable of {} bytes", offset, offset + count, place.size)};
  }
  if (kind == (to_symbol ? MemcpyKind::DeviceToHost : MemcpyKind::HostToDevice) || kind == MemcpyKind::HostToHost) {
    return {kInvalidMemcpyDirection, "the variable is the device's"};
  }
  void* const at = reinterpret_cast<void*>(place.address + offset);
  return to_symbol ? copy(r, at, other, count, kind) : copy(r, other, at, count, kind);
}

}  // namespace

Outcome allocate(Runtime& r, void** out, uint64_t bytes, MemoryType type, const char* name) {
  if (out == nullptr) return {kInvalidValue, "the pointer's address is null"};
  if (bytes == 0 && type != MemoryType::Device) return {kInvalidValue, "0 bytes"};
  *out = nullptr;
  if (bytes == 0) return {};
  const uint64_t total = total_memory(r.model()), used = r.memory().global().bytes_in_use();
  const AllocationRecord* const a =
      bytes > total - std::min(used, total) ? nullptr : r.memory().allocate(bytes, type, name);
  if (a == nullptr) {
    return {kMemoryAllocation, fmt::format("{} bytes, where {} of {} are in use", bytes, used, total)};
  }
  *out = reinterpret_cast<void*>(a->base);
  return {};
}

Outcome release(Runtime& r, void* p, bool host) {
  if (p == nullptr) return {};
  const auto address = reinterpret_cast<uint64_t>(p);
  const AllocationRecord* const a = r.memory().find(address);
  if (a == nullptr || a->base != address) return {kInvalidValue, r.memory().describe(address)};
  if ((a->type == MemoryType::Host) != host) {
    return {kInvalidValue, fmt::format("`{}` is to be freed with {}", a->name, host ? "cudaFree" : "cudaFreeHost")};
  }
  r.memory().free(address);
  return {};
}

Outcome copy(Runtime& r, void* to, const void* from, uint64_t bytes, MemcpyKind kind) {
  if (kind < MemcpyKind::HostToHost || kind > MemcpyKind::Default) {
    return {kInvalidMemcpyDirection, fmt::format("no direction {}", static_cast<int>(kind))};
  }
  if (bytes == 0) return {};
  std::byte *destination = nullptr, *source = nullptr;
  Outcome outcome = resolve(r, to, bytes, on_device(r, to, kind, true), "destination", &destination);
  if (outcome.code == kSuccess) outcome = resolve(r, from, bytes, on_device(r, from, kind, false), "source", &source);
  if (outcome.code == kSuccess) std::memmove(destination, source, bytes);
  return outcome;
}

Outcome fill(Runtime& r, uint64_t to, uint32_t value, uint64_t count, uint32_t element_bytes) {
  if (count == 0) return {};
  if (to % element_bytes != 0) return {kInvalidValue, fmt::format("{:#x} is not a multiple of {}", to, element_bytes)};
  std::byte* const bytes = r.memory().host(to, count * element_bytes);
  if (bytes == nullptr) {
    return {kInvalidValue,
            fmt::format("{} bytes at the destination: {}", count * element_bytes, r.memory().describe(to))};
  }
  for (uint64_t i = 0; i < count; ++i) std::memcpy(bytes + i * element_bytes, &value, element_bytes);
  return {};
}

}  // namespace handoff::runtime

using namespace handoff::runtime;  // NOLINT: what follows is the C interface over it

HANDOFF_API Error cudaMalloc(void** out, size_t bytes) {
  return call("cudaMalloc", [&](Runtime& r) { return allocate(r, out, bytes, MemoryType::Device, "cudaMalloc"); });
}
HANDOFF_API Error cudaMallocAsync(void** out, size_t bytes, Stream*) {
  return call("cudaMallocAsync",
              [&](Runtime& r) { return allocate(r, out, bytes, MemoryType::Device, "cudaMallocAsync"); });
}
HANDOFF_API Error cudaMallocPitch(void** out, size_t* pitch, size_t width, size_t height) {
  return call("cudaMallocPitch", [&](Runtime& r) {
    *pitch = (width + kPitch - 1) / kPitch * kPitch;
    return allocate(r, out, *pitch * height, MemoryType::Device, "cudaMallocPitch");
  });
}
HANDOFF_API Error cudaMallocManaged(void** out, size_t bytes, unsigned) {
  return call("cudaMallocManaged",
              [&](Runtime& r) { return allocate(r, out, bytes, MemoryType::Managed, "cudaMallocManaged"); });
}
HANDOFF_API Error cudaMallocHost(void** out, size_t bytes) {
  return call("cudaMallocHost",
              [&](Runtime& r) { return allocate(r, out, bytes, MemoryType::Host, "cudaMallocHost"); });
}
HANDOFF_API Error cudaHostAlloc(void** out, size_t bytes, unsigned) {
  return call("cudaHostAlloc", [&](Runtime& r) { return allocate(r, out, bytes, MemoryType::Host, "cudaHostAlloc"); });
}
HANDOFF_API Error cudaFree(void* p) {
  return call("cudaFree", [&](Runtime& r) { return release(r, p, false); });
}
HANDOFF_API Error cudaFreeAsync(void* p, Stream*) {
  return call("cudaFreeAsync", [&](Runtime& r) -> Outcome {
    return p == nullptr ? Outcome{kInvalidValue, "a null pointer"} : release(r, p, false);
  });
}
HANDOFF_API Error cudaFreeHost(void* p) {
  return call("cudaFreeHost", [&](Runtime& r) { return release(r, p, true); });
}

HANDOFF_API Error cudaMemcpy(void* to, const void* from, size_t bytes, MemcpyKind kind) {
  return call("cudaMemcpy", [&](Runtime& r) { return copy(r, to, from, bytes, kind); });
}
HANDOFF_API Error cudaMemcpyAsync(void* to, const void* from, size_t bytes, MemcpyKind kind, Stream*) {
  return call("cudaMemcpyAsync", [&](Runtime& r) { return copy(r, to, from, bytes, kind); });
}
HANDOFF_API Error cudaMemcpyPeer(void* to, int, const void* from, int, size_t bytes) {
  return call("cudaMemcpyPeer", [&](Runtime& r) { return copy(r, to, from, bytes, MemcpyKind::DeviceToDevice); });
}
HANDOFF_API Error cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                               size_t height, MemcpyKind kind) {
  return call("cudaMemcpy2D",
              [&](Runtime& r) { return copy_rows(r, to, to_pitch, from, from_pitch, width, height, kind); });
}
HANDOFF_API Error cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                    size_t height, MemcpyKind kind, Stream*) {
  return call("cudaMemcpy2DAsync",
              [&](Runtime& r) { return copy_rows(r, to, to_pitch, from, from_pitch, width, height, kind); });
}
HANDOFF_API Error cudaMemset(void* to, int value, size_t bytes) {
  return call("cudaMemset", [&](Runtime& r) {
    return fill(r, reinterpret_cast<uint64_t>(to), static_cast<uint8_t>(value), bytes, 1);
  });
}
HANDOFF_API Error cudaMemsetAsync(void* to, int value, size_t bytes, Stream*) {
  return call("cudaMemsetAsync", [&](Runtime& r) {
    return fill(r, reinterpret_cast<uint64_t>(to), static_cast<uint8_t>(value), bytes, 1);
  });
}
HANDOFF_API Error cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  return call("cudaMemset2D", [&](Runtime& r) { return fill_rows(r, to, pitch, value, width, height); });
}
HANDOFF_API Error cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height, Stream*) {
  return call("cudaMemset2DAsync", [&](Runtime& r) { return fill_rows(r, to, pitch, value, width, height); });
}

HANDOFF_API Error cudaMemcpyToSymbol(const void* symbol, const void* from, size_t count, size_t offset,
                                     MemcpyKind kind) {
  return call("cudaMemcpyToSymbol",
              [&](Runtime& r) { return copy_symbol(r, symbol, const_cast<void*>(from), count, offset, kind, true); });
}
HANDOFF_API Error cudaMemcpyFromSymbol(void* to, const void* symbol, size_t count, size_t offset, MemcpyKind kind) {
  return call("cudaMemcpyFromSymbol",
              [&](Runtime& r) { return copy_symbol(r, symbol, to, count, offset, kind, false); });
}
HANDOFF_API Error cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t count, size_t offset,
                                          MemcpyKind kind, Stream*) {
  return cudaMemcpyToSymbol(symbol, from, count, offset, kind);
}
HANDOFF_API Error cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t count, size_t offset, MemcpyKind kind,
                                            Stream*) {
  return cudaMemcpyFromSymbol(to, symbol, count, offset, kind);
}
HANDOFF_API Error cudaGetSymbolAddress(void** out, const void* symbol) {
  return call("cudaGetSymbolAddress", [&](Runtime& r) {
    handoff::machine::LoadedModule::Symbol place;
    Outcome found = r.find_variable(symbol, &place);
    if (found.code == kSuccess) *out = reinterpret_cast<void*>(place.address);
    return found;
  });
}
HANDOFF_API Error cudaGetSymbolSize(size_t* out, const void* symbol) {
  return call("cudaGetSymbolSize", [&](Runtime& r) {
    handoff::machine::LoadedModule::Symbol place;
    Outcome found = r.find_variable(symbol, &place);
    if (found.code == kSuccess) *out = place.size;
    return found;
  });
}

HANDOFF_API Error cudaMemGetInfo(size_t* free, size_t* total) {
  return call("cudaMemGetInfo", [&](Runtime& r) -> Outcome {
    *total = total_memory(r.model());
    *free = *total - std::min<uint64_t>(*total, r.memory().global().bytes_in_use());
    return {};
  });
}
HANDOFF_API Error cudaPointerGetAttributes(PointerAttributes* out, const void* p) {
  return call("cudaPointerGetAttributes", [&](Runtime& r) -> Outcome {
    if (out == nullptr) return {kInvalidValue, "the attributes' address is null"};
    const auto address = reinterpret_cast<uint64_t>(p);
    const AllocationRecord* const a = r.memory().find(address);
    void* const same = const_cast<void*>(p);
    *out = {MemoryType::Unregistered, -2, nullptr, same, {}};
    if (a != nullptr) *out = {a->type, 0, same, a->type == MemoryType::Device ? nullptr : same, {}};
    if (a == nullptr && r.memory().is_device(address)) *out = {MemoryType::Device, 0, same, nullptr, {}};
    return {};
  });
}
HANDOFF_API Error cudaHostGetDevicePointer(void** out, void* host, unsigned) {
  return call("cudaHostGetDevicePointer", [&](Runtime& r) -> Outcome {
    const AllocationRecord* const a = r.memory().find(reinterpret_cast<uint64_t>(host));
    if (a == nullptr || a->type != MemoryType::Host) return {kInvalidValue, "it is not from cudaHostAlloc"};
    *out = host;
    return {};
  });
}
HANDOFF_API Error cudaHostGetFlags(unsigned* out, void* host) {
  return call("cudaHostGetFlags", [&](Runtime& r) -> Outcome {
    const AllocationRecord* const a = r.memory().find(reinterpret_cast<uint64_t>(host));
    if (a == nullptr || a->type != MemoryType::Host) return {kInvalidValue, "it is not from cudaHostAlloc"};
    constexpr unsigned kMapped = 2;
    *out = kMapped;
    return {};
  });
}

// --- programs built with --default-stream per-thread ---

HANDOFF_API decltype(cudaMallocAsync) cudaMallocAsync_ptsz __attribute__((alias("cudaMallocAsync")));
HANDOFF_API decltype(cudaFreeAsync) cudaFreeAsync_ptsz __attribute__((alias("cudaFreeAsync")));
HANDOFF_API decltype(cudaMemcpy) cudaMemcpy_ptds __attribute__((alias("cudaMemcpy")));
HANDOFF_API decltype(cudaMemcpyAsync) cudaMemcpyAsync_ptsz __attribute__((alias("cudaMemcpyAsync")));
HANDOFF_API decltype(cudaMemcpy2D) cudaMemcpy2D_ptds __attribute__((alias("cudaMemcpy2D")));
HANDOFF_API decltype(cudaMemcpy2DAsync) cudaMemcpy2DAsync_ptsz __attribute__((alias("cudaMemcpy2DAsync")));
HANDOFF_API decltype(cudaMemset) cudaMemset_ptds __attribute__((alias("cudaMemset")));
HANDOFF_API decltype(cudaMemsetAsync) cudaMemsetAsync_ptsz __attribute__((alias("cudaMemsetAsync")));
HANDOFF_API decltype(cudaMemset2D) cudaMemset2D_ptds __attribute__((alias("cudaMemset2D")));
HANDOFF_API decltype(cudaMemset2DAsync) cudaMemset2DAsync_ptsz __attribute__((alias("cudaMemset2DAsync")));
HANDOFF_API decltype(cudaMemcpyToSymbol) cudaMemcpyToSymbol_ptds __attribute__((alias("cudaMemcpyToSymbol")));
HANDOFF_API decltype(cudaMemcpyFromSymbol) cudaMemcpyFromSymbol_ptds __attribute__((alias("cudaMemcpyFromSymbol")));
HANDOFF_API decltype(cudaMemcpyToSymbolAsync) cudaMemcpyToSymbolAsync_ptsz
    __attribute__((alias("cudaMemcpyToSymbolAsync")));
HANDOFF_API decltype(cudaMemcpyFromSymbolAsync) cudaMemcpyFromSymbolAsync_ptsz
    __attribute__((alias("cudaMemcpyFromSymbolAsync")));
