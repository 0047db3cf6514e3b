// a message by fence.acq_rel.cluster and a flag in the shared memory of the receiver
// run: --grid 2 --cluster 2 --out 32
// source: PTX §9.7.13.4, §8.8
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
  __shared__ uint32_t cells[32];
  __shared__ uint32_t flag;
  const uint32_t lane = threadIdx.x;
  const uint32_t rank = cluster_rank();
  if (lane == 0) flag = 0;
  cluster_sync();
  if (rank == 0) {
    remote_store(mapa(shared_address(cells + lane), 1), in[256 + lane]);
    __syncwarp();
    if (lane == 0) {
      asm volatile("fence.acq_rel.cluster;" ::: "memory");
      asm volatile("st.relaxed.cluster.shared::cluster.u32 [%0], 1;" ::"r"(mapa(shared_address(&flag), 1)) : "memory");
    }
  } else {
    uint32_t seen = 0;
    while (seen == 0)
      asm volatile("ld.acquire.cluster.shared::cta.u32 %0, [%1];" : "=r"(seen) : "r"(shared_address(&flag)) : "memory");
    out[lane] = cells[lane];
  }
  cluster_sync();
}
