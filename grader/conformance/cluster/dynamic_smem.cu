// dynamic shared memory of another CTA
// run: --grid 2 --cluster 2 --smem 4096 --out 128
// source: PTX §9.7.9.23
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
  extern __shared__ uint32_t cells[];
  const uint32_t lane = threadIdx.x;
  const uint32_t rank = cluster_rank();
  for (uint32_t i = lane; i < 1024; i += 32) cells[i] = in[256 + ((i + 100 * rank) & 2047)];
  cluster_sync();
  for (uint32_t i = 0; i < 2; ++i)
    out[64 * rank + 32 * i + lane] = remote_load(mapa(shared_address(cells + 31 * lane + i), rank ^ 1));
  cluster_sync();
}
