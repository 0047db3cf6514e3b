// Wrong: all four warps allocate, and one gives back what the last of them got.
// Each tcgen05.alloc is an allocation of its own. Three of them are never freed.
// expect: data-race @ 18
// needs: checker
// blind: unrun
#include "course.cuh"

constexpr int kRows = 128;
constexpr int kChunk = 16;

extern "C" __global__ void tensor_memory(const float* in, float* out, int columns, int tiles) {
  __shared__ uint32_t slot;

  const int row = threadIdx.x;
  const int warp = threadIdx.x / 32;
  uint32_t tmem = 0;

  ptx::tcgen05_alloc(ptx::cta_group_1, &slot, columns);
  __syncthreads();
  if (warp == 0) {
    ptx::tcgen05_relinquish_alloc_permit(ptx::cta_group_1);
  }
  __syncthreads();
  tmem = slot + (static_cast<uint32_t>(32 * warp) << 16);

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
    ptx::tcgen05_dealloc(ptx::cta_group_1, slot, columns);
  }
}
