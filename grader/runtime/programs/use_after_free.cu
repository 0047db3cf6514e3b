// A kernel that is given memory which was freed: reported with the lines of its allocation and of its end.
// nvcc: -g
// exit: 9
// stderr: which was freed
// expect: out-of-bounds @ store
// related: allocated
// related: freed
#include "check.h"

__global__ void set(int* p) {
  p[threadIdx.x] = 1;  // LINE store
}

int main() {
  int* p = nullptr;
  CHECK(cudaMalloc(&p, 32 * sizeof(int)));  // LINE allocated
  set<<<1, 32>>>(p);
  CHECK(cudaFree(p));  // LINE freed
  set<<<1, 32>>>(p);
  EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  EXPECT(cudaGetLastError() == cudaErrorIllegalAddress);
}
