// the special registers of clusters: a grid of 16 in clusters of 8
// run: --grid 16 --cluster 8 --out 256
// source: PTX §10, %clusterid to %is_explicit_cluster
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  uint32_t r[16];
  asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(r[0]));
  asm volatile("mov.u32 %0, %%clusterid.y;" : "=r"(r[1]));
  asm volatile("mov.u32 %0, %%clusterid.z;" : "=r"(r[2]));
  asm volatile("mov.u32 %0, %%nclusterid.x;" : "=r"(r[3]));
  asm volatile("mov.u32 %0, %%nclusterid.y;" : "=r"(r[4]));
  asm volatile("mov.u32 %0, %%nclusterid.z;" : "=r"(r[5]));
  asm volatile("mov.u32 %0, %%cluster_ctaid.x;" : "=r"(r[6]));
  asm volatile("mov.u32 %0, %%cluster_ctaid.y;" : "=r"(r[7]));
  asm volatile("mov.u32 %0, %%cluster_ctaid.z;" : "=r"(r[8]));
  asm volatile("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(r[9]));
  asm volatile("mov.u32 %0, %%cluster_nctaid.y;" : "=r"(r[10]));
  asm volatile("mov.u32 %0, %%cluster_nctaid.z;" : "=r"(r[11]));
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r[12]));
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(r[13]));
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(r[14]));
  asm volatile("{\n\t.reg .pred p;\n\tmov.pred p, %%is_explicit_cluster;\n\tselp.u32 %0, 1, 0, p;\n\t}" : "=r"(r[15]));
  if (threadIdx.x == 0) {
    for (uint32_t i = 0; i < 16; ++i) out[16 * block + i] = r[i];
  }
}
