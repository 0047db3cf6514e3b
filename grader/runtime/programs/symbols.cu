// Variables of the device: constants, initialised and not, their addresses and sizes.
#include "check.h"

__constant__ float coefficients[4] = {1, 2, 3, 4};
__device__ int counter = 5;

__global__ void evaluate(float x, float* out) {
  *out = coefficients[0] + x * (coefficients[1] + x * (coefficients[2] + x * coefficients[3]));
  atomicAdd(&counter, 1);
}

int main() {
  float *dout, got = 0;
  int count = 0;
  CHECK(cudaMalloc(&dout, sizeof(float)));
  evaluate<<<1, 1>>>(2.0f, dout);
  CHECK(cudaMemcpy(&got, dout, sizeof got, cudaMemcpyDeviceToHost));
  EXPECT(got == 49.0f);
  const float other[2] = {10, 20};
  CHECK(cudaMemcpyToSymbol(coefficients, other, sizeof other, 2 * sizeof(float)));
  evaluate<<<1, 1>>>(2.0f, dout);
  CHECK(cudaMemcpy(&got, dout, sizeof got, cudaMemcpyDeviceToHost));
  EXPECT(got == 205.0f);
  CHECK(cudaMemcpyFromSymbol(&count, counter, sizeof count));
  EXPECT(count == 7);
  void* address = nullptr;
  size_t bytes = 0;
  CHECK(cudaGetSymbolAddress(&address, counter));
  CHECK(cudaGetSymbolSize(&bytes, coefficients));
  EXPECT(bytes == 16);
  CHECK(cudaMemset(address, 0, sizeof(int)));
  CHECK(cudaMemcpyFromSymbol(&count, counter, sizeof count));
  EXPECT(count == 0);
  EXPECT(cudaMemcpyToSymbol(coefficients, other, sizeof other, 3 * sizeof(float)) == cudaErrorInvalidValue);
}
