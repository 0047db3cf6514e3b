// barrier.sync, not .aligned, reached from two branches by the lanes of one warp
// run: --block 64 --out 64
// source: PTX §9.7.13.1
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ uint32_t cells[64];
  const uint32_t thread = threadIdx.x;
  const bool odd = (in[256 + thread] & 1) != 0;
  cells[thread] = odd ? in[512 + thread] : ~in[512 + thread];
  if (odd) {
    asm volatile("barrier.sync 3;" ::: "memory");
    out[thread] = cells[63 - thread];
  } else {
    asm volatile("barrier.sync 3;" ::: "memory");
    out[thread] = cells[63 - thread] + 1;
  }
}
