// bfind and bfind.shiftamt of u32 and s32, with no bit to find too
// run: --grid 4 --block 128 --out 2048
// source: PTX §9.7.1.16
#include <cstdint>

constexpr uint32_t kRows = 512;

// All special patterns, then random ones.
__device__ uint32_t operand(const uint32_t* in, uint32_t row, uint32_t) { return in[row]; }

// Result `number` of this row.
#define FORM(number, instruction)                                 \
  {                                                               \
    uint32_t result;                                              \
    asm volatile(instruction " %0, %1;" : "=r"(result) : "r"(a)); \
    out[number * kRows + row] = result;                           \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t a = operand(in, row, 0);
  FORM(0, "bfind.u32")
  FORM(1, "bfind.s32")
  FORM(2, "bfind.shiftamt.u32")
  FORM(3, "bfind.shiftamt.s32")
}
