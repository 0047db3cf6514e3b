// Wrong: the first 32 columns are one allocation, all columns of a longer row a second, larger one.
// The numbers that a block passes to tcgen05.alloc must not increase.
// expect: tmem-alloc-protocol @ 20
// needs: checker
// blind: unrun
#include "course.cuh"

constexpr int kRows = 128;
constexpr int kChunk = 16;

extern "C" __global__ void tensor_memory(const float* in, float* out, int columns, int tiles) {
  __shared__ uint32_t slot, long_slot;

  const int row = threadIdx.x;
  const int warp = threadIdx.x / 32;
  uint32_t tmem = 0;

  if (warp == 0) {
    ptx::tcgen05_alloc(ptx::cta_group_1, &slot, 32);
    if (columns > 32) ptx::tcgen05_alloc(ptx::cta_group_1, &long_slot, columns);
    ptx::tcgen05_relinquish_alloc_permit(ptx::cta_group_1);
  }
  __syncthreads();
  tmem = (columns > 32 ? long_slot : slot) + (static_cast<uint32_t>(32 * warp) << 16);

  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int base = tile * columns * kRows + row;
    float largest = -INFINITY;

    for (int c = 0; c < columns; c += kChunk) {
      uint32_t v[kChunk];
      for (int i = 0; i < kChunk; i++) {
        const float x = in[base + (c + i) * kRows];
        largest = fmaxf(largest, x);
        v[i] = __float_as_uint(x);
      }
      ptx::tcgen05_st_32x32b(tmem + c, v);
    }
    ptx::tcgen05_wait_st();

    for (int c = 0; c < columns; c += kChunk) {
      uint32_t v[kChunk];
      ptx::tcgen05_ld_32x32b(v, tmem + c);
      ptx::tcgen05_wait_ld();
      for (int i = 0; i < kChunk; i++) {
        out[base + (c + i) * kRows] = __uint_as_float(v[i]) - largest;
      }
    }
  }

  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();
  if (warp == 0) {
    ptx::tcgen05_fence_after_thread_sync();
    if (columns > 32) ptx::tcgen05_dealloc(ptx::cta_group_1, long_slot, columns);
    ptx::tcgen05_dealloc(ptx::cta_group_1, slot, 32);
  }
}
