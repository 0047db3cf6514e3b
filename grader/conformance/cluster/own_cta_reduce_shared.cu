// in a cluster: cp.reduce.async.bulk to shared memory of the own CTA: every operation that there is, on one mbarrier
// run: --grid 2 --cluster 2 --out 1536
// source: PTX §9.7.9.25.4.2
#include <cstdint>

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void init(uint32_t bar, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ void fence_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ void fence_async() { asm volatile("fence.proxy.async;" ::: "memory"); }

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

#define REDUCE(op)                                                                                 \
  asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes." op \
               " [%0], [%1], %2, [%3];" ::"r"(to),                                                 \
               "r"(shared_address(cells)), "r"(kWords * 4), "r"(bar)                               \
               : "memory");                                                                        \
  to += kWords * 4;

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  out += 768 * blockIdx.x;
  constexpr uint32_t kWords = 64, kOps = 12;
  __shared__ alignas(128) uint32_t cells[kWords];
  __shared__ alignas(128) uint32_t sums[kWords * kOps];
  __shared__ alignas(8) uint64_t barrier;
  const uint32_t lane = threadIdx.x;
  const uint32_t bar = shared_address(&barrier);
  for (uint32_t k = lane; k < kWords; k += 32) {
    cells[k] = in[(k * 7 + 64) & 255];
    for (uint32_t i = 0; i < kOps; ++i) sums[kWords * i + k] = in[(k * 5 + 129) & 255];
  }
  if (lane == 0) {
    init(bar, 1);
    fence_init();
  }
  fence_async();
  __syncwarp();
  if (lane == 0) {
    arrive_expect_tx(bar, kOps * kWords * 4);
    uint32_t to = shared_address(sums);
    REDUCE("add.u32")
    REDUCE("add.s32")
    REDUCE("add.u64")
    REDUCE("min.u32")
    REDUCE("min.s32")
    REDUCE("max.u32")
    REDUCE("max.s32")
    REDUCE("and.b32")
    REDUCE("or.b32")
    REDUCE("xor.b32")
    REDUCE("inc.u32")
    REDUCE("dec.u32")
  }
  wait_parity(bar, 0);
  for (uint32_t k = lane; k < kWords * kOps; k += 32) out[k] = sums[k];
}
