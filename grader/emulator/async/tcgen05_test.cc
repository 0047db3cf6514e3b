// Tensor memory and the tensor core through PTX: who may allocate and touch what, which numbers an MMA leaves, and
// when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "grader/emulator/async/testing.h"
#include "grader/emulator/machine/timing.h"

namespace handoff::async::testing {
namespace {

using machine::LaunchStatus;
using machine::TensorEvent;
using Milestone = machine::AsyncOpInfo::Milestone;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr uint32_t kPoisonWord = 0xffffffff;

/// Replaces every `$name`, in this order: a name comes behind those that begin with it.
std::string fill(std::string text, std::initializer_list<std::pair<std::string, std::string>> values) {
  for (const auto& [name, value] : values) {
    const std::string key = "$" + name;
    for (size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + value.size()))
      text.replace(at, key.size(), value);
  }
  return text;
}
std::string number(uint64_t v) { return std::to_string(v); }
/// "{%v0, %v1}"
std::string registers(uint32_t count) {
  std::string s = "{%v0";
  for (uint32_t i = 1; i < count; i++) s += ", %v" + number(i);
  return s + "}";
}

const char* const kSlot = ".shared .align 4 .b32 slot[4];\n";
const char* const kRegisters = ".reg .b32 %v<128>;\n";
/// An alloc of `columns` whose address %r10 then holds in every thread of the one warp.
std::string allocate(uint32_t columns) {
  return fill(
      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], $n;\nbar.sync 0;\nld.shared.u32 %r10, [slot];\n",
      {{"n", number(columns)}});
}
std::string deallocate(uint32_t columns) {
  return fill("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, $n;\n", {{"n", number(columns)}});
}

Kernel one_warp(std::string body) {
  Kernel k;
  k.shared = kSlot;
  k.body = "\n" + std::string(kRegisters) + std::move(body);
  return k;
}

/// Also keeps the events of tensor memory, and how many copies' milestones came before each.
struct TensorRecorder : Recorder {
  struct Event {
    TensorEvent::Kind kind;
    LaneMask mask;
    uint32_t warp;
    std::vector<machine::TensorRegion> regions;
    uint64_t op, amount, shape;
    uint32_t barrier;
    size_t barriers_before;  ///< events of mbarriers seen before it
  };
  std::vector<Event> tensors;
  void tensor(const TensorEvent& e) override {
    tensors.push_back({e.kind, e.mask, e.warp->index,
                       e.regions == nullptr ? std::vector<machine::TensorRegion>() : *e.regions, e.op, e.amount,
                       e.shape, e.barrier, barriers.size()});
  }
  std::vector<TensorEvent::Kind> kinds() const {
    std::vector<TensorEvent::Kind> k;
    for (const Event& e : tensors) k.push_back(e.kind);
    return k;
  }
  const Event* find(TensorEvent::Kind kind, size_t skip = 0) const {
    for (const Event& e : tensors) {
      if (e.kind == kind && skip-- == 0) return &e;
    }
    return nullptr;
  }
};

// --- alloc, dealloc, relinquish_alloc_permit -------------------------------------------------------------------------

TEST(TensorAllocTest, AllocWritesTheAddressOfFreeColumns) {
  for (const auto& schedule : schedules(6)) {
    Kernel k = one_warp(R"(
      mov.u32 %r20, 128;
      tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], %r20;
      tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot+4], 64;
      tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot+8], 64;
      tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot+12], 32;
      tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
      bar.sync 0;
      ld.shared.u32 %r1, [slot];
      ld.shared.u32 %r2, [slot+4];
      ld.shared.u32 %r3, [slot+8];
      ld.shared.u32 %r4, [slot+12];
      out 0 %r1
      out 1 %r2
      out 2 %r3
      out 3 %r4
      tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, %r20;
      tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4, 32;
      tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 64;
      tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 64;
    )");
    k.schedule = schedule;
    const Outcome o = run(k);
    ASSERT_TRUE(clean(o)) << machine::to_string(schedule);
    const uint32_t columns[] = {128, 64, 64, 32};
    ColumnSet used;
    for (int a = 0; a < 4; a++) {
      EXPECT_EQ(o.out[a] % 32, 0u);
      ASSERT_LE(o.out[a] + columns[a], kTensorMemoryColumns);
      for (uint32_t c = o.out[a]; c < o.out[a] + columns[a]; c++) {
        EXPECT_FALSE(used.test(c)) << "column " << c << " is given twice";
        used.set(c);
      }
    }
  }
}

TEST(TensorAllocTest, SomeScheduleGivesAnotherAddressThanColumnZero) {
  std::vector<uint32_t> addresses;
  for (const auto& schedule : schedules(10)) {
    Kernel k = one_warp(allocate(32) + "out 0 %r10\n" + deallocate(32));
    k.schedule = schedule;
    const Outcome o = run(k);
    ASSERT_TRUE(clean(o));
    if (schedule.kind != machine::Schedule::Kind::Random) {
      EXPECT_EQ(o.out[0], 0u);
    }
    addresses.push_back(o.out[0]);
  }
  EXPECT_THAT(addresses, Contains(Not(0u)));
}

TEST(TensorAllocTest, TheDestinationMayBeAGenericAddress) {
  Kernel k = one_warp(R"(
    mov.u32 %r1, slot;
    cvt.u64.u32 %rd1, %r1;
    cvta.shared.u64 %rd2, %rd1;
    tcgen05.alloc.cta_group::1.sync.aligned.b32 [%rd2+4], 64; // generic
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%rd1+8], 32; // 32 bits, extended by zeros
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1+12], 32;
    bar.sync 0;
    ld.shared.u32 %r2, [slot+4];
    ld.shared.u32 %r3, [slot+8];
    ld.shared.u32 %r4, [slot+12];
    out 0 %r2
    out 1 %r3
    out 2 %r4
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 64;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4, 32;
  )");
  const Outcome o = run(k);
  ASSERT_TRUE(clean(o));
  EXPECT_THAT(std::vector<uint32_t>(o.out.begin(), o.out.begin() + 3), ElementsAre(0, 64, 96));
}

TEST(TensorAllocTest, NewColumnsHoldPoisonAlsoWhereSomethingWasBefore) {
  Kernel k = one_warp(allocate(32) + R"(
    mov.u32 %v0, 7;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v1}, [%r10];
    out 0 %v1
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%r10], {%v0};
    tcgen05.wait::st.sync.aligned;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v2}, [%r10];
    out 1 %v2
  )" + deallocate(32) +
                      allocate(32) + R"(
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v3}, [%r10];
    out 2 %v3
    out 3 %r10
  )" + deallocate(32));
  const Outcome o = run(k);
  ASSERT_TRUE(clean(o));
  EXPECT_THAT(std::vector<uint32_t>(o.out.begin(), o.out.begin() + 4), ElementsAre(kPoisonWord, 7, kPoisonWord, 0));
}

struct Broken {
  std::string before;  ///< lines in front
  std::string line;    ///< the one at fault
  const char* id;
  std::string message;  ///< all of it
};
void PrintTo(const Broken& b, std::ostream* out) { *out << b.line; }
class TensorFaultTest : public ::testing::TestWithParam<Broken> {};
TEST_P(TensorFaultTest, StopsAtTheLine) {
  const Broken& b = GetParam();
  for (const auto& schedule : {kNominal, kLazy, kEager, kReverse}) {
    Kernel k = one_warp(b.before + "\n" + b.line + " // here\nmov.u32 %r9, 1;\nout 0 %r9\n");
    k.schedule = schedule;
    const Outcome o = run(k);
    EXPECT_TRUE(reports(o, b.id, "// here"));
    ASSERT_FALSE(o.diagnostics.empty());
    EXPECT_EQ(o.diagnostics[0].message, b.message);
    EXPECT_EQ(o.diagnostics[0].severity, Severity::Error);
    EXPECT_EQ(o.status, LaunchStatus::Fault);
    EXPECT_EQ(o.out[0], 0u) << "it went on";
  }
}

const char* const kAlloc = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], ";
const char* const kDealloc = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 ";
std::string bad_count(uint32_t n) {
  return "warp 0 lanes 0-31 allocates " + number(n) + " columns: nCols is a power of two from 32 to 512";
}
INSTANTIATE_TEST_SUITE_P(
    Protocol, TensorFaultTest,
    ::testing::Values(
        Broken{"mov.u32 %r1, 0;", kAlloc + std::string("%r1;"), "tmem-alloc-protocol", bad_count(0)},
        Broken{"mov.u32 %r1, 16;", kAlloc + std::string("%r1;"), "tmem-alloc-protocol", bad_count(16)},
        Broken{"mov.u32 %r1, 48;", kAlloc + std::string("%r1;"), "tmem-alloc-protocol", bad_count(48)},
        Broken{"mov.u32 %r1, 511;", kAlloc + std::string("%r1;"), "tmem-alloc-protocol", bad_count(511)},
        Broken{"mov.u32 %r1, 1024;", kAlloc + std::string("%r1;"), "tmem-alloc-protocol", bad_count(1024)},
        Broken{allocate(32), kAlloc + std::string("64;"), "tmem-alloc-protocol",
               "warp 0 lanes 0-31 allocates 64 columns: its allocation before was of 32, and they must not grow"},
        Broken{allocate(128) + deallocate(128) + allocate(64) + deallocate(64), kAlloc + std::string("128;"),
               "tmem-alloc-protocol",
               "warp 0 lanes 0-31 allocates 128 columns: its allocation before was of 64, and they must not grow"},
        Broken{allocate(64) + "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;", kAlloc + std::string("32;"),
               "tmem-alloc-protocol",
               "warp 0 lanes 0-31 allocates 32 columns: the block has given up its right to allocate"},
        Broken{allocate(64) + deallocate(64), kDealloc + std::string("%r10, 64;"), "tmem-alloc-protocol",
               "warp 0 lanes 0-31 frees 64 columns at 0x0, which is no allocation of this block; the block has no "
               "columns allocated"},
        Broken{allocate(64), kDealloc + std::string("%r10, 32;"), "tmem-alloc-protocol",
               "warp 0 lanes 0-31 frees 32 columns at 0x0, which is no allocation of this block; allocated are "
               "columns 0-63"},
        Broken{allocate(64) + allocate(32) + "add.u32 %r1, %r10, 32;", kDealloc + std::string("%r1, 32;"),
               "tmem-alloc-protocol",
               "warp 0 lanes 0-31 frees 32 columns at 0x60, which is no allocation of this block; allocated are "
               "columns 0-63, 64-95"},
        Broken{allocate(64) + "or.b32 %r1, %r10, 0x200000;", kDealloc + std::string("%r1, 64;"), "tmem-alloc-protocol",
               "warp 0 lanes 0-31 frees 64 columns at 0x200000, which is no allocation of this block; allocated are "
               "columns 0-63"}));

INSTANTIATE_TEST_SUITE_P(
    Operands, TensorFaultTest,
    ::testing::Values(
        Broken{"setp.eq.u32 %p1, %t, 9;\nselp.u32 %r1, 64, 32, %p1;", kAlloc + std::string("%r1;"),
               "diverged-collective", "warp 0 lanes 0-31: the lanes pass different values of nCols, 32 and 64"},
        Broken{allocate(32) + "setp.eq.u32 %p1, %t, 9;\nselp.u32 %r1, 64, 32, %p1;",
               kDealloc + std::string("%r10, %r1;"), "diverged-collective",
               "warp 0 lanes 0-31: the lanes pass different values of nCols, 32 and 64"},
        Broken{allocate(32) + "add.u32 %r1, %r10, %t;", kDealloc + std::string("%r1, 32;"), "diverged-collective",
               "warp 0 lanes 0-31: the lanes pass different values of taddr, 0 and 1"},
        Broken{"mov.u32 %r1, slot;\nshl.b32 %r2, %t, 2;\nadd.u32 %r1, %r1, %r2;",
               "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32;", "diverged-collective",
               "warp 0 lanes 0-31: the lanes of tcgen05.alloc pass different addresses"},
        Broken{"", "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot+2], 32;", "misaligned",
               "warp 0 lane 0: the destination of tcgen05.alloc slot+2 is not a multiple of 4 bytes"},
        Broken{"", "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot+16], 32;", "out-of-bounds",
               "warp 0 lane 0: the destination of tcgen05.alloc shared offset 0x410 with 4 bytes runs past the CTA's "
               "16 bytes of shared memory"}));

const char* const kLoad = "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%v0, %v1}, ";
INSTANTIATE_TEST_SUITE_P(
    Access, TensorFaultTest,
    ::testing::Values(
        Broken{allocate(64) + "add.u32 %r1, %r10, 0x200000;", kLoad + std::string("[%r1];"), "tmem-wrong-quarter",
               "warp 0 lanes 0-31: tcgen05.ld at lane 32; warp 0 of a block reaches lanes 0-31 only"},
        Broken{allocate(64), "tcgen05.st.sync.aligned.16x256b.x1.b32 [%r10+0x700000], {%v0, %v1, %v2, %v3};",
               "tmem-wrong-quarter",
               "warp 0 lanes 0-31: tcgen05.st at lane 112; warp 0 of a block reaches lanes 0-31 only"},
        Broken{allocate(64) + "shl.b32 %r1, %t, 16;\nadd.u32 %r1, %r1, %r10;", kLoad + std::string("[%r1];"),
               "tmem-wrong-quarter",
               "warp 0 lanes 0-31: the lanes of tcgen05.ld pass different addresses, 0x0 and 0x10000"},
        Broken{allocate(64) + "add.u32 %r1, %t, %r10;", "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%v0};",
               "diverged-collective",
               "warp 0 lanes 0-31: the lanes of tcgen05.st pass different addresses, 0x0 and 0x1"},
        Broken{allocate(64), "tcgen05.ld.sync.aligned.16x64b.x1.b32 {%v0}, [%r10+0x80000];", "misaligned",
               "warp 0 lanes 0-31: tcgen05.ld at lane 8; this shape starts at a multiple of 16 lanes"},
        Broken{allocate(64), kLoad + std::string("[%r10+0x100000];"), "misaligned",
               "warp 0 lanes 0-31: tcgen05.ld at lane 16; this shape starts at a multiple of 32 lanes"},
        Broken{"mov.u32 %r10, 0;", kLoad + std::string("[%r10];"), "tmem-not-allocated",
               "warp 0 lanes 0-31: tcgen05.ld touches columns 0-1; the block has no columns allocated"},
        Broken{allocate(64), kLoad + std::string("[%r10+64];"), "tmem-not-allocated",
               "warp 0 lanes 0-31: tcgen05.ld touches columns 64-65; allocated are columns 0-63"},
        Broken{allocate(64), kLoad + std::string("[%r10+63];"), "tmem-not-allocated",
               "warp 0 lanes 0-31: tcgen05.ld touches columns 63-64; allocated are columns 0-63"},
        Broken{allocate(64) + deallocate(64), "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r10], {%v0};",
               "tmem-not-allocated",
               "warp 0 lanes 0-31: tcgen05.st touches columns 0-0; the block has no columns allocated"},
        Broken{allocate(512), kLoad + std::string("[%r10+511];"), "tmem-not-allocated",
               "warp 0 lanes 0-31: tcgen05.ld touches columns 511-512; allocated are columns 0-511"},
        Broken{allocate(64), "tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%v0}, [%r10], 64;", "tmem-not-allocated",
               "warp 0 lanes 0-31: tcgen05.ld touches columns 64-64; allocated are columns 0-63"}));

TEST(TensorAllocTest, ColumnsThatAreNotFreedAreReportedAtTheirAlloc) {
  Kernel k = one_warp("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 128; // first\n" + allocate(64) +
                      deallocate(64));
  const Outcome o = run(k);
  EXPECT_EQ(o.status, LaunchStatus::Ok);
  EXPECT_TRUE(reports(o, "tmem-leak", "// first",
                      "the block ended without freeing the 128 columns of tensor memory that it allocated here"));
  k.body += "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32; // last\n";
  const Outcome two = run(k);
  ASSERT_EQ(two.diagnostics.size(), 2u);
  EXPECT_THAT(two.diagnostics[1].message, HasSubstr("without freeing the 32 columns"));
  EXPECT_EQ(two.diagnostics[1].place.line, line_of(k.body, "// last"));
}

TEST(TensorAllocTest, ABlockThatLeaksDoesNotKeepAnotherOneWaiting) {
  // Whoever has the columns stays until the other one is about to ask for them.
  Kernel k = one_warp("setp.ne.u32 %p1, %c, 0;\n@%p1 bra SECOND;\n" + allocate(512) + R"(
    st.volatile.global.u32 [%outp], 1;
  MEET:
    ld.volatile.global.u32 %r2, [%outp+4];
    setp.eq.u32 %p2, %r2, 0;
    @%p2 bra MEET;
    bra END;
  SECOND:
    ld.volatile.global.u32 %r2, [%outp];
    setp.eq.u32 %p2, %r2, 0;
    @%p2 bra SECOND;
    st.volatile.global.u32 [%outp+4], 1;
  )" + allocate(512) + deallocate(512) +
                      "END:\n");
  k.grid = {2, 1, 1};
  k.sms = 1;
  for (const auto& schedule : schedules()) {
    k.schedule = schedule;
    const Outcome o = run(k);
    EXPECT_EQ(o.status, LaunchStatus::Ok);
    EXPECT_TRUE(reports(o, "tmem-leak", "tcgen05.alloc"));
  }
}

TEST(TensorAllocTest, AnAllocLeavesTheColumnsOfTheOthersAlone) {
  const Outcome o = run(one_warp(allocate(32) + R"(
    mov.u32 %r11, %r10;
    mov.u32 %v0, 77;
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%r11+31], {%v0};
    tcgen05.wait::st.sync.aligned;
  )" + allocate(32) + R"(
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v1}, [%r11+31];
    out 0 %v1
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r11, 32;
  )" + deallocate(32)));
  ASSERT_TRUE(clean(o));
  EXPECT_EQ(o.out[0], 77u);
}

/// `work` is a loop that takes a few thousand cycles.
const char* const kWork = R"(
  mov.u32 %r30, 0;
$label:
  add.u32 %r30, %r30, 1;
  setp.lt.u32 %p15, %r30, 400;
  @%p15 bra $label;
)";
std::string work(const char* label) { return fill(kWork, {{"label", label}}); }

TEST(TensorAllocTest, CtasOfOneSmTakeTurns) {
  for (const uint32_t columns : {512u, 256u}) {
    for (const uint32_t ctas : {2u, 3u, 7u}) {
      for (const auto& schedule : schedules(4)) {
        // Five rounds; what a CTA has put into its columns stays there while others come and go.
        Kernel k = one_warp("mov.u32 %r1, 0;\nmov.u32 %r3, 0;\nROUND:\n" + allocate(columns) + R"(
          mad.lo.u32 %v0, %c, 1000, %r1;
          tcgen05.st.sync.aligned.32x32b.x1.b32 [%r10+77], {%v0};
          tcgen05.wait::st.sync.aligned;
        )" + work("WORK") + R"(
          tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v1}, [%r10+77];
          tcgen05.wait::ld.sync.aligned;
          setp.ne.u32 %p1, %v0, %v1;
          @%p1 add.u32 %r3, %r3, 1;
        )" + deallocate(columns) +
                            R"(
          add.u32 %r1, %r1, 1;
          setp.lt.u32 %p2, %r1, 5;
          @%p2 bra ROUND;
          mul.wide.u32 %rd1, %c, 8;
          add.u64 %rd1, %rd1, %outp;
          st.global.v2.u32 [%rd1], {%r1, %r3};
        )");
        k.grid = {ctas, 1, 1};
        k.sms = 1;
        k.schedule = schedule;
        const Outcome o = run(k);
        ASSERT_TRUE(clean(o)) << machine::to_string(schedule);
        for (uint32_t c = 0; c < ctas; c++) {
          EXPECT_EQ(o.out[2 * c], 5u);
          EXPECT_EQ(o.out[2 * c + 1], 0u) << "another CTA wrote into the columns of CTA " << c;
        }
      }
    }
  }
}

TEST(TensorAllocTest, AnAllocEndsNoEarlierThanTheDeallocThatItWaitsFor) {
  // CTA 1 asks when CTA 0 has all columns, and only then does CTA 0 go on.
  Kernel k = one_warp("setp.ne.u32 %p1, %c, 0;\n@%p1 bra SECOND;\n" + allocate(512) + R"(
    st.volatile.global.u32 [%outp], 1;
  MEET:
    ld.volatile.global.u32 %r2, [%outp+4];
    setp.eq.u32 %p2, %r2, 0;
    @%p2 bra MEET;
  )" + work("WORK") + R"(
    mov.u32 %r3, %clock;
    out 2 %r3
  )" + deallocate(512) +
                      R"(
    bra END;
  SECOND:
    ld.volatile.global.u32 %r2, [%outp];
    setp.eq.u32 %p2, %r2, 0;
    @%p2 bra SECOND;
    st.volatile.global.u32 [%outp+4], 1;
  )" + allocate(512) + R"(
    mov.u32 %r3, %clock;
    out 3 %r3
  )" + deallocate(512) +
                      "END:\n");
  k.grid = {2, 1, 1};
  k.sms = 1;
  const Outcome o = run(k);
  ASSERT_TRUE(clean(o));
  EXPECT_GT(o.out[2], 1000u);
  EXPECT_GE(o.out[3], o.out[2]);
}

TEST(TensorAllocTest, PiecesThatFitTogetherAreNeverInEachOthersWay) {
  for (uint64_t seed = 1; seed <= 20; seed++) {
    Kernel k = one_warp("");
    for (uint64_t piece = 0; piece < 4; piece++)
      k.body += fill(R"(
      tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot+$at], 128;
    )",
                     {{"at", number(4 * piece)}});
    k.body += "bar.sync 0;\n";
    for (uint64_t piece = 0; piece < 4; piece++)
      k.body += fill(R"(
      ld.shared.u32 %r1, [slot+$at];
      tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 128;
    )",
                     {{"at", number(4 * piece)}});
    k.schedule = random_schedule(seed);
    EXPECT_TRUE(clean(run(k))) << "seed " << seed;
  }
}

TEST(TensorAllocTest, TwoCtasThatEachWantMoreDeadlock) {
  for (const auto& schedule : schedules(4)) {
    // Neither goes on before both have their first half of the columns.
    Kernel k = one_warp(allocate(256) + R"(
      setp.eq.u32 %p1, %t, 0;
      @%p1 atom.global.add.u32 %r1, [%outp], 1;
    MEET:
      ld.volatile.global.u32 %r2, [%outp];
      setp.lt.u32 %p2, %r2, 2;
      @%p2 bra MEET;
      tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot+4], 256; // second
    )" + deallocate(256));
    k.grid = {2, 1, 1};
    k.sms = 1;
    k.schedule = schedule;
    const Outcome o = run(k);
    EXPECT_EQ(o.status, LaunchStatus::Hang);
    EXPECT_TRUE(reports(o, "deadlock", "// second",
                        "64 threads of CTAs 0-1 at kernel.cu:" + number(line_of(k.body, "// second")) +
                            " for 256 columns of tensor memory to become free"));
    k.sms = 2;
    std::fill(k.out.begin(), k.out.end(), 0);
    const Outcome apart = run(k);
    EXPECT_EQ(apart.status, LaunchStatus::Ok) << "they have an SM each, where the rest is free";
    EXPECT_TRUE(reports(apart, "tmem-leak", "// second"));
  }
}

TEST(TensorAllocTest, ABlockCanWaitForItself) {
  const Kernel k =
      one_warp(allocate(512) + "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 512; // 2\n");
  EXPECT_TRUE(reports(run(k), "deadlock", "// 2", "512 columns of tensor memory to become free"));
}

TEST(TensorAllocTest, AnotherWarpOfTheBlockMayFree) {
  for (const auto& schedule : schedules()) {
    Kernel k = one_warp("setp.ne.u32 %p1, %w, 0;\n@%p1 bra SECOND;\n" + std::string(kAlloc) + R"(512;
      tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot+4], 512; // waits for the other warp
      bar.sync 1, 64;
      ld.shared.u32 %r10, [slot+4];
      bra FREE;
    SECOND:
    )" + work("WORK") + R"(
      mov.u32 %r10, 0;
      tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 512;
      bar.sync 1, 64;
      bra END;
    FREE:
      tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 512;
    END:
    )");
    k.block = {64, 1, 1};
    k.schedule = schedule;
    const Outcome o = run(k);
    if (schedule.kind == machine::Schedule::Kind::Random && !o.ok()) {
      // The second warp may be there first: then there is nothing to free yet.
      EXPECT_TRUE(reports(o, "tmem-alloc-protocol", "tcgen05.dealloc", "the block has no columns allocated"));
      continue;
    }
    EXPECT_TRUE(clean(o)) << machine::to_string(schedule);
  }
}

// --- ld, st, wait, fence ---------------------------------------------------------------------------------------------

TEST(TensorAccessTest, ALaneBeyond128IsNotedAndTakenModulo) {
  Kernel k = one_warp(allocate(32) + R"(
    mov.u32 %v0, 1234;
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%r10+3], {%v0};
    tcgen05.wait::st.sync.aligned;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v1}, [%r10+0x800003]; // far
    out 0 %v1
  )" + deallocate(32));
  const Outcome o = run(k);
  EXPECT_EQ(o.status, LaunchStatus::Ok);
  EXPECT_TRUE(reports(o, "advisory-tmem-lane", "// far",
                      "lane 128 of the address is beyond the 128 of a block; lane 0 is meant here"));
  EXPECT_EQ(o.diagnostics.at(0).severity, Severity::Note);
  EXPECT_EQ(o.out[0], 1234u);
}

TEST(TensorAccessTest, OneAccessMayRunOverSeveralAllocations) {
  Kernel k = one_warp(allocate(32) + "mov.u32 %r11, %r10;\n" + allocate(32) + R"(
    tcgen05.ld.sync.aligned.32x32b.x64.b32 $all, [%r11];
    tcgen05.wait::ld.sync.aligned;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r11, 32;
  )" + deallocate(32));
  k.body = fill(k.body, {{"all", registers(64)}});
  EXPECT_TRUE(clean(run(k)));
}

std::vector<TensorAccessForm> every_form() {
  std::vector<TensorAccessForm> forms;
  using Shape = TensorAccessForm::Shape;
  for (const Shape shape : {Shape::L32x32b, Shape::L16x64b, Shape::L16x128b, Shape::L16x256b, Shape::L16x32bx2}) {
    for (const uint32_t repeat : {1u, 2u, 4u, 8u, 16u, 32u, 64u, 128u}) {
      for (const bool packed : {false, true}) {
        TensorAccessForm f{shape, repeat, packed, 0};
        if (shape == Shape::L16x32bx2) f.split = repeat * (packed ? 2 : 1);
        if (shape == Shape::L16x32bx2 && repeat == 8) f.split += 5;
        if (f.problem().empty()) forms.push_back(f);
      }
    }
  }
  return forms;
}
std::string shape_name(const TensorAccessForm& f) {
  const char* const names[] = {"32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"};
  return names[static_cast<int>(f.shape)] + std::string(".x") + number(f.repeat);
}
class TensorShapeTest : public ::testing::TestWithParam<TensorAccessForm> {
 protected:
  /// Columns that the form needs, as alloc takes them.
  static uint32_t columns(const TensorAccessForm& f) {
    uint32_t end = 0;
    for (const auto& [first, count] : f.columns()) end = std::max(end, first + count);
    return std::max(32u, std::bit_ceil(end));
  }
  /// The value that the kernel puts into a cell; `lane` 0 … 127.
  static uint32_t value(uint32_t lane, uint32_t column) { return lane << 20 | column << 8 | (lane ^ column) % 251; }

  /// Four warps; each first fills the lanes that it reaches with value(), then does `access` at %r12, and `access`
  /// leaves something in %v0… . Lanes 16-31 of the quarter where the form has 16 and `lower` is set.
  static Kernel kernel(const TensorAccessForm& f, bool lower, const std::string& access) {
    Kernel k;
    k.shared = kSlot;
    k.block = {128, 1, 1};
    k.body = "\n" + std::string(kRegisters) + "setp.ne.u32 %p1, %w, 0;\n@%p1 bra ALLOCATED;\n" + kAlloc +
             number(columns(f)) + R"(;
      ALLOCATED:
      bar.sync 0;
      ld.shared.u32 %r10, [slot];
      shl.b32 %r11, %w, 21;
      add.u32 %r11, %r10, %r11; // the quarter
      add.u32 %r12, %r11, $half;
      mov.u32 %r13, 0;
      shl.b32 %r15, %t, 20;
      FILL:
      shl.b32 %r16, %r13, 8;
      or.b32 %r16, %r16, %r15;
      xor.b32 %r17, %r13, %t;
      rem.u32 %r17, %r17, 251;
      or.b32 %v0, %r16, %r17;
      add.u32 %r14, %r11, %r13;
      tcgen05.st.sync.aligned.32x32b.x1.b32 [%r14], {%v0};
      add.u32 %r13, %r13, 1;
      setp.lt.u32 %p2, %r13, $columns;
      @%p2 bra FILL;
      tcgen05.wait::st.sync.aligned;
      mul.wide.u32 %rd1, %t, 4;
      add.u64 %rd1, %rd1, %outp;
    )" + access +
             R"(
      bar.sync 0;
      @%p1 bra END;
      tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, $columns;
      END:
    )";
    k.body = fill(k.body, {{"half", lower && f.lanes() == 16 ? "0x100000" : "0"}, {"columns", number(columns(f))}});
    return k;
  }
  static std::string split(const TensorAccessForm& f) {
    return f.shape == TensorAccessForm::Shape::L16x32bx2 ? ", " + number(f.split) : "";
  }
};

TEST_P(TensorShapeTest, LoadsWhatTheFormSays) {
  const TensorAccessForm& f = GetParam();
  for (const bool lower : {false, true}) {
    std::string access = "tcgen05.ld.sync.aligned." + shape_name(f) + (f.packed ? ".pack::16b" : "") + ".b32 " +
                         registers(f.registers()) + ", [%r12]" + split(f) + ";\ntcgen05.wait::ld.sync.aligned;\n";
    for (uint32_t i = 0; i < f.registers(); i++)
      access += "st.global.u32 [%rd1+" + number(i * 512) + "], %v" + number(i) + ";\n";
    Kernel k = kernel(f, lower, access);
    k.out.assign(size_t{f.registers()} * 128, 0);
    const Outcome o = run(k);
    ASSERT_TRUE(clean(o));
    for (uint32_t i = 0; i < f.registers(); i++) {
      for (uint32_t t = 0; t < 128; t++) {
        const TensorCell c = f.cell(t % 32, i);
        const uint32_t lane = t / 32 * 32 + (lower && f.lanes() == 16 ? 16 : 0) + c.lane;
        const uint32_t expected =
            f.packed ? (value(lane, c.column) & 0xffff) | value(lane, c.column + 1) << 16 : value(lane, c.column);
        ASSERT_EQ(o.out[i * 128 + t], expected) << "thread " << t << " register " << i;
      }
    }
  }
}

TEST_P(TensorShapeTest, StoresWhereTheFormSaysAndNowhereElse) {
  const TensorAccessForm& f = GetParam();
  for (const bool lower : {false, true}) {
    std::string access;
    for (uint32_t i = 0; i < f.registers(); i++)
      access += "mad.lo.u32 %v" + number(i) + ", %t, 0x10003, " + number(0x5000700 + i * 0x20000) + ";\n";
    access += "tcgen05.st.sync.aligned." + shape_name(f) + (f.packed ? ".unpack::16b" : "") + ".b32 [%r12]" + split(f) +
              ", " + registers(f.registers()) + R"(;
      tcgen05.wait::st.sync.aligned;
      mov.u32 %r13, 0;
      READ:
      add.u32 %r14, %r11, %r13;
      tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%r14];
      tcgen05.wait::ld.sync.aligned;
      st.global.u32 [%rd1], %v0;
      add.u64 %rd1, %rd1, 512;
      add.u32 %r13, %r13, 1;
      setp.lt.u32 %p2, %r13, $columns;
      @%p2 bra READ;
    )";
    Kernel k = kernel(f, lower, access);
    k.out.assign(size_t{columns(f)} * 128, 0);
    const Outcome o = run(k);
    ASSERT_TRUE(clean(o));
    std::vector<uint32_t> expected(k.out.size());
    for (uint32_t c = 0; c < columns(f); c++) {
      for (uint32_t lane = 0; lane < 128; lane++) expected[c * 128 + lane] = value(lane, c);
    }
    for (uint32_t i = 0; i < f.registers(); i++) {
      for (uint32_t t = 0; t < 128; t++) {
        const TensorCell c = f.cell(t % 32, i);
        const uint32_t at = c.column * 128 + t / 32 * 32 + (lower && f.lanes() == 16 ? 16 : 0) + c.lane;
        const uint32_t v = t * 0x10003 + 0x5000700 + i * 0x20000;
        expected[at] = f.packed ? v & 0xffff : v;
        if (f.packed) expected[at + 128] = v >> 16;
      }
    }
    ASSERT_EQ(o.out, expected);
  }
}
INSTANTIATE_TEST_SUITE_P(EveryForm, TensorShapeTest, ::testing::ValuesIn(every_form()), [](const auto& info) {
  std::string s = shape_name(info.param) + (info.param.packed ? "_packed" : "");
  std::replace(s.begin(), s.end(), '.', '_');
  return s;
});

TEST(TensorAccessTest, AnUnusedRegisterOfALoadMayBeLeftOut) {
  Kernel k = one_warp(allocate(32) + R"(
    mov.u32 %v0, 5;
    mov.u32 %v1, 6;
    tcgen05.st.sync.aligned.32x32b.x2.b32 [%r10], {%v0, %v1};
    tcgen05.wait::st.sync.aligned;
    tcgen05.ld.sync.aligned.32x32b.x2.b32 {_, %v5}, [%r10];
    tcgen05.wait::ld.sync.aligned;
    out 0 %v5
  )" + deallocate(32));
  const Outcome o = run(k);
  ASSERT_TRUE(clean(o));
  EXPECT_EQ(o.out[0], 6u);
}

TEST(TensorAccessTest, WhatItsWatcherIsTold) {
  TensorRecorder seen;
  Kernel k = one_warp(allocate(64) + R"(
    tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
    tcgen05.st.sync.aligned.16x32bx2.x2.b32 [%r10+0x100004], 8, {%v0, %v1};
    tcgen05.wait::st.sync.aligned;
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    tcgen05.ld.sync.aligned.32x32b.x4.b32 {%v0, %v1, %v2, %v3}, [%r10];
    tcgen05.wait::ld.sync.aligned;
  )" + deallocate(64));
  k.observer = &seen;
  ASSERT_TRUE(clean(run(k)));
  using Kind = TensorEvent::Kind;
  ASSERT_THAT(seen.kinds(), ElementsAre(Kind::Alloc, Kind::Relinquish, Kind::Store, Kind::WaitStore, Kind::FenceBefore,
                                        Kind::FenceAfter, Kind::Load, Kind::WaitLoad, Kind::Dealloc));
  for (const auto& e : seen.tensors) EXPECT_EQ(e.mask, machine::kFullMask);
  const auto region = [](const machine::TensorRegion& r) {
    return std::vector<uint32_t>{r.halves, r.column, r.columns, r.write ? 1u : 0u};
  };
  EXPECT_THAT(region(seen.tensors[0].regions.at(0)), ElementsAre(0xff, 0, 64, 1));
  ASSERT_EQ(seen.tensors[2].regions.size(), 2u);
  EXPECT_THAT(region(seen.tensors[2].regions[0]), ElementsAre(2, 4, 2, 1));
  EXPECT_THAT(region(seen.tensors[2].regions[1]), ElementsAre(2, 12, 2, 1));
  EXPECT_EQ(seen.tensors[2].amount, 256u);
  EXPECT_THAT(region(seen.tensors[6].regions.at(0)), ElementsAre(3, 0, 4, 0));
  EXPECT_EQ(seen.tensors[6].amount, 512u);
  EXPECT_THAT(region(seen.tensors[8].regions.at(0)), ElementsAre(0xff, 0, 64, 1));
}

TEST(TensorAccessTest, AWaitTakesTheTimeThatIsLeft) {
  const auto cycles = [](const std::string& text) {
    const Outcome o = run(one_warp(allocate(64) + "mov.u32 %r1, %clock;\n" + fill(text, {{"all", registers(64)}}) + R"(
      mov.u32 %r2, %clock;
      sub.u32 %r1, %r2, %r1;
      out 0 %r1
    )" + deallocate(64)));
    EXPECT_TRUE(clean(o));
    return o.out[0];
  };
  const std::string load = "tcgen05.ld.sync.aligned.32x32b.x64.b32 $all, [%r10];\n";
  const std::string store = "tcgen05.st.sync.aligned.32x32b.x64.b32 [%r10], $all;\n";
  const uint32_t least = 64 * 128 / machine::kBlackwell.tmem_bytes_per_cycle;
  EXPECT_GE(cycles(load + "tcgen05.wait::ld.sync.aligned;\n"), least);
  EXPECT_GE(cycles(store + "tcgen05.wait::st.sync.aligned;\n"), least);
  EXPECT_LT(cycles(load), least) << "without a wait";
  EXPECT_LT(cycles(store), least) << "without a wait";
  EXPECT_LT(cycles(load + "tcgen05.wait::st.sync.aligned;\n"), least) << "the wait is for stores";
}

class DivergedTest : public ::testing::TestWithParam<const char*> {};
TEST_P(DivergedTest, HalfOfAWarpIsNotEnough) {
  for (const auto& schedule : schedules(1)) {
    Kernel k = one_warp(allocate(64) + "setp.lt.u32 %p1, %t, 16;\n@!%p1 bra OUT;\n" + GetParam() + " // half\nOUT:\n" +
                        "bar.warp.sync 0xffffffff;\n" + deallocate(64));
    k.schedule = schedule;
    const Outcome o = run(k);
    EXPECT_TRUE(reports(o, "diverged-collective", "// half", "lanes 0-15")) << machine::to_string(schedule);
  }
}
TEST_P(DivergedTest, LanesThatHaveLeftAreMissed) {
  for (const auto& schedule : schedules(1)) {
    Kernel k = one_warp(allocate(64) + "setp.ge.u32 %p1, %t, 16;\n@%p1 exit;\n" + GetParam() + " // half\n");
    k.schedule = schedule;
    const Outcome o = run(k);
    EXPECT_TRUE(reports(o, "diverged-collective", "// half", "without lanes 16-31 of the warp, which have left"));
  }
}
INSTANTIATE_TEST_SUITE_P(All, DivergedTest,
                         ::testing::Values("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot+4], 32;",
                                           "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 64;",
                                           "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;",
                                           "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%r10];",
                                           "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r10], {%v0};",
                                           "tcgen05.wait::ld.sync.aligned;", "tcgen05.wait::st.sync.aligned;"));

TEST(TensorAccessTest, FencesAreEachThreadsOwn) {
  EXPECT_TRUE(clean(run(one_warp(R"(
    setp.lt.u32 %p1, %t, 16;
    @%p1 tcgen05.fence::before_thread_sync;
    @!%p1 tcgen05.fence::after_thread_sync;
  )"))));
}

struct Refused {
  const char* line;
  const char* why;
};
void PrintTo(const Refused& r, std::ostream* out) { *out << r.line; }
class RefusalTest : public ::testing::TestWithParam<Refused> {};
TEST_P(RefusalTest, CannotBeEmulated) {
  const Outcome o = run(one_warp(std::string(GetParam().line) + " // here\n"));
  EXPECT_TRUE(reports(o, "unsupported-instruction", "// here", GetParam().why));
}
INSTANTIATE_TEST_SUITE_P(
    All, RefusalTest,
    ::testing::Values(
        Refused{"tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1], %h1;",
                "a mask of CTAs goes with .multicast::cluster"},
        Refused{"tcgen05.mma.cta_group::2.kind::f16 [%r1], %rd1, %rd2, %r2, {%r3, %r4, %r5, %r6}, %p1;",
                "8 elements with cta_group::2, got 4"},
        Refused{"tcgen05.mma.cta_group::1.kind::f8f6f4 [%r1], %rd1, %rd2, %r2, %p1, 3;",
                "goes with kind::f16 and kind::tf32 only"},
        Refused{"tcgen05.mma.cta_group::1.kind::mxf4.block_scale [%r1], %rd1, %rd2, %r2, %r3, [%r4], %p1;",
                "scale factors are at an address in tensor memory"},
        Refused{"tcgen05.mma.cta_group::1.kind::mxf4.block_scale [%r1], %rd1, %rd2, %r2, [%r3], [%rd4], %p1;",
                "address is 32 bits wide"},
        Refused{"tcgen05.mma.cta_group::1.kind::f16.ashift [%r1], [%r3], %rd2, %r2, %p1;",
                "whether a row gets the one before or behind it"},
        Refused{"tcgen05.mma.sp.cta_group::1.kind::f16 [%r1], %rd1, %rd2, [%r3], %r2, %p1;",
                "tcgen05.mma.sp is not supported yet"},
        Refused{"tcgen05.mma.ws.sp.cta_group::1.kind::i8.collector::b2::use [%r1], %rd1, %rd2, [%r3], %r2, %p1, %rd3;",
                "tcgen05.mma.ws.sp is not supported yet"},
        Refused{"tcgen05.mma.ws.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1, %r3;",
                "zero-column-mask-desc is 64 bits wide"},
        Refused{"tcgen05.mma.ws.cta_group::2.kind::f16 [%r1], %rd1, %rd2, %r2, %p1;",
                "tcgen05.mma.ws does not take modifier '.cta_group::2'"},
        Refused{"tcgen05.mma.cta_group::1.kind::f16 [%r1], %r3, %rd2, %r2, %p1;", "descriptor is 64 bits wide"},
        Refused{"tcgen05.mma.cta_group::1.kind::f16 [%rd1], %rd2, %rd2, %r2, %p1;", "address is 32 bits wide"},
        Refused{"tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1, 16;", "a constant from 0 to 15"},
        Refused{"tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, {%r3, %r4}, %p1;", "4 elements"},
        Refused{"tcgen05.ld.sync.aligned.16x256b.x64.b32 {%r1}, [%r2];", "this shape has no .x64; .x32 is its largest"},
        Refused{"tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r1, %r2, %r3}, [%r2];", "this shape takes 4 registers, got 3"},
        Refused{"tcgen05.st.sync.aligned.16x128b.x1.b32 [%r2], {%r1};", "this shape takes 2 registers, got 1"},
        Refused{"tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%r1}, [%r2], %r3;", "must be a constant"},
        Refused{"tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%r1}, [%r2], 512;", "a distance in columns, 0 to 511"},
        Refused{"tcgen05.st.sync.aligned.16x32bx2.x1.b32 [%r2], -1, {%r1};", "a distance in columns, 0 to 511"},
        Refused{"tcgen05.ld.sync.aligned.32x32b.x1.b32 {%rd1}, [%r2];", "registers are 32 bits wide"},
        Refused{"tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%rd2];", "address is 32 bits wide"}));

// --- mma, commit -----------------------------------------------------------------------------------------------------

uint32_t float_bits(double value) { return std::bit_cast<uint32_t>(static_cast<float>(value)); }
/// An integer of at most 11 bits as f16.
uint32_t half_bits(int value) {
  if (value == 0) return 0;
  const auto magnitude = static_cast<uint32_t>(std::abs(value));
  const auto exponent = static_cast<uint32_t>(std::bit_width(magnitude) - 1);
  return (value < 0 ? 0x8000u : 0u) | (15 + exponent) << 10 | (magnitude << (10 - exponent) & 0x3ffu);
}

/// One kernel: four warps copy the operands into shared memory and put the first D (and A) into tensor memory; thread 0
/// issues `steps` MMAs along K and a commit; all wait for it and read D back.
struct Product {
  MmaType type = MmaType::F16;  ///< of A and B
  MmaType d_type = MmaType::F32;
  uint32_t m = 128, n = 64;
  uint32_t steps = 4;     ///< K = 32 bytes times this; at most 4
  bool swizzled = false;  ///< 128-byte swizzle, else none
  bool a_in_tensor_memory = false;
  bool negate_a = false, negate_b = false;
  bool accumulate = false;         ///< enable-input-d of the first MMA
  uint32_t scale = 0;              ///< scale-input-d; 0: the operand is left out
  uint32_t half = 0;               ///< lane of D and A: 0, or 16 for M = 64
  bool weight_stationary = false;  ///< `.ws`, with any of its three M
  uint64_t zero_columns = 0;       ///< of .ws: zero-column mask descriptor; 0: the operand is left out
  bool (*is_zero)(uint32_t column) = [](uint32_t) { return false; };  ///< that this descriptor means
  std::array<uint32_t, 4> disabled = {};  ///< disable-output-lane; all 0: the operand is left out
  std::string late;                       ///< thread 0 does this between the last MMA and the commit
  std::string meanwhile;                  ///< warp 0 does this before it waits, thread 0 behind the commit
  machine::Schedule schedule;
  machine::Observer* observer = nullptr;

  uint32_t element_bytes() const { return type == MmaType::Tf32 ? 4 : 2; }
  uint32_t k() const { return steps * 32 / element_bytes(); }
  const char* kind() const { return type == MmaType::Tf32 ? "tf32" : "f16"; }
  // Elements, small enough for every sum to be exact.
  static int a(uint32_t row, uint32_t k) { return static_cast<int>((row * 7 + k * 5 + row * k) % 7) - 3; }
  static int b(uint32_t column, uint32_t k) { return static_cast<int>((column * 3 + k * 11 + column * k * 5) % 5) - 2; }
  static int first_d(uint32_t lane, uint32_t column) { return static_cast<int>((lane * 5 + column * 3) % 64) - 30; }

  uint32_t element(int value) const {
    return type == MmaType::F16    ? half_bits(value)
           : type == MmaType::Bf16 ? float_bits(value) >> 16
                                   : float_bits(value) | 0x1234;  // of a tf32 the low bits do not count
  }
  uint32_t cell(double value) const {
    return d_type == MmaType::F16 ? half_bits(static_cast<int>(value)) : float_bits(value);
  }
  /// Row of D and of A that a lane holds, or -1.
  int row_of(uint32_t lane) const {
    if (m == 128 || weight_stationary) return static_cast<int>(lane);
    return lane % 32 / 16 == half / 16 ? static_cast<int>(lane / 32 * 16 + lane % 16) : -1;
  }
  bool is_disabled(uint32_t lane) const { return (disabled[lane / 32] >> lane % 32 & 1) != 0; }

  // Shared memory. With the swizzle rows are 128 bytes and 8 rows 1024; without it 8 rows of 16 bytes make 128, here
  // with gaps between such blocks.
  static constexpr uint32_t kBlock = 144, kGap = 32;
  uint32_t lbo(uint32_t rows) const { return rows / 8 * kBlock + kGap; }
  uint32_t bytes(uint32_t rows) const { return swizzled ? rows * 128 : (steps * 2 * lbo(rows) + 1023) / 1024 * 1024; }
  uint32_t b_offset() const { return a_in_tensor_memory ? 0 : bytes(m); }
  uint32_t tile_bytes() const { return b_offset() + bytes(n); }
  /// Byte of an element, from the start of its matrix.
  uint32_t place(uint32_t rows, uint32_t row, uint32_t k_element) const {
    const uint32_t in_row = k_element * element_bytes(), unit = in_row / 16, in_unit = in_row % 16;
    if (swizzled) return row * 128 + (unit ^ row % 8) * 16 + in_unit;
    return unit * lbo(rows) + row / 8 * kBlock + row % 8 * 16 + in_unit;
  }
  uint64_t descriptor(uint32_t rows) const {
    const uint64_t sbo = swizzled ? 1024 : kBlock, leading = swizzled ? 16 : lbo(rows);
    return leading / 16 << 16 | sbo / 16 << 32 | uint64_t{1} << 46 | (swizzled ? uint64_t{2} << 61 : 0);
  }
  /// What a step along K adds to the start address.
  uint32_t advance(uint32_t rows) const { return swizzled ? 32 : 2 * lbo(rows); }
  uint32_t instruction() const {
    const uint32_t code = type == MmaType::F16 ? 0 : type == MmaType::Bf16 ? 1 : 2;
    return (d_type == MmaType::F32 ? 1u << 4 : 0) | code << 7 | code << 10 | (negate_a ? 1u << 13 : 0) |
           (negate_b ? 1u << 14 : 0) | n / 8 << 17 | m / 16 << 24;
  }

  /// The bytes that the kernel copies to shared memory, then the first D and A as lanes have them.
  std::vector<uint32_t> input() const {
    std::vector<uint32_t> words(tile_bytes() / 4, 0xdeadbeef);
    const auto put = [&](uint32_t at, uint32_t bits) {
      std::memcpy(reinterpret_cast<char*>(words.data()) + at, &bits, element_bytes());
    };
    for (uint32_t k_element = 0; k_element < k(); k_element++) {
      for (uint32_t row = 0; row < m && !a_in_tensor_memory; row++)
        put(place(m, row, k_element), element(a(row, k_element)));
      for (uint32_t column = 0; column < n; column++)
        put(b_offset() + place(n, column, k_element), element(b(column, k_element)));
    }
    for (uint32_t lane = 0; lane < 128; lane++) {
      for (uint32_t column = 0; column < n; column++) words.push_back(cell(first_d(lane, column)));
    }
    for (uint32_t lane = 0; lane < 128 && a_in_tensor_memory; lane++) {
      const int row = row_of(lane);
      for (uint32_t word = 0; word < steps * 8; word++) {
        uint32_t bits = 0xffffffff;
        for (uint32_t e = 0; row >= 0 && e < 4 / element_bytes(); e++) {
          const uint32_t value = element(a(static_cast<uint32_t>(row), word * 4 / element_bytes() + e));
          bits = e == 0 ? value : (bits & 0xffff) | value << 16;
        }
        words.push_back(bits);
      }
    }
    return words;
  }
  /// D as the lanes have it in the end: [128][n].
  std::vector<uint32_t> expected() const {
    std::vector<uint32_t> d;
    for (uint32_t lane = 0; lane < 128; lane++) {
      const int row = row_of(lane);
      for (uint32_t column = 0; column < n; column++) {
        const double old = first_d(lane, column);
        // With .ws the lanes behind the first M hold further columns of the same rows.
        const uint32_t columns_in_lane = weight_stationary ? n * m / 128 : n;
        if (row < 0 || is_disabled(lane) || column >= columns_in_lane) {
          d.push_back(cell(old));
          continue;
        }
        const uint32_t of_row = weight_stationary ? lane % m : static_cast<uint32_t>(row);
        const uint32_t of_column = weight_stationary ? lane / m * columns_in_lane + column : column;
        double sum = accumulate ? std::ldexp(old, -static_cast<int>(scale)) : 0;
        for (uint32_t k_element = 0; k_element < k(); k_element++) {
          // Each step scales what the steps before have left.
          const uint32_t per_step = k() / steps;
          if (k_element > 0 && k_element % per_step == 0) sum = std::ldexp(sum, -static_cast<int>(scale));
          if (is_zero(of_column)) continue;
          sum += (negate_a != negate_b ? -1 : 1) * a(of_row, k_element) * b(of_column, k_element);
        }
        d.push_back(cell(sum));
      }
    }
    return d;
  }

  uint32_t columns() const { return std::bit_ceil(n + (a_in_tensor_memory ? steps * 8 : 0) + 32); }
  /// Where D is, as a distance from the first column: not at 0.
  static constexpr uint32_t kD = 16;

  Kernel kernel() const {
    // `count` columns of the warp's quarter at column `at` from the words behind `from` bytes of `in`.
    const auto bring = [](const char* label, uint32_t at, uint32_t count, uint32_t from) {
      return fill(R"(
        mul.wide.u32 %rd1, %t, $row;
        add.u64 %rd1, %rd1, %inp;
        add.u32 %r2, %r11, $at;
        mov.u32 %r1, 0;
        $label:
        ld.global.v4.u32 {%v0, %v1, %v2, %v3}, [%rd1+$from];
        ld.global.v4.u32 {%v4, %v5, %v6, %v7}, [%rd1+$from+16];
        tcgen05.st.sync.aligned.32x32b.x8.b32 [%r2], {%v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7};
        add.u64 %rd1, %rd1, 32;
        add.u32 %r2, %r2, 8;
        add.u32 %r1, %r1, 8;
        setp.lt.u32 %p2, %r1, $count;
        @%p2 bra $label;
      )",
                  {{"row", number(uint64_t{count} * 4)},
                   {"at", number(at)},
                   {"label", label},
                   {"from+16", number(from + 16)},
                   {"from", number(from)},
                   {"count", number(count)}});
    };
    std::string mmas;
    for (uint32_t step = 0; step < steps; step++) {
      if (step == 1) mmas += "setp.eq.u32 %p4, 0, 0;\n";
      mmas += fill("tcgen05.mma$ws.cta_group::1.kind::$kind [%r14], $a, %rd6, %r12$mask, %p4$scale$zero; // mma\n",
                   {{"kind", kind()},
                    {"ws", weight_stationary ? ".ws" : ""},
                    {"zero", zero_columns == 0 ? "" : ", " + number(zero_columns)},
                    {"a", a_in_tensor_memory ? "[%r13+" + number(uint64_t{step} * 8) + "]" : "%rd5"},
                    {"mask", disabled == std::array<uint32_t, 4>{} ? "" : ", {%r40, %r41, %r42, %r43}"},
                    {"scale", scale == 0 ? "" : ", " + number(scale)}});
      mmas += "add.u64 %rd5, %rd5, " + number(advance(m) / 16) + ";\n";
      mmas += "add.u64 %rd6, %rd6, " + number(advance(n) / 16) + ";\n";
    }
    Kernel s;
    s.block = {128, 1, 1};
    s.schedule = schedule;
    s.observer = observer;
    s.in = input();
    s.out.assign(size_t{128} * n + 64, 0);
    s.dynamic_smem = tile_bytes();
    s.shared = ".extern .shared .align 1024 .b8 tile[];\n.shared .align 8 .b64 done;\n" + std::string(kSlot);
    s.body = "\n" + std::string(kRegisters) +
             fill(R"(
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
      setp.lt.u32 %p2, %r1, $words;
      @%p2 bra COPY;
      fence.proxy.async.shared::cta;
      @%p1 mbarrier.init.shared::cta.b64 [done], 1;
      @!%p3 bra ALLOCATED;
      tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], $columns;
      ALLOCATED:
      bar.sync 0;
      ld.shared.u32 %r10, [slot];
      shl.b32 %r11, %w, 21;
      add.u32 %r11, %r10, %r11; // the warp's quarter
      $d
      $a
      tcgen05.wait::st.sync.aligned;
      tcgen05.fence::before_thread_sync;
      bar.sync 0;
      tcgen05.fence::after_thread_sync;
      @!%p1 bra WAIT;
      mov.u32 %r12, $instruction;
      add.u32 %r13, %r10, $place_of_a;
      add.u32 %r14, %r10, $place_of_d;
      mov.u32 %r40, $mask0;
      mov.u32 %r41, $mask1;
      mov.u32 %r42, $mask2;
      mov.u32 %r43, $mask3;
      mov.u32 %r4, tile;
      shr.u32 %r4, %r4, 4;
      cvt.u64.u32 %rd4, %r4;
      mov.u64 %rd5, $descriptor_a;
      mov.u64 %rd6, $descriptor_b;
      add.u64 %rd5, %rd5, %rd4;
      add.u64 %rd6, %rd6, %rd4;
      setp.ne.u32 %p4, $accumulate, 0;
      $mmas
      $late
      tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done]; // commit
      WAIT:
      $meanwhile
      SPIN:
      mbarrier.try_wait.parity.shared::cta.b64 %p5, [done], 0;
      @!%p5 bra SPIN;
      tcgen05.fence::after_thread_sync;
      mul.wide.u32 %rd1, %t, $row;
      add.u64 %rd1, %rd1, %outp;
      add.u32 %r2, %r11, $column_of_d;
      mov.u32 %r1, 0;
      READ:
      tcgen05.ld.sync.aligned.32x32b.x8.b32 {%v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7}, [%r2];
      tcgen05.wait::ld.sync.aligned;
      st.global.v4.u32 [%rd1], {%v0, %v1, %v2, %v3};
      st.global.v4.u32 [%rd1+16], {%v4, %v5, %v6, %v7};
      add.u64 %rd1, %rd1, 32;
      add.u32 %r2, %r2, 8;
      add.u32 %r1, %r1, 8;
      setp.lt.u32 %p2, %r1, $n;
      @%p2 bra READ;
      tcgen05.fence::before_thread_sync;
      bar.sync 0;
      @!%p3 bra END;
      tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, $columns;
      END:
    )",
                  {{"words", number(tile_bytes() / 4)},
                   {"columns", number(columns())},
                   {"descriptor_a", number(descriptor(m))},
                   {"descriptor_b", number(descriptor(n) + b_offset() / 16)},
                   {"instruction", number(instruction())},
                   {"place_of_a", number((half << 16) + kD + n)},
                   {"place_of_d", number((half << 16) + kD)},
                   {"column_of_d", number(kD)},
                   {"mask0", number(disabled[0])},
                   {"mask1", number(disabled[1])},
                   {"mask2", number(disabled[2])},
                   {"mask3", number(disabled[3])},
                   {"accumulate", accumulate ? "1" : "0"},
                   {"mmas", mmas},
                   {"meanwhile", meanwhile.empty() ? "" : "@!%p3 bra SPIN;\n" + meanwhile},
                   {"late", late},
                   {"row", number(uint64_t{n} * 4)},
                   {"d", bring("BRING_D", kD, n, tile_bytes())},
                   {"a", a_in_tensor_memory ? bring("BRING_A", kD + n, steps * 8, tile_bytes() + 512 * n) : ""},
                   {"n", number(n)}});
    return s;
  }
  /// D as the kernel read it.
  std::vector<uint32_t> result(const Outcome& o) const {
    return {o.out.begin(), o.out.begin() + static_cast<std::ptrdiff_t>(size_t{128} * n)};
  }
};
void PrintTo(const Product& p, std::ostream* out) {
  *out << to_string(p.type) << " to " << to_string(p.d_type) << " M " << p.m << " N " << p.n << " steps " << p.steps
       << (p.swizzled ? " swizzled" : "") << (p.a_in_tensor_memory ? " A in tensor memory" : "") << " lane " << p.half;
}

/// Runs it and compares D.
void expect_product(const Product& p) {
  const Outcome o = run(p.kernel());
  ASSERT_EQ(o.status, LaunchStatus::Ok);
  ASSERT_TRUE(o.diagnostics.empty()) << text_of(o);
  const std::vector<uint32_t> d = p.result(o), expected = p.expected();
  for (uint32_t at = 0; at < d.size(); at++)
    ASSERT_EQ(d[at], expected[at]) << "lane " << at / p.n << " column " << at % p.n;
}

std::vector<Product> sweep() {
  std::vector<Product> all;
  for (const MmaType type : {MmaType::F16, MmaType::Bf16, MmaType::Tf32}) {
    for (const uint32_t m : {64u, 128u}) {
      for (const uint32_t n : {8u, 24u, 64u, 256u}) {
        for (int form = 0; form < 4; form++) {
          Product p;
          p.type = type;
          p.m = m;
          p.n = n;
          p.swizzled = (form & 1) != 0;
          p.a_in_tensor_memory = (form & 2) != 0;
          p.half = m == 64 && (n == 24 || n == 256) ? 16 : 0;
          all.push_back(p);
        }
      }
    }
  }
  return all;
}
class ProductTest : public ::testing::TestWithParam<Product> {};
TEST_P(ProductTest, IsThatOfTheHost) { expect_product(GetParam()); }
INSTANTIATE_TEST_SUITE_P(Sweep, ProductTest, ::testing::ValuesIn(sweep()));

TEST(MmaTest, OneStepAndEnableInputD) {
  for (const bool accumulate : {false, true}) {
    for (const uint32_t steps : {1u, 3u}) {
      Product p;
      p.steps = steps;
      p.accumulate = accumulate;
      expect_product(p);
      p.swizzled = true;
      p.m = 64;
      expect_product(p);
    }
  }
}

TEST(MmaTest, ResultsOfTypeF16LieInTheLowHalves) {
  for (const uint32_t m : {64u, 128u}) {
    for (const bool accumulate : {false, true}) {
      Product p;
      p.d_type = MmaType::F16;
      p.m = m;
      p.accumulate = accumulate;
      p.swizzled = accumulate;
      for (const uint32_t cell : p.expected()) ASSERT_EQ(cell >> 16, 0u);
      expect_product(p);
    }
  }
}

TEST(MmaTest, EitherOperandMayBeNegated) {
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      Product p;
      p.negate_a = a;
      p.negate_b = b;
      p.accumulate = true;
      expect_product(p);
      p.a_in_tensor_memory = true;
      p.type = MmaType::Tf32;
      expect_product(p);
    }
  }
}

TEST(MmaTest, DisabledLanesKeepWhatTheyHave) {
  for (const uint32_t m : {64u, 128u}) {
    for (const bool accumulate : {false, true}) {
      Product p;
      p.m = m;
      p.accumulate = accumulate;
      p.disabled = {0x00010003, 0x80000000, 0xffffffff, 0x0000ff00};
      expect_product(p);
    }
  }
}

TEST(MmaTest, TheOldDIsScaledDown) {
  for (const uint32_t scale : {1u, 2u, 5u}) {
    Product p;
    p.steps = 1;
    p.accumulate = true;
    p.scale = scale;
    expect_product(p);
    p.type = MmaType::Tf32;
    p.steps = 3;
    expect_product(p);
  }
}

// .ws: D in layouts D, E and G (PTX §9.7.16.10.5), each with all N.
TEST(MmaTest, WeightStationaryPutsBlocksOfColumnsBelowEachOther) {
  for (const MmaType type : {MmaType::F16, MmaType::Bf16, MmaType::Tf32}) {
    for (const uint32_t m : {32u, 64u, 128u}) {
      for (const uint32_t n : {64u, 128u, 256u}) {
        for (const bool accumulate : {false, true}) {
          Product p;
          p.weight_stationary = true;
          p.type = type;
          p.m = m;
          p.n = n;
          p.steps = 2;
          p.swizzled = accumulate;
          p.accumulate = accumulate;
          SCOPED_TRACE(::testing::Message() << to_string(type) << ' ' << m << ' ' << n);
          expect_product(p);
        }
      }
    }
  }
  Product p;
  p.weight_stationary = p.a_in_tensor_memory = true;
  p.d_type = MmaType::F16;
  expect_product(p);
}

// The third example of PTX §9.7.16.4.3: three columns are zero and four used, from the start in the first half of N,
// the other way round in the second.
TEST(MmaTest, WeightStationaryTakesSomeColumnsForZero) {
  for (const auto& schedule : schedules(1)) {
    Product p;
    p.weight_stationary = true;
    p.m = p.n = 64;
    p.steps = 1;
    p.schedule = schedule;
    p.zero_columns = uint64_t{1} << 32 | uint64_t{1} << 39 | uint64_t{2} << 40 | uint64_t{3} << 48;
    p.is_zero = [](uint32_t column) { return column < 32 ? column % 7 < 3 : column % 32 % 7 >= 4; };
    const Outcome o = run(p.kernel());
    EXPECT_TRUE(reports(o, "advisory-descriptor", "// mma", "exchange the two spans"));
    EXPECT_EQ(p.result(o), p.expected());
    p.zero_columns &= ~(uint64_t{1} << 39);  // no mask is generated
    p.is_zero = Product().is_zero;
    expect_product(p);
  }
  Product p;
  p.weight_stationary = true;
  p.steps = 1;
  p.zero_columns = uint64_t{2} << 56;
  EXPECT_TRUE(reports(run(p.kernel()), "bad-descriptor", "// mma", "column shift = 2 (bits 61:56)"));
}

TEST(MmaTest, WeightStationaryHasOperandsOfItsOwn) {
  Product p;
  p.weight_stationary = true;
  p.steps = 1;
  p.n = 24;
  EXPECT_TRUE(reports(run(p.kernel()), "bad-descriptor", "// mma", ".ws and cta_group::1 takes 64, 128 or 256"));
  p.n = 64;
  p.m = 64;
  p.half = 16;
  EXPECT_TRUE(reports(run(p.kernel()), "bad-descriptor", "// mma", "D: lane = 16; M = 64 takes lane 0"));
  p.half = 0;
  p.a_in_tensor_memory = true;
  EXPECT_TRUE(reports(run(p.kernel()), "bad-descriptor", "// mma", "where an A of M = 64 is with .ws"));
}

TEST(MmaTest, TheWatcherOfWeightStationaryIsToldAllLanes) {
  TensorRecorder seen;
  Product p;
  p.weight_stationary = true;
  p.m = 32;
  p.n = 128;
  p.steps = 1;
  p.observer = &seen;
  ASSERT_TRUE(clean(run(p.kernel())));
  const auto* mma = seen.find(TensorEvent::Kind::Mma);
  ASSERT_NE(mma, nullptr);
  ASSERT_EQ(mma->regions.size(), 1u);
  EXPECT_EQ(mma->regions[0].halves, 0xffu);
  EXPECT_EQ(mma->regions[0].columns, 32u);
  EXPECT_NE(mma->shape >> 63, 0u) << "an MMA of the same size without .ws has D elsewhere";
}

TEST(MmaTest, EveryScheduleGivesTheSameResult) {
  for (const auto& schedule : schedules(6)) {
    for (const bool tensor_a : {false, true}) {
      Product p;
      p.schedule = schedule;
      p.swizzled = true;
      p.a_in_tensor_memory = tensor_a;
      p.accumulate = tensor_a;
      SCOPED_TRACE(machine::to_string(schedule));
      expect_product(p);
    }
  }
}

// An MMA reads its operands when it is done: what is written over them before the commit has arrived may come in.
TEST(MmaTest, OperandsOverwrittenTooEarlyComeIn) {
  const std::string overwrite_b = R"(
    mov.u32 %r20, tile;
    add.u32 %r20, %r20, $b;
    mov.u32 %r21, 0;
    ZERO:
    st.shared.u32 [%r20], 0;
    add.u32 %r20, %r20, 4;
    add.u32 %r21, %r21, 4;
    setp.lt.u32 %p6, %r21, $bytes;
    @%p6 bra ZERO;
  )";
  Product p;
  p.late = fill(overwrite_b, {{"bytes", number(p.bytes(p.n))}, {"b", number(p.b_offset())}});
  p.schedule = kEager;
  expect_product(p);
  for (const auto& schedule : {kLazy, kReverse}) {
    p.schedule = schedule;
    const Outcome o = run(p.kernel());
    ASSERT_TRUE(clean(o));
    EXPECT_THAT(p.result(o), Each(0u)) << "B was zero when the MMAs read it";
  }
}

TEST(MmaTest, DIsNotThereBeforeTheMmaIsDone) {
  // Warp 0 looks at its first column of D before it waits; thread 0 has issued by then.
  Product p;
  p.steps = 1;
  p.meanwhile = R"(
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v9}, [%r11+16];
    tcgen05.wait::ld.sync.aligned;
    mul.wide.u32 %rd1, %t, 4;
    add.u64 %rd1, %rd1, %outp;
    st.global.u32 [%rd1+32768], %v9;
  )";
  const uint32_t at = 128 * p.n;
  ASSERT_EQ(at * 4, 32768u);
  for (const bool accumulate : {false, true}) {
    p.accumulate = accumulate;
    const std::vector<uint32_t> expected = p.expected();
    for (const auto& schedule : {kNominal, kLazy, kReverse, kEager}) {
      p.schedule = schedule;
      const Outcome o = run(p.kernel());
      ASSERT_TRUE(clean(o));
      EXPECT_EQ(p.result(o), expected);
      for (uint32_t lane = 0; lane < 32; lane++) {
        const uint32_t seen = schedule.kind == machine::Schedule::Kind::Eager ? expected[size_t{lane} * p.n]
                              : accumulate                                    ? p.cell(Product::first_d(lane, 0))
                                                                              : kPoisonWord;
        EXPECT_EQ(o.out[at + lane], seen) << machine::to_string(schedule) << " lane " << lane;
      }
    }
  }
}

TEST(MmaTest, WhatItsWatcherIsTold) {
  for (const auto& schedule : schedules(2)) {
    TensorRecorder seen;
    Product p;
    p.m = 64;
    p.half = 16;
    p.n = 24;
    p.steps = 2;
    p.a_in_tensor_memory = true;
    p.observer = &seen;
    p.schedule = schedule;
    ASSERT_TRUE(clean(run(p.kernel())));
    using Kind = TensorEvent::Kind;
    const auto* first = seen.find(Kind::Mma);
    const auto* second = seen.find(Kind::Mma, 1);
    const auto* commit = seen.find(Kind::Commit);
    const auto* done = seen.find(Kind::MmaDone, 1);
    ASSERT_TRUE(first != nullptr && second != nullptr && commit != nullptr && done != nullptr);
    EXPECT_EQ(first->amount, 2u * 64 * 24 * 16);
    EXPECT_EQ(first->mask, 1u);
    EXPECT_EQ(first->shape, second->shape);
    ASSERT_EQ(first->regions.size(), 2u);
    EXPECT_EQ(first->regions[0].halves, 0xaau);  // the upper 16 lanes of each quarter
    EXPECT_EQ(first->regions[0].columns, 24u);
    EXPECT_TRUE(first->regions[0].write);
    EXPECT_EQ(first->regions[1].halves, 0xaau);
    EXPECT_EQ(first->regions[1].columns, 8u);
    EXPECT_EQ(first->regions[1].column, first->regions[0].column + 24u);
    EXPECT_FALSE(first->regions[1].write);
    EXPECT_LT(first->op, second->op);
    EXPECT_EQ(commit->op, second->op);
    EXPECT_EQ(commit->barrier, machine::kSharedBase);
    EXPECT_EQ(done->op, second->op);
    EXPECT_EQ(seen.find(Kind::MmaDone)->op, first->op);
    // The arrival of the commit comes behind both and bears the id of the last.
    const auto arrival = std::find_if(seen.barriers.begin(), seen.barriers.end(),
                                      [](const auto& e) { return e.kind == machine::MbarrierEvent::Kind::CopyArrive; });
    ASSERT_NE(arrival, seen.barriers.end());
    EXPECT_EQ(arrival->op, second->op);
    EXPECT_GE(static_cast<size_t>(arrival - seen.barriers.begin()), done->barriers_before);
    EXPECT_EQ(seen.order(Milestone::Issued).size(), 2u);
  }
}

TEST(MmaTest, TakesItsTurnInTheTensorCore) {
  // From the first issue to the commit that thread 0 sees: a fixed part and N / 2 cycles for each, and what the clock,
  // the branches and the fence around them take.
  const auto cycles = [](uint32_t m, uint32_t n, uint32_t steps) {
    Product p;
    p.m = m;
    p.n = n;
    p.steps = steps;
    p.swizzled = true;
    Kernel k = p.kernel();
    const size_t mma = k.body.find("tcgen05.mma"), spin = k.body.find("tcgen05.fence::after_thread_sync", mma);
    k.body.insert(spin, "mov.u32 %r51, %clock;\n@%p1 sub.u32 %r51, %r51, %r50;\n@%p1 st.global.u32 [%outp+" +
                            number(uint64_t{512} * n) + "], %r51;\n");
    k.body.insert(mma, "mov.u32 %r50, %clock;\n");
    const Outcome o = run(k);
    EXPECT_TRUE(clean(o));
    return o.out[size_t{128} * n];
  };
  EXPECT_NEAR(cycles(128, 256, 1), machine::kBlackwell.mma_fixed_128 + 128, 45);
  EXPECT_NEAR(cycles(64, 256, 1), machine::kBlackwell.mma_fixed_64 + 128, 45);
  EXPECT_NEAR(cycles(128, 256, 4) - cycles(128, 256, 1), 3 * 128, 8);
  EXPECT_NEAR(cycles(128, 128, 4) - cycles(128, 128, 1), 3 * 64, 8);
}

/// `k` with `text` in front of the first line that contains `at`.
Kernel insert_before(Kernel k, const std::string& at, const std::string& text) {
  const size_t found = k.body.find(at);
  EXPECT_NE(found, std::string::npos) << at;
  k.body.insert(k.body.rfind('\n', found) + 1, text + "\n");
  return k;
}
/// `k` with every `from` replaced; there must be one.
Kernel replace(Kernel k, const std::string& from, const std::string& to) {
  size_t at = k.body.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  for (; at != std::string::npos; at = k.body.find(from, at + to.size())) k.body.replace(at, from.size(), to);
  return k;
}

struct BadOperand {
  const char* change;  ///< of %rd5, %rd6: descriptors of A and B; %r12: instruction; %r13, %r14: addresses of A and D
  const char* id;
  const char* says;
  uint32_t m = 128;
  bool a_in_tensor_memory = false;
};
void PrintTo(const BadOperand& b, std::ostream* out) { *out << b.change; }
class BadOperandTest : public ::testing::TestWithParam<BadOperand> {};
TEST_P(BadOperandTest, StopsAtTheMma) {
  const BadOperand& b = GetParam();
  for (const auto& schedule : {kNominal, kLazy, kEager}) {
    Product p;
    p.m = b.m;
    p.a_in_tensor_memory = b.a_in_tensor_memory;
    p.schedule = schedule;
    const Outcome o = run(insert_before(p.kernel(), "tcgen05.mma", b.change));
    EXPECT_TRUE(reports(o, b.id, "// mma", b.says));
    EXPECT_EQ(o.status, LaunchStatus::Fault);
    EXPECT_THAT(o.diagnostics.at(0).message, StartsWith("warp 0 lane 0: "));
  }
}
INSTANTIATE_TEST_SUITE_P(
    All, BadOperandTest,
    ::testing::Values(
        BadOperand{"xor.b32 %r12, %r12, 0x04000000;", "bad-descriptor",
                   "instruction descriptor: M = 192 (bits 28:24 hold 12); kind::f16 with cta_group::1 takes 64 or 128"},
        BadOperand{"xor.b32 %r12, %r12, 0x00100000;", "bad-descriptor",
                   "instruction descriptor: N = 0 (bits 22:17); kind::f16 with cta_group::1 takes 8 to 256 in steps"},
        BadOperand{"xor.b32 %r12, %r12, 0x00520000;", "bad-descriptor",
                   "instruction descriptor: N = 264 (bits 22:17 hold 33)"},
        BadOperand{"or.b32 %r12, %r12, 4;", "bad-descriptor", "instruction descriptor: sparsity = 1 (bit 2)"},
        BadOperand{"xor.b32 %r12, %r12, 0x30;", "bad-descriptor", "D type = s32 (bits 5:4 hold 2)"},
        BadOperand{"or.b32 %r12, %r12, 0x100;", "bad-descriptor", "A type = 2 (bits 9:7)"},
        BadOperand{"or.b32 %r12, %r12, 0x40;", "bad-descriptor", "reserved = 1 (bit 6)"},
        BadOperand{"xor.b64 %rd6, %rd6, 0x400000000000;", "bad-descriptor",
                   "shared memory descriptor of B: constant = 0 (bits 48:46)"},
        BadOperand{"or.b64 %rd5, %rd5, 0x6000000000000000;", "bad-descriptor",
                   "shared memory descriptor of A: swizzle = 3 (bits 63:61)"},
        BadOperand{"or.b64 %rd5, %rd5, 0x8000;", "bad-descriptor",
                   "shared memory descriptor of A: reserved = 2 (bits 15:14)"},
        BadOperand{"add.u64 %rd6, %rd6, 0x800;", "bad-descriptor", "matrix B of the MMA covers bytes from tile+"},
        BadOperand{"and.b64 %rd5, %rd5, 0xffffffffffffc000;", "bad-descriptor",
                   "matrix A of the MMA covers bytes from shared offset 0x0 to offset"},
        BadOperand{"add.u32 %r14, %r14, 0x100000;", "bad-descriptor",
                   "tensor memory address of D: lane = 16; M = 128 takes lane 0"},
        BadOperand{"add.u32 %r14, %r14, 0x800000;", "bad-descriptor",
                   "tensor memory address of D: lane = 128; M = 64 takes lane 0 or 16", 64},
        BadOperand{"add.u32 %r14, %r14, 480;", "bad-descriptor",
                   "tensor memory address of D: column = 496; the 64 columns from there on end beyond the 512"},
        BadOperand{"add.u32 %r14, %r14, 128;", "tmem-not-allocated",
                   "D of the MMA is in columns 144-207; allocated are columns 0-127"},
        BadOperand{"add.u32 %r13, %r13, 0x100000;", "bad-descriptor",
                   "tensor memory address of A: lane = 16; D has lane 0, and both must have the same", 64, true},
        BadOperand{"add.u32 %r13, %r13, 256;", "tmem-not-allocated",
                   "A of the MMA is in columns 336-343; allocated are columns 0-127", 128, true},
        BadOperand{"or.b32 %r12, %r12, 0x8000;", "bad-descriptor",
                   "instruction descriptor: transpose A = 1 (bit 15); an A in tensor memory is row-major", 128, true}));

TEST(MmaTest, WhatTheIsaLeavesOpenIsNoted) {
  // LBO = 0 of an A without swizzle: its two columns of 16 bytes are the same bytes.
  const Product p;
  const Outcome o = run(insert_before(p.kernel(), "tcgen05.mma", "and.b64 %rd5, %rd5, 0xffffffffc000ffff;"));
  EXPECT_EQ(o.status, LaunchStatus::Ok);
  ASSERT_EQ(o.diagnostics.size(), 4u) << text_of(o);  // one for each of the four lines
  for (const Diagnostic& d : o.diagnostics) {
    EXPECT_EQ(d.id, "advisory-descriptor");
    EXPECT_EQ(d.severity, Severity::Note);
    EXPECT_THAT(d.message, HasSubstr("shared memory descriptor of A: LBO = 0 (bits 29:16)"));
  }
}

TEST(MmaTest, ManyLanesAreReported) {
  Product p;
  p.steps = 1;
  Kernel k = replace(p.kernel(), "@!%p1 bra WAIT;", "@!%p3 bra WAIT;");
  k = replace(k, "[done], 1;", "[done], 32;");
  const Outcome o = run(k);
  EXPECT_EQ(o.status, LaunchStatus::Ok);
  ASSERT_EQ(o.diagnostics.size(), 2u) << text_of(o);
  EXPECT_EQ(o.diagnostics[0].id, "many-lanes-issue");
  EXPECT_EQ(o.diagnostics[0].message, "warp 0 lanes 0-31 each execute tcgen05.mma; one thread issues it");
  EXPECT_EQ(o.diagnostics[0].place.line, line_of(k.body, "// mma"));
  EXPECT_EQ(o.diagnostics[1].id, "many-lanes-issue");
  EXPECT_EQ(o.diagnostics[1].message, "warp 0 lanes 0-31 each execute tcgen05.commit; one thread issues it");
  EXPECT_EQ(o.diagnostics[1].place.line, line_of(k.body, "// commit"));
  EXPECT_EQ(p.result(o), p.expected());
}

TEST(MmaTest, ABlockMustNotEndBeforeItsMmas) {
  for (const auto& schedule : {kLazy, kReverse, kEager}) {
    Product p;
    p.schedule = schedule;
    const Outcome o = run(replace(p.kernel(), "@!%p5 bra SPIN;", ""));
    EXPECT_EQ(o.status, LaunchStatus::Ok);
    if (schedule.kind == machine::Schedule::Kind::Eager) {
      EXPECT_TRUE(clean(o));
    } else {
      EXPECT_TRUE(reports(o, "copy-in-flight-at-exit", "// mma",
                          "the block ended while this MMA still read its shared memory and wrote its tensor memory"));
    }
  }
}

TEST(CommitTest, TheBarrierMayBeAGenericAddress) {
  const std::string prepare =
      "mov.u32 %r45, done;\ncvt.u64.u32 %rd10, %r45;\ncvta.shared.u64 %rd11, %rd10;\nsub.u64 %rd12, %rd11, 8;";
  const std::string commit = "tcgen05.commit.cta_group::1.mbarrier::arrive::one";
  for (const char* address : {".shared::cluster.b64 [%rd10]", ".b64 [%rd11]", ".b64 [%rd12+8]", ".b64 [%rd10]",
                              ".shared::cluster.b64 [%r45]"}) {
    for (const auto& schedule : schedules(1)) {
      Product p;
      p.steps = 1;
      p.late = prepare;
      p.schedule = schedule;
      const Outcome o = run(replace(p.kernel(), commit + ".shared::cluster.b64 [done]", commit + address));
      ASSERT_TRUE(clean(o)) << address;
      EXPECT_EQ(p.result(o), p.expected());
    }
  }
}

Kernel with_barriers(const std::string& body) {
  Kernel k;
  k.shared = ".shared .align 8 .b64 done[2];\n";
  k.body = "\nsetp.eq.u32 %p1, %t, 0;\n" + body;
  return k;
}

TEST(CommitTest, WithNothingOutstandingItArrives) {
  for (const auto& schedule : schedules()) {
    TensorRecorder seen;
    Kernel k = with_barriers(R"(
      @%p1 mbarrier.init.shared::cta.b64 [done], 2;
      bar.sync 0;
      @%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];
      @%p1 mbarrier.arrive.shared::cta.b64 _, [done];
    SPIN:
      mbarrier.try_wait.parity.shared::cta.b64 %p2, [done], 0;
      @!%p2 bra SPIN;
      mov.u32 %r1, 1;
      out 0 %r1
    )");
    k.schedule = schedule;
    k.observer = &seen;
    const Outcome o = run(k);
    ASSERT_TRUE(clean(o)) << machine::to_string(schedule);
    EXPECT_EQ(o.out[0], 1u);
    ASSERT_NE(seen.find(TensorEvent::Kind::Commit), nullptr);
    EXPECT_EQ(seen.find(TensorEvent::Kind::Commit)->op, 0u);
    EXPECT_EQ(seen.count(machine::MbarrierEvent::Kind::CopyArrive), 1u);
  }
}

TEST(CommitTest, TheBarrierMustBeThere) {
  const std::string commit = "@%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 ";
  EXPECT_TRUE(reports(run(with_barriers(commit + "[done+8]; // here\n")), "barrier-not-initialized", "// here",
                      "tcgen05.commit on `done[1]`, where no mbarrier is initialised"));
  EXPECT_TRUE(reports(run(with_barriers(commit + "[done+4]; // here\n")), "misaligned", "// here",
                      "mbarrier done+4 is not a multiple of 8 bytes"));
  EXPECT_TRUE(reports(run(with_barriers(commit + "[done+16]; // here\n")), "out-of-bounds", "// here", "mbarrier"));
  EXPECT_TRUE(reports(run(with_barriers("@%p1 mbarrier.init.shared::cta.b64 [done], 1;\n" + commit + "[done];\n" +
                                        commit + "[done+8]; // here\n")),
                      "barrier-not-initialized", "// here", "done[1]"));
}

TEST(CommitTest, TheBarrierMustBeThereAtOnce) {
  // Held back, the arrival would find the barrier that is initialised behind the commit.
  Kernel k = with_barriers(R"(
    @%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done]; // here
    @%p1 mbarrier.init.shared::cta.b64 [done], 1;
  )");
  k.schedule = kLazy;
  EXPECT_TRUE(reports(run(k), "barrier-not-initialized", "// here", "tcgen05.commit on `done[0]`"));
}

TEST(CommitTest, TheBarrierMustStillBeThereWhenTheMmasAreDone) {
  for (const auto& schedule : {kNominal, kLazy, kReverse}) {
    Product p;
    p.schedule = schedule;
    p.late = R"(
      mbarrier.init.shared::cta.b64 [gone], 1;
      tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [gone]; // to nowhere
      mbarrier.inval.shared::cta.b64 [gone];
    )";
    Kernel k = p.kernel();
    k.shared += ".shared .align 8 .b64 gone;\n";
    const Outcome o = run(k);
    EXPECT_TRUE(reports(o, "barrier-not-initialized", "// to nowhere", "tcgen05.commit on `gone`"));
    EXPECT_EQ(o.status, LaunchStatus::Fault);
  }
}

TEST(CommitTest, EachTracksWhatItsThreadIssuedBefore) {
  for (const auto& schedule : schedules(4)) {
    TensorRecorder seen;
    Product p;
    p.steps = 2;
    p.schedule = schedule;
    p.observer = &seen;
    // Lane 1 has issued nothing: its commit does not wait for the MMAs of lane 0.
    p.meanwhile = R"(
      bar.warp.sync 0xffffffff;
      setp.eq.u32 %p7, %t, 1;
      @%p7 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [early+8];
    )";
    Kernel k = p.kernel();
    const size_t second = k.body.rfind("tcgen05.mma");
    k.body.insert(second, R"(mbarrier.init.shared::cta.b64 [early], 1;
      mbarrier.init.shared::cta.b64 [early+8], 1;
      tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [early];
      )");
    k.shared += ".shared .align 8 .b64 early[2];\n";
    const Outcome o = run(k);
    ASSERT_TRUE(clean(o)) << machine::to_string(schedule);
    EXPECT_EQ(p.result(o), p.expected());
    std::vector<const machine::MbarrierEvent*> arrivals(3);  // at done, early, early[1]
    std::vector<size_t> position(3);
    for (size_t e = 0; e < seen.barriers.size(); e++) {
      if (seen.barriers[e].kind != machine::MbarrierEvent::Kind::CopyArrive) continue;
      // In shared memory: `done`, 16 bytes of `slot`, `early`.
      const uint32_t offset = seen.barriers[e].offset - machine::kSharedBase;
      ASSERT_TRUE(offset == 0 || offset == 24 || offset == 32) << offset;
      const size_t which = offset / 16;
      arrivals[which] = &seen.barriers[e];
      position[which] = e;
    }
    for (const auto* a : arrivals) ASSERT_NE(a, nullptr);
    const auto* first = seen.find(TensorEvent::Kind::Mma);
    const auto* last = seen.find(TensorEvent::Kind::Mma, 1);
    EXPECT_EQ(arrivals[0]->op, last->op);
    EXPECT_EQ(arrivals[1]->op, first->op);
    EXPECT_EQ(arrivals[2]->op, 0u);
    const auto* first_done = seen.find(TensorEvent::Kind::MmaDone);
    const auto* last_done = seen.find(TensorEvent::Kind::MmaDone, 1);
    EXPECT_GE(position[1], first_done->barriers_before) << "early, before its MMA was done";
    EXPECT_LT(position[1], last_done->barriers_before) << "early waits for the MMA behind it";
    EXPECT_GE(position[0], last_done->barriers_before);
    if (schedule.kind == machine::Schedule::Kind::Nominal) {
      EXPECT_LT(position[2], first_done->barriers_before) << "lane 1 waits for the MMAs of lane 0";
    }
  }
}

}  // namespace
}  // namespace handoff::async::testing
