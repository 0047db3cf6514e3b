// 07b specialised: one warp loads tiles into a ring of stages, eight warps compute on them and send them out again.
//
//   out[4096 * t + i] = 1 - 0.875 * in[4096 * t + i],   for every tile t < tiles, 0 <= i < 4096
//
// A tile is 4096 floats (16384 bytes). Block b works on tiles b, b + gridDim.x, b + 2 * gridDim.x, …; it may get no
// tile at all. Its k-th tile passes through stage k % stages of a ring: a bulk copy brings it in, the consumer warps
// replace each element by its result, and bulk stores take it out of the same bytes. `stages` is 1 to 4. A block has
// 288 threads: warp 0 is the producer, warps 1 to 8 are the consumers, and each of these has an eighth of every tile.
//
// Dynamic shared memory, stages * 16400 bytes:
//   float    ring[stages][4096]   the tiles
//   uint64_t full[stages]         mbarriers: "the tile is in this stage"
//   uint64_t empty[stages]        mbarriers: "this stage may be loaded again"
//
// Chapter: chapters/07-pipelines/README.md
#include "course.cuh"

constexpr int kTile = 4096;                 // floats
constexpr int kConsumers = 8;               // warps
constexpr int kSlice = kTile / kConsumers;  // floats of a tile that one consumer warp has

// One step of 07a's function, for four elements.
__device__ float4 results(float4 v) {
  return make_float4(fmaf(-0.875f, v.x, 1.0f), fmaf(-0.875f, v.y, 1.0f), fmaf(-0.875f, v.z, 1.0f),
                     fmaf(-0.875f, v.w, 1.0f));
}

extern "C" __global__ void specialised(const float* in, float* out, int tiles, int stages) {
  extern __shared__ __align__(128) float ring[];
  uint64_t* full = reinterpret_cast<uint64_t*>(ring + stages * kTile);
  uint64_t* empty = full + stages;

  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;

  // TODO(1): one thread initialises full[s] and empty[s] of every stage. Who arrives on which, and how many are they?
  // Then make the init visible, to the copy engine and to the block.
  (void)&empty;  // nothing uses the barriers yet
  // end TODO(1)

  // Where this thread stands in the ring: the stage of its current tile, and the parity of the current round, which is
  // 0 while the first `stages` tiles pass, 1 for the next `stages` tiles, and so on.
  int stage = 0;
  uint32_t parity = 0;

  if (warp == 0) {
    if (ptx::elect_one()) {
      for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        // TODO(2): wait until this stage may be loaded, which is so at once in round 0. Then tell `full` how many bytes
        // it gets, and copy the tile from &in[size_t(tile) * kTile] into the stage, with one bulk copy.
        // end TODO(2)
        if (++stage == stages) {  // once around the ring: stage 0 again, and the next phase of every barrier
          stage = 0;
          parity ^= 1;
        }
      }
    }
  } else {
    const int first = (warp - 1) * kSlice;  // where this warp's slice begins in a tile
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      float* slice = ring + stage * kTile + first;

      // TODO(3): wait until the tile is in its stage.
      // end TODO(3)

      float4* quads = reinterpret_cast<float4*>(slice);
#pragma unroll
      for (int i = 0; i < kSlice / 4; i += 32) quads[i + lane] = results(quads[i + lane]);

      // TODO(4): hand the slice over to lane 0: make this lane's results visible to the copy engine, then meet lane 0.
      // end TODO(4)

      if (lane == 0) {
        // TODO(5): send the slice to &out[size_t(tile) * kTile + first] with one bulk store, and give the stage back
        // when the engine has read the slice, not before.
        // end TODO(5)
      }
      __syncwarp();  // hands nothing over: the lanes go on together, instead of lane 0 going through the tile alone

      if (++stage == stages) {
        stage = 0;
        parity ^= 1;
      }
    }
  }
}
