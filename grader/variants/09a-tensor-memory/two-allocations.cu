// Right: a row of more than 32 columns is in two allocations of half its length, which need not lie side by side. The
// second is not larger than the first. Each is freed by itself.
#include "course.cuh"

constexpr int kRows = 128;
constexpr int kChunk = 16;

extern "C" __global__ void tensor_memory(const float* in, float* out, int columns, int tiles) {
  __shared__ uint32_t slots[2];

  const int row = threadIdx.x;
  const int warp = threadIdx.x / 32;
  const int half = columns > 32 ? columns / 2 : columns;  // columns of an allocation

  if (warp == 0) {
    ptx::tcgen05_alloc(ptx::cta_group_1, &slots[0], half);
    if (half < columns) ptx::tcgen05_alloc(ptx::cta_group_1, &slots[1], half);
    ptx::tcgen05_relinquish_alloc_permit(ptx::cta_group_1);
  }
  __syncthreads();
  const uint32_t lane = static_cast<uint32_t>(32 * warp) << 16;
  const uint32_t front = slots[0] + lane;
  const uint32_t back = half < columns ? slots[1] + lane : front;

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
      ptx::tcgen05_st_32x32b(c < half ? front + c : back + c - half, v);
    }
    ptx::tcgen05_wait_st();

    for (int c = 0; c < columns; c += kChunk) {
      uint32_t v[kChunk];
      ptx::tcgen05_ld_32x32b(v, c < half ? front + c : back + c - half);
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
    ptx::tcgen05_dealloc(ptx::cta_group_1, slots[0], half);
    if (half < columns) ptx::tcgen05_dealloc(ptx::cta_group_1, slots[1], half);
  }
}
