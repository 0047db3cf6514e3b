// Right: four stages, all filled before the loop; each is refilled behind its own use, with the tile four rounds on.
// The parity is computed from the number of the tile, as the round in which it passes.
#include "course.cuh"

constexpr int kTile = 1024;
constexpr int kStages = 4;

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
    for (int s = 0; s < kStages; s++) {
      const int tile = blockIdx.x + s * gridDim.x;
      if (tile < tiles) load_tile(stages[s], &in[tile * kTile], &full[s]);
    }
  }

  int i = 0;
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int stage = i % kStages;

    while (!ptx::mbarrier_try_wait_parity(&full[stage], i / kStages & 1)) {
    }

    for (int j = threadIdx.x; j < kTile; j += blockDim.x) {
      out[tile * kTile + j] = f(stages[stage][j], steps);
    }

    __syncthreads();
    const int refill = tile + kStages * gridDim.x;
    if (threadIdx.x == 0 && refill < tiles) {
      load_tile(stages[stage], &in[refill * kTile], &full[stage]);
    }
    i++;
  }
}
