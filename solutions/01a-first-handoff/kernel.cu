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
  if (rank == 0) {
    ptx::mbarrier_init(&full, producers);  // one arrival from each producer thread
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();  // no thread touches `full` before its init
  // end TODO(1)

  if (rank < producers) {
    for (int j = rank; j < kTile; j += producers) {
      const float x = base + j < n ? in[base + j] : 0.0f;
      tile[j] = 3.0f * x + 1.0f;
    }
    // TODO(2): tell `full` that this thread's elements are written.
    // Arrive. Producer: this thread. Consumer: the second half of the block. Changes hands: the elements that this
    // thread wrote. The arrive releases the writes above it, and does not wait.
    ptx::mbarrier_arrive(&full);
    // end TODO(2)
  } else {
    // TODO(3): wait for phase 0 of `full` (parity 0). The answer may be "not yet".
    // Wait. Producer: the first half of the block. Consumer: this thread. Changes hands: the whole tile, once every
    // producer has arrived. try_wait may give up and return false, hence the loop.
    while (!ptx::mbarrier_try_wait_parity(&full, 0)) {
    }
    // end TODO(3)
    for (int j = rank - producers; j < kTile; j += producers) {
      if (base + j < n) out[base + j] = tile[kTile - 1 - j];
    }
  }
}
