// Right: the barrier counts every thread. Each arrives when the load is ordered, and keeps the token of that arrival.
// The wait is for the token's phase, and no parity is kept anywhere.
#include "course.cuh"

constexpr int kTile = 1024;
constexpr int kStages = 2;

__device__ float f(float x, int steps) {
  for (int k = 0; k < steps; k++) x = fmaf(-0.875f, x, 1.0f);
  return x;
}

// Every thread calls it; thread 0 orders the copy. Returns the state of `full` before this thread's arrival.
__device__ uint64_t load_tile(float* stage, const float* from, uint64_t* full) {
  const uint32_t tile_bytes = kTile * sizeof(float);
  if (threadIdx.x != 0) return ptx::mbarrier_arrive(full);
  ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, stage, from, tile_bytes, full);
  return ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, full, tile_bytes);
}

extern "C" __global__ void two_stage(const float* in, float* out, int tiles, int steps) {
  __shared__ alignas(16) float stages[kStages][kTile];
  __shared__ uint64_t full[kStages];

  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; s++) ptx::mbarrier_init(&full[s], blockDim.x);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();

  const int first = blockIdx.x;
  uint64_t token = 0;
  if (first < tiles) {
    token = load_tile(stages[0], &in[first * kTile], &full[0]);
  }

  int i = 0;
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int stage = i % kStages;

    const int next = tile + gridDim.x, other = (i + 1) % kStages;
    uint64_t next_token = 0;
    if (next < tiles) {
      next_token = load_tile(stages[other], &in[next * kTile], &full[other]);
    }

    while (!ptx::mbarrier_try_wait(&full[stage], token)) {
    }

    for (int j = threadIdx.x; j < kTile; j += blockDim.x) {
      out[tile * kTile + j] = f(stages[stage][j], steps);
    }

    __syncthreads();
    token = next_token;
    i++;
  }
}
