// producer and consumer warps on two named barriers: arrive does not wait, sync does; data crosses in both directions
// run: --block 64 --out 256
// source: PTX §9.7.13.1
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ uint32_t cells[32];
  const uint32_t lane = threadIdx.x & 31;
  if (threadIdx.x < 32) {
    for (uint32_t i = 0; i < 8; ++i) {
      asm volatile("bar.sync 1, 64;" ::: "memory");  // empty
      cells[lane] = in[256 + 32 * i + lane];
      asm volatile("bar.arrive 2, 64;" ::: "memory");  // full
    }
  } else {
    for (uint32_t i = 0; i < 8; ++i) {
      asm volatile("bar.arrive 1, 64;" ::: "memory");
      asm volatile("bar.sync 2, 64;" ::: "memory");
      out[32 * i + lane] = cells[31 - lane];
      cells[31 - lane] = 0;
    }
  }
}
