// A wrong answer to 01a first-handoff, for the demonstration: `if` stands where a loop belongs.
//
// try_wait may give up before the phase is complete and answer "not yet". This kernel asks once, and then reads the
// tile whatever the answer was. On a GPU it may pass for a long time, because a try usually sleeps long enough.
#include "course.cuh"

constexpr int kTile = 256;  // elements

extern "C" __global__ void first_handoff(const float* in, float* out, int n) {
  __shared__ float tile[kTile];
  __shared__ uint64_t full;  // the mbarrier: "the tile is full"

  const int base = blockIdx.x * kTile;
  const int rank = threadIdx.x;
  const int producers = blockDim.x / 2;  // producer threads, and as many consumer threads

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
    if (!ptx::mbarrier_try_wait_parity(&full, 0)) {
      __nanosleep(20);  // "the producers will surely be done by then"
    }
    for (int j = rank - producers; j < kTile; j += producers) {
      if (base + j < n) out[base + j] = tile[kTile - 1 - j];
    }
  }
}
