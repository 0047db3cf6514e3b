// Copies and fills of more than one dimension, and of variables: shared by calls and by the nodes of graphs
// (api_memory.cc, api_rows.cc).
#pragma once

#include "grader/runtime/runtime.h"

namespace handoff::runtime {

/// cudaMemcpy2D: `height` rows of `width` bytes.
Outcome copy_rows(Runtime& r, void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                  size_t height, MemcpyKind kind);
/// cudaMemset2D for elements of 1, 2 or 4 bytes: `height` rows of `width` elements.
Outcome fill_rows(Runtime& r, void* to, size_t pitch, uint32_t value, uint32_t element_bytes, size_t width,
                  size_t height);
/// cudaMemcpy3D.
Outcome copy_box(Runtime& r, const RuntimeCopy3D& box);
/// Copies to or from a registered variable, beginning at byte `offset` of it.
Outcome copy_symbol(Runtime& r, const void* symbol, void* other, size_t count, size_t offset, MemcpyKind kind,
                    bool to_symbol);
/// cudaMemcpy3D of what a CUDA_MEMCPY3D says; an end may be of any memory type but an array.
Outcome box_of(const DriverCopy3D& copy, RuntimeCopy3D* out);

}  // namespace handoff::runtime
