// What the calls after a launch answer when the kernel failed, for each failure that is its argument. faults.*.txt is
// what an H200 answered (driver 580.159.04, 2026-11-30); the assertion's own message went to standard error.
// nvcc: -gencode arch=compute_90a,code=compute_90a
// run: misaligned
// run: assert
// run: trap
// exit: 9
#include <cassert>
#include <cstring>

#include "check.h"

__global__ void fail(int which, int* p) {
  if (which == 0) *reinterpret_cast<int*>(reinterpret_cast<char*>(p) + 2) = 1;
  if (which == 1) assert(p == nullptr);
  if (which == 2) __trap();
}

void say(const char* what, cudaError_t error) {
  const cudaError_t last = cudaGetLastError(), then = cudaGetLastError();
  std::printf("%s: %s (%s); last %d, then %d\n", what, cudaGetErrorName(error), cudaGetErrorString(error), last, then);
}

int main(int argc, char** argv) {
  const char* const kinds[] = {"misaligned", "assert", "trap"};
  int which = 0, *p = nullptr, *q = nullptr, value = 0;
  while (which < 2 && argc > 1 && std::strcmp(argv[1], kinds[which]) != 0) ++which;
  CHECK(cudaMalloc(&p, 4096));
  fail<<<1, 1>>>(which, p);
  say("synchronize", cudaDeviceSynchronize());
  say("synchronize again", cudaDeviceSynchronize());
  say("malloc", cudaMalloc(&q, 16));
  say("copy", cudaMemcpy(&value, p, sizeof value, cudaMemcpyDeviceToHost));
  say("free", cudaFree(p));
  cudaEvent_t event;
  say("event", cudaEventCreate(&event));
  say("device", cudaGetDevice(&value));
  say("count", cudaGetDeviceCount(&value));
  say("attribute", cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0));
  fail<<<1, 1>>>(9, p);
  say("launch", cudaPeekAtLastError());
}
