// cvt of 8, 16 and 32 bits to 64, and .sat between 64-bit types
// run: --grid 4 --block 128 --out 8192
// source: PTX §9.7.9.21
#include <cstdint>

constexpr uint32_t kRows = 512;

// All special patterns, then random ones.
__device__ uint32_t operand(const uint32_t* in, uint32_t row, uint32_t) { return in[row]; }

// Result `number` of this row.
#define FORM(number, instruction)                                              \
  {                                                                            \
    uint64_t result;                                                           \
    asm volatile(instruction " %0, %1;" : "=l"(result) : "r"(a));              \
    out[2 * (number * kRows + row)] = static_cast<uint32_t>(result);           \
    out[2 * (number * kRows + row) + 1] = static_cast<uint32_t>(result >> 32); \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t a = operand(in, row, 0);
  FORM(0, "cvt.s64.s32")
  FORM(1, "cvt.u64.u32")
  FORM(2, "cvt.u64.s32")
  FORM(3, "cvt.sat.u64.s32")
  FORM(4, "cvt.s64.s8")
  FORM(5, "cvt.u64.u8")
  FORM(6, "cvt.s64.s16")
  FORM(7, "cvt.u64.u16")
}
