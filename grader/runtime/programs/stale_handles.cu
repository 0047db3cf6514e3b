// Handles of what has ended. A device's library may crash here; the emulator tells that they stand for nothing.
// stderr: it is not a stream
// stderr: it is not a module or library
#include "check.h"

__global__ void increment(int* p) { ++*p; }

int main() {
  int* p = nullptr;
  CHECK(cudaMalloc(&p, sizeof(int)));
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamDestroy(stream));
  EXPECT(cudaStreamQuery(stream) == cudaErrorInvalidResourceHandle);
  EXPECT(cudaMemsetAsync(p, 0, 4, stream) == cudaErrorInvalidResourceHandle);
  cudaGetLastError();
  increment<<<1, 1, 0, stream>>>(p);
  EXPECT(cudaGetLastError() == cudaErrorInvalidResourceHandle);

  cudaLibrary_t library;
  CHECK(cudaLibraryLoadData(&library, ".version 8.7\n.target sm_90\n.address_size 64\n", nullptr, nullptr, 0, nullptr,
                            nullptr, 0));
  CHECK(cudaLibraryUnload(library));
  EXPECT(cudaLibraryUnload(library) == cudaErrorInvalidResourceHandle);

  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaDeviceReset());
  EXPECT(cudaFree(p) == cudaErrorInvalidValue);
  EXPECT(cudaStreamSynchronize(stream) == cudaErrorInvalidResourceHandle);
}
