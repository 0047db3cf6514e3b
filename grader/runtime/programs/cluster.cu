// A cluster, as an attribute of the launch and as a property of the kernel: each block reads its neighbour's memory.
#include <cooperative_groups.h>

#include "check.h"

namespace cg = cooperative_groups;

__device__ void pass_on(int* out) {
  __shared__ int value;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) value = 100 + static_cast<int>(blockIdx.x);
  cluster.sync();
  if (threadIdx.x == 0) {
    const unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
    out[blockIdx.x] = *cluster.map_shared_rank(&value, next);
  }
  cluster.sync();
}

__global__ void launched(int* out) { pass_on(out); }
__global__ void __cluster_dims__(2) declared(int* out) { pass_on(out); }

int main() {
  constexpr int kBlocks = 8;
  int* dout;
  int got[kBlocks];
  CHECK(cudaMalloc(&dout, sizeof got));
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = 4;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(kBlocks);
  config.blockDim = dim3(64);
  config.attrs = &attribute;
  config.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&config, launched, dout));
  CHECK(cudaMemcpy(got, dout, sizeof got, cudaMemcpyDeviceToHost));
  for (int i = 0; i < kBlocks; ++i) EXPECT(got[i] == 100 + i / 4 * 4 + (i + 1) % 4);
  declared<<<kBlocks, 64>>>(dout);
  CHECK(cudaMemcpy(got, dout, sizeof got, cudaMemcpyDeviceToHost));
  for (int i = 0; i < kBlocks; ++i) EXPECT(got[i] == 100 + (i ^ 1));
}
