// reductions of one, three, four and five dimensions
// run: --out 512
// tensor-map: type=u32 dims=100 box=32 base=out
// tensor-map: type=u32 dims=8x3x3 strides=32x112 box=4x2x2 base=out+512
// tensor-map: type=u32 dims=8x2x2x3 strides=32x80x176 box=4x1x2x2 base=out+1024
// tensor-map: type=u32 dims=8x2x2x2x2 strides=32x64x128x256 box=4x2x1x2x1 base=out+1536
// source: PTX §9.7.9.27.1.3
#include <cuda.h>

#include <cstdint>

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void fence_async() { asm volatile("fence.proxy.async;" ::: "memory"); }

__device__ void commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

__device__ void wait_bulk() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

#define REDUCE_1D(op, map, x, from)                                    \
  asm volatile("cp.reduce.async.bulk.tensor.1d.global.shared::cta." op \
               ".tile.bulk_group [%1, {%2}], [%0];" ::"r"(from),       \
               "l"(map), "r"(x)                                        \
               : "memory")

#define REDUCE_3D(op, map, x, y, z, from)                                \
  asm volatile("cp.reduce.async.bulk.tensor.3d.global.shared::cta." op   \
               ".tile.bulk_group [%1, {%2, %3, %4}], [%0];" ::"r"(from), \
               "l"(map), "r"(x), "r"(y), "r"(z)                          \
               : "memory")

#define REDUCE_4D(op, map, x, y, z, w, from)                                 \
  asm volatile("cp.reduce.async.bulk.tensor.4d.global.shared::cta." op       \
               ".tile.bulk_group [%1, {%2, %3, %4, %5}], [%0];" ::"r"(from), \
               "l"(map), "r"(x), "r"(y), "r"(z), "r"(w)                      \
               : "memory")

#define REDUCE_5D(op, map, x, y, z, w, v, from)                                  \
  asm volatile("cp.reduce.async.bulk.tensor.5d.global.shared::cta." op           \
               ".tile.bulk_group [%1, {%2, %3, %4, %5, %6}], [%0];" ::"r"(from), \
               "l"(map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v)                  \
               : "memory")

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out, const __grid_constant__ CUtensorMap map0,
                                       const __grid_constant__ CUtensorMap map1,
                                       const __grid_constant__ CUtensorMap map2,
                                       const __grid_constant__ CUtensorMap map3) {
  __shared__ alignas(128) uint32_t cells[128];
  const uint32_t lane = threadIdx.x;
  for (uint32_t k = lane; k < 128; k += 32) cells[k] = in[256 + k];
  for (uint32_t k = lane; k < 512; k += 32) out[k] = in[1024 + k];
  fence_async();
  __syncwarp();
  if (lane == 0) {
    REDUCE_1D("xor", &map0, 4, shared_address(cells));
    REDUCE_3D("add", &map1, 4, 1, 1, shared_address(cells + 32));
    REDUCE_4D("max", &map2, 4, 1, 1, 1, shared_address(cells + 64));
    REDUCE_5D("min", &map3, 4, 0, 1, 0, 1, shared_address(cells + 96));
    commit();
    wait_bulk();
  }
}
