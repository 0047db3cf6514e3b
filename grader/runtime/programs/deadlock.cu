// A barrier that not every thread of the block reaches, nor can: the launch ends, where a device would hang.
// exit: 9
// stderr: deadlock
#include <cuda/ptx>

#include "check.h"

__global__ void wait_for_nobody() {
  __shared__ uint64_t bar;
  if (threadIdx.x == 0) cuda::ptx::mbarrier_init(&bar, 2);
  __syncthreads();
  if (threadIdx.x == 0) cuda::ptx::mbarrier_arrive(&bar);
  while (!cuda::ptx::mbarrier_try_wait_parity(&bar, 0)) {
  }
}

int main() {
  wait_for_nobody<<<1, 32>>>();
  EXPECT(cudaDeviceSynchronize() == cudaErrorLaunchTimeout);
}
