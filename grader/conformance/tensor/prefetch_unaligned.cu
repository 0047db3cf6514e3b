// prefetches that begin at no multiple of 16 bytes, and nothing else
// run: --out 32
// tensor-map: type=u32 dims=3000 box=64 base=in+1024
// tensor-map: type=u16 dims=20x10x6 strides=48x496 box=8x3x2 base=in+1024
// tensor-map: type=u8 dims=32x6x5x4 strides=48x288x1456 box=16x2x3x2 base=in+1024
// tensor-map: type=u8 dims=32x4x4x4x4 strides=32x144x592x2384 box=16x2x2x2x2 base=in+1024
// source: PTX §9.7.9.27.1.4
// fault: bad-copy
#include <cuda.h>

#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out, const __grid_constant__ CUtensorMap map0,
                                       const __grid_constant__ CUtensorMap map1,
                                       const __grid_constant__ CUtensorMap map2,
                                       const __grid_constant__ CUtensorMap map3) {
  const uint32_t lane = threadIdx.x;
  if (lane == 0) {
    asm volatile("cp.async.bulk.prefetch.tensor.1d.L2.global.tile [%0, {%1}];" ::"l"(&map0), "r"(7) : "memory");
    asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global.tile [%0, {%1, %2, %2}];" ::"l"(&map1), "r"(1), "r"(1)
                 : "memory");
    asm volatile("cp.async.bulk.prefetch.tensor.4d.L2.global.tile [%0, {%1, %2, %2, %2}];" ::"l"(&map2), "r"(1), "r"(1)
                 : "memory");
    asm volatile("cp.async.bulk.prefetch.tensor.5d.L2.global.tile [%0, {%1, %2, %2, %2, %2}];" ::"l"(&map3), "r"(1),
                 "r"(1)
                 : "memory");
  }
  out[lane] = in[256 + lane];
}
