// mapa to each rank and getctarank of what it gives; reads through it
// run: --grid 4 --cluster 4 --out 512
// source: PTX §9.7.9.23, §9.7.9.24
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
  __shared__ uint32_t cells[32];
  const uint32_t lane = threadIdx.x;
  const uint32_t rank = cluster_rank();
  cells[lane] = in[256 + 32 * rank + lane];
  cluster_sync();
  for (uint32_t r = 0; r < 4; ++r) {
    const uint32_t at = mapa(shared_address(cells + (lane ^ r)), r);
    uint32_t owner;
    asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(owner) : "r"(at));
    out[128 * rank + 32 * r + lane] = remote_load(at) + owner;
  }
  cluster_sync();
}
