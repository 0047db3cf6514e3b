// work between arrive and wait; the cells of the other CTA are touched after the wait only
// run: --grid 2 --cluster 2 --block 64 --out 256
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

__device__ uint32_t remote_load(uint32_t at) {
  uint32_t value;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(at) : "memory");
  return value;
}

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ uint32_t cells[64];
  const uint32_t t = threadIdx.x;
  const uint32_t rank = cluster_rank();
  cells[t] = in[256 + 64 * rank + t];
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  out[128 * rank + t] = in[512 + t] * 3;
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  out[128 * rank + 64 + t] = remote_load(mapa(shared_address(cells + 63 - t), rank ^ 1));
  cluster_sync();
}
