// Wrong: the tile goes out in two stores that share 16 bytes.
// Two stores of a group are not ordered, and both write these bytes.
// expect: data-race @ 36
// needs: checker
// blind: yes
#include "course.cuh"

constexpr int kTile = 256;
constexpr int kStages = 3;

extern "C" __global__ void reuse_after_store(const float* in, float* out, int tiles) {
  __shared__ alignas(16) float staging[kStages][kTile];

  const uint32_t tile_bytes = kTile * sizeof(float);

  int round = 0;
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
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
      const int half = kTile / 2;
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, &out[base], stage, tile_bytes / 2);
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, &out[base + half - 4], stage + half - 4,
                         tile_bytes / 2 + 16);
      ptx::cp_async_bulk_commit_group();
    }
    round++;
  }

  if (threadIdx.x == 0) {
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }
}
