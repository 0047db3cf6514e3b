// Wrong: between arrive and wait each thread clears its cell of the other buffer, so that no old value is left
// The other buffer is free only after the wait: neighbours may still be reading it for the round before.
// expect: data-race @ 35
// needs: checker
// blind: unrun
#include "course.cuh"

constexpr int kMaxBlock = 256;  // threads

extern "C" __global__ void phase_by_phase(const float* in, float* out, int n, int rounds) {
  __shared__ float cell[2][kMaxBlock];  // the double buffer: round r uses cell[r % 2]
  __shared__ uint64_t ready;            // the mbarrier: "the values that round r starts from are written", phase r

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
    float* now = cell[r % 2];
    if (owner) now[i] = value;

    ptx::mbarrier_arrive(&ready);

    const float added = in[(base + i + r) % n];
    if (owner) cell[(r + 1) % 2][i] = 0.0f;

    while (!ptx::mbarrier_try_wait_parity(&ready, r & 1)) {
    }

    if (owner) value = 0.5f * value + 0.25f * (now[left] + now[right]) + added;
  }
  if (owner) out[base + i] = value;
}
