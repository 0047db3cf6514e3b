// Wrong: cells and barrier share one pool, and a spare cell between them puts the barrier at 4 modulo 8
// An mbarrier must be aligned to 8 bytes.
// expect: misaligned @ 22
// needs: checker
// blind: unrun
#include "course.cuh"

constexpr int kMaxBlock = 256;  // threads

extern "C" __global__ void phase_by_phase(const float* in, float* out, int n, int rounds) {
  __shared__ __align__(8) float pool[2 * kMaxBlock + 4];  // both buffers, a spare cell, the mbarrier
  uint64_t* ready = reinterpret_cast<uint64_t*>(pool + 2 * kMaxBlock + 1);

  const int base = blockIdx.x * blockDim.x;
  const int i = threadIdx.x;
  const int cells = min(static_cast<int>(blockDim.x), n - base);
  const bool owner = i < cells;  // a thread beyond the last cell has none
  const int left = max(i - 1, 0);
  const int right = min(i + 1, cells - 1);

  if (i == 0) {
    ptx::mbarrier_init(ready, blockDim.x);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();

  float value = owner ? in[base + i] : 0.0f;
  for (int r = 0; r < rounds; r++) {
    float* now = pool + (r % 2) * kMaxBlock;
    if (owner) now[i] = value;

    ptx::mbarrier_arrive(ready);

    const float added = in[(base + i + r) % n];

    while (!ptx::mbarrier_try_wait_parity(ready, r & 1)) {
    }

    if (owner) value = 0.5f * value + 0.25f * (now[left] + now[right]) + added;
  }
  if (owner) out[base + i] = value;
}
