// a reduction that begins 12 bytes after a multiple of 16 stops the kernel
// run: --out 112
// tensor-map: type=u32 dims=10x7 strides=64 box=8x4 base=out
// source: PTX §9.7.9.27.1.3
// fault: bad-copy
#include <cuda.h>

#include <cstdint>

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void fence_async() { asm volatile("fence.proxy.async;" ::: "memory"); }

__device__ void commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

__device__ void wait_bulk() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

#define REDUCE_2D(op, map, x, y, from)                                 \
  asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta." op \
               ".tile.bulk_group [%1, {%2, %3}], [%0];" ::"r"(from),   \
               "l"(map), "r"(x), "r"(y)                                \
               : "memory")

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out, const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(1024) uint32_t cells[32];
  const uint32_t lane = threadIdx.x;
  for (uint32_t k = lane; k < 32; k += 32) cells[k] = in[256 + k];
  for (uint32_t k = lane; k < 112; k += 32) out[k] = in[1024 + k];
  fence_async();
  __syncwarp();
  if (lane == 0) {
    REDUCE_2D("add", &map, 3, 1, shared_address(cells) + 0);
    commit();
    wait_bulk();
  }
}
