// The driver API: PTX text as a module and as a library, its variables, launches with and without attributes.
// nvcc: -lcuda
#include <cuda.h>

#include <cstring>

#include "check.h"
#include "number_ptx.h"

#define DRIVER(call) EXPECT((call) == CUDA_SUCCESS)

const std::string kPtx = number_ptx("sm_100a");

int main() {
  DRIVER(cuInit(0));
  CUdevice device;
  CUcontext context;
  DRIVER(cuDeviceGet(&device, 0));
  DRIVER(cuDevicePrimaryCtxRetain(&context, device));
  DRIVER(cuCtxSetCurrent(context));
  CUmodule module;
  CUfunction function;
  DRIVER(cuModuleLoadData(&module, kPtx.c_str()));
  EXPECT(cuModuleGetFunction(&function, module, "nothing") == CUDA_ERROR_NOT_FOUND);
  DRIVER(cuModuleGetFunction(&function, module, "number"));
  CUdeviceptr out, base;
  size_t bytes = 0;
  unsigned got[32];
  DRIVER(cuMemAlloc(&out, sizeof got));
  void* arguments[] = {&out};
  DRIVER(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
  DRIVER(cuMemcpyDtoH(got, out, sizeof got));
  for (unsigned i = 0; i < 32; ++i) EXPECT(got[i] == 1000 + i);
  DRIVER(cuModuleGetGlobal(&base, &bytes, module, "base"));
  EXPECT(bytes == 4);
  DRIVER(cuMemsetD32(base, 7, 1));
  size_t size = sizeof out;
  void* packed[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &out, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.blockDimX = 32;
  DRIVER(cuLaunchKernelEx(&config, function, nullptr, packed));
  DRIVER(cuMemcpyDtoH(got, out, sizeof got));
  for (unsigned i = 0; i < 32; ++i) EXPECT(got[i] == 7 + i);

  CUlibrary library;
  CUkernel kernel;
  unsigned count = 0;
  DRIVER(cuLibraryLoadData(&library, kPtx.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  DRIVER(cuLibraryGetKernelCount(&count, library));
  EXPECT(count == 1);
  DRIVER(cuLibraryEnumerateKernels(&kernel, 1, library));
  CUfunction of_kernel;
  DRIVER(cuKernelGetFunction(&of_kernel, kernel));
  int threads = 0;
  DRIVER(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, of_kernel));
  EXPECT(threads == 1024);
  DRIVER(cuLaunchKernel(of_kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
  DRIVER(cuMemcpyDtoH(got, out, sizeof got));
  EXPECT(got[31] == 1031);
  DRIVER(cuLibraryUnload(library));

  CUmodule broken;
  EXPECT(cuModuleLoadData(&broken, ".version 8.7\n.target sm_100a\n.address_size 64\n.visible .entry {") ==
         CUDA_ERROR_INVALID_PTX);
  const char* name = nullptr;
  DRIVER(cuGetErrorName(CUDA_ERROR_INVALID_PTX, &name));
  EXPECT(std::strcmp(name, "CUDA_ERROR_INVALID_PTX") == 0);
  void* entry = nullptr;
  CUdriverProcAddressQueryResult found;
  DRIVER(cuGetProcAddress("cuMemAlloc", &entry, 13000, CU_GET_PROC_ADDRESS_DEFAULT, &found));
  EXPECT(entry != nullptr && found == CU_GET_PROC_ADDRESS_SUCCESS);
  EXPECT(cuGetProcAddress("cuNoSuchCall", &entry, 13000, CU_GET_PROC_ADDRESS_DEFAULT, &found) == CUDA_ERROR_NOT_FOUND);
  DRIVER(cuMemFree(out));
  EXPECT(cuMemFree(out) == CUDA_ERROR_INVALID_VALUE);
  DRIVER(cuModuleUnload(module));
}
