// cp.async.bulk of 16384 bytes to global memory, in one and in parts, from what a bulk copy brought
// run: --out 4096 --smem 16384
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

// Both addresses and the size are multiples of 16 bytes.
__device__ void bulk_store(void* to, uint32_t from, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(to)),
               "r"(from), "r"(bytes)
               : "memory");
}

__device__ void commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

__device__ void wait_bulk() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  extern __shared__ __align__(128) uint32_t cells[];
  __shared__ alignas(8) uint64_t barrier;
  const uint32_t lane = threadIdx.x;
  const uint32_t bar = shared_address(&barrier);
  if (lane == 0) {
    init(bar, 1);
    fence_init();
    arrive_expect_tx(bar, 16384);
    bulk_load(shared_address(cells), in, 16384, bar);
    wait_parity(bar, 0);
    // Halves exchanged, then a piece in the middle over it.
    bulk_store(out, shared_address(cells) + 8192, 8192);
    bulk_store(out + 2048, shared_address(cells), 8192);
    commit();
    wait_bulk();
    bulk_store(out + 1000, shared_address(cells) + 12016, 3984);
    commit();
    wait_bulk();
  }
}
