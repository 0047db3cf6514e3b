// diverged-collective: the right one of the page docs/diagnostics/diverged-collective.md.
// run: --grid 1 --block 32 --arg in:64 --arg out:64 --arg int:64
#include "course.cuh"

// begin
#line 1 "kernel.cu"
extern "C" __global__ void example(const float* in, float* out, int n) {
  __shared__ float tile[32];
  const int i = threadIdx.x;
  if (i < 16) {
    tile[i] = in[i];
    __syncwarp(0x0000ffff);  // the 16 lanes that execute it
    out[i] = tile[15 - i];
  }
}
// end
