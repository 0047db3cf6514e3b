// 07a two-stage-pipeline: while the threads use one tile, the copy engine brings the next one.
//
//   out[1024 * t + j] = f(in[1024 * t + j]),   for every tile t < tiles, 0 <= j < 1024
//
// One tile is 1024 floats (4096 bytes). Block b works on tiles b, b + gridDim.x, b + 2 * gridDim.x, …; it may get no
// tile at all. Tile number i of a block, i = 0, 1, 2, …, passes through stage i % 2 of shared memory: thread 0 orders a
// bulk copy into it, all threads of the block compute f of its elements and store the results with ordinary stores.
// Before tile i is used, the copy of tile i + 1 is under way. Chapter: chapters/07-pipelines/README.md
#include "course.cuh"

constexpr int kTile = 1024;  // floats
constexpr int kStages = 2;   // tile i passes through stage i % kStages

// The function of each element. `steps` makes it light or heavy; with 0 it is a copy.
__device__ float f(float x, int steps) {
  for (int k = 0; k < steps; k++) x = fmaf(-0.875f, x, 1.0f);
  return x;
}

// Orders the copy of one tile from `from` into `stage`; `full` is that stage's barrier. One thread calls it.
__device__ void load_tile(float* stage, const float* from, uint64_t* full) {
  const uint32_t tile_bytes = kTile * sizeof(float);  // 4096: a multiple of 16, as the size of a bulk copy must be
  // TODO(1): announce the bytes on `full`, and arrive there; then issue the copy.
  // Arrive. Producer: the copy engine, on this thread's behalf. Consumer: every thread of the block. Changes hands:
  // `stage`, full, once this one arrival is in and all bytes announced here have landed.
  ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, full, tile_bytes);
  // Returns at once. The bytes land while the block uses the other stage.
  ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, stage, from, tile_bytes, full);
  // end TODO(1)
}

extern "C" __global__ void two_stage(const float* in, float* out, int tiles, int steps) {
  __shared__ alignas(16) float stages[kStages][kTile];  // the destination of a bulk copy is 16-byte aligned
  __shared__ uint64_t full[kStages];                    // one mbarrier for each stage: "this stage is full"

  // One arrival completes a phase: that of the thread which orders the copy. The fence makes the init visible to the
  // copy engine, the block barrier makes it visible to the block's threads.
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; s++) ptx::mbarrier_init(&full[s], 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();

  // Prologue.
  // TODO(2): thread 0 orders the copy of the block's first tile, if it has one.
  // Stage 0 is fresh: nobody has ever read it, so nobody has to give it back.
  const int first = blockIdx.x;
  if (threadIdx.x == 0 && first < tiles) {
    load_tile(stages[0], &in[first * kTile], &full[0]);
  }
  // end TODO(2)

  int i = 0;               // counts this block's tiles
  uint32_t phase_tma = 0;  // the parity of round i / 2, in which each stage is filled once

  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int stage = i % kStages;

    // TODO(3): thread 0 orders the copy of the block's next tile, if there is one, into the other stage.
    // Tile i + 1 takes the stage that tile i - 1 has left. All threads gave that stage back at the block barrier which
    // ended the iteration before this one, and a copy that is issued behind the barrier comes after their reads.
    // In the last iteration nothing is ordered: a copy that nobody waits for would outlive the block.
    const int next = tile + gridDim.x, other = (i + 1) % kStages;
    if (threadIdx.x == 0 && next < tiles) {
      load_tile(stages[other], &in[next * kTile], &full[other]);
    }
    // end TODO(3)

    // TODO(4): every thread waits until this tile is there.
    // Wait. Producer: the copy of tile i. Consumer: this thread. Changes hands: the 4096 bytes of stages[stage], full.
    // Ordinary loads may read them once the wait has returned true; this direction needs no proxy fence. The barrier is
    // in its phase i / 2, whatever the copy into the other stage has done in the meantime.
    while (!ptx::mbarrier_try_wait_parity(&full[stage], phase_tma)) {
    }
    // end TODO(4)

    for (int j = threadIdx.x; j < kTile; j += blockDim.x) {
      out[tile * kTile + j] = f(stages[stage][j], steps);
    }

    // TODO(5): the stage goes back to thread 0, which refills it in the next iteration. Then look after `phase_tma`.
    // Block barrier. Producer: every thread, which has read its elements for the last time. Consumer: thread 0, on the
    // copy engine's behalf. Changes hands: stages[stage], empty.
    __syncthreads();
    // Stage 1 ends the round. From here on both barriers are one phase further.
    if (stage == kStages - 1) phase_tma ^= 1;
    // end TODO(5)
    i++;
  }
}
