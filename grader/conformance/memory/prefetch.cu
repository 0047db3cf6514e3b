// prefetch, prefetchu and applypriority change no data; what is stored after a discard is there
// run: --out 1024
// source: PTX §9.7.9.16, §9.7.9.17, §9.7.9.18
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t lane = threadIdx.x;
  const uint32_t* line = in + 256 + lane * 32;
  asm volatile("prefetch.global.L1 [%0];" ::"l"(__cvta_generic_to_global(line)) : "memory");
  asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(line + 8)) : "memory");
  asm volatile("prefetch.global.L2::evict_last [%0];" ::"l"(__cvta_generic_to_global(line + 16)) : "memory");
  asm volatile("prefetch.global.L2::evict_normal [%0];" ::"l"(__cvta_generic_to_global(line + 16)) : "memory");
  asm volatile("prefetch.L1 [%0];" ::"l"(line) : "memory");
  asm volatile("prefetchu.L1 [%0];" ::"l"(line + 4) : "memory");
  asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(__cvta_generic_to_global(line)) : "memory");
  uint32_t* to = out + lane * 32;
  asm volatile("discard.global.L2 [%0], 128;" ::"l"(__cvta_generic_to_global(to)) : "memory");
  for (uint32_t i = 0; i < 32; ++i) to[i] = line[i];
}
