// tmem-alloc-protocol: the wrong kernel of the page docs/diagnostics/tmem-alloc-protocol.md.
// expect: tmem-alloc-protocol @ 5
// run: --grid 1 --block 32 --arg in:32 --arg out:32 --arg int:32
#include "course.cuh"

// begin
#line 1 "kernel.cu"
extern "C" __global__ void example(const float* in, float* out, int n) {
  __shared__ uint32_t slot;
  const int i = threadIdx.x;
  ptx::tcgen05_relinquish_alloc_permit(ptx::cta_group_1);
  ptx::tcgen05_alloc(ptx::cta_group_1, &slot, 32);
  __syncthreads();
  uint32_t v[1] = {__float_as_uint(in[i])};
  ptx::tcgen05_st_32x32b(slot, v);
  ptx::tcgen05_wait_st();
  ptx::tcgen05_ld_32x32b(v, slot);
  ptx::tcgen05_wait_ld();
  out[i] = __uint_as_float(v[0]);
  ptx::tcgen05_dealloc(ptx::cta_group_1, slot, 32);
}
// end
