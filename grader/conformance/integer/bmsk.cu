// bmsk.clamp and .wrap, positions and widths within and beyond 32 bits
// run: --grid 4 --block 128 --out 1024
// source: PTX §9.7.1.22
#include <cstdint>

constexpr uint32_t kRows = 512;
// Positions and lengths, in bits.
__constant__ uint32_t kFields[16] = {0, 1, 2, 5, 8, 16, 24, 31, 32, 33, 48, 63, 64, 65, 128, 255};

// Every pair of position and length, twice.
__device__ uint32_t operand(const uint32_t* in, uint32_t row, uint32_t which) { return in[256 + row + 512 * which]; }
__device__ uint32_t position(const uint32_t*, uint32_t row, uint32_t) { return kFields[row % 16]; }
__device__ uint32_t length(const uint32_t*, uint32_t row, uint32_t) { return kFields[row / 16 % 16]; }

// Result `number` of this row.
#define FORM(number, instruction)                                             \
  {                                                                           \
    uint32_t result;                                                          \
    asm volatile(instruction " %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b)); \
    out[number * kRows + row] = result;                                       \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t a = position(in, row, 0);
  const uint32_t b = length(in, row, 1);
  FORM(0, "bmsk.clamp.b32")
  FORM(1, "bmsk.wrap.b32")
}
