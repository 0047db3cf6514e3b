// cvt of bf16 to f32, of NaNs
// run: --grid 2 --block 128 --out 256
// source: PTX §9.7.9.21
// undefined: cvt.f32.bf16 of a NaN yields an unspecified NaN
#include <cstdint>

constexpr uint32_t kRows = 256;

// Every NaN.
__device__ uint16_t operand(const uint32_t* in, uint32_t row, uint32_t) {
  return in[0] + (0x7f80 | row % 128 | (row < 128 ? 0 : 0x8000)) + (row % 128 == 0 ? 1 : 0);  // in[0] is +0
}

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
  FORM(0, "cvt.f32.bf16")
}
