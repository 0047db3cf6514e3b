#include "grader/runtime/device_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace handoff::runtime {
namespace {

using ::testing::HasSubstr;

Diagnostic out_of_bounds_at(uint64_t address) {
  Diagnostic d;
  d.id = "out-of-bounds";
  char text[64];
  std::snprintf(text, sizeof text, "lane 0 reads 4 bytes at global address %#llx, in no allocation",
                static_cast<unsigned long long>(address));
  d.message = text;
  return d;
}

TEST(DeviceMemory, HostMemoryHasOneAddressForBothSides) {
  DeviceMemory memory;
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{4096}, uint64_t{100'001}}) {
    const AllocationRecord* const before = memory.allocate(100, MemoryType::Device, "cudaMalloc");
    std::memset(memory.host(before->base, 100), 7, 100);
    const AllocationRecord* const a = memory.allocate(bytes, MemoryType::Managed, "cudaMallocManaged");
    const AllocationRecord* const behind = memory.allocate(100, MemoryType::Device, "cudaMalloc");
    ASSERT_NE(a, nullptr);
    auto* const mine = reinterpret_cast<std::byte*>(a->base);
    std::memset(mine, 1, bytes);
    EXPECT_EQ(memory.host(a->base, bytes)[bytes - 1], std::byte{1});
    memory.host(a->base, bytes)[0] = std::byte{2};
    EXPECT_EQ(mine[0], std::byte{2});
    EXPECT_EQ(memory.host(before->base, 100)[99], std::byte{7});
    EXPECT_EQ(memory.host(behind->base, 100)[0], std::byte{0xff});
    EXPECT_TRUE(memory.free(a->base));
    EXPECT_EQ(memory.host(before->base, 100)[99], std::byte{7});
  }
}

TEST(DeviceMemory, FreesWhatThereIsOnce) {
  DeviceMemory memory;
  const uint64_t base = memory.allocate(64, MemoryType::Device, "cudaMalloc")->base;
  EXPECT_FALSE(memory.free(base + 1));
  EXPECT_TRUE(memory.free(base));
  EXPECT_FALSE(memory.free(base));
  EXPECT_EQ(memory.find(base), nullptr);
  ASSERT_NE(memory.find_freed(base + 63), nullptr);
  EXPECT_EQ(memory.find_freed(base + 64), nullptr);
  EXPECT_THAT(memory.describe(base), HasSubstr("`cudaMalloc #1`, which was freed"));
}

TEST(DeviceMemory, ExplainsAnAddressThatWasFreed) {
  DeviceMemory memory;
  const uint64_t base = memory.allocate(64, MemoryType::Device, "cudaMalloc")->base;
  memory.free(base);
  const ReportedDiagnostic reported = memory.explain(out_of_bounds_at(base + 12));
  EXPECT_THAT(reported.diagnostic.message, HasSubstr("byte 12 of `cudaMalloc #1` (64 bytes), which was freed"));
  ASSERT_EQ(reported.places.size(), 2u);
  EXPECT_EQ(reported.places[0].role, "allocated here");
  EXPECT_EQ(reported.places[1].role, "freed here");
}

TEST(DeviceMemory, AFreedAddressIsNotUsedAgainAtOnce) {
  DeviceMemory memory;
  const uint64_t base = memory.allocate(64, MemoryType::Device, "cudaMalloc")->base;
  memory.free(base);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t next = memory.allocate(64, MemoryType::Device, "cudaMalloc")->base;
    ASSERT_NE(next, base);
    memory.free(next);
  }
  EXPECT_THAT(memory.explain(out_of_bounds_at(base)).diagnostic.message, HasSubstr("`cudaMalloc #1` (64 bytes)"));
}

TEST(DeviceMemory, ExplainsAnAllocationThatAMessageNames) {
  DeviceMemory memory;
  memory.allocate(64, MemoryType::Device, "cudaMalloc");
  Diagnostic d = out_of_bounds_at(1);
  d.message = "4 bytes past the end of `cudaMalloc #1` (64 bytes)";
  const ReportedDiagnostic reported = memory.explain(d);
  EXPECT_EQ(reported.diagnostic.message, d.message);
  ASSERT_EQ(reported.places.size(), 1u);
  d.message = "4 bytes past the end of `cudaMalloc #11` (64 bytes)";
  EXPECT_TRUE(memory.explain(d).places.empty());
}

}  // namespace
}  // namespace handoff::runtime
