// Memory in rows and slices (CUDA runtime API, "Memory Management": the 3D calls; driver API: those of two and three
// dimensions).
//
// A slice of a pitched pointer is `ysize` rows of `pitch` bytes. A CUDA_MEMCPY3D says the same in other words, so that
// all copies of boxes are one.
#include <fmt/format.h>

#include "grader/runtime/driver.h"
#include "grader/runtime/graph.h"
#include "grader/runtime/rows.h"

namespace handoff::runtime {
namespace {

constexpr size_t kPitch = 512;  // bytes to which rows are rounded up

size_t padded(size_t width) { return (width + kPitch - 1) / kPitch * kPitch; }

std::byte* row_of(const PitchedPointer& p, const Position& at, size_t row, size_t slice) {
  return static_cast<std::byte*>(p.address) + ((at.z + slice) * p.ysize + at.y + row) * p.pitch + at.x;
}

Outcome check_end(const PitchedPointer& p, const Position& at, const Extent& extent, const char* which) {
  if (p.address == nullptr) return {kInvalidValue, fmt::format("the {} is null", which)};
  if (at.x + extent.width > p.pitch && extent.height * extent.depth > 1) {
    return {kInvalidPitchValue, fmt::format("rows of {} bytes from byte {} of the {}, whose pitch is {}", extent.width,
                                            at.x, which, p.pitch)};
  }
  if (at.y + extent.height > p.ysize && extent.depth > 1) {
    return {kInvalidPitchValue,
            fmt::format("{} rows from row {} of the {}, whose slices have {}", extent.height, at.y, which, p.ysize)};
  }
  return {};
}

Outcome fill_box(Runtime& r, const PitchedPointer& p, int value, const Extent& extent) {
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return {};
  Outcome outcome = check_end(p, {}, extent, "destination");
  if (outcome.code == kInvalidPitchValue) outcome.code = kInvalidValue;  // a copy's code only
  for (size_t slice = 0; slice < extent.depth && outcome.code == kSuccess; ++slice) {
    outcome =
        fill_rows(r, row_of(p, {}, 0, slice), p.pitch, static_cast<uint8_t>(value), 1, extent.width, extent.height);
  }
  return outcome;
}

/// One end of a driver's copy.
template <class End>
Outcome end_of(const End& end, PitchedPointer* out) {
  out->pitch = end.pitch;
  switch (end.type) {
    case DriverMemoryType::Host:
      out->address = end.host;
      return {};
    case DriverMemoryType::Device:
    case DriverMemoryType::Unified:
      out->address = pointer(end.device);
      return {};
    case DriverMemoryType::Array:
      return {kNotSupported, "arrays"};
  }
  return {kInvalidValue, fmt::format("no memory type {}", static_cast<int>(end.type))};
}

MemcpyKind kind_of(DriverMemoryType from, DriverMemoryType to) {
  if (from == DriverMemoryType::Unified || to == DriverMemoryType::Unified) return MemcpyKind::Default;
  if (from == DriverMemoryType::Host) {
    return to == DriverMemoryType::Host ? MemcpyKind::HostToHost : MemcpyKind::HostToDevice;
  }
  return to == DriverMemoryType::Host ? MemcpyKind::DeviceToHost : MemcpyKind::DeviceToDevice;
}

Outcome box_of(const DriverCopy2D& c, RuntimeCopy3D* out) {
  *out = {};
  Outcome outcome = end_of(c.source, &out->source);
  if (outcome.code == kSuccess) outcome = end_of(c.destination, &out->destination);
  out->source_position = {c.source.x_bytes, c.source.y, 0};
  out->destination_position = {c.destination.x_bytes, c.destination.y, 0};
  out->extent = {c.width_bytes, c.height, 1};
  out->kind = kind_of(c.source.type, c.destination.type);
  // A pitch of 0 is that of rows without a gap.
  if (out->source.pitch == 0) out->source.pitch = c.width_bytes;
  if (out->destination.pitch == 0) out->destination.pitch = c.width_bytes;
  return outcome;
}

template <class Copy>
Result driver_copy(const char* name, const Copy* c, Stream* stream) {
  return driver_call(name, [&](Runtime& r) -> Outcome {
    if (c == nullptr) return {kInvalidValue, "no copy"};
    RuntimeCopy3D box;
    Outcome outcome = box_of(*c, &box);
    if (outcome.code != kSuccess) return outcome;
    return enqueue(r, stream, NodeType::Memcpy, [box](Runtime& runtime) { return copy_box(runtime, box); });
  });
}

Result driver_fill(const char* name, Address to, size_t pitch, uint32_t value, uint32_t element_bytes, size_t width,
                   size_t height, Stream* stream) {
  return driver_call(name, [&](Runtime& r) {
    return enqueue(r, stream, NodeType::Memset, [=](Runtime& runtime) {
      return fill_rows(runtime, pointer(to), height == 1 ? width * element_bytes : pitch, value, element_bytes, width,
                       height);
    });
  });
}

}  // namespace

Outcome box_of(const DriverCopy3D& c, RuntimeCopy3D* out) {
  *out = {};
  Outcome outcome = end_of(c.source, &out->source);
  if (outcome.code == kSuccess) outcome = end_of(c.destination, &out->destination);
  out->source.ysize = c.source.height;
  out->destination.ysize = c.destination.height;
  out->source_position = {c.source.x_bytes, c.source.y, c.source.z};
  out->destination_position = {c.destination.x_bytes, c.destination.y, c.destination.z};
  out->extent = {c.width_bytes, c.height, c.depth};
  out->kind = kind_of(c.source.type, c.destination.type);
  if (out->source.pitch == 0) out->source.pitch = c.width_bytes;
  if (out->destination.pitch == 0) out->destination.pitch = c.width_bytes;
  return outcome;
}

Outcome copy_box(Runtime& r, const RuntimeCopy3D& box) {
  if (box.source_array != nullptr || box.destination_array != nullptr) return {kNotSupported, "arrays"};
  if (box.kind < MemcpyKind::HostToHost || box.kind > MemcpyKind::Default) {
    return {kInvalidMemcpyDirection, fmt::format("no direction {}", static_cast<int>(box.kind))};
  }
  const Extent& e = box.extent;
  if (e.width == 0 || e.height == 0 || e.depth == 0) return {};
  Outcome outcome = check_end(box.source, box.source_position, e, "source");
  if (outcome.code == kSuccess) outcome = check_end(box.destination, box.destination_position, e, "destination");
  for (size_t slice = 0; slice < e.depth; ++slice) {
    for (size_t row = 0; row < e.height && outcome.code == kSuccess; ++row) {
      outcome = copy(r, row_of(box.destination, box.destination_position, row, slice),
                     row_of(box.source, box.source_position, row, slice), e.width, box.kind);
    }
  }
  return outcome;
}

}  // namespace handoff::runtime

using namespace handoff::runtime;  // NOLINT: what follows is the C interface over it

HANDOFF_API Error cudaMallocPitch(void** out, size_t* pitch, size_t width, size_t height) {
  return call("cudaMallocPitch", [&](Runtime& r) -> Outcome {
    if (pitch == nullptr) return {kInvalidValue, "the pitch's address is null"};
    *pitch = padded(width);
    return allocate(r, out, *pitch * height, MemoryType::Device, "cudaMallocPitch");
  });
}
HANDOFF_API Error cudaMalloc3D(PitchedPointer* out, Extent extent) {
  return call("cudaMalloc3D", [&](Runtime& r) -> Outcome {
    if (out == nullptr) return {kInvalidValue, "the pointer's address is null"};
    *out = {nullptr, padded(extent.width), extent.width, extent.height};
    return allocate(r, &out->address, out->pitch * extent.height * extent.depth, MemoryType::Device, "cudaMalloc3D");
  });
}
HANDOFF_API Error cudaMemcpy3DAsync(const RuntimeCopy3D* box, Stream* stream) {
  if (box == nullptr) return call("cudaMemcpy3D", [](Runtime&) { return Outcome{kInvalidValue, "no copy"}; });
  return call_in("cudaMemcpy3D", stream, NodeType::Memcpy, [box = *box](Runtime& r) { return copy_box(r, box); });
}
HANDOFF_API Error cudaMemcpy3D(const RuntimeCopy3D* box) { return cudaMemcpy3DAsync(box, nullptr); }
HANDOFF_API Error cudaMemset3DAsync(PitchedPointer to, int value, Extent extent, Stream* stream) {
  return call_in("cudaMemset3D", stream, NodeType::Memset, [=](Runtime& r) { return fill_box(r, to, value, extent); });
}
HANDOFF_API Error cudaMemset3D(PitchedPointer to, int value, Extent extent) {
  return cudaMemset3DAsync(to, value, extent, nullptr);
}

// --- the driver's ---

HANDOFF_API Result cuMemAllocPitch_v2(Address* out, size_t* pitch, size_t width, size_t height, unsigned element) {
  return driver_call("cuMemAllocPitch", [&](Runtime& r) -> Outcome {
    if (pitch == nullptr || width == 0 || height == 0) return {kInvalidValue, "0 bytes, or no place for the pitch"};
    if (element != 4 && element != 8 && element != 16) {
      return {kInvalidValue, fmt::format("elements of {} bytes; 4, 8 and 16 are allowed", element)};
    }
    *pitch = padded(width);
    return allocate(r, reinterpret_cast<void**>(out), *pitch * height, MemoryType::Device, "cuMemAllocPitch");
  });
}
HANDOFF_API Result cuMemcpy2D_v2(const DriverCopy2D* c) { return driver_copy("cuMemcpy2D", c, nullptr); }
HANDOFF_API Result cuMemcpy2DUnaligned_v2(const DriverCopy2D* c) {
  return driver_copy("cuMemcpy2DUnaligned", c, nullptr);
}
HANDOFF_API Result cuMemcpy2DAsync_v2(const DriverCopy2D* c, Stream* stream) {
  return driver_copy("cuMemcpy2DAsync", c, stream);
}
HANDOFF_API Result cuMemcpy3D_v2(const DriverCopy3D* c) { return driver_copy("cuMemcpy3D", c, nullptr); }
HANDOFF_API Result cuMemcpy3DAsync_v2(const DriverCopy3D* c, Stream* stream) {
  return driver_copy("cuMemcpy3DAsync", c, stream);
}
HANDOFF_API Result cuMemsetD2D8Async(Address to, size_t pitch, unsigned char value, size_t width, size_t height,
                                     Stream* stream) {
  return driver_fill("cuMemsetD2D8", to, pitch, value, 1, width, height, stream);
}
HANDOFF_API Result cuMemsetD2D16Async(Address to, size_t pitch, unsigned short value, size_t width, size_t height,
                                      Stream* stream) {
  return driver_fill("cuMemsetD2D16", to, pitch, value, 2, width, height, stream);
}
HANDOFF_API Result cuMemsetD2D32Async(Address to, size_t pitch, unsigned value, size_t width, size_t height,
                                      Stream* stream) {
  return driver_fill("cuMemsetD2D32", to, pitch, value, 4, width, height, stream);
}
HANDOFF_API Result cuMemsetD2D8_v2(Address to, size_t pitch, unsigned char value, size_t width, size_t height) {
  return cuMemsetD2D8Async(to, pitch, value, width, height, nullptr);
}
HANDOFF_API Result cuMemsetD2D16_v2(Address to, size_t pitch, unsigned short value, size_t width, size_t height) {
  return cuMemsetD2D16Async(to, pitch, value, width, height, nullptr);
}
HANDOFF_API Result cuMemsetD2D32_v2(Address to, size_t pitch, unsigned value, size_t width, size_t height) {
  return cuMemsetD2D32Async(to, pitch, value, width, height, nullptr);
}

// --- programs built with --default-stream per-thread ---

HANDOFF_API decltype(cudaMemcpy3D) cudaMemcpy3D_ptds __attribute__((alias("cudaMemcpy3D")));
HANDOFF_API decltype(cudaMemcpy3DAsync) cudaMemcpy3DAsync_ptsz __attribute__((alias("cudaMemcpy3DAsync")));
HANDOFF_API decltype(cudaMemset3D) cudaMemset3D_ptds __attribute__((alias("cudaMemset3D")));
HANDOFF_API decltype(cudaMemset3DAsync) cudaMemset3DAsync_ptsz __attribute__((alias("cudaMemset3DAsync")));
