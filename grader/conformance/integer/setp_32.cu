// setp of s32, u32 and b32 in every comparison
// run: --grid 3 --block 128 --out 384
// source: PTX §9.7.6.2
#include <cstdint>

constexpr uint32_t kRows = 384;
// Limits and their neighbours.
__constant__ uint32_t kEdges[16] = {0,    1,    2,    0xffffffff, 0xfffffffe, 0x80000000, 0x80000001, 0x7fffffff,
                                    0x7f, 0x80, 0xff, 0x7fff,     0x8000,     0xffff,     0x00800000, 0xff7fffff};

// Rows 0 to 255: every pair of edges; then random operands.
__device__ uint32_t operand(const uint32_t* in, uint32_t row, uint32_t which) {
  if (row >= 256) return in[row + 1024 * which];
  return kEdges[which == 0 ? row % 16 : which == 1 ? row / 16 : (row * 5 + row / 16 * 3) % 16];
}

// Bit `number` of this row: the predicate.
#define FORM(number, instruction)                                                                 \
  {                                                                                               \
    uint32_t result;                                                                              \
    asm volatile("{\n\t.reg .pred p;\n\t" instruction " p, %1, %2;\n\tselp.b32 %0, 1, 0, p;\n\t}" \
                 : "=r"(result)                                                                   \
                 : "r"(a), "r"(b));                                                               \
    bits |= result << number;                                                                     \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t a = operand(in, row, 0);
  const uint32_t b = operand(in, row, 1);
  uint32_t bits = 0;
  FORM(0, "setp.eq.s32")
  FORM(1, "setp.ne.s32")
  FORM(2, "setp.lt.s32")
  FORM(3, "setp.le.s32")
  FORM(4, "setp.gt.s32")
  FORM(5, "setp.ge.s32")
  FORM(6, "setp.eq.u32")
  FORM(7, "setp.ne.u32")
  FORM(8, "setp.lt.u32")
  FORM(9, "setp.le.u32")
  FORM(10, "setp.gt.u32")
  FORM(11, "setp.ge.u32")
  FORM(12, "setp.lo.u32")
  FORM(13, "setp.ls.u32")
  FORM(14, "setp.hi.u32")
  FORM(15, "setp.hs.u32")
  FORM(16, "setp.eq.b32")
  FORM(17, "setp.ne.b32")
  out[row] = bits;
}
