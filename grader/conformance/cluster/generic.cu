// generic addresses of other CTAs: mapa.u64, getctarank, ordinary loads and stores
// run: --grid 4 --cluster 4 --out 384
// source: PTX §9.7.9.23
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
  cells[lane] = in[256 + 32 * rank + lane];
  cluster_sync();
  const uint32_t next = (rank + 1) & 3;
  const uint64_t at = mapa_generic(cells + lane, next);
  uint32_t owner, value;
  asm volatile("getctarank.u64 %0, %1;" : "=r"(owner) : "l"(at));
  asm volatile("ld.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  out[96 * rank + lane] = owner;
  out[96 * rank + 32 + lane] = value;
  cluster_sync();
  asm volatile("st.u32 [%0], %1;" ::"l"(at), "r"(value ^ rank) : "memory");
  cluster_sync();
  out[96 * rank + 64 + lane] = cells[lane];
}
