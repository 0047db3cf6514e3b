// bad-barrier: the right one of the page docs/diagnostics/bad-barrier.md.
// run: --grid 1 --block 128 --arg in:128 --arg out:128 --arg int:128
#include "course.cuh"

// begin
#line 1 "kernel.cu"
extern "C" __global__ void example(const float* in, float* out, int n) {
  __shared__ float tile[128];
  const int i = threadIdx.x;
  tile[i] = in[i];
  asm volatile("bar.sync 1, %0;" ::"r"(128) : "memory");
  out[i] = tile[n - 1 - i];
}
// end
