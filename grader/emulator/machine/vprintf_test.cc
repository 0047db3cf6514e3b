#include "grader/emulator/machine/vprintf.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace handoff::machine {
namespace {

/// An argument buffer as nvcc lays it out: every value at its natural alignment.
class Buffer {
 public:
  template <class T>
  Buffer& add(T value) {
    bytes_.resize((bytes_.size() + sizeof value - 1) / sizeof value * sizeof value + sizeof value);
    std::memcpy(bytes_.data() + bytes_.size() - sizeof value, &value, sizeof value);
    return *this;
  }
  /// The text, and in `count` the number of arguments consumed.
  std::string print(const std::string& format, int* count = nullptr) const {
    int consumed = -1;
    std::string text = format_printf(
        format,
        [this](uint64_t offset, void* out, uint32_t bytes) {
          if (offset + bytes > bytes_.size()) return false;
          std::memcpy(out, bytes_.data() + offset, bytes);
          return true;
        },
        [](uint64_t address) { return "<" + std::to_string(address) + ">"; }, &consumed);
    if (count != nullptr) *count = consumed;
    return text;
  }

 private:
  std::vector<char> bytes_;
};

TEST(Vprintf, PlainText) {
  int count = -1;
  EXPECT_EQ(Buffer().print("no arguments, 100%%\n", &count), "no arguments, 100%\n");
  EXPECT_EQ(count, 0);
}

TEST(Vprintf, Integers) {
  Buffer b;
  b.add<int32_t>(-7).add<uint32_t>(4000000000u).add<uint32_t>(0xbeef).add<uint32_t>(8).add<uint32_t>(0xab);
  int count = 0;
  EXPECT_EQ(b.print("%d %u %x %o %X", &count), "-7 4000000000 beef 10 AB");
  EXPECT_EQ(count, 5);
}

TEST(Vprintf, WideIntegersAreAlignedToEight) {
  Buffer b;
  b.add<int32_t>(1).add<int64_t>(-5000000000ll).add<int32_t>(2).add<uint64_t>(~uint64_t{0}).add<uint64_t>(3);
  EXPECT_EQ(b.print("%d %lld %d %llx %zu"), "1 -5000000000 2 ffffffffffffffff 3");
}

TEST(Vprintf, ShortModifiersTakeAnInt) { EXPECT_EQ(Buffer().add<int32_t>(3).add<int32_t>(4).print("%hd %hhu"), "3 4"); }

TEST(Vprintf, FloatsAreDoubles) {
  Buffer b;
  b.add<int32_t>(1).add(1.5).add(0.25).add(1e10).add(0.1);
  EXPECT_EQ(b.print("%d %f %.3f %g %e"), "1 1.500000 0.250 1e+10 1.000000e-01");
}

TEST(Vprintf, FlagsWidthAndPrecision) {
  EXPECT_EQ(
      Buffer().add<int32_t>(42).add<int32_t>(42).add<int32_t>(42).add<uint32_t>(255).print("[%5d][%-5d][%05d][%#x]"),
      "[   42][42   ][00042][0xff]");
}

TEST(Vprintf, StarTakesAnArgument) {
  int count = 0;
  EXPECT_EQ(Buffer().add<int32_t>(6).add<int32_t>(2).add(3.14159).print("[%*.*f]", &count), "[  3.14]");
  EXPECT_EQ(count, 3);
  EXPECT_EQ(Buffer().add<int32_t>(-4).add<int32_t>(7).print("[%*d]"), "[7   ]");
}

TEST(Vprintf, NegativePrecisionIsNoPrecision) {
  EXPECT_EQ(Buffer().add<int32_t>(-1).add(1.5).print("[%.*f]"), "[1.500000]");
}

TEST(Vprintf, CharactersStringsPointers) {
  Buffer b;
  b.add<int32_t>('x').add<uint64_t>(77).add<uint64_t>(0x7f0000000200ull);
  EXPECT_EQ(b.print("%c %s %p"), "x <77> 0x7f0000000200");
  EXPECT_EQ(Buffer().add<uint64_t>(7).print("[%6s]"), "[   <7>]");
}

TEST(Vprintf, UnknownConversionIsPrinted) { EXPECT_EQ(Buffer().print("a %y b"), "a %y b"); }

TEST(Vprintf, LongResult) {
  const std::string text = Buffer().add<int32_t>(1).print("%2000d");
  EXPECT_EQ(text.size(), 2000u);
  EXPECT_EQ(text.back(), '1');
}

TEST(Vprintf, MissingArgumentsReadAsZero) { EXPECT_EQ(Buffer().print("%d %f"), "0 0.000000"); }

}  // namespace
}  // namespace handoff::machine
