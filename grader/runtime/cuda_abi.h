// The part of the CUDA runtime and driver API's binary interface that the drop-in library speaks: types, values and
// layouts as driver_types.h, cuda_runtime_api.h and cuda.h of CUDA 13.0 have them, declared here so that the library
// builds where there is no toolkit. programs/abi.cu holds each of them against the toolkit's own headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace handoff::runtime {

using Error = int;  ///< cudaError_t

/// cudaError_t: the value kNAME is cudaErrorNAME.
///@{
inline constexpr Error kSuccess = 0;
inline constexpr Error kInvalidValue = 1;
inline constexpr Error kMemoryAllocation = 2;
inline constexpr Error kInvalidConfiguration = 9;
inline constexpr Error kInvalidPitchValue = 12;
inline constexpr Error kInvalidSymbol = 13;
inline constexpr Error kInvalidMemcpyDirection = 21;
inline constexpr Error kInvalidDeviceFunction = 98;
inline constexpr Error kInvalidDevice = 101;
inline constexpr Error kInvalidKernelImage = 200;
inline constexpr Error kInvalidContext = 201;
inline constexpr Error kNoKernelImageForDevice = 209;
inline constexpr Error kInvalidPtx = 218;
inline constexpr Error kFileNotFound = 301;
inline constexpr Error kInvalidResourceHandle = 400;
inline constexpr Error kSymbolNotFound = 500;
inline constexpr Error kNotReady = 600;
inline constexpr Error kIllegalAddress = 700;
inline constexpr Error kLaunchTimeout = 702;
inline constexpr Error kAssert = 710;
inline constexpr Error kMisalignedAddress = 716;
inline constexpr Error kLaunchFailure = 719;
inline constexpr Error kCooperativeLaunchTooLarge = 720;
inline constexpr Error kNotSupported = 801;
inline constexpr Error kUnsupportedLimit = 215;
inline constexpr Error kIllegalState = 401;
inline constexpr Error kHostMemoryAlreadyRegistered = 712;
inline constexpr Error kHostMemoryNotRegistered = 713;
inline constexpr Error kStreamCaptureUnsupported = 900;
inline constexpr Error kStreamCaptureInvalidated = 901;
inline constexpr Error kStreamCaptureMerge = 902;
inline constexpr Error kStreamCaptureUnmatched = 903;
inline constexpr Error kStreamCaptureUnjoined = 904;
inline constexpr Error kStreamCaptureIsolation = 905;
inline constexpr Error kStreamCaptureImplicit = 906;
inline constexpr Error kCapturedEvent = 907;
inline constexpr Error kStreamCaptureWrongThread = 908;
inline constexpr Error kGraphExecUpdateFailure = 910;
inline constexpr Error kInvalidClusterSize = 912;
///@}

/// dim3, in blocks or threads.
struct AbiDim3 {
  /// At least 1 each.
  ///@{
  unsigned x, y, z;
  ///@}
};

/// cudaMemcpyKind.
enum class MemcpyKind : int { HostToHost, HostToDevice, DeviceToHost, DeviceToDevice, Default };

/// cudaMemoryType.
enum class MemoryType : int { Unregistered, Host, Device, Managed };

/// cudaPointerAttributes.
struct PointerAttributes {
  MemoryType type;       ///< whose memory
  int device;            ///< −2: none
  void* device_pointer;  ///< as a kernel would use it; nullptr: not at all
  void* host_pointer;    ///< as the host would
  long reserved[8];      ///< zero
};

/// cudaExtent: bytes (or elements of an array), rows, slices.
struct Extent {
  /// As in the API.
  ///@{
  size_t width, height, depth;
  ///@}
};

/// cudaPos: the same, of a place.
struct Position {
  /// As in the API.
  ///@{
  size_t x, y, z;
  ///@}
};

/// cudaPitchedPtr.
struct PitchedPointer {
  void* address;  ///< of the first row
  size_t pitch;   ///< bytes from one row to the next
  size_t xsize;   ///< bytes of a row that are used
  size_t ysize;   ///< rows of a slice
};

/// cudaMemcpy3DParms.
struct RuntimeCopy3D {
  /// As in the API.
  ///@{
  void* source_array;
  Position source_position;
  PitchedPointer source;
  void* destination_array;
  Position destination_position;
  PitchedPointer destination;
  Extent extent;
  MemcpyKind kind;
  ///@}
};

/// CUmemorytype.
enum class DriverMemoryType : int { Host = 1, Device = 2, Array = 3, Unified = 4 };

/// One end of a CUDA_MEMCPY2D.
struct DriverCopyEnd2D {
  /// As in the API.
  ///@{
  size_t x_bytes, y;
  DriverMemoryType type;
  void* host;
  uint64_t device;
  void* array;
  size_t pitch;
  ///@}
};

/// CUDA_MEMCPY2D.
struct DriverCopy2D {
  /// As in the API.
  ///@{
  DriverCopyEnd2D source, destination;
  size_t width_bytes, height;
  ///@}
};

/// One end of a CUDA_MEMCPY3D.
struct DriverCopyEnd3D {
  /// As in the API.
  ///@{
  size_t x_bytes, y, z, lod;
  DriverMemoryType type;
  void* host;
  uint64_t device;
  void *array, *reserved;
  size_t pitch, height;
  ///@}
};

/// CUDA_MEMCPY3D, and CUDA_MEMCPY3D_PEER with contexts in place of what is reserved.
struct DriverCopy3D {
  /// As in the API.
  ///@{
  DriverCopyEnd3D source, destination;
  size_t width_bytes, height, depth;
  ///@}
};

/// cudaMemLocationType.
enum class LocationType : int { None, Device, Host, HostNuma, HostNumaCurrent };

/// cudaMemLocation.
struct MemoryLocation {
  LocationType type;  ///< whose
  int id;             ///< of the device
};

/// cudaMemPoolProps.
struct PoolProperties {
  /// As in the API.
  ///@{
  int allocation_type, handle_types;
  MemoryLocation location;
  void* win32_security_attributes;
  size_t max_size;
  unsigned short usage;
  unsigned char reserved[54];
  ///@}
};

/// cudaMemPoolAttr.
enum class PoolAttribute : int {
  ReuseFollowEventDependencies = 1,
  ReuseAllowOpportunistic = 2,
  ReuseAllowInternalDependencies = 3,
  ReleaseThreshold = 4,
  ReservedMemCurrent = 5,
  ReservedMemHigh = 6,
  UsedMemCurrent = 7,
  UsedMemHigh = 8,
};

/// cudaStreamCaptureMode.
enum class CaptureMode : int { Global, ThreadLocal, Relaxed };
/// cudaStreamCaptureStatus.
enum class CaptureStatus : int { None, Active, Invalidated };

/// cudaKernelNodeParams.
struct KernelNodeParameters {
  /// As in the API.
  ///@{
  void* function;
  AbiDim3 grid, block;
  unsigned dynamic_smem_bytes;
  void **arguments, **extra;
  ///@}
};

/// CUDA_KERNEL_NODE_PARAMS.
struct DriverKernelNodeParameters {
  /// As in the API.
  ///@{
  void* function;
  AbiDim3 grid, block;
  unsigned dynamic_smem_bytes;
  void **arguments, **extra;
  void *kernel, *context;
  ///@}
};

/// cudaMemsetParams and CUDA_MEMSET_NODE_PARAMS.
struct MemsetNodeParameters {
  /// As in the API.
  ///@{
  void* destination;
  size_t pitch;
  unsigned value, element_bytes;
  size_t width, height;
  ///@}
};

/// cudaHostNodeParams.
struct HostNodeParameters {
  void (*function)(void*);  ///< called by the graph's launch
  void* data;               ///< its argument
};

/// cudaGraphInstantiateParams.
struct InstantiateParameters {
  /// As in the API.
  ///@{
  unsigned long long flags;
  struct Stream* upload_stream;
  struct GraphNode* error_node;
  int result;
  ///@}
};

/// cudaGraphExecUpdateResultInfo.
struct GraphUpdateResult {
  /// As in the API.
  ///@{
  int result;
  struct GraphNode *error_node, *error_from_node;
  ///@}
};

/// cudaFuncAttributes.
struct FunctionAttributes {
  /// Bytes, a block for the first, the module's for the second, a thread for the third.
  ///@{
  size_t shared_size_bytes, const_size_bytes, local_size_bytes;
  ///@}
  /// As in the API.
  ///@{
  int max_threads_per_block, num_regs, ptx_version, binary_version, cache_mode_ca, max_dynamic_shared_size_bytes;
  int preferred_shmem_carveout, cluster_dim_must_be_set;
  int required_cluster_width, required_cluster_height, required_cluster_depth;
  int cluster_scheduling_policy_preference, non_portable_cluster_size_allowed;
  int reserved[16];
  ///@}
};

/// cudaLaunchAttributeID and CUlaunchAttributeID: those that the library knows.
enum class LaunchAttributeId : int {
  /// As in the API.
  ///@{
  Ignore = 0,
  AccessPolicyWindow = 1,
  Cooperative = 2,
  SynchronizationPolicy = 3,
  ClusterDimension = 4,
  ClusterSchedulingPolicyPreference = 5,
  ProgrammaticStreamSerialization = 6,
  ProgrammaticEvent = 7,
  Priority = 8,
  MemSyncDomainMap = 9,
  MemSyncDomain = 10,
  PreferredClusterDimension = 11,
  LaunchCompletionEvent = 12,
  DeviceUpdatableKernelNode = 13,
  PreferredSharedMemoryCarveout = 14,
  NvlinkUtilCentricScheduling = 16,
  ///@}
};

/// cudaLaunchAttribute: an id and a union of 64 bytes.
struct LaunchAttribute {
  LaunchAttributeId id;                     ///< which member of the union holds
  char pad[8 - sizeof(LaunchAttributeId)];  ///< the union is aligned to 8 bytes
  /// The members that the library reads.
  union alignas(8) {
    AbiDim3 cluster_dim;  ///< of ClusterDimension
    int cooperative;      ///< of Cooperative
    char bytes[64];       ///< the size of the union
  };
};

/// cudaLaunchConfig_t.
struct RuntimeLaunchConfig {
  /// As in the API.
  ///@{
  AbiDim3 grid, block;
  size_t dynamic_smem_bytes;
  struct Stream* stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
  ///@}
};

/// CUlaunchConfig.
struct DriverLaunchConfig {
  /// As in the API.
  ///@{
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_mem_bytes;
  struct Stream* stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
  ///@}
};

/// cudaDeviceProp. The names are the API's, so that a field is found by looking there.
struct DeviceProperties {
  /// As in the API.
  ///@{
  char name[256];
  char uuid[16];
  char luid[8];
  unsigned luidDeviceNodeMask;
  size_t totalGlobalMem, sharedMemPerBlock;
  int regsPerBlock, warpSize;
  size_t memPitch;
  int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
  size_t totalConstMem;
  int major, minor;
  size_t textureAlignment, texturePitchAlignment;
  int multiProcessorCount, integrated, canMapHostMemory;
  int textures[39];  // maxTexture1D to maxSurfaceCubemapLayered: there are none here, all are 0
  size_t surfaceAlignment;
  int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver, asyncEngineCount, unifiedAddressing;
  int memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize, maxThreadsPerMultiProcessor, streamPrioritiesSupported;
  int globalL1CacheSupported, localL1CacheSupported;
  size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID, hostNativeAtomicSupported;
  int pageableMemoryAccess, concurrentManagedAccess, computePreemptionSupported, canUseHostPointerForRegisteredMem;
  int cooperativeLaunch;
  size_t sharedMemPerBlockOptin;
  int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost, maxBlocksPerMultiProcessor;
  int accessPolicyMaxWindowSize;
  size_t reservedSharedMemPerBlock;
  int hostRegisterSupported, sparseCudaArraySupported, hostRegisterReadOnlySupported, timelineSemaphoreInteropSupported;
  int memoryPoolsSupported, gpuDirectRDMASupported;
  unsigned gpuDirectRDMAFlushWritesOptions;
  int gpuDirectRDMAWritesOrdering;
  unsigned memoryPoolSupportedHandleTypes;
  int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch, unifiedFunctionPointers, deviceNumaConfig;
  int deviceNumaId, mpsEnabled, hostNumaId;
  unsigned gpuPciDeviceID, gpuPciSubsystemID;
  int hostNumaMultinodeIpcSupported;
  int reserved[56];
  ///@}
};

}  // namespace handoff::runtime
