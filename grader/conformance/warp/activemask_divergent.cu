// activemask in the branches of an if and in a loop that lanes leave one after another
// run: --out 96
// source: PTX §9.7.13.11
// undefined: which threads of a warp run together after a branch
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t lane = threadIdx.x;
  uint32_t mask, last = 0;
  asm volatile("activemask.b32 %0;" : "=r"(mask));
  out[lane] = mask;
  if (in[256 + lane] & 1) {
    asm volatile("activemask.b32 %0;" : "=r"(mask));
    out[32 + lane] = mask;
  } else {
    asm volatile("activemask.b32 %0;" : "=r"(mask));
    out[32 + lane] = ~mask;
  }
  __syncwarp();
  for (uint32_t i = 0; i <= (in[300 + lane] & 7); ++i) asm volatile("activemask.b32 %0;" : "=r"(last));
  out[64 + lane] = last;
}
