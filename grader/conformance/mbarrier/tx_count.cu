// expect_tx, complete_tx and arrivals in several orders: the phase completes when nothing is pending and the
// tx-count is zero
// run: --out 10
// source: PTX §9.7.13.15.5
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

__device__ void expect_tx(uint32_t bar, uint32_t bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

__device__ void complete_tx(uint32_t bar, uint32_t bytes) {
  asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

__device__ uint64_t arrive_expect_tx(uint32_t bar, uint32_t bytes) {
  uint64_t state;
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 %0, [%1], %2;"
               : "=l"(state)
               : "r"(bar), "r"(bytes)
               : "memory");
  return state;
}

__device__ uint32_t pending_count(uint64_t state) {
  uint32_t count;
  asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(count) : "l"(state));
  return count;
}

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(8) uint64_t barrier;
  if (threadIdx.x != 0) return;
  const uint32_t bar = static_cast<uint32_t>(__cvta_generic_to_shared(&barrier));
  uint32_t* to = out;
  init(bar, 1);
  // Bytes first, then the arrival.
  expect_tx(bar, 48);
  *to++ = parities(bar);
  complete_tx(bar, 48);
  *to++ = parities(bar);
  *to++ = pending_count(arrive(bar));
  *to++ = parities(bar);
  // The arrival first; the bytes in three parts.
  arrive_expect_tx(bar, 100);
  *to++ = parities(bar);
  complete_tx(bar, 1);
  complete_tx(bar, 90);
  *to++ = parities(bar);
  complete_tx(bar, 9);
  *to++ = parities(bar);
  // Expected in two parts, the largest count there is.
  expect_tx(bar, 1);
  arrive_expect_tx(bar, (1u << 20) - 2);
  *to++ = parities(bar);
  complete_tx(bar, (1u << 20) - 2);
  *to++ = parities(bar);
  complete_tx(bar, 1);
  *to++ = parities(bar);
}
