// loads of every width from the shared memory of another CTA
// run: --grid 2 --cluster 2 --out 1024
// source: PTX §9.7.9.8
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
  __shared__ alignas(16) uint32_t cells[256];
  const uint32_t lane = threadIdx.x;
  const uint32_t rank = cluster_rank();
  for (uint32_t i = lane; i < 256; i += 32) cells[i] = in[256 + 256 * rank + i];
  cluster_sync();
  const uint32_t at = mapa(shared_address(cells), rank ^ 1);
  uint32_t r[16];
  uint16_t h;
  uint64_t d, e;
  asm volatile("ld.shared::cluster.u8 %0, [%1];" : "=r"(r[0]) : "r"(at + lane) : "memory");
  asm volatile("ld.shared::cluster.s8 %0, [%1];" : "=r"(r[1]) : "r"(at + 32 + lane) : "memory");
  asm volatile("ld.shared::cluster.b16 %0, [%1];" : "=h"(h) : "r"(at + 64 + 2 * lane) : "memory");
  r[2] = h;
  asm volatile("ld.shared::cluster.s16 %0, [%1];" : "=r"(r[3]) : "r"(at + 128 + 2 * lane) : "memory");
  asm volatile("ld.shared::cluster.b32 %0, [%1];" : "=r"(r[4]) : "r"(at + 192 + 4 * lane) : "memory");
  asm volatile("ld.shared::cluster.b64 %0, [%1];" : "=l"(d) : "r"(at + 256 + 8 * lane) : "memory");
  r[5] = static_cast<uint32_t>(d);
  r[6] = static_cast<uint32_t>(d >> 32);
  asm volatile("ld.shared::cluster.v2.u32 {%0, %1}, [%2];" : "=r"(r[7]), "=r"(r[8]) : "r"(at + 8 * lane) : "memory");
  asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[9]), "=r"(r[10]), "=r"(r[11]), "=r"(r[12])
               : "r"(at + 16 * lane)
               : "memory");
  asm volatile("ld.shared::cluster.v2.b64 {%0, %1}, [%2];"
               : "=l"(d), "=l"(e)
               : "r"(at + 512 + 16 * (lane & 15))
               : "memory");
  r[13] = static_cast<uint32_t>(d);
  r[14] = static_cast<uint32_t>(e);
  r[15] = static_cast<uint32_t>(e >> 32);
  for (uint32_t i = 0; i < 16; ++i) out[512 * rank + 32 * i + lane] = r[i];
  cluster_sync();
}
