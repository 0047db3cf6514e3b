// two phases later: phase 0 is complete, yet parity 0 is asked of phase 2, which is not
// run: --out 5
// source: PTX §9.7.13.15.16
// diagnostic: missing-retry-loop
// diagnostic: phase-overrun
#include <cstdint>

__device__ void init(uint32_t bar, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ uint32_t test_parity(uint32_t bar, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{\n\t.reg .pred p;\n\tmbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
      : "=r"(done)
      : "r"(bar), "r"(parity)
      : "memory");
  return done;
}

// Bit p: test_wait.parity with parity p.
__device__ uint32_t parities(uint32_t bar) { return test_parity(bar, 0) | test_parity(bar, 1) << 1; }

__device__ uint64_t arrive(uint32_t bar) {
  uint64_t state;
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(bar) : "memory");
  return state;
}

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(8) uint64_t barrier;
  if (threadIdx.x != 0) return;
  const uint32_t bar = static_cast<uint32_t>(__cvta_generic_to_shared(&barrier));
  uint32_t* to = out;
  init(bar, 1);
  const uint32_t before = test_parity(bar, 0);
  arrive(bar);
  const uint32_t after_one = test_parity(bar, 0);
  arrive(bar);
  const uint32_t after_two = test_parity(bar, 0);
  arrive(bar);
  const uint32_t after_three = test_parity(bar, 0);
  *to++ = before;
  *to++ = after_one;
  *to++ = after_two;
  *to++ = after_three;
  *to++ = parities(bar);
}
