// abs.f32 and neg.f32 of NaNs
// run: --grid 1 --block 128 --out 512
// source: PTX §9.7.3.9, §9.7.3.10
// undefined: abs and neg of a NaN yield an unspecified NaN
#include <cstdint>

constexpr uint32_t kRows = 128;

// NaNs of both signs, quiet and signalling, with small and random payloads.
__device__ uint32_t operand(const uint32_t* in, uint32_t row, uint32_t) {
  return 0x7f800001 | (in[256 + row] & (row < 32 ? 0x80400000 : 0x807fffff));
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
