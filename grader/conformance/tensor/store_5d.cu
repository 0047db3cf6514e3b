// a box of five dimensions
// run: --out 540
// tensor-map: type=u8 dims=32x3x3x3x2 strides=32x112x352x1072 box=16x2x2x2x2 base=out
// source: PTX §9.7.9.27.1.2
#include <cuda.h>

#include <cstdint>

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void fence_async() { asm volatile("fence.proxy.async;" ::: "memory"); }

__device__ void commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

__device__ void wait_bulk() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

__device__ void store_5d(const CUtensorMap* map, int32_t x, int32_t y, int32_t z, int32_t w, int32_t v, uint32_t from) {
  asm volatile(
      "cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group [%1, {%2, %3, %4, %5, %6}], [%0];" ::"r"(from),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v)
      : "memory");
}

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out, const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(1024) uint32_t cells[64];
  const uint32_t lane = threadIdx.x;
  for (uint32_t k = lane; k < 64; k += 32) cells[k] = in[256 + k];
  fence_async();
  __syncwarp();
  if (lane == 0) {
    store_5d(&map, 16, 1, 1, 1, 0, shared_address(cells) + 0);
    commit();
    wait_bulk();
  }
}
