// cvt of 64 bits to 32, truncating and .sat
// run: --grid 3 --block 128 --out 2304
// source: PTX §9.7.9.21
#include <cstdint>

constexpr uint32_t kRows = 384;
// Limits and their neighbours.
__constant__ uint64_t kEdges[16] = {0,
                                    1,
                                    2,
                                    ~0ull,
                                    ~1ull,
                                    1ull << 63,
                                    (1ull << 63) + 1,
                                    ~0ull >> 1,
                                    0xffffffff,
                                    1ull << 32,
                                    (1ull << 32) + 1,
                                    1ull << 31,
                                    0xffffffff80000000,
                                    0x7fffffff00000000,
                                    0x00000001ffffffff,
                                    0xfffffffe00000001};

// Rows 0 to 255: every pair of edges; then random operands.
__device__ uint64_t operand(const uint32_t* in, uint32_t row, uint32_t which) {
  if (row >= 256) return in[row + 1024 * which] | uint64_t{in[row + 1024 * which + 512]} << 32;
  return kEdges[which == 0 ? row % 16 : which == 1 ? row / 16 : (row * 5 + row / 16 * 3) % 16];
}

// Result `number` of this row.
#define FORM(number, instruction)                                 \
  {                                                               \
    uint32_t result;                                              \
    asm volatile(instruction " %0, %1;" : "=r"(result) : "l"(a)); \
    out[number * kRows + row] = result;                           \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint64_t a = operand(in, row, 0);
  FORM(0, "cvt.u32.u64")
  FORM(1, "cvt.s32.s64")
  FORM(2, "cvt.sat.u32.s64")
  FORM(3, "cvt.sat.s32.s64")
  FORM(4, "cvt.sat.s32.u64")
  FORM(5, "cvt.sat.u32.u64")
}
