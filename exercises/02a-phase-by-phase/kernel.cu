// 02a phase-by-phase: one mbarrier is the barrier of a whole loop. Each round of a stencil is one phase.
//
//   value[i] = 0.5 * value[i] + 0.25 * (value[i - 1] + value[i + 1]) + in[(base + i + r) % n]     in round r
//
// One block works on one tile of blockDim.x cells, a cell a thread; the last tile may have fewer cells than threads.
// The first and the last cell of a tile count as their own neighbours, so blocks never meet. All values start as
// in[base + i] and end in out[base + i], after `rounds` rounds (0 or more). blockDim.x is a multiple of 32, at most
// 256; n is at least 1. The order of the additions above is part of the task. The factors are powers of two, so the
// products are exact, and it makes no difference whether the compiler fuses them with the additions.
// Chapter: chapters/02-phases/README.md
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
  (void)&ready;  // nothing uses it yet
  // end TODO(1)

  float value = owner ? in[base + i] : 0.0f;
  for (int r = 0; r < rounds; r++) {
    float* now = cell[r % 2];
    if (owner) now[i] = value;

    // TODO(2): tell `ready` that this thread's value of round r is written. Do not wait yet.
    // end TODO(2)

    // Work that needs nobody's value: while the others are still writing, fetch what this round adds.
    const float added = in[(base + i + r) % n];

    // TODO(3): wait for phase r of `ready`. Which parity does it have? The answer may be "not yet".
    // end TODO(3)

    if (owner) value = 0.5f * value + 0.25f * (now[left] + now[right]) + added;
  }
  if (owner) out[base + i] = value;
}
