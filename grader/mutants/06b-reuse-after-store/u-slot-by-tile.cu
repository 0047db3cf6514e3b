// Wrong: the buffer is chosen by the tile's number and not by the count of this block's rounds.
// In a grid of 3 blocks every tile of a block falls on one buffer, and a wait of depth 2 lets its last store go on.
// expect: group-not-awaited @ 27
// needs: checker
// blind: unrun
#include "course.cuh"

constexpr int kTile = 256;  // floats
constexpr int kStages = 3;  // staging buffers

extern "C" __global__ void reuse_after_store(const float* in, float* out, int tiles) {
  __shared__ alignas(16) float staging[kStages][kTile];

  const uint32_t tile_bytes = kTile * sizeof(float);

  int tile = blockIdx.x;
  while (tile < tiles) {
    float* stage = &staging[tile % kStages][0];

    if (threadIdx.x == 0) {
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<kStages - 1>());
    }
    __syncthreads();

    const float* source = in + tile * kTile;
    for (int i = threadIdx.x; i < kTile; i += blockDim.x) {
      stage[kTile - 1 - i] = 2.0f * source[i] + 1.0f;
    }

    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();

    if (threadIdx.x == 0) {
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + tile * kTile, stage, tile_bytes);
      ptx::cp_async_bulk_commit_group();
    }
    tile += gridDim.x;
  }

  if (threadIdx.x == 0) {
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }
}
