// out-of-bounds: the wrong kernel of the page docs/diagnostics/out-of-bounds.md.
// expect: out-of-bounds @ 4
// run: --grid 1 --block 64 --arg in:60 --arg out:60 --arg int:60
#include "course.cuh"

// begin
#line 1 "kernel.cu"
extern "C" __global__ void example(const float* in, float* out, int n) {
  __shared__ float tile[64];
  const int i = threadIdx.x;
  tile[i] = in[i];  // there are n = 60
  __syncthreads();
  if (i < n) out[i] = tile[i];
}
// end
