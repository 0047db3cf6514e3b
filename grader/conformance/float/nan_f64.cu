// add, mul and fma of f64 with a NaN for every operand
// run: --grid 1 --block 128 --out 768
// source: PTX §9.7.3.3, §9.7.3.5, §9.7.3.6
// undefined: which operand gives the payload
#include <cstdint>

constexpr uint32_t kRows = 128;

// Quiet and signalling NaNs of both signs.
__constant__ uint64_t kEdges[4] = {0x7ff8000000000001, 0xfff8000000000200, 0x7ff0000000030000, 0xfff0000004000000};

__device__ uint64_t operand(const uint32_t*, uint32_t row, uint32_t which) { return kEdges[row >> (2 * which) & 3]; }

// Result `number` of this row.
#define FORM(number, instruction)                                                      \
  {                                                                                    \
    uint64_t result;                                                                   \
    asm volatile("{\n\t" instruction "\n\t}" : "=l"(result) : "l"(a), "l"(b), "l"(c)); \
    out[2 * (number * kRows + row)] = static_cast<uint32_t>(result);                   \
    out[2 * (number * kRows + row) + 1] = static_cast<uint32_t>(result >> 32);         \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint64_t a = operand(in, row, 0);
  const uint64_t b = operand(in, row, 1);
  const uint64_t c = operand(in, row, 2);
  FORM(0, "add.rn.f64 %0, %1, %2;")
  FORM(1, "mul.rn.f64 %0, %1, %2;")
  FORM(2, "fma.rn.f64 %0, %1, %2, %3;")
}
