// Right results without an mbarrier: an atomic counter with fences, on which the block spins.
// A barrier made by hand.
#include "course.cuh"

constexpr int kMaxBlock = 256;

extern "C" __global__ void phase_by_phase(const float* in, float* out, int n, int rounds) {
  __shared__ float cell[2][kMaxBlock];
  __shared__ int written;

  const int base = blockIdx.x * blockDim.x;
  const int i = threadIdx.x;
  const int cells = min(static_cast<int>(blockDim.x), n - base);
  const bool owner = i < cells;
  const int left = max(i - 1, 0);
  const int right = min(i + 1, cells - 1);

  if (i == 0) written = 0;
  __syncthreads();

  float value = owner ? in[base + i] : 0.0f;
  for (int r = 0; r < rounds; r++) {
    float* now = cell[r % 2];
    if (owner) now[i] = value;
    __threadfence_block();
    atomicAdd(&written, 1);
    const float added = in[(base + i + r) % n];
    while (*static_cast<volatile int*>(&written) < static_cast<int>(blockDim.x) * (r + 1)) {
    }
    __threadfence_block();
    if (owner) value = 0.5f * value + 0.25f * (now[left] + now[right]) + added;
  }
  if (owner) out[base + i] = value;
}
