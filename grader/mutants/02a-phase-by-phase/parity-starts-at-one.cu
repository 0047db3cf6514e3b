// Wrong: the parity is one ahead, as if the rounds were counted from 1.
// In round 0 that is the phase before phase 0, true at once; or, if phase 0 is complete by then, phase 1: for ever.
// expect: stale-parity @ 33
// needs: checker
// blind: yes
#include "course.cuh"

constexpr int kMaxBlock = 256;

extern "C" __global__ void phase_by_phase(const float* in, float* out, int n, int rounds) {
  __shared__ float cell[2][kMaxBlock];
  __shared__ uint64_t ready;

  const int base = blockIdx.x * blockDim.x;
  const int i = threadIdx.x;
  const int cells = min(static_cast<int>(blockDim.x), n - base);
  const bool owner = i < cells;
  const int left = max(i - 1, 0);
  const int right = min(i + 1, cells - 1);

  if (i == 0) {
    ptx::mbarrier_init(&ready, blockDim.x);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();

  float value = owner ? in[base + i] : 0.0f;
  for (int r = 0; r < rounds; r++) {
    float* now = cell[r % 2];
    if (owner) now[i] = value;
    ptx::mbarrier_arrive(&ready);
    const float added = in[(base + i + r) % n];
    while (!ptx::mbarrier_try_wait_parity(&ready, (r + 1) & 1)) {
    }
    if (owner) value = 0.5f * value + 0.25f * (now[left] + now[right]) + added;
  }
  if (owner) out[base + i] = value;
}
