// ld.mmio and st.mmio: relaxed, system scope, global
// run: --out 64
// source: PTX §9.7.9.8, §9.7.9.11
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t lane = threadIdx.x;
  uint32_t value;
  asm volatile("st.mmio.relaxed.sys.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(out + lane)),
               "r"(in[256 + lane])
               : "memory");
  asm volatile("ld.mmio.relaxed.sys.global.u32 %0, [%1];"
               : "=r"(value)
               : "l"(__cvta_generic_to_global(out + lane))
               : "memory");
  out[32 + lane] = value;
}
