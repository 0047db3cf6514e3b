// Right results through a staging buffer and a block barrier: the threads, not the engine, store the tile.
// No handoff to the async proxy takes place.
#include "course.cuh"

constexpr int kTile = 256;

extern "C" __global__ void reuse_after_store(const float* in, float* out, int tiles) {
  __shared__ float staging[kTile];
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int base = tile * kTile;
    for (int i = threadIdx.x; i < kTile; i += blockDim.x) staging[kTile - 1 - i] = 2.0f * in[base + i] + 1.0f;
    __syncthreads();
    for (int i = threadIdx.x; i < kTile; i += blockDim.x) out[base + i] = staging[i];
    __syncthreads();
  }
}
