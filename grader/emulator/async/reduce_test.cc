#include "grader/emulator/async/reduce.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace handoff::async {
namespace {

using ptx::Type;

/// One element combined; the neighbour on each side must stay as it is.
template <class T>
T one(ReduceOp op, Type type, T destination, T source) {
  std::vector<T> d{T(3), destination, T(5)}, s{T(1), source, T(1)};
  reduce_bytes(op, type, reinterpret_cast<std::byte*>(&d[1]), reinterpret_cast<const std::byte*>(&s[1]), sizeof(T));
  EXPECT_EQ(d[0], T(3));
  EXPECT_EQ(d[2], T(5));
  return d[1];
}

TEST(ReduceTest, Integers) {
  EXPECT_EQ(one<uint32_t>(ReduceOp::Add, Type::U32, 0xffffffff, 2), 1u);
  EXPECT_EQ(one<int32_t>(ReduceOp::Add, Type::S32, std::numeric_limits<int32_t>::max(), 1),
            std::numeric_limits<int32_t>::min());
  EXPECT_EQ(one<uint64_t>(ReduceOp::Add, Type::U64, ~uint64_t{0}, 3), 2u);
  EXPECT_EQ(one<int64_t>(ReduceOp::Min, Type::S64, -5, 4), -5);
  EXPECT_EQ(one<int64_t>(ReduceOp::Max, Type::S64, -5, 4), 4);
  EXPECT_EQ(one<uint64_t>(ReduceOp::Min, Type::U64, static_cast<uint64_t>(-5), 4), 4u);
  EXPECT_EQ(one<uint64_t>(ReduceOp::Max, Type::U64, static_cast<uint64_t>(-5), 4), static_cast<uint64_t>(-5));
  EXPECT_EQ(one<int32_t>(ReduceOp::Min, Type::S32, -5, 4), -5);
  EXPECT_EQ(one<uint32_t>(ReduceOp::Min, Type::U32, static_cast<uint32_t>(-5), 4), 4u);
  EXPECT_EQ(one<uint64_t>(ReduceOp::And, Type::B64, 0xff00'0000'0000'00ff, 0x0ff0'0000'0000'000f),
            0x0f00'0000'0000'000fu);
  EXPECT_EQ(one<uint64_t>(ReduceOp::Or, Type::B64, 1, uint64_t{1} << 63), (uint64_t{1} << 63) + 1);
  EXPECT_EQ(one<uint32_t>(ReduceOp::Xor, Type::B32, 6, 5), 3u);
}

// inc and dec wrap within [0, source] (PTX §9.7.13.5, atom.inc and atom.dec).
TEST(ReduceTest, WrappingCounters) {
  for (uint32_t limit = 0; limit < 4; limit++) {
    for (uint32_t old = 0; old < 6; old++) {
      EXPECT_EQ(one<uint32_t>(ReduceOp::Inc, Type::U32, old, limit), old >= limit ? 0 : old + 1) << old << " " << limit;
      EXPECT_EQ(one<uint32_t>(ReduceOp::Dec, Type::U32, old, limit), old == 0 || old > limit ? limit : old - 1)
          << old << " " << limit;
    }
  }
}

// As recorded on an H200: copy/reduce_f32, copy/reduce_f16 and copy/reduce_bf16 of the conformance suite.
TEST(ReduceTest, FloatsKeepSubnormalsAndOrderZeros) {
  const float tiny = std::numeric_limits<float>::denorm_min(), smallest = std::numeric_limits<float>::min();
  EXPECT_EQ(one<float>(ReduceOp::Add, Type::F32, 1.5f, 2.25f), 3.75f);
  EXPECT_EQ(one<float>(ReduceOp::Add, Type::F32, tiny, tiny), 2 * tiny);
  EXPECT_EQ(one<float>(ReduceOp::Add, Type::F32, smallest, tiny), smallest + tiny);
  EXPECT_EQ(one<float>(ReduceOp::Add, Type::F32, -1.5f * smallest, smallest), -0.5f * smallest);
  for (const auto& [a, b] : {std::pair{0.0f, -0.0f}, std::pair{-0.0f, 0.0f}}) {
    EXPECT_TRUE(std::signbit(one<float>(ReduceOp::Min, Type::F32, a, b)));
    EXPECT_FALSE(std::signbit(one<float>(ReduceOp::Max, Type::F32, a, b)));
  }
  float sum = -1.5f * smallest;
  reduce_bytes(ReduceOp::Add, Type::F32, reinterpret_cast<std::byte*>(&sum),
               reinterpret_cast<const std::byte*>(&smallest), 4, true);
  EXPECT_EQ(std::bit_cast<uint32_t>(sum), 0x80000000u);
}

TEST(ReduceTest, DoubleAndHalfKeepSubnormals) {
  const double tiny = std::numeric_limits<double>::denorm_min();
  EXPECT_EQ(one<double>(ReduceOp::Add, Type::F64, tiny, tiny), 2 * tiny);
  EXPECT_EQ(one<uint16_t>(ReduceOp::Add, Type::F16, 1, 2), 3);
  EXPECT_EQ(one<uint16_t>(ReduceOp::Add, Type::BF16, 1, 2), 3);
  // Ties go to even: 2048 + 1 = 2048, 2048 + 3 = 2052 in f16 (spacing 2).
  EXPECT_EQ(one<uint16_t>(ReduceOp::Add, Type::F16, 0x6800, 0x3c00), 0x6800);
  EXPECT_EQ(one<uint16_t>(ReduceOp::Add, Type::F16, 0x6800, 0x4200), 0x6802);
  // 65504 + 32 overflows to infinity.
  EXPECT_EQ(one<uint16_t>(ReduceOp::Add, Type::F16, 0x7bff, 0x5000), 0x7c00);
  EXPECT_EQ(one<uint16_t>(ReduceOp::Max, Type::BF16, 0x3f80, 0xbf80), 0x3f80);
  EXPECT_EQ(one<uint16_t>(ReduceOp::Min, Type::BF16, 0x3f80, 0xbf80), 0xbf80);
  EXPECT_EQ(one<uint16_t>(ReduceOp::Min, Type::F16, 0x7e00, 0x3c00), 0x3c00) << "a NaN yields to a number";
}

TEST(ReduceTest, EveryElementOfTheBytes) {
  std::vector<uint32_t> d(32), s(32);
  for (uint32_t k = 0; k < 32; k++) {
    d[k] = k;
    s[k] = 100 * k;
  }
  reduce_bytes(ReduceOp::Add, Type::U32, reinterpret_cast<std::byte*>(d.data()),
               reinterpret_cast<const std::byte*>(s.data()), 124);
  for (uint32_t k = 0; k < 32; k++) EXPECT_EQ(d[k], k < 31 ? 101 * k : k);
}

}  // namespace
}  // namespace handoff::async
