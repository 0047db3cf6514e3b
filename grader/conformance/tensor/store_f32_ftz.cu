// a store by a map of f32.ftz: edge patterns and random bits
// run: --out 256
// tensor-map: type=f32.ftz dims=256 box=128 base=out
// source: PTX §5.5.1; CUDA Driver API, cuTensorMapEncodeTiled
#include <cuda.h>

#include <cstdint>

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void fence_async() { asm volatile("fence.proxy.async;" ::: "memory"); }

__device__ void commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

__device__ void wait_bulk() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

__device__ void store_1d(const CUtensorMap* map, int32_t x, uint32_t from) {
  asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%1, {%2}], [%0];" ::"r"(from), "l"(map),
               "r"(x)
               : "memory");
}

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out, const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) uint32_t cells[256];
  const uint32_t lane = threadIdx.x;
  for (uint32_t k = lane; k < 256; k += 32) cells[k] = k < 128 ? in[k] : in[256 + k];
  fence_async();
  __syncwarp();
  if (lane == 0) {
    store_1d(&map, 0, shared_address(cells));
    store_1d(&map, 128, shared_address(cells + 128));
    commit();
    wait_bulk();
  }
}
