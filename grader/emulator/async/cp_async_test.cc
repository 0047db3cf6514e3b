// Non-bulk cp.async through PTX (PTX §9.7.9.25.3).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "grader/emulator/async/testing.h"

namespace handoff::async::testing {
namespace {

using machine::LaunchStatus;
using Kind = machine::MbarrierEvent::Kind;
using Milestone = machine::AsyncOpInfo::Milestone;
using ScheduleKind = machine::Schedule::Kind;
using ::testing::ElementsAre;

const char* const kShared = ".shared .align 16 .b8 tile[1024];\n.shared .align 8 .b64 full;\n";
constexpr uint32_t kPoisonWord = 0xffffffff;

std::vector<uint32_t> counting(size_t words) {
  std::vector<uint32_t> v(words);
  for (size_t k = 0; k < words; k++) v[k] = 0x01010101 * (static_cast<uint32_t>(k) + 1);
  return v;
}

Kernel one_thread(const std::string& body) {
  Kernel s;
  s.shared = kShared;
  s.block = {1, 1, 1};
  s.in = counting(64);
  s.body = body;
  return s;
}

TEST(CpAsyncTest, SizesZeroFillAndIgnoredSources) {
  struct Case {
    const char* line;
    uint32_t words[4];
  };
  const uint32_t k1 = 0x01010101, k2 = 0x02020202, k3 = 0x03030303, k4 = 0x04040404, p = 7;
  for (const Case& c : {
           Case{"cp.async.ca.shared::cta.global [tile], [%inp], 4;", {k1, p, p, p}},
           Case{"cp.async.ca.shared.global [tile], [%inp], 8;", {k1, k2, p, p}},
           Case{"cp.async.ca.shared.global [tile], [%inp], 16;", {k1, k2, k3, k4}},
           Case{"cp.async.cg.shared.global [tile], [%inp], 16;", {k1, k2, k3, k4}},
           Case{"cp.async.cg.shared.global.L2::128B [tile+4], [%inp+16], 16; // misplaced", {p, p, p, p}},
           Case{"cp.async.cg.shared.global [tile], [%inp], 16, 0;", {0, 0, 0, 0}},
           Case{"cp.async.cg.shared.global [tile], [%inp], 16, 4;", {k1, 0, 0, 0}},
           Case{"cp.async.cg.shared.global [tile], [%inp], 16, %r5;", {k1, k2, 0x030303, 0}},
           Case{"cp.async.ca.shared.global [tile], [%inp], 8, 1;", {1, 0, p, p}},
           Case{"cp.async.ca.shared.global.L2::cache_hint [tile], [%inp], 4, 4, %rd7;", {k1, p, p, p}},
           Case{"cp.async.cg.shared.global [tile], [%inp], 16, %p7; // ignored", {0, 0, 0, 0}},
           Case{"cp.async.cg.shared.global [tile], [%inp], 16, %p6; // not ignored", {k1, k2, k3, k4}},
           Case{"cp.async.cg.shared.global [tile], [%rd8], 16, 0; // a null source that is not read", {0, 0, 0, 0}},
       }) {
    for (const auto& schedule : schedules(2)) {
      Kernel s = one_thread(R"(
        mov.u32 %r1, 7;
        mov.u32 %r5, 11;
        mov.u64 %rd7, 0;
        mov.u64 %rd8, 0;
        setp.eq.u32 %p7, %r1, 7;
        setp.ne.u32 %p6, %r1, 7;
        st.shared.v4.u32 [tile], {%r1, %r1, %r1, %r1};
        )" + std::string(c.line) +
                            R"(
        cp.async.wait_all;
        ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [tile];
        out 0 %r10
        out 1 %r11
        out 2 %r12
        out 3 %r13
      )");
      s.schedule = schedule;
      const Outcome o = run(s);
      if (std::string(c.line).find("misplaced") != std::string::npos) {
        EXPECT_TRUE(reports(o, "misaligned", "misplaced", "tile+4 is not a multiple of 16"));
        continue;
      }
      ASSERT_TRUE(clean(o)) << c.line;
      for (size_t k = 0; k < 4; k++) EXPECT_EQ(o.out[k], c.words[k]) << c.line << " word " << k;
    }
  }
}

TEST(CpAsyncTest, AnUnfinishedCopyReadsAsPoison) {
  for (const auto& schedule : schedules(0)) {
    Kernel s = one_thread(R"(
      cp.async.ca.shared.global [tile], [%inp], 8, 4;
      cp.async.commit_group;
      ld.shared.u32 %r1, [tile];
      ld.shared.u32 %r2, [tile+4];
      cp.async.wait_group 0;
      ld.shared.u32 %r3, [tile];
      ld.shared.u32 %r4, [tile+4];
      out 0 %r1
      out 1 %r2
      out 2 %r3
      out 3 %r4
    )");
    s.schedule = schedule;
    const Outcome o = run(s);
    ASSERT_TRUE(clean(o));
    const bool eager = schedule.kind == ScheduleKind::Eager;
    EXPECT_EQ(o.out[0], eager ? 0x01010101 : kPoisonWord);
    EXPECT_EQ(o.out[1], eager ? 0 : kPoisonWord);
    EXPECT_EQ(o.out[2], 0x01010101u);
    EXPECT_EQ(o.out[3], 0u);
  }
}

TEST(CpAsyncTest, WaitGroupLeavesTheYoungestGroups) {
  for (uint32_t allowed = 0; allowed <= 4; allowed++) {
    bool some_left = false;
    for (const auto& schedule : schedules(8)) {
      std::string body = "\n";
      for (int g = 0; g < 4; g++) {
        if (g != 1)
          body += "cp.async.ca.shared.global [tile+" + std::to_string(4 * g) + "], [%inp+" + std::to_string(4 * g) +
                  "], 4;\n";  // the second is empty
        body += "cp.async.commit_group;\n";
      }
      body += "cp.async.wait_group " + std::to_string(allowed) + ";\n";
      for (int g = 0; g < 4; g++)
        body += "ld.shared.u32 %r1, [tile+" + std::to_string(4 * g) + "];\nout " + std::to_string(g) + " %r1\n";
      body += "cp.async.wait_all;\n";
      Kernel s = one_thread(body);
      s.schedule = schedule;
      const Outcome o = run(s);
      ASSERT_TRUE(clean(o));
      for (uint32_t g = 0; g < 4; g++) {
        if (g == 1) continue;
        const bool there = o.out[g] == 0x01010101 * (g + 1);
        EXPECT_TRUE(there || o.out[g] == kPoisonWord);
        EXPECT_TRUE(there || g + allowed >= 4)
            << "group " << g << " allowed " << allowed << " " << machine::to_string(schedule);
        some_left = some_left || !there;
      }
    }
    EXPECT_EQ(some_left, allowed > 0) << allowed;
  }
}

// wait_group knows committed groups only; wait_all everything (PTX: as commit_group and wait_group 0).
TEST(CpAsyncTest, UncommittedCopiesNeedWaitAll) {
  for (const auto& [wait, there] : {std::pair{"cp.async.wait_group 0;", false}, {"cp.async.wait_all;", true}}) {
    Kernel s = one_thread("\ncp.async.ca.shared.global [tile], [%inp], 4;\n" + std::string(wait) +
                          "\nld.shared.u32 %r1, [tile];\nout 0 %r1\ncp.async.wait_all;\n");
    s.schedule = kLazy;
    const Outcome o = run(s);
    ASSERT_TRUE(clean(o));
    EXPECT_EQ(o.out[0], there ? 0x01010101 : kPoisonWord) << wait;
  }
}

// Without .noinc the barrier's count need not know of the asynchronous arrive; with it, it must.
TEST(CpAsyncTest, AsynchronousArrivesWaitForTheCopies) {
  for (const bool noinc : {false, true}) {
    for (const auto& schedule : schedules(6)) {
      Recorder seen;
      Kernel s;
      s.shared = kShared;
      s.block = {64, 1, 1};
      s.schedule = schedule;
      s.observer = &seen;
      s.in = counting(64);
      s.body = R"(
        setp.eq.u32 %p1, %t, 0;
        @%p1 mbarrier.init.shared::cta.b64 [full], )" +
               std::string(noinc ? "32" : "1") + R"(;
        bar.sync 0;
        mov.u32 %r2, tile;
        shl.b32 %r1, %t, 2;
        add.u32 %r2, %r2, %r1;
        cvt.u64.u32 %rd3, %r1;
        add.u64 %rd4, %rd3, %inp;
        setp.ge.u32 %p2, %t, 32;
        @%p2 bra L;
        cp.async.ca.shared.global [%r2], [%rd4], 4;
        cp.async.ca.shared.global [%r2+128], [%rd4+128], 4;
        cp.async.mbarrier.arrive)" +
               (noinc ? ".noinc" : "") + R"(.shared::cta.b64 [full];
        bar.warp.sync 0xffffffff;
        )" + (noinc ? "" : "@%p1 mbarrier.arrive.shared::cta.b64 _, [full];") +
               R"(
      L:
        mbarrier.try_wait.parity.shared::cta.b64 %p3, [full], 0;
        @!%p3 bra L;
        ld.shared.u32 %r3, [%r2];
        add.u64 %rd3, %rd3, %outp;
        st.global.u32 [%rd3], %r3;
      )";
      const Outcome o = run(s);
      ASSERT_TRUE(clean(o)) << noinc << machine::to_string(schedule);
      EXPECT_EQ(o.out, counting(64)) << machine::to_string(schedule);
      EXPECT_EQ(seen.count(Kind::CopyArrive), 32u);
      EXPECT_EQ(seen.count(Kind::PhaseComplete), 1u);
      EXPECT_EQ(seen.order(Milestone::Written).size(), 64u);
    }
  }
}

TEST(CpAsyncTest, AnAsynchronousArriveWithoutCopiesIsImmediate) {
  const Outcome o = run(one_thread(R"(
    mbarrier.init.shared::cta.b64 [full], 1;
    cp.async.mbarrier.arrive.shared::cta.b64 [full];
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [full], 0;
    outp 0 %p1
    cp.async.mbarrier.arrive.noinc.shared::cta.b64 [full];
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [full], 0;
    outp 1 %p1
  )"));
  ASSERT_TRUE(clean(o));
  EXPECT_THAT(std::vector<uint32_t>(o.out.begin(), o.out.begin() + 2), ElementsAre(0, 1));
}

struct Broken {
  const char* before;
  const char* line;
  const char* id;
  const char* says;
};
void PrintTo(const Broken& b, std::ostream* out) { *out << b.line; }
class CpAsyncFaultTest : public ::testing::TestWithParam<Broken> {};
TEST_P(CpAsyncFaultTest, StopsAtTheLine) {
  const Broken& b = GetParam();
  for (const auto& schedule : schedules(1)) {
    Kernel s = one_thread("\nmov.u32 %r1, 20;\nmbarrier.init.shared::cta.b64 [full], 1;\n" + std::string(b.before) +
                          "\n" + b.line + "\ncp.async.wait_all;\n");
    s.schedule = schedule;
    const Outcome o = run(s);
    EXPECT_TRUE(reports(o, b.id, b.line, b.says));
    EXPECT_EQ(o.status, LaunchStatus::Fault);
  }
}
INSTANTIATE_TEST_SUITE_P(
    All, CpAsyncFaultTest,
    ::testing::Values(
        Broken{"", "cp.async.ca.shared.global [tile+2], [%inp], 4;", "misaligned",
               "the destination of cp.async tile+2"},
        Broken{"", "cp.async.ca.shared.global [tile], [%inp+4], 8;", "misaligned", "is not a multiple of 8"},
        Broken{"", "cp.async.ca.shared.global [tile], [%inp], 16, %r1;", "bad-copy",
               "16 bytes with a source size of 20"},
        Broken{"", "cp.async.ca.shared.global [tile], [%inp+256], 4;", "out-of-bounds", "0 bytes past the end of `in`"},
        Broken{"", "cp.async.ca.shared.global [tile+4096], [%inp], 4;", "out-of-bounds", "the destination of cp.async"},
        Broken{"mbarrier.inval.shared::cta.b64 [full];", "cp.async.mbarrier.arrive.shared::cta.b64 [full];",
               "barrier-not-initialized", "cp.async.mbarrier.arrive on `full`"},
        // The arrive that the count does not know of comes when the copy lands, outside any instruction.
        Broken{"mbarrier.expect_tx.shared::cta.b64 [full], 16;\ncp.async.ca.shared.global [tile], [%inp], "
               "4;\nmbarrier.arrive.shared::cta.b64 _, [full];",
               "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [full];", "arrival-count-mismatch",
               "misses only 0 of its 1"},
        // The pending count grows past what arrive_drop may take from the expected one.
        Broken{"cp.async.ca.shared.global [tile], [%inp], 4;\nmbarrier.init.shared::cta.b64 [tile+64], 1048575;",
               "cp.async.mbarrier.arrive.shared::cta.b64 [tile+64];", "arrival-count-mismatch", "past 1048575"}));

TEST(CpAsyncTest, DroppingMoreThanExpected) {
  Kernel s = one_thread(R"(
    mbarrier.init.shared::cta.b64 [full], 1;
    cp.async.ca.shared.global [tile], [%inp], 4;
    cp.async.mbarrier.arrive.shared::cta.b64 [full];
    mbarrier.arrive_drop.shared::cta.b64 _, [full], 2;
  )");
  s.schedule = kLazy;
  EXPECT_TRUE(
      reports(run(s), "arrival-count-mismatch", "arrive_drop", "drops 2 arrivals of `full`, which expects only 1"));
}

TEST(CpAsyncTest, ACopyOverALiveBarrierIsReported) {
  EXPECT_TRUE(reports(run(one_thread(R"(
    mbarrier.init.shared::cta.b64 [full], 1;
    cp.async.ca.shared.global [full], [%inp], 4;
    cp.async.wait_all;
  )")),
                      "barrier-overwritten", "cp.async.ca", "cp.async to `full`"));
}

TEST(CpAsyncTest, CopiesInFlightAtExitAreReported) {
  for (const auto& schedule : schedules(0)) {
    Kernel s =
        one_thread("\ncp.async.ca.shared.global [tile], [%inp], 4;\ncp.async.commit_group;\ncp.async.wait_group 1;\n");
    s.schedule = schedule;
    const Outcome o = run(s);
    if (schedule.kind == ScheduleKind::Eager) {
      EXPECT_TRUE(clean(o));
    } else {
      EXPECT_TRUE(reports(o, "copy-in-flight-at-exit", "cp.async.ca", "4 bytes")) << machine::to_string(schedule);
    }
  }
}

}  // namespace
}  // namespace handoff::async::testing
