// test_wait by the state of a phase two, three and four phases back
// run: --out 5
// source: PTX §9.7.13.15.16
// undefined: a state that is of neither the current phase nor the one before
// diagnostic: stale-parity
// diagnostic: phase-overrun
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
  init(bar, 1);
  const uint64_t state = arrive(bar);
  for (uint32_t phase = 1; phase < 6; ++phase) {
    *to++ = test_state(bar, state);
    arrive(bar);
  }
}
