// st.async of every form to another CTA, and the bytes that each counts
// run: --grid 2 --cluster 2 --out 1024
// source: PTX §9.7.9.12
#include <cstdint>

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void init(uint32_t bar, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ void fence_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ void arrive_expect_tx(uint32_t bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

__device__ void wait_parity(uint32_t bar, uint32_t parity) {
  asm volatile(
      "{\n\t"
      ".reg .pred p;\n\t"
      "again_%=:\n\t"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n\t"
      "@!p bra again_%=;\n\t"
      "}" ::"r"(bar),
      "r"(parity)
      : "memory");
}

__device__ uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__device__ uint32_t mapa(uint32_t at, uint32_t rank) {
  uint32_t mapped;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(at), "r"(rank));
  return mapped;
}

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(16) uint32_t cells[512];
  __shared__ alignas(8) uint64_t barrier;
  const uint32_t lane = threadIdx.x;
  const uint32_t rank = cluster_rank();
  const uint32_t bar = shared_address(&barrier);
  if (lane == 0) {
    init(bar, 1);
    fence_init();
  }
  for (uint32_t i = lane; i < 512; i += 32) cells[i] = 0xa5a5a5a5;
  __syncwarp();
  if (lane == 0) arrive_expect_tx(bar, 32 * (4 + 4 + 8 + 8 + 16 + 8));
  cluster_sync();
  const uint32_t peer = mapa(bar, rank ^ 1), to = mapa(shared_address(cells + 16 * lane), rank ^ 1);
  const uint32_t* x = in + 256 + 512 * rank + 16 * lane;
  const uint64_t d = x[8] | static_cast<uint64_t>(x[9]) << 32;
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(to), "r"(x[0]),
               "r"(peer)
               : "memory");
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(to + 4),
               "f"(__uint_as_float(x[1])), "r"(peer)
               : "memory");
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(to + 8), "l"(d),
               "r"(peer)
               : "memory");
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%0], {%1, %2}, [%3];" ::"r"(to + 16),
               "r"(x[2]), "r"(x[3]), "r"(peer)
               : "memory");
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(to + 32),
      "r"(x[4]), "r"(x[5]), "r"(x[6]), "r"(x[7]), "r"(peer)
      : "memory");
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.s64 [%0], %1, [%2];" ::"r"(to + 48), "l"(~d),
               "r"(peer)
               : "memory");
  wait_parity(bar, 0);
  for (uint32_t i = lane; i < 512; i += 32) out[512 * rank + i] = cells[i];
  cluster_sync();
}
