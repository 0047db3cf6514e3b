// Memory of the program that it registers: kernels reach it while it is registered, at the host's address.
// stderr: part or all of the requested memory range is already mapped
#include <sys/mman.h>

#include <vector>

#include "check.h"

__global__ void add(int* p, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&p[i], i);
}

int main() {
  constexpr int kN = 5000;
  std::vector<int> memory(kN, 100);
  CHECK(cudaHostRegister(memory.data(), kN * sizeof(int), cudaHostRegisterMapped));
  EXPECT(cudaHostRegister(memory.data() + 10, 64, cudaHostRegisterDefault) == cudaErrorHostMemoryAlreadyRegistered);
  EXPECT(cudaGetLastError() == cudaErrorHostMemoryAlreadyRegistered);
  void* device = nullptr;
  unsigned flags = 0;
  CHECK(cudaHostGetDevicePointer(&device, memory.data(), 0));
  CHECK(cudaHostGetFlags(&flags, memory.data()));
  EXPECT((flags & cudaHostRegisterMapped) != 0);
  add<<<(kN + 255) / 256, 256>>>(static_cast<int*>(device), kN);
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < kN; ++i) EXPECT(memory[i] == 100 + i);
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, memory.data() + 7));
  EXPECT(attributes.type == cudaMemoryTypeHost && attributes.hostPointer == memory.data() + 7);
  EXPECT(cudaFreeHost(memory.data()) == cudaErrorInvalidValue && cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaHostUnregister(memory.data()));
  EXPECT(cudaHostUnregister(memory.data()) == cudaErrorHostMemoryNotRegistered);
  EXPECT(cudaHostGetDevicePointer(&device, memory.data(), 0) == cudaErrorInvalidValue);
  EXPECT(cudaGetLastError() == cudaErrorInvalidValue);

  void* const pages = mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(cudaHostRegister(pages, 1 << 20, cudaHostRegisterDefault));
  int* on_device = nullptr;
  CHECK(cudaMalloc(&on_device, 4096));
  CHECK(cudaMemset(on_device, 0, 4096));
  add<<<4, 256>>>(on_device, 1024);
  CHECK(cudaMemcpyAsync(pages, on_device, 4096, cudaMemcpyDefault));
  CHECK(cudaStreamSynchronize(nullptr));
  EXPECT(static_cast<int*>(pages)[1023] == 1023);
  CHECK(cudaHostUnregister(pages));
  munmap(pages, 1 << 20);

  int* allocated = nullptr;
  EXPECT(cudaHostAlloc(&allocated, 64, 128) == cudaErrorInvalidValue && cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaHostAlloc(&allocated, 64, cudaHostAllocPortable | cudaHostAllocWriteCombined));
  CHECK(cudaHostGetFlags(&flags, allocated));
  EXPECT((flags & cudaHostAllocWriteCombined) != 0);
  EXPECT(cudaHostUnregister(allocated) == cudaErrorInvalidValue);
  CHECK(cudaFreeHost(allocated));
}
