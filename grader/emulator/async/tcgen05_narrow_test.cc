// tcgen05.mma of the narrow kinds through PTX. The arithmetic is that of mma_narrow_test.cc; here it is about operands:
// descriptors, the kind's bits, and scale factors that threads put into tensor memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "grader/emulator/async/mma_formats.h"
#include "grader/emulator/async/testing.h"

namespace handoff::async::testing {
namespace {

using machine::LaunchStatus;
using machine::TensorEvent;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kM = 128, kN = 16, kRowBytes = 32;
constexpr uint32_t kTileBytes = (kM + kN) * kRowBytes;
// Columns of tensor memory.
constexpr uint32_t kScaleA = 32, kScaleB = 36, kColumns = 64;

/// One MMA of a 128 x 16 tile; 4-bit elements of mxf4 and mxf4nvf4 two to a byte, all others one.
struct Tile {
  const char* opcode;          ///< behind ".cta_group::1"
  MmaKind kind;                ///< of it
  MmaType a, b;                ///< 8-bit types, or e2m1 with the packed kinds
  uint32_t instruction;        ///< all bits but M and N
  uint32_t factors = 0;        ///< scale factors a row
  uint32_t id = 0;             ///< byte of the first, for A; B has its in byte 0
  bool ue8m0 = true;           ///< their type
  std::string scale_offset{};  ///< added to the address of the factors of A
  machine::Schedule schedule{};
  machine::Observer* observer = nullptr;

  bool packed() const { return kind == MmaKind::Mxf4 || kind == MmaKind::Mxf4nvf4; }
  uint32_t k() const { return packed() ? 64 : 32; }
  uint32_t instruction_bits() const {
    return instruction | kN / 8 << 17 | (factors == 0 ? kM / 16 << 24 : kM / 128 << 27 | id << 29);
  }
  /// Bytes of A, then of B, row after row; then the words of the factors, [5][32]: four columns of A, one of B.
  std::vector<uint32_t> data() const {
    std::mt19937 random(7);
    std::vector<uint32_t> words;
    for (uint32_t i = 0; i < kTileBytes / 4; i++) {
      uint32_t word = 0;
      // Numbers of moderate size, and any integers.
      for (uint32_t byte = 0; byte < 4; byte++) {
        const auto r = static_cast<uint32_t>(random());
        const uint32_t code = kind == MmaKind::I8 || packed() ? r & 0xff : (r & 0x87) | (6 + (r >> 8) % 3) << 3;
        word |= code << 8 * byte;
      }
      words.push_back(word);
    }
    for (uint32_t i = 0; i < 5 * 32; i++) {
      uint32_t word = 0;
      for (uint32_t byte = 0; byte < 4; byte++) {
        const auto r = static_cast<uint32_t>(random());
        word |= (ue8m0 ? 120 + r % 16 : 0x20 + r % 32) << 8 * byte;
      }
      words.push_back(word);
    }
    return words;
  }
  uint32_t expected(const std::vector<uint32_t>& words, uint32_t m, uint32_t n) const {
    const auto element = [&](MmaType type, uint32_t row, uint32_t i) {
      const uint32_t bit = i * (packed() ? 4 : 8);
      return narrow_value(type, words[(row * kRowBytes + bit / 8) / 4] >> bit % 32 & (packed() ? 0xf : 0xff));
    };
    const auto factor = [&](uint32_t column, uint32_t row, uint32_t first, uint32_t i) {
      if (factors == 0) return 1.0f;
      const uint32_t word = words[kTileBytes / 4 + column * 32 + row % 32];
      return scale_value(ue8m0, static_cast<uint8_t>(word >> 8 * (first + i * factors / k())));
    };
    float sum = 0;
    for (uint32_t i = 0; i < k(); i++) {
      sum = std::fma(element(a, m, i) * factor(m / 32, m, id, i), element(b, kM + n, i) * factor(4, n, 0, i), sum);
    }
    return kind == MmaKind::I8 ? static_cast<uint32_t>(static_cast<int32_t>(sum)) : std::bit_cast<uint32_t>(sum);
  }

  Kernel kernel() const {
    // Without swizzle: 16-byte columns of the rows, one behind the other.
    std::vector<uint32_t> in = data();
    const std::vector<uint32_t> rows(in.begin(), in.begin() + kTileBytes / 4);
    for (uint32_t row = 0; row < kM + kN; row++) {
      const uint32_t matrix = row < kM ? 0 : kM, of = row < kM ? kM : kN;
      for (uint32_t word = 0; word < kRowBytes / 4; word++)
        in[matrix * 8 + (word / 4 * of + row - matrix) * 4 + word % 4] = rows[row * 8 + word];
    }
    Kernel s;
    s.block = {128, 1, 1};
    s.schedule = schedule;
    s.observer = observer;
    s.in = std::move(in);
    s.out.assign(size_t{kM} * kN, 0);
    s.dynamic_smem = kTileBytes;
    s.shared = ".extern .shared .align 1024 .b8 tile[];\n.shared .align 8 .b64 done;\n.shared .align 4 .b32 slot;\n";
    std::string v = "{%v0";
    for (int i = 1; i < 16; i++) v += ", %v" + std::to_string(i);
    v += "}";
    const std::string operands = factors == 0 ? "" : ", [%r20], [%r21]";
    s.body = R"(
      .reg .b32 %v<16>;
      setp.eq.u32 %p1, %t, 0;
      setp.eq.u32 %p3, %w, 0;
      mov.u32 %r1, %t;
      COPY:
      mul.wide.u32 %rd1, %r1, 4;
      add.u64 %rd1, %rd1, %inp;
      ld.global.u32 %r2, [%rd1];
      shl.b32 %r3, %r1, 2;
      mov.u32 %r4, tile;
      add.u32 %r3, %r3, %r4;
      st.shared.u32 [%r3], %r2;
      add.u32 %r1, %r1, 128;
      setp.lt.u32 %p2, %r1, )" +
             std::to_string(kTileBytes / 4) + R"(;
      @%p2 bra COPY;
      fence.proxy.async.shared::cta;
      @%p1 mbarrier.init.shared::cta.b64 [done], 1;
      @!%p3 bra ALLOCATED;
      tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], )" +
             std::to_string(kColumns) + R"(;
      ALLOCATED:
      bar.sync 0;
      ld.shared.u32 %r10, [slot];
      shl.b32 %r11, %w, 21;
      add.u32 %r11, %r10, %r11;
      and.b32 %r5, %t, 31;
      mul.wide.u32 %rd1, %r5, 4;
      add.u64 %rd1, %rd1, %inp;
      ld.global.u32 %v0, [%rd1+)" +
             std::to_string(kTileBytes) + "];\n" + "ld.global.u32 %v1, [%rd1+" + std::to_string(kTileBytes + 128) +
             "];\n" + "ld.global.u32 %v2, [%rd1+" + std::to_string(kTileBytes + 256) + "];\n" +
             "ld.global.u32 %v3, [%rd1+" + std::to_string(kTileBytes + 384) + "];\n" + "ld.global.u32 %v4, [%rd1+" +
             std::to_string(kTileBytes + 512) + "];\n" +
             "tcgen05.st.sync.aligned.32x32b.x4.b32 [%r11+32], {%v0, %v1, %v2, %v3};\n" +
             "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r11+36], {%v4};\n" + R"(
      tcgen05.wait::st.sync.aligned;
      tcgen05.fence::before_thread_sync;
      bar.sync 0;
      tcgen05.fence::after_thread_sync;
      @!%p1 bra WAIT;
      mov.u32 %r12, )" +
             std::to_string(instruction_bits()) + R"(;
      add.u32 %r20, %r10, )" +
             (scale_offset.empty() ? std::to_string(kScaleA) : scale_offset) + R"(;
      add.u32 %r21, %r10, )" +
             std::to_string(kScaleB) + R"(;
      mov.u32 %r4, tile;
      shr.u32 %r4, %r4, 4;
      cvt.u64.u32 %rd4, %r4;
      mov.u64 %rd5, )" +
             std::to_string(descriptor(kM)) + R"(;
      mov.u64 %rd6, )" +
             std::to_string(descriptor(kN) + kM * kRowBytes / 16) + R"(;
      add.u64 %rd5, %rd5, %rd4;
      add.u64 %rd6, %rd6, %rd4;
      setp.ne.u32 %p4, 0, 0;
      tcgen05.mma.cta_group::1)" +
             opcode + " [%r10], %rd5, %rd6, %r12" + operands + R"(, %p4; // mma
      tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];
      WAIT:
      mbarrier.try_wait.parity.shared::cta.b64 %p5, [done], 0;
      @!%p5 bra WAIT;
      tcgen05.fence::after_thread_sync;
      tcgen05.ld.sync.aligned.32x32b.x16.b32 )" +
             v + R"(, [%r11];
      tcgen05.wait::ld.sync.aligned;
      mul.wide.u32 %rd1, %t, 64;
      add.u64 %rd1, %rd1, %outp;
      st.global.v4.u32 [%rd1], {%v0, %v1, %v2, %v3};
      st.global.v4.u32 [%rd1+16], {%v4, %v5, %v6, %v7};
      st.global.v4.u32 [%rd1+32], {%v8, %v9, %v10, %v11};
      st.global.v4.u32 [%rd1+48], {%v12, %v13, %v14, %v15};
      tcgen05.fence::before_thread_sync;
      bar.sync 0;
      @!%p3 bra END;
      tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, )" +
             std::to_string(kColumns) + ";\nEND:\n";
    return s;
  }
  static uint64_t descriptor(uint32_t rows) { return uint64_t{rows} << 16 | uint64_t{8} << 32 | uint64_t{1} << 46; }
};

constexpr uint32_t kF32 = 1 << 4, kS32 = 2 << 4, kUe8m0 = 1 << 23, kE2m1 = 1 << 7 | 1 << 10;
Tile e4m3_e5m2() { return {".kind::f8f6f4", MmaKind::F8F6F4, MmaType::E4m3, MmaType::E5m2, kF32 | 1 << 10}; }
Tile mxf8() {
  return {".kind::mxf8f6f4.block_scale", MmaKind::Mxf8f6f4, MmaType::E5m2, MmaType::E4m3, 1 << 7 | kUe8m0, 1, 2};
}
Tile mxf4() {
  return {".kind::mxf4.block_scale.block32", MmaKind::Mxf4, MmaType::E2m1, MmaType::E2m1, kE2m1 | kUe8m0, 2, 2};
}
Tile nvf4() {
  Tile t{".kind::mxf4nvf4.block_scale.scale_vec::4X", MmaKind::Mxf4nvf4, MmaType::E2m1, MmaType::E2m1, kE2m1, 4};
  t.ue8m0 = false;
  return t;
}
void expect_tile(Tile t) {
  for (const auto& schedule : schedules(2)) {
    t.schedule = schedule;
    const Outcome o = run(t.kernel());
    ASSERT_TRUE(clean(o)) << t.opcode;
    const std::vector<uint32_t> words = t.data();
    for (uint32_t m = 0; m < kM; m++) {
      for (uint32_t n = 0; n < kN; n++)
        ASSERT_EQ(o.out[m * kN + n], t.expected(words, m, n)) << t.opcode << " row " << m << " column " << n;
    }
  }
}

TEST(NarrowMmaTest, GivesTheProductOfItsTypes) {
  expect_tile(e4m3_e5m2());
  expect_tile({".kind::f8f6f4.collector::a::lastuse", MmaKind::F8F6F4, MmaType::E5m2, MmaType::E4m3, kF32 | 1 << 7});
  expect_tile({".kind::i8", MmaKind::I8, MmaType::S8, MmaType::U8, kS32 | 1 << 7});
}

TEST(NarrowMmaTest, GivesTheProductOfScaledBlocks) {
  expect_tile(mxf8());
  expect_tile(mxf4());
  expect_tile(nvf4());
  Tile t = mxf4();
  t.opcode = ".kind::mxf4.block_scale";
  expect_tile(t);
  t = {".kind::mxf4nvf4.block_scale.scale_vec::2X", MmaKind::Mxf4nvf4, MmaType::E2m1, MmaType::E2m1, kE2m1 | kUe8m0, 2};
  expect_tile(t);
  t = nvf4();
  t.opcode = ".kind::mxf4nvf4.block_scale.block16.collector::a::discard";
  expect_tile(t);
}

// CUTLASS passes its pointers as they are, with the id of the factors in the two top bits.
TEST(NarrowMmaTest, TheTopBitsOfAScaleAddressDoNotCount) {
  Tile t = mxf8();
  t.scale_offset = std::to_string(0x80000000u + kScaleA);
  expect_tile(t);
}

TEST(NarrowMmaTest, ItsWatcherIsToldOfTheScaleFactors) {
  struct Regions : Recorder {
    std::vector<machine::TensorRegion> regions;
    void tensor(const TensorEvent& e) override {
      if (e.kind == TensorEvent::Kind::Mma) regions = *e.regions;
    }
  } seen;
  Tile t = mxf8();
  t.observer = &seen;
  ASSERT_TRUE(clean(run(t.kernel())));
  ASSERT_EQ(seen.regions.size(), 3u);
  const auto region = [&](size_t r) {
    const machine::TensorRegion& x = seen.regions[r];
    return std::vector<uint32_t>{x.halves, x.column, x.columns, x.write ? 1u : 0u};
  };
  EXPECT_THAT(region(0), ElementsAre(0xff, 0, kN, 1));
  EXPECT_THAT(region(1), ElementsAre(0xff, kScaleA, 4, 0));
  EXPECT_THAT(region(2), ElementsAre(0xff, kScaleB, 1, 0));
}

TEST(NarrowMmaTest, WhatIsWrongStopsAtTheMma) {
  const auto message = [](const Tile& t, const char* id) {
    const Outcome o = run(t.kernel());
    EXPECT_EQ(o.status, LaunchStatus::Fault);
    EXPECT_TRUE(reports(o, id, "// mma"));
    return o.diagnostics.empty() ? "" : o.diagnostics[0].message;
  };
  Tile t = mxf8();
  t.scale_offset = "62";
  EXPECT_EQ(message(t, "tmem-not-allocated"),
            "warp 0 lane 0: scale_A of the MMA is in columns 62-65; allocated are columns 0-63");
  t.scale_offset = std::to_string((32 << 16) + kScaleA);
  EXPECT_THAT(message(t, "bad-descriptor"), HasSubstr("scale factors of A: lane = 32; M = 128 takes lane 0"));
  t = nvf4();
  t.id = 2;
  EXPECT_THAT(message(t, "bad-descriptor"), HasSubstr("scale factor A id = 2"));
  t = mxf4();
  t.instruction &= ~kUe8m0;
  EXPECT_THAT(message(t, "bad-descriptor"), HasSubstr("the scale factors of kind::mxf4 are ue8m0"));
  t = mxf4();
  t.instruction |= 1u << 31;
  EXPECT_THAT(message(t, "bad-descriptor"), HasSubstr("K = 96 goes with cta_group::2"));
}

}  // namespace
}  // namespace handoff::async::testing
