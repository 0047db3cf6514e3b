// The driver API as far as programs reach it beside the runtime (CUDA driver API; the names that cuda.h's macros make,
// such as cuMemAlloc_v2). libcuda.so.1 is another name of this library.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "grader/emulator/async/tensor_map.h"
#include "grader/runtime/driver.h"
#include "grader/runtime/graph.h"
#include "grader/runtime/occupancy.h"
#include "grader/runtime/rows.h"

using namespace handoff::runtime;  // NOLINT: what follows is a C interface over it

namespace {

constexpr int kCudaVersion = 13020;

Outcome check_code(Runtime& r, const Code* code) {
  return r.is_code(code) ? Outcome{} : Outcome{kInvalidResourceHandle, "it is not a module or library"};
}

/// The same, and it is placed: code that was loaded lazily may be wrong.
Outcome check_placed(Runtime& r, Code* code) {
  Outcome outcome = check_code(r, code);
  return outcome.code == kSuccess ? r.place(*code) : outcome;
}

Outcome kernel_in(Runtime& r, Code* code, const char* name, Kernel** out) {
  Outcome outcome = check_code(r, code);
  if (outcome.code != kSuccess) return outcome;
  Kernel* const kernel = r.kernel_of(*code, name);
  Outcome decoded = r.decode(*kernel);
  if (decoded.code == kSuccess) *out = kernel;
  return decoded;
}

Outcome global_in(Runtime& r, Code* code, const char* name, Address* address, size_t* bytes) {
  Outcome outcome = check_placed(r, code);
  if (outcome.code != kSuccess) return outcome;
  const auto symbol = code->module->symbol(name);
  if (!symbol) return {kSymbolNotFound, fmt::format("no variable {}", name)};
  if (address != nullptr) *address = symbol->address;
  if (bytes != nullptr) *bytes = symbol->size;
  return {};
}

Outcome load_file(Runtime& r, const char* path, bool lazy, Code** out) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return {kFileNotFound, path};
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return r.load_code(bytes.data(), bytes.size(), lazy, out);
}

/// CU_LAUNCH_PARAM_…: the parameters as one block.
std::vector<std::byte> packed_parameters(void** extra) {
  const auto is = [&](void* key, uintptr_t value) { return reinterpret_cast<uintptr_t>(key) == value; };
  const void* buffer = nullptr;
  size_t bytes = 0;
  for (void** e = extra; !is(e[0], 0); e += 2) {
    if (is(e[0], 1)) buffer = e[1];
    if (is(e[0], 2)) bytes = *static_cast<size_t*>(e[1]);
  }
  const auto* from = static_cast<const std::byte*>(buffer);
  return from == nullptr ? std::vector<std::byte>() : std::vector<std::byte>(from, from + bytes);
}

Outcome launch(Runtime& r, Kernel* kernel, const LaunchShape& shape, Stream* stream, void** parameters, void** extra) {
  Kernel* const known = r.find_kernel(kernel);
  if (known == nullptr) return {kInvalidResourceHandle, "it is not a kernel"};
  if (extra == nullptr) return enqueue_launch(r, stream, *known, shape, parameters);
  const std::vector<std::byte> block = packed_parameters(extra);
  return enqueue_launch(r, stream, *known, shape, nullptr, &block);
}

LaunchShape shape_of(const DriverLaunchConfig& c) {
  LaunchShape shape{{c.grid_x, c.grid_y, c.grid_z}, {c.block_x, c.block_y, c.block_z}, {}, c.shared_mem_bytes, false};
  apply_attributes(c.attributes, c.attribute_count, &shape);
  return shape;
}

/// The kernel that a handle stands for, decoded.
Outcome known_kernel(Runtime& r, Kernel* kernel, Kernel** out) {
  *out = r.find_kernel(kernel);
  return *out == nullptr ? Outcome{kInvalidResourceHandle, "it is not a kernel"} : r.decode(**out);
}

/// CUfunction_attribute.
enum class FunctionAttribute : int {
  MaxThreadsPerBlock,
  SharedSizeBytes,
  ConstSizeBytes,
  LocalSizeBytes,
  NumRegs,
  PtxVersion,
  BinaryVersion,
  CacheModeCa,
  MaxDynamicSharedSizeBytes,
  PreferredSharedMemoryCarveout,
  ClusterSizeMustBeSet,
  RequiredClusterWidth,
  RequiredClusterHeight,
  RequiredClusterDepth,
  NonPortableClusterSizeAllowed,
};

Outcome get_attribute(Runtime& r, int* out, int attribute, Kernel* kernel) {
  Kernel* const known = r.find_kernel(kernel);
  if (known == nullptr) return {kInvalidResourceHandle, "it is not a kernel"};
  Outcome decoded = r.decode(*known);
  if (decoded.code != kSuccess) return decoded;
  const FunctionAttributes a = attributes_of(r, *known);
  switch (static_cast<FunctionAttribute>(attribute)) {
    case FunctionAttribute::MaxThreadsPerBlock:
      *out = a.max_threads_per_block;
      return {};
    case FunctionAttribute::SharedSizeBytes:
      *out = static_cast<int>(a.shared_size_bytes);
      return {};
    case FunctionAttribute::ConstSizeBytes:
      *out = static_cast<int>(a.const_size_bytes);
      return {};
    case FunctionAttribute::LocalSizeBytes:
      *out = static_cast<int>(a.local_size_bytes);
      return {};
    case FunctionAttribute::NumRegs:
      *out = a.num_regs;
      return {};
    case FunctionAttribute::PtxVersion:
      *out = a.ptx_version;
      return {};
    case FunctionAttribute::BinaryVersion:
      *out = a.binary_version;
      return {};
    case FunctionAttribute::CacheModeCa:
      *out = a.cache_mode_ca;
      return {};
    case FunctionAttribute::MaxDynamicSharedSizeBytes:
      *out = a.max_dynamic_shared_size_bytes;
      return {};
    case FunctionAttribute::PreferredSharedMemoryCarveout:
      *out = a.preferred_shmem_carveout;
      return {};
    case FunctionAttribute::ClusterSizeMustBeSet:
      *out = a.cluster_dim_must_be_set;
      return {};
    case FunctionAttribute::RequiredClusterWidth:
      *out = a.required_cluster_width;
      return {};
    case FunctionAttribute::RequiredClusterHeight:
      *out = a.required_cluster_height;
      return {};
    case FunctionAttribute::RequiredClusterDepth:
      *out = a.required_cluster_depth;
      return {};
    case FunctionAttribute::NonPortableClusterSizeAllowed:
      *out = a.non_portable_cluster_size_allowed;
      return {};
  }
  return {kInvalidValue, fmt::format("no attribute {}", attribute)};
}

Outcome put_attribute(Runtime& r, Kernel* kernel, int attribute, int value) {
  Kernel* const known = r.find_kernel(kernel);
  if (known == nullptr) return {kInvalidResourceHandle, "it is not a kernel"};
  Outcome decoded = r.decode(*known);
  return decoded.code == kSuccess ? set_attribute(r, *known, attribute, value) : decoded;
}

/// "CUDA_ERROR_INVALID_VALUE" for cudaErrorInvalidValue: the driver's names are the runtime's, spelled otherwise.
std::string driver_name(Error error) {
  if (error == kSuccess) return "CUDA_SUCCESS";
  if (error == kMemoryAllocation) return "CUDA_ERROR_OUT_OF_MEMORY";
  constexpr std::string_view kPrefix = "cudaError";
  const std::string name = error_name(error);
  if (name.rfind(kPrefix, 0) != 0) return {};
  std::string spelled = "CUDA_ERROR";
  for (size_t i = kPrefix.size(); i < name.size(); ++i) {
    if (name[i] >= 'A' && name[i] <= 'Z') spelled += '_';
    spelled += static_cast<char>(name[i] >= 'a' && name[i] <= 'z' ? name[i] - 'a' + 'A' : name[i]);
  }
  return spelled;
}

}  // namespace

HANDOFF_API Result cuInit(unsigned) { return kSuccess; }
HANDOFF_API Result cuDriverGetVersion(int* version) {
  *version = kCudaVersion;
  return kSuccess;
}
HANDOFF_API Result cuGetErrorString(Result result, const char** text) {
  *text = driver_name(result).empty() ? nullptr : error_text(result);
  return *text == nullptr ? kInvalidValue : kSuccess;
}
HANDOFF_API Result cuGetErrorName(Result result, const char** text) {
  // The names are kept: the caller may use them for as long as it likes.
  static std::map<Result, std::string> names;
  static std::mutex lock;
  const std::lock_guard<std::mutex> guard(lock);
  std::string& name = names[result];
  if (name.empty()) name = driver_name(result);
  *text = name.empty() ? nullptr : name.c_str();
  return *text == nullptr ? kInvalidValue : kSuccess;
}

// --- modules and libraries ---

HANDOFF_API Result cuModuleLoadData(Code** out, const void* image) {
  return driver_call("cuModuleLoadData", [&](Runtime& r) { return r.load_code(image, 0, false, out); });
}
HANDOFF_API Result cuModuleLoadDataEx(Code** out, const void* image, unsigned, int*, void**) {
  return driver_call("cuModuleLoadDataEx", [&](Runtime& r) { return r.load_code(image, 0, false, out); });
}
HANDOFF_API Result cuModuleLoad(Code** out, const char* path) {
  return driver_call("cuModuleLoad", [&](Runtime& r) { return load_file(r, path, false, out); });
}
HANDOFF_API Result cuModuleLoadFatBinary(Code** out, const void* image) {
  return driver_call("cuModuleLoadFatBinary", [&](Runtime& r) { return r.load_code(image, 0, false, out); });
}
HANDOFF_API Result cuModuleGetLoadingMode(int* mode) {
  constexpr int kLazy = 2;
  *mode = kLazy;
  return kSuccess;
}
HANDOFF_API Result cuModuleUnload(Code* code) {
  return driver_call("cuModuleUnload", [&](Runtime& r) {
    Outcome outcome = check_code(r, code);
    if (outcome.code == kSuccess) r.remove_code(code);
    return outcome;
  });
}
HANDOFF_API Result cuModuleGetFunction(Kernel** out, Code* code, const char* name) {
  return driver_call("cuModuleGetFunction", [&](Runtime& r) { return kernel_in(r, code, name, out); });
}
HANDOFF_API Result cuModuleGetGlobal_v2(Address* address, size_t* bytes, Code* code, const char* name) {
  return driver_call("cuModuleGetGlobal", [&](Runtime& r) { return global_in(r, code, name, address, bytes); });
}
HANDOFF_API Result cuLibraryLoadData(Code** out, const void* image, int*, void**, unsigned, int*, void**, unsigned) {
  return driver_call("cuLibraryLoadData", [&](Runtime& r) { return r.load_code(image, 0, true, out); });
}
HANDOFF_API Result cuLibraryLoadFromFile(Code** out, const char* path, int*, void**, unsigned, int*, void**, unsigned) {
  return driver_call("cuLibraryLoadFromFile", [&](Runtime& r) { return load_file(r, path, true, out); });
}
HANDOFF_API Result cuLibraryUnload(Code* code) { return cuModuleUnload(code); }
HANDOFF_API Result cuLibraryGetModule(Code** out, Code* code) {
  *out = code;
  return kSuccess;
}
HANDOFF_API Result cuLibraryGetKernel(Kernel** out, Code* code, const char* name) {
  return driver_call("cuLibraryGetKernel", [&](Runtime& r) { return kernel_in(r, code, name, out); });
}
HANDOFF_API Result cuLibraryGetKernelCount(unsigned* count, Code* code) {
  return driver_call("cuLibraryGetKernelCount", [&](Runtime& r) {
    Outcome outcome = check_placed(r, code);
    if (outcome.code == kSuccess) *count = static_cast<unsigned>(code->module->entries().size());
    return outcome;
  });
}
HANDOFF_API Result cuLibraryEnumerateKernels(Kernel** out, unsigned count, Code* code) {
  return driver_call("cuLibraryEnumerateKernels", [&](Runtime& r) {
    Outcome outcome = check_placed(r, code);
    if (outcome.code != kSuccess) return outcome;
    for (const std::string& name : code->module->entries()) {
      if (count-- == 0) break;
      *out++ = r.kernel_of(*code, name);
    }
    return outcome;
  });
}
HANDOFF_API Result cuModuleGetFunctionCount(unsigned* count, Code* code) {
  return cuLibraryGetKernelCount(count, code);
}
HANDOFF_API Result cuModuleEnumerateFunctions(Kernel** out, unsigned count, Code* code) {
  return cuLibraryEnumerateKernels(out, count, code);
}
HANDOFF_API Result cuLibraryGetGlobal(Address* address, size_t* bytes, Code* code, const char* name) {
  return driver_call("cuLibraryGetGlobal", [&](Runtime& r) { return global_in(r, code, name, address, bytes); });
}
HANDOFF_API Result cuKernelGetFunction(Kernel** out, Kernel* kernel) {
  *out = kernel;
  return kSuccess;
}
HANDOFF_API Result cuFuncSetAttribute(Kernel* kernel, int attribute, int value) {
  return driver_call("cuFuncSetAttribute", [&](Runtime& r) { return put_attribute(r, kernel, attribute, value); });
}
HANDOFF_API Result cuKernelSetAttribute(int attribute, int value, Kernel* kernel, int) {
  return driver_call("cuKernelSetAttribute", [&](Runtime& r) { return put_attribute(r, kernel, attribute, value); });
}
HANDOFF_API Result cuFuncGetAttribute(int* out, int attribute, Kernel* kernel) {
  return driver_call("cuFuncGetAttribute", [&](Runtime& r) { return get_attribute(r, out, attribute, kernel); });
}
HANDOFF_API Result cuKernelGetAttribute(int* out, int attribute, Kernel* kernel, int) {
  return driver_call("cuKernelGetAttribute", [&](Runtime& r) { return get_attribute(r, out, attribute, kernel); });
}

HANDOFF_API Result cuFuncSetCacheConfig(Kernel* kernel, int) {
  return driver_call("cuFuncSetCacheConfig", [&](Runtime& r) {
    return r.find_kernel(kernel) != nullptr ? Outcome{} : Outcome{kInvalidResourceHandle, "it is not a kernel"};
  });
}
HANDOFF_API Result cuFuncGetName(const char** name, Kernel* kernel) {
  return driver_call("cuFuncGetName", [&](Runtime& r) {
    Kernel* known = nullptr;
    Outcome outcome = known_kernel(r, kernel, &known);
    if (outcome.code == kSuccess) *name = known->name.c_str();
    return outcome;
  });
}
HANDOFF_API Result cuKernelGetName(const char** name, Kernel* kernel) { return cuFuncGetName(name, kernel); }
HANDOFF_API Result cuFuncGetModule(Code** out, Kernel* kernel) {
  return driver_call("cuFuncGetModule", [&](Runtime& r) {
    Kernel* known = nullptr;
    Outcome outcome = known_kernel(r, kernel, &known);
    if (outcome.code == kSuccess) *out = known->code;
    return outcome;
  });
}
HANDOFF_API Result cuKernelGetLibrary(Code** out, Kernel* kernel) { return cuFuncGetModule(out, kernel); }
HANDOFF_API Result cuFuncGetParamInfo(Kernel* kernel, size_t index, size_t* offset, size_t* size) {
  return driver_call("cuFuncGetParamInfo", [&](Runtime& r) -> Outcome {
    Kernel* known = nullptr;
    Outcome outcome = known_kernel(r, kernel, &known);
    if (outcome.code != kSuccess) return outcome;
    const auto& parameters = known->program->parameters;
    if (index >= parameters.size()) return {kInvalidValue, fmt::format("it has {} parameters", parameters.size())};
    *offset = parameters[index].offset;
    if (size != nullptr) *size = parameters[index].size;
    return {};
  });
}
HANDOFF_API Result cuKernelGetParamInfo(Kernel* kernel, size_t index, size_t* offset, size_t* size) {
  return cuFuncGetParamInfo(kernel, index, offset, size);
}
HANDOFF_API Result cuFuncLoad(Kernel* kernel) {
  return driver_call("cuFuncLoad", [&](Runtime& r) {
    Kernel* known = nullptr;
    return known_kernel(r, kernel, &known);
  });
}
HANDOFF_API Result cuFuncIsLoaded(int* state, Kernel* kernel) {
  return driver_call("cuFuncIsLoaded", [&](Runtime& r) -> Outcome {
    const Kernel* const known = r.find_kernel(kernel);
    if (known == nullptr) return {kInvalidResourceHandle, "it is not a kernel"};
    *state = known->program != nullptr ? 1 : 0;
    return {};
  });
}

// --- launches ---

HANDOFF_API Result cuLaunchKernel(Kernel* kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                  unsigned bz, unsigned shared_bytes, Stream* stream, void** parameters, void** extra) {
  return driver_call("cuLaunchKernel", [&](Runtime& r) {
    return launch(r, kernel, {{gx, gy, gz}, {bx, by, bz}, {}, shared_bytes, false}, stream, parameters, extra);
  });
}
HANDOFF_API Result cuLaunchKernelEx(const DriverLaunchConfig* c, Kernel* kernel, void** parameters, void** extra) {
  return driver_call("cuLaunchKernelEx",
                     [&](Runtime& r) { return launch(r, kernel, shape_of(*c), c->stream, parameters, extra); });
}
HANDOFF_API Result cuLaunchCooperativeKernel(Kernel* kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                             unsigned by, unsigned bz, unsigned shared_bytes, Stream* stream,
                                             void** parameters) {
  return driver_call("cuLaunchCooperativeKernel", [&](Runtime& r) {
    return launch(r, kernel, {{gx, gy, gz}, {bx, by, bz}, {}, shared_bytes, true}, stream, parameters, nullptr);
  });
}

// --- occupancy ---

HANDOFF_API Result cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, Kernel* kernel, int block_size,
                                                                        size_t dynamic_smem, unsigned) {
  return driver_call("cuOccupancyMaxActiveBlocksPerMultiprocessor", [&](Runtime& r) -> Outcome {
    Kernel* known = nullptr;
    Outcome outcome = known_kernel(r, kernel, &known);
    if (outcome.code != kSuccess) return outcome;
    if (block_size <= 0) return {kInvalidValue, fmt::format("a block of {} threads", block_size)};
    *blocks = active_blocks(r, *known, block_size, dynamic_smem);
    return {};
  });
}
HANDOFF_API Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel* kernel, int block_size,
                                                               size_t dynamic_smem) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, kernel, block_size, dynamic_smem, 0);
}
HANDOFF_API Result cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, Kernel* kernel,
                                                             size_t (*smem_of)(int), size_t dynamic_smem, int limit,
                                                             unsigned) {
  return driver_call("cuOccupancyMaxPotentialBlockSize", [&](Runtime& r) -> Outcome {
    Kernel* known = nullptr;
    Outcome outcome = known_kernel(r, kernel, &known);
    if (outcome.code != kSuccess) return outcome;
    // The largest of the block sizes with which an SM holds most threads.
    const int most = attributes_of(r, *known).max_threads_per_block;
    uint64_t best = 0;
    *grid = *block = 0;
    for (int size = (limit > 0 ? std::min(limit, most) : most) / 32 * 32; size > 0; size -= 32) {
      const size_t smem = smem_of != nullptr ? smem_of(size) : dynamic_smem;
      const uint64_t blocks = r.resident_blocks(*known, static_cast<uint64_t>(size), smem);
      if (blocks * static_cast<uint64_t>(size) <= best) continue;
      best = blocks * static_cast<uint64_t>(size);
      *block = size;
      *grid = static_cast<int>(blocks * r.model().sms);
    }
    return {};
  });
}
HANDOFF_API Result cuOccupancyMaxPotentialBlockSize(int* grid, int* block, Kernel* kernel, size_t (*smem_of)(int),
                                                    size_t dynamic_smem, int limit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, kernel, smem_of, dynamic_smem, limit, 0);
}
HANDOFF_API Result cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, Kernel* kernel, int blocks, int block_size) {
  return driver_call("cuOccupancyAvailableDynamicSMemPerBlock", [&](Runtime& r) {
    Kernel* known = nullptr;
    Outcome outcome = known_kernel(r, kernel, &known);
    return outcome.code == kSuccess ? available_smem(r, *known, blocks, block_size, bytes) : outcome;
  });
}
HANDOFF_API Result cuOccupancyMaxPotentialClusterSize(int* size, Kernel* kernel, const DriverLaunchConfig* config) {
  return driver_call("cuOccupancyMaxPotentialClusterSize", [&](Runtime& r) {
    Kernel* known = nullptr;
    Outcome outcome = known_kernel(r, kernel, &known);
    return outcome.code == kSuccess ? largest_cluster(r, *known, shape_of(*config), size) : outcome;
  });
}
HANDOFF_API Result cuOccupancyMaxActiveClusters(int* clusters, Kernel* kernel, const DriverLaunchConfig* config) {
  return driver_call("cuOccupancyMaxActiveClusters", [&](Runtime& r) {
    Kernel* known = nullptr;
    Outcome outcome = known_kernel(r, kernel, &known);
    return outcome.code == kSuccess ? resident_clusters(r, *known, shape_of(*config), clusters) : outcome;
  });
}

// --- memory ---

HANDOFF_API Result cuMemAlloc_v2(Address* out, size_t bytes) {
  return driver_call("cuMemAlloc", [&](Runtime& r) -> Outcome {
    if (bytes == 0) return {kInvalidValue, "0 bytes"};
    return allocate(r, reinterpret_cast<void**>(out), bytes, MemoryType::Device, "cuMemAlloc");
  });
}
HANDOFF_API Result cuMemAllocManaged(Address* out, size_t bytes, unsigned) {
  return driver_call("cuMemAllocManaged", [&](Runtime& r) {
    return allocate(r, reinterpret_cast<void**>(out), bytes, MemoryType::Managed, "cuMemAllocManaged");
  });
}
HANDOFF_API Result cuMemFree_v2(Address p) {
  return driver_call("cuMemFree", [&](Runtime& r) { return release(r, pointer(p), false); });
}
HANDOFF_API Result cuMemFreeHost(void* p) {
  return driver_call("cuMemFreeHost", [&](Runtime& r) { return release(r, p, true); });
}
HANDOFF_API Result cuMemGetInfo_v2(size_t* free, size_t* total) {
  return driver_call("cuMemGetInfo", [&](Runtime& r) -> Outcome {
    *total = total_memory(r.model());
    *free = *total - std::min<uint64_t>(*total, r.memory().global().bytes_in_use());
    return {};
  });
}

namespace {

/// Copies or fills in a stream; the legacy one where none is named.
Result copy_in(const char* name, Stream* stream, void* to, const void* from, size_t bytes, MemcpyKind kind) {
  return without_last_error([&] {
    return call_in(name, stream, NodeType::Memcpy, [=](Runtime& r) { return copy(r, to, from, bytes, kind); });
  });
}
Result fill_in(const char* name, Stream* stream, Address to, uint32_t value, size_t count, uint32_t element_bytes) {
  return without_last_error([&] {
    return call_in(name, stream, NodeType::Memset,
                   [=](Runtime& r) { return fill(r, to, value, count, element_bytes); });
  });
}

}  // namespace

HANDOFF_API Result cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t bytes, Stream* stream) {
  return copy_in("cuMemcpyHtoD", stream, pointer(to), from, bytes, MemcpyKind::HostToDevice);
}
HANDOFF_API Result cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, Stream* stream) {
  return copy_in("cuMemcpyDtoH", stream, to, pointer(from), bytes, MemcpyKind::DeviceToHost);
}
HANDOFF_API Result cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, Stream* stream) {
  return copy_in("cuMemcpyDtoD", stream, pointer(to), pointer(from), bytes, MemcpyKind::DeviceToDevice);
}
HANDOFF_API Result cuMemcpyAsync(Address to, Address from, size_t bytes, Stream* stream) {
  return copy_in("cuMemcpy", stream, pointer(to), pointer(from), bytes, MemcpyKind::Default);
}
HANDOFF_API Result cuMemcpyPeerAsync(Address to, void*, Address from, void*, size_t bytes, Stream* stream) {
  return copy_in("cuMemcpyPeer", stream, pointer(to), pointer(from), bytes, MemcpyKind::DeviceToDevice);
}
HANDOFF_API Result cuMemcpyHtoD_v2(Address to, const void* from, size_t bytes) {
  return cuMemcpyHtoDAsync_v2(to, from, bytes, nullptr);
}
HANDOFF_API Result cuMemcpyDtoH_v2(void* to, Address from, size_t bytes) {
  return cuMemcpyDtoHAsync_v2(to, from, bytes, nullptr);
}
HANDOFF_API Result cuMemcpyDtoD_v2(Address to, Address from, size_t bytes) {
  return cuMemcpyDtoDAsync_v2(to, from, bytes, nullptr);
}
HANDOFF_API Result cuMemcpy(Address to, Address from, size_t bytes) { return cuMemcpyAsync(to, from, bytes, nullptr); }
HANDOFF_API Result cuMemcpyPeer(Address to, void*, Address from, void*, size_t bytes) {
  return cuMemcpyPeerAsync(to, nullptr, from, nullptr, bytes, nullptr);
}
HANDOFF_API Result cuMemsetD8Async(Address to, unsigned char value, size_t count, Stream* stream) {
  return fill_in("cuMemsetD8", stream, to, value, count, 1);
}
HANDOFF_API Result cuMemsetD16Async(Address to, unsigned short value, size_t count, Stream* stream) {
  return fill_in("cuMemsetD16", stream, to, value, count, 2);
}
HANDOFF_API Result cuMemsetD32Async(Address to, unsigned value, size_t count, Stream* stream) {
  return fill_in("cuMemsetD32", stream, to, value, count, 4);
}
HANDOFF_API Result cuMemsetD8_v2(Address to, unsigned char value, size_t count) {
  return cuMemsetD8Async(to, value, count, nullptr);
}
HANDOFF_API Result cuMemsetD16_v2(Address to, unsigned short value, size_t count) {
  return cuMemsetD16Async(to, value, count, nullptr);
}
HANDOFF_API Result cuMemsetD32_v2(Address to, unsigned value, size_t count) {
  return cuMemsetD32Async(to, value, count, nullptr);
}

// --- tensor maps ---

HANDOFF_API Result cuTensorMapEncodeTiled(void* map, uint32_t type, uint32_t rank, void* address, const uint64_t* dim,
                                          const uint64_t* strides, const uint32_t* box, const uint32_t* element_strides,
                                          uint32_t interleave, uint32_t swizzle, uint32_t promotion, uint32_t fill) {
  using namespace handoff::async;  // NOLINT: the encoder and the names of its arguments
  return driver_call("cuTensorMapEncodeTiled", [&](Runtime&) -> Outcome {
    if (reinterpret_cast<uintptr_t>(map) % kTensorMapAlignment != 0) {
      return {kInvalidValue, fmt::format("the map's address is not a multiple of {}", kTensorMapAlignment)};
    }
    if (rank < 1 || rank > 5) return {kInvalidValue, fmt::format("tensorRank {}; 1 to 5 are allowed", rank)};
    TensorMapArgs a;
    a.tensor_data_type = static_cast<TensorDataType>(type);
    a.tensor_rank = rank;
    a.global_address = reinterpret_cast<uint64_t>(address);
    std::copy_n(dim, rank, a.global_dim.begin());
    if (strides != nullptr) std::copy_n(strides, rank - 1, a.global_strides.begin());
    std::copy_n(box, rank, a.box_dim.begin());
    std::copy_n(element_strides, rank, a.element_strides.begin());
    a.interleave = static_cast<TensorInterleave>(interleave);
    a.swizzle = static_cast<TensorSwizzle>(swizzle);
    a.l2_promotion = static_cast<TensorL2Promotion>(promotion);
    a.oob_fill = static_cast<TensorOobFill>(fill);
    TensorMapImage image;
    const std::string problem = encode_tiled(a, &image);
    if (!problem.empty()) return {check_tiled(a).empty() ? kNotSupported : kInvalidValue, problem};
    std::memcpy(map, image.data(), image.size());
    return {};
  });
}

// --- entry points ---

HANDOFF_API Result cuGetProcAddress_v2(const char* symbol, void** out, int, uint64_t, int* status) {
  *out = find_entry_point(symbol);
  constexpr int kFound = 0, kSymbolMissing = 1;
  if (status != nullptr) *status = *out == nullptr ? kSymbolMissing : kFound;
  return *out == nullptr ? kSymbolNotFound : kSuccess;
}
HANDOFF_API Error cudaGetDriverEntryPointByVersion(const char* symbol, void** out, unsigned, unsigned long long,
                                                   int* status) {
  return call("cudaGetDriverEntryPointByVersion", [&](Runtime& r) -> Outcome {
    if (symbol == nullptr || out == nullptr) return {kInvalidValue, "a null pointer"};
    *out = find_entry_point(symbol);
    constexpr int kFound = 0, kSymbolMissing = 1;
    if (status != nullptr) *status = *out == nullptr ? kSymbolMissing : kFound;
    if (*out == nullptr) r.tell(fmt::format("the program asks for {}, which the emulator has not", symbol));
    return {};
  });
}
HANDOFF_API Error cudaGetDriverEntryPoint(const char* symbol, void** out, unsigned long long flags, int* status) {
  return cudaGetDriverEntryPointByVersion(symbol, out, 0, flags, status);
}
HANDOFF_API decltype(cudaGetDriverEntryPointByVersion) cudaGetDriverEntryPointByVersion_ptsz
    __attribute__((alias("cudaGetDriverEntryPointByVersion")));
HANDOFF_API decltype(cudaGetDriverEntryPoint) cudaGetDriverEntryPoint_ptsz
    __attribute__((alias("cudaGetDriverEntryPoint")));
