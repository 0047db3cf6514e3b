// Right: warp 0 only stores; the other warps only compute. Two mbarriers a buffer carry it there and back.
// Producers fence before they arrive on full; the storing thread arrives on empty once its wait has freed a buffer.
#include "course.cuh"

constexpr int kTile = 256;
constexpr int kStages = 3;

extern "C" __global__ void reuse_after_store(const float* in, float* out, int tiles) {
  __shared__ alignas(16) float staging[kStages][kTile];
  __shared__ uint64_t full[kStages], empty[kStages];

  const uint32_t tile_bytes = kTile * sizeof(float);
  const int producers = blockDim.x - 32;

  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; s++) {
      ptx::mbarrier_init(&full[s], producers);
      ptx::mbarrier_init(&empty[s], 1);
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();

  int round = 0;
  if (threadIdx.x == 0) {
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, round++) {
      const int s = round % kStages;
      while (!ptx::mbarrier_try_wait_parity(&full[s], round / kStages & 1)) {
      }
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, &out[tile * kTile], staging[s], tile_bytes);
      ptx::cp_async_bulk_commit_group();
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<kStages - 1>());
      if (round >= kStages - 1) ptx::mbarrier_arrive(&empty[(round + 1) % kStages]);
    }
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  } else if (threadIdx.x >= 32) {
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, round++) {
      const int s = round % kStages;
      while (!ptx::mbarrier_try_wait_parity(&empty[s], (round / kStages & 1) ^ 1)) {
      }
      for (int i = threadIdx.x - 32; i < kTile; i += producers) {
        staging[s][kTile - 1 - i] = 2.0f * in[tile * kTile + i] + 1.0f;
      }
      ptx::fence_proxy_async(ptx::space_shared);
      ptx::mbarrier_arrive(&full[s]);
    }
  }
}
