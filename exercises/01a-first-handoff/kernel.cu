// 01a first-handoff: one group of threads fills a tile, another group reads it, and one mbarrier stands between them.
//
//   out[base + j] = tile[255 - j],   tile[j] = 3 * in[base + j] + 1   (in counts as 0 beyond n)
//
// One block works on one tile of 256 elements. The first half of its warps are producers, the second half consumers.
// blockDim.x is a multiple of 64, at most 256. Chapter: chapters/01-one-handoff/README.md
#include "course.cuh"

constexpr int kTile = 256;  // elements

extern "C" __global__ void first_handoff(const float* in, float* out, int n) {
  __shared__ float tile[kTile];
  __shared__ uint64_t full;  // the mbarrier: "the tile is full"

  const int base = blockIdx.x * kTile;
  const int rank = threadIdx.x;
  const int producers = blockDim.x / 2;  // producer threads, and as many consumer threads

  // TODO(1): one thread initialises `full`. How many arrivals complete its phase?
  // Then make the init visible: the mbarrier init fence, then a barrier of the whole block.
  (void)&full;  // nothing uses it yet; PTX's mbarrier.init is ptx::mbarrier_init, and so on (see course.cuh)
  // end TODO(1)

  if (rank < producers) {
    for (int j = rank; j < kTile; j += producers) {
      const float x = base + j < n ? in[base + j] : 0.0f;
      tile[j] = 3.0f * x + 1.0f;
    }
    // TODO(2): tell `full` that this thread's elements are written.
    // end TODO(2)
  } else {
    // TODO(3): wait for phase 0 of `full` (parity 0). The answer may be "not yet".
    // end TODO(3)
    for (int j = rank - producers; j < kTile; j += producers) {
      if (base + j < n) out[base + j] = tile[kTile - 1 - j];
    }
  }
}
