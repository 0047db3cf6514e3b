// prmt.f4e, .b4e, .rc8, .ecl, .ecr, .rc16: only the low two bits of the selector count
// run: --grid 2 --block 128 --out 1536
// source: PTX §9.7.9.7
#include <cstdint>

constexpr uint32_t kRows = 256;

__device__ uint32_t operand(const uint32_t* in, uint32_t row, uint32_t which) { return in[256 + row + 1024 * which]; }

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
  FORM(0, "prmt.b32.f4e")
  FORM(1, "prmt.b32.b4e")
  FORM(2, "prmt.b32.rc8")
  FORM(3, "prmt.b32.ecl")
  FORM(4, "prmt.b32.ecr")
  FORM(5, "prmt.b32.rc16")
}
