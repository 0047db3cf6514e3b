// unsupported-instruction: the wrong kernel of the page docs/diagnostics/unsupported-instruction.md.
// expect: unsupported-instruction @ 3
// run: --grid 1 --block 64 --arg in:64 --arg out:64 --arg int:64
#include "course.cuh"

// begin
#line 1 "kernel.cu"
extern "C" __global__ void example(const float* in, float* out, int n) {
  const int i = threadIdx.x;
  asm volatile("pmevent 1;");
  out[i] = in[i];
}
// end
