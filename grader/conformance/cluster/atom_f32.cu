// atom.add.f32 on the shared memory of another CTA: rounding and subnormals
// run: --grid 2 --cluster 2 --out 256
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
  __shared__ float cells[64];
  const uint32_t lane = threadIdx.x;
  const uint32_t rank = cluster_rank();
  for (uint32_t i = lane; i < 64; i += 32) {
    uint32_t a = in[(5 * i + 1) & 127];
    if (a << 1 >= 0xff000000) a &= 0x3fffffff;
    cells[i] = __uint_as_float(a);
  }
  cluster_sync();
  for (uint32_t i = lane; i < 64; i += 32) {
    uint32_t b = in[2 * i];
    if (b << 1 >= 0xff000000) b &= 0x3fffffff;
    float was;
    asm volatile("atom.relaxed.cluster.shared::cluster.add.f32 %0, [%1], %2;"
                 : "=f"(was)
                 : "r"(mapa(shared_address(cells + i), rank ^ 1)), "f"(__uint_as_float(b))
                 : "memory");
    out[128 * rank + i] = __float_as_uint(was);
  }
  cluster_sync();
  for (uint32_t i = lane; i < 64; i += 32) out[128 * rank + 64 + i] = __float_as_uint(cells[i]);
}
