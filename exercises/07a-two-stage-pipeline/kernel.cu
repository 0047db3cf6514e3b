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
  (void)tile_bytes;  // nothing uses it yet
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
  // end TODO(2)

  int i = 0;               // counts this block's tiles
  uint32_t phase_tma = 0;  // the parity of round i / 2, in which each stage is filled once

  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int stage = i % kStages;

    // TODO(3): thread 0 orders the copy of the block's next tile, if there is one, into the other stage.
    // end TODO(3)

    // TODO(4): every thread waits until this tile is there.
    (void)&phase_tma;  // nothing uses it yet
    // end TODO(4)

    for (int j = threadIdx.x; j < kTile; j += blockDim.x) {
      out[tile * kTile + j] = f(stages[stage][j], steps);
    }

    // TODO(5): the stage goes back to thread 0, which refills it in the next iteration. Then look after `phase_tma`.
    // end TODO(5)
    i++;
  }
}
