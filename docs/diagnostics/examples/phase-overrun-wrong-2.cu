// phase-overrun: the second wrong kernel of the page docs/diagnostics/phase-overrun.md: a wait that is overtaken.
// expect: phase-overrun @ 8
// run: --grid 1 --block 64 --arg in:64 --arg out:64 --arg int:2
#include "course.cuh"

// begin
#line 1 "kernel.cu"
extern "C" __global__ void example(const float* in, float* out, int n) {
  __shared__ uint64_t step;
  const int i = threadIdx.x;
  if (i == 0) ptx::mbarrier_init(&step, 1);
  __syncthreads();
  for (int k = 0; k < n; k++) {
    if (i == 0) ptx::mbarrier_arrive(&step);  // thread 0 has seen phase k - 1; what of the others?
    while (!ptx::mbarrier_try_wait_parity(&step, k & 1)) {
    }
  }
  out[i] = in[i];
}
// end
