// Occupancy, and what is known of kernels. Registers are not counted: kernels that use few make no difference.
#include <cstring>

#include "check.h"

__global__ void plain(int* p) { *p = 1; }
__global__ void __launch_bounds__(256) with_shared(int* p, double, char) {
  __shared__ int room[12 * 1024 / 4];
  room[threadIdx.x] = 1;
  __syncthreads();
  *p = room[0];
}
__global__ void __cluster_dims__(4) in_clusters(int* p) { *p = 1; }

int main() {
  cudaDeviceProp device;
  CHECK(cudaGetDeviceProperties(&device, 0));
  cudaFuncAttributes attributes;
  CHECK(cudaFuncGetAttributes(&attributes, with_shared));
  int blocks = 0, block = 0, grid = 0, size = 0, clusters = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 1024, 0));
  EXPECT(blocks == device.maxThreadsPerMultiProcessor / 1024);
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, with_shared, 32, 100 * 1024));
  EXPECT(blocks == 0);  // more than the kernel may have
  CHECK(cudaFuncSetAttribute(with_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 128 * 1024));
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, with_shared, 32, 100 * 1024));
  EXPECT(blocks == static_cast<int>(device.sharedMemPerMultiprocessor /
                                    (attributes.sharedSizeBytes + 100 * 1024 + device.reservedSharedMemPerBlock)));
  CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, plain, 0, 0));
  EXPECT(block == 1024 && grid == device.multiProcessorCount * (device.maxThreadsPerMultiProcessor / 1024));
  size_t bytes = 0;
  CHECK(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, with_shared, 2, 128));
  EXPECT(bytes > 64 * 1024 && bytes < 114 * 1024);
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, with_shared, 128, bytes / 2));
  EXPECT(blocks >= 2);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(64);
  config.blockDim = dim3(128);
  CHECK(cudaOccupancyMaxPotentialClusterSize(&size, plain, &config));
  EXPECT(size == 8);
  CHECK(cudaFuncSetAttribute(plain, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  CHECK(cudaOccupancyMaxPotentialClusterSize(&size, plain, &config));
  EXPECT(size == 16);
  CHECK(cudaOccupancyMaxActiveClusters(&clusters, in_clusters, &config));
  EXPECT(clusters > 0 && clusters <= device.multiProcessorCount * 16 / 4);
  EXPECT(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 0, 0) == cudaErrorInvalidValue);

  const char* name = nullptr;
  CHECK(cudaFuncGetName(&name, with_shared));
  EXPECT(std::strstr(name, "with_shared") != nullptr);
  size_t offset = 0;
  CHECK(cudaFuncGetParamInfo(reinterpret_cast<const void*>(&with_shared), 2, &offset, &bytes));
  EXPECT(offset == 16 && bytes == 1);
  EXPECT(cudaFuncGetParamInfo(reinterpret_cast<const void*>(&with_shared), 3, &offset, &bytes) ==
         cudaErrorInvalidValue);
  EXPECT(attributes.sharedSizeBytes == 12 * 1024 && attributes.maxThreadsPerBlock == 256);
}
