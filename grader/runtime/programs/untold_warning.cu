// A barrier's init that is not fenced for the copy engine is a warning: without --check all it is not told, but that there is one is.
// stdout: element 31: 7
// stderr: 1 launch, no errors, but warnings or notes (--check all)
#include <cuda/ptx>

#include "check.h"

namespace ptx = cuda::ptx;

__global__ void copy(const int* in, int* out) {
  __shared__ alignas(16) int tile[32];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) ptx::mbarrier_init(&full, 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, sizeof tile);
    ptx::cp_async_bulk(ptx::space_shared, ptx::space_global, tile, in, sizeof tile, &full);
  }
  while (!ptx::mbarrier_try_wait_parity(&full, 0)) {
  }
  out[threadIdx.x] = tile[threadIdx.x];
}

int main() {
  int numbers[32], copied[32];
  for (int& n : numbers) n = 7;
  int *in, *out;
  CHECK(cudaMalloc(&in, sizeof numbers));
  CHECK(cudaMalloc(&out, sizeof copied));
  CHECK(cudaMemcpy(in, numbers, sizeof numbers, cudaMemcpyHostToDevice));
  copy<<<1, 32>>>(in, out);
  CHECK(cudaMemcpy(copied, out, sizeof copied, cudaMemcpyDeviceToHost));
  std::printf("element 31: %d\n", copied[31]);
}
