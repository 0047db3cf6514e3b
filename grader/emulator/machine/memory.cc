#include "grader/emulator/machine/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstring>

namespace handoff::machine {
namespace {

constexpr uint64_t kAlign = 512;
constexpr uint64_t kGuard = 4096;

uint64_t padded(uint64_t size) { return (size + kAlign - 1) / kAlign * kAlign + kGuard; }

}  // namespace

GlobalMemory::GlobalMemory() {
  // Address space only: pages appear when they are touched. A machine that limits address space gets a smaller arena.
  for (uint64_t size = uint64_t{256} << 30; size >= (uint64_t{64} << 20); size /= 2) {
    void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED) {
      arena_ = static_cast<std::byte*>(p);
      arena_size_ = size;
      return;
    }
  }
}

GlobalMemory::~GlobalMemory() {
  if (arena_ != nullptr) munmap(arena_, arena_size_);
}

const Allocation* GlobalMemory::allocate(uint64_t size, std::string name, bool writable) {
  if (size == 0) size = 1;
  if (size > arena_size_) return nullptr;
  const uint64_t need = padded(size);
  uint64_t offset = 0;
  if (auto hole = holes_.find(need); hole != holes_.end()) {
    offset = hole->second - kGlobalBase;
    holes_.erase(hole);
  } else {
    if (need > arena_size_ - next_) return nullptr;
    offset = next_;
    next_ += need;
  }
  Allocation a{kGlobalBase + offset, size, arena_ + offset, std::move(name), writable};
  std::memset(a.host, kPoison, size);
  in_use_ += size;
  return &(allocations_[a.base] = std::move(a));
}

bool GlobalMemory::free(uint64_t base) {
  auto it = allocations_.find(base);
  if (it == allocations_.end()) return false;
  const uint64_t need = padded(it->second.size);
  if (need > (1u << 20)) {
    const auto offset = (base - kGlobalBase + kGuard - 1) / kGuard * kGuard;
    const uint64_t end = (base - kGlobalBase + it->second.size) / kGuard * kGuard;
    if (end > offset) madvise(arena_ + offset, end - offset, MADV_DONTNEED);
  }
  in_use_ -= it->second.size;
  holes_.emplace(need, base);
  allocations_.erase(it);
  last_ = nullptr;
  return true;
}

void GlobalMemory::free_all() {
  while (!allocations_.empty()) free(allocations_.begin()->first);
  holes_.clear();
  next_ = 0;
}

void GlobalMemory::rename(uint64_t base, std::string name) {
  if (auto it = allocations_.find(base); it != allocations_.end()) it->second.name = std::move(name);
}

const Allocation* GlobalMemory::find_slow(uint64_t address, uint64_t bytes) const {
  auto it = allocations_.upper_bound(address);
  if (it == allocations_.begin()) return nullptr;
  --it;
  const Allocation& a = it->second;
  if (address - a.base >= a.size || bytes > a.size - (address - a.base)) return nullptr;
  last_ = &a;
  return last_;
}

std::string GlobalMemory::describe(uint64_t address) const {
  const auto named = [](const Allocation& a) {
    return a.name.empty() ? fmt::format("the allocation at {:#x} ({} bytes)", a.base, a.size)
                          : fmt::format("`{}` ({} bytes)", a.name, a.size);
  };
  auto it = allocations_.upper_bound(address);
  if (it != allocations_.begin()) {
    const Allocation& before = std::prev(it)->second;
    const uint64_t past = address - before.base;
    if (past < before.size) return fmt::format("byte {} of {}", past, named(before));
    if (past - before.size < (uint64_t{1} << 30))
      return fmt::format("{} bytes past the end of {}", past - before.size, named(before));
  }
  if (it != allocations_.end() && it->first - address < (uint64_t{1} << 30)) {
    return fmt::format("{} bytes before {}", it->first - address, named(it->second));
  }
  if (address < 65536) return "a null pointer or an offset from one";
  return "in no allocation";
}

}  // namespace handoff::machine
