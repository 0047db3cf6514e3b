// mul.ftz, fma.ftz and div.ftz of f32: results that rounding brings up to the least normal number
// run: --grid 1 --block 128 --out 1280
// source: PTX §9.7.3.5, §9.7.3.6, §9.7.3.8
// undefined: whether a result is flushed for what it is before rounding or after
#include <cstdint>

constexpr uint32_t kRows = 128;

// Result `number` of this row.
#define FORM(number, instruction)                                              \
  {                                                                            \
    uint32_t result;                                                           \
    asm volatile(instruction : "=r"(result) : "r"(a), "r"(b), "r"(c), "r"(d)); \
    out[number * kRows + row] = result;                                        \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  // About 2^-126, just above and below one, the least normal number, and about two.
  const uint32_t sign = row >= 64 ? 0x80000000 : 0;
  const uint32_t a = (0x00800000 + row % 8) | sign, b = 0x3f800000 - row / 8 % 8;
  const uint32_t c = 0x80800000 ^ sign, d = 0x40000000 - row / 8 % 8;
  FORM(0, "mul.rn.ftz.f32 %0, %1, %2;")
  FORM(1, "mul.rz.ftz.f32 %0, %1, %2;")
  FORM(2, "mul.rm.ftz.f32 %0, %1, %2;")
  FORM(3, "mul.rp.ftz.f32 %0, %1, %2;")
  FORM(4, "fma.rn.ftz.f32 %0, %1, %4, %3;")
  FORM(5, "fma.rz.ftz.f32 %0, %1, %4, %3;")
  FORM(6, "fma.rm.ftz.f32 %0, %1, %4, %3;")
  FORM(7, "fma.rp.ftz.f32 %0, %1, %4, %3;")
  FORM(8, "{\n\t.reg .f32 x;\n\tadd.ftz.f32 x, %1, %1;\n\tdiv.rn.ftz.f32 %0, x, %4;\n\t}")
  FORM(9, "{\n\t.reg .f32 x;\n\tadd.ftz.f32 x, %1, %1;\n\tdiv.rp.ftz.f32 %0, x, %4;\n\t}")
}
