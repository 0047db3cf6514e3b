// What calls and launches answer that cannot succeed. It prints each answer; errors.txt is what an H200 answered
// (driver 580.159.04, 2026-11-30), so that the emulator is an H200 here.
// nvcc: -gencode arch=compute_90a,code=compute_90a
// stderr: cudaFree failed: cudaErrorInvalidValue (invalid argument)
// stderr: was freed
#include "check.h"

__global__ void nothing() {}
__global__ void __launch_bounds__(64) bounded() {}
__global__ void __launch_bounds__(64) __cluster_dims__(2) paired() {}
__device__ int variable;

void say(const char* what, cudaError_t error) {
  const cudaError_t last = cudaGetLastError(), then = cudaGetLastError();
  std::printf("%s: %s (%s); last %d, then %d\n", what, cudaGetErrorName(error), cudaGetErrorString(error), last, then);
}
template <class Launch>
void say_launch(const char* what, Launch launch) {
  launch();
  say(what, cudaPeekAtLastError());
}
void cluster(const char* what, unsigned grid, unsigned size) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = size;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(grid);
  config.blockDim = dim3(32);
  config.attrs = &attribute;
  config.numAttrs = 1;
  say(what, cudaLaunchKernelEx(&config, nothing));
}

int main() {
  char *p = nullptr, *q = nullptr, host[64];
  say("cudaMalloc", cudaMalloc(&p, 256));
  say("cudaMalloc of 0 bytes", cudaMalloc(&q, 0));
  say("cudaMalloc of too much", cudaMalloc(&q, size_t{1} << 50));
  say("cudaMalloc without a place", cudaMalloc(static_cast<void**>(nullptr), 256));
  say("copy", cudaMemcpy(p, host, sizeof host, cudaMemcpyHostToDevice));
  say("copy of no bytes", cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice));
  say("copy to null", cudaMemcpy(nullptr, host, 16, cudaMemcpyHostToDevice));
  say("copy, default", cudaMemcpy(p, host, sizeof host, cudaMemcpyDefault));
  say("copy, no such direction", cudaMemcpy(p, host, sizeof host, static_cast<cudaMemcpyKind>(9)));
  say("memset", cudaMemset(p, 1, 256));
  say("memset of host memory", cudaMemset(host, 1, 16));
  say("memset 2D, rows longer than the pitch", cudaMemset2D(p, 8, 1, 16, 2));
  say("free of the middle", cudaFree(p + 16));
  say("free of host memory", cudaFree(host));
  say("free of null", cudaFree(nullptr));
  say("free", cudaFree(p));
  say("free again", cudaFree(p));
  say("free of page-locked memory that is none", cudaFreeHost(host));
  say("device 7", cudaSetDevice(7));
  cudaDeviceProp properties;
  say("properties of device 7", cudaGetDeviceProperties(&properties, 7));
  int value = 0;
  say("attribute", cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0));
  say("no such attribute", cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(100000), 0));
  say("attribute of device 7", cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 7));
  say("a symbol that is none", cudaMemcpyToSymbol(&value, &value, 4));
  say("a symbol's bytes beyond its end", cudaMemcpyToSymbol(variable, &value, 4, 4));
  say("a symbol, wrong direction", cudaMemcpyToSymbol(variable, &value, 4, 0, cudaMemcpyDeviceToHost));
  say_launch("launch", [] { nothing<<<1, 32>>>(); });
  say_launch("no blocks", [] { nothing<<<0, 32>>>(); });
  say_launch("no threads", [] { nothing<<<1, 0>>>(); });
  say_launch("2048 threads", [] { nothing<<<1, 2048>>>(); });
  say_launch("128 layers of threads", [] { nothing<<<1, dim3(1, 1, 128)>>>(); });
  say_launch("a grid too high", [] { nothing<<<dim3(1, 70000), 32>>>(); });
  say_launch("more than the launch bounds", [] { bounded<<<1, 128>>>(); });
  say_launch("60000 bytes of shared memory", [] { nothing<<<1, 32, 60000>>>(); });
  say_launch("300000 bytes of shared memory", [] { nothing<<<1, 32, 300000>>>(); });
  say_launch("a grid that is no multiple of its cluster", [] { paired<<<3, 32>>>(); });
  say("as much shared memory as there is",
      cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 * 1024));
  say("more than that", cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 * 1024 + 1));
  say("less than none", cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, -1));
  say("no such function attribute", cudaFuncSetAttribute(nothing, static_cast<cudaFuncAttribute>(99), 1));
  say("an attribute of no kernel", cudaFuncSetAttribute(main, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024));
  say_launch("60000 bytes, allowed", [] { nothing<<<1, 32, 60000>>>(); });
  cluster("cluster of 8", 16, 8);
  cluster("cluster of 16", 16, 16);
  cluster("cluster of 32", 32, 32);
  cluster("cluster of 4 in a grid of 6", 6, 4);
  cluster("cluster of 0", 4, 0);
  say("16 allowed", cudaFuncSetAttribute(nothing, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  cluster("cluster of 16, allowed", 16, 16);
  void* no_arguments[1] = {nullptr};
  say("launch of no kernel",
      cudaLaunchKernel(reinterpret_cast<const void*>(&value), dim3(1), dim3(1), no_arguments, 0, nullptr));
  say("cooperative", cudaLaunchCooperativeKernel(nothing, dim3(4), dim3(32), no_arguments, 0, nullptr));
  say("cooperative, too large",
      cudaLaunchCooperativeKernel(nothing, dim3(100000), dim3(1024), no_arguments, 0, nullptr));
  say("stream", cudaStreamSynchronize(nullptr));
  cudaEvent_t event;
  say("event", cudaEventCreate(&event));
  float ms = 0;
  say("time of events that were not recorded", cudaEventElapsedTime(&ms, event, event));
  say("query of an event that was not recorded", cudaEventQuery(event));
  cudaPointerAttributes attributes;
  say("attributes of a pointer of the host", cudaPointerGetAttributes(&attributes, host));
  std::printf("type %d, device %d, for the device %d, for the host %d\n", attributes.type, attributes.device,
              attributes.devicePointer == host, attributes.hostPointer == host);
  CHECK(cudaMalloc(&p, 256));
  say("attributes of a pointer of the device", cudaPointerGetAttributes(&attributes, p + 8));
  std::printf("type %d, device %d, for the device %d, for the host %d\n", attributes.type, attributes.device,
              attributes.devicePointer == p + 8, attributes.hostPointer == p + 8);
  cudaFuncAttributes function;
  say("attributes of a kernel", cudaFuncGetAttributes(&function, bounded));
  std::printf("threads %d, shared %d, dynamic %d, carveout %d, cluster %d\n", function.maxThreadsPerBlock,
              static_cast<int>(function.sharedSizeBytes), function.maxDynamicSharedSizeBytes,
              function.preferredShmemCarveout, function.clusterDimMustBeSet);
  say("attributes of a kernel with a cluster", cudaFuncGetAttributes(&function, paired));
  std::printf("threads %d, cluster %d: %d %d %d\n", function.maxThreadsPerBlock, function.clusterDimMustBeSet,
              function.requiredClusterWidth, function.requiredClusterHeight, function.requiredClusterDepth);
  say("end", cudaDeviceSynchronize());
}
