// Wrong: the input comes in two bulk loads of half a tile, and only one of them is announced.
// The phase can complete when the first half has landed; the other 512 bytes go to the next phase.
// expect: tx-bytes-mismatch @ 33
// needs: checker
// blind: unrun
#include "course.cuh"

constexpr int kTile = 256;  // floats
constexpr int kStages = 3;  // staging buffers

extern "C" __global__ void reuse_after_store(const float* in, float* out, int tiles) {
  __shared__ alignas(16) float staging[kStages][kTile];
  __shared__ alignas(16) float input[kTile];  // the tile as it came, by bulk load
  __shared__ uint64_t full;                   // `input` is full

  const uint32_t tile_bytes = kTile * sizeof(float);

  const uint32_t half = tile_bytes / 2;

  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();

  int round = 0;  // counts this block's tiles
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    float* stage = staging[round % kStages];
    const int base = tile * kTile;

    if (threadIdx.x == 0) {
      // Everybody has read `input`: the barrier before the last store came after that.
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, half);
      for (int h = 0; h < 2; h++) {
        float* part = input + h * (kTile / 2);
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, part, &in[base + h * (kTile / 2)], half, &full);
      }
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<kStages - 1>());
    }
    __syncthreads();

    const uint32_t parity = round & 1;
    while (!ptx::mbarrier_try_wait_parity(&full, parity)) {
    }
    for (int i = threadIdx.x; i < kTile; i += blockDim.x) {
      stage[kTile - 1 - i] = 2.0f * input[i] + 1.0f;
    }

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
