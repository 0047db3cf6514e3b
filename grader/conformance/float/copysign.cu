// copysign.f32: the sign of the first operand, the magnitude of the second, NaNs included
// run: --grid 8 --block 128 --out 1024
// source: PTX §9.7.3.2
#include <cstdint>

constexpr uint32_t kRows = 1024;

// Every pair of the first 32 special patterns.
__device__ uint32_t operand(const uint32_t* in, uint32_t row, uint32_t which) {
  return in[which == 0 ? row % 32 : which == 1 ? row / 32 : (row * 5 + row / 32 * 3) % 32];
}

// Result `number` of this row.
#define FORM(number, instruction)                                             \
  {                                                                           \
    uint32_t result;                                                          \
    asm volatile(instruction " %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b)); \
    out[number * kRows + row] = result;                                       \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t a = operand(in, row, 0);
  const uint32_t b = operand(in, row, 1);
  FORM(0, "copysign.f32")
}
