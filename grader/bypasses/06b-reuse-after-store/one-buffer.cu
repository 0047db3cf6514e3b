// Right results and no hazard, but no ring: one staging buffer, and after every store the block stands still until the
// engine has read it. Computing and storing take turns.
#include "course.cuh"

constexpr int kTile = 256;

extern "C" __global__ void reuse_after_store(const float* in, float* out, int tiles) {
  __shared__ alignas(16) float staging[kTile];

  const uint32_t tile_bytes = kTile * sizeof(float);

  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int base = tile * kTile;

    for (int i = threadIdx.x; i < kTile; i += blockDim.x) {
      staging[kTile - 1 - i] = 2.0f * in[base + i] + 1.0f;
    }

    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();

    if (threadIdx.x == 0) {
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, &out[base], staging, tile_bytes);
      ptx::cp_async_bulk_commit_group();
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
    __syncthreads();
  }
}
