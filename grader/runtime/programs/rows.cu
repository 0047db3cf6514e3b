// Memory in rows and slices: pitched allocations, copies and fills of two and three dimensions, advice about managed
// memory.
#include <vector>

#include "check.h"

__global__ void number(cudaPitchedPtr p, int width, int height) {
  const int x = threadIdx.x, y = blockIdx.x, z = blockIdx.y;
  if (x >= width || y >= height) return;
  char* const slice = static_cast<char*>(p.ptr) + z * p.pitch * p.ysize;
  reinterpret_cast<int*>(slice + y * p.pitch)[x] += 100 * z + 10 * y + x;
}

int main() {
  constexpr int kW = 5, kH = 4, kD = 3;
  const cudaExtent extent = make_cudaExtent(kW * sizeof(int), kH, kD);
  cudaPitchedPtr p;
  CHECK(cudaMalloc3D(&p, extent));
  EXPECT(p.pitch >= kW * sizeof(int) && p.pitch % 32 == 0 && p.xsize == kW * sizeof(int) && p.ysize == kH);
  CHECK(cudaMemset3D(p, 0, extent));
  number<<<dim3(kH, kD), 32>>>(p, kW, kH);
  std::vector<int> got(kW * kH * kD, -1);
  cudaMemcpy3DParms copy{};
  copy.srcPtr = p;
  copy.dstPtr = make_cudaPitchedPtr(got.data(), kW * sizeof(int), kW, kH);
  copy.extent = extent;
  copy.kind = cudaMemcpyDeviceToHost;
  CHECK(cudaMemcpy3D(&copy));
  for (int i = 0; i < kW * kH * kD; ++i) EXPECT(got[i] == 100 * (i / (kW * kH)) + 10 * (i / kW % kH) + i % kW);
  // The lower right corner of the last slice, to the upper left of the first.
  copy.srcPos = make_cudaPos(3 * sizeof(int), 2, 2);
  copy.extent = make_cudaExtent(2 * sizeof(int), 2, 1);
  CHECK(cudaMemcpy3DAsync(&copy, nullptr));
  EXPECT(got[0] == 223 && got[1] == 224 && got[kW] == 233 && got[kW + 1] == 234 && got[2] == 2);
  copy.kind = static_cast<cudaMemcpyKind>(9);
  EXPECT(cudaMemcpy3D(&copy) == cudaErrorInvalidMemcpyDirection);
  copy.kind = cudaMemcpyDeviceToHost;
  copy.srcPtr.ptr = nullptr;
  EXPECT(cudaMemcpy3D(&copy) == cudaErrorInvalidValue);

  int* rows = nullptr;
  size_t pitch = 0;
  CHECK(cudaMallocPitch(&rows, &pitch, kW * sizeof(int), kH));
  CHECK(cudaMemset2D(rows, pitch, 1, kW * sizeof(int), kH));
  CHECK(cudaMemcpy2D(got.data(), kW * sizeof(int), rows, pitch, kW * sizeof(int), kH, cudaMemcpyDeviceToHost));
  EXPECT(got[0] == 0x01010101 && got[kW * kH - 1] == 0x01010101);
  EXPECT(cudaMemcpy2D(rows, 4, got.data(), 20, 20, 2, cudaMemcpyHostToDevice) == cudaErrorInvalidPitchValue);
  CHECK(cudaMemcpyPeer(rows, 0, p.ptr, 0, kW * sizeof(int)));
  CHECK(cudaMemcpyPeerAsync(rows, 0, p.ptr, 0, kW * sizeof(int), nullptr));
  EXPECT(cudaMemcpyPeer(rows, 0, p.ptr, 1, 4) == cudaErrorInvalidDevice);
  CHECK(cudaMemcpy(got.data(), rows, kW * sizeof(int), cudaMemcpyDefault));
  EXPECT(got[4] == 4);

  int* managed = nullptr;
  CHECK(cudaMallocManaged(&managed, 4096));
  const cudaMemLocation device = {cudaMemLocationTypeDevice, 0}, host = {cudaMemLocationTypeHost, 0};
  const cudaMemLocation none = {cudaMemLocationTypeDevice, 5};
  CHECK(cudaMemAdvise(managed, 4096, cudaMemAdviseSetPreferredLocation, device));
  CHECK(cudaMemPrefetchAsync(managed, 4096, device, 0, nullptr));
  CHECK(cudaMemPrefetchAsync(managed, 4096, host, 0, nullptr));
  EXPECT(cudaMemPrefetchAsync(managed, 4096, none, 0, nullptr) == cudaErrorInvalidDevice);
  EXPECT(cudaMemPrefetchAsync(rows, 16, device, 0, nullptr) == cudaErrorInvalidValue);
  CHECK(cudaFree(managed));
  CHECK(cudaFree(rows));
  CHECK(cudaFree(p.ptr));
}
