// cvt of e4m3x2 to f16x2: every code, with .relu
// run: --grid 2 --block 128 --out 512
// source: PTX §9.7.9.21
#include <cstdint>

constexpr uint32_t kRows = 256;

// Every code in the lower part, backwards in the upper one.
__device__ uint16_t operand(const uint32_t* in, uint32_t row, uint32_t) { return in[0] + (row | (row ^ 255) << 8); }

// Result `number` of this row.
#define FORM(number, instruction)                                 \
  {                                                               \
    uint32_t result;                                              \
    asm volatile(instruction " %0, %1;" : "=r"(result) : "h"(a)); \
    out[number * kRows + row] = result;                           \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint16_t a = operand(in, row, 0);
  FORM(0, "cvt.rn.f16x2.e4m3x2")
  FORM(1, "cvt.rn.relu.f16x2.e4m3x2")
}
