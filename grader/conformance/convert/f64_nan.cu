// cvt of f64 NaNs to f32, f16 and bf16: sign and payload
// run: --grid 1 --block 128 --out 512
// source: PTX §9.7.9.21
// undefined: the bits of the NaN
#include <cstdint>

constexpr uint32_t kRows = 128;

// NaNs of both signs, quiet and signalling, with random payloads; those of the first rows lie in one half.
__device__ uint64_t operand(const uint32_t* in, uint32_t row) {
  const uint32_t high = row < 32 ? 0x7ff00000 : 0x7ff00000 | in[256 + row],
                 low = row >= 32 && row < 64 ? 0 : in[384 + row];
  return uint64_t{high} << 32 | low | (row < 64 && row >= 32 ? 1ull << 32 : 1);
}

// Result `number` of this row.
#define FORM(number, instruction, type, reg)                                                          \
  {                                                                                                   \
    type result;                                                                                      \
    asm volatile(instruction " %0, %1;" : reg(result) : "d"(__longlong_as_double(operand(in, row)))); \
    out[number * kRows + row] = result;                                                               \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  FORM(0, "cvt.rn.f32.f64", uint32_t, "=r")
  FORM(1, "cvt.rz.ftz.f32.f64", uint32_t, "=r")
  FORM(2, "cvt.rn.f16.f64", uint16_t, "=h")
  FORM(3, "cvt.rn.bf16.f64", uint16_t, "=h")
}
