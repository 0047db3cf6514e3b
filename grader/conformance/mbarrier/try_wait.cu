// try_wait and try_wait.parity, with and without a time limit: true for a complete phase
// false for one that nobody completes
// run: --out 7
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

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(8) uint64_t barrier;
  if (threadIdx.x != 0) return;
  const uint32_t bar = static_cast<uint32_t>(__cvta_generic_to_shared(&barrier));
  uint32_t* to = out;
  init(bar, 1);
  uint32_t done;
#define TRY(form, ...)                                                                          \
  asm volatile("{\n\t.reg .pred p;\n\tmbarrier.try_wait" form ";\n\tselp.u32 %0, 1, 0, p;\n\t}" \
               : "=r"(done)                                                                     \
               : __VA_ARGS__                                                                    \
               : "memory");                                                                     \
  *to++ = done;
  TRY(".parity.shared::cta.b64 p, [%1], %2", "r"(bar), "r"(1))
  TRY(".parity.shared::cta.b64 p, [%1], %2, %3", "r"(bar), "r"(0), "r"(1000))
  const uint64_t state = arrive(bar);
  TRY(".parity.shared::cta.b64 p, [%1], %2", "r"(bar), "r"(0))
  TRY(".parity.acquire.cluster.shared::cta.b64 p, [%1], %2, %3", "r"(bar), "r"(0), "r"(1000))
  TRY(".shared::cta.b64 p, [%1], %2", "r"(bar), "l"(state))
  TRY(".acquire.cta.shared::cta.b64 p, [%1], %2, %3", "r"(bar), "l"(state), "r"(1000))
  TRY(".parity.relaxed.cluster.shared::cta.b64 p, [%1], %2", "r"(bar), "r"(0))
}
