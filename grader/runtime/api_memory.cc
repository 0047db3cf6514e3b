// Memory (CUDA runtime API, "Memory Management", "Stream Ordered Memory Allocator", "Unified Addressing").
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "grader/runtime/graph.h"
#include "grader/runtime/pool.h"
#include "grader/runtime/rows.h"
#include "grader/runtime/runtime.h"

namespace handoff::runtime {
namespace {

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

}  // namespace

Outcome allocate(Runtime& r, void** out, uint64_t bytes, MemoryType type, const char* name) {
  if (out == nullptr) return {kInvalidValue, "the pointer's address is null"};
  if (bytes == 0 && type == MemoryType::Managed) return {kInvalidValue, "0 bytes"};
  Outcome outcome = check_no_capture(r);
  if (outcome.code != kSuccess) return outcome;
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
  Outcome outcome = check_no_capture(r);
  if (p == nullptr || outcome.code != kSuccess) return outcome;
  const auto address = reinterpret_cast<uint64_t>(p);
  const AllocationRecord* const a = r.memory().find(address);
  if (a == nullptr || a->base != address) return {kInvalidValue, r.memory().describe(address)};
  if ((a->type == MemoryType::Host) != host) {
    return {kInvalidValue, fmt::format("`{}` is to be freed with {}", a->name, host ? "cudaFree" : "cudaFreeHost")};
  }
  if (a->origin == Origin::Variable) return {kInvalidValue, fmt::format("`{}` is a variable", a->name)};
  if (a->origin == Origin::Registered) {
    return {kInvalidValue, fmt::format("`{}` is the host's: cudaHostUnregister ends it", a->name)};
  }
  forget_pool_allocation(address);
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
  if (element_bytes == 1) {
    std::memset(bytes, static_cast<int>(value), count);
  } else {
    for (uint64_t i = 0; i < count; ++i) std::memcpy(bytes + i * element_bytes, &value, element_bytes);
  }
  return {};
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

Outcome fill_rows(Runtime& r, void* to, size_t pitch, uint32_t value, uint32_t element_bytes, size_t width,
                  size_t height) {
  if (width * element_bytes > pitch) {
    return {kInvalidValue, fmt::format("rows of {} bytes, a pitch of {}", width * element_bytes, pitch)};
  }
  for (size_t row = 0; row < height; ++row) {
    Outcome outcome = fill(r, reinterpret_cast<uint64_t>(to) + row * pitch, value, width, element_bytes);
    if (outcome.code != kSuccess) return outcome;
  }
  return {};
}

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

}  // namespace handoff::runtime

using namespace handoff::runtime;  // NOLINT: what follows is the C interface over it

HANDOFF_API Error cudaMalloc(void** out, size_t bytes) {
  return call("cudaMalloc", [&](Runtime& r) { return allocate(r, out, bytes, MemoryType::Device, "cudaMalloc"); });
}
HANDOFF_API Error cudaMallocManaged(void** out, size_t bytes, unsigned) {
  return call("cudaMallocManaged",
              [&](Runtime& r) { return allocate(r, out, bytes, MemoryType::Managed, "cudaMallocManaged"); });
}
HANDOFF_API Error cudaMallocHost(void** out, size_t bytes) {
  return call("cudaMallocHost",
              [&](Runtime& r) { return allocate(r, out, bytes, MemoryType::Host, "cudaMallocHost"); });
}
HANDOFF_API Error cudaFree(void* p) {
  return call("cudaFree", [&](Runtime& r) { return release(r, p, false); });
}
HANDOFF_API Error cudaFreeHost(void* p) {
  return call("cudaFreeHost", [&](Runtime& r) { return release(r, p, true); });
}

// --- copies and fills: work in a stream, the legacy one where none is named ---

HANDOFF_API Error cudaMemcpy(void* to, const void* from, size_t bytes, MemcpyKind kind) {
  // A copy of nothing is no work of the stream: it is allowed while another one is captured.
  if (bytes == 0) return call("cudaMemcpy", [=](Runtime& r) { return copy(r, to, from, 0, kind); });
  return call_in("cudaMemcpy", nullptr, NodeType::Memcpy, [=](Runtime& r) { return copy(r, to, from, bytes, kind); });
}
HANDOFF_API Error cudaMemcpyAsync(void* to, const void* from, size_t bytes, MemcpyKind kind, Stream* stream) {
  return call_in("cudaMemcpyAsync", stream, NodeType::Memcpy,
                 [=](Runtime& r) { return copy(r, to, from, bytes, kind); });
}
HANDOFF_API Error cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                      Stream* stream) {
  if (to_device != 0 || from_device != 0) {
    return call("cudaMemcpyPeer", [](Runtime&) -> Outcome { return {kInvalidDevice, "there is one device, 0"}; });
  }
  return call_in("cudaMemcpyPeer", stream, NodeType::Memcpy,
                 [=](Runtime& r) { return copy(r, to, from, bytes, MemcpyKind::DeviceToDevice); });
}
HANDOFF_API Error cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t bytes) {
  return cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, nullptr);
}
HANDOFF_API Error cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                    size_t height, MemcpyKind kind, Stream* stream) {
  return call_in("cudaMemcpy2D", stream, NodeType::Memcpy,
                 [=](Runtime& r) { return copy_rows(r, to, to_pitch, from, from_pitch, width, height, kind); });
}
HANDOFF_API Error cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                               size_t height, MemcpyKind kind) {
  return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, nullptr);
}
HANDOFF_API Error cudaMemsetAsync(void* to, int value, size_t bytes, Stream* stream) {
  return call_in("cudaMemset", stream, NodeType::Memset, [=](Runtime& r) {
    return fill(r, reinterpret_cast<uint64_t>(to), static_cast<uint8_t>(value), bytes, 1);
  });
}
HANDOFF_API Error cudaMemset(void* to, int value, size_t bytes) { return cudaMemsetAsync(to, value, bytes, nullptr); }
HANDOFF_API Error cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height, Stream* stream) {
  return call_in("cudaMemset2D", stream, NodeType::Memset,
                 [=](Runtime& r) { return fill_rows(r, to, pitch, static_cast<uint8_t>(value), 1, width, height); });
}
HANDOFF_API Error cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  return cudaMemset2DAsync(to, pitch, value, width, height, nullptr);
}

HANDOFF_API Error cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t count, size_t offset,
                                          MemcpyKind kind, Stream* stream) {
  return call_in("cudaMemcpyToSymbol", stream, NodeType::Memcpy, [=](Runtime& r) {
    return copy_symbol(r, symbol, const_cast<void*>(from), count, offset, kind, true);
  });
}
HANDOFF_API Error cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t count, size_t offset, MemcpyKind kind,
                                            Stream* stream) {
  return call_in("cudaMemcpyFromSymbol", stream, NodeType::Memcpy,
                 [=](Runtime& r) { return copy_symbol(r, symbol, to, count, offset, kind, false); });
}
HANDOFF_API Error cudaMemcpyToSymbol(const void* symbol, const void* from, size_t count, size_t offset,
                                     MemcpyKind kind) {
  return cudaMemcpyToSymbolAsync(symbol, from, count, offset, kind, nullptr);
}
HANDOFF_API Error cudaMemcpyFromSymbol(void* to, const void* symbol, size_t count, size_t offset, MemcpyKind kind) {
  return cudaMemcpyFromSymbolAsync(to, symbol, count, offset, kind, nullptr);
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
// --- programs built with --default-stream per-thread ---

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
