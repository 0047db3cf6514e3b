// Bulk copies through PTX: what arrives, when, and what is said about copies that break a rule (PTX §9.7.9.25.4).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "grader/emulator/async/testing.h"

namespace handoff::async::testing {
namespace {

using machine::LaunchStatus;
using Kind = machine::MbarrierEvent::Kind;
using Milestone = machine::AsyncOpInfo::Milestone;
using ScheduleKind = machine::Schedule::Kind;
using ::testing::ElementsAre;

const char* const kShared = ".shared .align 128 .b8 tile[8192];\n.shared .align 8 .b64 full;\n";
constexpr uint32_t kPoisonWord = 0xffffffff;

std::vector<uint32_t> counting(size_t words, uint32_t from = 100) {
  std::vector<uint32_t> v(words);
  for (size_t k = 0; k < words; k++) v[k] = from + static_cast<uint32_t>(k);
  return v;
}

// Thread 0 makes the barrier and runs `issue`; everybody waits for phase 0; thread t writes word t of tile to word t of
// out.
Kernel load(const std::string& issue, uint32_t threads = 64) {
  Kernel s;
  s.shared = kShared;
  s.block = {threads, 1, 1};
  s.in = counting(2048);
  s.out.assign(threads, 0);
  s.body = R"(
    setp.ne.u32 %p1, %t, 0;
    @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [full], 1;
)" + issue +
           R"(
  READY:
    bar.sync 0;
  L:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0;
    @!%p2 bra L;
    mul.wide.u32 %rd3, %t, 4;
    add.u64 %rd3, %rd3, %outp;
    shl.b32 %r1, %t, 2;
    mov.u32 %r2, tile;
    add.u32 %r1, %r1, %r2;
    ld.shared.u32 %r3, [%r1];
    st.global.u32 [%rd3], %r3;
  )";
  return s;
}

// Thread t writes t + 1000 to word t of tile; thread 0 then runs `issue`; `out` is 64 words of 5 at first.
Kernel store(const std::string& issue) {
  Kernel s;
  s.shared = kShared;
  s.block = {64, 1, 1};
  s.out.assign(64, 5);
  s.body = R"(
    add.u32 %r3, %t, 1000;
    shl.b32 %r1, %t, 2;
    mov.u32 %r2, tile;
    add.u32 %r1, %r1, %r2;
    st.shared.u32 [%r1], %r3;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    setp.ne.u32 %p1, %t, 0;
    @%p1 bra END;
)" + issue +
           R"(
  END:
  )";
  return s;
}

TEST(BulkCopyTest, LoadsArriveOnEverySchedule) {
  for (const char* issue : {
           // expect in front of the copy, behind it, in two copies, with every spelling of the load
           "mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 256;\n"
           "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%inp], 256, [full];\n",
           "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%inp], 256, [full];\n"
           "mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 256;\n",
           "mov.u64 %rd5, 0;\nmov.u32 %r5, tile;\nmov.u32 %r6, full;\nmapa.shared::cluster.u32 %r5, %r5, 0;\n"
           "mapa.shared::cluster.u32 %r6, %r6, 0;\nmov.u32 %r7, 128;\n"
           "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [full], 128;\n"
           "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r5], [%inp], %r7, "
           "[%r6], %rd5;\n"
           "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r5+128], [%inp+128], 128, [%r6];\n"
           "mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 128;\n",
       }) {
    for (const auto& schedule : schedules(6)) {
      Kernel s = load(issue);
      s.schedule = schedule;
      const Outcome o = run(s);
      ASSERT_TRUE(clean(o)) << issue;
      EXPECT_EQ(o.out, counting(64)) << machine::to_string(schedule) << "\n" << issue;
    }
  }
}

TEST(BulkCopyTest, SizesFromNothingToAllOfSharedMemory) {
  for (const uint32_t bytes : {0u, 16u, 48u, 4096u, 200u * 1024}) {
    for (const auto& schedule : schedules(3)) {
      Recorder seen;
      Kernel s;
      s.shared = ".extern .shared .align 128 .b8 big[];\n.shared .align 8 .b64 full;\n";
      s.dynamic_smem = 220 * 1024;
      s.block = {1, 1, 1};
      s.schedule = schedule;
      s.observer = &seen;
      s.in = counting(60 * 1024);
      const std::string n = std::to_string(bytes);
      s.body = R"(
        mbarrier.init.shared::cta.b64 [full], 1;
        mov.u32 %r4, big;
        add.u32 %r1, %r4, )" +
               n + R"(;
        mov.u32 %r9, 77;
        st.shared.u32 [%r1], %r9;
        mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], )" +
               n + R"(;
        cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [big], [%inp], )" +
               n + R"(, [full];
      L:
        mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0;
        @!%p2 bra L;
        ld.shared.u32 %r2, [big];
        ld.shared.u32 %r3, [%r1];
        out 0 %r2
        out 1 %r3
        setp.eq.u32 %p3, %r1, %r4;
        @%p3 bra END;
        ld.shared.u32 %r2, [%r1+-4];
        out 2 %r2
      END:
      )";
      const Outcome o = run(s);
      ASSERT_TRUE(clean(o)) << bytes;
      EXPECT_EQ(o.out[0], bytes == 0 ? 77u : 100u);
      EXPECT_EQ(o.out[1], 77u) << "written past the end";
      EXPECT_EQ(o.out[2], bytes == 0 ? 0u : 100 + bytes / 4 - 1);
      int64_t signalled = 0;
      for (const auto& e : seen.barriers) signalled += e.kind == Kind::CompleteTx ? e.bytes : 0;
      EXPECT_EQ(signalled, bytes);
      EXPECT_EQ(seen.count(Kind::PhaseComplete), 1u);
    }
  }
}

TEST(BulkCopyTest, EachLaneIssuesItsOwnCopy) {
  for (const auto& schedule : schedules(3)) {
    Recorder seen;
    Kernel s;
    s.shared = kShared;
    s.schedule = schedule;
    s.observer = &seen;
    s.in = counting(2048);
    s.out.assign(32, 0);
    s.body = R"(
      setp.eq.u32 %p1, %t, 0;
      @%p1 mbarrier.init.shared::cta.b64 [full], 32;
      bar.sync 0;
      mov.u32 %r2, tile;
      shl.b32 %r1, %t, 6;
      add.u32 %r2, %r2, %r1;
      cvt.u64.u32 %rd3, %r1;
      add.u64 %rd3, %rd3, %inp;
      mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 64;
      cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%rd3], 64, [full];
    L:
      mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0;
      @!%p2 bra L;
      ld.shared.u32 %r3, [%r2+60];
      mul.wide.u32 %rd3, %t, 4;
      add.u64 %rd3, %rd3, %outp;
      st.global.u32 [%rd3], %r3;
    )";
    const Outcome o = run(s);
    ASSERT_TRUE(clean(o));
    for (uint32_t l = 0; l < 32; l++) EXPECT_EQ(o.out[l], 100 + 16 * l + 15);
    EXPECT_EQ(seen.order(Milestone::Issued).size(), 32u);
    EXPECT_EQ(seen.order(Milestone::Written).size(), 32u);
    EXPECT_EQ(seen.order(Milestone::Signalled).size(), 32u);
  }
}

TEST(BulkCopyTest, AnUnfinishedLoadReadsAsPoison) {
  for (const auto& schedule : {kNominal, kLazy, kReverse, kEager}) {
    Kernel s = load(
        "mov.u32 %r9, 1;\n"
        "st.shared.u32 [tile], %r9;\n"
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 256;\n"
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%inp], 256, [full];\n"
        "ld.shared.u32 %r9, [tile];\n"
        "ld.shared.u32 %r10, [tile+252];\n"
        "out 64 %r9\n"
        "out 65 %r10\n");
    s.out.assign(66, 0);
    s.schedule = schedule;
    const Outcome o = run(s);
    ASSERT_TRUE(clean(o));
    const bool eager = schedule.kind == ScheduleKind::Eager;
    EXPECT_EQ(o.out[64], eager ? 100 : kPoisonWord);
    EXPECT_EQ(o.out[65], eager ? 163 : kPoisonWord);
    EXPECT_EQ(o.out[0], 100u);
  }
}

// A long computation on another warp gives a copy time to land. Lazy holds it all the same until everybody waits.
TEST(BulkCopyTest, LazyCompletesOnlyWhenEverybodyWaits) {
  for (const auto& [schedule, landed] :
       {std::pair{kNominal, true}, {kEager, true}, {kLazy, false}, {kReverse, false}}) {
    Kernel s;
    s.shared = kShared;
    s.block = {64, 1, 1};
    s.in = counting(2048);
    s.schedule = schedule;
    s.body = R"(
      setp.ne.u32 %p1, %t, 0;
      @%p1 bra READY;
      mbarrier.init.shared::cta.b64 [full], 1;
      mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 256;
      cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%inp], 256, [full];
    READY:
      bar.sync 0;
      setp.eq.u32 %p2, %w, 0;
      @%p2 bra L;
      mov.u32 %r5, 0;
    WORK:
      add.u32 %r5, %r5, 1;
      setp.lt.u32 %p4, %r5, 3000;
      @%p4 bra WORK;
      ld.shared.u32 %r3, [tile];
      out 0 %r3
    L:
      mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0;
      @!%p2 bra L;
      ld.shared.u32 %r3, [tile];
      out 1 %r3
    )";
    const Outcome o = run(s);
    ASSERT_TRUE(clean(o));
    EXPECT_EQ(o.out[0], landed ? 100u : kPoisonWord) << machine::to_string(schedule);
    EXPECT_EQ(o.out[1], 100u);
  }
}

TEST(BulkCopyTest, SchedulesOrderCompletions) {
  const std::string issue =
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 768;\n"
      "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%inp], 256, [full];\n"
      "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile+256], [%inp+256], 256, [full];\n"
      "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile+512], [%inp+512], 256, [full];\n";
  std::set<std::vector<uint64_t>> random_orders;
  for (const auto& schedule : schedules(30)) {
    Recorder seen;
    Kernel s = load(issue);
    s.schedule = schedule;
    s.observer = &seen;
    ASSERT_TRUE(clean(run(s)));
    const std::vector<uint64_t> written = seen.order(Milestone::Written);
    if (schedule.kind == ScheduleKind::Random) {
      random_orders.insert(written);
    } else if (schedule.kind == ScheduleKind::Reverse) {
      EXPECT_THAT(written, ElementsAre(3, 2, 1));
    } else {
      EXPECT_THAT(written, ElementsAre(1, 2, 3)) << machine::to_string(schedule);
    }
    if (schedule.kind == ScheduleKind::Eager) {
      // Written and signalled before anything else happens.
      std::vector<Milestone> order;
      for (const auto& c : seen.copies) order.push_back(c.milestone);
      EXPECT_EQ(order.at(3), Milestone::Signalled);
      EXPECT_EQ(order.at(4), Milestone::Issued);
    }
  }
  EXPECT_GE(random_orders.size(), 3u);
}

// The ISA lets a copy signal in pieces. Together they count each byte once, and the phase completes once, with the
// last.
TEST(BulkCopyTest, RandomSchedulesSignalInPieces) {
  std::set<size_t> pieces;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    Recorder seen;
    Kernel s = load(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 8192;\n"
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%inp], 8192, [full];\n");
    s.schedule = random_schedule(seed);
    s.observer = &seen;
    const Outcome o = run(s);
    ASSERT_TRUE(clean(o)) << seed;
    EXPECT_EQ(o.out, counting(64));
    int64_t bytes = 0;
    for (const auto& e : seen.barriers) {
      if (e.kind != Kind::CompleteTx) continue;
      EXPECT_EQ(e.bytes % 16, 0);
      EXPECT_GT(e.bytes, 0);
      bytes += e.bytes;
    }
    EXPECT_EQ(bytes, 8192);
    EXPECT_EQ(seen.count(Kind::PhaseComplete), 1u);
    EXPECT_EQ(seen.order(Milestone::Signalled).size(), 1u);
    pieces.insert(seen.count(Kind::CompleteTx));
  }
  EXPECT_THAT(pieces, ElementsAre(1, 2, 3, 4));
}

TEST(BulkCopyTest, StoresArriveOnEverySchedule) {
  for (const char* text : {
           "cp.async.bulk.global.shared::cta.bulk_group [%outp], [tile], 256;\n",
           "mov.u32 %r5, 256;\nmov.u64 %rd5, 0;\ncp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%outp], "
           "[tile], %r5, %rd5;\n",
           "cp.async.bulk.global.shared::cta.bulk_group [%outp+128], [tile+128], "
           "128;\ncp.async.bulk.global.shared::cta.bulk_group [%outp], [tile], 128;\n",
       }) {
    for (const char* wait : {"cp.async.bulk.wait_group 0;\n", "cp.async.bulk.wait_group.read 0;\n"}) {
      for (const auto& schedule : schedules(4)) {
        Kernel s = store(std::string(text) + "cp.async.bulk.commit_group;\n" + wait);
        s.schedule = schedule;
        const Outcome o = run(s);
        ASSERT_TRUE(clean(o)) << text;
        EXPECT_EQ(o.out, counting(64, 1000)) << machine::to_string(schedule);
      }
    }
  }
}

// wait_group.read frees the source; only wait_group says that the destination is written. Global memory is not
// poisoned.
TEST(BulkCopyTest, ReadWaitsAreNoFullWaits) {
  for (const auto& schedule : schedules(0)) {
    for (const bool read_only : {true, false}) {
      Kernel s = store(
          std::string("cp.async.bulk.global.shared::cta.bulk_group [%outp], [tile], "
                      "128;\ncp.async.bulk.commit_group;\nld.global.u32 %r5, [%outp];\ncp.async.bulk.wait_group") +
          (read_only ? ".read" : "") + " 0;\nld.global.u32 %r6, [%outp];\nout 40 %r5\nout 41 %r6\n");
      s.schedule = schedule;
      const Outcome o = run(s);
      ASSERT_TRUE(clean(o));
      const bool eager = schedule.kind == ScheduleKind::Eager;
      EXPECT_EQ(o.out[40], eager ? 1000u : 5u) << machine::to_string(schedule);
      EXPECT_EQ(o.out[41], eager || !read_only ? 1000u : 5u)
          << machine::to_string(schedule) << (read_only ? " .read" : "");
      EXPECT_EQ(o.out[0], 1000u);
    }
  }
}

TEST(BulkCopyTest, ASourceOverwrittenInFlightIsWhatIsStored) {
  const std::string copy =
      "mov.u32 %r9, 7;\ncp.async.bulk.global.shared::cta.bulk_group [%outp], [tile], "
      "256;\ncp.async.bulk.commit_group;\n";
  const std::string overwrite = "st.shared.u32 [tile+4], %r9;\ncp.async.bulk.wait_group 0;\n";
  for (const auto& schedule : schedules(0)) {
    const bool eager = schedule.kind == ScheduleKind::Eager;
    // Without a wait, with one that allows the one group there is, and with the right one.
    for (const auto& [wait, safe] : {std::pair{"", false},
                                     {"cp.async.bulk.wait_group.read 1;\n", false},
                                     {"cp.async.bulk.wait_group.read 0;\n", true},
                                     {"cp.async.bulk.wait_group 0;\n", true}}) {
      Kernel s = store(copy + wait + overwrite);
      s.schedule = schedule;
      const Outcome o = run(s);
      ASSERT_TRUE(clean(o));
      EXPECT_EQ(o.out[1], eager || safe ? 1001u : 7u) << machine::to_string(schedule) << " " << wait;
      EXPECT_EQ(o.out[2], 1002u);
    }
  }
}

// wait_group N: at most the N youngest groups may be unfinished when it returns.
TEST(BulkCopyTest, GroupsCompleteInOrderOfCommit) {
  for (uint32_t allowed = 0; allowed <= 5; allowed++) {
    for (const bool read_only : {false, true}) {
      bool some_left = false;
      for (const auto& schedule : schedules(10)) {
        std::string text;
        // Group k holds copies 2k+1 and 2k+2, the fourth is empty.
        for (int g = 0; g < 4; g++) {
          for (int k = 0; k < 2 && g != 3; k++) {
            const std::string offset = std::to_string(32 * (2 * g + k));
            text += "cp.async.bulk.global.shared::cta.bulk_group [%outp+" + offset + "], [tile+" + offset + "], 32;\n";
          }
          text += "cp.async.bulk.commit_group;\n";
        }
        text += std::string("cp.async.bulk.wait_group") + (read_only ? ".read " : " ") + std::to_string(allowed) +
                ";\ncp.async.bulk.wait_group 0;\n";
        Recorder seen;
        Kernel s = store(text);
        s.schedule = schedule;
        s.observer = &seen;
        const Outcome o = run(s);
        ASSERT_TRUE(clean(o));
        for (uint32_t k = 0; k < 48; k++) EXPECT_EQ(o.out[k], 1000 + k);
        const auto wait = std::find_if(seen.groups.begin(), seen.groups.end(),
                                       [](const auto& g) { return g.kind != machine::GroupEvent::Kind::BulkCommit; });
        ASSERT_NE(wait, seen.groups.end());
        EXPECT_EQ(wait->kind,
                  read_only ? machine::GroupEvent::Kind::BulkWaitRead : machine::GroupEvent::Kind::BulkWait);
        EXPECT_EQ(wait->allowed, allowed);
        const auto done = seen.order(read_only ? Milestone::SourceRead : Milestone::Written, wait->copies_before);
        for (uint64_t id = 1; id <= 6; id++) {
          const bool finished = std::count(done.begin(), done.end(), id) == 1;
          const bool must = (id - 1) / 2 + allowed < 4;
          EXPECT_TRUE(finished || !must) << "copy " << id << " allowed " << allowed << " "
                                         << machine::to_string(schedule);
          some_left = some_left || !finished;
        }
      }
      EXPECT_EQ(some_left, allowed >= 2) << "allowed " << allowed;
    }
  }
}

TEST(BulkCopyTest, WaitsWithoutGroupsReturn) {
  for (const auto& schedule : schedules()) {
    Kernel s = store(
        "cp.async.bulk.wait_group 0;\ncp.async.bulk.wait_group.read "
        "3;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nmov.u32 %r1, 1;\nout 0 %r1\n");
    s.schedule = schedule;
    const Outcome o = run(s);
    ASSERT_TRUE(clean(o));
    EXPECT_EQ(o.out[0], 1u);
  }
}

// Groups are a thread's own: another thread's wait_group 0 does not wait for them.
TEST(BulkCopyTest, GroupsBelongToTheirThread) {
  Kernel s;
  s.shared = kShared;
  s.block = {64, 1, 1};
  s.schedule = kLazy;
  s.out.assign(64, 5);
  s.body = R"(
    mov.u32 %r9, 9;
    st.shared.u32 [tile], %r9;
    bar.sync 0;
    setp.eq.u32 %p1, %t, 0;
    @%p1 cp.async.bulk.global.shared::cta.bulk_group [%outp], [tile], 16;
    @%p1 cp.async.bulk.commit_group;
    bar.sync 0;
    setp.eq.u32 %p2, %t, 32;
    @%p2 cp.async.bulk.wait_group 0;
    @%p2 ld.global.u32 %r1, [%outp];
    @!%p2 bra NEXT;
    out 10 %r1
  NEXT:
    bar.sync 0;
    @%p1 cp.async.bulk.wait_group 0;
    @!%p1 bra END;
    ld.global.u32 %r1, [%outp];
    out 11 %r1
  END:
  )";
  const Outcome o = run(s);
  ASSERT_TRUE(clean(o));
  EXPECT_EQ(o.out[10], 5u);
  EXPECT_EQ(o.out[11], 9u);
}

TEST(BulkCopyTest, ReductionsCombineWithTheDestination) {
  struct Case {
    const char* op;
    uint32_t source, destination, result;
  };
  for (const Case& c :
       {Case{"add.u32", 7, 0xfffffffe, 5}, Case{"add.s32", 0xffffffff, 3, 2},
        Case{"min.s32", 0xffffffff, 3, 0xffffffff}, Case{"min.u32", 0xffffffff, 3, 3},
        Case{"max.s32", 0xffffffff, 3, 3}, Case{"max.u32", 0xffffffff, 3, 0xffffffff}, Case{"inc.u32", 9, 8, 9},
        Case{"inc.u32", 9, 9, 0}, Case{"dec.u32", 9, 0, 9}, Case{"dec.u32", 9, 10, 9}, Case{"dec.u32", 9, 9, 8},
        Case{"and.b32", 0xff00ff00, 0x0ff00ff0, 0x0f000f00}, Case{"or.b32", 0xff00ff00, 0x0ff00ff0, 0xfff0fff0},
        Case{"xor.b32", 0xff00ff00, 0x0ff00ff0, 0xf0f0f0f0}, Case{"add.f32", 0x3f800000, 0x40000000, 0x40400000},
        Case{"add.noftz.f16", 0x3c003c00, 0x40003c00, 0x42004000},
        Case{"add.noftz.bf16", 0x3f803f80, 0x40003f80, 0x40404000},
        Case{"min.f16", 0x3c00bc00, 0x4000b800, 0x3c00bc00}}) {
    for (const auto& schedule : schedules(2)) {
      Kernel s;
      s.shared = kShared;
      s.block = {8, 1, 1};
      s.schedule = schedule;
      s.in = {c.source};
      s.out.assign(12, c.destination);
      s.body = R"(
        ld.global.u32 %r3, [%inp];
        shl.b32 %r1, %t, 2;
        mov.u32 %r2, tile;
        add.u32 %r1, %r1, %r2;
        st.shared.u32 [%r1], %r3;
        bar.sync 0;
        setp.ne.u32 %p1, %t, 0;
        @%p1 bra END;
        cp.reduce.async.bulk.global.shared::cta.bulk_group.)" +
               std::string(c.op) + R"( [%outp], [tile], 32;
        cp.async.bulk.commit_group;
        cp.async.bulk.wait_group 0;
      END:
      )";
      const Outcome o = run(s);
      ASSERT_TRUE(clean(o)) << c.op;
      for (size_t k = 0; k < 12; k++) EXPECT_EQ(o.out[k], k < 8 ? c.result : c.destination) << c.op << " " << k;
    }
  }
}

TEST(BulkCopyTest, CpMaskChoosesBytesOfEachSixteen) {
  Kernel s = store(
      "mov.u16 %h1, 0x8011;\ncp.async.bulk.global.shared::cta.bulk_group.cp_mask [%outp], [tile], 32, "
      "%h1;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n");
  s.out.assign(64, 0x55555555);
  const Outcome o = run(s);
  ASSERT_TRUE(clean(o));
  // Words 1000 … 1007 are 0x3e8 … 0x3ef; bytes 0, 4 and 15 of each 16 are written.
  EXPECT_THAT(std::vector<uint32_t>(o.out.begin(), o.out.begin() + 9),
              ElementsAre(0x555555e8, 0x555555e9, 0x55555555, 0x00555555, 0x555555ec, 0x555555ed, 0x55555555,
                          0x00555555, 0x55555555));
}

TEST(BulkCopyTest, PrefetchDoesNothing) {
  Recorder seen;
  Kernel s = store(
      "cp.async.bulk.prefetch.L2.global [%inp], 64;\nmov.u64 %rd5, 0;\ncp.async.bulk.prefetch.L2.global.L2::cache_hint "
      "[%inp], 64, %rd5;\nmov.u32 %r7, 32;\ncp.async.bulk.prefetch.L2.global [%inp+16], %r7;\n"
      // outside every allocation: no text says that it faults
      "mov.u64 %rd6, 4096;\ncp.async.bulk.prefetch.L2.global [%rd6], 64;\n");
  s.observer = &seen;
  EXPECT_TRUE(clean(run(s)));
  EXPECT_TRUE(seen.copies.empty());
}

TEST(BulkCopyTest, APrefetchOfAnUnevenSizeIsToldAndGoesOn) {
  const std::string line = "cp.async.bulk.prefetch.L2.global [%inp], %r7;";
  const Outcome o = run(store("mov.u32 %r7, 20;\n" + line + "\n"));
  EXPECT_TRUE(reports(o, "bad-copy", line, "the size 20 of the bulk prefetch"));
  EXPECT_EQ(o.status, LaunchStatus::Ok);
}

// --- rules broken ----------------------------------------------------------------------------------------------------

struct Broken {
  const char* before;
  const char* line;
  const char* id;
  const char* says;
};
void PrintTo(const Broken& b, std::ostream* out) { *out << b.line; }
class BulkCopyFaultTest : public ::testing::TestWithParam<Broken> {};
TEST_P(BulkCopyFaultTest, StopsAtTheLine) {
  const Broken& b = GetParam();
  for (const auto& schedule : schedules(1)) {
    Kernel s;
    s.shared = kShared;
    s.block = {1, 1, 1};
    s.schedule = schedule;
    s.in = counting(64);
    s.body = std::string("\nmov.u32 %r1, tile;\nmbarrier.init.shared::cta.b64 [full], 1;\n") + b.before + "\n" +
             b.line + "\n";
    const Outcome o = run(s);
    EXPECT_TRUE(reports(o, b.id, b.line, b.says));
    EXPECT_EQ(o.status, LaunchStatus::Fault);
  }
}
INSTANTIATE_TEST_SUITE_P(
    All, BulkCopyFaultTest,
    ::testing::Values(
        Broken{"", "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%inp], 24, [full];",
               "bad-copy", "the size 24"},
        Broken{"mov.u32 %r2, 20;", "cp.async.bulk.global.shared::cta.bulk_group [%outp], [tile], %r2;", "bad-copy",
               "the size 20"},
        Broken{"", "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile+8], [%inp], 16, [full];",
               "misaligned", "the destination address"},
        Broken{"", "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%inp+4], 16, [full];",
               "misaligned", "the source address"},
        Broken{"", "cp.async.bulk.prefetch.L2.global [%inp+4], 32;", "misaligned", "of the bulk prefetch"},
        Broken{"", "cp.async.bulk.global.shared::cta.bulk_group [%outp+8], [tile], 16;", "misaligned",
               "the destination address"},
        Broken{"", "cp.async.bulk.global.shared::cta.bulk_group [%outp], [tile+4], 16;", "misaligned",
               "the source address"},
        Broken{"", "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%inp], 272, [full];",
               "out-of-bounds", "past the end of `in` (256 bytes)"},
        Broken{"", "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%inp+-16], 16, [full];",
               "out-of-bounds", "a bulk copy reads its source of 16 bytes"},
        Broken{"", "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile+8192], [%inp], 16, [full];",
               "out-of-bounds", "runs past the CTA's"},
        Broken{"", "cp.async.bulk.global.shared::cta.bulk_group [%outp], [tile], 272;", "out-of-bounds",
               "a bulk copy writes its destination of 272 bytes"},
        Broken{"", "cp.async.bulk.global.shared::cta.bulk_group [%outp], [tile+8176], 64;", "out-of-bounds",
               "the source of a bulk copy tile+8176 with 64 bytes"},
        Broken{"", "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%inp], 16, [tile+64];",
               "barrier-not-initialized", "tile"},
        Broken{"", "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%inp], 16, [full+4];",
               "misaligned", "mbarrier full+4"},
        Broken{"",
               "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [tile], [tile+64], 16, [full];",
               "bad-copy", "in a launch without clusters"},
        Broken{"or.b32 %r2, %r1, 0x1000000;",
               "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%inp], 16, [full];",
               "out-of-bounds", "of the CTA of rank 1, in a cluster of 1"},
        Broken{"mov.u16 %h1, 3;",
               "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], [%inp], "
               "16, [full], %h1;",
               "bad-copy", "bit 1 of the multicast mask 0x3 is set, but the cluster has 1 CTA"}));

TEST(BulkCopyTest, ALoadOverALiveBarrierIsReported) {
  Kernel s;
  s.shared = ".shared .align 16 .b8 tile[8];\n.shared .align 8 .b64 full;\n.shared .align 16 .b64 other;\n";
  s.block = {1, 1, 1};
  s.body = R"(
    mbarrier.init.shared::cta.b64 [full], 1;
    mbarrier.init.shared::cta.b64 [other], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [other], 16;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%inp], 16, [other];
  L:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [other], 0;
    @!%p2 bra L;
  )";
  s.in = counting(8);
  EXPECT_TRUE(reports(run(s), "barrier-overwritten", "cp.async.bulk", "runs over a live mbarrier"));
}

// The completion finds no barrier any more: the fault is the copy's, though no instruction is running.
TEST(BulkCopyTest, ABarrierThatIsGoneWhenTheCopyLands) {
  for (const auto& schedule : {kNominal, kLazy, kReverse, random_schedule(4)}) {
    Kernel s;
    s.shared = kShared;
    s.block = {1, 1, 1};
    s.schedule = schedule;
    s.in = counting(64);
    s.body = R"(
      mbarrier.init.shared::cta.b64 [full], 1;
      mbarrier.expect_tx.shared::cta.b64 [full], 16;
      cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%inp], 16, [full];
      mbarrier.inval.shared::cta.b64 [full];
      bar.sync 0;
    )";
    const Outcome o = run(s);
    EXPECT_EQ(o.status, LaunchStatus::Fault);
    ASSERT_FALSE(o.diagnostics.empty());
    EXPECT_EQ(o.diagnostics.back().id, "barrier-not-initialized");
    EXPECT_EQ(o.diagnostics.back().place.line, 3u) << text_of(o);
  }
}

TEST(BulkCopyTest, CopiesInFlightAtExitAreReported) {
  const std::string arm = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;\n";
  const std::string copy =
      "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%inp], 16, [full];\n";
  const std::string out =
      "cp.async.bulk.global.shared::cta.bulk_group [%outp], [tile], 16;\ncp.async.bulk.commit_group;\n";
  for (const auto& schedule : schedules(0)) {
    const auto with = [&](const std::string& body) {
      Kernel s;
      s.shared = kShared;
      s.block = {1, 1, 1};
      s.schedule = schedule;
      s.in = counting(64);
      s.body = "\nmbarrier.init.shared::cta.b64 [full], 1;\n" + body;
      return run(s);
    };
    const std::string wait = "L: mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0;\n@!%p2 bra L;\n";
    EXPECT_TRUE(clean(with(arm + copy + wait)));
    EXPECT_TRUE(clean(with(out + "cp.async.bulk.wait_group.read 0;\n")));
    EXPECT_TRUE(clean(with(out + "cp.async.bulk.wait_group 0;\n")));
    if (schedule.kind == ScheduleKind::Eager) {
      EXPECT_TRUE(clean(with(arm + copy)));
      EXPECT_TRUE(clean(with(out)));
      continue;
    }
    Outcome o = with(arm + copy);
    EXPECT_TRUE(
        reports(o, "copy-in-flight-at-exit", "complete_tx::bytes", "16 bytes into its shared memory was unfinished"))
        << machine::to_string(schedule);
    EXPECT_EQ(o.status, LaunchStatus::Ok);
    o = with(out);
    EXPECT_TRUE(reports(o, "copy-in-flight-at-exit", "bulk_group [", "still read 16 bytes of its shared memory"))
        << machine::to_string(schedule);
    // A copy that was never committed belongs to no group that could be waited for.
    EXPECT_TRUE(
        reports(with("cp.async.bulk.global.shared::cta.bulk_group [%outp], [tile], 16;\ncp.async.bulk.wait_group 0;\n"),
                "copy-in-flight-at-exit", "bulk_group ["));
    EXPECT_TRUE(reports(with(out + "cp.async.bulk.wait_group.read 1;\n"), "copy-in-flight-at-exit", "bulk_group ["));
  }
}

}  // namespace
}  // namespace handoff::async::testing
