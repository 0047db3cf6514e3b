// phase-overrun: the right one of the page docs/diagnostics/phase-overrun.md.
// run: --grid 1 --block 64 --arg in:64 --arg out:64 --arg int:64
#include "course.cuh"

// begin
#line 1 "kernel.cu"
extern "C" __global__ void example(const float* in, float* out, int n) {
  __shared__ float tile[64];
  __shared__ uint64_t full;
  const int i = threadIdx.x;
  if (i == 0) ptx::mbarrier_init(&full, 1);
  __syncthreads();
  tile[i] = in[i];
  __syncthreads();
  if (i == 0) {
    ptx::mbarrier_arrive(&full);  // completes phase 0
    while (!ptx::mbarrier_try_wait_parity(&full, 0)) {
    }
    ptx::mbarrier_arrive(&full);  // belongs to phase 1
  }
  while (!ptx::mbarrier_try_wait_parity(&full, 1)) {
  }
  out[i] = tile[63 - i];
}
// end
