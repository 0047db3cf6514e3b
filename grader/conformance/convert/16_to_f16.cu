// cvt of s16 and u16 to f16
// run: --grid 3 --block 128 --out 3072
// source: PTX §9.7.9.21
#include <cstdint>

constexpr uint32_t kRows = 384;
// Limits and their neighbours.
__constant__ uint16_t kEdges[16] = {0,      1,    2,    3,    0xffff, 0xfffe, 0x8000, 0x8001,
                                    0x7fff, 0x7f, 0x80, 0xff, 0x100,  0xff80, 0x5555, 0xaaaa};

// Rows 0 to 255: every pair of edges; then random operands.
__device__ uint16_t operand(const uint32_t* in, uint32_t row, uint32_t which) {
  if (row >= 256) return static_cast<uint16_t>(in[row + 1024 * which]);
  return kEdges[which == 0 ? row % 16 : which == 1 ? row / 16 : (row * 5 + row / 16 * 3) % 16];
}

// Result `number` of this row.
#define FORM(number, instruction)                                 \
  {                                                               \
    uint16_t result;                                              \
    asm volatile(instruction " %0, %1;" : "=h"(result) : "h"(a)); \
    out[number * kRows + row] = result;                           \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint16_t a = operand(in, row, 0);
  FORM(0, "cvt.rn.f16.s16")
  FORM(1, "cvt.rn.f16.u16")
  FORM(2, "cvt.rz.f16.s16")
  FORM(3, "cvt.rz.f16.u16")
  FORM(4, "cvt.rm.f16.s16")
  FORM(5, "cvt.rm.f16.u16")
  FORM(6, "cvt.rp.f16.s16")
  FORM(7, "cvt.rp.f16.u16")
}
