// cvt of f64 to f64 in the four integer roundings, and .sat
// run: --grid 3 --block 128 --out 3840
// source: PTX §9.7.9.21
#include <cstdint>

constexpr uint32_t kRows = 384;
// Zeros, limits and NaNs of f64; halves; limits of the integers and of f32, and their neighbours.
__constant__ uint64_t kEdges[48] = {0,
                                    0x8000000000000000,
                                    1,
                                    0x8000000000000001,
                                    0x000fffffffffffff,
                                    0x0010000000000000,
                                    0x8010000000000000,
                                    0x3ff0000000000000,
                                    0xbff0000000000000,
                                    0x3ff0000000000001,
                                    0x7fefffffffffffff,
                                    0xffefffffffffffff,
                                    0x7ff0000000000000,
                                    0xfff0000000000000,
                                    0x7ff8000000000000,
                                    0xfff8000000000123,
                                    0x3fe0000000000000,
                                    0x3ff8000000000000,
                                    0xbfe0000000000000,
                                    0xbff8000000000000,
                                    0x4004000000000000,
                                    0x405fc00000000000,
                                    0x4060000000000000,
                                    0x406ff00000000000,
                                    0x40dfffe000000000,
                                    0x40e0000000000000,
                                    0x41dfffffffc00000,
                                    0x41e0000000000000,
                                    0xc1e0000000000000,
                                    0xc1e0000000200000,
                                    0x41efffffffe00000,
                                    0x41f0000000000000,
                                    0x43dfffffffffffff,
                                    0x43e0000000000000,
                                    0xc3e0000000000000,
                                    0xc3e0000000000001,
                                    0x43efffffffffffff,
                                    0x43f0000000000000,
                                    0x47efffffe0000000,
                                    0x47efffffefffffff,
                                    0x47effffff0000000,
                                    0x3810000000000000,
                                    0x380fffffffffffff,
                                    0x36a0000000000000,
                                    0x3690000000000000,
                                    0x3690000000000001,
                                    0x3ff0000010000000,
                                    0x3ff0000030000000};

// The edges; then random significands with exponents from -8 to 71, halves and integers among them.
__device__ uint64_t operand(const uint32_t* in, uint32_t row, uint32_t) {
  if (row < 48) return kEdges[row];
  const uint32_t high = in[256 + row], low = row % 2 == 0 ? in[1280 + row] : 0;
  return uint64_t{(high & (row % 2 == 0 ? 0x800fffff : 0x800e0000)) | (1015 + (high >> 20 & 0x7ff) % 80) << 20} << 32 |
         low;
}

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
  FORM(0, "cvt.rni.f64.f64")
  FORM(1, "cvt.rzi.f64.f64")
  FORM(2, "cvt.rmi.f64.f64")
  FORM(3, "cvt.rpi.f64.f64")
  FORM(4, "cvt.sat.f64.f64")
}
