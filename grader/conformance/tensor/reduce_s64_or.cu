// reduction of s64: or
// run: --out 128
// tensor-map: type=s64 dims=16x4 strides=128 box=16x4 base=out
// source: PTX §9.7.9.27.1.3
// fault: bad-tensor-map
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
  __shared__ alignas(128) uint32_t cells[128];
  const uint32_t lane = threadIdx.x;
  for (uint32_t k = lane; k < 128; k += 32) {
    const uint32_t a = in[128 + (k & 63)], b = k < 64 ? in[128 + ((5 * k + 1) & 63)] : in[512 + k];
    cells[k] = b;
    out[k] = a;
  }
  fence_async();
  __syncwarp();
  if (lane == 0) {
    REDUCE_2D("or", &map, 0, 0, shared_address(cells));
    commit();
    wait_bulk();
  }
}
