// A sum in shared memory, of static and of dynamic size, with its resources asked for; warp shuffles and an atomic.
#include <vector>

#include "check.h"

__global__ void __launch_bounds__(256) sum(const int* in, int n, int* out) {
  __shared__ int warps[8];
  extern __shared__ int values[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[threadIdx.x] = i < n ? in[i] : 0;
  __syncthreads();
  int v = values[blockDim.x - 1 - threadIdx.x];
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) {
    int total = 0;
    for (int w = 0; w < 8; ++w) total += warps[w];
    atomicAdd(out, total);
  }
}

int main() {
  constexpr int kN = 12'345, kBytes = 100 * 1024;
  std::vector<int> in(kN);
  int expected = 0;
  for (int i = 0; i < kN; ++i) expected += in[i] = i % 17;
  int *din, *dout, got = 0;
  CHECK(cudaMalloc(&din, kN * sizeof(int)));
  CHECK(cudaMalloc(&dout, sizeof(int)));
  CHECK(cudaMemcpy(din, in.data(), kN * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(dout, 0, sizeof(int)));
  cudaFuncAttributes attributes;
  CHECK(cudaFuncGetAttributes(&attributes, sum));
  EXPECT(attributes.sharedSizeBytes == 32 && attributes.maxThreadsPerBlock == 256);
  int blocks = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, sum, 256, 1024));
  EXPECT(blocks == 8);
  CHECK(cudaFuncSetAttribute(sum, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, sum, 256, kBytes));
  EXPECT(blocks == 2);
  sum<<<(kN + 255) / 256, 256, kBytes>>>(din, kN, dout);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(&got, dout, sizeof got, cudaMemcpyDeviceToHost));
  EXPECT(got == expected);
}
