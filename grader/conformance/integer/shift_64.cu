// shl and shr of 64 bits with counts up to and beyond 64
// run: --grid 6 --block 128 --out 4608
// source: PTX §9.7.8.8, §9.7.8.9
#include <cstdint>

constexpr uint32_t kRows = 768;
// Below, at and beyond the width.
__constant__ uint32_t kCounts[24] = {0,   1,   7,       8,          15,         16,         17,         31,
                                     32,  33,  47,      63,         64,         65,         128,        255,
                                     256, 257, 0x10000, 0x7fffffff, 0x80000000, 0x80000001, 0xffffffe0, 0xffffffff};

// 32 values under each count.
__device__ uint64_t operand(const uint32_t* in, uint32_t row, uint32_t which) {
  const uint32_t i = 256 + row % 32 + 32 * which;
  return uint64_t{in[i]} << 32 | in[i + 512];
}
__device__ uint32_t count(const uint32_t*, uint32_t row, uint32_t) { return kCounts[row / 32]; }

// Result `number` of this row.
#define FORM(number, instruction)                                              \
  {                                                                            \
    uint64_t result;                                                           \
    asm volatile(instruction " %0, %1, %2;" : "=l"(result) : "l"(a), "r"(b));  \
    out[2 * (number * kRows + row)] = static_cast<uint32_t>(result);           \
    out[2 * (number * kRows + row) + 1] = static_cast<uint32_t>(result >> 32); \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint64_t a = operand(in, row, 0);
  const uint32_t b = count(in, row, 1);
  FORM(0, "shl.b64")
  FORM(1, "shr.u64")
  FORM(2, "shr.s64")
}
