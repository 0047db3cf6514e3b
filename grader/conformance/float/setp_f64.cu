// setp.f64: ordered and unordered comparisons, .num and .nan
// run: --grid 3 --block 128 --out 384
// source: PTX §9.7.6.2
#include <cstdint>

constexpr uint32_t kRows = 384;
// Zeros, subnormals, normal numbers, limits, infinities, NaNs.
__constant__ uint64_t kEdges[16] = {0,
                                    0x8000000000000000,
                                    1,
                                    0x8000000000000001,
                                    0x000fffffffffffff,
                                    0x0010000000000000,
                                    0x8010000000000000,
                                    0x3ff0000000000000,
                                    0xbff0000000000000,
                                    0x3ff0000000000001,
                                    0x7fefffffffffffff,
                                    0xffefffffffffffff,
                                    0x7ff0000000000000,
                                    0xfff0000000000000,
                                    0x7ff8000000000000,
                                    0xfff8000000000123};

// Rows 0 to 255: every pair of edges. Then random significands: near one, and such that products become subnormal.
__device__ uint64_t operand(const uint32_t* in, uint32_t row, uint32_t which) {
  if (row >= 256) {
    const uint32_t high = in[row + 1024 * which], low = in[row + 1024 * which + 512];
    const uint32_t exponent = (row < 320 ? 1019 : which < 2 ? 508 : 0) + (high >> 20 & 7);
    return uint64_t{(high & 0x800fffff) | exponent << 20} << 32 | low;
  }
  return kEdges[which == 0 ? row % 16 : which == 1 ? row / 16 : (row * 5 + row / 16 * 3) % 16];
}

// Bit `number` of this row: the predicate.
#define FORM(number, instruction)                                                                 \
  {                                                                                               \
    uint32_t result;                                                                              \
    asm volatile("{\n\t.reg .pred p;\n\t" instruction " p, %1, %2;\n\tselp.b32 %0, 1, 0, p;\n\t}" \
                 : "=r"(result)                                                                   \
                 : "l"(a), "l"(b));                                                               \
    bits |= result << number;                                                                     \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint64_t a = operand(in, row, 0);
  const uint64_t b = operand(in, row, 1);
  uint32_t bits = 0;
  FORM(0, "setp.eq.f64")
  FORM(1, "setp.ne.f64")
  FORM(2, "setp.lt.f64")
  FORM(3, "setp.le.f64")
  FORM(4, "setp.gt.f64")
  FORM(5, "setp.ge.f64")
  FORM(6, "setp.equ.f64")
  FORM(7, "setp.neu.f64")
  FORM(8, "setp.ltu.f64")
  FORM(9, "setp.leu.f64")
  FORM(10, "setp.gtu.f64")
  FORM(11, "setp.geu.f64")
  FORM(12, "setp.num.f64")
  FORM(13, "setp.nan.f64")
  out[row] = bits;
}
