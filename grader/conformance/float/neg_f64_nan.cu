// neg.f64 of NaNs
// run: --grid 1 --block 128 --out 256
// source: PTX §9.7.3.10
// undefined: neg of a NaN yields an unspecified NaN
#include <cstdint>

constexpr uint32_t kRows = 128;

// Quiet and signalling NaNs of both signs.
__constant__ uint64_t kEdges[4] = {0x7ff8000000000001, 0xfff8000000000200, 0x7ff0000000030000, 0xfff0000004000000};

__device__ uint64_t operand(const uint32_t*, uint32_t row, uint32_t which) { return kEdges[row >> (2 * which) & 3]; }

// Result `number` of this row. The destination is a register for f64: of a 64-bit one, ptxas makes the two words
// that are stored by a conversion to integers.
#define FORM(number, instruction)                                                       \
  {                                                                                     \
    double result;                                                                      \
    asm volatile(instruction " %0, %1;" : "=d"(result) : "d"(__longlong_as_double(a))); \
    const uint64_t bits = __double_as_longlong(result);                                 \
    out[2 * (number * kRows + row)] = static_cast<uint32_t>(bits);                      \
    out[2 * (number * kRows + row) + 1] = static_cast<uint32_t>(bits >> 32);            \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint64_t a = operand(in, row, 0);
  FORM(0, "neg.f64")
}
