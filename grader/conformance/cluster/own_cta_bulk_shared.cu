// in a cluster: cp.async.bulk from shared memory to shared memory of the own CTA, by a shared::cluster address
// run: --grid 2 --cluster 2 --out 512
// source: PTX §9.7.9.25.4.1
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

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  out += 256 * blockIdx.x;
  __shared__ alignas(128) uint32_t cells[256];
  __shared__ alignas(128) uint32_t copies[256];
  __shared__ alignas(8) uint64_t barrier;
  const uint32_t lane = threadIdx.x;
  const uint32_t bar = shared_address(&barrier);
  for (uint32_t k = lane; k < 256; k += 32) {
    cells[k] = in[256 + k];
    copies[k] = 0xa5a5a5a5;
  }
  if (lane == 0) {
    init(bar, 1);
    fence_init();
  }
  fence_async();
  __syncwarp();
  if (lane == 0) {
    arrive_expect_tx(bar, 16 + 48 + 512);
    const uint32_t sizes[3] = {16, 48, 512};
    uint32_t at = 16;
    for (uint32_t i = 0; i < 3; ++i) {
      asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                       shared_address(copies) + at),
                   "r"(shared_address(cells) + 16 * (7 * i + 1)), "r"(sizes[i]), "r"(bar)
                   : "memory");
      at += sizes[i] + 16 * (i + 1);
    }
  }
  wait_parity(bar, 0);
  for (uint32_t k = lane; k < 256; k += 32) out[k] = copies[k];
}
