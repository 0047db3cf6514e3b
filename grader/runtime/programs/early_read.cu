// A copy that nobody waits for: what the program prints, and how it ends, depends on the schedule (test.py).
// exit: 9
// stdout: element 1: -1
// expect: async-read-before-complete @ read
// expect: copy-in-flight-at-exit @ copy
#include <cuda_pipeline.h>

#include "check.h"

__global__ void copy(const int* in, int* out) {
  __shared__ alignas(16) int tile[4 * 32];
  __pipeline_memcpy_async(&tile[4 * threadIdx.x], &in[4 * threadIdx.x], 16);  // LINE copy
  __pipeline_commit();
  out[threadIdx.x] = tile[4 * threadIdx.x];  // LINE read
}

int main() {
  int numbers[4 * 32], first[32];
  for (int i = 0; i < 4 * 32; ++i) numbers[i] = i / 4;
  int *in, *out;
  CHECK(cudaMalloc(&in, sizeof numbers));
  CHECK(cudaMalloc(&out, sizeof first));
  CHECK(cudaMemcpy(in, numbers, sizeof numbers, cudaMemcpyHostToDevice));
  copy<<<1, 32>>>(in, out);
  CHECK(cudaMemcpy(first, out, sizeof first, cudaMemcpyDeviceToHost));
  std::printf("a copy\nelement 1: %d\n", first[1]);
  return first[1] == 1 ? 0 : 3;
}
