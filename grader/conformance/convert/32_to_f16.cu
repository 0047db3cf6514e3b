// cvt of s32 and u32 to f16
// run: --grid 4 --block 128 --out 4096
// source: PTX §9.7.9.21
#include <cstdint>

constexpr uint32_t kRows = 512;

// All special patterns, then random ones.
__device__ uint32_t operand(const uint32_t* in, uint32_t row, uint32_t) { return in[row]; }

// Result `number` of this row.
#define FORM(number, instruction)                                 \
  {                                                               \
    uint16_t result;                                              \
    asm volatile(instruction " %0, %1;" : "=h"(result) : "r"(a)); \
    out[number * kRows + row] = result;                           \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t a = operand(in, row, 0);
  FORM(0, "cvt.rn.f16.s32")
  FORM(1, "cvt.rn.f16.u32")
  FORM(2, "cvt.rz.f16.s32")
  FORM(3, "cvt.rz.f16.u32")
  FORM(4, "cvt.rm.f16.s32")
  FORM(5, "cvt.rm.f16.u32")
  FORM(6, "cvt.rp.f16.s32")
  FORM(7, "cvt.rp.f16.u32")
}
