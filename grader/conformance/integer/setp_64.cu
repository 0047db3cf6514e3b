// setp of s64 and u64 in every comparison
// run: --grid 3 --block 128 --out 384
// source: PTX §9.7.6.2
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

// Bit `number` of this row: the predicate.
#define FORM(number, instruction)                                                                 \
  {                                                                                               \
    uint32_t result;                                                                              \
    asm volatile("{\n\t.reg .pred p;\n\t" instruction " p, %1, %2;\n\tselp.b32 %0, 1, 0, p;\n\t}" \
                 : "=r"(result)                                                                   \
                 : "l"(a), "l"(b));                                                               \
    bits |= result << number;                                                                     \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const uint64_t a = operand(in, row, 0);
  const uint64_t b = operand(in, row, 1);
  uint32_t bits = 0;
  FORM(0, "setp.eq.s64")
  FORM(1, "setp.ne.s64")
  FORM(2, "setp.lt.s64")
  FORM(3, "setp.le.s64")
  FORM(4, "setp.gt.s64")
  FORM(5, "setp.ge.s64")
  FORM(6, "setp.eq.u64")
  FORM(7, "setp.ne.u64")
  FORM(8, "setp.lt.u64")
  FORM(9, "setp.le.u64")
  FORM(10, "setp.gt.u64")
  FORM(11, "setp.ge.u64")
  out[row] = bits;
}
