// trap: the right one of the page docs/diagnostics/trap.md.
// run: --grid 1 --block 32 --arg in:64 --arg out:64 --arg int:64
#include "course.cuh"

// begin
#line 1 "kernel.cu"
extern "C" __global__ void example(const float* in, float* out, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = in[i];
}
// end
