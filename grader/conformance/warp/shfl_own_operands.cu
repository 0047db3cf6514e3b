// shfl.sync with b and c that differ from lane to lane: each lane reads by its own
// run: --out 4096
// source: PTX §9.7.9.6
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t lane = threadIdx.x;
  const uint32_t x = in[256 + lane];
  for (uint32_t i = 0; i < 16; ++i) {
    const uint32_t b = in[512 + 32 * i + lane], c = in[1024 + 32 * i + lane] & 0x1f1f;
    uint32_t value[4], valid[4];
#define SHFL(mode, k)                                                                     \
  asm volatile("{\n\t.reg .pred valid;\n\tshfl.sync." mode                                \
               ".b32 %0|valid, %2, %3, %4, 0xffffffff;\n\tselp.u32 %1, 1, 0, valid;\n\t}" \
               : "=r"(value[k]), "=r"(valid[k])                                           \
               : "r"(x), "r"(b), "r"(c));
    SHFL("up", 0)
    SHFL("down", 1)
    SHFL("bfly", 2)
    SHFL("idx", 3)
    for (uint32_t k = 0; k < 4; ++k) {
      out[(i * 8 + k) * 32 + lane] = value[k];
      out[(i * 8 + 4 + k) * 32 + lane] = valid[k];
    }
  }
}
