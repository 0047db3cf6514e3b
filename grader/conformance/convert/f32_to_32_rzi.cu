// cvt.rzi of f32 to s32 and u32: out of range saturates, and what a NaN gives
// run: --grid 4 --block 128 --out 1536
// source: PTX §9.7.9.21
#include <cstdint>

constexpr uint32_t kRows = 512;

// All special patterns; then random significands with exponents from -8 to 71, halves and integers among them.
__device__ uint32_t operand(const uint32_t* in, uint32_t row, uint32_t) {
  const uint32_t bits = in[row];
  if (row < 256) return bits;
  const uint32_t kept = row % 2 == 0 ? 0x807fffff : 0x80700000;
  return (bits & kept) | (119 + (bits >> 23 & 0xff) % 80) << 23;
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
  FORM(0, "cvt.rzi.s32.f32")
  FORM(1, "cvt.rzi.u32.f32")
  FORM(2, "cvt.rzi.ftz.s32.f32")
}
