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

void page_locked() {
  static char memory[3 * 4096];
  void* device = nullptr;
  unsigned flags = 99;
  say("register", cudaHostRegister(memory, 4096, cudaHostRegisterDefault));
  say("register again", cudaHostRegister(memory, 4096, cudaHostRegisterDefault));
  say("register a part", cudaHostRegister(memory + 1024, 4096, cudaHostRegisterDefault));
  say("register nothing", cudaHostRegister(memory + 8192, 0, cudaHostRegisterDefault));
  say("register null", cudaHostRegister(nullptr, 4096, cudaHostRegisterDefault));
  say("register, no such flag", cudaHostRegister(memory + 8192, 4096, 0x40));
  say("device pointer", cudaHostGetDevicePointer(&device, memory + 8, 0));
  std::printf("the same %d\n", device == memory + 8);
  say("device pointer, flags", cudaHostGetDevicePointer(&device, memory, 1));
  say("flags", cudaHostGetFlags(&flags, memory));
  std::printf("flags %u\n", flags);
  say("free of it", cudaFreeHost(memory));
  say("unregister the middle", cudaHostUnregister(memory + 8));
  say("unregister", cudaHostUnregister(memory));
  say("unregister again", cudaHostUnregister(memory));
  say("unregister null", cudaHostUnregister(nullptr));
  say("device pointer of none", cudaHostGetDevicePointer(&device, memory, 0));
  say("flags of none", cudaHostGetFlags(&flags, memory));
  void* p = nullptr;
  say("page-locked, no such flag", cudaHostAlloc(&p, 64, 0x80));
  say("page-locked, 0 bytes", cudaHostAlloc(&p, 0, 0));
  say("page-locked", cudaHostAlloc(&p, 64, cudaHostAllocDefault));
  say("flags", cudaHostGetFlags(&flags, p));
  std::printf("flags %u\n", flags);
  say("unregister what was allocated", cudaHostUnregister(p));
  say("register what was allocated", cudaHostRegister(p, 64, 0));
  say("free", cudaFreeHost(p));
}

void rows() {
  cudaPitchedPtr p{};
  const cudaExtent extent = make_cudaExtent(20, 4, 3);
  static char host[20 * 4 * 3];
  say("3D", cudaMalloc3D(&p, extent));
  say("3D of nothing", cudaMalloc3D(&p, make_cudaExtent(0, 4, 3)));
  CHECK(cudaMalloc3D(&p, extent));
  std::printf("pitch %d, rows of %d, %d\n", static_cast<int>(p.pitch), static_cast<int>(p.xsize),
              static_cast<int>(p.ysize));
  say("3D fill", cudaMemset3D(p, 0, extent));
  say("3D fill of nothing", cudaMemset3D(p, 0, make_cudaExtent(0, 1, 1)));
  say("3D fill, too wide", cudaMemset3D(p, 0, make_cudaExtent(p.pitch + 1, 2, 1)));
  cudaMemcpy3DParms copy{};
  copy.srcPtr = p;
  copy.dstPtr = make_cudaPitchedPtr(host, 20, 20, 4);
  copy.extent = extent;
  copy.kind = cudaMemcpyDeviceToHost;
  say("3D copy", cudaMemcpy3D(&copy));
  copy.kind = static_cast<cudaMemcpyKind>(9);
  say("3D copy, no such direction", cudaMemcpy3D(&copy));
  copy.kind = cudaMemcpyDeviceToHost;
  copy.dstPtr.pitch = 10;
  say("3D copy, rows longer than the pitch", cudaMemcpy3D(&copy));
  copy.dstPtr.pitch = 20;
  copy.dstPtr.ysize = 2;
  say("3D copy, more rows than a slice has", cudaMemcpy3D(&copy));
  copy.dstPtr.ysize = 4;
  copy.srcPtr.ptr = nullptr;
  say("3D copy from null", cudaMemcpy3D(&copy));
  say("3D copy of null", cudaMemcpy3D(nullptr));
  say("2D copy, rows longer than the pitch", cudaMemcpy2D(p.ptr, 10, host, 20, 20, 2, cudaMemcpyHostToDevice));
  say("peer copy, one device", cudaMemcpyPeer(p.ptr, 0, static_cast<char*>(p.ptr) + 64, 0, 16));
  say("peer copy, no such device", cudaMemcpyPeer(p.ptr, 0, p.ptr, 99, 16));
  CHECK(cudaFree(p.ptr));
}

void pools() {
  cudaMemPool_t standard = nullptr, own = nullptr, current = nullptr;
  void* p = nullptr;
  unsigned long long value = 7;
  int reuse = 7;
  say("default pool", cudaDeviceGetDefaultMemPool(&standard, 0));
  say("default pool of device 99", cudaDeviceGetDefaultMemPool(&own, 99));
  say("its threshold", cudaMemPoolGetAttribute(standard, cudaMemPoolAttrReleaseThreshold, &value));
  say("its reuse", cudaMemPoolGetAttribute(standard, cudaMemPoolReuseAllowOpportunistic, &reuse));
  std::printf("threshold %llu, reuse %d\n", value, reuse);
  say("no such attribute", cudaMemPoolGetAttribute(standard, static_cast<cudaMemPoolAttr>(99), &value));
  say("attribute of no pool", cudaMemPoolGetAttribute(nullptr, cudaMemPoolAttrReleaseThreshold, &value));
  value = 1;
  say("set used", cudaMemPoolSetAttribute(standard, cudaMemPoolAttrUsedMemCurrent, &value));
  say("set the mark to 1", cudaMemPoolSetAttribute(standard, cudaMemPoolAttrUsedMemHigh, &value));
  say("destroy the default pool", cudaMemPoolDestroy(standard));
  say("destroy no pool", cudaMemPoolDestroy(nullptr));
  say("trim", cudaMemPoolTrimTo(standard, 0));
  cudaMemPoolProps properties{};
  say("create, no type", cudaMemPoolCreate(&own, &properties));
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = 99;
  say("create, device 99", cudaMemPoolCreate(&own, &properties));
  properties.location.id = 0;
  say("create", cudaMemPoolCreate(&own, &properties));
  say("from it", cudaMallocFromPoolAsync(&p, 1000, own, nullptr));
  CHECK(cudaDeviceSynchronize());
  say("used", cudaMemPoolGetAttribute(own, cudaMemPoolAttrUsedMemCurrent, &value));
  std::printf("used %llu\n", value);
  say("free", cudaFree(p));
  say("free again", cudaFree(p));
  say("free null in a stream", cudaFreeAsync(nullptr, nullptr));
  say("0 bytes", cudaMallocAsync(&p, 0, nullptr));
  say("too much", cudaMallocAsync(&p, size_t{1} << 50, nullptr));
  say("from no pool", cudaMallocFromPoolAsync(&p, 64, nullptr, nullptr));
  say("set current", cudaDeviceSetMemPool(0, own));
  say("destroy", cudaMemPoolDestroy(own));
  say("current", cudaDeviceGetMemPool(&current, 0));
  std::printf("the default %d\n", current == standard);
}

void CUDART_CB nothing_at_all(void*) {}
void CUDART_CB nothing_back(cudaStream_t, cudaError_t, void*) {}

void streams() {
  int least = 7, greatest = 7, priority = 7;
  size_t limit = 0;
  cudaStream_t stream;
  say("priorities", cudaDeviceGetStreamPriorityRange(&least, &greatest));
  std::printf("%d to %d\n", least, greatest);
  say("priority too high", cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest - 10));
  say("its priority", cudaStreamGetPriority(stream, &priority));
  std::printf("the highest %d\n", priority == greatest);
  cudaStream_t other;
  say("no such flag", cudaStreamCreateWithFlags(&other, 0x40));
  say("callback with flags", cudaStreamAddCallback(stream, nothing_back, nullptr, 1));
  say("callback", cudaStreamAddCallback(stream, nothing_back, nullptr, 0));
  say("no callback", cudaStreamAddCallback(stream, nullptr, nullptr, 0));
  say("host function", cudaLaunchHostFunc(stream, nothing_at_all, nullptr));
  say("no host function", cudaLaunchHostFunc(stream, nullptr, nullptr));
  cudaEvent_t event;
  CHECK(cudaEventCreate(&event));
  say("wait for an event that was not recorded", cudaStreamWaitEvent(stream, event, 0));
  say("wait for an event, no such flag", cudaStreamWaitEvent(stream, event, 0x40));
  say("event, no such flag", cudaEventCreateWithFlags(&event, 0x80));
  const cudaLimit known[] = {cudaLimitStackSize, cudaLimitPrintfFifoSize, cudaLimitMallocHeapSize};
  for (const cudaLimit which : known) {
    say("limit", cudaDeviceGetLimit(&limit, which));
    std::printf("limit %d: %d\n", which, static_cast<int>(limit));
  }
  say("no such limit", cudaDeviceGetLimit(&limit, static_cast<cudaLimit>(77)));
  say("set no such limit", cudaDeviceSetLimit(static_cast<cudaLimit>(77), 1));
  cudaStreamAttrValue value{};
  say("no such attribute", cudaStreamGetAttribute(stream, cudaLaunchAttributeClusterDimension, &value));
  int blocks = 0;
  say("occupancy of no threads", cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 0, 0));
  say("occupancy of 2048 threads", cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 2048, 0));
  std::printf("%d blocks\n", blocks);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(64);
  config.blockDim = dim3(32);
  int size = 0;
  say("largest cluster", cudaOccupancyMaxPotentialClusterSize(&size, bounded, &config));
  std::printf("%d\n", size);
  config.blockDim = dim3(2048);
  say("largest cluster of blocks that are too large", cudaOccupancyMaxPotentialClusterSize(&size, bounded, &config));
  std::printf("%d\n", size);
  say("occupancy with more shared memory than allowed",
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, bounded, 32, 100 * 1024));
  std::printf("%d blocks\n", blocks);
  CHECK(cudaFuncSetAttribute(bounded, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 * 1024));
  say("occupancy with as much as is allowed",
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, bounded, 32, 100 * 1024));
  std::printf("%d blocks\n", blocks);
  const char* name = nullptr;
  say("name", cudaFuncGetName(&name, bounded));
  std::printf("%s\n", name);
  cudaLibrary_t library;
  cudaKernel_t kernel;
  say("a library that is none", cudaLibraryLoadData(&library, "nonsense", nullptr, nullptr, 0, nullptr, nullptr, 0));
  say("a kernel of it", cudaLibraryGetKernel(&kernel, library, "nothing"));
  say("unload it", cudaLibraryUnload(library));
  const char* const broken = ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry {";
  say("a library of broken PTX", cudaLibraryLoadData(&library, broken, nullptr, nullptr, 0, nullptr, nullptr, 0));
  say("a kernel of it", cudaLibraryGetKernel(&kernel, library, "nothing"));
  say("unload it", cudaLibraryUnload(library));
  say("a library that is not there",
      cudaLibraryLoadFromFile(&library, "/no/such/file", nullptr, nullptr, 0, nullptr, nullptr, 0));
  CHECK(cudaStreamDestroy(stream));
}

void captures() {
  cudaStream_t stream, other;
  cudaGraph_t graph = nullptr;
  cudaEvent_t event, outside;
  cudaStreamCaptureStatus status;
  void* p = nullptr;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&event));
  CHECK(cudaEventCreate(&outside));
  CHECK(cudaEventRecord(outside, other));
  const auto begin = [&](cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
    const cudaError_t error = cudaStreamBeginCapture(stream, mode);
    if (error != cudaSuccess) say("begin", error);
  };
  const auto end = [&](const char* what) {
    const cudaError_t error = cudaStreamIsCapturing(stream, &status);
    std::printf("%s: status %d (%d); ", what, status, error);
    graph = nullptr;
    say("end", cudaStreamEndCapture(stream, &graph));
    if (graph != nullptr) CHECK(cudaGraphDestroy(graph));
  };
  say("capture of the legacy stream", cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal));
  say("no such mode", cudaStreamBeginCapture(stream, static_cast<cudaStreamCaptureMode>(9)));
  say("end without a beginning", cudaStreamEndCapture(stream, &graph));
  begin();
  say("begin again", cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  end("begun twice");
  begin();
  say("allocate", cudaMalloc(&p, 64));
  end("allocated");
  begin(cudaStreamCaptureModeThreadLocal);
  say("allocate", cudaMalloc(&p, 64));
  end("allocated, thread-local");
  begin(cudaStreamCaptureModeRelaxed);
  say("allocate", cudaMalloc(&p, 64));
  end("allocated, relaxed");
  begin();
  say("free", cudaFree(p));
  end("freed");
  begin();
  say("wait for the device", cudaDeviceSynchronize());
  end("waited for the device");
  begin();
  say("wait for the stream", cudaStreamSynchronize(stream));
  end("waited for the stream");
  begin();
  say("query the stream", cudaStreamQuery(stream));
  end("queried");
  begin();
  say("copy of no bytes", cudaMemcpy(p, p, 0, cudaMemcpyDefault));
  end("copied nothing");
  CHECK(cudaMalloc(&p, 64));
  begin();
  say("copy", cudaMemcpy(p, p, 16, cudaMemcpyDefault));
  end("copied");
  begin(cudaStreamCaptureModeRelaxed);
  say_launch("launch in the legacy stream", [] { nothing<<<1, 32>>>(); });
  end("launched in the legacy stream");
  begin();
  say("record", cudaEventRecord(event, stream));
  say("query the event", cudaEventQuery(event));
  end("queried the event");
  begin();
  say("wait for an event of before", cudaStreamWaitEvent(stream, outside, 0));
  end("waited for an event of before");
  begin();
  say("record", cudaEventRecord(event, stream));
  say("fork", cudaStreamWaitEvent(other, event, 0));
  say_launch("launch in the fork", [&] { nothing<<<1, 32, 0, other>>>(); });
  say("end in the fork", cudaStreamEndCapture(other, &graph));
  end("ended in the fork");
  begin();
  say("record", cudaEventRecord(event, stream));
  say("fork", cudaStreamWaitEvent(other, event, 0));
  say_launch("launch in the fork", [&] { nothing<<<1, 32, 0, other>>>(); });
  end("not joined");
  begin();
  say_launch("a launch that cannot be", [&] { nothing<<<1, 2048, 0, stream>>>(); });
  end("a launch that cannot be");
  begin();
  say("a callback", cudaStreamAddCallback(stream, nothing_back, nullptr, 0));
  end("a callback");
  begin();
  say_launch("a launch", [&] { nothing<<<1, 32, 0, stream>>>(); });
  say("destroy the stream's event", cudaEventDestroy(event));
  end("a launch");
  cudaGraph_t empty;
  cudaGraphExec_t exec;
  CHECK(cudaGraphCreate(&empty, 0));
  CHECK(cudaGraphInstantiate(&exec, empty, 0));
  begin(cudaStreamCaptureModeRelaxed);
  say("launch of a graph", cudaGraphLaunch(exec, stream));
  end("launched a graph");
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaStreamDestroy(other));
}

void graphs() {
  cudaGraph_t graph, second;
  cudaGraphNode_t a, b, node;
  cudaGraphExec_t exec = nullptr;
  say("create, flags", cudaGraphCreate(&graph, 1));
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphCreate(&second, 0));
  say("a node", cudaGraphAddEmptyNode(&a, graph, nullptr, 0));
  say("a node behind it", cudaGraphAddEmptyNode(&b, graph, &a, 1));
  say("a node behind another graph's", cudaGraphAddEmptyNode(&node, second, &a, 1));
  cudaKernelNodeParams p{};
  say("a kernel that is none", cudaGraphAddKernelNode(&node, graph, nullptr, 0, &p));
  p.func = reinterpret_cast<void*>(nothing);
  p.gridDim = dim3(1);
  p.blockDim = dim3(2048);
  say("a kernel of too many threads", cudaGraphAddKernelNode(&node, second, nullptr, 0, &p));
  p.blockDim = dim3(32);
  say("a kernel", cudaGraphAddKernelNode(&node, graph, nullptr, 0, &p));
  cudaMemsetParams fill{};
  fill.elementSize = 3;
  fill.width = fill.height = 1;
  say("a fill of 3 bytes each", cudaGraphAddMemsetNode(&node, second, nullptr, 0, &fill));
  say("a copy of null", cudaGraphAddMemcpyNode1D(&node, second, nullptr, 0, nullptr, nullptr, 4, cudaMemcpyDefault));
  say("a dependency on itself", cudaGraphAddDependencies(graph, &a, &a, nullptr, 1));
  say("a dependency that there is", cudaGraphAddDependencies(graph, &a, &b, nullptr, 1));
  say("instantiate", cudaGraphInstantiate(&exec, graph, 0));
  say("launch", cudaGraphLaunch(exec, nullptr));
  say("no such flag", cudaGraphInstantiate(&exec, graph, 0x400));
  cudaGraphExecUpdateResultInfo result{};
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  say("update", cudaGraphExecUpdate(exec, second, &result));
  std::printf("result %d\n", result.result);
  say("a circle", cudaGraphAddDependencies(graph, &b, &a, nullptr, 1));
  say("instantiate a circle", cudaGraphInstantiate(&exec, graph, 0));
  say("instantiate null", cudaGraphInstantiate(&exec, nullptr, 0));
  say("launch null", cudaGraphLaunch(nullptr, nullptr));
  say("destroy", cudaGraphDestroy(graph));
  say("destroy null", cudaGraphDestroy(nullptr));
  say("destroy no exec", cudaGraphExecDestroy(nullptr));
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
  page_locked();
  rows();
  pools();
  streams();
  captures();
  graphs();
  say("end of all", cudaDeviceSynchronize());
}
