// div and rem of 32 bits by zero
// run: --grid 2 --block 128 --out 1024
// source: PTX §9.7.1.8, §9.7.1.9
// undefined: division by zero yields an unspecified, machine-specific value
#include <cstdint>

constexpr uint32_t kRows = 256;

// All special patterns.
__device__ uint32_t operand(const uint32_t* in, uint32_t row, uint32_t) { return in[row]; }

// A zero that the compiler cannot know: word 0 of the input is +0.
__device__ uint32_t zero(const uint32_t* in, uint32_t, uint32_t) { return in[0]; }

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
  const uint32_t b = zero(in, row, 1);
  FORM(0, "div.s32")
  FORM(1, "div.u32")
  FORM(2, "rem.s32")
  FORM(3, "rem.u32")
}
