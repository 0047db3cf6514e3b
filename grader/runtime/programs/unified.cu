// Managed and page-locked memory: one address for the host and for kernels.
#include "check.h"

__global__ void scale(float* p, const float* factor, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] *= *factor;
}

int main() {
  constexpr int kN = 3000;
  float *p = nullptr, *factor = nullptr, *same = nullptr;
  for (int round = 0; round < 3; ++round) {
    CHECK(cudaMallocManaged(&p, kN * sizeof(float)));
    CHECK(cudaHostAlloc(&factor, sizeof(float), cudaHostAllocMapped));
    CHECK(cudaHostGetDevicePointer(&same, factor, 0));
    *factor = 3.0f;
    for (int i = 0; i < kN; ++i) p[i] = static_cast<float>(i);
    scale<<<(kN + 127) / 128, 128>>>(p, same, kN);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < kN; ++i) EXPECT(p[i] == 3.0f * static_cast<float>(i));
    cudaPointerAttributes attributes;
    CHECK(cudaPointerGetAttributes(&attributes, p + 5));
    EXPECT(attributes.type == cudaMemoryTypeManaged && attributes.devicePointer == p + 5);
    EXPECT(cudaFree(factor) == cudaErrorInvalidValue && cudaGetLastError() == cudaErrorInvalidValue);
    CHECK(cudaFree(p));
    CHECK(cudaFreeHost(factor));
  }
}
