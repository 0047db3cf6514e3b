// Stream-ordered allocation and memory pools (CUDA runtime API, "Stream Ordered Memory Allocator"; driver API, the
// same).
//
// A pool is an account here: memory comes from the one arena, and freed memory goes back there. It "reserves" what is
// in use, and of what was freed as much as its release threshold lets it keep.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "grader/runtime/driver.h"
#include "grader/runtime/graph.h"
#include "grader/runtime/pool.h"

namespace handoff::runtime {

/// cudaMemPool_t.
struct Pool {
  uint64_t threshold = 0;                    ///< bytes that it may keep
  uint64_t used = 0, used_high = 0;          ///< bytes
  uint64_t reserved = 0, reserved_high = 0;  ///< bytes
  uint64_t max_size = 0;                     ///< bytes; 0: all that there is
  int reuse[3] = {1, 1, 1};                  ///< whether it reuses memory in three ways: of no effect
};

namespace {

constexpr int kPinned = 1;  // cudaMemAllocationTypePinned: memory of the device

struct Pools {
  Pool standard;                          // the device's default pool
  Pool* current = &standard;              // from which cudaMallocAsync takes
  std::set<Pool*> alive{&standard};       // and not destroyed
  std::map<uint64_t, Pool*> allocations;  // by base
};
Pools& pools() {
  static auto* const kPools = new Pools;
  return *kPools;
}

Outcome check_pool(Pool* pool) {
  return pools().alive.count(pool) != 0 ? Outcome{} : Outcome{kInvalidValue, "it is not a memory pool"};
}

void take(Pool& pool, uint64_t bytes) {
  pool.used += bytes;
  pool.used_high = std::max(pool.used_high, pool.used);
  pool.reserved = std::max(pool.reserved, pool.used);
  pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
}

void keep_at_most(Pool& pool, uint64_t bytes) { pool.reserved = std::max(pool.used, std::min(pool.reserved, bytes)); }

Outcome allocate_from(Runtime& r, void** out, uint64_t bytes, Pool* pool, Stream* stream, const char* name) {
  Outcome outcome = check_stream(r, stream);
  if (outcome.code == kSuccess && out == nullptr) outcome = {kInvalidValue, "the pointer's address is null"};
  if (outcome.code == kSuccess) outcome = check_pool(pool);
  if (outcome.code == kSuccess && is_captured(stream)) outcome = {kNotSupported, "memory of a graph"};
  if (outcome.code != kSuccess) return outcome;
  if (pool->max_size != 0 && pool->used + bytes > pool->max_size) {
    return {kMemoryAllocation,
            fmt::format("{} bytes from a pool of {}, {} of them in use", bytes, pool->max_size, pool->used)};
  }
  outcome = allocate(r, out, bytes, MemoryType::Device, name);
  if (outcome.code != kSuccess || *out == nullptr) return outcome;
  pools().allocations[reinterpret_cast<uint64_t>(*out)] = pool;
  take(*pool, bytes);
  return outcome;
}

Outcome free_in(Runtime& r, void* p, Stream* stream) {
  Outcome outcome = check_stream(r, stream);
  if (outcome.code != kSuccess) return outcome;
  if (is_captured(stream)) return {kNotSupported, "memory of a graph"};
  return release(r, p, false);
}

Outcome create(Pool** out, const PoolProperties* p) {
  if (out == nullptr || p == nullptr) return {kInvalidValue, "a null pointer"};
  if (p->allocation_type != kPinned) return {kInvalidValue, fmt::format("allocation type {}", p->allocation_type)};
  if (p->location.type != LocationType::Device) return {kNotSupported, "a pool of the host's memory"};
  if (p->location.id != 0) return {kInvalidValue, fmt::format("device {}; there is one, 0", p->location.id)};
  if (p->handle_types != 0) return {kNotSupported, "a pool that other processes share"};
  *out = new Pool;
  (*out)->max_size = p->max_size;
  pools().alive.insert(*out);
  return {};
}

Outcome destroy(Pool* pool) {
  Outcome outcome = check_pool(pool);
  if (outcome.code != kSuccess) return outcome;
  if (pool == &pools().standard) return {kInvalidValue, "it is the device's default pool"};
  // Its allocations live on; the device falls back to its default pool.
  std::erase_if(pools().allocations, [&](const auto& a) { return a.second == pool; });
  if (pools().current == pool) pools().current = &pools().standard;
  pools().alive.erase(pool);
  delete pool;
  return {};
}

/// Reads, or with `write` sets, an attribute. `value` is an int for the ways of reuse, otherwise a uint64_t.
Outcome attribute(Pool* pool, PoolAttribute which, void* value, bool write) {
  Outcome outcome = check_pool(pool);
  if (outcome.code != kSuccess) return outcome;
  if (value == nullptr) return {kInvalidValue, "the value's address is null"};
  const auto number = [&](uint64_t& n) {
    if (write) std::memcpy(&n, value, sizeof n);
    if (!write) std::memcpy(value, &n, sizeof n);
    return Outcome{};
  };
  // A high mark can only be set to 0: it is then what is there now.
  const auto mark = [&](uint64_t& high, uint64_t now) -> Outcome {
    uint64_t wanted = 0;
    std::memcpy(&wanted, value, sizeof wanted);
    if (write && wanted != 0) return {kInvalidValue, "a high mark can only be set to 0"};
    if (write) high = now;
    return write ? Outcome{} : number(high);
  };
  switch (which) {
    case PoolAttribute::ReuseFollowEventDependencies:
    case PoolAttribute::ReuseAllowOpportunistic:
    case PoolAttribute::ReuseAllowInternalDependencies: {
      int& way = pool->reuse[static_cast<int>(which) - 1];
      if (write) std::memcpy(&way, value, sizeof way);
      if (!write) std::memcpy(value, &way, sizeof way);
      return {};
    }
    case PoolAttribute::ReleaseThreshold:
      return number(pool->threshold);
    case PoolAttribute::ReservedMemHigh:
      return mark(pool->reserved_high, pool->reserved);
    case PoolAttribute::UsedMemHigh:
      return mark(pool->used_high, pool->used);
    case PoolAttribute::ReservedMemCurrent:
      return write ? Outcome{kInvalidValue, "it can only be read"} : number(pool->reserved);
    case PoolAttribute::UsedMemCurrent:
      return write ? Outcome{kInvalidValue, "it can only be read"} : number(pool->used);
  }
  return {kInvalidValue, fmt::format("no attribute {}", static_cast<int>(which))};
}

Outcome trim(Pool* pool, size_t bytes) {
  Outcome outcome = check_pool(pool);
  if (outcome.code == kSuccess) keep_at_most(*pool, bytes);
  return outcome;
}

Outcome check_ordinal(int device) {
  return device == 0 ? Outcome{} : Outcome{kInvalidDevice, fmt::format("device {}; there is one, 0", device)};
}

Outcome get(Pool** out, int device, bool standard) {
  Outcome outcome = check_ordinal(device);
  if (outcome.code != kSuccess) return outcome;
  if (out == nullptr) return {kInvalidValue, "the pool's address is null"};
  *out = standard ? &pools().standard : pools().current;
  return {};
}

Outcome set(int device, Pool* pool) {
  Outcome outcome = check_ordinal(device);
  if (outcome.code == kSuccess) outcome = check_pool(pool);
  if (outcome.code == kSuccess) pools().current = pool;
  return outcome;
}

/// cudaMemAccessDesc.
struct AccessDescription {
  MemoryLocation location;
  int flags;
};
constexpr int kReadWrite = 3;

Outcome set_access(Pool* pool, const AccessDescription* list, size_t count) {
  Outcome outcome = check_pool(pool);
  for (size_t i = 0; i < count && outcome.code == kSuccess; ++i) {
    if (list[i].location.type != LocationType::Device) return {kInvalidValue, "it is not a device's"};
    outcome = check_ordinal(list[i].location.id);
    if (outcome.code == kSuccess && list[i].flags != kReadWrite) {
      return {kInvalidValue, "the device that has the pool reads and writes it"};
    }
  }
  return outcome;
}

Outcome get_access(int* flags, Pool* pool, const MemoryLocation* location) {
  Outcome outcome = check_pool(pool);
  if (outcome.code != kSuccess) return outcome;
  if (flags == nullptr || location == nullptr || location->type != LocationType::Device)
    return {kInvalidValue, "it is not a device's"};
  outcome = check_ordinal(location->id);
  if (outcome.code == kSuccess) *flags = kReadWrite;
  return outcome;
}

}  // namespace

void forget_pool_allocation(uint64_t base) {
  const auto found = pools().allocations.find(base);
  if (found == pools().allocations.end()) return;
  Pool& pool = *found->second;
  pools().allocations.erase(found);
  const AllocationRecord* const a = Runtime::get().memory().find(base);
  pool.used -= a == nullptr ? 0 : a->bytes;
  keep_at_most(pool, pool.threshold);
}

void reset_pools() {
  Pools& all = pools();
  for (Pool* pool : all.alive) {
    if (pool != &all.standard) delete pool;
  }
  all.allocations.clear();
  all.standard = {};
  all.current = &all.standard;
  all.alive = {&all.standard};
}

}  // namespace handoff::runtime

using namespace handoff::runtime;  // NOLINT: what follows is the C interface over it

HANDOFF_API Error cudaMallocAsync(void** out, size_t bytes, Stream* stream) {
  return call("cudaMallocAsync",
              [&](Runtime& r) { return allocate_from(r, out, bytes, pools().current, stream, "cudaMallocAsync"); });
}
HANDOFF_API Error cudaMallocFromPoolAsync(void** out, size_t bytes, Pool* pool, Stream* stream) {
  return call("cudaMallocFromPoolAsync",
              [&](Runtime& r) { return allocate_from(r, out, bytes, pool, stream, "cudaMallocFromPoolAsync"); });
}
HANDOFF_API Error cudaFreeAsync(void* p, Stream* stream) {
  return call("cudaFreeAsync", [&](Runtime& r) { return free_in(r, p, stream); });
}
HANDOFF_API Error cudaMemPoolCreate(Pool** out, const PoolProperties* p) {
  return call("cudaMemPoolCreate", [&](Runtime&) { return create(out, p); });
}
HANDOFF_API Error cudaMemPoolDestroy(Pool* pool) {
  return call("cudaMemPoolDestroy", [&](Runtime&) { return destroy(pool); });
}
HANDOFF_API Error cudaMemPoolSetAttribute(Pool* pool, PoolAttribute which, void* value) {
  return call("cudaMemPoolSetAttribute", [&](Runtime&) { return attribute(pool, which, value, true); });
}
HANDOFF_API Error cudaMemPoolGetAttribute(Pool* pool, PoolAttribute which, void* value) {
  return call("cudaMemPoolGetAttribute", [&](Runtime&) { return attribute(pool, which, value, false); });
}
HANDOFF_API Error cudaMemPoolTrimTo(Pool* pool, size_t bytes) {
  return call("cudaMemPoolTrimTo", [&](Runtime&) { return trim(pool, bytes); });
}
HANDOFF_API Error cudaMemPoolSetAccess(Pool* pool, const AccessDescription* list, size_t count) {
  return call("cudaMemPoolSetAccess", [&](Runtime&) { return set_access(pool, list, count); });
}
HANDOFF_API Error cudaMemPoolGetAccess(int* flags, Pool* pool, MemoryLocation* location) {
  return call("cudaMemPoolGetAccess", [&](Runtime&) { return get_access(flags, pool, location); });
}
HANDOFF_API Error cudaDeviceGetDefaultMemPool(Pool** out, int device) {
  return call("cudaDeviceGetDefaultMemPool", [&](Runtime&) { return get(out, device, true); });
}
HANDOFF_API Error cudaDeviceGetMemPool(Pool** out, int device) {
  return call("cudaDeviceGetMemPool", [&](Runtime&) { return get(out, device, false); });
}
HANDOFF_API Error cudaDeviceSetMemPool(int device, Pool* pool) {
  return call("cudaDeviceSetMemPool", [&](Runtime&) { return set(device, pool); });
}

// --- the driver's ---

HANDOFF_API Result cuMemAllocAsync(Address* out, size_t bytes, Stream* stream) {
  return driver_call("cuMemAllocAsync", [&](Runtime& r) -> Outcome {
    return allocate_from(r, reinterpret_cast<void**>(out), bytes, pools().current, stream, "cuMemAllocAsync");
  });
}
HANDOFF_API Result cuMemAllocFromPoolAsync(Address* out, size_t bytes, Pool* pool, Stream* stream) {
  return driver_call("cuMemAllocFromPoolAsync", [&](Runtime& r) {
    return allocate_from(r, reinterpret_cast<void**>(out), bytes, pool, stream, "cuMemAllocFromPoolAsync");
  });
}
HANDOFF_API Result cuMemFreeAsync(Address p, Stream* stream) {
  return driver_call("cuMemFreeAsync", [&](Runtime& r) { return free_in(r, pointer(p), stream); });
}
HANDOFF_API Result cuMemPoolCreate(Pool** out, const PoolProperties* p) {
  return driver_call("cuMemPoolCreate", [&](Runtime&) { return create(out, p); });
}
HANDOFF_API Result cuMemPoolDestroy(Pool* pool) {
  return driver_call("cuMemPoolDestroy", [&](Runtime&) { return destroy(pool); });
}
HANDOFF_API Result cuMemPoolSetAttribute(Pool* pool, PoolAttribute which, void* value) {
  return driver_call("cuMemPoolSetAttribute", [&](Runtime&) { return attribute(pool, which, value, true); });
}
HANDOFF_API Result cuMemPoolGetAttribute(Pool* pool, PoolAttribute which, void* value) {
  return driver_call("cuMemPoolGetAttribute", [&](Runtime&) { return attribute(pool, which, value, false); });
}
HANDOFF_API Result cuMemPoolTrimTo(Pool* pool, size_t bytes) {
  return driver_call("cuMemPoolTrimTo", [&](Runtime&) { return trim(pool, bytes); });
}
HANDOFF_API Result cuMemPoolSetAccess(Pool* pool, const AccessDescription* list, size_t count) {
  return driver_call("cuMemPoolSetAccess", [&](Runtime&) { return set_access(pool, list, count); });
}
HANDOFF_API Result cuMemPoolGetAccess(int* flags, Pool* pool, MemoryLocation* location) {
  return driver_call("cuMemPoolGetAccess", [&](Runtime&) { return get_access(flags, pool, location); });
}
HANDOFF_API Result cuDeviceGetDefaultMemPool(Pool** out, int device) {
  return driver_call("cuDeviceGetDefaultMemPool", [&](Runtime&) { return get(out, device, true); });
}
HANDOFF_API Result cuDeviceGetMemPool(Pool** out, int device) {
  return driver_call("cuDeviceGetMemPool", [&](Runtime&) { return get(out, device, false); });
}
HANDOFF_API Result cuDeviceSetMemPool(int device, Pool* pool) {
  return driver_call("cuDeviceSetMemPool", [&](Runtime&) { return set(device, pool); });
}

// --- programs built with --default-stream per-thread ---

HANDOFF_API decltype(cudaMallocAsync) cudaMallocAsync_ptsz __attribute__((alias("cudaMallocAsync")));
HANDOFF_API decltype(cudaMallocFromPoolAsync) cudaMallocFromPoolAsync_ptsz
    __attribute__((alias("cudaMallocFromPoolAsync")));
HANDOFF_API decltype(cudaFreeAsync) cudaFreeAsync_ptsz __attribute__((alias("cudaFreeAsync")));
HANDOFF_API decltype(cuMemAllocAsync) cuMemAllocAsync_ptsz __attribute__((alias("cuMemAllocAsync")));
HANDOFF_API decltype(cuMemAllocFromPoolAsync) cuMemAllocFromPoolAsync_ptsz
    __attribute__((alias("cuMemAllocFromPoolAsync")));
HANDOFF_API decltype(cuMemFreeAsync) cuMemFreeAsync_ptsz __attribute__((alias("cuMemFreeAsync")));
