// __managed__ variables: the host and kernels use them at one address; their initial values; copies by symbol.
#include "check.h"

__managed__ int counter = 5;
__managed__ float table[4] = {1, 2, 3, 4};
static __managed__ char large[100000];
__device__ int other = 3;

__global__ void change() {
  counter += other;
  table[1] *= 2;
  large[99999] = 7;
}

int main() {
  EXPECT(counter == 5 && table[3] == 4.0f && large[0] == 0);
  counter = 9;
  change<<<1, 1>>>();
  CHECK(cudaDeviceSynchronize());
  EXPECT(counter == 12 && table[1] == 4.0f && large[99999] == 7);
  void* address = nullptr;
  size_t bytes = 0;
  CHECK(cudaGetSymbolAddress(&address, table));
  CHECK(cudaGetSymbolSize(&bytes, table));
  EXPECT(address == table && bytes == sizeof table);
  const float two[2] = {20, 30};
  CHECK(cudaMemcpyToSymbol(table, two, sizeof two, sizeof(float)));
  EXPECT(table[1] == 20.0f && table[2] == 30.0f);
  CHECK(cudaMemset(large, 3, sizeof large));
  EXPECT(large[5] == 3);
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, &counter));
  EXPECT(attributes.type == cudaMemoryTypeManaged && attributes.devicePointer == &counter &&
         attributes.hostPointer == &counter);
  EXPECT(cudaFree(&counter) == cudaErrorInvalidValue && cudaGetLastError() == cudaErrorInvalidValue);
  counter = 1;
  change<<<1, 1>>>();
  CHECK(cudaDeviceSynchronize());
  EXPECT(counter == 4);
}
