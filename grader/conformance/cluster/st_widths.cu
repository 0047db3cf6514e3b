// stores of every width to the shared memory of another CTA
// run: --grid 2 --cluster 2 --out 768
// source: PTX §9.7.9.11
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
  __shared__ alignas(16) uint32_t cells[384];
  const uint32_t lane = threadIdx.x;
  const uint32_t rank = cluster_rank();
  for (uint32_t i = lane; i < 384; i += 32) cells[i] = 0xa5a5a5a5;
  cluster_sync();
  const uint32_t at = mapa(shared_address(cells), rank ^ 1);
  const uint32_t* from = in + 256 + 512 * rank + 8 * lane;
  const uint64_t d = from[4] | static_cast<uint64_t>(from[5]) << 32, e = from[6] | static_cast<uint64_t>(from[7]) << 32;
  asm volatile("st.shared::cluster.u8 [%0], %1;" ::"r"(at + 2 * lane), "r"(from[0]) : "memory");
  asm volatile("st.shared::cluster.b16 [%0], %1;" ::"r"(at + 64 + 4 * lane), "h"(static_cast<uint16_t>(from[1]))
               : "memory");
  asm volatile("st.shared::cluster.b32 [%0], %1;" ::"r"(at + 192 + 4 * lane), "r"(from[2]) : "memory");
  asm volatile("st.shared::cluster.b64 [%0], %1;" ::"r"(at + 320 + 8 * lane), "l"(d) : "memory");
  asm volatile("st.shared::cluster.v2.b32 [%0], {%1, %2};" ::"r"(at + 576 + 8 * lane), "r"(from[1]), "r"(from[2])
               : "memory");
  if (lane < 16) {
    asm volatile("st.shared::cluster.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at + 832 + 16 * lane), "r"(from[0]),
                 "r"(from[1]), "r"(from[2]), "r"(from[3])
                 : "memory");
    asm volatile("st.shared::cluster.v2.b64 [%0], {%1, %2};" ::"r"(at + 1088 + 16 * lane), "l"(d), "l"(e) : "memory");
  }
  cluster_sync();
  for (uint32_t i = lane; i < 384; i += 32) out[384 * rank + i] = cells[i];
}
