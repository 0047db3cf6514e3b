// cvt of f32 to bf16 in four roundings, with .relu
// run: --grid 4 --block 128 --out 3072
// source: PTX §9.7.9.21
#include <cstdint>

constexpr uint32_t kRows = 512;

// All special patterns; then numbers about the range of f16: random, halfway between two of its numbers, subnormal
// there.
__device__ uint32_t operand(const uint32_t* in, uint32_t row, uint32_t) {
  const uint32_t bits = in[row];
  if (row < 256) return bits;
  const uint32_t kept = row % 3 == 0 ? 0x807fffff : row % 3 == 1 ? 0x807ff000 : 0x807f8000;
  return (bits & kept) | (100 + (bits >> 23 & 0xff) % 45) << 23;
}

// Result `number` of this row.
#define FORM(number, instruction)                                 \
  {                                                               \
    uint16_t result;                                              \
    asm volatile(instruction " %0, %1;" : "=h"(result) : "r"(a)); \
    out[number * kRows + row] = result;                           \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t a = operand(in, row, 0);
  FORM(0, "cvt.rn.bf16.f32")
  FORM(1, "cvt.rz.bf16.f32")
  FORM(2, "cvt.rm.bf16.f32")
  FORM(3, "cvt.rp.bf16.f32")
  FORM(4, "cvt.rn.relu.bf16.f32")
  FORM(5, "cvt.rz.relu.bf16.f32")
}
