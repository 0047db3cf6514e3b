// cp.async.bulk from global to shared memory: 16 to 16384 bytes at different multiples of 16;
// nothing beside them changes
// run: --out 1024 --smem 16640
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

// Both addresses and the size are multiples of 16 bytes.
__device__ void bulk_load(uint32_t to, const void* from, uint32_t bytes, uint32_t bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(bar)
               : "memory");
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

// A sum over words in which each place counts differently.
__device__ uint32_t digest(uint32_t sum, uint32_t word, uint32_t place) {
  return sum * 31 + (word ^ (place * 0x9e3779b9));
}

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  extern __shared__ __align__(128) uint32_t cells[];  // 16384 bytes and 128 on either side
  __shared__ alignas(8) uint64_t barrier;
  const uint32_t lane = threadIdx.x;
  const uint32_t bar = shared_address(&barrier);
  const uint32_t sizes[16] = {16, 32, 48, 112, 128, 144, 512, 1008, 1024, 2064, 4096, 8192, 12288, 16000, 16368, 16384};
  if (lane == 0) {
    init(bar, 1);
    fence_init();
  }
  __syncwarp();
  for (uint32_t i = 0; i < 16; ++i) {
    const uint32_t bytes = sizes[i], skip = bytes < 16000 ? 16 * ((3 * i) & 7) : 0;
    const uint32_t target = 128 + 16 * ((5 * i) & 7) - (bytes > 16000 ? 16 * ((5 * i) & 7) : 0);
    for (uint32_t k = lane; k < 4160; k += 32) cells[k] = 0xa5a5a5a5;
    fence_async();
    __syncwarp();
    if (lane == 0) {
      arrive_expect_tx(bar, bytes);
      bulk_load(shared_address(cells) + target, in + skip / 4, bytes, bar);
    }
    wait_parity(bar, i & 1);
    uint32_t sum = 0;
    for (uint32_t k = lane; k < 4160; k += 32) sum = digest(sum, cells[k], k);
    out[i * 64 + lane] = sum;
    // The words on either side of both ends.
    out[i * 64 + 32 + lane] = cells[target / 4 + (lane < 16 ? lane - 8 : bytes / 4 + lane - 24)];
    __syncwarp();
  }
}
