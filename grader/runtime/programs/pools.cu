// Memory pools: stream-ordered allocations, what a pool counts, pools of one's own.
#include "check.h"

__global__ void fill(int* p, int value) { p[threadIdx.x] = value; }

unsigned long long attribute(cudaMemPool_t pool, cudaMemPoolAttr which) {
  unsigned long long value = 0;
  CHECK(cudaMemPoolGetAttribute(pool, which, &value));
  return value;
}

int main() {
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  cudaMemPool_t standard, current, own;
  CHECK(cudaDeviceGetDefaultMemPool(&standard, 0));
  CHECK(cudaDeviceGetMemPool(&current, 0));
  EXPECT(standard == current);
  unsigned long long threshold = ~0ull;
  CHECK(cudaMemPoolSetAttribute(standard, cudaMemPoolAttrReleaseThreshold, &threshold));
  EXPECT(attribute(standard, cudaMemPoolAttrReleaseThreshold) == threshold);
  int *p = nullptr, *q = nullptr, got[32];
  CHECK(cudaMallocAsync(&p, 1 << 20, stream));
  fill<<<1, 32, 0, stream>>>(p, 7);
  CHECK(cudaMemcpyAsync(got, p, sizeof got, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  EXPECT(got[31] == 7 && attribute(standard, cudaMemPoolAttrUsedMemCurrent) == 1 << 20);
  CHECK(cudaFreeAsync(p, stream));
  CHECK(cudaStreamSynchronize(stream));
  EXPECT(attribute(standard, cudaMemPoolAttrUsedMemCurrent) == 0);
  EXPECT(attribute(standard, cudaMemPoolAttrUsedMemHigh) == 1 << 20);
  EXPECT(attribute(standard, cudaMemPoolAttrReservedMemCurrent) >= 1 << 20);
  CHECK(cudaMemPoolTrimTo(standard, 0));
  EXPECT(attribute(standard, cudaMemPoolAttrReservedMemCurrent) == 0);
  unsigned long long mark = 0;
  CHECK(cudaMemPoolSetAttribute(standard, cudaMemPoolAttrUsedMemHigh, &mark));
  EXPECT(attribute(standard, cudaMemPoolAttrUsedMemHigh) == 0);
  mark = 1;
  EXPECT(cudaMemPoolSetAttribute(standard, cudaMemPoolAttrUsedMemHigh, &mark) == cudaErrorInvalidValue);
  int reuse = -1;
  CHECK(cudaMemPoolGetAttribute(standard, cudaMemPoolReuseAllowOpportunistic, &reuse));
  EXPECT(reuse == 1);

  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = 7;
  EXPECT(cudaMemPoolCreate(&own, &properties) == cudaErrorInvalidValue);
  properties.location.id = 0;
  properties.maxSize = 1 << 20;
  CHECK(cudaMemPoolCreate(&own, &properties));
  CHECK(cudaMallocFromPoolAsync(&p, 4096, own, stream));
  EXPECT(attribute(own, cudaMemPoolAttrUsedMemCurrent) == 4096);
  EXPECT(cudaMallocFromPoolAsync(&q, size_t{1} << 32, own, stream) == cudaErrorMemoryAllocation);
  CHECK(cudaDeviceSetMemPool(0, own));
  CHECK(cudaMallocAsync(&q, 4096, stream));
  EXPECT(attribute(own, cudaMemPoolAttrUsedMemCurrent) == 8192);
  fill<<<1, 32, 0, stream>>>(q, 9);
  CHECK(cudaFree(q));
  cudaMemAccessFlags access{};
  CHECK(cudaMemPoolGetAccess(&access, own, &properties.location));
  EXPECT(access == cudaMemAccessFlagsProtReadWrite);
  CHECK(cudaMemPoolDestroy(own));
  CHECK(cudaDeviceGetMemPool(&current, 0));
  EXPECT(current == standard);
  CHECK(cudaFreeAsync(p, stream));  // outlives its pool
  EXPECT(cudaMemPoolDestroy(standard) == cudaErrorInvalidValue);
  CHECK(cudaFreeAsync(nullptr, stream));
  EXPECT(cudaDeviceGetDefaultMemPool(&standard, 3) == cudaErrorInvalidDevice);
  CHECK(cudaStreamDestroy(stream));
}
