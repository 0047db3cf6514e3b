// Whole runs: schedules, grids, deadlocks, printing, and the Emulator object.
#include "grader/emulator/emulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "grader/emulator/async/testing.h"

namespace handoff {
namespace {

using async::testing::clean;
using async::testing::Kernel;
using async::testing::kLazy;
using async::testing::kNominal;
using async::testing::kReverse;
using async::testing::line_of;
using async::testing::Outcome;
using async::testing::reports;
using async::testing::run;
using async::testing::schedules;
using async::testing::text_of;
using machine::LaunchStatus;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string where(const Outcome& o, std::string_view text) {
  return "kernel.cu:" + std::to_string(line_of(o.body, text));
}

// --- a ring of two stages: warp 0 loads, warps 1 and 2 sum -----------------------------------------------------------

constexpr uint32_t kIterations = 24;

struct RingFlaws {
  const char* producer_parity = "xor.b32 %r6, %r6, 1;";  // a fresh barrier counts as complete for parity 1
  const char* consumer_wait = "@!%p3 bra CWAIT;";
  const char* release = "mbarrier.arrive.shared::cta.b64 _, [%r8];";
  const char* bytes = "256";
};

Kernel ring(const RingFlaws& flaws = {}) {
  Kernel s;
  s.shared = ".shared .align 128 .b8 stages[512];\n.shared .align 8 .b64 full[2];\n.shared .align 8 .b64 empty[2];\n";
  s.block = {96, 1, 1};
  s.in.resize(64 * kIterations);
  for (size_t k = 0; k < s.in.size(); k++) s.in[k] = static_cast<uint32_t>(k * k + 3);
  s.body = R"(
    setp.ne.u32 %p1, %t, 0;
    @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [full], 1;
    mbarrier.init.shared::cta.b64 [full+8], 1;
    mbarrier.init.shared::cta.b64 [empty], 64;
    mbarrier.init.shared::cta.b64 [empty+8], 64;
  READY:
    bar.sync 0;
    mov.u32 %r1, 0;   // iteration
    mov.u32 %r2, 0;   // sum
    setp.ne.u32 %p2, %w, 0;
    @%p2 bra CONSUME;
    @%p1 bra END;
  PRODUCE:
    and.b32 %r3, %r1, 1;
    shl.b32 %r4, %r3, 3;
    mov.u32 %r8, empty;
    add.u32 %r8, %r8, %r4;
    mov.u32 %r7, full;
    add.u32 %r7, %r7, %r4;
    shr.u32 %r6, %r1, 1;
    and.b32 %r6, %r6, 1;
    )" + std::string(flaws.producer_parity) +
           R"(
  PWAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r8], %r6; // producer waits
    @!%p3 bra PWAIT;
    shl.b32 %r9, %r3, 8;
    mov.u32 %r10, stages;
    add.u32 %r10, %r10, %r9;
    shl.b32 %r11, %r1, 8;
    cvt.u64.u32 %rd3, %r11;
    add.u64 %rd3, %rd3, %inp;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r7], )" +
           std::string(flaws.bytes) + R"(;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r10], [%rd3], 256, [%r7];
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p4, %r1, )" +
           std::to_string(kIterations) + R"(;
    @%p4 bra PRODUCE;
    bra END;
  CONSUME:
    and.b32 %r3, %r1, 1;
    shl.b32 %r4, %r3, 3;
    mov.u32 %r8, empty;
    add.u32 %r8, %r8, %r4;
    mov.u32 %r7, full;
    add.u32 %r7, %r7, %r4;
    shr.u32 %r6, %r1, 1;
    and.b32 %r6, %r6, 1;
  CWAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r7], %r6; // consumer waits
    )" + std::string(flaws.consumer_wait) +
           R"(
    shl.b32 %r9, %r3, 8;
    mov.u32 %r10, stages;
    add.u32 %r10, %r10, %r9;
    sub.u32 %r12, %t, 32;
    shl.b32 %r11, %r12, 2;
    add.u32 %r10, %r10, %r11;
    ld.shared.u32 %r13, [%r10];
    add.u32 %r1, %r1, 1;
    mad.lo.u32 %r2, %r13, %r1, %r2;
    )" + std::string(flaws.release) +
           R"(
    setp.lt.u32 %p4, %r1, )" +
           std::to_string(kIterations) + R"(;
    @%p4 bra CONSUME;
    cvt.u64.u32 %rd3, %r11;
    add.u64 %rd3, %rd3, %outp;
    st.global.u32 [%rd3], %r2;
  END:
  )";
  return s;
}

std::vector<uint32_t> ring_result(const Kernel& s) {
  std::vector<uint32_t> sums(64, 0);
  for (uint32_t i = 0; i < kIterations; i++) {
    for (uint32_t k = 0; k < 64; k++) sums[k] += s.in[64 * i + k] * (i + 1);
  }
  return sums;
}

TEST(EmulatorTest, ARingGivesTheSameResultOnEverySchedule) {
  for (const auto& schedule : schedules(20)) {
    Kernel s = ring();
    s.schedule = schedule;
    trace::Recorder recorder(false);
    s.observer = &recorder;
    const Outcome o = run(s);
    ASSERT_TRUE(clean(o)) << machine::to_string(schedule);
    EXPECT_EQ(o.out, ring_result(s)) << machine::to_string(schedule);
    const trace::Trace t = recorder.take();
    EXPECT_EQ(t.totals.bulk_copies, kIterations);
    EXPECT_EQ(t.totals.phases, 2 * kIterations);
    EXPECT_EQ(t.totals.completed_bytes, kIterations * 256u);
    EXPECT_EQ(t.totals.expected_bytes, kIterations * 256u);
  }
}

TEST(EmulatorTest, AConsumerThatDoesNotWaitReadsPoison) {
  RingFlaws flaws;
  flaws.consumer_wait = "";
  for (const auto& schedule : {kNominal, kLazy, kReverse}) {
    Kernel s = ring(flaws);
    s.schedule = schedule;
    EXPECT_NE(run(s).out, ring_result(s)) << machine::to_string(schedule);
  }
}

bool same(const trace::Trace& a, const trace::Trace& b) {
  const auto fields = [](const trace::Event& e) {
    return std::tie(e.kind, e.cycle, e.cta, e.warp, e.mask, e.line, e.object, e.phase, e.bytes, e.pending, e.tx, e.op);
  };
  return std::equal(a.events.begin(), a.events.end(), b.events.begin(), b.events.end(),
                    [&](const trace::Event& x, const trace::Event& y) { return fields(x) == fields(y); });
}

TEST(EmulatorTest, TheSameScheduleAndSeedGiveTheSameRun) {
  std::vector<trace::Trace> first;
  for (const auto& schedule : schedules(5)) {
    trace::Trace traces[2];
    uint64_t cycles[2], instructions[2];
    for (int k = 0; k < 2; k++) {
      Kernel s = ring();
      s.grid = {3, 1, 1};
      s.schedule = schedule;
      trace::Recorder recorder(true);
      s.observer = &recorder;
      const Outcome o = run(s);
      ASSERT_TRUE(clean(o));
      traces[k] = recorder.take();
      cycles[k] = o.cycles;
      instructions[k] = o.instructions;
    }
    EXPECT_TRUE(same(traces[0], traces[1])) << machine::to_string(schedule);
    EXPECT_EQ(cycles[0], cycles[1]);
    EXPECT_EQ(instructions[0], instructions[1]);
    first.push_back(std::move(traces[0]));
  }
  for (size_t a = 0; a < first.size(); a++) {
    for (size_t b = a + 1; b < first.size(); b++)
      EXPECT_FALSE(same(first[a], first[b])) << "schedules " << a << " and " << b << " interleave alike";
  }
}

// --- deadlocks -------------------------------------------------------------------------------------------------------

Kernel hangs(const std::string& body, uint32_t threads = 64) {
  Kernel s;
  s.shared = ".shared .align 128 .b8 tile[4096];\n.shared .align 8 .b64 full;\n.shared .align 8 .b64 done[2];\n";
  s.block = {threads, 1, 1};
  s.in.assign(1024, 1);
  s.body = R"(
    setp.ne.u32 %p1, %t, 0;
    @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [full], 1;
    mbarrier.init.shared::cta.b64 [done], 1;
    mbarrier.init.shared::cta.b64 [done+8], 3;
  READY:
    bar.sync 0;
)" + body;
  return s;
}

TEST(DeadlockTest, ABarrierThatNobodyArms) {
  for (const auto& schedule : schedules()) {
    Kernel s = hangs("L:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0;\n@!%p2 bra L;\n");
    s.schedule = schedule;
    const Outcome o = run(s);
    EXPECT_EQ(o.status, LaunchStatus::Hang);
    ASSERT_TRUE(
        reports(o, "deadlock", "try_wait", "waiting: 64 threads at " + where(o, "try_wait") + " for full, parity 0"));
    EXPECT_THAT(o.state, ElementsAre("full    phase 0   pending arrivals 1 of 1   tx-count 0",
                                     "done[0] phase 0   pending arrivals 1 of 1   tx-count 0",
                                     "done[1] phase 0   pending arrivals 3 of 3   tx-count 0",
                                     "waiting: 64 threads at " + where(o, "try_wait") + " for full, parity 0"));
  }
}

TEST(DeadlockTest, BytesThatNeverCome) {
  for (const auto& schedule : schedules()) {
    Kernel s = hangs(R"(
      @%p1 bra L;
      mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 4096;
      cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%inp], 2048, [full];
    L:
      mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0;
      @!%p2 bra L;
    )");
    s.schedule = schedule;
    const Outcome o = run(s);
    EXPECT_TRUE(reports(o, "deadlock", "try_wait"));
    EXPECT_THAT(
        o.state,
        Contains("full    phase 0   pending arrivals 0 of 1   tx-count 2048   2048 of 4096 expected bytes arrived"))
        << text_of(o);
  }
}

TEST(DeadlockTest, AParityThatCannotCome) {
  for (const auto& schedule : schedules()) {
    Kernel s = hangs(R"(
      @!%p1 mbarrier.arrive.shared::cta.b64 _, [full];
      bar.sync 0;
    L:
      mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 1;
      @!%p2 bra L;
    )");
    s.schedule = schedule;
    const Outcome o = run(s);
    EXPECT_TRUE(reports(o, "deadlock", "try_wait", "64 threads at " + where(o, "try_wait") + " for full, parity 1"));
    EXPECT_THAT(o.state, Contains("full    phase 1   pending arrivals 1 of 1   tx-count 0"));
  }
}

TEST(DeadlockTest, WaitsForDifferentBarriersAreListedApart) {
  for (const auto& schedule : schedules()) {
    Kernel s = hangs(R"(
      setp.eq.u32 %p3, %w, 0;
      @%p3 bra A;
      mbarrier.arrive.shared::cta.b64 %rd1, [done+8], 1;
    B:
      mbarrier.try_wait.shared::cta.b64 %p2, [done+8], %rd1;
      @!%p2 bra B;
      bra END;
    A:
      setp.ge.u32 %p4, %t, 3;
      @%p4 bra END;
    C:
      mbarrier.test_wait.parity.shared::cta.b64 %p2, [full], 0;
      @!%p2 bra C;
    END:
    )");
    s.body.replace(s.body.find("[done+8], 3"), 11, "[done+8], 33");
    s.schedule = schedule;
    const Outcome o = run(s);
    ASSERT_EQ(o.status, LaunchStatus::Hang) << text_of(o);
    ASSERT_EQ(o.diagnostics.size(), 1u);
    EXPECT_EQ(o.diagnostics[0].related.size(), 1u);
    EXPECT_THAT(o.state, Contains("waiting: 3 threads at " + where(o, "test_wait") + " for full, parity 0"))
        << text_of(o);
    EXPECT_THAT(o.state, Contains("waiting: 32 threads at " + where(o, "try_wait") + " for done[1], phase 0"))
        << text_of(o);
    EXPECT_THAT(o.state, Contains("done[1] phase 0   pending arrivals 1 of 33   tx-count 0")) << text_of(o);
  }
}

TEST(DeadlockTest, ABlockBarrierThatSomeThreadsNeverReach) {
  for (const auto& schedule : schedules()) {
    Kernel s = hangs("setp.eq.u32 %p3, %w, 1;\n@%p3 bra END;\nbar.sync 1, 96;\nEND:\n", 96);
    s.schedule = schedule;
    Outcome o = run(s);
    EXPECT_TRUE(reports(o, "deadlock", "bar.sync 1", "64 threads at " + where(o, "bar.sync 1") + " for barrier 1"))
        << machine::to_string(schedule);
    // The same with the others held at an mbarrier: both waits are told.
    s = hangs(
        "setp.eq.u32 %p3, %w, 1;\n@%p3 bra L;\nbar.sync 0; // late\nbra "
        "END;\nL:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0;\n@!%p2 bra L;\nbar.sync 0;\nEND:\n");
    s.schedule = schedule;
    o = run(s);
    EXPECT_THAT(o.state, Contains("waiting: 32 threads at " + where(o, "// late") + " for barrier 0")) << text_of(o);
    EXPECT_THAT(o.state, Contains("waiting: 32 threads at " + where(o, "try_wait") + " for full, parity 0"))
        << text_of(o);
  }
}

TEST(DeadlockTest, TheFirstLineIsOfThoseWhoDoNotWaitForThreads) {
  const std::string mbarrier = "L:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0;\n@!%p2 bra L;\n",
                    memory =
                        "L:\nld.volatile.shared.u32 %r1, [tile]; // try_wait\nsetp.ne.u32 %p2, %r1, 1;\n@%p2 bra L;\n",
                    other_warp = "setp.eq.u32 %p3, %w, 1;\n@%p3 bra L;\n";
  for (const auto& schedule : schedules()) {
    // Warp 0 waits at the barrier to which warp 1 would come.
    for (const std::string& wait : {mbarrier, memory}) {
      Kernel s = hangs(other_warp + "bra MEET;\n" + wait + "MEET:\nbar.sync 0; // meet\n");
      s.schedule = schedule;
      const Outcome o = run(s);
      EXPECT_TRUE(reports(o, "deadlock", "try_wait", "32 threads at " + where(o, "try_wait"))) << text_of(o);
      ASSERT_EQ(o.diagnostics[0].related.size(), 1u);
      EXPECT_EQ(o.diagnostics[0].related[0].role, "32 threads wait here for barrier 0");
    }
    // A barrier of the whole block in one role, and behind it the arrival for which the other role waits.
    const std::string arrive = "mbarrier.arrive.shared::cta.b64 _, [full];\n";
    Kernel s = hangs(other_warp + "bar.sync 0; // meet\n" + arrive + "bra END;\n" + mbarrier + "END:\n");
    s.schedule = schedule;
    Outcome o = run(s);
    EXPECT_TRUE(reports(o, "deadlock", "// meet", "32 threads at " + where(o, "// meet"))) << text_of(o);
    // The same roles the other way round: what stands first in the block does not matter.
    s.body.replace(s.body.find("%p3, %w, 1"), 10, "%p3, %w, 0");
    o = run(s);
    EXPECT_TRUE(reports(o, "deadlock", "// meet", "32 threads at " + where(o, "// meet"))) << text_of(o);
    // Nothing behind the barrier would end the wait.
    s = hangs(other_warp + "bar.sync 0; // meet\nbra END;\n" + mbarrier + "END:\n");
    s.schedule = schedule;
    o = run(s);
    EXPECT_TRUE(reports(o, "deadlock", "try_wait", "32 threads at " + where(o, "try_wait"))) << text_of(o);
  }
}

TEST(DeadlockTest, WaitersOfSeveralCtasAreNamed) {
  for (const auto& schedule : schedules()) {
    Kernel s = hangs(
        "mov.u32 %r1, %ctaid.x;\nsetp.ne.u32 %p3, %r1, 2;\nL:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [full], "
        "0;\n@%p3 bra NEXT;\nbra END;\nNEXT:\n@!%p2 bra L;\nEND:\n");
    s.grid = {4, 1, 1};
    s.schedule = schedule;
    const Outcome o = run(s);
    EXPECT_TRUE(reports(o, "deadlock", "try_wait",
                        "192 threads of CTAs 0-1, 3 at " + where(o, "try_wait") + " for full, parity 0"))
        << text_of(o);
  }
}

TEST(DeadlockTest, AFlagThatNobodySets) {
  for (const auto& schedule : schedules()) {
    Kernel s = hangs("L:\nld.volatile.shared.u32 %r1, [tile]; // watches\nsetp.ne.u32 %p2, %r1, 1;\n@%p2 bra L;\n", 32);
    s.schedule = schedule;
    const Outcome o = run(s);
    ASSERT_EQ(o.status, LaunchStatus::Hang);
    ASSERT_EQ(o.diagnostics.size(), 1u);
    EXPECT_EQ(o.diagnostics[0].id, "deadlock");
    EXPECT_THAT(o.diagnostics[0].message, HasSubstr("32 threads at kernel.cu:"));
    EXPECT_THAT(o.diagnostics[0].message, HasSubstr("for memory to change"));
  }
}

TEST(DeadlockTest, ARingWithTheWrongFirstParity) {
  RingFlaws flaws;
  flaws.producer_parity = "";
  for (const auto& schedule : schedules()) {
    Kernel s = ring(flaws);
    s.schedule = schedule;
    const Outcome o = run(s);
    ASSERT_EQ(o.status, LaunchStatus::Hang);
    EXPECT_THAT(o.state, Contains("waiting: 1 thread at " + where(o, "producer waits") + " for empty[0], parity 0"))
        << text_of(o);
    EXPECT_THAT(o.state, Contains("waiting: 64 threads at " + where(o, "consumer waits") + " for full[0], parity 0"))
        << text_of(o);
    EXPECT_THAT(o.state, Contains("empty[0] phase 0   pending arrivals 64 of 64   tx-count 0")) << text_of(o);
  }
}

TEST(DeadlockTest, ARingWhoseConsumersDoNotRelease) {
  RingFlaws flaws;
  flaws.release = "";
  for (const auto& schedule : schedules()) {
    Kernel s = ring(flaws);
    s.schedule = schedule;
    const Outcome o = run(s);
    ASSERT_EQ(o.status, LaunchStatus::Hang);
    EXPECT_THAT(o.state, Contains("waiting: 1 thread at " + where(o, "producer waits") + " for empty[0], parity 0"))
        << text_of(o);
  }
}

// --- grids -----------------------------------------------------------------------------------------------------------

TEST(GridTest, MoreBlocksThanFitAtOnce) {
  for (const auto& schedule : schedules()) {
    Kernel s;
    s.shared = ".shared .align 16 .b8 tile[40960];\n";
    s.grid = {10, 5, 2};
    s.sms = 3;
    s.schedule = schedule;
    s.out.assign(100, 0);
    s.body = R"(
      mov.u32 %r1, %ctaid.y;
      mov.u32 %r2, %ctaid.z;
      mad.lo.u32 %r3, %r2, 5, %r1;
      mad.lo.u32 %r3, %r3, 10, %c;
      st.shared.u32 [tile], %r3;
      bar.sync 0;
      ld.shared.u32 %r4, [tile];
      mul.wide.u32 %rd1, %r4, 4;
      add.u64 %rd1, %rd1, %outp;
      red.global.add.u32 [%rd1], 1;
    )";
    const Outcome o = run(s);
    ASSERT_TRUE(clean(o));
    EXPECT_EQ(o.out, std::vector<uint32_t>(100, 32));
  }
}

// Block 0 spins until block 1 has published its number.
Kernel handoff_between_blocks(const char* pause) {
  Kernel s;
  s.grid = {2, 1, 1};
  s.block = {1, 1, 1};
  s.body = R"(
    setp.eq.u32 %p1, %c, 1;
    @%p1 bra PUBLISH;
  SPIN:
    )" + std::string(pause) +
           R"(
    ld.acquire.gpu.global.u32 %r1, [%outp+4];
    setp.eq.u32 %p2, %r1, 0;
    @%p2 bra SPIN;
    ld.global.u32 %r2, [%outp];
    out 2 %r2
    bra END;
  PUBLISH:
    mov.u32 %r3, 0;
  WORK:
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p3, %r3, 2000;
    @%p3 bra WORK;
    out 0 %r3
    fence.acq_rel.gpu;
    atom.global.exch.b32 %r4, [%outp+4], 1;
  END:
  )";
  return s;
}

TEST(GridTest, AFlagBetweenBlocks) {
  for (const char* pause : {"", "nanosleep.u32 100;"}) {
    for (const auto& schedule : schedules(8)) {
      Kernel s = handoff_between_blocks(pause);
      s.schedule = schedule;
      const Outcome o = run(s);
      ASSERT_TRUE(clean(o)) << machine::to_string(schedule);
      EXPECT_EQ(o.out[2], 2000u);
      EXPECT_LT(o.instructions, 10000u) << "it polls";
    }
  }
}

// Every block counts itself in and waits for all.
Kernel grid_barrier(uint32_t blocks, uint32_t threads, const char* pause) {
  Kernel s;
  s.grid = {blocks, 1, 1};
  s.block = {threads, 1, 1};
  s.body = R"(
    setp.ne.u32 %p1, %t, 0;
    @%p1 bra WAITED;
    atom.global.add.u32 %r1, [%outp], 1;
  SPIN:
    )" + std::string(pause) +
           R"(
    ld.acquire.gpu.global.u32 %r1, [%outp]; // all here?
    setp.lt.u32 %p2, %r1, )" +
           std::to_string(blocks) + R"(;
    @%p2 bra SPIN;
  WAITED:
    bar.sync 0;
    @%p1 bra END;
    atom.global.add.u32 %r1, [%outp+4], 1;
  END:
  )";
  return s;
}

TEST(GridTest, AGridBarrierOfResidentBlocksWorks) {
  for (const char* pause : {"", "nanosleep.u32 32;"}) {
    for (const auto& schedule : schedules(4)) {
      for (const uint32_t blocks : {2u, 24u}) {
        Kernel s = grid_barrier(blocks, 64, pause);
        s.schedule = schedule;
        s.sms = 1;
        s.progress_budget = 300'000;
        const Outcome o = run(s);
        ASSERT_TRUE(clean(o)) << machine::to_string(schedule) << " " << blocks << " blocks " << pause;
        EXPECT_EQ(o.out[1], blocks);
      }
    }
  }
}

TEST(GridTest, AGridBarrierThatCannotFitIsADeadlock) {
  for (const auto& schedule : schedules(4)) {
    Kernel s = grid_barrier(7, 1024, "");  // two such blocks fit on an SM
    s.schedule = schedule;
    s.sms = 2;
    const Outcome o = run(s);
    EXPECT_EQ(o.status, LaunchStatus::Hang);
    ASSERT_EQ(o.diagnostics.size(), 1u) << text_of(o);
    EXPECT_EQ(o.diagnostics[0].id, "deadlock");
    EXPECT_THAT(o.diagnostics[0].message,
                HasSubstr("3 of 7 CTAs have not started because the resident ones do not end"));
    EXPECT_EQ(o.out[0], 4u);
  }
}

TEST(GridTest, AnEndlessLoopIsAStall) {
  Kernel s;
  s.block = {32, 1, 1};
  s.progress_budget = 50'000;
  s.body = "\nmov.u32 %r1, 0;\nL:\nadd.u32 %r1, %r1, 1; // counts\nbra L;\n";
  const Outcome o = run(s);
  EXPECT_EQ(o.status, LaunchStatus::Hang);
  ASSERT_EQ(o.diagnostics.size(), 1u);
  EXPECT_EQ(o.diagnostics[0].id, "stalled");
}

// --- the Emulator object ---------------------------------------------------------------------------------------------

using Arguments = std::vector<std::vector<std::byte>>;
std::vector<std::byte> bytes_of(uint64_t v) {
  std::vector<std::byte> b(8);
  std::memcpy(b.data(), &v, 8);
  return b;
}

constexpr const char* kPrint = R"(.version 9.0
.target sm_100a
.address_size 64
.extern .func (.param .b32 r0) vprintf (.param .b64 a, .param .b64 b);
.global .align 1 .b8 format[10] = {99, 37, 100, 32, 116, 37, 117, 10, 0, 0};
.visible .entry print(.param .u64 out) {
  .local .align 8 .b8 buffer[8];
  .reg .b64 %rd<8>; .reg .b32 %r<4>;
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x;
  mov.u64 %rd1, buffer; cvta.local.u64 %rd2, %rd1;
  st.local.u32 [buffer], %r1; st.local.u32 [buffer+4], %r2;
  mov.u64 %rd3, format; cvta.global.u64 %rd4, %rd3;
  { .param .b64 p0; .param .b64 p1; .param .b32 r;
    st.param.b64 [p0], %rd4; st.param.b64 [p1], %rd2;
    call.uni (r), vprintf, (p0, p1);
    ld.param.b32 %r3, [r]; }
  ld.param.u64 %rd5, [out];
  st.global.u32 [%rd5], %r3;
  ret;
}
.visible .entry other() { ret; }
)";

TEST(EmulatorObjectTest, PrintsInOrderOnNominal) {
  Emulator e;
  ASSERT_EQ(e.load(kPrint), "");
  const machine::Allocation* out = e.memory().allocate(4, "out");
  machine::LaunchConfig config;
  config.grid = {3, 1, 1};
  config.block = {40, 1, 1};
  const EmulatedRun r = e.launch("print", config, Arguments{bytes_of(out->base)}, {});
  EXPECT_EQ(r.status, LaunchStatus::Ok);
  std::string all;
  for (int c = 0; c < 3; c++) {
    for (int t = 0; t < 40; t++) all += "c" + std::to_string(c) + " t" + std::to_string(t) + "\n";
  }
  EXPECT_EQ(r.output, all);
  int32_t arguments = 0;
  std::memcpy(&arguments, out->host, 4);
  EXPECT_EQ(arguments, 2) << "vprintf returns the number of arguments";
  EXPECT_GT(r.modeled_cycles, 0u);
  EXPECT_GT(r.warp_instructions, 6 * 10u);
  EXPECT_TRUE(r.trace.events.empty());
}

TEST(EmulatorObjectTest, RefusesWhatTheDriverWouldRefuse) {
  Emulator e;
  EXPECT_NE(e.load("nonsense"), "");
  EXPECT_EQ(e.module(), nullptr);
  ASSERT_EQ(e.load(kPrint), "");
  const Arguments none, one{bytes_of(0)}, small{std::vector<std::byte>(4)};
  machine::LaunchConfig config;
  EXPECT_EQ(e.launch("absent", config, none, {}).config_error, "no kernel named absent");
  EXPECT_EQ(e.launch("print", config, none, {}).config_error, "print takes 1 arguments, got 0");
  EXPECT_EQ(e.launch("print", config, small, {}).config_error, "argument 1 of print has 8 bytes, got 4");
  EXPECT_EQ(e.launch("other", config, one, {}).config_error, "other takes 0 arguments, got 1");
  EXPECT_EQ(e.launch("other", config, none, {}).config_error, "");
  config.block = {1025, 1, 1};
  EXPECT_THAT(e.launch("other", config, none, {}).config_error, HasSubstr("1025 threads"));
  config.block = {32, 1, 1};
  config.grid = {0, 1, 1};
  EXPECT_THAT(e.launch("other", config, none, {}).config_error, HasSubstr("must be positive"));
  config.grid = {1, 1, 1};
  config.dynamic_smem = 228 * 1024;
  EXPECT_THAT(e.launch("other", config, none, {}).config_error, HasSubstr("bytes of shared memory"));
}

TEST(EmulatorObjectTest, TracesWhenAskedAndRunsAgain) {
  Emulator e;
  const Kernel s = ring();
  ASSERT_EQ(e.load(async::testing::kernel_text(s.shared, s.body)), "");
  machine::LaunchConfig config;
  config.block = s.block;
  for (const bool accesses : {false, true, false}) {
    const machine::Allocation* out = e.memory().allocate(256, "out");
    const machine::Allocation* in = e.memory().allocate(s.in.size() * 4, "in");
    std::memcpy(in->host, s.in.data(), s.in.size() * 4);
    EmulatorOptions options;
    options.trace = true;
    options.trace_accesses = accesses;
    const EmulatedRun r = e.launch("k", config, Arguments{bytes_of(out->base), bytes_of(in->base)}, options);
    EXPECT_EQ(r.status, LaunchStatus::Ok);
    std::vector<uint32_t> sums(64);
    std::memcpy(sums.data(), out->host, 256);
    EXPECT_EQ(sums, ring_result(s));
    EXPECT_EQ(r.trace.totals.bulk_bytes_to_shared, kIterations * 256u);
    EXPECT_EQ(r.trace.totals.shared_load_bytes, accesses ? kIterations * 256u : 0u);
    EXPECT_EQ(r.trace.totals.global_store_bytes, accesses ? 256u : 0u);
    EXPECT_EQ(r.trace.totals.warp_instructions, r.warp_instructions);
    EXPECT_EQ(r.trace.totals.lane_instructions, r.lane_instructions);
    EXPECT_TRUE(e.memory().free(out->base));
    EXPECT_TRUE(e.memory().free(in->base));
  }
}

TEST(EmulatorObjectTest, AnInterruptEndsALaunchThatIsWatched) {
  Emulator e;
  const Kernel s = ring();
  ASSERT_EQ(e.load(async::testing::kernel_text(s.shared, s.body)), "");
  machine::LaunchConfig config;
  config.block = s.block;
  const machine::Allocation* out = e.memory().allocate(256, "out");
  const machine::Allocation* in = e.memory().allocate(s.in.size() * 4, "in");
  std::memcpy(in->host, s.in.data(), s.in.size() * 4);
  const Arguments arguments{bytes_of(out->base), bytes_of(in->base)};
  std::atomic<bool> interrupt = false;
  for (const bool trace : {false, true}) {
    EmulatorOptions options;
    options.check = !trace;
    options.trace = trace;
    options.interrupt = &interrupt;
    interrupt = false;
    const EmulatedRun whole = e.launch("k", config, arguments, options);
    EXPECT_EQ(whole.status, LaunchStatus::Ok);
    EXPECT_FALSE(whole.interrupted);
    interrupt = true;
    const EmulatedRun part = e.launch("k", config, arguments, options);
    EXPECT_TRUE(part.interrupted);
    EXPECT_EQ(part.failure, "interrupted");
    EXPECT_TRUE(part.diagnostics.empty());  // none that says so, and none of what is only unfinished
    EXPECT_LT(part.warp_instructions, whole.warp_instructions);
    EXPECT_EQ(part.trace.totals.warp_instructions, trace ? part.warp_instructions : 0);
  }
}

TEST(EmulatorObjectTest, ABlockGivesItsShadowBackWhenItEnds) {
  // Shared memory only: 128 words written, and read by another warp.
  Emulator e;
  ASSERT_EQ(e.load(async::testing::kernel_text(".shared .align 16 .b8 tile[512];\n", R"(
    shl.b32 %r1, %t, 2;
    mov.u32 %r2, tile;
    add.u32 %r3, %r2, %r1;
    st.shared.u32 [%r3], %t;
    bar.sync 0;
    xor.b32 %r1, %r1, 508;
    add.u32 %r3, %r2, %r1;
    ld.shared.u32 %r4, [%r3];
  )")),
            "");
  EmulatorOptions options;
  options.check = true;
  const auto shadow = [&](uint32_t blocks) {
    machine::LaunchConfig config;
    config.grid = {blocks, 1, 1};
    config.block = {128, 1, 1};
    const EmulatedRun r = e.launch("k", config, Arguments{bytes_of(0), bytes_of(0)}, options);
    EXPECT_EQ(r.status, LaunchStatus::Ok);
    EXPECT_TRUE(r.diagnostics.empty());
    return r.shadow_bytes;
  };
  // On the nominal schedule such a block runs to its end before the next one starts.
  const size_t one = shadow(1);
  EXPECT_GT(one, 512u);
  EXPECT_EQ(shadow(2000), one);
  options.check = false;
  EXPECT_EQ(shadow(1), 0u);
}

}  // namespace
}  // namespace handoff
