// tmem-not-allocated: the right one of the page docs/diagnostics/tmem-not-allocated.md.
// run: --grid 1 --block 32 --arg in:1024 --arg out:1024 --arg int:1024
#include "course.cuh"

// begin
#line 1 "kernel.cu"
extern "C" __global__ void example(const float* in, float* out, int n) {
  __shared__ uint32_t slot;
  const int i = threadIdx.x;
  ptx::tcgen05_alloc(ptx::cta_group_1, &slot, 64);
  __syncthreads();
  uint32_t v[32];
  for (int c = 0; c < 32; c++) v[c] = __float_as_uint(in[c * 32 + i]);
  ptx::tcgen05_st_32x32b(slot, v);
  ptx::tcgen05_st_32x32b(slot + 32, v);
  ptx::tcgen05_wait_st();
  ptx::tcgen05_ld_32x32b(v, slot + 32);
  ptx::tcgen05_wait_ld();
  for (int c = 0; c < 32; c++) out[c * 32 + i] = __uint_as_float(v[c]);
  ptx::tcgen05_dealloc(ptx::cta_group_1, slot, 64);
}
// end
