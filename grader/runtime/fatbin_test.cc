#include "grader/runtime/fatbin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <cstring>

namespace handoff::runtime {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint16_t kPtx = 1, kElf = 2;

std::string ptx_for(const std::string& target) {
  return "\n\n.version 9.0\n.target " + target + "\n.address_size 64\n";
}

/// A fat binary as nvcc writes it.
class Builder {
 public:
  Builder& entry(uint16_t kind, uint32_t arch, uint64_t flags, const std::string& payload, uint64_t uncompressed = 0) {
    std::string header(64, '\0');
    const uint64_t padded = (payload.size() + 7) / 8 * 8;
    put<uint16_t>(&header, 0, kind);
    put<uint16_t>(&header, 2, 0x0101);
    put<uint32_t>(&header, 4, static_cast<uint32_t>(header.size()));
    put<uint64_t>(&header, 8, padded);
    put<uint32_t>(&header, 16, uncompressed != 0 ? static_cast<uint32_t>(payload.size()) : 0);
    put<uint32_t>(&header, 28, arch);
    put<uint64_t>(&header, 40, flags);
    put<uint64_t>(&header, 56, uncompressed);
    entries_ += header + payload + std::string(padded - payload.size(), '\0');
    return *this;
  }
  Builder& compressed(uint32_t arch, const std::string& text) {
    std::string out(ZSTD_compressBound(text.size()), '\0');
    out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
    return entry(kPtx, arch, kFatbinZstd, out, text.size());
  }
  std::string bytes() const {
    std::string header(16, '\0');
    put<uint32_t>(&header, 0, 0xba55ed50u);
    put<uint16_t>(&header, 4, 1);
    put<uint16_t>(&header, 6, 16);
    put<uint64_t>(&header, 8, entries_.size());
    return header + entries_;
  }

 private:
  template <class T>
  static void put(std::string* at, size_t offset, T value) {
    std::memcpy(at->data() + offset, &value, sizeof value);
  }
  std::string entries_;
};

std::vector<FatbinEntry> read(const std::string& bytes, std::string* error) {
  return read_fatbin(std::as_bytes(std::span(bytes)), error);
}

TEST(Fatbin, ReadsTextAndCompressedText) {
  const std::string bytes =
      Builder().entry(kPtx, 100, kFatbinArchSpecific, ptx_for("sm_100a")).compressed(90, ptx_for("sm_90a")).bytes();
  std::string error;
  const auto entries = read(bytes, &error);
  ASSERT_THAT(entries, SizeIs(2)) << error;
  EXPECT_EQ(entries[0].arch, 100u);
  EXPECT_EQ(ptx_text(entries[0], &error), ptx_for("sm_100a"));
  EXPECT_EQ(ptx_text(entries[1], &error), ptx_for("sm_90a"));
  // From memory, the header alone tells the length.
  EXPECT_THAT(read_fatbin(static_cast<const void*>(bytes.data()), &error), SizeIs(2));
}

TEST(Fatbin, AnEmptyOneHasNoEntries) {
  const std::string bytes = Builder().bytes();
  std::string error;
  EXPECT_THAT(read(bytes, &error), IsEmpty());
  EXPECT_EQ(error, "");
  EXPECT_THAT(choose_ptx({}, 100).why, HasSubstr("no device code"));
}

TEST(Fatbin, EveryShorterPrefixIsRefused) {
  const std::string bytes = Builder().entry(kElf, 100, 0, "machine code").compressed(100, ptx_for("sm_100a")).bytes();
  for (size_t n = 0; n < bytes.size(); ++n) {
    std::string error;
    EXPECT_THAT(read(bytes.substr(0, n), &error), IsEmpty()) << n;
    EXPECT_NE(error, "") << n;
  }
}

TEST(Fatbin, DamageIsNoticed) {
  std::string bytes = Builder().compressed(100, ptx_for("sm_100a")).bytes();
  bytes[16 + 64] = 'x';  // the frame's magic number
  std::string error;
  const auto entries = read(bytes, &error);
  ASSERT_THAT(entries, SizeIs(1));
  EXPECT_EQ(ptx_text(entries[0], &error), "");
  EXPECT_THAT(error, HasSubstr("cannot be decompressed"));
  EXPECT_THAT(choose_ptx(entries, 100).why, HasSubstr("cannot be decompressed"));

  const std::string long_entry = Builder().entry(kPtx, 100, 0, "x").bytes();
  for (const size_t offset : {4, 8, 16}) {  // sizes of header, payload, compressed payload
    std::string huge = long_entry;
    std::memset(huge.data() + 16 + offset, 0xff, 4);
    EXPECT_THAT(read(huge, &error), IsEmpty()) << offset;
  }
}

TEST(Fatbin, OlderCompressionIsNamed) {
  const std::string bytes = Builder().entry(kPtx, 90, kFatbinLz4, "whatever", 100).bytes();
  std::string error;
  EXPECT_THAT(choose_ptx(read(bytes, &error), 90).why, HasSubstr("older toolkits"));
}

TEST(Fatbin, TheTargetIsThatOfTheDirective) {
  EXPECT_EQ(ptx_target(ptx_for("sm_100a")), "sm_100a");
  EXPECT_EQ(ptx_target("// .target sm_1\n.version 9.0\n  .target\tsm_90, texmode_independent\n"), "sm_90");
  EXPECT_EQ(ptx_target(".version 9.0\n"), "");
}

TEST(Fatbin, SuitabilityIsTheDrivers) {
  EXPECT_GT(suitability("sm_100a", 100), suitability("sm_100f", 100));
  EXPECT_GT(suitability("sm_100f", 100), suitability("sm_100", 100));
  EXPECT_GT(suitability("sm_100", 100), suitability("sm_90", 100));
  EXPECT_GT(suitability("sm_80", 100), 0);
  for (const char* target : {"sm_90a", "sm_103a", "sm_103f", "sm_103", "sm_120", "compute_100", "sm_", "sm_100x", ""}) {
    EXPECT_EQ(suitability(target, 100), 0) << target;
  }
}

TEST(Fatbin, ChoosesTheBestAndSaysWhatThereIsInstead) {
  const std::string several = Builder()
                                  .entry(kElf, 100, kFatbinArchSpecific, "machine code")
                                  .compressed(80, ptx_for("sm_80"))
                                  .compressed(100, ptx_for("sm_100a"))
                                  .compressed(100, ptx_for("sm_100"))
                                  .bytes();
  std::string error;
  const auto entries = read(several, &error);
  EXPECT_EQ(choose_ptx(entries, 100).target, "sm_100a");
  EXPECT_EQ(choose_ptx(entries, 90).target, "sm_80");
  EXPECT_THAT(choose_ptx(entries, 70).why, HasSubstr("sm_80, sm_100a, sm_100"));
  const std::string machine_code = Builder().entry(kElf, 100, kFatbinArchSpecific, "machine code").bytes();
  EXPECT_THAT(choose_ptx(read(machine_code, &error), 100).why, HasSubstr("machine code only (sm_100a)"));
}

}  // namespace
}  // namespace handoff::runtime
