// lop3.or and .and: the predicate compares the result with zero and combines it with another
// run: --grid 3 --block 128 --out 768
// source: PTX §9.7.8.6
#include <cstdint>

constexpr uint32_t kRows = 384;
// Limits and their neighbours.
__constant__ uint32_t kEdges[16] = {0,      1,    2,    3,    0xffff, 0xfffe, 0x8000, 0x8001,
                                    0x7fff, 0x7f, 0x80, 0xff, 0x100,  0xff80, 0x5555, 0xaaaa};

// Rows 0 to 255: every pair of edges; then random operands.
__device__ uint32_t operand(const uint32_t* in, uint32_t row, uint32_t which) {
  if (row >= 256) return in[row + 1024 * which];
  return kEdges[which == 0 ? row % 16 : which == 1 ? row / 16 : (row * 5 + row / 16 * 3) % 16];
}

// Result `number` of this row.
#define FORM(number, instruction)                                                      \
  {                                                                                    \
    uint32_t result;                                                                   \
    asm volatile("{\n\t" instruction "\n\t}" : "=r"(result) : "r"(a), "r"(b), "r"(c)); \
    out[number * kRows + row] = result;                                                \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t a = operand(in, row, 0);
  const uint32_t b = operand(in, row, 1);
  const uint32_t c = operand(in, row, 2);
  FORM(0, ".reg .pred p, q; setp.ne.u32 q, %3, 0; lop3.or.b32 %0|p, %1, %2, %3, 0x80, q; selp.b32 %0, 1, 0, p;")
  FORM(1, ".reg .pred p, q; setp.ne.u32 q, %3, 0; lop3.and.b32 %0|p, %1, %2, %3, 0x96, q; selp.b32 %0, 1, 0, p;")
}
