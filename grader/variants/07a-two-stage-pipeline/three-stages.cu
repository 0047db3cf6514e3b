// Right: three stages, and two loads ahead of the tile in use.
// The parity flips when the stages have come round; one block barrier a tile frees the stage of the tile before.
#include "course.cuh"

constexpr int kTile = 1024;
constexpr int kStages = 3;

__device__ float f(float x, int steps) {
  for (int k = 0; k < steps; k++) x = fmaf(-0.875f, x, 1.0f);
  return x;
}

__device__ void load_tile(float* stage, const float* from, uint64_t* full) {
  const uint32_t tile_bytes = kTile * sizeof(float);
  ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, full, tile_bytes);
  ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, stage, from, tile_bytes, full);
}

extern "C" __global__ void two_stage(const float* in, float* out, int tiles, int steps) {
  __shared__ alignas(16) float stages[kStages][kTile];
  __shared__ uint64_t full[kStages];

  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; s++) ptx::mbarrier_init(&full[s], 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();

  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages - 1; s++) {
      const int tile = blockIdx.x + s * gridDim.x;
      if (tile < tiles) load_tile(stages[s], &in[tile * kTile], &full[s]);
    }
  }

  int stage = 0, free_stage = kStages - 1;
  uint32_t phase_tma = 0;
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int ahead = tile + (kStages - 1) * gridDim.x;
    if (threadIdx.x == 0 && ahead < tiles) {
      load_tile(stages[free_stage], &in[ahead * kTile], &full[free_stage]);
    }

    while (!ptx::mbarrier_try_wait_parity(&full[stage], phase_tma)) {
    }

    for (int j = threadIdx.x; j < kTile; j += blockDim.x) {
      out[tile * kTile + j] = f(stages[stage][j], steps);
    }

    __syncthreads();
    free_stage = stage;
    if (++stage == kStages) {
      stage = 0;
      phase_tma ^= 1;
    }
  }
}
