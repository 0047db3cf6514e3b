// activemask contains the lane that asks and no lane that has exited
// run: --out 32
// source: PTX §9.7.13.11
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t lane = threadIdx.x;
  out[lane] = 0;
  if (in[256] != 0 && lane >= 24) return;
  uint32_t mask;
  asm volatile("activemask.b32 %0;" : "=r"(mask));
  out[lane] = (mask >> lane & 1) | (mask >> 24) << 8;
}
