// stalled: the right one of the page docs/diagnostics/stalled.md.
// run: --grid 1 --block 64 --arg in:64 --arg out:64 --arg int:65
#include "course.cuh"

// begin
#line 1 "kernel.cu"
extern "C" __global__ void example(const float* in, float* out, int n) {
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    sum += in[i & 63];
  }
  out[threadIdx.x] = sum;
}
// end
