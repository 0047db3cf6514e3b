// bfi.b64, fields within and beyond the word
// run: --grid 4 --block 128 --out 1024
// source: PTX §9.7.1.20
#include <cstdint>

constexpr uint32_t kRows = 512;
// Positions and lengths, in bits.
__constant__ uint32_t kFields[16] = {0, 1, 2, 5, 8, 16, 24, 31, 32, 33, 48, 63, 64, 65, 128, 255};

// Every pair of position and length, twice.
__device__ uint64_t operand(const uint32_t* in, uint32_t row, uint32_t which) {
  const uint32_t i = 256 + row + 1024 * which;
  return uint64_t{in[i]} << 32 | in[i + 512];
}
__device__ uint32_t position(const uint32_t*, uint32_t row, uint32_t) { return kFields[row % 16]; }
__device__ uint32_t length(const uint32_t*, uint32_t row, uint32_t) { return kFields[row / 16 % 16]; }

// Result `number` of this row.
#define FORM(number, instruction)                                                                     \
  {                                                                                                   \
    uint64_t result;                                                                                  \
    asm volatile(instruction " %0, %1, %2, %3, %4;" : "=l"(result) : "l"(a), "l"(b), "r"(c), "r"(d)); \
    out[2 * (number * kRows + row)] = static_cast<uint32_t>(result);                                  \
    out[2 * (number * kRows + row) + 1] = static_cast<uint32_t>(result >> 32);                        \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint64_t a = operand(in, row, 0);
  const uint64_t b = operand(in, row, 1);
  const uint32_t c = position(in, row, 2);
  const uint32_t d = length(in, row, 3);
  FORM(0, "bfi.b64")
}
