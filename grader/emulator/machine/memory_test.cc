#include "grader/emulator/machine/memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "grader/emulator/machine/random.h"

namespace handoff::machine {
namespace {

TEST(GlobalMemory, AllocationIsAlignedPoisonedAndNamed) {
  GlobalMemory memory;
  const Allocation* a = memory.allocate(100, "a");
  ASSERT_NE(a, nullptr);
  EXPECT_GE(a->base, kGlobalBase);
  EXPECT_EQ(a->base % 512, 0u);
  EXPECT_EQ(a->size, 100u);
  EXPECT_EQ(a->name, "a");
  EXPECT_TRUE(a->writable);
  EXPECT_TRUE(std::all_of(a->host, a->host + 100, [](std::byte b) { return b == std::byte{kPoison}; }));
  EXPECT_EQ(memory.bytes_in_use(), 100u);
}

TEST(GlobalMemory, SizeZeroIsOneByte) {
  GlobalMemory memory;
  const Allocation* a = memory.allocate(0, "");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->size, 1u);
}

TEST(GlobalMemory, FindNeedsAllBytesInside) {
  GlobalMemory memory;
  const Allocation* a = memory.allocate(64, "a");
  EXPECT_EQ(memory.find(a->base, 64), a);
  EXPECT_EQ(memory.find(a->base + 60, 4), a);
  EXPECT_EQ(memory.find(a->base + 61, 4), nullptr);
  EXPECT_EQ(memory.find(a->base + 64, 1), nullptr);
  EXPECT_EQ(memory.find(a->base - 1, 1), nullptr);
  EXPECT_EQ(memory.find(a->base, ~uint64_t{0}), nullptr);
  EXPECT_EQ(memory.find(0, 1), nullptr);
  EXPECT_EQ(memory.find(~uint64_t{0}, 1), nullptr);
}

TEST(GlobalMemory, GuardSpaceLiesBetweenAllocations) {
  GlobalMemory memory;
  const Allocation* a = memory.allocate(512, "a");
  const uint64_t end = a->base + a->size;
  const Allocation* b = memory.allocate(512, "b");
  EXPECT_GE(b->base, end + 4096);
  for (uint64_t at = end; at < b->base; at += 64) EXPECT_EQ(memory.find(at, 1), nullptr);
}

TEST(GlobalMemory, FreedMemoryIsReusedAndPoisonedAgain) {
  GlobalMemory memory;
  const uint64_t base = memory.allocate(1000, "a")->base;
  std::memset(memory.find(base, 1)->host, 0, 1000);
  EXPECT_TRUE(memory.free(base));
  EXPECT_EQ(memory.find(base, 1), nullptr);
  EXPECT_EQ(memory.bytes_in_use(), 0u);
  const Allocation* again = memory.allocate(1001, "b");  // the same after padding
  EXPECT_EQ(again->base, base);
  EXPECT_TRUE(std::all_of(again->host, again->host + 1001, [](std::byte b) { return b == std::byte{kPoison}; }));
}

TEST(GlobalMemory, FreedAddressesRestInQuarantine) {
  GlobalMemory memory;
  memory.set_quarantine(1 << 20, 3);
  const uint64_t first = memory.allocate(1000, "a")->base;
  memory.free(first);
  for (int i = 0; i < 3; ++i) {
    const uint64_t next = memory.allocate(1000, "b")->base;
    EXPECT_NE(next, first) << i;
    EXPECT_EQ(memory.find(first, 1), nullptr) << i;
    memory.free(next);
  }
  EXPECT_EQ(memory.allocate(1000, "c")->base, first);  // three were freed after it
}

TEST(GlobalMemory, TheQuarantineIsBoundedInBytes) {
  GlobalMemory memory;
  memory.set_quarantine(100'000, 1000);
  const uint64_t small = memory.allocate(40'000, "small")->base, other = memory.allocate(40'000, "other")->base;
  const uint64_t large = memory.allocate(60'000, "large")->base;  // more than half
  memory.free(large);
  EXPECT_EQ(memory.allocate(60'000, "again")->base, large);
  memory.free(small);
  memory.free(other);
  EXPECT_NE(memory.allocate(40'000, "again")->base, small);
  const uint64_t third = memory.allocate(40'000, "third")->base;
  memory.free(third);  // three of them do not fit
  EXPECT_EQ(memory.allocate(40'000, "again")->base, small);
}

TEST(GlobalMemory, WhatRestsGivesItsPagesBack) {
  GlobalMemory memory;
  memory.set_quarantine(1 << 24, 8);
  const Allocation* const a = memory.allocate(1 << 20, "a");
  std::byte* const page = a->host + 4096 - reinterpret_cast<uintptr_t>(a->host) % 4096;
  std::memset(a->host, 1, a->size);
  unsigned char resident = 0;
  ASSERT_EQ(mincore(page, 1, &resident), 0);
  EXPECT_EQ(resident & 1, 1);
  memory.free(a->base);
  ASSERT_EQ(mincore(page, 1, &resident), 0);
  EXPECT_EQ(resident & 1, 0);
}

/// A memory whose arena has 64 MiB: with less address space than twice that, it gets no more.
class SmallArena {
 public:
  SmallArena() {
    rlimit before{};
    getrlimit(RLIMIT_AS, &before);
    size_t pages = 0;  // of address space in use: the first number in the file
    std::ifstream("/proc/self/statm") >> pages;
    rlimit less = before;
    less.rlim_cur = pages * 4096 + (uint64_t{120} << 20);
    setrlimit(RLIMIT_AS, &less);
    memory_.emplace();
    setrlimit(RLIMIT_AS, &before);
  }
  GlobalMemory* operator->() { return &*memory_; }

 private:
  std::optional<GlobalMemory> memory_;
};

TEST(GlobalMemory, AFullArenaUsesWhatRests) {
  constexpr uint64_t kMiB = 1 << 20;
  SmallArena memory;
  memory->set_quarantine(64 * kMiB, 1000);
  const uint64_t a = memory->allocate(20 * kMiB, "a")->base, b = memory->allocate(20 * kMiB, "b")->base;
  ASSERT_EQ(memory->allocate(30 * kMiB, "full"), nullptr);
  memory->free(a);
  EXPECT_NE(memory->allocate(20 * kMiB, "c")->base, a);
  EXPECT_EQ(memory->allocate(20 * kMiB, "d")->base, a);
  EXPECT_EQ(memory->allocate(20 * kMiB, "full"), nullptr);
  memory->free(b);
  EXPECT_EQ(memory->allocate(10 * kMiB, "part")->base, b);
  EXPECT_NE(memory->allocate(9 * kMiB, "rest"), nullptr);
}

TEST(GlobalMemory, AFullArenaJoinsNeighbours) {
  constexpr uint64_t kMiB = 1 << 20;
  SmallArena memory;
  uint64_t bases[6];
  for (uint64_t& base : bases) base = memory->allocate(10 * kMiB, "a")->base;
  for (const int i : {2, 0, 1}) memory->free(bases[i]);
  EXPECT_EQ(memory->allocate(30 * kMiB, "b")->base, bases[0]);
  for (const int i : {3, 5, 4}) memory->free(bases[i]);
  // The guards of two, which the large one did not need, are in front of it.
  EXPECT_EQ(memory->allocate(33 * kMiB, "to the end")->base, bases[3] - 8192);
}

TEST(GlobalMemory, FreeOfAnythingElseFails) {
  GlobalMemory memory;
  const uint64_t base = memory.allocate(1000, "a")->base;
  EXPECT_FALSE(memory.free(base + 8));
  EXPECT_FALSE(memory.free(0));
  EXPECT_TRUE(memory.free(base));
  EXPECT_FALSE(memory.free(base));
}

TEST(GlobalMemory, TooLargeIsRefused) {
  GlobalMemory memory;
  EXPECT_EQ(memory.allocate(uint64_t{1} << 50, "huge"), nullptr);
  EXPECT_EQ(memory.allocate(~uint64_t{0}, "huge"), nullptr);
  EXPECT_NE(memory.allocate(16, "small"), nullptr);
}

TEST(GlobalMemory, FreeAllStartsOver) {
  GlobalMemory memory;
  const uint64_t first = memory.allocate(10, "a")->base;
  memory.allocate(2 << 20, "b");
  memory.free_all();
  EXPECT_EQ(memory.bytes_in_use(), 0u);
  EXPECT_EQ(memory.find(first, 1), nullptr);
  EXPECT_EQ(memory.allocate(10, "c")->base, first);
}

TEST(GlobalMemory, LiveAllocationsNeverOverlap) {
  GlobalMemory memory;
  Random random{5};
  std::map<uint64_t, uint64_t> live;  // base → size
  for (int step = 0; step < 4000; step++) {
    if (live.empty() || random.below(3) != 0) {
      const uint64_t size = 1 + random.below(20000);
      const Allocation* a = memory.allocate(size, "x");
      ASSERT_NE(a, nullptr);
      auto next = live.lower_bound(a->base);
      if (next != live.end()) {
        ASSERT_LE(a->base + size + 4096, next->first);
      }
      if (next != live.begin()) {
        ASSERT_LE(std::prev(next)->first + std::prev(next)->second + 4096, a->base);
      }
      live[a->base] = size;
    } else {
      auto it = std::next(live.begin(), static_cast<ptrdiff_t>(random.below(live.size())));
      ASSERT_TRUE(memory.free(it->first));
      live.erase(it);
    }
  }
}

TEST(GlobalMemory, DescribeNamesTheNeighbour) {
  GlobalMemory memory;
  const Allocation* a = memory.allocate(1024, "in");
  const uint64_t base = a->base;
  EXPECT_EQ(memory.describe(base + 5), "byte 5 of `in` (1024 bytes)");
  EXPECT_EQ(memory.describe(base + 1024), "0 bytes past the end of `in` (1024 bytes)");
  EXPECT_EQ(memory.describe(base + 1028), "4 bytes past the end of `in` (1024 bytes)");
  EXPECT_EQ(memory.describe(base - 16), "16 bytes before `in` (1024 bytes)");
  EXPECT_EQ(memory.describe(16), "a null pointer or an offset from one");
  EXPECT_EQ(memory.describe(uint64_t{1} << 40), "in no allocation");
  memory.rename(base, "weights");
  EXPECT_EQ(memory.describe(base), "byte 0 of `weights` (1024 bytes)");
  memory.rename(base, "");
  EXPECT_EQ(memory.describe(base), "byte 0 of the allocation at 0x7f0000000000 (1024 bytes)");
}

TEST(GlobalMemory, WindowsAreDisjoint) {
  EXPECT_TRUE(in_shared_window(kSharedWindow));
  EXPECT_TRUE(in_shared_window(kSharedWindow + kWindowSize - 1));
  EXPECT_FALSE(in_shared_window(kSharedWindow + kWindowSize));
  EXPECT_FALSE(in_shared_window(kSharedWindow - 1));
  EXPECT_TRUE(in_local_window(kLocalWindow));
  EXPECT_FALSE(in_local_window(kSharedWindow));
  EXPECT_FALSE(in_shared_window(kGlobalBase));
  EXPECT_FALSE(in_local_window(kGlobalBase));
}

}  // namespace

TEST(GlobalMemory, AdoptsMemoryOfTheHostAtItsOwnAddress) {
  GlobalMemory memory;
  std::vector<std::byte> host(1000);
  const auto base = reinterpret_cast<uint64_t>(host.data());
  const Allocation* a = memory.adopt(host.data(), host.size(), "host");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->base, base);
  EXPECT_EQ(memory.find(base + 999, 1), a);
  EXPECT_EQ(memory.find(base + 999, 2), nullptr);
  EXPECT_EQ(memory.bytes_in_use(), 0u);
  EXPECT_EQ(memory.adopt(host.data() + 500, 1000, "again"), nullptr);
  EXPECT_EQ(memory.adopt(host.data(), 0, "nothing"), nullptr);
  EXPECT_EQ(memory.adopt(reinterpret_cast<std::byte*>(kSharedWindow + 16), 16, "shared"), nullptr);
  EXPECT_TRUE(memory.free(base));
  EXPECT_FALSE(memory.free(base));
  EXPECT_EQ(memory.find(base, 1), nullptr);
}

TEST(GlobalMemory, AllocatesAroundWhatItAdopted) {
  GlobalMemory memory;
  // Only the address matters: nothing is read or written there.
  ASSERT_NE(memory.adopt(reinterpret_cast<std::byte*>(kGlobalBase + 8192), 100, "host"), nullptr);
  const Allocation* before = memory.allocate(64, "before");
  EXPECT_EQ(before->base, kGlobalBase);
  const Allocation* behind = memory.allocate(8192, "behind");
  EXPECT_GE(behind->base, kGlobalBase + 8292);
  memory.free_all();
}

}  // namespace handoff::machine
