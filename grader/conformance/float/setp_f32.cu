// setp.f32: ordered and unordered comparisons, .num and .nan
// run: --grid 8 --block 128 --out 1024
// source: PTX §9.7.6.2
#include <cstdint>

constexpr uint32_t kRows = 1024;

// Every pair of the first 32 special patterns.
__device__ uint32_t operand(const uint32_t* in, uint32_t row, uint32_t which) {
  return in[which == 0 ? row % 32 : which == 1 ? row / 32 : (row * 5 + row / 32 * 3) % 32];
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
  FORM(0, "setp.eq.f32")
  FORM(1, "setp.ne.f32")
  FORM(2, "setp.lt.f32")
  FORM(3, "setp.le.f32")
  FORM(4, "setp.gt.f32")
  FORM(5, "setp.ge.f32")
  FORM(6, "setp.equ.f32")
  FORM(7, "setp.neu.f32")
  FORM(8, "setp.ltu.f32")
  FORM(9, "setp.leu.f32")
  FORM(10, "setp.gtu.f32")
  FORM(11, "setp.geu.f32")
  FORM(12, "setp.num.f32")
  FORM(13, "setp.nan.f32")
  out[row] = bits;
}
