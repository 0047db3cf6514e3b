// bar.warp.sync with part of the warp: writes before it are seen by the other members after it
// run: --out 64
// source: PTX §9.7.13.2
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ uint32_t cells[32];
  const uint32_t lane = threadIdx.x;
  cells[lane] = in[256 + lane];
  if (lane & 4) {
    asm volatile("bar.warp.sync 0xf0f0f0f0;" ::: "memory");
    out[lane] = cells[lane ^ 3];
    asm volatile("bar.warp.sync 0xf0f0f0f0;" ::: "memory");
    cells[lane] = in[512 + lane];
  }
  asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
  out[32 + lane] = cells[31 - lane];
}
