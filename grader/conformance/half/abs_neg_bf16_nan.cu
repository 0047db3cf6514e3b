// abs and neg of bf16, of NaNs
// run: --grid 1 --block 128 --out 256
// source: PTX §9.7.4.5, §9.7.4.6
// undefined: abs and neg of a NaN yield an unspecified NaN
#include <cstdint>

constexpr uint32_t kRows = 128;

// NaNs of both signs, quiet and signalling, with random payloads.
__device__ uint16_t operand(const uint32_t* in, uint32_t row, uint32_t) { return 0x7f80 | 1 | in[256 + row]; }

// Result `number` of this row.
#define FORM(number, instruction)                                 \
  {                                                               \
    uint16_t result;                                              \
    asm volatile(instruction " %0, %1;" : "=h"(result) : "h"(a)); \
    out[number * kRows + row] = result;                           \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint16_t a = operand(in, row, 0);
  FORM(0, "abs.bf16")
  FORM(1, "neg.bf16")
}
