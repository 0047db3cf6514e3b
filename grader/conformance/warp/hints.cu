// setmaxnreg, griddepcontrol and pmevent leave the registers and the run as they are
// run: --block 256 --out 256
// source: PTX §9.7.19.5, §9.7.13.13, §9.7.19.3
#include <cstdint>

extern "C" __global__ void __launch_bounds__(256, 1) conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t x = in[256 + threadIdx.x];
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("pmevent 1;");
  if (threadIdx.x / 128 == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 200;");
  }
  out[threadIdx.x] = x;
}
