// cvt of f16 to f64, exact
// run: --grid 2 --block 128 --out 512
// source: PTX §9.7.9.21
#include <cstdint>

constexpr uint32_t kRows = 256;
// Zeros, subnormals, normal numbers, limits, infinities, NaNs.
__constant__ uint16_t kEdges[32] = {0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x8400, 0x3c00,
                                    0xbc00, 0x3c01, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfd01,
                                    0x7d00, 0xfe00, 0x3800, 0x3e00, 0x4100, 0xb800, 0xbe00, 0x57f0,
                                    0x5800, 0x5bf8, 0x5c00, 0x77ff, 0x7800, 0xd800, 0xd808, 0xf800};

// The edges, then random patterns.
__device__ uint16_t operand(const uint32_t* in, uint32_t row, uint32_t) {
  return row < 32 ? kEdges[row] : static_cast<uint16_t>(in[row + 512]);
}

// Result `number` of this row. The destination is a register for f64: of a 64-bit one, ptxas makes the two words
// that are stored by a conversion to integers.
#define FORM(number, instruction)                                            \
  {                                                                          \
    double result;                                                           \
    asm volatile(instruction " %0, %1;" : "=d"(result) : "h"(a));            \
    const uint64_t bits = __double_as_longlong(result);                      \
    out[2 * (number * kRows + row)] = static_cast<uint32_t>(bits);           \
    out[2 * (number * kRows + row) + 1] = static_cast<uint32_t>(bits >> 32); \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint16_t a = operand(in, row, 0);
  FORM(0, "cvt.f64.f16")
}
