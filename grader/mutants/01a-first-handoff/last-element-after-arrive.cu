// Wrong: thread 0 writes the last element of the tile after it has arrived.
// That one write is ordered with nothing; its reader may see the old bytes.
// expect: data-race @ 37
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
    for (int j = rank; j < kTile - 1; j += producers) {
      const float x = base + j < n ? in[base + j] : 0.0f;
      tile[j] = 3.0f * x + 1.0f;
    }
    ptx::mbarrier_arrive(&full);
    if (rank == 0) {
      const int last = base + kTile - 1;
      tile[kTile - 1] = 3.0f * (last < n ? in[last] : 0.0f) + 1.0f;
    }
  } else {
    while (!ptx::mbarrier_try_wait_parity(&full, 0)) {
    }
    for (int j = rank - producers; j < kTile; j += producers) {
      if (base + j < n) out[base + j] = tile[kTile - 1 - j];
    }
  }
}
