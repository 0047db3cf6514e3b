// cvt of bf16 to f64, exact
// run: --grid 2 --block 128 --out 512
// source: PTX §9.7.9.21
#include <cstdint>

constexpr uint32_t kRows = 256;
// Zeros, subnormals, normal numbers, limits, infinities, NaNs.
__constant__ uint16_t kEdges[34] = {0x0000, 0x8000, 0x0001, 0x8001, 0x007f, 0x0080, 0x8080, 0x3f80, 0xbf80,
                                    0x3f81, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0xff81, 0x7f81, 0xffc0,
                                    0x3f00, 0x3fc0, 0x4020, 0xbf00, 0xbfc0, 0x42fe, 0x4300, 0x437f, 0x4380,
                                    0x4eff, 0x4f00, 0x4f80, 0xcf00, 0x5f00, 0x5f80, 0xdf00};

// The edges, then random patterns.
__device__ uint16_t operand(const uint32_t* in, uint32_t row, uint32_t) {
  return row < 34 ? kEdges[row] : static_cast<uint16_t>(in[row + 512]);
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
  FORM(0, "cvt.f64.bf16")
}
