// A kernel that uses memory of the host after it was unregistered.
// exit: 9
// expect: out-of-bounds @ WRITE
#include <vector>

#include "check.h"

__global__ void set(int* p) {
  *p = 1;  // LINE WRITE
}

int main() {
  std::vector<int> memory(1000);
  CHECK(cudaHostRegister(memory.data(), memory.size() * sizeof(int), cudaHostRegisterDefault));
  set<<<1, 1>>>(memory.data());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaHostUnregister(memory.data()));
  set<<<1, 1>>>(memory.data());
  EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
}
