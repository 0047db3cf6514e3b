// group-not-awaited: the wrong kernel of the page docs/diagnostics/group-not-awaited.md.
// expect: group-not-awaited @ 12
// run: --grid 1 --block 64 --arg in:64 --arg out:64 --arg int:64
#include "course.cuh"

// begin
#line 1 "kernel.cu"
extern "C" __global__ void example(const float* in, float* out, int n) {
  __shared__ alignas(16) float staging[64];
  const int i = threadIdx.x;
  staging[i] = in[i];
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (i == 0) {
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out, staging, 256);
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());  // nothing was committed
  }
  __syncthreads();
  staging[i] = 0.0f;
}
// end
