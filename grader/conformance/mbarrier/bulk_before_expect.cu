// bulk copies issued before the expect_tx: bytes that arrive early take the tx-count below zero
// and the phase stays open
// run: --out 67
// source: PTX §9.7.13.15.5
#include <cstdint>

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void init(uint32_t bar, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ void fence_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

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

__device__ void expect_tx(uint32_t bar, uint32_t bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

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

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(8) uint64_t barrier;
  __shared__ alignas(16) uint32_t cells[64];
  const uint32_t lane = threadIdx.x;
  const uint32_t bar = shared_address(&barrier);
  if (lane == 0) {
    init(bar, 1);
    fence_init();
    bulk_load(shared_address(cells), in + 256, 128, bar);
    bulk_load(shared_address(cells + 32), in + 512, 128, bar);
    __nanosleep(20000);  // by now the bytes are in, on any GPU
    out[64] = parities(bar);
    expect_tx(bar, 128);
    out[65] = parities(bar);
    arrive_expect_tx(bar, 128);
  }
  __syncwarp();
  wait_parity(bar, 0);
  out[lane] = cells[lane];
  out[32 + lane] = cells[32 + lane];
  if (lane == 0) out[66] = parities(bar);
}
