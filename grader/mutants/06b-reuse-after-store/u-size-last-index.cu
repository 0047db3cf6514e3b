// Wrong: the size is computed from the last index and not from the number of elements.
// 1020 bytes is no multiple of 16.
// expect: bad-copy @ 37
// needs: checker
// blind: unrun
#include "course.cuh"

constexpr int kTile = 256;  // floats
constexpr int kStages = 3;  // staging buffers

extern "C" __global__ void reuse_after_store(const float* in, float* out, int tiles) {
  __shared__ alignas(16) float staging[kStages][kTile];

  constexpr int kLast = kTile - 1;
  const uint32_t tile_bytes = kLast * sizeof(float);

  int round = 0;  // counts this block's tiles
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    float* stage = staging[round % kStages];
    const int base = tile * kTile;

    // Empty: thread 0 waits for its store of kStages rounds ago, the barrier tells everybody.
    if (threadIdx.x == 0) {
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<kStages - 1>());
    }
    __syncthreads();

    for (int i = threadIdx.x; i < kTile; i += blockDim.x) {
      stage[kTile - 1 - i] = 2.0f * in[base + i] + 1.0f;
    }

    // Full: each writer's fence, then the barrier.
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();

    if (threadIdx.x == 0) {
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, &out[base], stage, tile_bytes);
      ptx::cp_async_bulk_commit_group();
    }
    round++;
  }

  if (threadIdx.x == 0) {
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }
}
