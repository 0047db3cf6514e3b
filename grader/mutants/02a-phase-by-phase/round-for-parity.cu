// Wrong: the wait is given the number of the round, not its parity.
// Only 0 and 1 are parities; from round 2 on the answer is nobody's promise.
// expect: bad-parity @ 48
// needs: checker
#include "course.cuh"

constexpr int kMaxBlock = 256;  // threads

extern "C" __global__ void phase_by_phase(const float* in, float* out, int n, int rounds) {
  __shared__ float cell[2][kMaxBlock];  // the double buffer: round r uses cell[r % 2]
  __shared__ uint64_t ready;            // the mbarrier: "the values that round r starts from are written", phase r

  const int base = blockIdx.x * blockDim.x;
  const int i = threadIdx.x;
  const int cells = min(static_cast<int>(blockDim.x), n - base);
  const bool owner = i < cells;  // a thread beyond the last cell has none, and takes part in every phase all the same
  const int left = max(i - 1, 0);
  const int right = min(i + 1, cells - 1);

  // TODO(1): one thread initialises `ready`, once for the whole loop. How many arrivals complete each phase?
  // Then make the init visible: the mbarrier init fence, then a barrier of the whole block. It is the only one.
  if (i == 0) {
    ptx::mbarrier_init(&ready, blockDim.x);  // one arrival from each thread, cell or no cell, in every phase
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();  // no thread touches `ready` before its init
  // end TODO(1)

  float value = owner ? in[base + i] : 0.0f;
  for (int r = 0; r < rounds; r++) {
    float* now = cell[r % 2];
    if (owner) now[i] = value;

    // TODO(2): tell `ready` that this thread's value of round r is written. Do not wait yet.
    // Arrive, in phase r. Producer: this thread. Consumer: every thread of the block. Changes hands: now[i], written;
    // and the other buffer, which this thread read in round r - 1 and is done with. The arrive releases both, and does
    // not wait.
    ptx::mbarrier_arrive(&ready);
    // end TODO(2)

    // Work that needs nobody's value: while the others are still writing, fetch what this round adds.
    const float added = in[(base + i + r) % n];

    // TODO(3): wait for phase r of `ready`. Which parity does it have? The answer may be "not yet".
    // Wait, for phase r. Producer: every thread of the block. Consumer: this thread. Changes hands: all values that
    // round r starts from, to read; and the other buffer, to overwrite in round r + 1. Phase r has parity r % 2: it
    // flips each round because the barrier goes on by one phase each round.
    while (!ptx::mbarrier_try_wait_parity(&ready, r)) {
    }
    // end TODO(3)

    if (owner) value = 0.5f * value + 0.25f * (now[left] + now[right]) + added;
  }
  if (owner) out[base + i] = value;
}
