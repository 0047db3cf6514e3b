// fns: the n-th set bit from a base, both ways, and none
// run: --grid 4 --block 128 --out 512
// source: PTX §9.7.1.17
#include <cstdint>

constexpr uint32_t kRows = 512;

__constant__ int32_t kOffsets[8] = {0, 1, -1, 2, -2, 5, -5, 32};

// Masks with few, half and all bits; bases 0 to 31; offsets of both signs.
__device__ uint32_t mask(const uint32_t* in, uint32_t row, uint32_t) {
  const uint32_t bits = in[256 + row];
  return row % 5 == 0 ? bits & in[1280 + row] & in[2304 + row] : row % 5 == 1 ? ~0u : row % 5 == 2 ? 0u : bits;
}
__device__ uint32_t base(const uint32_t*, uint32_t row, uint32_t) { return row % 32; }
__device__ uint32_t offset(const uint32_t*, uint32_t row, uint32_t) { return kOffsets[row / 32 % 8]; }

// Result `number` of this row.
#define FORM(number, instruction)                                                         \
  {                                                                                       \
    uint32_t result;                                                                      \
    asm volatile(instruction " %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c)); \
    out[number * kRows + row] = result;                                                   \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t a = mask(in, row, 0);
  const uint32_t b = base(in, row, 1);
  const uint32_t c = offset(in, row, 2);
  FORM(0, "fns.b32")
}
