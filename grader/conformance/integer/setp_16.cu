// setp of s16 and u16 in every comparison
// run: --grid 3 --block 128 --out 384
// source: PTX §9.7.6.2
#include <cstdint>

constexpr uint32_t kRows = 384;
// Limits and their neighbours.
__constant__ uint16_t kEdges[16] = {0,      1,    2,    3,    0xffff, 0xfffe, 0x8000, 0x8001,
                                    0x7fff, 0x7f, 0x80, 0xff, 0x100,  0xff80, 0x5555, 0xaaaa};

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
  FORM(0, "setp.eq.s16")
  FORM(1, "setp.ne.s16")
  FORM(2, "setp.lt.s16")
  FORM(3, "setp.le.s16")
  FORM(4, "setp.gt.s16")
  FORM(5, "setp.ge.s16")
  FORM(6, "setp.eq.u16")
  FORM(7, "setp.ne.u16")
  FORM(8, "setp.lt.u16")
  FORM(9, "setp.le.u16")
  FORM(10, "setp.gt.u16")
  FORM(11, "setp.ge.u16")
  out[row] = bits;
}
