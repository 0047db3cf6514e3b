// a box that begins before the tensor
// run: --out 640
// tensor-map: type=u32 dims=10x7 strides=64 box=8x4 base=out+512
// tensor-map: type=u32 dims=10x7 strides=64 box=8x4 base=out+1536
// source: CUDA C++ Programming Guide, Using TMA
// fault: bad-copy
// diagnostic: bad-copy
#include <cuda.h>

#include <cstdint>

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void fence_async() { asm volatile("fence.proxy.async;" ::: "memory"); }

__device__ void commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

__device__ void wait_bulk() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

__device__ void store_2d(const CUtensorMap* map, int32_t x, int32_t y, uint32_t from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%1, {%2, %3}], [%0];" ::"r"(from), "l"(map),
               "r"(x), "r"(y)
               : "memory");
}

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out, const __grid_constant__ CUtensorMap map0,
                                       const __grid_constant__ CUtensorMap map1) {
  __shared__ alignas(1024) uint32_t cells[64];
  const uint32_t lane = threadIdx.x;
  for (uint32_t k = lane; k < 64; k += 32) cells[k] = in[256 + k];
  fence_async();
  __syncwarp();
  if (lane == 0) {
    store_2d(&map0, -4, 1, shared_address(cells) + 0);
    store_2d(&map1, 0, -2, shared_address(cells) + 128);
    commit();
    wait_bulk();
  }
}
