// Right results without an mbarrier: the consumers compute every element from the input.
// No tile, no producers, no handoff.
#include "course.cuh"

constexpr int kTile = 256;

extern "C" __global__ void first_handoff(const float* in, float* out, int n) {
  const int base = blockIdx.x * kTile;
  const int rank = threadIdx.x;
  const int producers = blockDim.x / 2;

  if (rank < producers) {
    return;
  } else {
    for (int j = rank - producers; j < kTile; j += producers) {
      const int mirror = base + kTile - 1 - j;
      const float x = mirror < n ? in[mirror] : 0.0f;
      if (base + j < n) out[base + j] = 3.0f * x + 1.0f;
    }
  }
}
