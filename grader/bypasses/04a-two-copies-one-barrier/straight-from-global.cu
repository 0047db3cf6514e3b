// Right results without a bulk copy: no tile at all.
// Every element is read from global memory twice.
#include "course.cuh"

constexpr int kTile = 1024;

extern "C" __global__ void two_copies(const float* in, float* out, int n) {
  const int base = blockIdx.x * kTile;

  for (int i = threadIdx.x; i < kTile; i += blockDim.x) {
    out[base + i] = 2.0f * in[base + i] + in[base + kTile - 1 - i];
  }
}
