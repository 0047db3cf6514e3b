// Streams, events, memory in stream order, rows with a pitch.
// stdout: the launch took modeled time
#include <vector>

#include "check.h"

__global__ void saxpy(int n, float a, const float* x, float* y) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = a * x[i] + y[i];
}

int main() {
  constexpr int kN = 5000;
  std::vector<float> x(kN), y(kN, 1.0f);
  for (int i = 0; i < kN; ++i) x[i] = static_cast<float>(i);
  cudaStream_t stream;
  cudaEvent_t begin, end, never;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  CHECK(cudaEventCreate(&never));
  float *dx, *dy, *rows;
  CHECK(cudaMallocAsync(&dx, kN * sizeof(float), stream));
  CHECK(cudaMallocAsync(&dy, kN * sizeof(float), stream));
  CHECK(cudaMemcpyAsync(dx, x.data(), kN * sizeof(float), cudaMemcpyHostToDevice, stream));
  CHECK(cudaMemcpyAsync(dy, y.data(), kN * sizeof(float), cudaMemcpyHostToDevice, stream));
  CHECK(cudaEventRecord(begin, stream));
  saxpy<<<8, 128, 0, stream>>>(kN, 2.0f, dx, dy);
  CHECK(cudaEventRecord(end, stream));
  CHECK(cudaStreamWaitEvent(stream, end, 0));
  CHECK(cudaEventSynchronize(end));
  float ms = -1;
  CHECK(cudaEventElapsedTime(&ms, begin, end));
  EXPECT(ms > 0);
  EXPECT(cudaEventElapsedTime(&ms, begin, never) == cudaErrorInvalidResourceHandle);
  EXPECT(cudaGetLastError() == cudaErrorInvalidResourceHandle);
  CHECK(cudaMemcpyAsync(y.data(), dy, kN * sizeof(float), cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaStreamQuery(stream));
  for (int i = 0; i < kN; ++i) EXPECT(y[i] == 2.0f * static_cast<float>(i) + 1.0f);
  std::printf("the launch took modeled time\n");

  size_t pitch = 0;
  CHECK(cudaMallocPitch(&rows, &pitch, 100 * sizeof(float), 10));
  EXPECT(pitch % 512 == 0 && pitch >= 400);
  CHECK(cudaMemset2D(rows, pitch, 0, 400, 10));
  CHECK(cudaMemcpy2D(rows, pitch, x.data(), 400, 400, 10, cudaMemcpyHostToDevice));
  std::vector<float> back(1000);
  CHECK(cudaMemcpy2D(back.data(), 400, rows, pitch, 400, 10, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 1000; ++i) EXPECT(back[i] == x[i]);

  CHECK(cudaFreeAsync(dx, stream));
  CHECK(cudaFreeAsync(dy, stream));
  CHECK(cudaFree(rows));
  CHECK(cudaEventDestroy(begin));
  CHECK(cudaEventDestroy(end));
  CHECK(cudaStreamDestroy(stream));
}
