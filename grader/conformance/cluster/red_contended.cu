// all threads of four CTAs add to words of one of them
// run: --grid 4 --cluster 4 --block 64 --out 8
// source: PTX §9.7.13.6
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
  __shared__ uint32_t cells[8];
  const uint32_t rank = cluster_rank();
  if (threadIdx.x < 8) cells[threadIdx.x] = 0;
  cluster_sync();
  const uint32_t at = mapa(shared_address(cells + (threadIdx.x & 7)), 2);
  asm volatile("red.relaxed.cluster.shared::cluster.add.u32 [%0], %1;" ::"r"(at), "r"(in[256 + 64 * rank + threadIdx.x])
               : "memory");
  cluster_sync();
  if (rank == 2 && threadIdx.x < 8) out[threadIdx.x] = cells[threadIdx.x];
}
