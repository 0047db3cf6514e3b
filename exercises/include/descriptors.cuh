// The two descriptors of a tcgen05.mma, assembled from values with names and units.
//
// An MMA knows its operands by two integers. The shared-memory descriptor (64 bits, one for A and one for B) says where
// a tile begins and how its 16-byte pieces lie; the instruction descriptor (32 bits) says the types and the size of the
// product. Neither is checked by the compiler: a wrong field reads other bytes, or is undefined.
#pragma once

#include <cstdint>

namespace ptx {

/// How 16-byte units are permuted inside a tile, with the encoding of bits 63:61 of the shared-memory descriptor (PTX
/// ISA §9.7.16.4.1). The patterns repeat every 256, 512 and 1024 bytes: a tile begins at a multiple of that.
enum class swizzle : uint64_t { none = 0, bytes_128 = 2, bytes_64 = 4, bytes_32 = 6 };

/// The shared-memory descriptor (PTX ISA §9.7.16.4.1) of the operand tile at `tile`, which lies in shared memory.
///
/// For a K-major tile (the elements of a row along K are neighbours) of 8-row groups:
///   leading_bytes  without swizzle: from one 16-byte column of K to the next; with a swizzle: ignored
///   stride_bytes   from one group of 8 rows to the next
/// All three are multiples of 16 below 256 KiB, which is what their 14-bit fields hold.
__device__ inline uint64_t smem_descriptor(const void* tile, uint32_t leading_bytes, uint32_t stride_bytes,
                                           swizzle mode = swizzle::none) {
  const auto sixteenths = [](uint32_t bytes) { return static_cast<uint64_t>((bytes & 0x3FFFF) >> 4); };
  return sixteenths(static_cast<uint32_t>(__cvta_generic_to_shared(tile))) |  // 13:0   start address
         sixteenths(leading_bytes) << 16 |                                    // 29:16  leading dimension
         sixteenths(stride_bytes) << 32 |                                     // 45:32  stride dimension
         uint64_t{1} << 46 |                                                  // 48:46  the constant 0b001
         static_cast<uint64_t>(mode) << 61;                                   // 63:61  swizzle
}

/// The type of the elements of A and B, with the encoding of the fields 9:7 and 12:10 of the instruction descriptor.
enum class element : uint32_t { f16 = 0, bf16 = 1, tf32 = 2 };

/// Which dimension of an operand lies contiguously in shared memory: K (a row of A, a row of Bᵀ), or M (of A), N (of
/// B).
enum class major : uint32_t { k = 0, mn = 1 };

/// The instruction descriptor (PTX ISA §9.7.16.4.2) for kind::f16 and kind::tf32: A of m × k and B of k × n elements of
/// type `operands` (k follows from the kind: 16 and 8), D of m × n floats. m is 64 or 128; n is a multiple of 8 from 8
/// to 256 (of 16 if m is 128).
__host__ __device__ constexpr uint32_t instruction_descriptor(element operands, uint32_t m, uint32_t n,
                                                              major a = major::k, major b = major::k) {
  return uint32_t{1} << 4 |                       // 5:4    D is fp32
         static_cast<uint32_t>(operands) << 7 |   // 9:7    type of A
         static_cast<uint32_t>(operands) << 10 |  // 12:10  type of B
         static_cast<uint32_t>(a) << 15 |         // 15     A is transposed
         static_cast<uint32_t>(b) << 16 |         // 16     B is transposed
         (n / 8) << 17 |                          // 22:17  N in eights
         (m / 16) << 24;                          // 28:24  M in sixteens
}

}  // namespace ptx
