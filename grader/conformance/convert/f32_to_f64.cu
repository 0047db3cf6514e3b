// cvt of f32 to f64: exact; a NaN keeps its payload or not
// run: --grid 4 --block 128 --out 3072
// source: PTX §9.7.9.21
#include <cstdint>

constexpr uint32_t kRows = 512;

// All special patterns, then random ones.
__device__ uint32_t operand(const uint32_t* in, uint32_t row, uint32_t) { return in[row]; }

// Result `number` of this row. The destination is a register for f64: of a 64-bit one, ptxas makes the two words
// that are stored by a conversion to integers.
#define FORM(number, instruction)                                            \
  {                                                                          \
    double result;                                                           \
    asm volatile(instruction " %0, %1;" : "=d"(result) : "r"(a));            \
    const uint64_t bits = __double_as_longlong(result);                      \
    out[2 * (number * kRows + row)] = static_cast<uint32_t>(bits);           \
    out[2 * (number * kRows + row) + 1] = static_cast<uint32_t>(bits >> 32); \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t a = operand(in, row, 0);
  FORM(0, "cvt.f64.f32")
  FORM(1, "cvt.ftz.f64.f32")
  FORM(2, "cvt.sat.f64.f32")
}
