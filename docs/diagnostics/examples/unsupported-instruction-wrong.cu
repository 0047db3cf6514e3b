// unsupported-instruction: the wrong kernel of the page docs/diagnostics/unsupported-instruction.md.
// expect: unsupported-instruction @ 4
// run: --grid 1 --block 64 --arg in:64 --arg out:64 --arg int:64
#include "course.cuh"

// begin
#line 1 "kernel.cu"
extern "C" __global__ void example(const float* in, float* out, int n) {
  const int i = threadIdx.x;
  int twice;
  asm volatile("vadd.s32.s32.s32 %0, %1, %1;" : "=r"(twice) : "r"(i));
  out[i] = in[twice / 2];
}
// end
