// Right: the second pass loads with the shape 16x64b, lanes 0 to 15 of the quarter and then 16 to 31. A thread gets
// elements of other rows than its own, and their largest elements by shuffle: results leave in another order.
#include "course.cuh"

constexpr int kRows = 128;
constexpr int kChunk = 16;

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

    // Register i of lane t holds lane t / 4 + 8 * (t % 2) of the sixteen, column t / 2 % 2 + 2 * i.
    const int lane = threadIdx.x % 32;
    for (int first = 0; first < 32; first += 16) {
      const int other = first + lane / 4 + 8 * (lane % 2);
      const float of_other = __shfl_sync(0xffffffff, largest, other);
      for (int c = 0; c < columns; c += 2 * kChunk) {
        uint32_t v[kChunk];
        ptx::tcgen05_ld_16x64b(v, tmem + (static_cast<uint32_t>(first) << 16) + c);
        ptx::tcgen05_wait_ld();
        for (int i = 0; i < kChunk; i++) {
          const int column = c + lane / 2 % 2 + 2 * i;
          out[base - lane + other + column * kRows] = __uint_as_float(v[i]) - of_other;
        }
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
