// Wrong: cells and barrier are packed into one pool, the barrier 8 bytes too low: in the last two cells of buffer 1
// In round 1 the last two threads of a full tile write their values over the live barrier.
// expect: barrier-overwritten @ 30
// needs: checker
// blind: unrun
#include "course.cuh"

constexpr int kMaxBlock = 256;  // threads

extern "C" __global__ void phase_by_phase(const float* in, float* out, int n, int rounds) {
  __shared__ __align__(8) float pool[2 * kMaxBlock + 2];  // both buffers, blockDim.x cells each, then the mbarrier
  uint64_t& ready = *(reinterpret_cast<uint64_t*>(pool + 2 * blockDim.x) - 1);

  const int base = blockIdx.x * blockDim.x;
  const int i = threadIdx.x;
  const int cells = min(static_cast<int>(blockDim.x), n - base);
  const bool owner = i < cells;  // a thread beyond the last cell has none
  const int left = max(i - 1, 0);
  const int right = min(i + 1, cells - 1);

  if (i == 0) {
    ptx::mbarrier_init(&ready, blockDim.x);  // one arrival from each thread in every phase
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();

  float value = owner ? in[base + i] : 0.0f;
  for (int r = 0; r < rounds; r++) {
    float* now = pool + (r % 2) * blockDim.x;
    if (owner) now[i] = value;

    ptx::mbarrier_arrive(&ready);

    const float added = in[(base + i + r) % n];

    while (!ptx::mbarrier_try_wait_parity(&ready, r & 1)) {
    }

    if (owner) value = 0.5f * value + 0.25f * (now[left] + now[right]) + added;
  }
  if (owner) out[base + i] = value;
}
