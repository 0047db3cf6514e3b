// atom of 64 bits on the shared memory of another CTA
// run: --grid 2 --cluster 2 --out 2304
// source: PTX §9.7.13.5
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
  __shared__ uint64_t cells[288];
  const uint32_t lane = threadIdx.x;
  const uint32_t rank = cluster_rank();
  for (uint32_t i = lane; i < 288; i += 32)
    cells[i] = in[128 + ((i + rank) & 63)] | static_cast<uint64_t>(in[128 + ((7 * i) & 63)]) << 32;
  cluster_sync();
  const uint32_t at = mapa(shared_address(cells), rank ^ 1);
  const uint64_t b = in[128 + ((5 * lane) & 63)] | static_cast<uint64_t>(in[300 + lane]) << 32;
  uint64_t was;
  asm volatile("atom.relaxed.cluster.shared::cluster.add.u64 %0, [%1], %2;"
               : "=l"(was)
               : "r"(at + 8 * (0 + lane)), "l"(b)
               : "memory");
  reinterpret_cast<uint64_t*>(out)[576 * rank + 0 + lane] = was;
  asm volatile("atom.relaxed.cluster.shared::cluster.min.u64 %0, [%1], %2;"
               : "=l"(was)
               : "r"(at + 8 * (32 + lane)), "l"(b)
               : "memory");
  reinterpret_cast<uint64_t*>(out)[576 * rank + 32 + lane] = was;
  asm volatile("atom.relaxed.cluster.shared::cluster.max.u64 %0, [%1], %2;"
               : "=l"(was)
               : "r"(at + 8 * (64 + lane)), "l"(b)
               : "memory");
  reinterpret_cast<uint64_t*>(out)[576 * rank + 64 + lane] = was;
  asm volatile("atom.relaxed.cluster.shared::cluster.min.s64 %0, [%1], %2;"
               : "=l"(was)
               : "r"(at + 8 * (96 + lane)), "l"(b)
               : "memory");
  reinterpret_cast<uint64_t*>(out)[576 * rank + 96 + lane] = was;
  asm volatile("atom.relaxed.cluster.shared::cluster.max.s64 %0, [%1], %2;"
               : "=l"(was)
               : "r"(at + 8 * (128 + lane)), "l"(b)
               : "memory");
  reinterpret_cast<uint64_t*>(out)[576 * rank + 128 + lane] = was;
  asm volatile("atom.relaxed.cluster.shared::cluster.and.b64 %0, [%1], %2;"
               : "=l"(was)
               : "r"(at + 8 * (160 + lane)), "l"(b)
               : "memory");
  reinterpret_cast<uint64_t*>(out)[576 * rank + 160 + lane] = was;
  asm volatile("atom.relaxed.cluster.shared::cluster.or.b64 %0, [%1], %2;"
               : "=l"(was)
               : "r"(at + 8 * (192 + lane)), "l"(b)
               : "memory");
  reinterpret_cast<uint64_t*>(out)[576 * rank + 192 + lane] = was;
  asm volatile("atom.relaxed.cluster.shared::cluster.xor.b64 %0, [%1], %2;"
               : "=l"(was)
               : "r"(at + 8 * (224 + lane)), "l"(b)
               : "memory");
  reinterpret_cast<uint64_t*>(out)[576 * rank + 224 + lane] = was;
  asm volatile("atom.relaxed.cluster.shared::cluster.exch.b64 %0, [%1], %2;"
               : "=l"(was)
               : "r"(at + 8 * (256 + lane)), "l"(b)
               : "memory");
  reinterpret_cast<uint64_t*>(out)[576 * rank + 256 + lane] = was;
  cluster_sync();
  for (uint32_t i = lane; i < 288; i += 32) reinterpret_cast<uint64_t*>(out)[576 * rank + 288 + i] = cells[i];
}
