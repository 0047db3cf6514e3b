// Registration of a program's device code, kernels and their attributes, launches (CUDA runtime API, "Execution
// Control", "Occupancy"; crt/host_runtime.h for what nvcc makes a program call).
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "grader/runtime/graph.h"
#include "grader/runtime/occupancy.h"

namespace handoff::runtime {
namespace {

/// <<<grid, block, shared, stream>>>, between the two calls that nvcc makes of it.
struct CallConfiguration {
  AbiDim3 grid, block;
  size_t shared_bytes;
  Stream* stream;
};
thread_local std::vector<CallConfiguration> pending_configurations;

machine::Dim dim_of(const AbiDim3& d) { return {d.x, d.y, d.z}; }

/// cudaFuncAttribute: those that can be set.
enum class SettableAttribute : int {
  MaxDynamicSharedMemorySize = 8,
  PreferredSharedMemoryCarveout = 9,
  ClusterDimMustBeSet = 10,
  RequiredClusterWidth = 11,
  RequiredClusterHeight = 12,
  RequiredClusterDepth = 13,
  NonPortableClusterSizeAllowed = 14,
  ClusterSchedulingPolicyPreference = 15,
};

Outcome no_kernel() { return {kInvalidResourceHandle, "it is not a kernel of this program"}; }

/// The kernel that `function` stands for, decoded.
Outcome kernel_for(Runtime& r, const void* function, Kernel** out) {
  *out = r.find_kernel(function);
  return *out == nullptr ? no_kernel() : r.decode(**out);
}

Outcome launch(Runtime& r, const void* function, const LaunchShape& shape, void** args, Stream* stream) {
  Kernel* const kernel = r.find_kernel(function);
  return kernel == nullptr ? no_kernel() : enqueue_launch(r, stream, *kernel, shape, args);
}

LaunchShape shape_of(const RuntimeLaunchConfig& config) {
  LaunchShape shape;
  shape.grid = dim_of(config.grid);
  shape.block = dim_of(config.block);
  shape.dynamic_smem = config.dynamic_smem_bytes;
  apply_attributes(config.attributes, config.attribute_count, &shape);
  return shape;
}

}  // namespace

void apply_attributes(const LaunchAttribute* attributes, unsigned count, LaunchShape* shape) {
  // The rest concerns when a kernel starts, or where its data is cached: of no effect on a device that runs one kernel
  // after the other.
  for (unsigned i = 0; i < count; ++i) {
    const LaunchAttribute& a = attributes[i];
    if (a.id == LaunchAttributeId::ClusterDimension) shape->cluster = dim_of(a.cluster_dim);
    if (a.id == LaunchAttributeId::Cooperative) shape->cooperative = a.cooperative != 0;
  }
}

Outcome set_attribute(Runtime& r, Kernel& kernel, int attribute, int value) {
  switch (static_cast<SettableAttribute>(attribute)) {
    case SettableAttribute::MaxDynamicSharedMemorySize: {
      const uint32_t room = r.model().smem_per_cta - std::min(r.model().smem_per_cta, kernel.program->static_smem);
      if (value < 0 || static_cast<uint32_t>(value) > room) {
        return {kInvalidValue, fmt::format("{} bytes of dynamic shared memory; {} is the most", value, room)};
      }
      kernel.max_dynamic_smem = static_cast<uint32_t>(value);
      return {};
    }
    case SettableAttribute::PreferredSharedMemoryCarveout:
      if (value < -1 || value > 100) return {kInvalidValue, fmt::format("a carveout of {} percent", value)};
      kernel.carveout = value;
      return {};
    case SettableAttribute::NonPortableClusterSizeAllowed:
      kernel.non_portable_cluster = value != 0;
      return {};
    case SettableAttribute::ClusterSchedulingPolicyPreference:
      return {};
    case SettableAttribute::ClusterDimMustBeSet:
    case SettableAttribute::RequiredClusterWidth:
    case SettableAttribute::RequiredClusterHeight:
    case SettableAttribute::RequiredClusterDepth:
      return {kNotSupported, "the cluster of a kernel can be set at each launch, or declared (__cluster_dims__)"};
  }
  return {kInvalidValue, fmt::format("no attribute {} can be set", attribute)};
}

FunctionAttributes attributes_of(Runtime& r, const Kernel& kernel) {
  const machine::Program& program = *kernel.program;
  const ptx::Function& f = *program.functions[0];
  FunctionAttributes a{};
  a.shared_size_bytes = program.static_smem;
  a.local_size_bytes = program.local_bytes;
  a.max_threads_per_block = 1024;
  if (f.maxntid[0] != 0) {
    a.max_threads_per_block = static_cast<int>(f.maxntid[0] * std::max(1u, f.maxntid[1]) * std::max(1u, f.maxntid[2]));
  }
  // Physical registers are ptxas's to deal out, and it has no part in a run on the emulator: num_regs is 0.
  a.ptx_version = a.binary_version = r.model().compute_capability;
  a.max_dynamic_shared_size_bytes = static_cast<int>(kernel.max_dynamic_smem);
  a.preferred_shmem_carveout = kernel.carveout;
  a.cluster_dim_must_be_set = f.reqnctapercluster[0] != 0 ? 1 : 0;
  a.required_cluster_width = static_cast<int>(f.reqnctapercluster[0]);
  a.required_cluster_height = static_cast<int>(f.reqnctapercluster[1]);
  a.required_cluster_depth = static_cast<int>(f.reqnctapercluster[2]);
  a.non_portable_cluster_size_allowed = kernel.non_portable_cluster ? 1 : 0;
  return a;
}

int active_blocks(Runtime& r, const Kernel& kernel, int block_size, size_t dynamic_smem) {
  const bool allowed = dynamic_smem <= kernel.max_dynamic_smem;
  return allowed ? static_cast<int>(r.resident_blocks(kernel, static_cast<uint64_t>(block_size), dynamic_smem)) : 0;
}

Outcome largest_cluster(Runtime& r, const Kernel& kernel, const LaunchShape& shape, int* size) {
  const bool fits = r.resident_blocks(kernel, shape.block.volume(), shape.dynamic_smem) != 0;
  *size = !fits ? 0 : kernel.non_portable_cluster ? 16 : 8;
  return {};
}

Outcome resident_clusters(Runtime& r, const Kernel& kernel, const LaunchShape& shape, int* clusters) {
  // A cluster lies in one GPC; how many of a device's SMs each has is not known, so that this is an upper bound.
  machine::LaunchConfig config;
  config.grid = shape.grid;
  config.cluster = shape.cluster;
  const uint64_t size = shape.cluster.volume() > 1 ? shape.cluster.volume()
                                                   : machine::effective_cluster(*kernel.program, config).volume();
  const uint64_t most = kernel.non_portable_cluster ? 16 : 8;
  if (size > most) return {kInvalidClusterSize, fmt::format("a cluster of {} blocks; {} are allowed", size, most)};
  const uint64_t blocks = uint64_t{r.resident_blocks(kernel, shape.block.volume(), shape.dynamic_smem)} * r.model().sms;
  *clusters = static_cast<int>(blocks / std::max<uint64_t>(size, 1));
  return {};
}

Outcome available_smem(Runtime& r, const Kernel& kernel, int blocks, int block_size, size_t* bytes) {
  if (blocks <= 0 || block_size <= 0)
    return {kInvalidValue, fmt::format("{} blocks of {} threads", blocks, block_size)};
  const auto fits = [&](uint64_t smem) {
    return r.resident_blocks(kernel, static_cast<uint64_t>(block_size), smem) >= static_cast<uint32_t>(blocks);
  };
  if (!fits(0)) return {kInvalidValue, fmt::format("{} blocks of {} threads do not fit on an SM", blocks, block_size)};
  uint64_t most = 0;
  for (uint64_t step = uint64_t{1} << 18; step > 0; step /= 2) {
    if (fits(most + step)) most += step;
  }
  *bytes = most;
  return {};
}

}  // namespace handoff::runtime

using namespace handoff::runtime;  // NOLINT: what follows is the C interface over it

// --- registration: static constructors of the program call these before main ---

HANDOFF_API void** __cudaRegisterFatBinary(const void* wrapper) {
  Runtime& r = Runtime::get();
  const std::lock_guard<std::recursive_mutex> guard(r.lock());
  return reinterpret_cast<void**>(r.add_fat_binary(wrapper));
}
HANDOFF_API void __cudaRegisterFatBinaryEnd(void**) {}
HANDOFF_API void __cudaUnregisterFatBinary(void** handle) {
  Runtime& r = Runtime::get();
  const std::lock_guard<std::recursive_mutex> guard(r.lock());
  if (r.is_code(handle)) r.remove_code(reinterpret_cast<Code*>(handle));
}
HANDOFF_API void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, void*, void*,
                                        void*, void*, int*) {
  Runtime& r = Runtime::get();
  const std::lock_guard<std::recursive_mutex> guard(r.lock());
  r.register_function(host, *reinterpret_cast<Code*>(handle), name);
}
HANDOFF_API void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int, size_t bytes, int, int) {
  Runtime& r = Runtime::get();
  const std::lock_guard<std::recursive_mutex> guard(r.lock());
  r.register_variable(host, *reinterpret_cast<Code*>(handle), name, bytes);
}
HANDOFF_API void __cudaRegisterManagedVar(void** handle, void** host, char*, const char* name, int, size_t, int, int) {
  Runtime& r = Runtime::get();
  const std::lock_guard<std::recursive_mutex> guard(r.lock());
  r.register_managed(host, *reinterpret_cast<Code*>(handle), name);
}
HANDOFF_API char __cudaInitModule(void** handle) {
  // The host is about to use a managed variable of this code, whose address it has once the code is placed.
  Runtime& r = Runtime::get();
  const std::lock_guard<std::recursive_mutex> guard(r.lock());
  const Outcome placed = r.place(*reinterpret_cast<Code*>(handle));
  if (placed.code != kSuccess) r.tell_failed("__cudaInitModule", placed);
  return 1;
}

// --- launches ---

HANDOFF_API unsigned __cudaPushCallConfiguration(AbiDim3 grid, AbiDim3 block, size_t shared_bytes, Stream* stream) {
  pending_configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}
HANDOFF_API Error __cudaPopCallConfiguration(AbiDim3* grid, AbiDim3* block, size_t* shared_bytes, void* stream) {
  if (pending_configurations.empty()) return kInvalidConfiguration;
  const CallConfiguration c = pending_configurations.back();
  pending_configurations.pop_back();
  *grid = c.grid;
  *block = c.block;
  *shared_bytes = c.shared_bytes;
  *static_cast<Stream**>(stream) = c.stream;
  return kSuccess;
}
HANDOFF_API Error __cudaGetKernel(Kernel** out, const void* function) {
  return call("__cudaGetKernel", [&](Runtime& r) -> Outcome {
    *out = r.find_kernel(function);
    return *out == nullptr ? no_kernel() : Outcome{};
  });
}
HANDOFF_API Error __cudaLaunchKernel(Kernel* kernel, AbiDim3 grid, AbiDim3 block, void** args, size_t shared_bytes,
                                     Stream* stream) {
  return call("cudaLaunchKernel", [&](Runtime& r) {
    return launch(r, kernel, {dim_of(grid), dim_of(block), {}, shared_bytes, false}, args, stream);
  });
}
HANDOFF_API Error cudaLaunchKernel(const void* function, AbiDim3 grid, AbiDim3 block, void** args, size_t shared_bytes,
                                   Stream* stream) {
  return call("cudaLaunchKernel", [&](Runtime& r) {
    return launch(r, function, {dim_of(grid), dim_of(block), {}, shared_bytes, false}, args, stream);
  });
}
HANDOFF_API Error cudaLaunchCooperativeKernel(const void* function, AbiDim3 grid, AbiDim3 block, void** args,
                                              size_t shared_bytes, Stream* stream) {
  return call("cudaLaunchCooperativeKernel", [&](Runtime& r) {
    return launch(r, function, {dim_of(grid), dim_of(block), {}, shared_bytes, true}, args, stream);
  });
}
HANDOFF_API Error cudaLaunchKernelExC(const RuntimeLaunchConfig* config, const void* function, void** args) {
  return call("cudaLaunchKernelExC",
              [&](Runtime& r) { return launch(r, function, shape_of(*config), args, config->stream); });
}
HANDOFF_API Error cudaLaunchHostFunc(Stream* stream, void (*function)(void*), void* data) {
  if (function == nullptr) {
    return call("cudaLaunchHostFunc", [](Runtime&) { return Outcome{kInvalidValue, "no function"}; });
  }
  return enqueue_host("cudaLaunchHostFunc", stream, [=] { function(data); });
}
HANDOFF_API Error cudaStreamAddCallback(Stream* stream, void (*function)(Stream*, Error, void*), void* data,
                                        unsigned flags) {
  const Error error = call("cudaStreamAddCallback", [&](Runtime& r) -> Outcome {
    if (function == nullptr || flags != 0) return {kInvalidValue, "flags, or no function"};
    return check_not_captured(r, stream);
  });
  return error != kSuccess ? error
                           : enqueue_host("cudaStreamAddCallback", stream, [=] { function(stream, kSuccess, data); });
}

// --- kernels and their attributes ---

HANDOFF_API Error cudaGetKernel(Kernel** out, const void* function) {
  return call("cudaGetKernel", [&](Runtime& r) -> Outcome {
    *out = r.find_kernel(function);
    return *out == nullptr ? no_kernel() : Outcome{};
  });
}
HANDOFF_API Error cudaGetFuncBySymbol(Kernel** out, const void* function) {
  return call("cudaGetFuncBySymbol", [&](Runtime& r) { return kernel_for(r, function, out); });
}
HANDOFF_API Error cudaFuncGetName(const char** name, const void* function) {
  return call("cudaFuncGetName", [&](Runtime& r) -> Outcome {
    const Kernel* const kernel = r.find_kernel(function);
    if (kernel == nullptr) return no_kernel();
    *name = kernel->name.c_str();
    return {};
  });
}
HANDOFF_API Error cudaFuncSetAttribute(const void* function, int attribute, int value) {
  return call("cudaFuncSetAttribute", [&](Runtime& r) {
    Kernel* kernel = nullptr;
    Outcome found = kernel_for(r, function, &kernel);
    return found.code != kSuccess ? found : set_attribute(r, *kernel, attribute, value);
  });
}
HANDOFF_API Error cudaFuncSetCacheConfig(const void* function, int) {
  return call("cudaFuncSetCacheConfig",
              [&](Runtime& r) { return r.find_kernel(function) == nullptr ? no_kernel() : Outcome{}; });
}
HANDOFF_API Error cudaFuncGetAttributes(FunctionAttributes* out, const void* function) {
  return call("cudaFuncGetAttributes", [&](Runtime& r) {
    Kernel* kernel = nullptr;
    Outcome found = kernel_for(r, function, &kernel);
    if (found.code == kSuccess) *out = attributes_of(r, *kernel);
    return found;
  });
}
HANDOFF_API Error cudaFuncGetParamInfo(const void* function, size_t index, size_t* offset, size_t* size) {
  return call("cudaFuncGetParamInfo", [&](Runtime& r) -> Outcome {
    Kernel* kernel = nullptr;
    Outcome found = kernel_for(r, function, &kernel);
    if (found.code != kSuccess) return found;
    const auto& parameters = kernel->program->parameters;
    if (index >= parameters.size()) return {kInvalidValue, fmt::format("it has {} parameters", parameters.size())};
    *offset = parameters[index].offset;
    if (size != nullptr) *size = parameters[index].size;
    return {};
  });
}

// --- occupancy: threads, blocks and shared memory limit it; registers are not known ---

HANDOFF_API Error cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function,
                                                                         int block_size, size_t dynamic_smem,
                                                                         unsigned) {
  return call("cudaOccupancyMaxActiveBlocksPerMultiprocessor", [&](Runtime& r) -> Outcome {
    Kernel* kernel = nullptr;
    Outcome found = kernel_for(r, function, &kernel);
    if (found.code != kSuccess) return found;
    if (block_size <= 0) return {kInvalidValue, fmt::format("a block of {} threads", block_size)};
    *blocks = active_blocks(r, *kernel, block_size, dynamic_smem);
    return {};
  });
}
HANDOFF_API Error cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int block_size,
                                                                size_t dynamic_smem) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, dynamic_smem, 0);
}
HANDOFF_API Error cudaOccupancyMaxPotentialClusterSize(int* size, const void* function,
                                                       const RuntimeLaunchConfig* config) {
  return call("cudaOccupancyMaxPotentialClusterSize", [&](Runtime& r) -> Outcome {
    Kernel* kernel = nullptr;
    Outcome found = kernel_for(r, function, &kernel);
    return found.code == kSuccess ? largest_cluster(r, *kernel, shape_of(*config), size) : found;
  });
}
HANDOFF_API Error cudaOccupancyMaxActiveClusters(int* clusters, const void* function,
                                                 const RuntimeLaunchConfig* config) {
  return call("cudaOccupancyMaxActiveClusters", [&](Runtime& r) -> Outcome {
    Kernel* kernel = nullptr;
    Outcome found = kernel_for(r, function, &kernel);
    return found.code == kSuccess ? resident_clusters(r, *kernel, shape_of(*config), clusters) : found;
  });
}
HANDOFF_API Error cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* function, int blocks,
                                                            int block_size) {
  return call("cudaOccupancyAvailableDynamicSMemPerBlock", [&](Runtime& r) -> Outcome {
    Kernel* kernel = nullptr;
    Outcome found = kernel_for(r, function, &kernel);
    return found.code == kSuccess ? available_smem(r, *kernel, blocks, block_size, bytes) : found;
  });
}

// --- programs built with --default-stream per-thread ---

HANDOFF_API decltype(__cudaLaunchKernel) __cudaLaunchKernel_ptsz __attribute__((alias("__cudaLaunchKernel")));
HANDOFF_API decltype(cudaLaunchKernel) cudaLaunchKernel_ptsz __attribute__((alias("cudaLaunchKernel")));
HANDOFF_API decltype(cudaLaunchKernelExC) cudaLaunchKernelExC_ptsz __attribute__((alias("cudaLaunchKernelExC")));
HANDOFF_API decltype(cudaStreamAddCallback) cudaStreamAddCallback_ptsz __attribute__((alias("cudaStreamAddCallback")));
HANDOFF_API decltype(cudaLaunchHostFunc) cudaLaunchHostFunc_ptsz __attribute__((alias("cudaLaunchHostFunc")));
HANDOFF_API decltype(cudaLaunchCooperativeKernel) cudaLaunchCooperativeKernel_ptsz
    __attribute__((alias("cudaLaunchCooperativeKernel")));
