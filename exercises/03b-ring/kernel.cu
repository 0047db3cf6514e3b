// 03b ring: half of a block fills the slots of a ring, the other half empties them; each slot has two mbarriers.
//
//   out[256 * k + i] = slot[i] - slot[255 - i],   slot[i] = 2 * in[256 * k + i]   (in counts as 0 beyond n)
//
// One block works on all chunks k = 0, 1, ... of 256 floats; n may be 0, and the last chunk may be short. The ring has
// `stages` stages, 1 to 4: chunk k passes through stage k % stages. The first half of the block's warps are producers,
// the second half consumers. blockDim.x is a multiple of 64, at most 256.
//
// Dynamic shared memory, stages * 1040 bytes:
//   float    slots[stages][256]   the data
//   uint64_t full[stages]         mbarriers: "this slot is written"
//   uint64_t empty[stages]        mbarriers: "this slot has been read"
//
// Chapter: chapters/03-full-and-empty/README.md
#include "course.cuh"

constexpr int kChunk = 256;  // floats

extern "C" __global__ void ring(const float* in, float* out, int n, int stages) {
  extern __shared__ __align__(16) float slots[];
  uint64_t* full = reinterpret_cast<uint64_t*>(slots + stages * kChunk);
  uint64_t* empty = full + stages;

  const int chunks = (n + kChunk - 1) / kChunk;
  const int rank = threadIdx.x;
  const int producers = blockDim.x / 2;  // producer threads, and as many consumer threads

  // TODO(1): one thread initialises full[s] and empty[s] of every stage. Who arrives on which, and how many are they?
  // Then make the init visible, as in 01a.
  // A verdict names a barrier by its bytes: with 2 stages full[0], full[1], empty[0] and empty[1] are slots+2048,
  // slots+2056, slots+2064 and slots+2072; with 1 stage full[0] and empty[0] are slots+1024 and slots+1032.
  (void)&empty;  // nothing uses the barriers yet
  // end TODO(1)

  // Where this thread stands in the ring: the stage of its current chunk, and the parity of the current round, which
  // is 0 while the first `stages` chunks pass, 1 for the next `stages` chunks, and so on.
  int stage = 0;
  uint32_t parity = 0;

  if (rank < producers) {
    for (int k = 0; k < chunks; k++) {
      float* slot = slots + stage * kChunk;
      // TODO(2): wait until this slot may be overwritten. In round 0 nobody has read it, and the wait must pass.
      // end TODO(2)
      for (int j = rank; j < kChunk; j += producers) {
        const int at = k * kChunk + j;
        slot[j] = at < n ? 2.0f * in[at] : 0.0f;
      }
      // TODO(3): tell the consumers that this thread's elements are written. Then go on to the next stage; what happens
      // after the last one?
      // end TODO(3)
    }
  } else {
    for (int k = 0; k < chunks; k++) {
      const float* slot = slots + stage * kChunk;
      // TODO(4): wait until the slot is full.
      (void)&parity;  // nothing uses it yet
      // end TODO(4)
      for (int j = rank - producers; j < kChunk; j += producers) {
        const int at = k * kChunk + j;
        if (at < n) out[at] = slot[j] - slot[kChunk - 1 - j];
      }
      // TODO(5): give the slot back. Then go on to the next stage.
      // end TODO(5)
    }
  }
}
