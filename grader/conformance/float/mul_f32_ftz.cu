// mul.ftz.f32 in the four roundings: products that round up to the smallest normal number
// run: --grid 10 --block 128 --out 5120
// source: PTX §9.7.3.5
#include <cstdint>

constexpr uint32_t kRows = 1280;

// Rows 0 to 1023: every pair of the first 32 special patterns. Then random significands: near one, and such that
// products become subnormal.
__device__ uint32_t operand(const uint32_t* in, uint32_t row, uint32_t which) {
  if (row >= 1024) {
    const uint32_t bits = in[row + 512 * which];
    const uint32_t exponent = (row < 1152 ? 123 : which < 2 ? 60 : 0) + (bits >> 23 & 7);
    return (bits & 0x807fffff) | exponent << 23;
  }
  return in[which == 0 ? row % 32 : which == 1 ? row / 32 : (row * 5 + row / 32 * 3) % 32];
}

// Result `number` of this row.
#define FORM(number, instruction)                                             \
  {                                                                           \
    uint32_t result;                                                          \
    asm volatile(instruction " %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b)); \
    out[number * kRows + row] = result;                                       \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t a = operand(in, row, 0);
  const uint32_t b = operand(in, row, 1);
  FORM(0, "mul.rn.ftz.f32")
  FORM(1, "mul.rz.ftz.f32")
  FORM(2, "mul.rm.ftz.f32")
  FORM(3, "mul.rp.ftz.f32")
}
