// atom of 32 bits on the shared memory of another CTA: what was there and what is
// run: --grid 2 --cluster 2 --out 1536
// source: PTX §9.7.13.5
#include <cstdint>

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

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
  __shared__ uint32_t cells[384];
  const uint32_t lane = threadIdx.x;
  const uint32_t rank = cluster_rank();
  for (uint32_t i = lane; i < 384; i += 32) cells[i] = in[128 + ((i + rank) & 63)];
  cluster_sync();
  const uint32_t at = mapa(shared_address(cells), rank ^ 1);
  uint32_t was;
  asm volatile("atom.relaxed.cluster.shared::cluster.add.u32 %0, [%1], %2;"
               : "=r"(was)
               : "r"(at + 4 * (0 + lane)), "r"(in[128 + ((5 * lane + 0) & 63)])
               : "memory");
  out[768 * rank + 0 + lane] = was;
  asm volatile("atom.relaxed.cluster.shared::cluster.min.u32 %0, [%1], %2;"
               : "=r"(was)
               : "r"(at + 4 * (32 + lane)), "r"(in[128 + ((5 * lane + 1) & 63)])
               : "memory");
  out[768 * rank + 32 + lane] = was;
  asm volatile("atom.relaxed.cluster.shared::cluster.max.u32 %0, [%1], %2;"
               : "=r"(was)
               : "r"(at + 4 * (64 + lane)), "r"(in[128 + ((5 * lane + 2) & 63)])
               : "memory");
  out[768 * rank + 64 + lane] = was;
  asm volatile("atom.relaxed.cluster.shared::cluster.min.s32 %0, [%1], %2;"
               : "=r"(was)
               : "r"(at + 4 * (96 + lane)), "r"(in[128 + ((5 * lane + 3) & 63)])
               : "memory");
  out[768 * rank + 96 + lane] = was;
  asm volatile("atom.relaxed.cluster.shared::cluster.max.s32 %0, [%1], %2;"
               : "=r"(was)
               : "r"(at + 4 * (128 + lane)), "r"(in[128 + ((5 * lane + 4) & 63)])
               : "memory");
  out[768 * rank + 128 + lane] = was;
  asm volatile("atom.relaxed.cluster.shared::cluster.inc.u32 %0, [%1], %2;"
               : "=r"(was)
               : "r"(at + 4 * (160 + lane)), "r"(in[128 + ((5 * lane + 5) & 63)])
               : "memory");
  out[768 * rank + 160 + lane] = was;
  asm volatile("atom.relaxed.cluster.shared::cluster.dec.u32 %0, [%1], %2;"
               : "=r"(was)
               : "r"(at + 4 * (192 + lane)), "r"(in[128 + ((5 * lane + 6) & 63)])
               : "memory");
  out[768 * rank + 192 + lane] = was;
  asm volatile("atom.relaxed.cluster.shared::cluster.and.b32 %0, [%1], %2;"
               : "=r"(was)
               : "r"(at + 4 * (224 + lane)), "r"(in[128 + ((5 * lane + 7) & 63)])
               : "memory");
  out[768 * rank + 224 + lane] = was;
  asm volatile("atom.relaxed.cluster.shared::cluster.or.b32 %0, [%1], %2;"
               : "=r"(was)
               : "r"(at + 4 * (256 + lane)), "r"(in[128 + ((5 * lane + 8) & 63)])
               : "memory");
  out[768 * rank + 256 + lane] = was;
  asm volatile("atom.relaxed.cluster.shared::cluster.xor.b32 %0, [%1], %2;"
               : "=r"(was)
               : "r"(at + 4 * (288 + lane)), "r"(in[128 + ((5 * lane + 9) & 63)])
               : "memory");
  out[768 * rank + 288 + lane] = was;
  asm volatile("atom.relaxed.cluster.shared::cluster.exch.b32 %0, [%1], %2;"
               : "=r"(was)
               : "r"(at + 4 * (320 + lane)), "r"(in[128 + ((5 * lane + 10) & 63)])
               : "memory");
  out[768 * rank + 320 + lane] = was;
  asm volatile("atom.relaxed.cluster.shared::cluster.cas.b32 %0, [%1], %2, %3;"
               : "=r"(was)
               : "r"(at + 4 * (352 + lane)), "r"(lane & 1 ? in[128 + ((352 + lane + (rank ^ 1)) & 63)] : lane),
                 "r"(~lane)
               : "memory");
  out[768 * rank + 352 + lane] = was;
  cluster_sync();
  for (uint32_t i = lane; i < 384; i += 32) out[768 * rank + 384 + i] = cells[i];
}
