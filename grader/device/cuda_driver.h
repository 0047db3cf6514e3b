// The part of the CUDA driver API that the GPU worker calls, declared here and bound at run time from libcuda.so.1, so
// that the grader builds where there is no toolkit and starts where there is no GPU. Types, values and exported names
// are those of cuda.h (CUDA 13.0): where cuda.h maps a function to a versioned symbol (cuMemAlloc to cuMemAlloc_v2),
// that symbol is bound. Only the worker process may use this (see cuda_worker.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace handoff::device::driver {

using Result = int;                        ///< CUresult
using DeviceHandle = int;                  ///< CUdevice
using DevicePointer = unsigned long long;  ///< CUdeviceptr (64-bit hosts)
using Context = struct CUctx_st*;          ///< CUcontext
using Module = struct CUmod_st*;           ///< CUmodule
using Function = struct CUfunc_st*;        ///< CUfunction
using Event = struct CUevent_st*;          ///< CUevent
using Stream = struct CUstream_st*;        ///< CUstream

inline constexpr Result kSuccess = 0;           ///< CUDA_SUCCESS
inline constexpr Result kNoBinaryForGpu = 209;  ///< CUDA_ERROR_NO_BINARY_FOR_GPU
inline constexpr Result kUnsupportedPtx = 222;  ///< CUDA_ERROR_UNSUPPORTED_PTX_VERSION
inline constexpr Result kNotFound = 500;        ///< CUDA_ERROR_NOT_FOUND

/// CUdevice_attribute: the value NAME is CU_DEVICE_ATTRIBUTE_NAME.
enum class DeviceAttribute : int {
  /// As in cuda.h.
  ///@{
  MaxThreadsPerBlock = 1,
  MaxBlockDimX = 2,
  MaxBlockDimY = 3,
  MaxBlockDimZ = 4,
  MaxGridDimX = 5,
  MaxGridDimY = 6,
  MaxGridDimZ = 7,
  MultiprocessorCount = 16,
  ComputeCapabilityMajor = 75,
  ComputeCapabilityMinor = 76,
  MaxSharedMemoryPerBlockOptin = 97,
  ///@}
};

/// CUfunction_attribute: the value NAME is CU_FUNC_ATTRIBUTE_NAME.
enum class FunctionAttribute : int {
  /// As in cuda.h.
  ///@{
  MaxThreadsPerBlock = 0,
  SharedSizeBytes = 1,
  NumRegs = 4,
  MaxDynamicSharedSizeBytes = 8,
  NonPortableClusterSizeAllowed = 14,
  ///@}
};

/// CUjit_option: the value NAME is CU_JIT_NAME.
enum class JitOption : int {
  /// As in cuda.h.
  ///@{
  ErrorLogBuffer = 5,
  ErrorLogBufferSizeBytes = 6,
  ///@}
};

inline constexpr unsigned kContextBlockingSync = 4;         ///< CU_CTX_SCHED_BLOCKING_SYNC
inline constexpr unsigned kEventBlockingSync = 1;           ///< CU_EVENT_BLOCKING_SYNC
inline constexpr int kLaunchAttributeClusterDimension = 4;  ///< CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION

/// CUlaunchAttributeValue: a union of 64 bytes, of which the grader needs the cluster's extents.
union LaunchAttributeValue {
  char pad[64];  ///< the size of the union
  /// Extents in blocks, for kLaunchAttributeClusterDimension.
  struct {
    /// Divisors of the grid's extents.
    ///@{
    unsigned x, y, z;
    ///@}
  } cluster_dim;
  void* alignment;  ///< other members of the union hold handles, which align it to 8 bytes
};

/// CUlaunchAttribute
struct LaunchAttribute {
  int id;                      ///< CUlaunchAttributeID
  char pad[8 - sizeof(int)];   ///< aligns the value to 8 bytes
  LaunchAttributeValue value;  ///< read as `id` says
};

/// CUlaunchConfig
struct LaunchConfig {
  /// As in cuda.h: extents in blocks and threads, dynamic shared memory in bytes, a stream and `attribute_count`
  /// attributes.
  ///@{
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned shared_bytes;
  Stream stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
  ///@}
};

/// The bound functions. Names are the API's without "cu"; the optional ones are nullptr with a driver that lacks them.
struct Api {
  /// The driver API function of this name with "cu" before it.
  ///@{
  Result (*Init)(unsigned flags) = nullptr;
  Result (*DriverGetVersion)(int* version) = nullptr;
  Result (*GetErrorName)(Result error, const char** name) = nullptr;
  Result (*GetErrorString)(Result error, const char** text) = nullptr;
  Result (*DeviceGet)(DeviceHandle* device, int ordinal) = nullptr;
  Result (*DeviceGetCount)(int* count) = nullptr;
  Result (*DeviceGetName)(char* name, int length, DeviceHandle device) = nullptr;
  Result (*DeviceGetAttribute)(int* value, DeviceAttribute attribute, DeviceHandle device) = nullptr;
  Result (*DevicePrimaryCtxSetFlags)(DeviceHandle device, unsigned flags) = nullptr;
  Result (*DevicePrimaryCtxRetain)(Context* context, DeviceHandle device) = nullptr;
  Result (*CtxSetCurrent)(Context context) = nullptr;
  Result (*CtxSynchronize)() = nullptr;
  Result (*ModuleLoadDataEx)(Module* module, const void* image, unsigned count, JitOption* options,
                             void** values) = nullptr;
  Result (*ModuleUnload)(Module module) = nullptr;
  Result (*ModuleGetFunction)(Function* function, Module module, const char* name) = nullptr;
  Result (*ModuleGetGlobal)(DevicePointer* pointer, size_t* bytes, Module module, const char* name) = nullptr;
  Result (*FuncGetAttribute)(int* value, FunctionAttribute attribute, Function function) = nullptr;
  Result (*FuncSetAttribute)(Function function, FunctionAttribute attribute, int value) = nullptr;
  Result (*MemAlloc)(DevicePointer* pointer, size_t bytes) = nullptr;
  Result (*MemFree)(DevicePointer pointer) = nullptr;
  Result (*MemsetD8)(DevicePointer pointer, unsigned char value, size_t count) = nullptr;
  Result (*MemcpyHtoD)(DevicePointer destination, const void* source, size_t bytes) = nullptr;
  Result (*MemcpyDtoH)(void* destination, DevicePointer source, size_t bytes) = nullptr;
  Result (*MemcpyDtoDAsync)(DevicePointer destination, DevicePointer source, size_t bytes, Stream stream) = nullptr;
  Result (*OccupancyMaxActiveBlocksPerMultiprocessor)(int* blocks, Function function, int block_threads,
                                                      size_t dynamic_shared) = nullptr;
  Result (*LaunchKernelEx)(const LaunchConfig* config, Function function, void** parameters, void** extra) = nullptr;
  Result (*EventCreate)(Event* event, unsigned flags) = nullptr;
  Result (*EventRecord)(Event event, Stream stream) = nullptr;
  Result (*EventElapsedTime)(float* milliseconds, Event start, Event end) = nullptr;
  Result (*EventDestroy)(Event event) = nullptr;
  Result (*FuncGetParamInfo)(Function function, size_t index, size_t* offset, size_t* size) = nullptr;  ///< optional
  Result (*ModuleGetFunctionCount)(unsigned* count, Module module) = nullptr;                           ///< optional
  Result (*ModuleEnumerateFunctions)(Function* functions, unsigned count, Module module) = nullptr;     ///< optional
  Result (*FuncGetName)(const char** name, Function function) = nullptr;                                ///< optional
  Result (*TensorMapEncodeTiled)(void* map, int data_type, unsigned rank, void* global_address,
                                 const uint64_t* global_dim, const uint64_t* global_strides, const uint32_t* box_dim,
                                 const uint32_t* element_strides, int interleave, int swizzle, int l2_promotion,
                                 int oob_fill) = nullptr;  ///< optional
  ///@}

  /// "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)".
  std::string describe(Result error) const;
};

/// Opens `library` ("libcuda.so.1") and binds every function. False, with one line in `why`, where the library or a
/// function of it is missing. The library stays open for the rest of the process.
bool open(const char* library, Api* api, std::string* why);

}  // namespace handoff::device::driver
