// mma.sync of bf16 factors: where the sum is cut off
// run: --out 2048
// source: PTX §9.7.14.5.14
// undefined: the order and the rounding of the sum
#include <cstdint>

// Random signs and fractions; exponents within eight of each other, so that low bits are cut off.
__device__ uint32_t factors(const uint32_t* in, uint32_t round, uint32_t i) {
  const uint32_t bits = in[256 + 193 * round + i];
  return (bits & 0x81ff81ffu) | 0x3c003c00u;
}
__device__ uint32_t addend(const uint32_t* in, uint32_t round, uint32_t i) {
  const uint32_t bits = in[2048 + 129 * round + i];
  return (bits & 0x807fffffu) | (121 + (bits >> 23 & 7)) << 23;
}

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t lane = threadIdx.x;
  for (uint32_t round = 0; round < 8; ++round) {
    uint32_t a[4], b[2], c[4], d[4];
    for (uint32_t i = 0; i < 4; ++i) a[i] = factors(in, round, 4 * lane + i);
    for (uint32_t i = 0; i < 2; ++i) b[i] = factors(in, round, 128 + 2 * lane + i);
    for (uint32_t i = 0; i < 4; ++i) c[i] = addend(in, round, 4 * lane + i);
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%10, %11, %12, %13};"
        : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
    for (uint32_t i = 0; i < 4; ++i) out[256 * round + 32 * i + lane] = d[i];
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};"
        : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
    for (uint32_t i = 0; i < 4; ++i) out[256 * round + 128 + 32 * i + lane] = d[i];
  }
}
