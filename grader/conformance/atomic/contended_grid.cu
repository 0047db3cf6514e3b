// eight CTAs of 64 threads on one row of cells in global memory, operations that commute: the values left
// run: --grid 8 --block 64 --out 10
// source: PTX §9.7.13.7
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  // The poison, 0xffffffff, is where every cell starts.
  const uint32_t x = in[256 + thread];
  asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" ::"l"(out), "r"(x) : "memory");
  asm volatile("red.relaxed.gpu.global.xor.b32 [%0], %1;" ::"l"(out + 1), "r"(x) : "memory");
  asm volatile("red.relaxed.gpu.global.min.u32 [%0], %1;" ::"l"(out + 2), "r"(x) : "memory");
  asm volatile("red.relaxed.gpu.global.max.s32 [%0], %1;" ::"l"(out + 3), "r"(x) : "memory");
  asm volatile("red.relaxed.gpu.global.and.b32 [%0], %1;" ::"l"(out + 4), "r"(x | 0x00ff00ff) : "memory");
  asm volatile("red.relaxed.gpu.global.inc.u32 [%0], %1;" ::"l"(out + 5), "r"(99) : "memory");
  asm volatile("red.relaxed.gpu.global.dec.u32 [%0], %1;" ::"l"(out + 6), "r"(99) : "memory");
  asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(out + 8), "l"(static_cast<uint64_t>(x) << 16)
               : "memory");
}
