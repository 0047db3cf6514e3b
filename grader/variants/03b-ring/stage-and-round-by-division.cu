// Right: stage and parity are computed from the chunk number.
// Stage k % stages, round k / stages; the parity is the last bit of the round.
#include "course.cuh"

constexpr int kChunk = 256;

extern "C" __global__ void ring(const float* in, float* out, int n, int stages) {
  extern __shared__ __align__(16) float slots[];
  uint64_t* full = reinterpret_cast<uint64_t*>(slots + stages * kChunk);
  uint64_t* empty = full + stages;

  const int chunks = (n + kChunk - 1) / kChunk;
  const int rank = threadIdx.x;
  const int producers = blockDim.x / 2;

  if (rank == 0) {
    for (int s = 0; s < stages; s++) {
      ptx::mbarrier_init(&full[s], producers);
      ptx::mbarrier_init(&empty[s], producers);
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();

  if (rank < producers) {
    for (int k = 0; k < chunks; k++) {
      const int stage = k % stages;
      const uint32_t round = k / stages;
      float* slot = slots + stage * kChunk;
      while (!ptx::mbarrier_try_wait_parity(&empty[stage], (round + 1) & 1)) {
      }
      for (int j = rank; j < kChunk; j += producers) {
        const int at = k * kChunk + j;
        slot[j] = at < n ? 2.0f * in[at] : 0.0f;
      }
      ptx::mbarrier_arrive(&full[stage]);
    }
  } else {
    for (int k = 0; k < chunks; k++) {
      const int stage = k % stages;
      const uint32_t round = k / stages;
      const float* slot = slots + stage * kChunk;
      while (!ptx::mbarrier_try_wait_parity(&full[stage], round & 1)) {
      }
      for (int j = rank - producers; j < kChunk; j += producers) {
        const int at = k * kChunk + j;
        if (at < n) out[at] = slot[j] - slot[kChunk - 1 - j];
      }
      ptx::mbarrier_arrive(&empty[stage]);
    }
  }
}
