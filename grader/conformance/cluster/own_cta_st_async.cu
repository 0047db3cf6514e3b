// in a cluster: st.async into the own CTA: scalars and vectors of every width, their bytes counted by the mbarrier
// run: --grid 2 --cluster 2 --out 1024
// source: PTX §9.7.9.12
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
  out += 512 * blockIdx.x;
  __shared__ alignas(16) uint32_t cells[32 * 16];
  __shared__ alignas(8) uint64_t barrier;
  const uint32_t lane = threadIdx.x;
  const uint32_t bar = shared_address(&barrier);
  for (uint32_t i = 0; i < 16; ++i) cells[16 * lane + i] = 0xa5a5a5a5;
  if (lane == 0) {
    init(bar, 1);
    fence_init();
  }
  __syncwarp();
  if (lane == 0) arrive_expect_tx(bar, 32 * (4 + 8 + 8 + 16 + 16));
  __syncwarp();
  const uint32_t to = shared_address(cells + 16 * lane);
  const uint32_t* x = in + 256 + 16 * lane;
  const uint64_t w = static_cast<uint64_t>(x[1]) << 32 | x[0], v = static_cast<uint64_t>(x[3]) << 32 | x[2];
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(to + 4), "r"(x[4]),
               "r"(bar)
               : "memory");
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(to + 8), "l"(w),
               "r"(bar)
               : "memory");
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.s32 [%0], {%1, %2}, [%3];" ::"r"(to + 16),
               "r"(x[5]), "r"(x[6]), "r"(bar)
               : "memory");
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(to + 32),
      "f"(__uint_as_float(x[7])), "f"(__uint_as_float(x[8])), "f"(__uint_as_float(x[9])), "f"(__uint_as_float(x[10])),
      "r"(bar)
      : "memory");
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u64 [%0], {%1, %2}, [%3];" ::"r"(to + 48),
               "l"(v), "l"(w), "r"(bar)
               : "memory");
  wait_parity(bar, 0);
  for (uint32_t i = 0; i < 16; ++i) out[16 * lane + i] = cells[16 * lane + i];
}
