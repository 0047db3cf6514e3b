// What mma() is made of: operands to panels of binary32, and the product of two panels. Compiled twice from
// mma_kernels.inc, for any host and for hosts with AVX2 and FMA; both give the same bits.
//
// No function has its body here, so that none that was compiled for AVX2 can be linked into code for older hosts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "grader/emulator/async/mma_descriptor.h"

namespace handoff::async {

/// An operand to be widened to binary32.
struct Unpack {
  const std::byte* bytes = nullptr;  ///< to which `units` are offsets
  const uint32_t* units = nullptr;   ///< of 16 bytes each, in the order of operand_units
  bool mn_major = false;             ///< the order of the units
  MmaType type = MmaType::F16;       ///< F16, Bf16 or Tf32
  bool negate = false;               ///< flip the sign of each element
  uint32_t rows = 0;                 ///< a multiple of 8
  float* panel = nullptr;            ///< [k][rows], k = 16, for Tf32 8
};

/// D = A·B or A·B + D·scale.
struct Multiply {
  /// Type of an element of D.
  enum class Result : uint8_t {
    Float,        ///< binary32
    Half,         ///< f16, in the low half of a cell
    Int,          ///< s32, modulo 2^32: the panels hold integers whose sums of products are below 2^24
    IntSaturated  ///< s32, clamped
  };
  const float* a = nullptr;  ///< [k][m]
  const float* b = nullptr;  ///< [k][n]
  /// Shape: m a multiple of 4, n of 8, both as MmaOperation allows.
  ///@{
  uint32_t m = 0, n = 0, k = 0;
  ///@}
  uint32_t* const* rows = nullptr;  ///< [m]: the n cells of each row of D; nullptr: the row is not written
  Result result = Result::Float;    ///< type of D
  bool accumulate = false;          ///< the sums start from the old D
  float scale = 1;                  ///< of the old D; integers: 1
};

namespace mma_base {
void unpack(const Unpack& u);
void multiply(const Multiply& p);
}  // namespace mma_base

#if defined(__x86_64__)
namespace mma_avx2 {
void unpack(const Unpack& u);
void multiply(const Multiply& p);
}  // namespace mma_avx2
#endif

}  // namespace handoff::async
