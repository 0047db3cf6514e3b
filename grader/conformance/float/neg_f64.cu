// neg.f64, of numbers
// run: --grid 3 --block 128 --out 768
// source: PTX §9.7.3.10
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

__device__ uint64_t number(const uint32_t* in, uint32_t row, uint32_t) {
  const uint64_t a = operand(in, row, 0);
  return (a & ~0ull >> 1) > 0x7ff0000000000000 ? 0x3ff0000000000000 : a;
}

// Result `number` of this row. The destination is a register for f64: of a 64-bit one, ptxas makes the two words
// that are stored by a conversion to integers.
#define FORM(number, instruction)                                                       \
  {                                                                                     \
    double result;                                                                      \
    asm volatile(instruction " %0, %1;" : "=d"(result) : "d"(__longlong_as_double(a))); \
    const uint64_t bits = __double_as_longlong(result);                                 \
    out[2 * (number * kRows + row)] = static_cast<uint32_t>(bits);                      \
    out[2 * (number * kRows + row) + 1] = static_cast<uint32_t>(bits >> 32);            \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint64_t a = number(in, row, 0);
  FORM(0, "neg.f64")
}
