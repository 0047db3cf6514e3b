// arrive and test_wait with semantics and scopes, with and without a result, through shared::cta
// shared::cluster and generic addresses
// run: --out 9
// source: PTX §9.7.13.15.13
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

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(8) uint64_t barrier;
  if (threadIdx.x != 0) return;
  const uint32_t bar = static_cast<uint32_t>(__cvta_generic_to_shared(&barrier));
  uint32_t* to = out;
  init(bar, 1);
#define ARRIVE(form, at)                                \
  asm volatile("mbarrier.arrive" form ::at : "memory"); \
  *to++ = parities(bar);
  ARRIVE(".shared::cta.b64 _, [%0];", "r"(bar))
  ARRIVE(".release.cta.shared::cta.b64 _, [%0];", "r"(bar))
  ARRIVE(".release.cluster.shared::cta.b64 _, [%0], 1;", "r"(bar))
  ARRIVE(".release.cluster.shared::cluster.b64 _, [%0];", "r"(bar))
  ARRIVE(".release.cluster.shared::cluster.b64 _, [%0], 1;", "r"(bar))
  ARRIVE(".relaxed.cluster.shared::cluster.b64 _, [%0];", "r"(bar))
  ARRIVE(".relaxed.cta.shared::cta.b64 _, [%0];", "r"(bar))
  ARRIVE(".expect_tx.relaxed.cluster.shared::cluster.b64 _, [%0], 0;", "r"(bar))
  ARRIVE(".b64 _, [%0];", "l"(&barrier))
}
