// setp of bf16: ordered and unordered comparisons
// run: --grid 3 --block 128 --out 384
// source: PTX §9.7.7.2
#include <cstdint>

constexpr uint32_t kRows = 384;
// Zeros, subnormals, normal numbers, limits, infinities, a quiet and a signalling NaN.
__constant__ uint16_t kEdges[16] = {0x0000, 0x8000, 0x0001, 0x8001, 0x007f, 0x0080, 0x8080, 0x3f80,
                                    0xbf80, 0x3f81, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0xff81};

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
  FORM(0, "setp.eq.bf16")
  FORM(1, "setp.ne.bf16")
  FORM(2, "setp.lt.bf16")
  FORM(3, "setp.le.bf16")
  FORM(4, "setp.gt.bf16")
  FORM(5, "setp.ge.bf16")
  FORM(6, "setp.equ.bf16")
  FORM(7, "setp.neu.bf16")
  FORM(8, "setp.ltu.bf16")
  FORM(9, "setp.leu.bf16")
  FORM(10, "setp.gtu.bf16")
  FORM(11, "setp.geu.bf16")
  FORM(12, "setp.num.bf16")
  FORM(13, "setp.nan.bf16")
  out[row] = bits;
}
