// mma.sync of f16 factors with exact sums: where each element lies
// run: --out 1024
// source: PTX §9.7.14.5.14
#include <cstdint>

// Two small integers as f16.
__device__ uint32_t factors(const uint32_t* in, uint32_t round, uint32_t i) {
  const uint32_t bits = in[256 + 512 * round + i];
  const float low = static_cast<float>(static_cast<int32_t>(bits % 17) - 8);
  const float high = static_cast<float>(static_cast<int32_t>(bits / 17 % 17) - 8);
  uint32_t r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
__device__ uint32_t addend(const uint32_t* in, uint32_t round, uint32_t i) {
  return __float_as_uint(static_cast<float>(static_cast<int32_t>(in[700 + 512 * round + i] % 2001) - 1000));
}

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t lane = threadIdx.x;
  for (uint32_t round = 0; round < 4; ++round) {
    uint32_t a[4], b[2], c[4], d[4];
    for (uint32_t i = 0; i < 4; ++i) a[i] = factors(in, round, 4 * lane + i);
    for (uint32_t i = 0; i < 2; ++i) b[i] = factors(in, round, 128 + 2 * lane + i);
    for (uint32_t i = 0; i < 4; ++i) c[i] = addend(in, round, 4 * lane + i);
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%10, %11, %12, %13};"
        : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
    for (uint32_t i = 0; i < 4; ++i) out[256 * round + 32 * i + lane] = d[i];
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
    for (uint32_t i = 0; i < 4; ++i) out[256 * round + 128 + 32 * i + lane] = d[i];
  }
}
