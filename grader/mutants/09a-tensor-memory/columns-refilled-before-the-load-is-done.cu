// Wrong: the next row is stored to columns that a load may still be reading.
// wait::ld stands behind the store. It is in time for the registers, and too late for the columns.
// expect: missing-tcgen05-wait @ 54
// needs: checker
// blind: unrun
#include "course.cuh"

constexpr int kRows = 128;
constexpr int kChunk = 16;

__device__ void fetch(uint32_t (&v)[kChunk], float& largest, const float* in, int c) {
  for (int i = 0; i < kChunk; i++) {
    const float x = in[(c + i) * kRows];
    largest = fmaxf(largest, x);
    v[i] = __float_as_uint(x);
  }
}

__device__ void subtract(float* out, int c, const uint32_t (&v)[kChunk], float largest) {
  for (int i = 0; i < kChunk; i++) out[(c + i) * kRows] = __uint_as_float(v[i]) - largest;
}

extern "C" __global__ void tensor_memory(const float* in, float* out, int columns, int tiles) {
  __shared__ uint32_t slot;

  const int row = threadIdx.x;
  const int warp = threadIdx.x / 32;
  uint32_t tmem = 0;

  if (warp == 0) {
    ptx::tcgen05_alloc(ptx::cta_group_1, &slot, columns);
    ptx::tcgen05_relinquish_alloc_permit(ptx::cta_group_1);
  }
  __syncthreads();
  tmem = slot + (static_cast<uint32_t>(32 * warp) << 16);

  int tile = blockIdx.x;
  if (tile < tiles) {
    float largest = -INFINITY;
    for (int c = 0; c < columns; c += kChunk) {
      uint32_t v[kChunk];
      fetch(v, largest, in + tile * columns * kRows + row, c);
      ptx::tcgen05_st_32x32b(tmem + c, v);
    }
    ptx::tcgen05_wait_st();

    // The second pass over a tile is the first over the next one: a chunk leaves its columns, another one moves in.
    for (; tile + static_cast<int>(gridDim.x) < tiles; tile += gridDim.x) {
      float next_largest = -INFINITY;
      for (int c = 0; c < columns; c += kChunk) {
        uint32_t v[kChunk], next[kChunk];
        ptx::tcgen05_ld_32x32b(v, tmem + c);
        fetch(next, next_largest, in + (tile + gridDim.x) * columns * kRows + row, c);
        ptx::tcgen05_st_32x32b(tmem + c, next);
        ptx::tcgen05_wait_ld();
        subtract(out + tile * columns * kRows + row, c, v, largest);
      }
      ptx::tcgen05_wait_st();
      largest = next_largest;
    }

    for (int c = 0; c < columns; c += kChunk) {
      uint32_t v[kChunk];
      ptx::tcgen05_ld_32x32b(v, tmem + c);
      ptx::tcgen05_wait_ld();
      subtract(out + tile * columns * kRows + row, c, v, largest);
    }
  }

  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();
  if (warp == 0) {
    ptx::tcgen05_fence_after_thread_sync();
    ptx::tcgen05_dealloc(ptx::cta_group_1, slot, columns);
  }
}
