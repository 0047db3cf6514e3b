// szext.clamp and .wrap of s32 and u32, widths 0, 31, 32 and beyond
// run: --grid 6 --block 128 --out 3072
// source: PTX §9.7.1.21
#include <cstdint>

constexpr uint32_t kRows = 768;
// Below, at and beyond the width.
__constant__ uint32_t kCounts[24] = {0,   1,   7,       8,          15,         16,         17,         31,
                                     32,  33,  47,      63,         64,         65,         128,        255,
                                     256, 257, 0x10000, 0x7fffffff, 0x80000000, 0x80000001, 0xffffffe0, 0xffffffff};

// 32 values under each count.
__device__ uint32_t operand(const uint32_t* in, uint32_t row, uint32_t which) {
  return in[256 + row % 32 + 32 * which];
}
__device__ uint32_t count(const uint32_t*, uint32_t row, uint32_t) { return kCounts[row / 32]; }

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
  const uint32_t b = count(in, row, 1);
  FORM(0, "szext.clamp.s32")
  FORM(1, "szext.clamp.u32")
  FORM(2, "szext.wrap.s32")
  FORM(3, "szext.wrap.u32")
}
