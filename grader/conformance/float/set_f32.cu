// set: all ones for integers, 1.0 for f32
// run: --grid 8 --block 128 --out 4096
// source: PTX §9.7.6.1
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
  FORM(0, "set.lt.u32.f32")
  FORM(1, "set.leu.s32.f32")
  FORM(2, "set.neu.f32.f32")
  FORM(3, "set.gt.ftz.f32.f32")
}
