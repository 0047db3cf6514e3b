// A signal ends it after a launch, or in the middle of one (test.py sends it): what was found until then is told.
// run: crash
// exit: 9
// stderr: ended with signal 11
// expect: data-race @ store
// related: load
#include <unistd.h>

#include <csignal>
#include <thread>

#include "check.h"

__global__ void reverse(int* p, volatile int* running, bool endless) {
  __shared__ int tile[64];
  tile[threadIdx.x] = p[threadIdx.x];       // LINE store
  p[threadIdx.x] = tile[63 - threadIdx.x];  // LINE load
  __syncthreads();
  *running = 1;
  while (endless) atomicAdd(p, 1);
}

int main(int argc, char**) {
  const bool crash = argc > 1;
  int *p, *running;
  CHECK(cudaMalloc(&p, 64 * sizeof(int)));
  CHECK(cudaMemset(p, 0, 64 * sizeof(int)));
  CHECK(cudaMallocManaged(&running, sizeof(int)));
  *running = 0;
  std::thread tell([running] {
    while (*static_cast<volatile int*>(running) == 0) usleep(1000);
    std::printf("process %d is running\n", getpid());
    std::fflush(stdout);
  });
  reverse<<<1, 64>>>(p, running, !crash);
  CHECK(cudaDeviceSynchronize());
  tell.join();
  if (crash) std::raise(SIGSEGV);
}
