// Wrong: every block works on at least one tile.
// With fewer tiles than blocks it reads past the input.
// expect: out-of-bounds @ 28
// needs: core
// blind: yes
#include "course.cuh"

constexpr int kTile = 256;
constexpr int kStages = 3;

extern "C" __global__ void reuse_after_store(const float* in, float* out, int tiles) {
  __shared__ alignas(16) float staging[kStages][kTile];

  const uint32_t tile_bytes = kTile * sizeof(float);

  int round = 0;
  int tile = blockIdx.x;
  do {
    float* stage = staging[round % kStages];
    const int base = tile * kTile;

    if (threadIdx.x == 0) {
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<kStages - 1>());
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
    round++;
    tile += gridDim.x;
  } while (tile < tiles);

  if (threadIdx.x == 0) {
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }
}
