// Streams and the device: functions of the host in a stream, priorities, attributes, limits, what a reset ends.
#include <cstring>
#include <thread>

#include "check.h"

__global__ void increment(int* p) { ++*p; }

struct Seen {
  int* device;
  int value = -1, calls = 0;
};

void read(void* data) {
  auto* const seen = static_cast<Seen*>(data);
  ++seen->calls;
  // A function of a stream may let another thread use the API.
  std::thread([&] { cudaMemcpy(&seen->value, seen->device, sizeof(int), cudaMemcpyDeviceToHost); }).join();
}
void CUDART_CB callback(cudaStream_t, cudaError_t status, void* data) {
  if (status == cudaSuccess) read(data);
}

int main() {
  Seen seen{};
  CHECK(cudaMalloc(&seen.device, sizeof(int)));
  int least = 1, greatest = 1, priority = 1;
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  EXPECT(least == 0 && greatest < 0);
  cudaStream_t stream, other;
  CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest - 10));
  CHECK(cudaStreamGetPriority(stream, &priority));
  EXPECT(priority == greatest);
  unsigned flags = 0;
  CHECK(cudaStreamGetFlags(stream, &flags));
  EXPECT(flags == cudaStreamNonBlocking);
  CHECK(cudaMemsetAsync(seen.device, 0, sizeof(int), stream));
  increment<<<1, 1, 0, stream>>>(seen.device);
  CHECK(cudaLaunchHostFunc(stream, read, &seen));
  CHECK(cudaStreamSynchronize(stream));
  EXPECT(seen.value == 1 && seen.calls == 1);
  increment<<<1, 1, 0, stream>>>(seen.device);
  CHECK(cudaStreamAddCallback(stream, callback, &seen, 0));
  CHECK(cudaStreamSynchronize(stream));
  EXPECT(seen.value == 2 && seen.calls == 2);
  EXPECT(cudaStreamAddCallback(stream, callback, &seen, 1) == cudaErrorInvalidValue);
  EXPECT(cudaLaunchHostFunc(stream, nullptr, nullptr) == cudaErrorInvalidValue);

  cudaEvent_t event;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CHECK(cudaStreamCreate(&other));
  CHECK(cudaEventRecord(event, stream));
  CHECK(cudaStreamWaitEvent(other, event, 0));
  CHECK(cudaStreamSynchronize(other));
  CHECK(cudaStreamQuery(other));
  cudaStreamAttrValue value{}, got{};
  value.syncPolicy = cudaSyncPolicyYield;
  CHECK(cudaStreamSetAttribute(stream, cudaStreamAttributeSynchronizationPolicy, &value));
  CHECK(cudaStreamCopyAttributes(other, stream));
  CHECK(cudaStreamGetAttribute(other, cudaStreamAttributeSynchronizationPolicy, &got));
  EXPECT(got.syncPolicy == cudaSyncPolicyYield);
  unsigned long long a = 0, b = 0;
  CHECK(cudaStreamGetId(stream, &a));
  CHECK(cudaStreamGetId(other, &b));
  EXPECT(a != b);
  int device = -1;
  CHECK(cudaStreamGetDevice(other, &device));
  EXPECT(device == 0);
  CHECK(cudaStreamDestroy(other));

  size_t limit = 0;
  CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 << 20));
  CHECK(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize));
  EXPECT(limit == 64 << 20);
  EXPECT(cudaDeviceGetLimit(&limit, static_cast<cudaLimit>(77)) == cudaErrorInvalidValue);
  char bus[32];
  CHECK(cudaDeviceGetPCIBusId(bus, sizeof bus, 0));
  CHECK(cudaDeviceGetByPCIBusId(&device, bus));
  EXPECT(device == 0 && std::strlen(bus) == 12);
  EXPECT(cudaDeviceGetPCIBusId(bus, 3, 0) == cudaErrorInvalidValue);
  cudaDeviceProp properties{};
  CHECK(cudaChooseDevice(&device, &properties));
  EXPECT(cudaSetValidDevices(&device, 1) == cudaSuccess);

  CHECK(cudaDeviceReset());
  cudaGetLastError();
  CHECK(cudaMalloc(&seen.device, sizeof(int)));
  CHECK(cudaMemset(seen.device, 0, sizeof(int)));
  increment<<<1, 1>>>(seen.device);
  CHECK(cudaMemcpy(&seen.value, seen.device, sizeof(int), cudaMemcpyDeviceToHost));
  EXPECT(seen.value == 1);
}
