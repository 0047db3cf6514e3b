// scope-too-narrow: the wrong kernel of the page docs/diagnostics/scope-too-narrow.md.
// expect: scope-too-narrow @ 9
// run: --grid 2 --block 1 --arg in:64 --arg out:64 --arg int:64
#include "course.cuh"

// begin
#line 1 "kernel.cu"
__device__ int flag;

extern "C" __global__ void example(const float* in, float* out, int n) {
  if (blockIdx.x == 0) {
    out[0] = in[0];
    asm volatile("st.release.cta.s32 [%0], 1;" ::"l"(&flag) : "memory");
  } else {
    int seen = 0;
    while (seen == 0) asm volatile("ld.acquire.cta.s32 %0, [%1];" : "=r"(seen) : "l"(&flag) : "memory");
    out[1] = out[0] + in[1];
  }
}
// end
