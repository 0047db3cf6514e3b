// test_wait.parity with operands other than 0 and 1
// run: --out 12
// source: PTX §9.7.13.15.16
// undefined: a phaseParity that is neither 0 nor 1
// diagnostic: bad-parity
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
  const uint32_t operands[6] = {0, 1, 2, 3, 0x80000000, 0xffffffff};
  for (uint32_t phase = 0; phase < 2; ++phase) {
    for (uint32_t i = 0; i < 6; ++i) *to++ = test_parity(bar, operands[i]);
    arrive(bar);
  }
}
