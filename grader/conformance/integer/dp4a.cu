// dp4a with signed and unsigned bytes; the sum wraps
// run: --grid 3 --block 128 --out 1536
// source: PTX §9.7.1.23
#include <cstdint>

constexpr uint32_t kRows = 384;
// Limits and their neighbours.
__constant__ uint32_t kEdges[16] = {0,    1,    2,          0xffffffff, 0xfffffffe, 0x80000000, 0x80000001, 0x7fffffff,
                                    0x7f, 0x80, 0x80808080, 0x7f7f7f7f, 0xff00ff00, 0x01020304, 0x80ff7f01, 0x00ff8000};

// Rows 0 to 255: every pair of edges; then random operands.
__device__ uint32_t operand(const uint32_t* in, uint32_t row, uint32_t which) {
  if (row >= 256) return in[row + 1024 * which];
  return kEdges[which == 0 ? row % 16 : which == 1 ? row / 16 : (row * 5 + row / 16 * 3) % 16];
}

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
  const uint32_t b = operand(in, row, 1);
  const uint32_t c = operand(in, row, 2);
  FORM(0, "dp4a.s32.s32")
  FORM(1, "dp4a.s32.u32")
  FORM(2, "dp4a.u32.s32")
  FORM(3, "dp4a.u32.u32")
}
