// trap: the wrong kernel of the page docs/diagnostics/trap.md.
// expect: trap @ 2
// run: --grid 1 --block 32 --arg in:64 --arg out:64 --arg int:64
#include "course.cuh"

// begin
#line 1 "kernel.cu"
extern "C" __global__ void example(const float* in, float* out, int n) {
  if (n > blockDim.x) __trap();  // more work than threads
  if (threadIdx.x < n) out[threadIdx.x] = in[threadIdx.x];
}
// end
