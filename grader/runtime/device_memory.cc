// Tested by device_memory_test.cc.
//
// Device addresses are the emulator's: numbers that mean nothing to the host, so that a host which follows one faults,
// as it does with a real device. Managed and page-locked memory has one address for both sides. Its pages in the arena
// are replaced by shared ones, and these are mapped a second time, at the device address. An allocation has a guard of
// a page's size behind it (memory.h), so its pages hold nothing else.
#include "grader/runtime/device_memory.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <iterator>

namespace handoff::runtime {
namespace {

constexpr size_t kMaxFreed = 4096;  // allocations that are remembered after their end, and whose addresses rest
constexpr uint64_t kMaxResting = uint64_t{64}
                                 << 30;  // bytes of addresses that rest; the pages behind them are given back
constexpr uint64_t kPage = 4096;         // bytes; the guard's size, see memory.h
constexpr int kAttempts = 8;             // to find device addresses that are reserved
// The range of device addresses (memory.cc), and the pieces in which it is reserved: where the libraries of the program
// lie in it, the rest can still be had.
constexpr uint64_t kPiece = uint64_t{64} << 20, kPieces = 4096;
constexpr size_t kMaxFrames = 24;  // of a stack, those of this library included

uint64_t page_of(uint64_t address) { return address / kPage * kPage; }
uint64_t page_after(uint64_t address) { return page_of(address + kPage - 1); }

/// Takes addresses that are free; false: some are not.
bool reserve(uint64_t address, uint64_t bytes) {
  void* const wanted = reinterpret_cast<void*>(address);
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  void* const got = mmap(wanted, bytes, PROT_NONE, kFlags, -1, 0);
  if (got == MAP_FAILED || got == wanted) return got == wanted;
  munmap(got, bytes);  // a kernel before 4.17 takes the address for a hint
  return false;
}

/// Where the file that holds `address` was loaded, and its path.
const link_map* object_of(uintptr_t address) {
  Dl_info info;
  link_map* map = nullptr;
  if (dladdr1(reinterpret_cast<void*>(address), &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) {
    return nullptr;
  }
  return map;
}

std::string path_of(const link_map& map) {
  if (map.l_name != nullptr && *map.l_name != '\0') return map.l_name;
  char path[PATH_MAX];  // the program itself has no name
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, static_cast<size_t>(length)) : std::string();
}

}  // namespace

CallStack host_stack() {
  CallStack stack{};
  void* frames[kMaxFrames];
  const int count = backtrace(frames, kMaxFrames);
  const link_map* const own = object_of(reinterpret_cast<uintptr_t>(&host_stack));
  size_t used = 0;
  for (int i = 0; i < count && used < stack.size(); ++i) {
    // The call stands before the address to which it returns.
    const uintptr_t call = reinterpret_cast<uintptr_t>(frames[i]) - 1;
    if (object_of(call) != own) stack[used++] = call;
  }
  return stack;
}

HostFrames describe_stack(const CallStack& stack) {
  HostFrames frames;
  for (const uintptr_t call : stack) {
    const link_map* const map = call == 0 ? nullptr : object_of(call);
    if (map != nullptr) frames.push_back(fmt::format("{}+{:#x}", path_of(*map), call - map->l_addr));
  }
  return frames;
}

ReservedAddresses::ReservedAddresses() : pieces_(kPieces) {
  if (reserve(machine::kGlobalBase, kPieces * kPiece)) {
    pieces_.assign(kPieces, true);
    return;
  }
  for (uint64_t i = 0; i < kPieces; ++i) pieces_[i] = reserve(machine::kGlobalBase + i * kPiece, kPiece);
}

ReservedAddresses::~ReservedAddresses() {
  for (uint64_t i = 0; i < kPieces; ++i) {
    if (pieces_[i]) munmap(reinterpret_cast<void*>(machine::kGlobalBase + i * kPiece), kPiece);
  }
}

bool ReservedAddresses::holds(uint64_t address, uint64_t bytes) const {
  const uint64_t first = (address - machine::kGlobalBase) / kPiece;
  const uint64_t last = (address + bytes - 1 - machine::kGlobalBase) / kPiece;
  for (uint64_t i = first; i <= last; ++i) {
    if (i >= kPieces || !pieces_[i]) return false;
  }
  return true;
}

bool DeviceMemory::map_for_host(const machine::Allocation& allocation) {
  const uint64_t device = page_of(allocation.base);
  const uint64_t bytes = page_after(allocation.base + allocation.size) - device;
  std::byte* const arena = allocation.host - (allocation.base - device);
  if (!reserved_.holds(device, bytes)) return false;
  if (mmap(arena, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED ||
      mremap(arena, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, reinterpret_cast<void*>(device)) == MAP_FAILED) {
    return false;
  }
  shared_pages_[allocation.base] = arena;
  return true;
}

void DeviceMemory::unmap_for_host(const AllocationRecord& record) {
  const auto pages = shared_pages_.find(record.base);
  if (pages == shared_pages_.end()) return;
  const uint64_t device = page_of(record.base);
  const uint64_t bytes = page_after(record.base + std::max<uint64_t>(record.bytes, 1)) - device;
  // In place of what is mapped there: these cannot fail for want of addresses.
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (mmap(reinterpret_cast<void*>(device), bytes, PROT_NONE, kFlags, -1, 0) == MAP_FAILED ||
      mmap(pages->second, bytes, PROT_READ | PROT_WRITE, kFlags, -1, 0) == MAP_FAILED) {
    std::abort();
  }
  shared_pages_.erase(pages);
}

DeviceMemory::DeviceMemory() { global_.set_quarantine(kMaxResting, kMaxFreed); }

const AllocationRecord* DeviceMemory::allocate(uint64_t bytes, MemoryType type, const char* call) {
  std::string name = fmt::format("{} #{}", call, count_ + 1);
  std::vector<uint64_t> taken;  // device addresses at which the host has something
  const machine::Allocation* found = nullptr;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    found = global_.allocate(bytes, name);
    if (found == nullptr || type == MemoryType::Device || map_for_host(*found)) break;
    taken.push_back(found->base);
    found = nullptr;
  }
  for (const uint64_t base : taken) global_.free(base);
  if (found == nullptr) return nullptr;
  ++count_;
  AllocationRecord record{found->base, bytes, type, std::move(name), host_stack(), {}, Origin::Call, 0};
  return &(live_[record.base] = std::move(record));
}

const AllocationRecord* DeviceMemory::adopt(void* host, uint64_t bytes, unsigned flags, const char* call) {
  std::string name = fmt::format("{} #{}", call, count_ + 1);
  const machine::Allocation* const a = global_.adopt(static_cast<std::byte*>(host), bytes, name);
  if (a == nullptr) return nullptr;
  ++count_;
  AllocationRecord record{a->base,      bytes, MemoryType::Host,   std::move(name),
                          host_stack(), {},    Origin::Registered, flags};
  return &(live_[record.base] = std::move(record));
}

bool DeviceMemory::share_variable(uint64_t address, const std::string& name) {
  const machine::Allocation* const a = global_.find(address, 1);
  if (a == nullptr) return false;
  const std::vector<std::byte> initial(a->host, a->host + a->size);
  if (!map_for_host(*a)) return false;
  std::copy(initial.begin(), initial.end(), a->host);
  live_[a->base] = {a->base, a->size, MemoryType::Managed, name, {}, {}, Origin::Variable, 0};
  return true;
}

void DeviceMemory::set_flags(uint64_t base, unsigned flags) {
  if (const auto found = live_.find(base); found != live_.end()) found->second.flags = flags;
}

bool DeviceMemory::free(uint64_t base) {
  const auto found = live_.find(base);
  if (found == live_.end()) return false;
  found->second.freed = host_stack();
  unmap_for_host(found->second);
  global_.free(base);
  freed_.push_front(std::move(found->second));
  if (freed_.size() > kMaxFreed) freed_.pop_back();
  live_.erase(found);
  return true;
}

void DeviceMemory::free_all() {
  std::vector<uint64_t> bases;
  for (const auto& [base, record] : live_) {
    if (record.origin != Origin::Variable) bases.push_back(base);
  }
  for (const uint64_t base : bases) free(base);
}

const AllocationRecord* DeviceMemory::find(uint64_t address) const {
  const auto next = live_.upper_bound(address);
  if (next == live_.begin()) return nullptr;
  const AllocationRecord& record = std::prev(next)->second;
  return address - record.base < std::max<uint64_t>(record.bytes, 1) ? &record : nullptr;
}

const AllocationRecord* DeviceMemory::find_freed(uint64_t address) const {
  for (const AllocationRecord& record : freed_) {
    if (address - record.base < record.bytes) return &record;
  }
  return nullptr;
}

std::byte* DeviceMemory::host(uint64_t address, uint64_t bytes) const {
  const machine::Allocation* found = global_.find(address, std::max<uint64_t>(bytes, 1));
  return found == nullptr ? nullptr : found->host + (address - found->base);
}

std::string DeviceMemory::describe(uint64_t address) const {
  if (const AllocationRecord* gone = find_freed(address); gone != nullptr && !is_device(address)) {
    return fmt::format("{:#x} is in `{}`, which was freed", address, gone->name);
  }
  return fmt::format("{:#x} is {}", address, global_.describe(address));
}

ReportedDiagnostic DeviceMemory::explain(const Diagnostic& diagnostic) const {
  ReportedDiagnostic reported{diagnostic, {}};
  std::string& message = reported.diagnostic.message;
  // The emulator knows only what is alive, and names the neighbours of an address that is not.
  constexpr std::string_view kAddress = "global address 0x";
  const size_t at = message.find(kAddress);
  if (diagnostic.id == "out-of-bounds" && at != std::string::npos) {
    uint64_t address = 0;
    const char* const digits = message.data() + at + kAddress.size();
    const char* const end = std::from_chars(digits, message.data() + message.size(), address, 16).ptr;
    const AllocationRecord* const gone = is_device(address) ? nullptr : find_freed(address);
    if (gone != nullptr) {
      message = fmt::format("{}, byte {} of `{}` ({} bytes), which was freed",
                            std::string_view(message.data(), static_cast<size_t>(end - message.data())),
                            address - gone->base, gone->name, gone->bytes);
      reported.places.push_back({describe_stack(gone->allocated), "allocated here"});
      reported.places.push_back({describe_stack(gone->freed), "freed here"});
      return reported;
    }
  }
  for (const auto& [base, record] : live_) {
    if (message.find("`" + record.name + "`") != std::string::npos) {
      reported.places.push_back({describe_stack(record.allocated), "allocated here"});
    }
  }
  return reported;
}

}  // namespace handoff::runtime
