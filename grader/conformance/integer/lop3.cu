// lop3 with tables of one minterm each, and of common functions
// run: --grid 2 --block 128 --out 3328
// source: PTX §9.7.8.6
#include <cstdint>

constexpr uint32_t kRows = 256;

__device__ uint32_t operand(const uint32_t* in, uint32_t row, uint32_t which) { return in[256 + row + 1024 * which]; }

// Result `number` of this row.
#define FORM(number, instruction, rest)                                                             \
  {                                                                                                 \
    uint32_t result;                                                                                \
    asm volatile(instruction " %0, %1, %2, %3, " rest ";" : "=r"(result) : "r"(a), "r"(b), "r"(c)); \
    out[number * kRows + row] = result;                                                             \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t a = operand(in, row, 0);
  const uint32_t b = operand(in, row, 1);
  const uint32_t c = operand(in, row, 2);
  FORM(0, "lop3.b32", "0x01")
  FORM(1, "lop3.b32", "0x02")
  FORM(2, "lop3.b32", "0x04")
  FORM(3, "lop3.b32", "0x08")
  FORM(4, "lop3.b32", "0x10")
  FORM(5, "lop3.b32", "0x20")
  FORM(6, "lop3.b32", "0x40")
  FORM(7, "lop3.b32", "0x80")
  FORM(8, "lop3.b32", "0xe8")
  FORM(9, "lop3.b32", "0x96")
  FORM(10, "lop3.b32", "0xca")
  FORM(11, "lop3.b32", "0x00")
  FORM(12, "lop3.b32", "0xff")
}
