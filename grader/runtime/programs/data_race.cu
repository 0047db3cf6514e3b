// A missing __syncthreads: right by luck, and found all the same. The program itself ends with status 0.
// exit: 9
// expect: data-race @ store
// related: load
// stdout: the program is content
#include "check.h"

__global__ void reverse(int* p) {
  __shared__ int tile[64];
  tile[threadIdx.x] = p[threadIdx.x];       // LINE store
  p[threadIdx.x] = tile[63 - threadIdx.x];  // LINE load
}

int main() {
  int* p = nullptr;
  CHECK(cudaMalloc(&p, 64 * sizeof(int)));
  CHECK(cudaMemset(p, 0, 64 * sizeof(int)));
  reverse<<<1, 64>>>(p);
  CHECK(cudaDeviceSynchronize());
  std::printf("the program is content\n");
}
