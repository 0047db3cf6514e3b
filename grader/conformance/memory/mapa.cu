// mapa and getctarank in a grid without clusters: the CTA is rank 0 of its own cluster of one
// run: --out 192
// source: PTX §9.7.9.23, §9.7.9.24
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ uint32_t cells[32];
  const uint32_t lane = threadIdx.x;
  cells[lane] = in[256 + lane];
  const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(cells + lane));
  uint32_t mapped, rank, value, generic_rank;
  uint64_t generic;
  asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(mapped) : "r"(at));
  asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(rank) : "r"(mapped));
  asm volatile("mapa.u64 %0, %1, 0;" : "=l"(generic) : "l"(cells + lane));
  asm volatile("getctarank.u64 %0, %1;" : "=r"(generic_rank) : "l"(generic));
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(mapped) : "memory");
  out[lane * 6] = rank;
  out[lane * 6 + 1] = generic_rank;
  out[lane * 6 + 2] = value;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(at) : "memory");
  out[lane * 6 + 3] = value;
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(mapped), "r"(~value) : "memory");
  out[lane * 6 + 4] = cells[lane];
  asm volatile("ld.u32 %0, [%1];" : "=r"(value) : "l"(generic) : "memory");
  out[lane * 6 + 5] = value;
}
