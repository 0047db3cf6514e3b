// assertion-failed: the right one of the page docs/diagnostics/assertion-failed.md.
// run: --grid 1 --block 64 --arg in:64 --arg out:64 --arg int:64
#include <cassert>

#include "course.cuh"

// begin
#line 1 "kernel.cu"
extern "C" __global__ void example(const float* in, float* out, int n) {
  const int i = threadIdx.x;
  assert(blockDim.x % 32 == 0);
  out[i] = in[i];
}
// end
