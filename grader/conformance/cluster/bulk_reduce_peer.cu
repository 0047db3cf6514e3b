// cp.reduce.async.bulk from shared memory into that of another CTA, every form
// run: --grid 2 --cluster 2 --out 768
// source: PTX §9.7.9.25.4.2
#include <cstdint>

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void init(uint32_t bar, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ void fence_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ void fence_async() { asm volatile("fence.proxy.async;" ::: "memory"); }

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

#define REDUCE(op, offset)                                                                         \
  asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes." op \
               " [%0], [%1], 128, [%2];" ::"r"(to + (offset)),                                     \
               "r"(shared_address(from)), "r"(peer)                                                \
               : "memory")

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(16) uint32_t from[32];
  __shared__ alignas(16) uint32_t cells[384];
  __shared__ alignas(8) uint64_t barrier;
  const uint32_t lane = threadIdx.x;
  const uint32_t rank = cluster_rank();
  const uint32_t bar = shared_address(&barrier);
  if (lane == 0) {
    init(bar, 1);
    fence_init();
  }
  from[lane] = in[128 + ((5 * lane + rank) & 63)];
  for (uint32_t i = lane; i < 384; i += 32) cells[i] = in[128 + ((i + i / 32) & 63)];
  fence_async();
  __syncwarp();
  if (lane == 0) arrive_expect_tx(bar, 1536);
  cluster_sync();
  if (lane == 0) {
    const uint32_t to = mapa(shared_address(cells), rank ^ 1), peer = mapa(bar, rank ^ 1);
    REDUCE("add.u32", 0);
    REDUCE("add.s32", 128);
    REDUCE("min.u32", 256);
    REDUCE("max.u32", 384);
    REDUCE("min.s32", 512);
    REDUCE("max.s32", 640);
    REDUCE("inc.u32", 768);
    REDUCE("dec.u32", 896);
    REDUCE("and.b32", 1024);
    REDUCE("or.b32", 1152);
    REDUCE("xor.b32", 1280);
    REDUCE("add.u64", 1408);
  }
  wait_parity(bar, 0);
  for (uint32_t i = lane; i < 384; i += 32) out[384 * rank + i] = cells[i];
  cluster_sync();
}
