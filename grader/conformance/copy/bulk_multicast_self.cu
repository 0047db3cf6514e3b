// cp.async.bulk with .multicast::cluster and only the own CTA in the mask, with a cache policy
// and a prefetch before it
// run: --out 256
// source: PTX §9.7.9.25.4.1
#include <cstdint>

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void init(uint32_t bar, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ void fence_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ uint64_t arrive_expect_tx(uint32_t bar, uint32_t bytes) {
  uint64_t state;
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 %0, [%1], %2;"
               : "=l"(state)
               : "r"(bar), "r"(bytes)
               : "memory");
  return state;
}

__device__ void wait_parity(uint32_t bar, uint32_t parity) {
  asm volatile(
      "{\n\t"
      ".reg .pred p;\n\t"
      "again_%=:\n\t"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n\t"
      "@!p bra again_%=;\n\t"
      "}" ::"r"(bar),
      "r"(parity)
      : "memory");
}

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(128) uint32_t cells[256];
  __shared__ alignas(8) uint64_t barrier;
  const uint32_t lane = threadIdx.x;
  const uint32_t bar = shared_address(&barrier);
  if (lane == 0) {
    init(bar, 1);
    fence_init();
    uint64_t policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0;" : "=l"(policy));
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], 1024;" ::"l"(__cvta_generic_to_global(in + 512)) : "memory");
    arrive_expect_tx(bar, 1024);
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 512, [%2], "
        "%3;" ::"r"(shared_address(cells)),
        "l"(__cvta_generic_to_global(in + 512)), "r"(bar), "h"(static_cast<uint16_t>(1))
        : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], 512, [%2], %3;" ::
            "r"(shared_address(cells + 128)),
        "l"(__cvta_generic_to_global(in + 700)), "r"(bar), "l"(policy)
        : "memory");
  }
  __syncwarp();
  wait_parity(bar, 0);
  for (uint32_t k = lane; k < 256; k += 32) out[k] = cells[k];
}
