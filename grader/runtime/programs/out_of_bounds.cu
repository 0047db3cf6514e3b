// One thread too many: the first byte behind an allocation.
// nvcc: -g
// exit: 9
// stderr: past the end of `cudaMalloc #1`
// expect: out-of-bounds @ store
// related: allocated
#include "check.h"

__global__ void set(int* p) {
  p[threadIdx.x] = 1;  // LINE store
}

int main() {
  int* p = nullptr;
  CHECK(cudaMalloc(&p, 31 * sizeof(int)));  // LINE allocated
  set<<<1, 32>>>(p);
  CHECK(cudaGetLastError());
  EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
}
