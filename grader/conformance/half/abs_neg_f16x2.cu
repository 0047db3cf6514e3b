// abs and neg of f16x2, of numbers
// run: --grid 3 --block 128 --out 768
// source: PTX §9.7.4.5, §9.7.4.6
#include <cstdint>

constexpr uint32_t kRows = 384;
// Zeros, subnormals, normal numbers, limits, infinities, a quiet and a signalling NaN.
__constant__ uint16_t kEdges[16] = {0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x8400, 0x3c00,
                                    0xbc00, 0x3c01, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfd01};

// Rows 0 to 255: every pair of edges; then random operands.
__device__ uint16_t operand(const uint32_t* in, uint32_t row, uint32_t which) {
  if (row >= 256) return static_cast<uint16_t>(in[row + 1024 * which]);
  return kEdges[which == 0 ? row % 16 : which == 1 ? row / 16 : (row * 5 + row / 16 * 3) % 16];
}

// A NaN is replaced by one, it has a case of its own.
__device__ uint16_t number(const uint32_t* in, uint32_t row, uint32_t) {
  const uint16_t a = operand(in, row, 0);
  return (a & 0x7fff) > 0x7c00 ? 0x3c00 : a;
}

__device__ uint32_t packed(const uint32_t* in, uint32_t row, uint32_t) {
  return number(in, row, 0) | static_cast<uint32_t>(number(in, row ^ 255, 0)) << 16;
}

// Result `number` of this row.
#define FORM(number, instruction)                                 \
  {                                                               \
    uint32_t result;                                              \
    asm volatile(instruction " %0, %1;" : "=r"(result) : "r"(a)); \
    out[number * kRows + row] = result;                           \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t a = packed(in, row, 0);
  FORM(0, "abs.f16x2")
  FORM(1, "neg.f16x2")
}
