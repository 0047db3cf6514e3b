// testp.f32: every class
// run: --grid 4 --block 128 --out 512
// source: PTX §9.7.3.1
#include <cstdint>

constexpr uint32_t kRows = 512;

// All special patterns, then random ones.
__device__ uint32_t operand(const uint32_t* in, uint32_t row, uint32_t) { return in[row]; }

// Bit `number` of this row: the predicate.
#define FORM(number, instruction)                                                             \
  {                                                                                           \
    uint32_t result;                                                                          \
    asm volatile("{\n\t.reg .pred p;\n\t" instruction " p, %1;\n\tselp.b32 %0, 1, 0, p;\n\t}" \
                 : "=r"(result)                                                               \
                 : "r"(a));                                                                   \
    bits |= result << number;                                                                 \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t a = operand(in, row, 0);
  uint32_t bits = 0;
  FORM(0, "testp.finite.f32")
  FORM(1, "testp.infinite.f32")
  FORM(2, "testp.number.f32")
  FORM(3, "testp.notanumber.f32")
  FORM(4, "testp.normal.f32")
  FORM(5, "testp.subnormal.f32")
  out[row] = bits;
}
