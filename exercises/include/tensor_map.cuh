// Tensor maps: what a kernel file says about the tensors that it copies.
//
// A tensor map (PTX ISA §5.5) is made on the host, by cuTensorMapEncodeTiled of the CUDA driver API. Kernel files here
// have no host code, so they state the arguments of that call in a constant, field by field:
//
//   extern "C" __constant__ TensorMapArguments image_map = { … };
//
// Before each launch the harness reads the constant, calls cuTensorMapEncodeTiled with it, and passes the map that
// comes out to the kernel, as a parameter `const __grid_constant__ CUtensorMap`. The types and the enumerators
// CU_TENSOR_MAP_… are those of <cuda.h>.
#pragma once

#include <cuda.h>

#include <cstddef>

/// The arguments of cuTensorMapEncodeTiled under their own names, but for globalAddress, which the harness knows: the
/// address of element (0, 0, …). Dimensions are counted from the innermost, whose elements are neighbours in memory, to
/// the outermost. Only the first tensorRank entries of an array count (of globalStrides, one fewer).
struct TensorMapArguments {
  CUtensorMapDataType tensorDataType;  ///< type of an element
  cuuint32_t tensorRank;               ///< number of dimensions, 1 to 5
  cuuint64_t globalDim[5];             ///< extents of the tensor, elements
  cuuint64_t globalStrides[4];         ///< [i]: from one index of dimension i + 1 to the next; bytes, multiples of 16
  cuuint32_t boxDim[5];                ///< extents of the box, elements, 1 to 256; [0] makes a multiple of 16 bytes
  cuuint32_t elementStrides[5];        ///< steps inside the box, elements, 1 to 8; 1: neighbours
  CUtensorMapInterleave interleave;    ///< CU_TENSOR_MAP_INTERLEAVE_NONE but for channels in slices
  CUtensorMapSwizzle swizzle;          ///< arrangement in shared memory
  CUtensorMapL2promotion l2Promotion;  ///< granularity of the fetches into the L2 cache
  CUtensorMapFloatOOBfill oobFill;     ///< what a load finds outside the tensor; NONE: zeros
};

// The harness reads these bytes.
static_assert(sizeof(TensorMapArguments) == 136 && offsetof(TensorMapArguments, boxDim) == 80 &&
              offsetof(TensorMapArguments, interleave) == 120);
