// isspacep of generic addresses: own and other shared memory, global memory
// run: --grid 2 --cluster 2 --out 64
// source: PTX §9.7.9.21
#include <cstdint>

__device__ uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__device__ uint64_t mapa_generic(const void* at, uint32_t rank) {
  uint64_t mapped;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(mapped) : "l"(at), "r"(rank));
  return mapped;
}

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ uint32_t cells[32];
  const uint32_t lane = threadIdx.x;
  const uint32_t rank = cluster_rank();
  const uint64_t addresses[4] = {mapa_generic(cells, rank), mapa_generic(cells, rank ^ 1),
                                 reinterpret_cast<uint64_t>(cells), reinterpret_cast<uint64_t>(in)};
  if (lane < 4) {
    uint32_t cta, cluster, global;
    asm volatile("{\n\t.reg .pred p;\n\tisspacep.shared::cta p, %1;\n\tselp.u32 %0, 1, 0, p;\n\t}"
                 : "=r"(cta)
                 : "l"(addresses[lane]));
    asm volatile("{\n\t.reg .pred p;\n\tisspacep.shared::cluster p, %1;\n\tselp.u32 %0, 1, 0, p;\n\t}"
                 : "=r"(cluster)
                 : "l"(addresses[lane]));
    asm volatile("{\n\t.reg .pred p;\n\tisspacep.global p, %1;\n\tselp.u32 %0, 1, 0, p;\n\t}"
                 : "=r"(global)
                 : "l"(addresses[lane]));
    out[32 * rank + lane] = cta | cluster << 1 | global << 2;
  }
  cluster_sync();
}
