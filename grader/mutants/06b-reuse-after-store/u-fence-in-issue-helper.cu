// Wrong: the proxy fence is in the helper that issues, after the barrier, and only thread 0 calls that.
// The fence speaks for the thread that executes it; the writers execute none.
// expect: proxy-fence-misplaced @ 13
// needs: checker
// blind: unrun
#include "course.cuh"

constexpr int kTile = 256;  // floats
constexpr int kStages = 3;  // staging buffers

__device__ inline void store_tile(float* destination, const float* stage) {
  ptx::fence_proxy_async(ptx::space_shared);
  ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, destination, stage, kTile * sizeof(float));
  ptx::cp_async_bulk_commit_group();
}

extern "C" __global__ void reuse_after_store(const float* in, float* out, int tiles) {
  __shared__ alignas(16) float staging[kStages][kTile];

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

    __syncthreads();

    if (threadIdx.x == 0) {
      store_tile(&out[base], stage);
    }
    round++;
  }

  if (threadIdx.x == 0) {
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }
}
