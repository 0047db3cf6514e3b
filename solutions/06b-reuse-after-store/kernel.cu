// 06b reuse-after-store: bulk stores drain a ring of staging buffers while the block fills the next ones.
//
//   out[256 * t + i] = 2 * in[256 * t + (255 - i)] + 1,   for every tile t < tiles, 0 <= i < 256
//
// One tile is 256 floats (1024 bytes). Block b works on tiles b, b + gridDim.x, b + 2 * gridDim.x, …; it may get no
// tile at all. For each, all threads compute the results into a buffer in shared memory, and one bulk store, issued by
// thread 0, takes them to global memory. Three buffers take turns. Chapter: chapters/06-stores/README.md
#include "course.cuh"

constexpr int kTile = 256;  // floats
constexpr int kStages = 3;  // staging buffers

extern "C" __global__ void reuse_after_store(const float* in, float* out, int tiles) {
  __shared__ alignas(16) float staging[kStages][kTile];  // the source of a bulk store is 16-byte aligned

  const uint32_t tile_bytes = kTile * sizeof(float);  // 1024: a multiple of 16, as the size of a bulk store must be

  int round = 0;  // counts this block's tiles: 0, 1, 2, …
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    float* stage = staging[round % kStages];  // last used kStages rounds ago
    const int base = tile * kTile;

    // TODO(1): the store issued kStages rounds ago may still be reading `stage`. Thread 0, whose stores they are, waits
    // until it no longer does, and lets the younger ones run; then every thread of the block learns of it.
    // Wait. Producer: the copy engine, which has read the buffer. Consumer: thread 0. Changes hands: `stage`, empty. In
    // round r this thread has committed r groups; that of round r - kStages is done when at most kStages - 1 are
    // pending.
    if (threadIdx.x == 0) {
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<kStages - 1>());
    }
    // Block barrier. Producer: thread 0, which has seen that `stage` is empty. Consumer: every thread, which may now
    // fill it. Bulk groups belong to the thread that committed them, so nobody else could have waited for them.
    __syncthreads();
    // end TODO(1)

    for (int i = threadIdx.x; i < kTile; i += blockDim.x) {
      stage[kTile - 1 - i] = 2.0f * in[base + i] + 1.0f;
    }

    // TODO(2): hand `stage` over: make this thread's stores to it visible to the copy engine, then meet thread 0.
    // The proxy fence orders this thread's ordinary stores to shared memory before accesses of the async proxy, which
    // the copy engine uses. Each writer executes it, after its writes and before the barrier.
    ptx::fence_proxy_async(ptx::space_shared);
    // Block barrier. Producer: every thread. Consumer: thread 0, on the copy engine's behalf. Changes hands: `stage`,
    // full.
    __syncthreads();
    // end TODO(2)

    if (threadIdx.x == 0) {
      // TODO(3): store the tile to &out[base] with one bulk copy, and close a bulk group with it.
      // Issuing is not completing: the engine reads `stage` at some later time, and nobody may write it until then.
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, &out[base], stage, tile_bytes);
      // One group for each round, so that a number of groups is a number of buffers.
      ptx::cp_async_bulk_commit_group();
      // end TODO(3)
    }
    round++;
  }

  // TODO(4): before the block ends, the engine must have read its shared memory for the last time.
  // Wait. Producer: the copy engine, which has read all buffers. Consumer: thread 0. Changes hands: the block's shared
  // memory, which is free to go. The writes to `out` are complete when the grid is, so `.read` is enough.
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }
  // end TODO(4)
}
