// Right results without any handoff: thread 0 computes the whole tile.
// The others have nothing to do.
#include "course.cuh"

constexpr int kMaxBlock = 256;

extern "C" __global__ void phase_by_phase(const float* in, float* out, int n, int rounds) {
  __shared__ float cell[2][kMaxBlock];

  const int base = blockIdx.x * blockDim.x;
  const int cells = min(static_cast<int>(blockDim.x), n - base);
  if (threadIdx.x != 0) return;

  for (int i = 0; i < cells; i++) cell[0][i] = in[base + i];
  for (int r = 0; r < rounds; r++) {
    const float* now = cell[r % 2];
    float* next = cell[(r + 1) % 2];
    for (int i = 0; i < cells; i++) {
      const float neighbours = now[max(i - 1, 0)] + now[min(i + 1, cells - 1)];
      next[i] = 0.5f * now[i] + 0.25f * neighbours + in[(base + i + r) % n];
    }
  }
  for (int i = 0; i < cells; i++) out[base + i] = cell[rounds % 2][i];
}
