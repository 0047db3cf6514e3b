// f64 arithmetic with a NaN for every operand, and fma with a number between two; min, max, abs of NaNs
// run: --grid 1 --block 128 --out 2304
// source: PTX §9.7.3.3 to §9.7.3.6, §9.7.3.8, §9.7.3.9, §9.7.3.11, §9.7.3.12
// undefined: which operand gives the payload
#include <cstdint>

constexpr uint32_t kRows = 128;

// Quiet and signalling NaNs of both signs.
__constant__ uint64_t kEdges[4] = {0x7ff8000000000001, 0xfff8000000000200, 0x7ff0000000030000, 0xfff0000004000000};

__device__ uint64_t operand(const uint32_t*, uint32_t row, uint32_t which) { return kEdges[row >> (2 * which) & 3]; }

// Result `number` of this row. The destination is a register for f64: of a 64-bit one, ptxas makes the two words
// that are stored by a conversion to integers.
#define FORM(number, instruction)                                                                             \
  {                                                                                                           \
    double result;                                                                                            \
    asm volatile("{\n\t" instruction "\n\t}"                                                                  \
                 : "=d"(result)                                                                               \
                 : "d"(__longlong_as_double(a)), "d"(__longlong_as_double(b)), "d"(__longlong_as_double(c))); \
    const uint64_t bits = __double_as_longlong(result);                                                       \
    out[2 * (number * kRows + row)] = static_cast<uint32_t>(bits);                                            \
    out[2 * (number * kRows + row) + 1] = static_cast<uint32_t>(bits >> 32);                                  \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint64_t a = operand(in, row, 0);
  const uint64_t b = operand(in, row, 1);
  const uint64_t c = operand(in, row, 2);
  FORM(0, "add.rn.f64 %0, %1, %2;")
  FORM(1, "mul.rn.f64 %0, %1, %2;")
  FORM(2, "fma.rn.f64 %0, %1, %2, %3;")
  FORM(3, "fma.rn.f64 %0, %1, 0d3FF0000000000000, %3;")
  FORM(4, "sub.rn.f64 %0, %1, %2;")
  FORM(5, "div.rn.f64 %0, %1, %2;")
  FORM(6, "min.f64 %0, %1, %2;")
  FORM(7, "max.f64 %0, %1, %2;")
  FORM(8, "abs.f64 %0, %1;")
}
