// shfl.sync by half of the warp with that membermask, and in both branches of an if: only members are read
// run: --out 64
// source: PTX §9.7.9.6
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t lane = threadIdx.x;
  const uint32_t x = in[256 + lane];
  uint32_t a = 0, b = 0;
  if (lane < 16) {
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0x0000ffff;" : "=r"(a) : "r"(x), "r"(in[512 + lane] & 15));
  } else {
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffff0000;" : "=r"(a) : "r"(x), "r"(5));
  }
  __syncwarp();
  if (lane & 1) {
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xaaaaaaaa;" : "=r"(b) : "r"(x), "r"(in[544 + lane] | 1));
  }
  out[lane] = a;
  out[32 + lane] = b;
}
