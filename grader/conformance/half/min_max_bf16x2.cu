// min and max of bf16x2: NaNs, zeros, .NaN
// run: --grid 3 --block 128 --out 1536
// source: PTX §9.7.4.7, §9.7.4.8
#include <cstdint>

constexpr uint32_t kRows = 384;
// Zeros, subnormals, normal numbers, limits, infinities, a quiet and a signalling NaN.
__constant__ uint16_t kEdges[16] = {0x0000, 0x8000, 0x0001, 0x8001, 0x007f, 0x0080, 0x8080, 0x3f80,
                                    0xbf80, 0x3f81, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0xff81};

// Rows 0 to 255: every pair of edges; then random operands.
__device__ uint16_t operand(const uint32_t* in, uint32_t row, uint32_t which) {
  if (row >= 256) return static_cast<uint16_t>(in[row + 1024 * which]);
  return kEdges[which == 0 ? row % 16 : which == 1 ? row / 16 : (row * 5 + row / 16 * 3) % 16];
}

// Two such operands; the upper half runs through them backwards.
__device__ uint32_t packed(const uint32_t* in, uint32_t row, uint32_t which) {
  return operand(in, row, which) | static_cast<uint32_t>(operand(in, row ^ 255, which)) << 16;
}

// Result `number` of this row.
#define FORM(number, instruction)                                             \
  {                                                                           \
    uint32_t result;                                                          \
    asm volatile(instruction " %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b)); \
    out[number * kRows + row] = result;                                       \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t a = packed(in, row, 0);
  const uint32_t b = packed(in, row, 1);
  FORM(0, "min.bf16x2")
  FORM(1, "max.bf16x2")
  FORM(2, "min.NaN.bf16x2")
  FORM(3, "max.NaN.bf16x2")
}
