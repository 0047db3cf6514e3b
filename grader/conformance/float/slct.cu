// slct by an f32: -0 counts as not negative, a NaN takes the second
// run: --grid 8 --block 128 --out 2048
// source: PTX §9.7.6.4
#include <cstdint>

constexpr uint32_t kRows = 1024;

// Every pair of the first 32 special patterns.
__device__ uint32_t operand(const uint32_t* in, uint32_t row, uint32_t which) {
  return in[which == 0 ? row % 32 : which == 1 ? row / 32 : (row * 5 + row / 32 * 3) % 32];
}

// Result `number` of this row.
#define FORM(number, instruction)                                                         \
  {                                                                                       \
    uint32_t result;                                                                      \
    asm volatile(instruction " %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c)); \
    out[number * kRows + row] = result;                                                   \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t a = operand(in, row, 0);
  const uint32_t b = operand(in, row, 1);
  const uint32_t c = operand(in, row, 2);
  FORM(0, "slct.b32.f32")
  FORM(1, "slct.ftz.f32.f32")
}
