// cvt of s64 and u64 to f64 in the four roundings
// run: --grid 3 --block 128 --out 6144
// source: PTX §9.7.9.21
#include <cstdint>

constexpr uint32_t kRows = 384;
// Limits and their neighbours.
__constant__ uint64_t kEdges[16] = {0,
                                    1,
                                    2,
                                    ~0ull,
                                    ~1ull,
                                    1ull << 63,
                                    (1ull << 63) + 1,
                                    ~0ull >> 1,
                                    0xffffffff,
                                    1ull << 32,
                                    (1ull << 32) + 1,
                                    1ull << 31,
                                    0xffffffff80000000,
                                    0x7fffffff00000000,
                                    0x00000001ffffffff,
                                    0xfffffffe00000001};

// Rows 0 to 255: every pair of edges; then random operands.
__device__ uint64_t operand(const uint32_t* in, uint32_t row, uint32_t which) {
  if (row >= 256) return in[row + 1024 * which] | uint64_t{in[row + 1024 * which + 512]} << 32;
  return kEdges[which == 0 ? row % 16 : which == 1 ? row / 16 : (row * 5 + row / 16 * 3) % 16];
}

// Result `number` of this row. The destination is a register for f64: of a 64-bit one, ptxas makes the two words
// that are stored by a conversion to integers.
#define FORM(number, instruction)                                            \
  {                                                                          \
    double result;                                                           \
    asm volatile(instruction " %0, %1;" : "=d"(result) : "l"(a));            \
    const uint64_t bits = __double_as_longlong(result);                      \
    out[2 * (number * kRows + row)] = static_cast<uint32_t>(bits);           \
    out[2 * (number * kRows + row) + 1] = static_cast<uint32_t>(bits >> 32); \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint64_t a = operand(in, row, 0);
  FORM(0, "cvt.rn.f64.s64")
  FORM(1, "cvt.rz.f64.s64")
  FORM(2, "cvt.rm.f64.s64")
  FORM(3, "cvt.rp.f64.s64")
  FORM(4, "cvt.rn.f64.u64")
  FORM(5, "cvt.rz.f64.u64")
  FORM(6, "cvt.rm.f64.u64")
  FORM(7, "cvt.rp.f64.u64")
}
