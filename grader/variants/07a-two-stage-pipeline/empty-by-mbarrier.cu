// Right: each thread gives its share of a stage back on a second mbarrier, and only thread 0 waits for that.
// The other threads never stand at a block barrier in the loop, and may run a tile ahead of each other.
#include "course.cuh"

constexpr int kTile = 1024;
constexpr int kStages = 2;

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
  __shared__ uint64_t full[kStages], empty[kStages];

  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; s++) {
      ptx::mbarrier_init(&full[s], 1);
      ptx::mbarrier_init(&empty[s], blockDim.x);
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();

  const int first = blockIdx.x;
  if (threadIdx.x == 0 && first < tiles) {
    load_tile(stages[0], &in[first * kTile], &full[0]);
  }

  int i = 0;
  uint32_t phase_tma = 0;
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int stage = i % kStages;

    const int next = tile + gridDim.x, other = (i + 1) % kStages;
    if (threadIdx.x == 0 && next < tiles) {
      // Tile i + 1 is round (i + 1) / 2 of the other stage, which must have been released in the round before.
      while (!ptx::mbarrier_try_wait_parity(&empty[other], ((i + 1) / kStages & 1) ^ 1)) {
      }
      load_tile(stages[other], &in[next * kTile], &full[other]);
    }

    while (!ptx::mbarrier_try_wait_parity(&full[stage], phase_tma)) {
    }

    for (int j = threadIdx.x; j < kTile; j += blockDim.x) {
      out[tile * kTile + j] = f(stages[stage][j], steps);
    }

    ptx::mbarrier_arrive(&empty[stage]);
    if (stage == kStages - 1) phase_tma ^= 1;
    i++;
  }
}
