// arrival-count-mismatch: the wrong kernel of the page docs/diagnostics/arrival-count-mismatch.md.
// expect: arrival-count-mismatch @ 11
// run: --grid 1 --block 64 --arg in:64 --arg out:64 --arg int:64
#include "course.cuh"

// begin
#line 1 "kernel.cu"
extern "C" __global__ void example(const float* in, float* out, int n) {
  __shared__ float tile[64];
  __shared__ uint64_t full;
  const int i = threadIdx.x;
  if (i == 0) ptx::mbarrier_init(&full, blockDim.x);
  __syncthreads();
  if (i < 32) {
    tile[i] = in[i];
    ptx::mbarrier_arrive(&full);  // 32 arrivals
  }
  while (!ptx::mbarrier_try_wait_parity(&full, 0)) {
  }
  out[i] = tile[i % 32];
}
// end
