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
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; s++) {
      ptx::mbarrier_init(&full[s], 1);            // the producer's arrive.expect_tx; the rest is bytes
      ptx::mbarrier_init(&empty[s], kConsumers);  // one arrival from each consumer warp: "my slice has left the stage"
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);  // orders the inits before the engine's signals
  }
  // Block barrier. Producer: thread 0. Consumer: every thread. Changes hands: the initialised mbarriers. It is the last
  // barrier of the whole block: from here on the roles go their own ways, and no thread waits for a role but through
  // full and empty.
  __syncthreads();
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
        // Wait. Producer of the free stage: the consumer warps. Consumer: this thread, on the copy engine's behalf.
        // Changes hands: the right to overwrite the stage. Round r waits for phase r - 1 of `empty`, whose parity is
        // the other one. Round 0 asks a fresh barrier for parity 1, "the phase before phase 0", and the answer is true.
        while (!ptx::mbarrier_try_wait_parity(&empty[stage], parity ^ 1)) {
        }
        const uint32_t bytes = kTile * sizeof(float);
        // Arrive. Producer: this thread and, for the bytes that it announces, the copy engine. Consumer: all consumer
        // warps. The phase completes when this arrival has come and all bytes have been written.
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[stage], bytes);
        ptx::cp_async_bulk(ptx::space_shared, ptx::space_global, ring + stage * kTile, &in[size_t(tile) * kTile], bytes,
                           &full[stage]);
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
      // Wait. Producer: the copy engine, armed by warp 0. Consumer: this thread. Changes hands: the tile. What the
      // engine has written is visible to a thread whose wait answered true; no proxy fence is needed in this direction.
      while (!ptx::mbarrier_try_wait_parity(&full[stage], parity)) {
      }
      // end TODO(3)

      float4* quads = reinterpret_cast<float4*>(slice);
#pragma unroll
      for (int i = 0; i < kSlice / 4; i += 32) quads[i + lane] = results(quads[i + lane]);

      // TODO(4): hand the slice over to lane 0: make this lane's results visible to the copy engine, then meet lane 0.
      // The proxy fence orders this lane's reads and writes of the slice before accesses of the async proxy: before the
      // store below, which reads these bytes, and before the next load into the stage, which overwrites them. Each lane
      // executes it, after its last write.
      ptx::fence_proxy_async(ptx::space_shared);
      // Warp barrier. Producer: the 32 lanes. Consumer: lane 0, on the copy engine's behalf. Changes hands: the slice,
      // with its results in it. The other seven warps have slices of their own and need not be met.
      __syncwarp();
      // end TODO(4)

      if (lane == 0) {
        // TODO(5): send the slice to &out[size_t(tile) * kTile + first] with one bulk store, and give the stage back
        // when the engine has read the slice, not before.
        const uint32_t bytes = kSlice * sizeof(float);
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, &out[size_t(tile) * kTile + first], slice, bytes);
        ptx::cp_async_bulk_commit_group();
        // Wait. Producer: the copy engine, which has read the slice. Consumer: this lane, which issued the store and is
        // the only one that can wait for it. Changes hands: the bytes of the slice. Depth 0, because the stage of this
        // very tile is given back next; a store left pending would keep its stage from the loads. After the last tile
        // it is also what keeps the block's shared memory alive until the engine is done with it.
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
        // Arrive. Producer of the free stage: this lane, for its warp. Consumer: warp 0. Changes hands: this warp's
        // share in the right to overwrite the stage. Its lanes' accesses come along by the warp barrier above.
        ptx::mbarrier_arrive(&empty[stage]);
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
