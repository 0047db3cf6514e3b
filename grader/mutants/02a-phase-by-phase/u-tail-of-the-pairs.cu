// Wrong: the loop is unrolled by two, and the odd round at the end waits with parity rounds & 1, that is 1
// The last round of an odd number is an even one, phase rounds - 1, parity 0: the wait names the phase before it.
// expect: stale-parity @ 32
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
  auto step = [&](float* now, int r, uint32_t parity) {
    if (owner) now[i] = value;
    ptx::mbarrier_arrive(&ready);
    const float added = in[(base + i + r) % n];
    while (!ptx::mbarrier_try_wait_parity(&ready, parity)) {
    }
    if (owner) value = 0.5f * value + 0.25f * (now[left] + now[right]) + added;
  };
  int r = 0;
  for (; r + 1 < rounds; r += 2) {
    step(cell[0], r, 0);
    step(cell[1], r + 1, 1);
  }
  if (r < rounds) step(cell[0], r, rounds & 1);
  if (owner) out[base + i] = value;
}
