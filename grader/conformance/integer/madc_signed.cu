// mad.hi.cc.s32 and madc.s32: the carry of a sum with a signed product
// run: --grid 4 --block 128 --out 2560
// source: PTX §9.7.2.5, §9.7.2.6
#include <cstdint>

// Limits and their neighbours.
__constant__ uint32_t kEdges[8] = {0, 1, 0xffffffff, 0xfffffffe, 0x80000000, 0x7fffffff, 0, 0xffffffff};

// Digit `which` of this row's numbers: edges in the first 256 rows, then random words.
__device__ uint32_t digit(const uint32_t* in, uint32_t row, uint32_t which) {
  return row < 256 ? kEdges[in[256 + row + 256 * which] % 8] : in[row + 256 * which];
}

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  uint32_t a[4], b[4], d[5];
  for (uint32_t i = 0; i < 4; ++i) {
    a[i] = digit(in, row, i);
    b[i] = digit(in, row, 4 + i);
  }
  asm volatile(
      "mad.hi.cc.s32 %0, %5, %9, %12;\n\t"
      "madc.lo.cc.s32 %1, %5, %9, %11;\n\t"
      "madc.hi.cc.s32 %2, %6, %10, %8;\n\t"
      "madc.hi.s32 %3, %6, %10, %7;\n\t"
      "sub.cc.u32 %4, %5, %9;\n\t"
      "subc.u32 %4, 0, 0;\n\t"
      : "=&r"(d[0]), "=&r"(d[1]), "=&r"(d[2]), "=&r"(d[3]), "=&r"(d[4])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]));
  for (uint32_t i = 0; i < 5; ++i) out[5 * row + i] = d[i];
}
