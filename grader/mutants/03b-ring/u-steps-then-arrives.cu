// Wrong: the producers go on to the next stage before they arrive
// the arrive goes to full of the next stage; with two stages and one chunk nobody arrives on full[0]
// expect: deadlock @ 58
// needs: checker
// blind: unrun
// 03b ring: half of a block fills the slots of a ring, the other half empties them; each slot has two mbarriers.
#include "course.cuh"

constexpr int kChunk = 256;  // floats

// A place in the ring.
struct Place {
  int stage = 0;
  uint32_t parity = 0;
  __device__ void next(int stages) {
    if (++stage == stages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

extern "C" __global__ void ring(const float* in, float* out, int n, int stages) {
  extern __shared__ __align__(16) float slots[];
  uint64_t* full = reinterpret_cast<uint64_t*>(slots + stages * kChunk);
  uint64_t* empty = full + stages;

  const int chunks = (n + kChunk - 1) / kChunk;
  const int rank = threadIdx.x;
  const int producers = blockDim.x / 2;  // producer threads, and as many consumer threads

  if (rank == 0) {
    for (int s = 0; s < stages; s++) {
      ptx::mbarrier_init(&full[s], producers);
      ptx::mbarrier_init(&empty[s], producers);
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();

  Place here;

  if (rank < producers) {
    for (int k = 0; k < chunks; k++) {
      float* slot = slots + here.stage * kChunk;
      while (!ptx::mbarrier_try_wait_parity(&empty[here.stage], here.parity ^ 1)) {
      }
      for (int j = rank; j < kChunk; j += producers) {
        const int at = k * kChunk + j;
        slot[j] = at < n ? 2.0f * in[at] : 0.0f;
      }
      here.next(stages);
      ptx::mbarrier_arrive(&full[here.stage]);
    }
  } else {
    for (int k = 0; k < chunks; k++) {
      const float* slot = slots + here.stage * kChunk;
      while (!ptx::mbarrier_try_wait_parity(&full[here.stage], here.parity)) {
      }
      for (int j = rank - producers; j < kChunk; j += producers) {
        const int at = k * kChunk + j;
        if (at < n) out[at] = slot[j] - slot[kChunk - 1 - j];
      }
      ptx::mbarrier_arrive(&empty[here.stage]);
      here.next(stages);
    }
  }
}
