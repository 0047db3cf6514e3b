// the own shared memory through mapa of the own rank: the same bytes
// run: --grid 2 --cluster 2 --out 128
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

__device__ void remote_store(uint32_t at, uint32_t value) {
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(at), "r"(value) : "memory");
}

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ uint32_t cells[32];
  const uint32_t lane = threadIdx.x;
  const uint32_t rank = cluster_rank();
  const uint32_t at = mapa(shared_address(cells + lane), rank);
  remote_store(at, in[256 + 32 * rank + lane]);
  __syncwarp();
  out[64 * rank + lane] = cells[31 - lane];
  __syncwarp();
  cells[lane] = ~in[300 + lane];
  __syncwarp();
  out[64 * rank + 32 + lane] = remote_load(at);
  cluster_sync();
}
