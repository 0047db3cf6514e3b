// Wrong: the consumers arrive as well, and the count is that of the producers.
// Their arrivals complete phase 0 before the producers have written, whose own arrivals then fall into a phase that nobody waits for.
// expect: data-race @ 26
// needs: checker
#include "course.cuh"

constexpr int kTile = 256;

extern "C" __global__ void first_handoff(const float* in, float* out, int n) {
  __shared__ float tile[kTile];
  __shared__ uint64_t full;

  const int base = blockIdx.x * kTile;
  const int rank = threadIdx.x;
  const int producers = blockDim.x / 2;

  if (rank == 0) {
    ptx::mbarrier_init(&full, producers);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();

  if (rank < producers) {
    for (int j = rank; j < kTile; j += producers) {
      const float x = base + j < n ? in[base + j] : 0.0f;
      tile[j] = 3.0f * x + 1.0f;
    }
    ptx::mbarrier_arrive(&full);
  } else {
    ptx::mbarrier_arrive(&full);
    while (!ptx::mbarrier_try_wait_parity(&full, 0)) {
    }
    for (int j = rank - producers; j < kTile; j += producers) {
      if (base + j < n) out[base + j] = tile[kTile - 1 - j];
    }
  }
}
