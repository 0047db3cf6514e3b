#include "grader/device/cuda_driver.h"

#include <dlfcn.h>

#include <string>

namespace handoff::device::driver {
namespace {

template <class F>
void bind_optional(void* library, const char* symbol, F** function) {
  *function = reinterpret_cast<F*>(dlsym(library, symbol));
}

// Binds one function; appends the symbol to `missing` where the library does not have it.
template <class F>
void bind(void* library, const char* symbol, F** function, std::string* missing) {
  bind_optional(library, symbol, function);
  if (*function == nullptr) *missing += (missing->empty() ? "" : ", ") + std::string(symbol);
}

}  // namespace

bool open(const char* library, Api* api, std::string* why) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* detail = dlerror();
    const std::string reason = detail == nullptr ? "" : detail;
    *why = "no GPU: " + std::string(library);
    // dlopen words "no such file" and "there, but broken" alike; only the second is worth its text.
    if (reason.empty() || reason.find("No such file") != std::string::npos) {
      *why += " was not found (the NVIDIA driver provides it)";
    } else {
      *why += " could not be opened: " + reason;
    }
    return false;
  }
  std::string missing;
  bind(handle, "cuInit", &api->Init, &missing);
  bind(handle, "cuDriverGetVersion", &api->DriverGetVersion, &missing);
  bind(handle, "cuGetErrorName", &api->GetErrorName, &missing);
  bind(handle, "cuGetErrorString", &api->GetErrorString, &missing);
  bind(handle, "cuDeviceGet", &api->DeviceGet, &missing);
  bind(handle, "cuDeviceGetCount", &api->DeviceGetCount, &missing);
  bind(handle, "cuDeviceGetName", &api->DeviceGetName, &missing);
  bind(handle, "cuDeviceGetAttribute", &api->DeviceGetAttribute, &missing);
  bind(handle, "cuDevicePrimaryCtxSetFlags_v2", &api->DevicePrimaryCtxSetFlags, &missing);
  bind(handle, "cuDevicePrimaryCtxRetain", &api->DevicePrimaryCtxRetain, &missing);
  bind(handle, "cuCtxSetCurrent", &api->CtxSetCurrent, &missing);
  bind(handle, "cuCtxSynchronize", &api->CtxSynchronize, &missing);
  bind(handle, "cuModuleLoadDataEx", &api->ModuleLoadDataEx, &missing);
  bind(handle, "cuModuleUnload", &api->ModuleUnload, &missing);
  bind(handle, "cuModuleGetFunction", &api->ModuleGetFunction, &missing);
  bind(handle, "cuModuleGetGlobal_v2", &api->ModuleGetGlobal, &missing);
  bind(handle, "cuFuncGetAttribute", &api->FuncGetAttribute, &missing);
  bind(handle, "cuFuncSetAttribute", &api->FuncSetAttribute, &missing);
  bind(handle, "cuMemAlloc_v2", &api->MemAlloc, &missing);
  bind(handle, "cuMemFree_v2", &api->MemFree, &missing);
  bind(handle, "cuMemsetD8_v2", &api->MemsetD8, &missing);
  bind(handle, "cuMemcpyHtoD_v2", &api->MemcpyHtoD, &missing);
  bind(handle, "cuMemcpyDtoH_v2", &api->MemcpyDtoH, &missing);
  bind(handle, "cuMemcpyDtoDAsync_v2", &api->MemcpyDtoDAsync, &missing);
  bind(handle, "cuOccupancyMaxActiveBlocksPerMultiprocessor", &api->OccupancyMaxActiveBlocksPerMultiprocessor,
       &missing);
  bind(handle, "cuLaunchKernelEx", &api->LaunchKernelEx, &missing);
  bind(handle, "cuEventCreate", &api->EventCreate, &missing);
  bind(handle, "cuEventRecord", &api->EventRecord, &missing);
  // cuEventElapsedTime_v2 (CUDA 12.8) has the same signature; the first version is in every driver.
  bind(handle, "cuEventElapsedTime", &api->EventElapsedTime, &missing);
  bind(handle, "cuEventDestroy_v2", &api->EventDestroy, &missing);
  bind_optional(handle, "cuFuncGetParamInfo", &api->FuncGetParamInfo);              // CUDA 12.4
  bind_optional(handle, "cuModuleGetFunctionCount", &api->ModuleGetFunctionCount);  // CUDA 12.4
  bind_optional(handle, "cuModuleEnumerateFunctions", &api->ModuleEnumerateFunctions);
  bind_optional(handle, "cuFuncGetName", &api->FuncGetName);                    // CUDA 12.3
  bind_optional(handle, "cuTensorMapEncodeTiled", &api->TensorMapEncodeTiled);  // CUDA 12.0
  if (!missing.empty()) {
    *why = "no GPU: " + std::string(library) + " is too old: it lacks " + missing + " (update the NVIDIA driver)";
    return false;
  }
  return true;
}

std::string Api::describe(Result error) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (GetErrorName(error, &name) != kSuccess || name == nullptr) return "CUDA error " + std::to_string(error);
  if (GetErrorString(error, &text) != kSuccess || text == nullptr) return name;
  return std::string(name) + " (" + text + ")";
}

}  // namespace handoff::device::driver
