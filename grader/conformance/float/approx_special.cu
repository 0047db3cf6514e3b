// rcp, sqrt, rsqrt, lg2, ex2 and tanh .approx of zeros, infinities and NaNs
// run: --grid 1 --block 128 --out 768
// source: PTX §9.7.3.13 to §9.7.3.22
#include <cstdint>

constexpr uint32_t kRows = 128;

// Where the ISA gives the result of the approximations exactly.
__constant__ uint32_t kSpecial[8] = {0x00000000, 0x80000000, 0x7f800000, 0xff800000,
                                     0x7fc00000, 0xffc00000, 0x7f800001, 0x7fc00001};

__device__ uint32_t operand(const uint32_t*, uint32_t row, uint32_t) { return kSpecial[row % 8]; }

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
  FORM(0, "rcp.approx.f32")
  FORM(1, "sqrt.approx.f32")
  FORM(2, "rsqrt.approx.f32")
  FORM(3, "lg2.approx.f32")
  FORM(4, "ex2.approx.f32")
  FORM(5, "tanh.approx.f32")
}
