// Wrong: the consumers flip their parity with every chunk, not with every round. One stage hides it.
// With two, chunk 1, announced by then, waits for phase 1 of full[1], which needs the slot that chunk 1 is in.
// expect: stale-parity @ 49
// blind: yes
// needs: core
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

  int stage = 0;
  uint32_t parity = 0;

  if (rank < producers) {
    for (int k = 0; k < chunks; k++) {
      float* slot = slots + stage * kChunk;
      while (!ptx::mbarrier_try_wait_parity(&empty[stage], parity ^ 1)) {
      }
      for (int j = rank; j < kChunk; j += producers) {
        const int at = k * kChunk + j;
        slot[j] = at < n ? 2.0f * in[at] : 0.0f;
      }
      ptx::mbarrier_arrive(&full[stage]);
      if (++stage == stages) {
        stage = 0;
        parity ^= 1;
      }
    }
  } else {
    for (int k = 0; k < chunks; k++) {
      const float* slot = slots + stage * kChunk;
      while (!ptx::mbarrier_try_wait_parity(&full[stage], parity)) {
      }
      for (int j = rank - producers; j < kChunk; j += producers) {
        const int at = k * kChunk + j;
        if (at < n) out[at] = slot[j] - slot[kChunk - 1 - j];
      }
      ptx::mbarrier_arrive(&empty[stage]);
      parity ^= 1;
      if (++stage == stages) stage = 0;
    }
  }
}
