// where the shared memory of each rank lies in the window shared::cluster, relative to rank 0 and to the own address
// run: --grid 4 --cluster 4 --out 32
// source: PTX §5.1.9, §9.7.9.23
// undefined: the layout of the window is not specified; portable code calls mapa
#include <cstdint>

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ uint32_t mapa(uint32_t at, uint32_t rank) {
  uint32_t mapped;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(at), "r"(rank));
  return mapped;
}

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ uint32_t cells[4];
  const uint32_t lane = threadIdx.x;
  const uint32_t rank = cluster_rank();
  if (lane < 4) {
    const uint32_t own = shared_address(cells);
    out[8 * rank + lane] = mapa(own, lane) - mapa(own, 0);
    out[8 * rank + 4 + lane] = mapa(own, lane) - own;
  }
}
