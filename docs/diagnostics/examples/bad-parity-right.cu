// bad-parity: the right one of the page docs/diagnostics/bad-parity.md.
// run: --grid 1 --block 64 --arg in:64 --arg out:64 --arg int:64
#include "course.cuh"

// begin
#line 1 "kernel.cu"
extern "C" __global__ void example(const float* in, float* out, int n) {
  __shared__ uint64_t round_over;
  const int i = threadIdx.x;
  if (i == 0) ptx::mbarrier_init(&round_over, blockDim.x);
  __syncthreads();
  for (int round = 0; round < 3; round++) {
    ptx::mbarrier_arrive(&round_over);
    while (!ptx::mbarrier_try_wait_parity(&round_over, round & 1)) {
    }
  }
  out[i] = in[n - 1 - i];
}
// end
