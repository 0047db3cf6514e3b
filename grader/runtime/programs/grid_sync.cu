// A barrier of all blocks, twice in one launch, and a launch after it.
// stdout: the blocks met
#include <cooperative_groups.h>

#include "check.h"

namespace cg = cooperative_groups;

constexpr int kBlocks = 40, kThreads = 64;

/// Every block adds up what all blocks wrote.
__global__ void meet(int* numbers, int* sums) {
  const cg::grid_group grid = cg::this_grid();
  for (int round = 1; round <= 2; ++round) {
    if (threadIdx.x == 0) numbers[blockIdx.x] = round * static_cast<int>(blockIdx.x);
    grid.sync();
    int sum = 0;
    for (int i = 0; i < kBlocks; ++i) sum += numbers[i];
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
    grid.sync();
  }
}

int main() {
  int *numbers, *sums, host[kBlocks];
  CHECK(cudaMalloc(&numbers, sizeof host));
  CHECK(cudaMalloc(&sums, sizeof host));
  void* arguments[] = {&numbers, &sums};
  for (int launch = 0; launch < 2; ++launch) {
    CHECK(cudaMemset(sums, 0, sizeof host));
    CHECK(cudaLaunchCooperativeKernel(meet, dim3(kBlocks), dim3(kThreads), arguments, 0, nullptr));
    CHECK(cudaMemcpy(host, sums, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < kBlocks; ++i) EXPECT(host[i] == kBlocks * (kBlocks - 1));
  }
  std::printf("the blocks met\n");
}
