// setp with .and, .or and .xor, two results, and a negated predicate
// run: --grid 8 --block 128 --out 3072
// source: PTX §9.7.6.2
#include <cstdint>

constexpr uint32_t kRows = 1024;

// Every pair of the first 32 special patterns.
__device__ uint32_t operand(const uint32_t* in, uint32_t row, uint32_t which) {
  return in[which == 0 ? row % 32 : which == 1 ? row / 32 : (row * 5 + row / 32 * 3) % 32];
}

// Result `number` of this row.
#define FORM(number, instruction)                                                      \
  {                                                                                    \
    uint32_t result;                                                                   \
    asm volatile("{\n\t" instruction "\n\t}" : "=r"(result) : "r"(a), "r"(b), "r"(c)); \
    out[number * kRows + row] = result;                                                \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t a = operand(in, row, 0);
  const uint32_t b = operand(in, row, 1);
  const uint32_t c = operand(in, row, 2);
  FORM(0,
       ".reg .pred p, q, r; setp.gt.f32 r, %3, 0f00000000; setp.lt.and.f32 p|q, %1, %2, r; selp.b32 %0, 1, 0, p; @q "
       "or.b32 %0, %0, 2;")
  FORM(1,
       ".reg .pred p, q, r; setp.gt.f32 r, %3, 0f00000000; setp.geu.or.f32 p|q, %1, %2, !r; selp.b32 %0, 1, 0, p; @q "
       "or.b32 %0, %0, 2;")
  FORM(2,
       ".reg .pred p, q, r; setp.gt.f32 r, %3, 0f00000000; setp.neu.xor.f32 p|q, %1, %2, r; selp.b32 %0, 1, 0, p; @q "
       "or.b32 %0, %0, 2;")
}
