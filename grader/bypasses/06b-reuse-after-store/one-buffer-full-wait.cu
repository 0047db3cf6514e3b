// Right results and no hazard, with one buffer that waits until the store has written global memory.
// Computing and storing take turns, with the longest possible pause.
#include "course.cuh"

constexpr int kTile = 256;

extern "C" __global__ void reuse_after_store(const float* in, float* out, int tiles) {
  __shared__ alignas(16) float staging[kTile];

  const uint32_t tile_bytes = kTile * sizeof(float);

  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    float* stage = staging;
    const int base = tile * kTile;

    if (threadIdx.x == 0) {
      ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
    }
    __syncthreads();

    for (int i = threadIdx.x; i < kTile; i += blockDim.x) {
      stage[kTile - 1 - i] = 2.0f * in[base + i] + 1.0f;
    }

    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();

    if (threadIdx.x == 0) {
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, &out[base], stage, tile_bytes);
      ptx::cp_async_bulk_commit_group();
    }
  }

  if (threadIdx.x == 0) {
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
  }
}
