// setp.ftz of f16: subnormals compare as zeros
// run: --grid 3 --block 128 --out 384
// source: PTX §9.7.7.2
#include <cstdint>

constexpr uint32_t kRows = 384;
// Zeros, subnormals, normal numbers, limits, infinities, a quiet and a signalling NaN.
__constant__ uint16_t kEdges[16] = {0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x8400, 0x3c00,
                                    0xbc00, 0x3c01, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfd01};

// Rows 0 to 255: every pair of edges; then random operands.
__device__ uint16_t operand(const uint32_t* in, uint32_t row, uint32_t which) {
  if (row >= 256) return static_cast<uint16_t>(in[row + 1024 * which]);
  return kEdges[which == 0 ? row % 16 : which == 1 ? row / 16 : (row * 5 + row / 16 * 3) % 16];
}

// Bit `number` of this row: the predicate.
#define FORM(number, instruction)                                                                 \
  {                                                                                               \
    uint32_t result;                                                                              \
    asm volatile("{\n\t.reg .pred p;\n\t" instruction " p, %1, %2;\n\tselp.b32 %0, 1, 0, p;\n\t}" \
                 : "=r"(result)                                                                   \
                 : "h"(a), "h"(b));                                                               \
    bits |= result << number;                                                                     \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint16_t a = operand(in, row, 0);
  const uint16_t b = operand(in, row, 1);
  uint32_t bits = 0;
  FORM(0, "setp.eq.ftz.f16")
  FORM(1, "setp.ne.ftz.f16")
  FORM(2, "setp.lt.ftz.f16")
  FORM(3, "setp.le.ftz.f16")
  FORM(4, "setp.gt.ftz.f16")
  FORM(5, "setp.ge.ftz.f16")
  FORM(6, "setp.equ.ftz.f16")
  FORM(7, "setp.neu.ftz.f16")
  FORM(8, "setp.ltu.ftz.f16")
  FORM(9, "setp.leu.ftz.f16")
  FORM(10, "setp.gtu.ftz.f16")
  FORM(11, "setp.geu.ftz.f16")
  FORM(12, "setp.num.ftz.f16")
  FORM(13, "setp.nan.ftz.f16")
  out[row] = bits;
}
