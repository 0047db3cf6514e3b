// What a kernel prints comes out on the program's standard output, in order with what the program prints itself.
// stdout: before\nthread 1 of block 2: 2.50 x\nafter\n
#include "check.h"

__global__ void speak() {
  if (blockIdx.x == 2 && threadIdx.x == 1)
    printf("thread %d of block %u: %.2f %s\n", threadIdx.x, blockIdx.x, 2.5, "x");
}

int main() {
  std::printf("before\n");
  speak<<<3, 2>>>();
  CHECK(cudaDeviceSynchronize());
  std::printf("after\n");
}
