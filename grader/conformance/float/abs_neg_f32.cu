// abs.f32 and neg.f32, of numbers
// run: --grid 4 --block 128 --out 2048
// source: PTX §9.7.3.9, §9.7.3.10
#include <cstdint>

constexpr uint32_t kRows = 512;

// All special patterns, then random ones; a NaN is replaced by one, it has a case of its own.
__device__ uint32_t operand(const uint32_t* in, uint32_t row, uint32_t) {
  return (in[row] & 0x7fffffff) > 0x7f800000 ? 0x3f800000 : in[row];
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
  const uint32_t a = operand(in, row, 0);
  FORM(0, "abs.f32")
  FORM(1, "neg.f32")
  FORM(2, "abs.ftz.f32")
  FORM(3, "neg.ftz.f32")
}
