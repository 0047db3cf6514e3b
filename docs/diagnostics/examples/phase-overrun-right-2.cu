// phase-overrun: the second right one of the page docs/diagnostics/phase-overrun.md.
// run: --grid 1 --block 64 --arg in:64 --arg out:64 --arg int:2
#include "course.cuh"

// begin
#line 1 "kernel.cu"
extern "C" __global__ void example(const float* in, float* out, int n) {
  __shared__ uint64_t step;
  const int i = threadIdx.x;
  if (i == 0) ptx::mbarrier_init(&step, 64);
  __syncthreads();
  for (int k = 0; k < n; k++) {
    ptx::mbarrier_arrive(&step);  // everybody: I have seen phase k - 1
    while (!ptx::mbarrier_try_wait_parity(&step, k & 1)) {
    }
  }
  out[i] = in[i];
}
// end
