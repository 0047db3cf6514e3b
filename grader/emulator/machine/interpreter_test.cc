// Divergence, reconvergence, parking, spinning and fairness; and random structured programs against a scalar reference.
#include "grader/emulator/machine/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "grader/emulator/machine/random.h"
#include "grader/emulator/machine/testing.h"

namespace handoff::machine {
namespace {

using machine::testing::expect_ok;
using machine::testing::Options;
using machine::testing::Outcome;
using machine::testing::run_body;
using ::testing::HasSubstr;

constexpr const char* kShared = ".shared .align 128 .b8 tile[4096];\n";
constexpr const char* kFile = ".file 1 \"kernel.cu\"\n";

Options block(uint32_t threads, Schedule schedule = {}) {
  Options options;
  options.block = {threads, 1, 1};
  options.schedule = schedule;
  return options;
}

TEST(LaneRanges, Text) {
  EXPECT_EQ(lane_ranges(0), "");
  EXPECT_EQ(lane_ranges(1), "0");
  EXPECT_EQ(lane_ranges(0x8000008fu), "0-3,7,31");
  EXPECT_EQ(lane_ranges(kFullMask), "0-31");
}

// --- divergence ------------------------------------------------------------------------------------------------------

TEST(Divergence, IfElse) {
  const Outcome outcome = run_body(
      "setp.lt.u32 %p1, %id, 11;\n@%p1 bra A;\nadd.u32 %r1, %id, 100;\nbra END;\nA: mul.lo.u32 %r1, %id, 3;\nEND: "
      "st.global.u32 [%mine], %r1;\n");
  expect_ok(outcome);
  for (uint32_t t = 0; t < 32; t++) EXPECT_EQ(outcome.out[t], t < 11 ? 3 * t : t + 100);
}

TEST(Divergence, NestedInLoopsWithTripCountsPerLane) {
  // for (k = 0; k < id; k++) sum += k odd ? k : 2
  const Outcome outcome = run_body(
      "mov.u32 %r1, 0;\nmov.u32 %r2, 0;\nsetp.eq.u32 %p1, %id, 0;\n@%p1 bra END;\nL: and.b32 %r3, %r1, 1;\nsetp.eq.u32 "
      "%p2, %r3, 0;\n@%p2 bra EVEN;\nadd.u32 %r2, %r2, %r1;\nbra NEXT;\n"
      "EVEN: add.u32 %r2, %r2, 2;\nNEXT: add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p3, %r1, %id;\n@%p3 bra L;\nEND: "
      "st.global.u32 [%mine], %r2;\n",
      block(64));
  expect_ok(outcome);
  for (uint32_t t = 0; t < 64; t++) {
    uint32_t sum = 0;
    for (uint32_t k = 0; k < t; k++) sum += k % 2 != 0 ? k : 2;
    EXPECT_EQ(outcome.out[t], sum);
  }
}

TEST(Divergence, LanesReconvergeAfterIf) {
  const Outcome outcome = run_body(
      "setp.lt.u32 %p1, %id, 5;\n@!%p1 bra END;\nadd.u32 %r1, %id, 1;\nEND: activemask.b32 %r2;\nst.global.u32 "
      "[%mine], %r2;\n");
  expect_ok(outcome);
  for (uint32_t t = 0; t < 32; t++) EXPECT_EQ(outcome.out[t], kFullMask);
}

TEST(Divergence, LanesReconvergeAfterALoop) {
  const Outcome outcome = run_body(
      "mov.u32 %r1, 0;\nL: add.u32 %r1, %r1, 1;\nsetp.le.u32 %p1, %r1, %id;\n@%p1 bra L;\nactivemask.b32 "
      "%r2;\nst.global.u32 [%mine], %r2;\n");
  expect_ok(outcome);
  for (uint32_t t = 0; t < 32; t++) EXPECT_EQ(outcome.out[t], kFullMask);
}

TEST(Divergence, OneLaneThenBarrier) {
  // if (lane == 0) tile[0] = 5; __syncthreads();
  for (const Schedule::Kind kind : {Schedule::Kind::Nominal, Schedule::Kind::Lazy, Schedule::Kind::Eager,
                                    Schedule::Kind::Reverse, Schedule::Kind::Random}) {
    const Outcome outcome = run_body(
        "setp.ne.u32 %p1, %id, 0;\n@%p1 bra SKIP;\nst.shared.u32 [tile], 5;\nSKIP: bar.sync 0;\nld.shared.u32 %r1, "
        "[tile];\nst.global.u32 [%mine], %r1;\n",
        block(96, {kind, 3}), kShared);
    expect_ok(outcome);
    EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.begin() + 96, 5u), 96);
  }
}

TEST(Divergence, EarlyExit) {
  const Outcome outcome = run_body(
      "rem.u32 %r1, %id, 3;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 exit;\nbar.sync 0;\nactivemask.b32 %r2;\nst.global.u32 "
      "[%mine], %r2;\nsetp.eq.u32 %p2, %r1, 1;\n@%p2 ret;\nactivemask.b32 %r2;\nst.global.u32 [%mine], %r2;\n");
  expect_ok(outcome);
  uint32_t not0 = 0, two = 0;
  for (uint32_t t = 0; t < 32; t++) {
    not0 |= t % 3 != 0 ? 1u << t : 0;
    two |= t % 3 == 2 ? 1u << t : 0;
  }
  for (uint32_t t = 0; t < 32; t++) EXPECT_EQ(outcome.out[t], t % 3 == 0 ? 0 : t % 3 == 1 ? not0 : two);
}

TEST(Divergence, GuardedReturnOfEveryLane) {
  const Outcome outcome =
      run_body("setp.lt.u32 %p1, %id, 999;\nst.global.u32 [%mine], 1;\n@%p1 ret;\nst.global.u32 [%mine], 2;\n");
  expect_ok(outcome);
  EXPECT_EQ(outcome.out[31], 1u);
}

TEST(Divergence, LanesMeetBeforeAlignedInstruction) {
  // One arm is long; the barrier stands behind the join.
  const Outcome outcome = run_body(
      "mov.u32 %r1, 0;\nsetp.ge.u32 %p1, %id, 3;\n@%p1 bra JOIN;\nL: add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p2, %r1, "
      "9000;\n@%p2 bra L;\nJOIN: bar.sync 0;\nactivemask.b32 %r2;\nst.global.v2.u32 [%mine8], {%r1, %r2};\n",
      block(64));
  expect_ok(outcome);
  for (uint32_t t = 0; t < 64; t++) {
    EXPECT_EQ(outcome.out[2 * t], t < 3 ? 9000u : 0u);
    EXPECT_EQ(outcome.out[2 * t + 1], kFullMask);
  }
}

TEST(Divergence, BackwardCodeLayout) {
  // The join lies at a lower PC than the arms.
  const Outcome outcome = run_body(
      "bra START;\nJOIN: bar.sync 0;\nst.global.u32 [%mine], %r1;\nret;\nSTART: setp.lt.u32 %p1, %id, 9;\n@%p1 bra "
      "A;\nmov.u32 %r1, 1;\nbra JOIN;\nA: mov.u32 %r1, 2;\nbra JOIN;\n",
      block(64));
  expect_ok(outcome);
  for (uint32_t t = 0; t < 64; t++) EXPECT_EQ(outcome.out[t], t < 9 ? 2u : 1u);
}

TEST(Divergence, WarpSyncJoinsDifferentPlaces) {
  const Outcome outcome = run_body(
      "mul.lo.u32 %r1, %id, 4;\nmov.u32 %r2, tile;\nadd.u32 %r1, %r1, %r2;\nsetp.lt.u32 %p1, %id, 16;\n@%p1 bra "
      "A;\nadd.u32 %r3, %id, 7;\nst.shared.u32 [%r1], %r3;\nbar.warp.sync -1;\nld.shared.u32 %r4, [%r1+-64];\nbra "
      "END;\n"
      "A: mul.lo.u32 %r3, %id, 5;\nst.shared.u32 [%r1], %r3;\nbar.warp.sync -1;\nld.shared.u32 %r4, [%r1+64];\nEND: "
      "st.global.u32 [%mine], %r4;\n",
      {}, kShared);
  expect_ok(outcome);
  for (uint32_t t = 0; t < 32; t++) EXPECT_EQ(outcome.out[t], t < 16 ? t + 16 + 7 : (t - 16) * 5);
}

TEST(Divergence, WarpSyncDoesNotWaitForExitedLanes) {
  // The others leave after the lanes below 16 have begun to wait.
  const Outcome outcome = run_body(
      "setp.lt.u32 %p1, %id, 16;\n@%p1 bra A;\nmov.u32 %r1, 0;\nL: add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p2, %r1, "
      "50;\n@%p2 bra L;\nret;\nA: bar.warp.sync -1;\nst.global.u32 [%mine], 1;\n");
  expect_ok(outcome);
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), 1u), 16);
}

TEST(Divergence, CollectiveThatTheRestCannotReach) {
  // Half of the warp at one barrier, half at another.
  const Outcome outcome = run_body(
      ".loc 1 10 1\nsetp.lt.u32 %p1, %id, 16;\n@%p1 bra A;\n.loc 1 11 1\nbar.sync 0;\nbra END;\n.loc 1 12 1\nA: "
      "bar.sync 0;\nEND:\n",
      {}, kFile);
  EXPECT_EQ(outcome.status, LaunchStatus::Fault);
  ASSERT_EQ(outcome.diagnostics.size(), 1u);
  const Diagnostic& d = outcome.diagnostics[0];
  EXPECT_EQ(d.id, "diverged-collective");
  EXPECT_THAT(d.message, HasSubstr("at `bar.sync 0;` for lanes"));
  ASSERT_EQ(d.related.size(), 1u);
  EXPECT_EQ(d.place.line + d.related[0].place.line, 23u);
  EXPECT_THAT(d.related[0].role, HasSubstr("are here"));
}

TEST(Divergence, CollectiveIsNotReportedWhileTheRestMayCome) {
  // Warp 1 sets the flag long after lane 0 of warp 0 has begun to wait for it; the other lanes are parked meanwhile.
  const Outcome outcome = run_body(
      "st.shared.u32 [tile], 0;\nbar.sync 0;\nsetp.ge.u32 %p1, %id, 32;\n@%p1 bra SET;\nsetp.ne.u32 %p2, %id, 0;\n@%p2 "
      "bra JOIN;\nW: ld.volatile.shared.u32 %r1, [tile];\nsetp.eq.u32 %p3, %r1, 0;\n@%p3 bra W;\n"
      "JOIN: shfl.sync.idx.b32 %r2, %id, 0, 31, -1;\nst.global.u32 [%mine], 1;\nret;\nSET: mov.u32 %r5, 0;\nL: add.u32 "
      "%r5, %r5, 1;\nsetp.lt.u32 %p4, %r5, 20000;\n@%p4 bra L;\nst.volatile.shared.u32 [tile], 1;\n",
      block(64), kShared);
  expect_ok(outcome);
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), 1u), 32);
}

// --- progress --------------------------------------------------------------------------------------------------------

/// Lane 0 waits for a flag that lane 1 of its own warp sets at a higher PC.
std::string lane_handoff(const std::string& in_loop) {
  return "st.shared.u32 [tile], 0;\nbar.sync 0;\nsetp.eq.u32 %p1, %id, 1;\n@%p1 bra SET;\nW: " + in_loop +
         "ld.volatile.shared.u32 %r1, [tile];\nsetp.eq.u32 %p3, %r1, 0;\n@%p3 bra W;\nst.global.u32 [%mine], "
         "%r1;\nret;\nSET: st.volatile.shared.u32 [tile], 9;\nst.global.u32 [%mine], 9;\n";
}

TEST(Progress, SpinningLaneDoesNotStarveItsWarp) {
  for (const std::string in_loop : {"", "mov.u32 %r7, %clock;\n", "nanosleep.u32 100;\n", "add.u32 %r8, %r8, 1;\n",
                                    "st.shared.u32 [tile+64], %id;\n", "atom.shared.add.u32 %r9, [tile+128], 1;\n"}) {
    SCOPED_TRACE(in_loop);
    const Outcome outcome = run_body(lane_handoff(in_loop), {}, kShared);
    expect_ok(outcome);
    for (uint32_t t = 0; t < 32; t++) EXPECT_EQ(outcome.out[t], 9u);
  }
}

TEST(Progress, LockTakenLaneByLane) {
  // while (atomicCAS(&lock, 0, 1)); count++; atomicExch(&lock, 0): the textbook lock, all lanes of two warps.
  const std::string body =
      "st.shared.v2.u32 [tile], {0, 0};\nbar.sync 0;\nL: atom.shared.cas.b32 %r1, [tile], 0, 1;\nsetp.ne.u32 %p1, %r1, "
      "0;\n@%p1 bra L;\nld.volatile.shared.u32 %r2, [tile+4];\nadd.u32 %r2, %r2, 1;\nst.volatile.shared.u32 [tile+4], "
      "%r2;\n"
      "atom.shared.exch.b32 %r3, [tile], 0;\nbar.warp.sync -1;\nbar.sync 0;\nld.shared.u32 %r4, "
      "[tile+4];\nst.global.u32 [%mine], %r4;\n";
  for (uint64_t seed = 0; seed < 3; seed++) {
    const Outcome outcome =
        run_body(body, block(64, seed == 0 ? Schedule{} : Schedule{Schedule::Kind::Random, seed}), kShared);
    expect_ok(outcome);
    EXPECT_EQ(outcome.out[63], 64u);
  }
}

TEST(Progress, SpinAcrossCtasThroughGlobalMemory) {
  Options options = block(32);
  options.grid = {4, 1, 1};
  // CTA k waits for CTA k − 1, CTA 3 first in line of code: a chain.
  const Outcome outcome = run_body(
      "mov.u32 %r1, %ctaid.x;\nmul.wide.u32 %rd1, %r1, 4;\nadd.u64 %rd1, %rd1, %out;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 "
      "bra GO;\nW: ld.acquire.gpu.global.u32 %r2, [%rd1+-4];\nsetp.eq.u32 %p2, %r2, 0;\n@%p2 bra W;\n"
      "GO: add.u32 %r3, %r2, 1;\n@%p1 mov.u32 %r3, 1;\nst.release.gpu.global.u32 [%rd1], %r3;\n",
      options);
  expect_ok(outcome);
  for (uint32_t k = 0; k < 4; k++) EXPECT_EQ(outcome.out[k], k + 1);
}

TEST(Progress, FlagThatNobodySetsIsADeadlockAtOnce) {
  for (const std::string space : {"shared", "global"}) {
    const Outcome outcome = run_body(".loc 1 20 1\nmov.u32 %r2, tile;\nmov.u64 %rd1, %out;\n" +
                                         std::string(space == "shared" ? "mov.u64 %rd1, tile;\n" : "") + "st." + space +
                                         ".u32 [%rd1], 0;\n.loc 1 21 1\nW: ld.volatile." + space +
                                         ".u32 %r1, [%rd1];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra W;\n",
                                     {}, std::string(kFile) + kShared);
    EXPECT_EQ(outcome.status, LaunchStatus::Hang);
    EXPECT_EQ(outcome.problem(),
              "deadlock: nothing can run any more; waiting: 32 threads at kernel.cu:21 for memory to change");
    EXPECT_EQ(outcome.diagnostics.at(0).place.line, 21u);
    EXPECT_LT(outcome.warp_instructions, 1000u);
  }
}

TEST(Progress, DeadlockNamesEveryGroupOfWaiters) {
  const Outcome outcome = run_body(
      ".loc 1 5 1\nst.shared.u32 [tile], 0;\nsetp.ge.u32 %p1, %id, 32;\n@%p1 bra B;\n.loc 1 6 1\nW: "
      "ld.volatile.shared.u32 %r1, [tile];\nsetp.eq.u32 %p2, %r1, 0;\n@%p2 bra W;\nret;\n.loc 1 7 1\nB: bar.sync 0;\n",
      block(96), std::string(kFile) + kShared);
  EXPECT_EQ(outcome.status, LaunchStatus::Hang);
  EXPECT_THAT(outcome.state, ::testing::UnorderedElementsAre("waiting: 32 threads at kernel.cu:6 for memory to change",
                                                             "waiting: 64 threads at kernel.cu:7 for barrier 0"));
}

TEST(Progress, SpinWithATimeoutEnds) {
  // while (!flag) if (clock64() - start > 1e9) trap;
  const Outcome outcome = run_body(
      "st.shared.u32 [tile], 0;\nmov.u64 %rd1, %clock64;\nW: ld.volatile.shared.u32 %r1, [tile];\nsetp.ne.u32 %p1, "
      "%r1, 0;\n@%p1 bra OUT;\nmov.u64 %rd2, %clock64;\nsub.u64 %rd3, %rd2, %rd1;\nsetp.lt.u64 %p2, %rd3, "
      "1000000000;\n@%p2 bra W;\ntrap;\nOUT:\n",
      {}, kShared);
  EXPECT_EQ(outcome.status, LaunchStatus::Fault);
  EXPECT_THAT(outcome.problem(), HasSubstr("trap: "));
  EXPECT_LT(outcome.warp_instructions, 100'000u);
}

TEST(Progress, LoopThatOnlyCountsStalls) {
  Options options;
  options.progress_budget = 100'000;
  const Outcome outcome = run_body(".loc 1 3 1\nL: add.u32 %r1, %r1, 1;\nbra L;\n", options, kFile);
  EXPECT_EQ(outcome.status, LaunchStatus::Hang);
  EXPECT_THAT(outcome.problem(), HasSubstr("stalled: warp 0 lanes 0-31 is still running after"));
  EXPECT_THAT(outcome.problem(), HasSubstr("without any progress"));
  EXPECT_EQ(outcome.diagnostics.at(0).place.line, 3u);
}

TEST(Progress, LongLoopsAreNotTakenForSpinning) {
  // The loop has no side effect and changes one register only now and then: every 64th iteration.
  const Outcome outcome = run_body(
      "mov.u32 %r1, 0;\nmov.u32 %r2, 0;\nL: add.u32 %r1, %r1, 1;\nand.b32 %r3, %r1, 63;\nsetp.eq.u32 %p1, %r3, "
      "0;\n@%p1 add.u32 %r2, %r2, 1;\nsetp.lt.u32 %p2, %r2, 100;\n@%p2 bra L;\nst.global.u32 [%mine], %r1;\n");
  expect_ok(outcome);
  EXPECT_EQ(outcome.out[5], 6400u);
}

TEST(Progress, LoopCarriedPredicateAndWideRegisters) {
  for (const std::string step : {"add.u64 %rd1, %rd1, 4294967296;\nshr.u64 %rd2, %rd1, 32;\ncvt.u32.u64 %r1, %rd2;\n",
                                 "add.f64 %fd1, %fd1, 0d3FF0000000000000;\ncvt.rni.u32.f64 %r1, %fd1;\n"}) {
    const Outcome outcome = run_body("mov.u64 %rd1, 0;\nmov.f64 %fd1, 0d0000000000000000;\nL: " + step +
                                     "setp.lt.u32 %p1, %r1, 300;\n@%p1 bra L;\nst.global.u32 [%mine], %r1;\n");
    expect_ok(outcome);
    EXPECT_EQ(outcome.out[0], 300u);
  }
}

TEST(Progress, MoreCtasThanFitRunInTurn) {
  Options options = block(1024);
  options.grid = {400, 1, 1};
  const Outcome outcome = run_body(
      "mov.u32 %r1, %ctaid.x;\nmul.wide.u32 %rd1, %r1, 4;\nadd.u64 %rd1, %rd1, %out;\nred.global.add.u32 [%rd1], 1;\n",
      options);
  expect_ok(outcome);
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), 1024u), 400);
}

// --- faults ----------------------------------------------------------------------------------------------------------

TEST(Faults, UnsupportedInstructionFaultsOnlyWhenExecuted) {
  const std::string bad = ".loc 1 77 2\nfrobnicate.b32 %r1, %r2;\n";
  expect_ok(run_body("bra END;\n" + bad + "END: st.global.u32 [%mine], 1;\n", {}, kFile));
  expect_ok(run_body("setp.gt.u32 %p1, %id, 100;\n.loc 1 77 2\n@%p1 frobnicate.b32 %r1, %r2;\n", {}, kFile));
  const Outcome outcome = run_body(".loc 1 76 1\nmov.u32 %r2, 1;\n" + bad, {}, kFile);
  EXPECT_EQ(outcome.status, LaunchStatus::Fault);
  EXPECT_THAT(outcome.problem(), HasSubstr("unsupported-instruction: `frobnicate.b32 %r1, %r2;` cannot be emulated: "));
  EXPECT_EQ(outcome.diagnostics.at(0).place.line, 77u);
}

TEST(Faults, PlaceIsTheLearnersLineThroughInlining) {
  // Line 3 of the header was inlined into line 9 of the kernel's file.
  const std::string files = ".file 1 \"kernel.cu\"\n.file 2 \"/usr/include/header.h\"\n";
  const Outcome outcome = run_body(
      ".loc 1 8 1\nmov.u64 %rd0, 0;\n.loc 2 3 5, function_name info, inlined_at 1 9 7\nld.global.u32 %r1, "
      "[%rd0];\n.loc 1 10 1\n",
      {}, files);
  ASSERT_EQ(outcome.diagnostics.size(), 1u);
  EXPECT_EQ(outcome.diagnostics[0].place.file, "kernel.cu");
  EXPECT_EQ(outcome.diagnostics[0].place.line, 9u);
}

TEST(Faults, LineZeroFallsBackToTheLineBefore) {
  const Outcome outcome = run_body(".loc 1 8 1\nmov.u64 %rd0, 0;\n.loc 1 0 0\nld.global.u32 %r1, [%rd0];\n", {}, kFile);
  ASSERT_EQ(outcome.diagnostics.size(), 1u);
  EXPECT_EQ(outcome.diagnostics[0].place.line, 8u);
}

TEST(Faults, CtaIsNamedWhenThereAreSeveral) {
  Options options;
  options.grid = {3, 1, 1};
  const Outcome outcome = run_body("mov.u32 %r1, %ctaid.x;\nsetp.ne.u32 %p1, %r1, 2;\n@%p1 ret;\ntrap;\n", options);
  EXPECT_EQ(outcome.problem(), "trap: CTA 2 warp 0 lanes 0-31 executes trap");
}

// --- special registers -----------------------------------------------------------------------------------------------

TEST(SpecialRegisters, IndicesOfThreadsAndCtas) {
  Options options;
  options.grid = {2, 3, 2};
  options.block = {4, 3, 3};
  options.out_words = 12 * 36 * 8;
  const Outcome outcome = run_body(
      "mov.u32 %r1, %tid.x;\nmov.u32 %r2, %tid.y;\nmov.u32 %r3, %tid.z;\nmov.u32 %r4, %ctaid.x;\nmov.u32 %r5, "
      "%ctaid.y;\nmov.u32 %r6, %ctaid.z;\nmov.u32 %r7, %warpid;\nmov.u32 %r8, %laneid;\n"
      // Linear thread and CTA from the sizes.
      "mov.u32 %r10, %ntid.x;\nmov.u32 %r11, %ntid.y;\nmov.u32 %r12, %ntid.z;\nmad.lo.u32 %r13, %r3, %r11, "
      "%r2;\nmad.lo.u32 %r13, %r13, %r10, %r1;\nmov.u32 %r14, %nctaid.x;\nmov.u32 %r15, %nctaid.y;\n"
      "mad.lo.u32 %r16, %r6, %r15, %r5;\nmad.lo.u32 %r16, %r16, %r14, %r4;\nmul.lo.u32 %r17, %r10, %r11;\nmul.lo.u32 "
      "%r17, %r17, %r12;\nmad.lo.u32 %r18, %r16, %r17, %r13;\nmul.wide.u32 %rd1, %r18, 32;\nadd.u64 %rd1, %rd1, %out;\n"
      "st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};\nst.global.v4.u32 [%rd1+16], {%r5, %r6, %r7, %r8};\n",
      options);
  expect_ok(outcome);
  for (uint32_t cta = 0; cta < 12; cta++) {
    for (uint32_t t = 0; t < 36; t++) {
      const uint32_t* v = &outcome.out[(cta * 36 + t) * 8];
      EXPECT_EQ((std::vector<uint32_t>{v, v + 8}),
                (std::vector<uint32_t>{t % 4, t / 4 % 3, t / 12, cta % 2, cta / 2 % 3, cta / 6, t / 32, t % 32}));
    }
  }
}

TEST(SpecialRegisters, LaneMasks) {
  const Outcome outcome = run_body(
      "mul.wide.u32 %rd1, %id, 32;\nadd.u64 %rd1, %rd1, %out;\nmov.u32 %r1, %lanemask_eq;\nmov.u32 %r2, "
      "%lanemask_le;\nmov.u32 %r3, %lanemask_lt;\nmov.u32 %r4, %lanemask_ge;\nmov.u32 %r5, %lanemask_gt;\n"
      "st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};\nst.global.u32 [%rd1+16], %r5;\n");
  expect_ok(outcome);
  for (uint32_t l = 0; l < 32; l++) {
    uint32_t le = 0, lt = 0, ge = 0, gt = 0;
    for (uint32_t o = 0; o < 32; o++) {
      le |= o <= l ? 1u << o : 0;
      lt |= o < l ? 1u << o : 0;
      ge |= o >= l ? 1u << o : 0;
      gt |= o > l ? 1u << o : 0;
    }
    const uint32_t* v = &outcome.out[l * 8];
    EXPECT_EQ((std::vector<uint32_t>{v, v + 5}), (std::vector<uint32_t>{1u << l, le, lt, ge, gt}));
  }
}

// --- random programs -------------------------------------------------------------------------------------------------

// A structured program over eight variables and a per-thread array of four words in shared memory. It is executed
// twice: as PTX by the interpreter, and thread by thread by Reference.
constexpr uint32_t kVariables = 8, kSlots = 4;

struct Node {
  enum class Kind { Add, Sub, Mul, Xor, Shift, Select, Store, Load, If, Loop, Break, Leave, Sync } kind;
  uint32_t d = 0, a = 0, b = 0, imm = 0;
  std::vector<Node> then_part, else_part;
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_{seed} {}
  std::vector<Node> program() { return list(3, 0, true); }

 private:
  uint32_t below(uint64_t n) { return static_cast<uint32_t>(random_.below(n)); }

  std::vector<Node> list(uint32_t depth, uint32_t loops, bool uniform) {
    std::vector<Node> nodes;
    for (uint32_t k = 1 + below(5); k > 0; k--) nodes.push_back(node(depth, loops, uniform));
    return nodes;
  }
  Node node(uint32_t depth, uint32_t loops, bool uniform) {
    using Kind = Node::Kind;
    Node n{};
    n.d = below(kVariables);
    n.a = below(kVariables);
    n.b = below(kVariables);
    n.imm = below(50);
    const uint32_t roll = below(20);
    if (depth > 0 && roll < 4) {
      n.kind = Kind::If;
      n.then_part = list(depth - 1, loops, false);
      if (below(2) == 0) n.else_part = list(depth - 1, loops, false);
    } else if (depth > 0 && loops < 2 && roll < 7) {
      n.kind = Kind::Loop;
      n.imm = 1 + below(6);
      n.then_part = list(depth - 1, loops + 1, false);
    } else if (roll == 7 && loops > 0) {
      n.kind = Kind::Break;
    } else if (roll == 8 && below(4) == 0) {
      n.kind = Kind::Leave;
    } else if (roll == 9 && uniform) {
      n.kind = Kind::Sync;
    } else if (roll < 12) {
      n.kind = roll % 2 == 0 ? Kind::Store : Kind::Load;
    } else {
      constexpr Kind kArithmetic[] = {Kind::Add, Kind::Sub, Kind::Mul, Kind::Xor, Kind::Shift, Kind::Select};
      n.kind = kArithmetic[below(std::size(kArithmetic))];
    }
    return n;
  }
  Random random_;
};

/// One thread. A condition is "a + imm is odd in bit 1", a loop runs (variable a mod imm) + 1 times.
class Reference {
 public:
  Reference(const std::vector<Node>& program, uint32_t thread) {
    for (uint32_t v = 0; v < kVariables; v++) value[v] = thread * (2 * v + 3) + v;
    run(program);
  }
  std::array<uint32_t, kVariables> value{};

 private:
  enum class Exit { None, Break, Leave };
  static bool condition(uint32_t v, uint32_t imm) { return ((v + imm) & 2) != 0; }

  Exit run(const std::vector<Node>& nodes) {
    using Kind = Node::Kind;
    for (const Node& n : nodes) {
      const uint32_t a = value[n.a], b = value[n.b];
      switch (n.kind) {
        case Kind::Add:
          value[n.d] = a + b + n.imm;
          break;
        case Kind::Sub:
          value[n.d] = a - b;
          break;
        case Kind::Mul:
          value[n.d] = a * (b | 1);
          break;
        case Kind::Xor:
          value[n.d] = a ^ b ^ n.imm;
          break;
        case Kind::Shift:
          value[n.d] = a >> n.imm % 8;
          break;
        case Kind::Select:
          value[n.d] = condition(a, n.imm) ? a : b;
          break;
        case Kind::Store:
          memory_[n.imm % kSlots] = a;
          break;
        case Kind::Load:
          value[n.d] = memory_[n.imm % kSlots];
          break;
        case Kind::If: {
          const Exit e = run(condition(a, n.imm) ? n.then_part : n.else_part);
          if (e != Exit::None) return e;
          break;
        }
        case Kind::Loop:
          for (uint32_t k = a % n.imm + 1; k > 0; k--) {
            const Exit e = run(n.then_part);
            if (e == Exit::Leave) return e;
            if (e == Exit::Break) break;
          }
          break;
        case Kind::Break:
          if (condition(a, n.imm)) return Exit::Break;
          break;
        case Kind::Leave:
          if (condition(a, n.imm) && condition(b, 1)) return Exit::Leave;
          break;
        case Kind::Sync:
          break;
      }
    }
    return Exit::None;
  }
  std::array<uint32_t, kSlots> memory_{};
};

/// The same as PTX: variables are %r0…, the array is at [%r20], loop counters %r30….
class Emitter {
 public:
  explicit Emitter(const std::vector<Node>& program) {
    text_ = "mov.u32 %r20, tile;\nmad.lo.u32 %r20, %id, " + std::to_string(4 * kSlots) +
            ", %r20;\nst.shared.v4.u32 [%r20], {0, 0, 0, 0};\n";
    for (uint32_t v = 0; v < kVariables; v++)
      line("mad.lo.u32 " + r(v) + ", %id, " + std::to_string(2 * v + 3) + ", " + std::to_string(v));
    run(program, {}, 0);
    text_ += "FINISH: mul.wide.u32 %rd1, %id, " + std::to_string(4 * kVariables) + ";\nadd.u64 %rd1, %rd1, %out;\n";
    line("st.global.v4.u32 [%rd1], {%r0, %r1, %r2, %r3}");
    line("st.global.v4.u32 [%rd1+16], {%r4, %r5, %r6, %r7}");
  }
  const std::string& text() const { return text_; }

 private:
  static std::string r(uint32_t v) { return "%r" + std::to_string(v); }
  void line(const std::string& s) { text_ += s + ";\n"; }
  std::string label() { return "L" + std::to_string(labels_++); }
  void condition(const std::string& p, uint32_t v, uint32_t imm) {
    line("add.u32 %r21, " + r(v) + ", " + std::to_string(imm));
    line("and.b32 %r21, %r21, 2");
    line("setp.ne.u32 " + p + ", %r21, 0");
  }
  void run(const std::vector<Node>& nodes, const std::string& break_label, uint32_t loops) {
    using Kind = Node::Kind;
    for (const Node& n : nodes) {
      const std::string d = r(n.d), a = r(n.a), b = r(n.b), imm = std::to_string(n.imm);
      switch (n.kind) {
        case Kind::Add:
          line("add.u32 %r21, " + a + ", " + b);
          line("add.u32 " + d + ", %r21, " + imm);
          break;
        case Kind::Sub:
          line("sub.u32 " + d + ", " + a + ", " + b);
          break;
        case Kind::Mul:
          line("or.b32 %r21, " + b + ", 1");
          line("mul.lo.u32 " + d + ", " + a + ", %r21");
          break;
        case Kind::Xor:
          line("xor.b32 %r21, " + a + ", " + b);
          line("xor.b32 " + d + ", %r21, " + imm);
          break;
        case Kind::Shift:
          line("shr.u32 " + d + ", " + a + ", " + std::to_string(n.imm % 8));
          break;
        case Kind::Select:
          // As a guarded move: the old value must survive in the lanes that are off.
          condition("%p1", n.a, n.imm);
          line("mov.u32 %r22, " + b);
          line("@%p1 mov.u32 %r22, " + a);
          line("mov.u32 " + d + ", %r22");
          break;
        case Kind::Store:
          line("st.shared.u32 [%r20+" + std::to_string(n.imm % kSlots * 4) + "], " + a);
          break;
        case Kind::Load:
          line("ld.shared.u32 " + d + ", [%r20+" + std::to_string(n.imm % kSlots * 4) + "]");
          break;
        case Kind::If: {
          const std::string other = label(), end = label();
          condition("%p2", n.a, n.imm);
          line("@!%p2 bra " + other);
          run(n.then_part, break_label, loops);
          line("bra " + end);
          text_ += other + ":\n";
          run(n.else_part, break_label, loops);
          text_ += end + ":\n";
          break;
        }
        case Kind::Loop: {
          const std::string head = label(), end = label(), counter = r(30 + loops);
          line("rem.u32 " + counter + ", " + a + ", " + imm);
          line("add.u32 " + counter + ", " + counter + ", 1");
          text_ += head + ":\n";
          run(n.then_part, end, loops + 1);
          line("sub.u32 " + counter + ", " + counter + ", 1");
          line("setp.ne.u32 %p3, " + counter + ", 0");
          line("@%p3 bra " + head);
          text_ += end + ":\n";
          break;
        }
        case Kind::Break:
          condition("%p4", n.a, n.imm);
          line("@%p4 bra " + break_label);
          break;
        case Kind::Leave:
          condition("%p5", n.a, n.imm);
          condition("%p6", n.b, 1);
          line("and.pred %p5, %p5, %p6");
          line("@%p5 bra FINISH");
          break;
        case Kind::Sync:
          line("bar.warp.sync -1");
          break;
      }
    }
  }
  std::string text_;
  uint32_t labels_ = 0;
};

TEST(RandomPrograms, EveryLaneAgreesWithAScalarThread) {
  for (uint64_t seed = 1; seed <= 400; seed++) {
    const std::vector<Node> program = Generator(seed).program();
    Options options =
        block(seed % 3 == 0 ? 75 : 64, seed % 2 == 0 ? Schedule{} : Schedule{Schedule::Kind::Random, seed});
    const Emitter emitter(program);
    const Outcome outcome = run_body(emitter.text(), options, kShared);
    ASSERT_EQ(outcome.status, LaunchStatus::Ok) << outcome.problem() << "\nseed " << seed << "\n" << emitter.text();
    for (uint32_t t = 0; t < options.block.x; t++) {
      const Reference reference(program, t);
      for (uint32_t v = 0; v < kVariables; v++) {
        ASSERT_EQ(outcome.out[t * kVariables + v], reference.value[v])
            << "seed " << seed << ", thread " << t << ", variable " << v << "\n"
            << emitter.text();
      }
    }
  }
}

TEST(RandomPrograms, SameSeedSameRun) {
  for (uint64_t seed = 1; seed <= 10; seed++) {
    const Emitter emitter(Generator(seed).program());
    const Options options = block(64, {Schedule::Kind::Random, seed});
    const Outcome a = run_body(emitter.text(), options, kShared), b = run_body(emitter.text(), options, kShared);
    EXPECT_EQ(a.cycles, b.cycles);
    EXPECT_EQ(a.warp_instructions, b.warp_instructions);
    EXPECT_EQ(a.out, b.out);
  }
}

}  // namespace
}  // namespace handoff::machine
