// Wrong: two threads issue in turn, and each waits for the depth that would be right for one issuer.
// Groups count per thread: two pending groups of one issuer reach back four rounds, past that of three rounds ago.
// expect: group-not-awaited @ 31
// needs: checker
// blind: unrun
#include "course.cuh"

constexpr int kTile = 256;  // floats
constexpr int kStages = 3;  // staging buffers

extern "C" __global__ void reuse_after_store(const float* in, float* out, int tiles) {
  __shared__ alignas(16) float staging[kStages][kTile];

  const uint32_t tile_bytes = kTile * sizeof(float);

  // Thread 0 issues the even rounds, thread 32 the odd ones.
  const bool issuer = threadIdx.x == 0 || threadIdx.x == 32;

  int round = 0;  // counts this block's tiles
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    float* stage = staging[round % kStages];
    const int base = tile * kTile;

    // Empty: the issuers wait for their stores, the barrier tells everybody.
    if (issuer) {
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<kStages - 1>());
    }
    __syncthreads();

    for (int i = threadIdx.x; i < kTile; i += blockDim.x) {
      stage[kTile - 1 - i] = 2.0f * in[base + i] + 1.0f;
    }

    // Full: each writer's fence, then the barrier.
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();

    if (threadIdx.x == 32 * (round & 1)) {
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, &out[base], stage, tile_bytes);
      ptx::cp_async_bulk_commit_group();
    }
    round++;
  }

  if (issuer) {
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }
}
