// tmem-wrong-quarter: the wrong kernel of the page docs/diagnostics/tmem-wrong-quarter.md.
// expect: tmem-wrong-quarter @ 8
// run: --grid 1 --block 128 --arg in:128 --arg out:128 --arg int:128
#include "course.cuh"

// begin
#line 1 "kernel.cu"
extern "C" __global__ void example(const float* in, float* out, int n) {
  __shared__ uint32_t slot;
  const int i = threadIdx.x, warp = i / 32;
  if (warp == 0) ptx::tcgen05_alloc(ptx::cta_group_1, &slot, 32);
  __syncthreads();
  const uint32_t lanes = slot;  // lane 0 for every warp
  uint32_t v[1] = {__float_as_uint(in[i])};
  ptx::tcgen05_st_32x32b(lanes, v);
  ptx::tcgen05_wait_st();
  ptx::tcgen05_ld_32x32b(v, lanes);
  ptx::tcgen05_wait_ld();
  out[i] = __uint_as_float(v[0]);
  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();
  ptx::tcgen05_fence_after_thread_sync();
  if (warp == 0) ptx::tcgen05_dealloc(ptx::cta_group_1, slot, 32);
}
// end
