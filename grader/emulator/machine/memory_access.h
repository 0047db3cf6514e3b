// Small pieces shared by the handlers that touch memory.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "grader/emulator/machine/observer.h"
#include "grader/emulator/ptx/instruction_table.h"

namespace handoff::machine {

/// Scope named in the opcode; None where none is.
Scope scope_of(const ptx::Resolved& resolved);

/// binary16 → binary32, exact.
inline float half_to_float(uint16_t h) {
  const uint32_t sign = uint32_t{h & 0x8000u} << 16;
  const uint32_t exponent = h >> 10 & 31u, mantissa = h & 1023u;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  if (exponent == 0)
    return std::copysign(static_cast<float>(mantissa) * 0x1p-24f, std::bit_cast<float>(sign | 0x3f800000u));
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}
/// binary32 → binary16, round to nearest even; NaN becomes 0x7fff.
inline uint16_t float_to_half(float f) {
  const auto b = std::bit_cast<uint32_t>(f);
  const uint32_t sign = b >> 16 & 0x8000u;
  const uint32_t a = b & 0x7fffffffu;
  if (a > 0x7f800000u) return 0x7fff;
  if (a >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to infinity
  if (a < 0x38800000u) {                                               // denormal result: let the addition round
    const float magic = std::bit_cast<float>(a) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(magic) - 0x3f000000u));
  }
  const uint32_t rounded = a + 0xfffu + (a >> 13 & 1u);
  return static_cast<uint16_t>(sign | (rounded - 0x38000000u) >> 13);
}
/// bfloat16 → binary32, exact.
inline float bf16_to_float(uint16_t h) { return std::bit_cast<float>(uint32_t{h} << 16); }
/// binary32 → bfloat16, round to nearest even; NaN becomes 0x7fff.
inline uint16_t float_to_bf16(float f) {
  const auto b = std::bit_cast<uint32_t>(f);
  if ((b & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return static_cast<uint16_t>((b + 0x7fffu + (b >> 16 & 1u)) >> 16);
}

}  // namespace handoff::machine
