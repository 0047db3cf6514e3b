// Wrong: a producer that meets the end of the input returns without arriving.
// In the last, ragged tile the missing arrivals never come. Sizes that fill every tile work.
// expect: deadlock @ 31
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
      if (base + j >= n) return;
      const float x = in[base + j];
      tile[j] = 3.0f * x + 1.0f;
    }
    ptx::mbarrier_arrive(&full);
  } else {
    while (!ptx::mbarrier_try_wait_parity(&full, 0)) {
    }
    for (int j = rank - producers; j < kTile; j += producers) {
      if (base + j < n) out[base + j] = tile[kTile - 1 - j];
    }
  }
}
