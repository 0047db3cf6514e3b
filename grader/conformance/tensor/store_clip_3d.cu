// a box over the upper end of each of three dimensions
// run: --out 384
// tensor-map: type=u16 dims=12x4x3 strides=32x128 box=8x2x2 base=out+0
// tensor-map: type=u16 dims=12x4x3 strides=32x128 box=8x2x2 base=out+384
// tensor-map: type=u16 dims=12x4x3 strides=32x128 box=8x2x2 base=out+768
// tensor-map: type=u16 dims=12x4x3 strides=32x128 box=8x2x2 base=out+1152
// source: PTX §9.7.9.27.1.2
#include <cuda.h>

#include <cstdint>

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void fence_async() { asm volatile("fence.proxy.async;" ::: "memory"); }

__device__ void commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

__device__ void wait_bulk() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

__device__ void store_3d(const CUtensorMap* map, int32_t x, int32_t y, int32_t z, uint32_t from) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%1, {%2, %3, %4}], [%0];" ::"r"(from),
               "l"(map), "r"(x), "r"(y), "r"(z)
               : "memory");
}

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out, const __grid_constant__ CUtensorMap map0,
                                       const __grid_constant__ CUtensorMap map1,
                                       const __grid_constant__ CUtensorMap map2,
                                       const __grid_constant__ CUtensorMap map3) {
  __shared__ alignas(1024) uint32_t cells[128];
  const uint32_t lane = threadIdx.x;
  for (uint32_t k = lane; k < 128; k += 32) cells[k] = in[256 + k];
  fence_async();
  __syncwarp();
  if (lane == 0) {
    store_3d(&map0, 8, 0, 0, shared_address(cells) + 0);
    store_3d(&map1, 0, 3, 0, shared_address(cells) + 128);
    store_3d(&map2, 0, 0, 2, shared_address(cells) + 256);
    store_3d(&map3, 8, 3, 2, shared_address(cells) + 384);
    commit();
    wait_bulk();
  }
}
