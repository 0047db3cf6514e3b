// bfe.u32 and bfe.s32: only the low 8 bits of position and length count
// run: --grid 4 --block 128 --out 1024
// source: PTX §9.7.1.19
#include <cstdint>

constexpr uint32_t kRows = 512;
// Positions and lengths, in bits.
__constant__ uint32_t kFields[16] = {0,   1,     31,    32,      255,     256,        257,        264,
                                     288, 0x101, 0x1ff, 0x10000, 0x10008, 0x80000008, 0xffffff08, 0xffffffff};

// Every pair of position and length, twice.
__device__ uint32_t operand(const uint32_t* in, uint32_t row, uint32_t which) { return in[256 + row + 512 * which]; }
__device__ uint32_t position(const uint32_t*, uint32_t row, uint32_t) { return kFields[row % 16]; }
__device__ uint32_t length(const uint32_t*, uint32_t row, uint32_t) { return kFields[row / 16 % 16]; }

// Result `number` of this row.
#define FORM(number, instruction)                                                         \
  {                                                                                       \
    uint32_t result;                                                                      \
    asm volatile(instruction " %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c)); \
    out[number * kRows + row] = result;                                                   \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t a = operand(in, row, 0);
  const uint32_t b = position(in, row, 1);
  const uint32_t c = length(in, row, 2);
  FORM(0, "bfe.u32")
  FORM(1, "bfe.s32")
}
