// mma.sync: subnormal factors and sums, infinities, NaNs, zeros of both signs, and what is cut off below the last bit
// run: --out 128
// source: PTX §9.7.14.5.14
// undefined: the rounding of the sum and the bits of a NaN
#include <cstdint>

// Row m of A has kFactor[m] in its first kCount[m] columns, B is 1 everywhere, C has kAddend[m] in row m.
__constant__ uint16_t kFactor[16] = {0x0001, 0x8001, 0x7c00, 0xfc00, 0x7e00, 0x0000, 0x8000, 0x0100,
                                     0x0080, 0x8100, 0x8080, 0x7bff, 0x7bff, 0x0100, 0x0100, 0x3c00};
__constant__ uint32_t kCount[16] = {16, 16, 1, 1, 1, 16, 16, 4, 16, 1, 16, 16, 16, 3, 2, 2};
__constant__ uint32_t kAddend[16] = {0,          0,          0x3f800000, 0x3f800000, 0x3f800000, 0x80000000,
                                     0x80000000, 0x43000000, 0x43000000, 0x43000000, 0x43000000, 0x7f7fffff,
                                     0xff7fffff, 0x43000000, 0x43000000, 0x00000001};

extern "C" __global__ void conformance(const uint32_t*, uint32_t* out) {
  const uint32_t lane = threadIdx.x, g = lane / 4, q = lane % 4;
  const auto pair = [](uint32_t row, uint32_t column) {
    const uint32_t low = column < kCount[row] ? kFactor[row] : 0;
    const uint32_t high = column + 1 < kCount[row] ? kFactor[row] : 0;
    return low | high << 16;
  };
  uint32_t d[4];
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %8}, "
      "{%9, %9, %10, %10};"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(pair(g, 2 * q)), "r"(pair(g + 8, 2 * q)), "r"(pair(g, 2 * q + 8)), "r"(pair(g + 8, 2 * q + 8)),
        "r"(0x3c003c00), "r"(kAddend[g]), "r"(kAddend[g + 8]));
  for (uint32_t i = 0; i < 4; ++i) out[32 * i + lane] = d[i];
}
