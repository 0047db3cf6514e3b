#include "grader/emulator/machine/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstring>
#include <iterator>
#include <utility>

namespace handoff::machine {
namespace {

constexpr uint64_t kAlign = 512;
constexpr uint64_t kGuard = 4096;
/// A freed range of so many bytes gives its pages back: at once where it rests, which may be for long; else only where
/// the next owner is not likely to want them again.
constexpr uint64_t kDropResting = 64 << 10, kDropFree = 1 << 20;

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
  auto hole = holes_.find(need);
  if (hole != holes_.end() && adopted_in(hole->second, need) != nullptr) hole = holes_.end();
  if (hole == holes_.end() && need > arena_size_ - next_) {  // full: piece together what was freed
    end_rest(0, 0);
    merge_holes();
    hole = holes_.lower_bound(need);
  }
  if (hole != holes_.end()) {
    const auto [bytes, at] = *hole;
    offset = at - kGlobalBase;
    holes_.erase(hole);
    if (bytes > need) holes_.emplace(bytes - need, at + need);
  } else {
    // The host may have memory at addresses of the arena, which a program may have made known to kernels.
    while (const Allocation* other = adopted_in(kGlobalBase + next_, need)) {
      next_ = (other->base + other->size - kGlobalBase + kAlign - 1) / kAlign * kAlign;
    }
    if (next_ > arena_size_ || need > arena_size_ - next_) return nullptr;
    offset = next_;
    next_ += need;
  }
  Allocation a{kGlobalBase + offset, size, arena_ + offset, std::move(name), writable, false};
  std::memset(a.host, kPoison, size);
  in_use_ += size;
  return &(allocations_[a.base] = std::move(a));
}

const Allocation* GlobalMemory::adopted_in(uint64_t base, uint64_t size) const {
  if (adopted_ == 0) return nullptr;
  auto it = allocations_.lower_bound(base + size);
  while (it != allocations_.begin()) {
    --it;
    if (it->second.adopted && it->first + it->second.size > base) return &it->second;
    if (it->first < base) break;
  }
  return nullptr;
}

const Allocation* GlobalMemory::adopt(std::byte* host, uint64_t size, std::string name, bool writable) {
  const auto base = reinterpret_cast<uint64_t>(host);
  const auto overlaps = [&](uint64_t other, uint64_t bytes) { return base < other + bytes && other < base + size; };
  if (size == 0 || overlaps(kSharedWindow, kWindowSize) || overlaps(kLocalWindow, kWindowSize)) return nullptr;
  const auto next = allocations_.lower_bound(base);
  if (next != allocations_.end() && next->first < base + size) return nullptr;
  if (next != allocations_.begin() && overlaps(std::prev(next)->first, std::prev(next)->second.size)) return nullptr;
  ++adopted_;
  return &(allocations_[base] = {base, size, host, std::move(name), writable, true});
}

bool GlobalMemory::free(uint64_t base) {
  auto it = allocations_.find(base);
  if (it == allocations_.end()) return false;
  if (it->second.adopted) {
    --adopted_;
    allocations_.erase(it);
    last_ = nullptr;
    return true;
  }
  const uint64_t need = padded(it->second.size);
  if (need > (quarantine_blocks_ > 0 ? kDropResting : kDropFree)) {
    const auto offset = (base - kGlobalBase + kGuard - 1) / kGuard * kGuard;
    const uint64_t end = (base - kGlobalBase + it->second.size) / kGuard * kGuard;
    if (end > offset) madvise(arena_ + offset, end - offset, MADV_DONTNEED);
  }
  in_use_ -= it->second.size;
  if (need <= quarantine_bytes_ / 2) {
    resting_.push_back({need, base});
    resting_bytes_ += need;
    end_rest(quarantine_bytes_, quarantine_blocks_);
  } else {
    holes_.emplace(need, base);
  }
  allocations_.erase(it);
  last_ = nullptr;
  return true;
}

void GlobalMemory::set_quarantine(uint64_t bytes, size_t blocks) {
  quarantine_bytes_ = bytes;
  quarantine_blocks_ = blocks;
  end_rest(bytes, blocks);
}

void GlobalMemory::end_rest(uint64_t bytes, size_t blocks) {
  while (resting_bytes_ > bytes || resting_.size() > blocks) {
    holes_.emplace(resting_.front().size, resting_.front().base);
    resting_bytes_ -= resting_.front().size;
    resting_.pop_front();
  }
}

void GlobalMemory::merge_holes() {
  std::map<uint64_t, uint64_t> by_base;  // base → padded size
  for (const auto& [size, base] : holes_) by_base[base] = size;
  holes_.clear();
  for (auto it = by_base.begin(); it != by_base.end();) {
    const uint64_t base = it->first;
    uint64_t end = base;
    for (; it != by_base.end() && it->first == end; ++it) end += it->second;
    if (end == kGlobalBase + next_) {
      next_ = base - kGlobalBase;
    } else {
      holes_.emplace(end - base, base);
    }
  }
}

void GlobalMemory::free_all() {
  while (!allocations_.empty()) free(allocations_.begin()->first);
  holes_.clear();
  resting_.clear();
  resting_bytes_ = 0;
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
