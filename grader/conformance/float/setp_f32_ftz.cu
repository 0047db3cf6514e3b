// setp.ftz.f32: subnormals compare as zeros
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
  FORM(0, "setp.eq.ftz.f32")
  FORM(1, "setp.ne.ftz.f32")
  FORM(2, "setp.lt.ftz.f32")
  FORM(3, "setp.le.ftz.f32")
  FORM(4, "setp.gt.ftz.f32")
  FORM(5, "setp.ge.ftz.f32")
  FORM(6, "setp.equ.ftz.f32")
  FORM(7, "setp.neu.ftz.f32")
  FORM(8, "setp.ltu.ftz.f32")
  FORM(9, "setp.leu.ftz.f32")
  FORM(10, "setp.gtu.ftz.f32")
  FORM(11, "setp.geu.ftz.f32")
  FORM(12, "setp.num.ftz.f32")
  FORM(13, "setp.nan.ftz.f32")
  out[row] = bits;
}
