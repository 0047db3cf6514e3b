// The driver API beside modules: devices, contexts, memory of one, two and three dimensions, pools, streams, occupancy,
// graphs.
// nvcc: -lcuda
#include <cuda.h>

#include <cstring>
#include <vector>

#include "check.h"

#define DRIVER(call) EXPECT((call) == CUDA_SUCCESS)

__global__ void add(int* p, int value) { p[threadIdx.x] += value; }

void called(void* data) { ++*static_cast<int*>(data); }

int main() {
  DRIVER(cuInit(0));
  CUdevice device;
  int value = 0, minor = 0, count = 0;
  char name[64];
  size_t bytes = 0;
  DRIVER(cuDeviceGetCount(&count));
  EXPECT(count == 1);
  DRIVER(cuDeviceGet(&device, 0));
  EXPECT(cuDeviceGet(&device, 1) == CUDA_ERROR_INVALID_DEVICE);
  DRIVER(cuDeviceGetName(name, sizeof name, device));
  EXPECT(std::strstr(name, "B200") != nullptr);
  DRIVER(cuDeviceTotalMem(&bytes, device));
  EXPECT(bytes > size_t{1} << 37);
  DRIVER(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
  EXPECT(value == 148);
  DRIVER(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, device));
  EXPECT(value == 1);
  for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; ++i) {
    DRIVER(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(i), device));
  }
  EXPECT(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(100000), device) == CUDA_ERROR_INVALID_VALUE);
  DRIVER(cuDeviceComputeCapability(&value, &minor, device));
  EXPECT(value == 10 && minor == 0);

  CUcontext primary, own, now;
  unsigned flags = 7;
  int active = -1;
  EXPECT(cuDevicePrimaryCtxRelease(device) == CUDA_ERROR_INVALID_CONTEXT);
  DRIVER(cuDevicePrimaryCtxRetain(&primary, device));
  DRIVER(cuDevicePrimaryCtxGetState(device, &flags, &active));
  EXPECT(flags == 0 && active == 1);
  DRIVER(cuCtxSetCurrent(primary));
  DRIVER(cuCtxCreate(&own, nullptr, 0, device));
  DRIVER(cuCtxGetCurrent(&now));
  EXPECT(now == own && own != primary);
  DRIVER(cuCtxPopCurrent(&now));
  EXPECT(now == own);
  DRIVER(cuCtxGetCurrent(&now));
  EXPECT(now == primary);
  DRIVER(cuCtxPushCurrent(own));
  DRIVER(cuCtxDestroy(own));
  EXPECT(cuCtxDestroy(own) == CUDA_ERROR_INVALID_CONTEXT);
  DRIVER(cuCtxGetDevice(&device));
  unsigned version = 0;
  DRIVER(cuCtxGetApiVersion(primary, &version));
  EXPECT(version >= 3020);

  CUdeviceptr p, rows, base;
  std::vector<int> host(64, 5), got(64, -1);
  size_t pitch = 0;
  DRIVER(cuMemAlloc(&p, 64 * sizeof(int)));
  EXPECT(cuMemAlloc(&rows, 0) == CUDA_ERROR_INVALID_VALUE);
  DRIVER(cuMemcpyHtoD(p, host.data(), 64 * sizeof(int)));
  DRIVER(cuMemsetD16(p, 0x0102, 4));
  DRIVER(cuMemsetD8Async(p + 8, 9, 4, nullptr));
  DRIVER(cuMemcpyDtoHAsync(got.data(), p, 64 * sizeof(int), nullptr));
  EXPECT(got[0] == 0x01020102 && got[2] == 0x09090909 && got[3] == 5);
  EXPECT(cuMemsetD32(p + 2, 1, 1) == CUDA_ERROR_INVALID_VALUE);
  DRIVER(cuMemGetAddressRange(&base, &bytes, p + 20));
  EXPECT(base == p && bytes == 64 * sizeof(int));
  DRIVER(cuMemAllocPitch(&rows, &pitch, 24, 4, 4));
  EXPECT(cuMemAllocPitch(&rows, &pitch, 24, 4, 3) == CUDA_ERROR_INVALID_VALUE);
  DRIVER(cuMemsetD2D32(rows, pitch, 3, 6, 4));
  CUDA_MEMCPY2D two{};
  two.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  two.srcDevice = rows;
  two.srcPitch = pitch;
  two.srcXInBytes = 4;
  two.srcY = 1;
  two.dstMemoryType = CU_MEMORYTYPE_HOST;
  two.dstHost = got.data();
  two.dstPitch = 16;
  two.WidthInBytes = 16;
  two.Height = 2;
  got.assign(64, -1);
  DRIVER(cuMemcpy2D(&two));
  EXPECT(got[0] == 3 && got[7] == 3 && got[8] == -1);
  CUDA_MEMCPY3D three{};
  three.srcMemoryType = CU_MEMORYTYPE_HOST;
  three.srcHost = host.data();
  three.srcPitch = 8;
  three.srcHeight = 2;
  three.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  three.dstDevice = p;
  three.dstPitch = 16;
  three.dstHeight = 4;
  three.dstZ = 1;
  three.WidthInBytes = 8;
  three.Height = 2;
  three.Depth = 2;
  DRIVER(cuMemsetD32(p, 0, 64));
  DRIVER(cuMemcpy3D(&three));
  DRIVER(cuMemcpyDtoH(got.data(), p, 64 * sizeof(int)));
  EXPECT(got[0] == 0 && got[16] == 5 && got[17] == 5 && got[18] == 0 && got[20] == 5 && got[24] == 0 && got[32] == 5);
  CUmemorytype type;
  DRIVER(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
  EXPECT(type == CU_MEMORYTYPE_DEVICE);
  EXPECT(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 64) == CUDA_ERROR_INVALID_VALUE);
  DRIVER(cuMemHostRegister(host.data(), 64 * sizeof(int), CU_MEMHOSTREGISTER_DEVICEMAP));
  DRIVER(cuMemHostGetDevicePointer(&base, host.data(), 0));
  DRIVER(cuMemHostUnregister(host.data()));

  CUmemoryPool pool;
  DRIVER(cuDeviceGetDefaultMemPool(&pool, device));
  cuuint64_t keep = 1 << 20;
  DRIVER(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
  CUstream stream;
  DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  DRIVER(cuMemAllocAsync(&base, 256, stream));
  DRIVER(cuMemFreeAsync(base, stream));
  int calls = 0;
  DRIVER(cuLaunchHostFunc(stream, called, &calls));
  EXPECT(calls == 1);

  cudaFunction_t function;
  CHECK(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(&add)));
  const auto kernel = reinterpret_cast<CUfunction>(function);
  const char* text = nullptr;
  DRIVER(cuFuncGetName(&text, kernel));
  EXPECT(std::strstr(text, "add") != nullptr);
  size_t offset = 0;
  DRIVER(cuFuncGetParamInfo(kernel, 1, &offset, &bytes));
  EXPECT(offset == 8 && bytes == 4);
  DRIVER(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100 * 1024));
  DRIVER(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel));
  EXPECT(value == 100 * 1024);
  EXPECT(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 300 * 1024) ==
         CUDA_ERROR_INVALID_VALUE);
  CUlibrary library;
  EXPECT(cuLibraryLoadFromFile(&library, "/no/such/file", nullptr, nullptr, 0, nullptr, nullptr, 0) ==
         CUDA_ERROR_FILE_NOT_FOUND);
  DRIVER(cuGetErrorString(CUDA_ERROR_FILE_NOT_FOUND, &text));
  EXPECT(std::strcmp(text, "file not found") == 0);
  int of_driver = 0, of_runtime = 0;
  CHECK(cudaDriverGetVersion(&of_driver));
  CHECK(cudaRuntimeGetVersion(&of_runtime));
  EXPECT(of_runtime == CUDART_VERSION && of_driver > 13010);  // CUTLASS works around older ones
  int grid = 0, block = 0, blocks = 0;
  DRIVER(cuOccupancyMaxPotentialBlockSize(&grid, &block, kernel, nullptr, 0, 0));
  EXPECT(block == 1024 && grid == 296);
  DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 64, 0));
  EXPECT(blocks == 32);
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.blockDimX = 64;
  DRIVER(cuOccupancyMaxPotentialClusterSize(&value, kernel, &config));
  EXPECT(value == 8);

  // Two launches, captured, and a node added to what they became.
  int one = 1, two_more = 2;
  void* arguments[] = {&p, &one};
  CUgraph graph;
  CUgraphExec exec;
  DRIVER(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  DRIVER(cuMemsetD32Async(p, 0, 64, stream));
  DRIVER(cuLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, stream, arguments, nullptr));
  config.hStream = stream;
  DRIVER(cuLaunchKernelEx(&config, kernel, arguments, nullptr));
  DRIVER(cuStreamEndCapture(stream, &graph));
  DRIVER(cuGraphGetNodes(graph, nullptr, &bytes));
  EXPECT(bytes == 3);
  CUgraphNode nodes[3], more;
  DRIVER(cuGraphGetNodes(graph, nodes, &bytes));
  CUDA_KERNEL_NODE_PARAMS node{};
  void* more_arguments[] = {&p, &two_more};
  node.func = kernel;
  node.gridDimX = node.gridDimY = node.gridDimZ = node.blockDimY = node.blockDimZ = 1;
  node.blockDimX = 64;
  node.kernelParams = more_arguments;
  DRIVER(cuGraphAddKernelNode(&more, graph, &nodes[2], 1, &node));
  DRIVER(cuGraphInstantiate(&exec, graph, 0));
  DRIVER(cuGraphLaunch(exec, stream));
  DRIVER(cuStreamSynchronize(stream));
  DRIVER(cuMemcpyDtoH(got.data(), p, 64 * sizeof(int)));
  EXPECT(got[0] == 4 && got[63] == 4);
  DRIVER(cuGraphExecDestroy(exec));
  DRIVER(cuGraphDestroy(graph));
  DRIVER(cuLaunchCooperativeKernel(kernel, 1, 1, 1, 64, 1, 1, 0, stream, arguments));
  DRIVER(cuStreamDestroy(stream));
  EXPECT(cuStreamSynchronize(stream) == CUDA_ERROR_INVALID_HANDLE);
  EXPECT(cudaGetLastError() == cudaSuccess);  // the runtime knows nothing of the driver's errors
  DRIVER(cuMemFree(rows));
  DRIVER(cuMemFree(p));
  DRIVER(cuDevicePrimaryCtxRelease(device));
}
