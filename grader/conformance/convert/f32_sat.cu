// cvt.sat and cvt.ftz of f32 to f32
// run: --grid 4 --block 128 --out 1536
// source: PTX §9.7.9.21
#include <cstdint>

constexpr uint32_t kRows = 512;

// All special patterns, then random ones.
__device__ uint32_t operand(const uint32_t* in, uint32_t row, uint32_t) { return in[row]; }

// Result `number` of this row.
#define FORM(number, instruction)                                 \
  {                                                               \
    uint32_t result;                                              \
    asm volatile(instruction " %0, %1;" : "=r"(result) : "r"(a)); \
    out[number * kRows + row] = result;                           \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t a = operand(in, row, 0);
  FORM(0, "cvt.sat.f32.f32")
  FORM(1, "cvt.ftz.f32.f32")
  FORM(2, "cvt.ftz.sat.f32.f32")
}
