// 04a two-copies-one-barrier: the copy engine brings a tile in two pieces; one mbarrier counts the bytes of both.
//
//   out[base + i] = 2 * tile[i] + tile[1023 - i],   tile[i] = in[base + i]
//
// One block works on one tile of 1024 floats (4096 bytes); n is a multiple of 1024. The tile arrives as two bulk copies
// of 2048 bytes, issued by one thread. Every element needs both halves. Chapter: chapters/04-bulk-copies/README.md
#include "course.cuh"

constexpr int kTile = 1024;  // floats

extern "C" __global__ void two_copies(const float* in, float* out, int n) {
  __shared__ alignas(16) float tile[kTile];  // a bulk copy needs 16-byte aligned addresses
  __shared__ uint64_t full;                  // the mbarrier: "the tile is full"

  const int base = blockIdx.x * kTile;
  const uint32_t half_bytes = kTile / 2 * sizeof(float);  // 2048: a multiple of 16, as the size of a bulk copy must be

  // One arrival completes the phase: that of the thread which issues the copies. The copies do not arrive, they count
  // bytes. The fence makes the init visible to the copy engine, the barrier makes it visible to the block's threads.
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();

  if (threadIdx.x == 0) {
    // TODO(1): arrive on `full` and, with the same instruction, announce how many bytes this phase brings. The chapter
    // shows the call; it takes five arguments.
    // end TODO(1)

    // Issuing is not completing: both calls return at once. As the bytes land, the engine takes them off the tx-count.
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, &tile[0], &in[base], half_bytes, &full);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, &tile[512], &in[base + 512], half_bytes, &full);
  }

  // TODO(2): every thread waits for phase 0 of `full` (parity 0). The answer may be "not yet".
  // end TODO(2)

  for (int i = threadIdx.x; i < kTile; i += blockDim.x) {
    out[base + i] = 2.0f * tile[i] + tile[kTile - 1 - i];
  }
}
