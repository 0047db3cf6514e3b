// Wrong: each round waits with the token of the round before.
// That phase is over, so nothing is waited for; if this round is over, too, the token is too old to be legal.
// expect: stale-parity @ 35
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

  uint64_t token = 0;
  float value = owner ? in[base + i] : 0.0f;
  for (int r = 0; r < rounds; r++) {
    float* now = cell[r % 2];
    if (owner) now[i] = value;
    const uint64_t next = ptx::mbarrier_arrive(&ready);
    if (r == 0) token = next;
    const float added = in[(base + i + r) % n];
    while (!ptx::mbarrier_try_wait(&ready, token)) {
    }
    token = next;
    if (owner) value = 0.5f * value + 0.25f * (now[left] + now[right]) + added;
  }
  if (owner) out[base + i] = value;
}
