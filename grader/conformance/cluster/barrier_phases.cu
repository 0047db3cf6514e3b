// eight rounds in a ring: each CTA passes its words to the next
// run: --grid 4 --cluster 4 --out 128
// source: PTX §9.7.13.3
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

__device__ void remote_store(uint32_t at, uint32_t value) {
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(at), "r"(value) : "memory");
}

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ uint32_t cells[2][32];
  const uint32_t lane = threadIdx.x;
  const uint32_t rank = cluster_rank();
  cells[0][lane] = in[256 + 32 * rank + lane];
  cluster_sync();
  for (uint32_t i = 0; i < 8; ++i) {
    remote_store(mapa(shared_address(&cells[(i + 1) & 1][lane]), (rank + 1) & 3), cells[i & 1][lane] * 3 + i);
    cluster_sync();
  }
  out[32 * rank + lane] = cells[0][lane];
}
