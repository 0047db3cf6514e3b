// Holds cuda_abi.h against the toolkit's own headers: sizes, offsets, values. It compiles or it does not.
#include <cuda.h>

#include <cstddef>

#include "../cuda_abi.h"
#include "check.h"

namespace rt = handoff::runtime;

#define SAME(ours, theirs) static_assert(static_cast<int>(rt::ours) == static_cast<int>(theirs))
#define SAME_FIELD(our, field, their, member) static_assert(offsetof(rt::our, field) == offsetof(their, member))
#define SAME_PROPERTY(field) SAME_FIELD(DeviceProperties, field, cudaDeviceProp, field)

SAME(kSuccess, cudaSuccess);
SAME(kInvalidValue, cudaErrorInvalidValue);
SAME(kMemoryAllocation, cudaErrorMemoryAllocation);
SAME(kInvalidConfiguration, cudaErrorInvalidConfiguration);
SAME(kInvalidPitchValue, cudaErrorInvalidPitchValue);
SAME(kInvalidSymbol, cudaErrorInvalidSymbol);
SAME(kInvalidMemcpyDirection, cudaErrorInvalidMemcpyDirection);
SAME(kInvalidDeviceFunction, cudaErrorInvalidDeviceFunction);
SAME(kInvalidDevice, cudaErrorInvalidDevice);
SAME(kInvalidKernelImage, cudaErrorInvalidKernelImage);
SAME(kNoKernelImageForDevice, cudaErrorNoKernelImageForDevice);
SAME(kInvalidPtx, cudaErrorInvalidPtx);
SAME(kFileNotFound, cudaErrorFileNotFound);
SAME(kInvalidResourceHandle, cudaErrorInvalidResourceHandle);
SAME(kSymbolNotFound, cudaErrorSymbolNotFound);
SAME(kNotReady, cudaErrorNotReady);
SAME(kIllegalAddress, cudaErrorIllegalAddress);
SAME(kLaunchTimeout, cudaErrorLaunchTimeout);
SAME(kAssert, cudaErrorAssert);
SAME(kMisalignedAddress, cudaErrorMisalignedAddress);
SAME(kLaunchFailure, cudaErrorLaunchFailure);
SAME(kCooperativeLaunchTooLarge, cudaErrorCooperativeLaunchTooLarge);
SAME(kNotSupported, cudaErrorNotSupported);
SAME(kInvalidContext, cudaErrorDeviceUninitialized);
SAME(kUnsupportedLimit, cudaErrorUnsupportedLimit);
SAME(kIllegalState, cudaErrorIllegalState);
SAME(kHostMemoryAlreadyRegistered, cudaErrorHostMemoryAlreadyRegistered);
SAME(kHostMemoryNotRegistered, cudaErrorHostMemoryNotRegistered);
SAME(kStreamCaptureUnsupported, cudaErrorStreamCaptureUnsupported);
SAME(kStreamCaptureInvalidated, cudaErrorStreamCaptureInvalidated);
SAME(kStreamCaptureMerge, cudaErrorStreamCaptureMerge);
SAME(kStreamCaptureUnmatched, cudaErrorStreamCaptureUnmatched);
SAME(kStreamCaptureUnjoined, cudaErrorStreamCaptureUnjoined);
SAME(kStreamCaptureIsolation, cudaErrorStreamCaptureIsolation);
SAME(kStreamCaptureImplicit, cudaErrorStreamCaptureImplicit);
SAME(kCapturedEvent, cudaErrorCapturedEvent);
SAME(kStreamCaptureWrongThread, cudaErrorStreamCaptureWrongThread);
SAME(kGraphExecUpdateFailure, cudaErrorGraphExecUpdateFailure);
SAME(kInvalidClusterSize, cudaErrorInvalidClusterSize);
SAME(MemcpyKind::HostToDevice, cudaMemcpyHostToDevice);
SAME(MemcpyKind::DeviceToHost, cudaMemcpyDeviceToHost);
SAME(MemcpyKind::DeviceToDevice, cudaMemcpyDeviceToDevice);
SAME(MemcpyKind::Default, cudaMemcpyDefault);
SAME(MemoryType::Host, cudaMemoryTypeHost);
SAME(MemoryType::Device, cudaMemoryTypeDevice);
SAME(MemoryType::Managed, cudaMemoryTypeManaged);
SAME(LaunchAttributeId::Cooperative, cudaLaunchAttributeCooperative);
SAME(LaunchAttributeId::ClusterDimension, cudaLaunchAttributeClusterDimension);
SAME(LaunchAttributeId::ClusterDimension, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);

SAME(LaunchAttributeId::Priority, cudaLaunchAttributePriority);
SAME(LaunchAttributeId::SynchronizationPolicy, cudaLaunchAttributeSynchronizationPolicy);
SAME(LaunchAttributeId::MemSyncDomain, cudaLaunchAttributeMemSyncDomain);
SAME(LocationType::Device, cudaMemLocationTypeDevice);
SAME(LocationType::HostNumaCurrent, cudaMemLocationTypeHostNumaCurrent);
SAME(PoolAttribute::ReleaseThreshold, cudaMemPoolAttrReleaseThreshold);
SAME(PoolAttribute::UsedMemHigh, cudaMemPoolAttrUsedMemHigh);
SAME(PoolAttribute::UsedMemHigh, CU_MEMPOOL_ATTR_USED_MEM_HIGH);
SAME(CaptureMode::Relaxed, cudaStreamCaptureModeRelaxed);
SAME(CaptureStatus::Invalidated, cudaStreamCaptureStatusInvalidated);
SAME(DriverMemoryType::Unified, CU_MEMORYTYPE_UNIFIED);

static_assert(sizeof(rt::AbiDim3) == sizeof(dim3));
static_assert(sizeof(rt::RuntimeCopy3D) == sizeof(cudaMemcpy3DParms));
SAME_FIELD(RuntimeCopy3D, source, cudaMemcpy3DParms, srcPtr);
SAME_FIELD(RuntimeCopy3D, destination, cudaMemcpy3DParms, dstPtr);
SAME_FIELD(RuntimeCopy3D, kind, cudaMemcpy3DParms, kind);
static_assert(sizeof(rt::DriverCopy2D) == sizeof(CUDA_MEMCPY2D));
SAME_FIELD(DriverCopy2D, destination, CUDA_MEMCPY2D, dstXInBytes);
SAME_FIELD(DriverCopy2D, height, CUDA_MEMCPY2D, Height);
static_assert(sizeof(rt::DriverCopy3D) == sizeof(CUDA_MEMCPY3D));
SAME_FIELD(DriverCopy3D, destination, CUDA_MEMCPY3D, dstXInBytes);
SAME_FIELD(DriverCopy3D, depth, CUDA_MEMCPY3D, Depth);
static_assert(sizeof(rt::MemoryLocation) == sizeof(cudaMemLocation));
static_assert(sizeof(rt::PoolProperties) == sizeof(cudaMemPoolProps));
static_assert(sizeof(rt::PoolProperties) == sizeof(CUmemPoolProps));
SAME_FIELD(PoolProperties, max_size, cudaMemPoolProps, maxSize);
static_assert(sizeof(rt::KernelNodeParameters) == sizeof(cudaKernelNodeParams));
SAME_FIELD(KernelNodeParameters, extra, cudaKernelNodeParams, extra);
static_assert(sizeof(rt::DriverKernelNodeParameters) == sizeof(CUDA_KERNEL_NODE_PARAMS));
SAME_FIELD(DriverKernelNodeParameters, arguments, CUDA_KERNEL_NODE_PARAMS, kernelParams);
static_assert(sizeof(rt::MemsetNodeParameters) == sizeof(cudaMemsetParams));
static_assert(sizeof(rt::MemsetNodeParameters) == sizeof(CUDA_MEMSET_NODE_PARAMS));
SAME_FIELD(MemsetNodeParameters, width, cudaMemsetParams, width);
static_assert(sizeof(rt::HostNodeParameters) == sizeof(cudaHostNodeParams));
static_assert(sizeof(rt::InstantiateParameters) == sizeof(cudaGraphInstantiateParams));
static_assert(sizeof(rt::GraphUpdateResult) == sizeof(cudaGraphExecUpdateResultInfo));
static_assert(sizeof(cudaGraphEdgeData) == 8 && sizeof(cudaLaunchAttributeValue) == 64);
static_assert(sizeof(rt::PointerAttributes) == sizeof(cudaPointerAttributes));
SAME_FIELD(PointerAttributes, host_pointer, cudaPointerAttributes, hostPointer);
static_assert(sizeof(rt::FunctionAttributes) == sizeof(cudaFuncAttributes));
SAME_FIELD(FunctionAttributes, max_threads_per_block, cudaFuncAttributes, maxThreadsPerBlock);
SAME_FIELD(FunctionAttributes, max_dynamic_shared_size_bytes, cudaFuncAttributes, maxDynamicSharedSizeBytes);
SAME_FIELD(FunctionAttributes, cluster_dim_must_be_set, cudaFuncAttributes, clusterDimMustBeSet);
SAME_FIELD(FunctionAttributes, non_portable_cluster_size_allowed, cudaFuncAttributes, nonPortableClusterSizeAllowed);
static_assert(sizeof(rt::LaunchAttribute) == sizeof(cudaLaunchAttribute));
SAME_FIELD(LaunchAttribute, cluster_dim, cudaLaunchAttribute, val);
static_assert(sizeof(rt::LaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(sizeof(rt::RuntimeLaunchConfig) == sizeof(cudaLaunchConfig_t));
SAME_FIELD(RuntimeLaunchConfig, attributes, cudaLaunchConfig_t, attrs);
SAME_FIELD(RuntimeLaunchConfig, attribute_count, cudaLaunchConfig_t, numAttrs);
static_assert(sizeof(rt::DriverLaunchConfig) == sizeof(CUlaunchConfig));
SAME_FIELD(DriverLaunchConfig, attributes, CUlaunchConfig, attrs);
static_assert(sizeof(rt::DeviceProperties) == sizeof(cudaDeviceProp));
SAME_PROPERTY(totalGlobalMem);
SAME_PROPERTY(regsPerBlock);
SAME_PROPERTY(maxGridSize);
SAME_PROPERTY(totalConstMem);
SAME_PROPERTY(minor);
SAME_PROPERTY(multiProcessorCount);
SAME_PROPERTY(canMapHostMemory);
SAME_PROPERTY(surfaceAlignment);
SAME_PROPERTY(unifiedAddressing);
SAME_PROPERTY(l2CacheSize);
SAME_PROPERTY(localL1CacheSupported);
SAME_PROPERTY(sharedMemPerMultiprocessor);
SAME_PROPERTY(cooperativeLaunch);
SAME_PROPERTY(sharedMemPerBlockOptin);
SAME_PROPERTY(maxBlocksPerMultiProcessor);
SAME_PROPERTY(reservedSharedMemPerBlock);
SAME_PROPERTY(memoryPoolsSupported);
SAME_PROPERTY(clusterLaunch);
SAME_PROPERTY(reserved);

int main() {
  cudaDeviceProp p;
  CHECK(cudaGetDeviceProperties(&p, 0));
  EXPECT(p.major == 10 && p.minor == 0 && p.multiProcessorCount == 148 && p.warpSize == 32);
  EXPECT(p.sharedMemPerBlockOptin == 227 * 1024 && p.clusterLaunch == 1);
}
