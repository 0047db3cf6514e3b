// set with an f16 or bf16 result, of operands of other types
// run: --grid 3 --block 128 --out 2304
// source: PTX §9.7.7.1
#include <cstdint>

constexpr uint32_t kRows = 384;

// Result `number` of this row.
#define FORM(number, instruction, reg, x, y)                                  \
  {                                                                           \
    uint16_t result;                                                          \
    asm volatile(instruction " %0, %1, %2;" : "=h"(result) : reg(x), reg(y)); \
    out[number * kRows + row] = result;                                       \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  // Rows 0 to 127: floats of the edges, each against another.
  const uint32_t a = in[row < 128 ? row : row + 128], b = in[row < 128 ? (row * 7 + row / 16) % 128 : row / 2 + 700];
  const auto c = static_cast<uint16_t>(in[192 + row % 32]), d = static_cast<uint16_t>(in[192 + row * 5 % 32] >> 16);
  FORM(0, "set.lt.f16.f32", "f", __uint_as_float(a), __uint_as_float(b))
  FORM(1, "set.geu.bf16.f32", "f", __uint_as_float(a), __uint_as_float(b))
  FORM(2, "set.gt.f16.s32", "r", a, b)
  FORM(3, "set.hi.bf16.u32", "r", a, b)
  FORM(4, "set.le.ftz.f16.f16", "h", c, d)
  FORM(5, "set.nan.bf16.f16", "h", c, d)
}
