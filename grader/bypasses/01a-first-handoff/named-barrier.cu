// Right results without an mbarrier: a named barrier, on which the producers arrive and the consumers sync.
// The same protocol on another mechanism.
#include "course.cuh"

constexpr int kTile = 256;

extern "C" __global__ void first_handoff(const float* in, float* out, int n) {
  __shared__ float tile[kTile];

  const int base = blockIdx.x * kTile;
  const int rank = threadIdx.x;
  const int producers = blockDim.x / 2;

  if (rank < producers) {
    for (int j = rank; j < kTile; j += producers) {
      const float x = base + j < n ? in[base + j] : 0.0f;
      tile[j] = 3.0f * x + 1.0f;
    }
    asm volatile("barrier.cta.arrive 1, %0;" ::"r"(blockDim.x) : "memory");
  } else {
    asm volatile("barrier.cta.sync 1, %0;" ::"r"(blockDim.x) : "memory");
    for (int j = rank - producers; j < kTile; j += producers) {
      if (base + j < n) out[base + j] = tile[kTile - 1 - j];
    }
  }
}
