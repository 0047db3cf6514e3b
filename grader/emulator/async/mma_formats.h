// Elements of the narrow kinds of tcgen05.mma, f8f6f4, i8 and the block-scaled ones, and their scale factors: what a
// code means, and where it lies in 16 bytes of shared or tensor memory (PTX §5.2.3, §9.7.16.10.4).
#pragma once

#include <cstdint>

#include "grader/emulator/async/mma_descriptor.h"
#include "grader/emulator/async/mma_kernels.h"

namespace handoff::async {

/// How the elements of a matrix stand in a unit of 16 bytes.
enum class Packing : uint8_t {
  Bytes,   ///< a byte each: 8-bit types anywhere; in tensor memory the narrower ones too (6 bits in 5:0, e2m1 in 5:2)
  Padded,  ///< 16 elements side by side from bit 0 on, the rest of the unit unused: 4- and 6-bit types in shared memory
  Packed,  ///< 32 elements of 4 bits: mxf4 and mxf4nvf4
};
/// The packing of an element of `type` in an MMA of `kind`.
Packing packing_of(MmaKind kind, MmaType type, bool in_tensor_memory);

/// Value of a code: of E4m3, E5m2, E2m3, E3m2, E2m1, U8 or S8. Bits above the type's width are ignored.
float narrow_value(MmaType type, uint32_t code);
/// Value of a scale factor: ue8m0 is 2^(code - 127), its code 255 a NaN; ue4m3 is a positive e4m3, bit 7 is ignored.
float scale_value(bool ue8m0, uint8_t code);

/// Widens an operand of one of the narrow types to binary32. The panel is [k][rows], k = 32, with Packed 64.
void unpack_narrow(const Unpack& u, Packing packing);

}  // namespace handoff::async
