// test_wait by state: of the current phase, of the phase before, through five phases
// run: --out 15
// source: PTX §9.7.13.15.16
#include <cstdint>

__device__ void init(uint32_t bar, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ uint64_t arrive(uint32_t bar) {
  uint64_t state;
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(bar) : "memory");
  return state;
}

__device__ uint32_t test_state(uint32_t bar, uint64_t state) {
  uint32_t done;
  asm volatile("{\n\t.reg .pred p;\n\tmbarrier.test_wait.shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
               : "=r"(done)
               : "r"(bar), "l"(state)
               : "memory");
  return done;
}

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(8) uint64_t barrier;
  if (threadIdx.x != 0) return;
  const uint32_t bar = static_cast<uint32_t>(__cvta_generic_to_shared(&barrier));
  uint32_t* to = out;
  init(bar, 2);
  for (uint32_t phase = 0; phase < 5; ++phase) {
    const uint64_t first = arrive(bar);
    *to++ = test_state(bar, first);
    const uint64_t second = arrive(bar);
    *to++ = test_state(bar, first);
    *to++ = test_state(bar, second);
  }
}
