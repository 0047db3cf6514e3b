// cvt of s32 and u32 to f32 in the four roundings
// run: --grid 4 --block 128 --out 4096
// source: PTX §9.7.9.21
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
  FORM(0, "cvt.rn.f32.s32")
  FORM(1, "cvt.rz.f32.s32")
  FORM(2, "cvt.rm.f32.s32")
  FORM(3, "cvt.rp.f32.s32")
  FORM(4, "cvt.rn.f32.u32")
  FORM(5, "cvt.rz.f32.u32")
  FORM(6, "cvt.rm.f32.u32")
  FORM(7, "cvt.rp.f32.u32")
}
