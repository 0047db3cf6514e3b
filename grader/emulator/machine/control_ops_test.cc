// Barriers, warp-wide operations, calls and the device runtime. The warp-wide ones are compared with formulas written
// here from the manual's text, not with the handlers' own.
#include "grader/emulator/machine/control_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
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

Options block(uint32_t threads, std::vector<uint32_t> in = {}) {
  Options options;
  options.block = {threads, 1, 1};
  options.in = std::move(in);
  return options;
}

/// Set-up of the warp-wide tests: %r1 = in[%id].
constexpr const char* kLoadIn = "mul.wide.u32 %rd1, %id, 4;\nadd.u64 %rd1, %in, %rd1;\nld.global.u32 %r1, [%rd1];\n";
std::vector<uint32_t> random_words(uint64_t seed, uint64_t below, size_t n = 32) {
  Random random{seed};
  std::vector<uint32_t> list(n);
  for (uint32_t& v : list) v = static_cast<uint32_t>(random.below(below));
  return list;
}

// --- named barriers --------------------------------------------------------------------------------------------------

TEST(NamedBarriers, SyncOrdersTheWholeCta) {
  // Each thread reads what the last thread of the CTA counting backwards wrote.
  const Outcome outcome = run_body(
      "mov.u32 %r1, tile;\nmul.lo.u32 %r2, %id, 4;\nadd.u32 %r3, %r1, %r2;\nst.shared.u32 [%r3], %id;\nbar.sync 0;\n"
      "sub.u32 %r4, 255, %id;\nmul.lo.u32 %r4, %r4, 4;\nadd.u32 %r4, %r1, %r4;\nld.shared.u32 %r5, "
      "[%r4];\nst.global.u32 [%mine], %r5;\n",
      block(256), kShared);
  expect_ok(outcome);
  for (uint32_t t = 0; t < 256; t++) EXPECT_EQ(outcome.out[t], 255 - t);
}

TEST(NamedBarriers, SyncWithCountJoinsOnlyThoseWarps) {
  // Warps 0 and 1 use barrier 1, warps 2 and 3 barrier 2; the last two never touch the first.
  const Outcome outcome = run_body(
      "mov.u32 %r1, tile;\nshr.u32 %r2, %id, 6;\nadd.u32 %r3, %r2, 1;\nmul.lo.u32 %r4, %id, 4;\nadd.u32 %r4, %r4, "
      "%r1;\nst.shared.u32 [%r4], %id;\n"
      "barrier.sync.aligned %r3, 64;\nxor.b32 %r5, %id, 63;\nmul.lo.u32 %r5, %r5, 4;\nadd.u32 %r5, %r5, "
      "%r1;\nld.shared.u32 %r6, [%r5];\nst.global.u32 [%mine], %r6;\n",
      block(128), kShared);
  expect_ok(outcome);
  for (uint32_t t = 0; t < 128; t++) EXPECT_EQ(outcome.out[t], t ^ 63);
}

TEST(NamedBarriers, ProducerArrivesConsumerSyncs) {
  // Warp 0 produces ten values one after the other: full = 1, empty = 2.
  const std::string body =
      "mov.u32 %r1, tile;\nmov.u32 %r2, 0;\nsetp.ge.u32 %p1, %id, 32;\n@%p1 bra CONSUMER;\n"
      "P: mul.lo.u32 %r3, %r2, 7;\nadd.u32 %r3, %r3, %id;\nmul.lo.u32 %r4, %id, 4;\nadd.u32 %r4, %r4, %r1;\n"
      "setp.eq.u32 %p2, %r2, 0;\n@%p2 bra FIRST;\nbar.sync 2, 64;\nFIRST: st.shared.u32 [%r4], %r3;\nbar.arrive 1, "
      "64;\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p2, %r2, 10;\n@%p2 bra P;\nret;\n"
      "CONSUMER: mov.u32 %r8, 0;\nC: bar.sync 1, 64;\nsub.u32 %r5, %id, 32;\nmul.lo.u32 %r4, %r5, 4;\nadd.u32 %r4, "
      "%r4, %r1;\nld.shared.u32 %r6, [%r4];\nadd.u32 %r8, %r8, %r6;\n"
      "add.u32 %r2, %r2, 1;\nsetp.eq.u32 %p2, %r2, 10;\n@%p2 bra DONE;\nbar.arrive 2, 64;\nbra C;\nDONE: st.global.u32 "
      "[%mine], %r8;\n";
  for (const Schedule schedule : {Schedule{Schedule::Kind::Nominal, 0}, Schedule{Schedule::Kind::Random, 1},
                                  Schedule{Schedule::Kind::Random, 2}}) {
    Options options = block(64);
    options.schedule = schedule;
    const Outcome outcome = run_body(body, options, kShared);
    expect_ok(outcome);
    for (uint32_t t = 32; t < 64; t++) EXPECT_EQ(outcome.out[t], 7 * 45 + 10 * (t - 32));
  }
}

TEST(NamedBarriers, Reductions) {
  const Outcome outcome = run_body(
      "and.b32 %r1, %id, 3;\nsetp.eq.u32 %p1, %r1, 0;\nbar.red.popc.u32 %r2, 0, %p1;\nbar.red.and.pred %p2, 0, "
      "%p1;\nbar.red.or.pred %p3, 0, %p1;\n"
      "bar.red.popc.u32 %r3, 0, !%p1;\nsetp.lt.u32 %p4, %id, 1000;\nbar.red.and.pred %p5, 0, %p4;\nbar.red.or.pred "
      "%p6, 0, !%p4;\n"
      "selp.u32 %r4, 1, 0, %p2;\nselp.u32 %r5, 2, 0, %p3;\nselp.u32 %r6, 4, 0, %p5;\nselp.u32 %r7, 8, 0, %p6;\nadd.u32 "
      "%r4, %r4, %r5;\nadd.u32 %r4, %r4, %r6;\nadd.u32 %r4, %r4, %r7;\n"
      "mad.lo.u32 %r2, %r2, 1000, %r3;\nst.global.v2.u32 [%mine8], {%r2, %r4};\n",
      block(128));
  expect_ok(outcome);
  for (uint32_t t = 0; t < 128; t++) {
    EXPECT_EQ(outcome.out[2 * t], 32u * 1000 + 96);
    EXPECT_EQ(outcome.out[2 * t + 1], 2u + 4);
  }
}

TEST(NamedBarriers, ReductionsBackToBackOnOneBarrier) {
  // A warp that is ahead arrives at the next reduction before the others have seen the result of this one.
  const std::string body =
      "mov.u32 %r1, 0;\nmov.u32 %r2, 0;\nL: setp.lt.u32 %p1, %id, %r1;\nbar.red.popc.u32 %r3, 0, %p1;\nmad.lo.u32 %r2, "
      "%r2, 3, %r3;\nadd.u32 %r1, %r1, 9;\nsetp.lt.u32 %p2, %r1, 180;\n@%p2 bra L;\nst.global.u32 [%mine], %r2;\n";
  uint32_t expected = 0;
  for (uint32_t k = 0; k < 180; k += 9) expected = expected * 3 + std::min(k, 160u);
  for (uint64_t seed = 0; seed < 6; seed++) {
    Options options = block(160);
    if (seed > 0) options.schedule = {Schedule::Kind::Random, seed};
    const Outcome outcome = run_body(body, options);
    expect_ok(outcome);
    for (uint32_t t = 0; t < 160; t++) ASSERT_EQ(outcome.out[t], expected) << "thread " << t << ", seed " << seed;
  }
}

TEST(NamedBarriers, ReductionAmongSomeWarps) {
  const Outcome outcome = run_body(
      "setp.ge.u32 %p3, %id, 64;\n@%p3 ret;\nsetp.lt.u32 %p1, %id, 40;\nbarrier.red.popc.aligned.u32 %r2, 5, 64, "
      "%p1;\nst.global.u32 [%mine], %r2;\n",
      block(96));
  expect_ok(outcome);
  EXPECT_EQ(outcome.out[0], 40u);
  EXPECT_EQ(outcome.out[63], 40u);
}

TEST(NamedBarriers, ExitedThreadsAreNotWaitedFor) {
  // One whole warp and half of another leave first.
  const Outcome outcome =
      run_body("setp.lt.u32 %p1, %id, 48;\n@%p1 ret;\nbar.sync 0;\nst.global.u32 [%mine], 1;\n", block(128));
  expect_ok(outcome);
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.begin() + 128, 1u), 80);
}

TEST(NamedBarriers, ThreadsThatLeaveLaterReleaseTheOthers) {
  const Outcome outcome = run_body(
      "setp.lt.u32 %p1, %id, 32;\n@!%p1 bra WAIT;\nmov.u32 %r1, 0;\nL: add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p2, %r1, "
      "3000;\n@%p2 bra L;\nret;\nWAIT: bar.sync 0;\nst.global.u32 [%mine], 1;\n",
      block(64));
  expect_ok(outcome);
  EXPECT_EQ(outcome.out[40], 1u);
}

TEST(NamedBarriers, PartialLastWarp) {
  const Outcome outcome = run_body("bar.sync 0;\nbar.sync 1, 64;\nst.global.u32 [%mine], 1;\n", block(40));
  expect_ok(outcome);
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), 1u), 40);
}

TEST(NamedBarriers, UnalignedCountsThreads) {
  // Halves of each warp arrive from different places.
  const Outcome outcome = run_body(
      "setp.lt.u32 %p1, %lane, 16;\n@%p1 bra A;\nbarrier.sync 3, 64;\nbra END;\nA: barrier.sync 3, 64;\nEND: "
      "st.global.u32 [%mine], 1;\n",
      block(64));
  expect_ok(outcome);
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), 1u), 64);
}

std::string fault(const std::string& body, const Options& options = {}, const std::string& globals = {}) {
  const Outcome outcome = run_body(body, options, globals);
  EXPECT_NE(outcome.status, LaunchStatus::Ok);
  return outcome.problem();
}

TEST(NamedBarriers, ThereAreSixteen) {
  EXPECT_EQ(fault("bar.sync 16;\n"), "bad-barrier: warp 0 lanes 0-31 uses barrier 16; a CTA has barriers 0–15");
  expect_ok(run_body("bar.sync 15;\n"));
}

TEST(NamedBarriers, CountIsAMultipleOf32) {
  EXPECT_THAT(fault("bar.sync 1, 33;\n"), HasSubstr("count of 33 threads; it must be a positive multiple of 32"));
  EXPECT_THAT(fault("bar.sync 1, 0;\n"), HasSubstr("count of 0 threads"));
}

TEST(NamedBarriers, CountsMustAgree) {
  EXPECT_THAT(fault("setp.lt.u32 %p1, %id, 32;\n@%p1 bra A;\nbar.sync 1, 96;\nret;\nA: bar.sync 1, 64;\n", block(64)),
              HasSubstr("bad-barrier: "));
}

TEST(NamedBarriers, ArrivingTwice) {
  EXPECT_THAT(
      fault("setp.ge.u32 %p1, %id, 32;\n@%p1 bra END;\nbar.arrive 1, 96;\nbar.arrive 1, 96;\nEND: bar.sync 2;\n",
            block(64)),
      HasSubstr("arrival-count-mismatch: warp 0"));
}

TEST(NamedBarriers, NobodyComes) {
  const Outcome outcome = run_body("bar.sync 1, 64;\n", {});
  EXPECT_EQ(outcome.status, LaunchStatus::Hang);
  EXPECT_THAT(outcome.problem(), HasSubstr("deadlock: nothing can run any more; waiting: 32 threads at"));
  EXPECT_THAT(outcome.problem(), HasSubstr("for barrier 1"));
}

// --- shfl ------------------------------------------------------------------------------------------------------------

/// PTX §9.7.9.6 in its own words: segments of the warp, and lanes inside them.
struct Shuffled {
  uint32_t value;
  bool valid;
};
Shuffled expected_shuffle(const std::string& mode, const std::vector<uint32_t>& a, uint32_t lane, uint32_t b,
                          uint32_t c) {
  const uint32_t segment_mask = c >> 8 & 31, clamp = c & 31;
  b &= 31;
  const uint32_t max_lane = (lane & segment_mask) | (clamp & ~segment_mask & 31);
  const uint32_t min_lane = lane & segment_mask;
  int source = 0;
  bool valid = false;
  if (mode == "up") {
    source = static_cast<int>(lane) - static_cast<int>(b);
    valid = source >= static_cast<int>(max_lane);
  } else if (mode == "down") {
    source = static_cast<int>(lane + b);
    valid = source <= static_cast<int>(max_lane);
  } else if (mode == "bfly") {
    source = static_cast<int>(lane ^ b);
    valid = source <= static_cast<int>(max_lane);
  } else {
    source = static_cast<int>(min_lane | (b & ~segment_mask & 31));
    valid = source <= static_cast<int>(max_lane);
  }
  return {a[valid ? static_cast<size_t>(source) : lane], valid};
}

TEST(Shuffle, AllModesSegmentsAndPredicates) {
  const std::vector<uint32_t> values = random_words(11, 1u << 31);
  for (const std::string mode : {"up", "down", "bfly", "idx"}) {
    for (const uint32_t width : {32u, 16u, 8u, 4u, 2u, 1u}) {
      // As CUDA's __shfl_*_sync(…, width) computes c.
      const uint32_t c = mode == "up" ? (32 - width) << 8 : ((32 - width) << 8) | 31;
      for (const uint32_t b : {0u, 1u, 2u, 3u, 5u, 7u, 15u, 16u, 31u}) {
        const Outcome outcome = run_body(
            std::string(kLoadIn) + "shfl.sync." + mode + ".b32 %r2|%p1, %r1, " + std::to_string(b) + ", " +
                std::to_string(c) + ", -1;\nselp.u32 %r3, 1, 0, %p1;\nst.global.v2.u32 [%mine8], {%r2, %r3};\n",
            block(32, values));
        expect_ok(outcome);
        for (uint32_t lane = 0; lane < 32; lane++) {
          const Shuffled e = expected_shuffle(mode, values, lane, b, c);
          ASSERT_EQ(outcome.out[2 * lane], e.value) << mode << " width " << width << " b " << b << " lane " << lane;
          ASSERT_EQ(outcome.out[2 * lane + 1], e.valid ? 1u : 0u)
              << mode << " width " << width << " b " << b << " lane " << lane;
        }
      }
    }
  }
}

TEST(Shuffle, LaneOperandPerLaneAndDestinationIsSource) {
  const std::vector<uint32_t> values = random_words(12, 1000);
  const Outcome outcome = run_body(std::string(kLoadIn) +
                                       "mul.lo.u32 %r2, %id, 7;\nand.b32 %r2, %r2, 31;\nshfl.sync.idx.b32 %r1, %r1, "
                                       "%r2, 31, -1;\nst.global.u32 [%mine], %r1;\n",
                                   block(32, values));
  expect_ok(outcome);
  for (uint32_t lane = 0; lane < 32; lane++) EXPECT_EQ(outcome.out[lane], values[lane * 7 % 32]);
}

TEST(Shuffle, BothArmsOfABranchWithTheirOwnMasks) {
  const Outcome outcome = run_body(
      "setp.lt.u32 %p1, %id, 16;\n@%p1 bra A;\nshfl.sync.bfly.b32 %r1, %id, 1, 31, 0xffff0000;\nbra END;\nA: "
      "shfl.sync.bfly.b32 %r1, %id, 2, 31, 0x0000ffff;\nEND: st.global.u32 [%mine], %r1;\n");
  expect_ok(outcome);
  for (uint32_t lane = 0; lane < 32; lane++) EXPECT_EQ(outcome.out[lane], lane ^ (lane < 16 ? 2 : 1));
}

TEST(Shuffle, TilesNameTheirOwnMembersAtOneInstruction) {
  // As cooperative_groups::tiled_partition<8> does: each lane's mask is its tile.
  const Outcome outcome = run_body(
      "and.b32 %r2, %id, 24;\nmov.u32 %r3, 255;\nshl.b32 %r3, %r3, %r2;\nshfl.sync.down.b32 %r1, %id, 1, 0x181f, %r3;\n"
      "redux.sync.add.u32 %r4, %id, %r3;\nvote.sync.ballot.b32 %r5, %p1, %r3;\nbar.warp.sync %r3;\nmad.lo.u32 %r1, "
      "%r4, 100, %r1;\nst.global.u32 [%mine], %r1;\n");
  expect_ok(outcome);
  for (uint32_t lane = 0; lane < 32; lane++) {
    const uint32_t first = lane / 8 * 8;
    EXPECT_EQ(outcome.out[lane], (8 * first + 28) * 100 + (lane % 8 == 7 ? lane : lane + 1)) << lane;
  }
}

TEST(Shuffle, MaskMustNameTheLane) {
  EXPECT_THAT(fault("shfl.sync.idx.b32 %r1, %id, 0, 31, 0x0000ffff;\n"),
              HasSubstr("diverged-collective: warp 0 lanes 16-31 executes shfl.sync with member mask 0x0000ffff"));
}

TEST(Shuffle, MasksThatDisagree) {
  // Lane 0 waits for everybody, the others only for each other.
  EXPECT_THAT(
      fault("mov.u32 %r1, 0xfffffffe;\nsetp.eq.u32 %p1, %id, 0;\n@%p1 mov.u32 %r1, -1;\nshfl.sync.idx.b32 %r2, "
            "%id, 0, 31, %r1;\nbar.sync 0;\n"),
      HasSubstr("diverged-collective: warp 0 lane 0 wait at `shfl.sync.idx.b32 %r2, %id, 0, 31, %r1;` for lanes "
                "1-31 of the same warp"));
  // Nobody is missing, but lane 0 counts on lane 1, which counts on somebody else.
  EXPECT_THAT(
      fault(
          "mov.u32 %r1, 7;\nsetp.eq.u32 %p1, %id, 0;\n@%p1 mov.u32 %r1, 3;\nshfl.sync.idx.b32 %r2, %id, 0, 31, %r1;\n",
          block(3)),
      HasSubstr("but their member masks disagree"));
}

TEST(Shuffle, ExitedLanesAreNotWaitedFor) {
  const Outcome outcome = run_body(
      "setp.ge.u32 %p1, %id, 20;\n@%p1 ret;\nshfl.sync.idx.b32 %r1, %id, 3, 31, -1;\nst.global.u32 [%mine], %r1;\n");
  expect_ok(outcome);
  EXPECT_EQ(outcome.out[19], 3u);
}

// --- vote, match, redux, elect, activemask ---------------------------------------------------------------------------

TEST(WarpWide, Vote) {
  for (const uint32_t chosen : {0u, 0xffffffffu, 0x1u, 0x80000000u, 0x0ff0f00fu}) {
    const Outcome outcome = run_body(
        "mov.u32 %r9, " + std::to_string(chosen) +
        ";\nshr.u32 %r1, %r9, %id;\nand.b32 %r1, %r1, 1;\nsetp.ne.u32 %p1, %r1, 0;\n"
        "vote.sync.all.pred %p2, %p1, -1;\nvote.sync.any.pred %p3, %p1, -1;\nvote.sync.uni.pred %p4, %p1, "
        "-1;\nvote.sync.ballot.b32 %r2, %p1, -1;\nvote.sync.ballot.b32 %r6, !%p1, -1;\n"
        "selp.u32 %r3, 1, 0, %p2;\nselp.u32 %r4, 2, 0, %p3;\nselp.u32 %r5, 4, 0, %p4;\nadd.u32 %r3, %r3, %r4;\nadd.u32 "
        "%r3, %r3, %r5;\n"
        "mul.wide.u32 %rd5, %id, 16;\nadd.u64 %rd5, %rd5, %out;\nst.global.v4.u32 [%rd5], {%r2, %r3, %r6, 0};\n");
    expect_ok(outcome);
    const uint32_t all = chosen == ~0u, any = chosen != 0, uni = all || !any;
    for (uint32_t lane = 0; lane < 32; lane++) {
      EXPECT_EQ(outcome.out[4 * lane], chosen);
      EXPECT_EQ(outcome.out[4 * lane + 1], all + 2 * any + 4 * uni);
      EXPECT_EQ(outcome.out[4 * lane + 2], ~chosen);
    }
  }
}

TEST(WarpWide, VoteOfSomeLanes) {
  const Outcome outcome = run_body(
      "setp.lt.u32 %p1, %id, 12;\nmov.u32 %r1, 99;\n@!%p1 bra END;\nsetp.lt.u32 %p2, %id, 5;\nvote.sync.ballot.b32 "
      "%r1, %p2, 0xfff;\nEND: st.global.u32 [%mine], %r1;\n");
  expect_ok(outcome);
  EXPECT_EQ(outcome.out[0], 31u);
  EXPECT_EQ(outcome.out[11], 31u);
  EXPECT_EQ(outcome.out[12], 99u);
}

TEST(WarpWide, Match) {
  const std::vector<uint32_t> values = random_words(13, 4);
  const Outcome outcome = run_body(
      std::string(kLoadIn) +
          "match.any.sync.b32 %r2, %r1, -1;\nmatch.all.sync.b32 %r3|%p1, %r1, -1;\nmov.u32 %r8, 5;\nmatch.all.sync.b32 "
          "%r4|%p2, %r8, -1;\n"
          "cvt.u64.u32 %rd2, %r1;\nshl.b64 %rd2, %rd2, 40;\nmatch.any.sync.b64 %r5, %rd2, -1;\n"
          "selp.u32 %r6, 1, 0, %p1;\nselp.u32 %r7, 2, 0, %p2;\nadd.u32 %r6, %r6, %r7;\nadd.u32 %r6, %r6, %r3;\n"
          "mul.wide.u32 %rd5, %id, 16;\nadd.u64 %rd5, %rd5, %out;\nst.global.v4.u32 [%rd5], {%r2, %r6, %r4, %r5};\n",
      block(32, values));
  expect_ok(outcome);
  for (uint32_t lane = 0; lane < 32; lane++) {
    uint32_t same = 0;
    for (uint32_t o = 0; o < 32; o++) same |= values[o] == values[lane] ? 1u << o : 0;
    EXPECT_EQ(outcome.out[4 * lane], same);
    EXPECT_EQ(outcome.out[4 * lane + 1], 2u);
    EXPECT_EQ(outcome.out[4 * lane + 2], ~0u);
    EXPECT_EQ(outcome.out[4 * lane + 3], same);
  }
}

TEST(WarpWide, ReduxOfIntegers) {
  const std::vector<uint32_t> values = random_words(14, uint64_t{1} << 32);
  struct Op {
    const char* name;
    std::function<uint32_t(uint32_t, uint32_t)> f;
  };
  const Op ops[] = {
      {"add.u32", [](uint32_t a, uint32_t b) { return a + b; }},
      {"add.s32", [](uint32_t a, uint32_t b) { return a + b; }},
      {"min.u32", [](uint32_t a, uint32_t b) { return std::min(a, b); }},
      {"max.u32", [](uint32_t a, uint32_t b) { return std::max(a, b); }},
      {"min.s32", [](uint32_t a, uint32_t b) { return static_cast<int32_t>(a) < static_cast<int32_t>(b) ? a : b; }},
      {"max.s32", [](uint32_t a, uint32_t b) { return static_cast<int32_t>(a) > static_cast<int32_t>(b) ? a : b; }},
      {"and.b32", [](uint32_t a, uint32_t b) { return a & b; }},
      {"or.b32", [](uint32_t a, uint32_t b) { return a | b; }},
      {"xor.b32", [](uint32_t a, uint32_t b) { return a ^ b; }}};
  for (const Op& op : ops) {
    const Outcome outcome =
        run_body(std::string(kLoadIn) + "redux.sync." + op.name + " %r1, %r1, -1;\nst.global.u32 [%mine], %r1;\n",
                 block(32, values));
    expect_ok(outcome);
    uint32_t expected = values[0];
    for (uint32_t k = 1; k < 32; k++) expected = op.f(expected, values[k]);
    for (uint32_t lane = 0; lane < 32; lane++) EXPECT_EQ(outcome.out[lane], expected) << op.name;
  }
}

TEST(WarpWide, ReduxOfFloats) {
  std::vector<uint32_t> values(32);
  for (uint32_t k = 0; k < 32; k++) values[k] = std::bit_cast<uint32_t>(static_cast<float>(k) - 20.5f);
  const auto reduce = [&](const std::string& op) {
    const Outcome outcome =
        run_body(std::string(kLoadIn) + "redux.sync." + op + ".f32 %r1, %r1, -1;\nst.global.u32 [%mine], %r1;\n",
                 block(32, values));
    expect_ok(outcome);
    return outcome.out[7];
  };
  EXPECT_EQ(reduce("min"), std::bit_cast<uint32_t>(-20.5f));
  EXPECT_EQ(reduce("max"), std::bit_cast<uint32_t>(10.5f));
  EXPECT_EQ(reduce("min.abs"), std::bit_cast<uint32_t>(0.5f));
  EXPECT_EQ(reduce("max.abs"), std::bit_cast<uint32_t>(20.5f));
  values[9] = 0xffc00001u;
  EXPECT_EQ(reduce("min"), std::bit_cast<uint32_t>(-20.5f));
  EXPECT_EQ(reduce("min.NaN"), 0x7fffffffu);
  EXPECT_EQ(reduce("max.abs.NaN"), 0x7fffffffu);
  std::fill(values.begin(), values.end(), 0x7fc00000u);
  EXPECT_EQ(reduce("max"), 0x7fffffffu);
}

TEST(WarpWide, ElectChoosesOneLane) {
  const Outcome outcome = run_body(
      "setp.lt.u32 %p3, %id, 8;\n@%p3 bra END;\nelect.sync %r1|%p1, 0xffffff00;\nselp.u32 %r2, 1, 0, "
      "%p1;\nst.global.v2.u32 [%mine8], {%r1, %r2};\nelect.sync _|%p1, 0xffffff00;\n@%p1 atom.global.add.u32 %r3, "
      "[%out], 1;\nEND:\n");
  expect_ok(outcome);
  uint32_t leaders = 0, leader = outcome.out[2 * 8];
  for (uint32_t lane = 8; lane < 32; lane++) {
    EXPECT_EQ(outcome.out[2 * lane], leader);
    leaders += outcome.out[2 * lane + 1];
    EXPECT_EQ(outcome.out[2 * lane + 1], lane == leader ? 1u : 0u);
  }
  EXPECT_EQ(leaders, 1u);
  EXPECT_EQ(outcome.out[0], 1u);
}

TEST(WarpWide, Activemask) {
  const Outcome outcome = run_body(
      "activemask.b32 %r1;\nsetp.lt.u32 %p1, %id, 10;\n@!%p1 bra END;\nactivemask.b32 %r1;\nEND: st.global.u32 "
      "[%mine], %r1;\n",
      block(24));
  expect_ok(outcome);
  EXPECT_EQ(outcome.out[9], 0x3ffu);
  EXPECT_EQ(outcome.out[10], 0xffffffu);
}

// --- branches and calls ----------------------------------------------------------------------------------------------

TEST(Control, IndexedBranchDiverges) {
  const Outcome outcome = run_body(
      "and.b32 %r1, %id, 3;\nTS: .branchtargets L0, L1, L2, L3;\nbrx.idx %r1, TS;\nL0: mov.u32 %r2, 100;\nbra "
      "END;\nL1: mov.u32 %r2, 101;\nbra END;\nL2: mov.u32 %r2, 102;\nbra END;\nL3: mov.u32 %r2, 103;\n"
      "END: bar.warp.sync -1;\nadd.u32 %r2, %r2, %id;\nst.global.u32 [%mine], %r2;\n");
  expect_ok(outcome);
  for (uint32_t lane = 0; lane < 32; lane++) EXPECT_EQ(outcome.out[lane], 100 + lane % 4 + lane);
}

TEST(Control, IndexedBranchLoopsBackwards) {
  // A state machine: each lane starts in another state; state 2 leaves.
  const Outcome outcome = run_body(
      "mov.u32 %r2, 0;\nrem.u32 %r1, %id, 3;\nL0: add.u32 %r2, %r2, 1;\nTS: .branchtargets A, B, C;\nbrx.idx %r1, "
      "TS;\nA: mov.u32 %r1, 1;\nbra L0;\nB: mov.u32 %r1, 2;\nbra L0;\nC: bar.warp.sync -1;\nst.global.u32 [%mine], "
      "%r2;\n");
  expect_ok(outcome);
  for (uint32_t lane = 0; lane < 32; lane++) EXPECT_EQ(outcome.out[lane], 3 - lane % 3);
}

TEST(Control, IndexedBranchPastItsTable) {
  EXPECT_THAT(fault("add.u32 %r1, %id, 1;\nTS: .branchtargets L0;\nbrx.idx %r1, TS;\nL0:\n"),
              HasSubstr("branches through entry 1 of a table of 1"));
}

constexpr const char* kFunctions =
    ".func (.param .b32 r) twice(.param .b32 a)\n{\n.reg .b32 %r<4>;\nld.param.u32 %r1, [a];\nadd.u32 %r2, %r1, "
    "%r1;\nst.param.b32 [r], %r2;\nret;\n}\n"
    ".func (.param .b64 r) mix(.param .b32 a, .param .b64 b)\n{\n.reg .b32 %r<6>;\n.reg .b64 %rd<4>;\n.reg .pred "
    "%p<2>;\nld.param.u32 %r1, [a];\nld.param.u64 %rd1, [b];\n"
    "setp.gt.u32 %p1, %r1, 15;\n@%p1 bra BIG;\nst.param.b64 [r], %rd1;\nret;\nBIG: {\n.param .b32 p;\n.param .b32 "
    "q;\nst.param.b32 [p], %r1;\ncall.uni (q), twice, (p);\nld.param.b32 %r2, [q];\n}\n"
    "cvt.u64.u32 %rd2, %r2;\nst.param.b64 [r], %rd2;\nret;\n}\n";

TEST(Control, CallsWithParametersAndResults) {
  // Nested, with lanes that return from different places.
  const Outcome outcome = run_body(
      "add.u32 %r5, %id, 1000;\ncvt.u64.u32 %rd5, %r5;\n{\n.param .b32 p0;\n.param .b64 p1;\n.param .b64 "
      "q0;\nst.param.b32 [p0], %id;\nst.param.b64 [p1], %rd5;\ncall.uni (q0), mix, (p0, p1);\nld.param.b64 %rd6, "
      "[q0];\n}\n"
      "bar.warp.sync -1;\nst.global.u64 [%mine8], %rd6;\n",
      {}, kFunctions);
  expect_ok(outcome);
  for (uint32_t lane = 0; lane < 32; lane++) EXPECT_EQ(outcome.out64(lane), lane > 15 ? 2 * lane : lane + 1000);
}

TEST(Control, CallsFromBothArmsOfABranch) {
  const std::string call =
      "{\n.param .b32 p;\n.param .b32 q;\nst.param.b32 [p], %r5;\ncall.uni (q), twice, (p);\nld.param.b32 %r6, "
      "[q];\n}\n";
  const Outcome outcome = run_body("setp.lt.u32 %p1, %id, 7;\n@%p1 bra A;\nmov.u32 %r5, %id;\n" + call +
                                       "add.u32 %r6, %r6, 1;\nbra END;\nA: add.u32 %r5, %id, 500;\n" + call +
                                       "END: bar.warp.sync -1;\nst.global.u32 [%mine], %r6;\n",
                                   {}, kFunctions);
  expect_ok(outcome);
  for (uint32_t lane = 0; lane < 32; lane++) EXPECT_EQ(outcome.out[lane], lane < 7 ? 2 * (lane + 500) : 2 * lane + 1);
}

TEST(Control, CallerRegistersSurviveCalls) {
  std::string body;
  for (int k = 0; k < 20; k++) body += "add.u32 %r" + std::to_string(10 + k) + ", %id, " + std::to_string(k) + ";\n";
  body +=
      "{\n.param .b32 p;\n.param .b32 q;\nst.param.b32 [p], %id;\ncall.uni (q), twice, (p);\nld.param.b32 %r6, "
      "[q];\n}\n";
  for (int k = 0; k < 20; k++) body += "add.u32 %r6, %r6, %r" + std::to_string(10 + k) + ";\n";
  const Outcome outcome = run_body(body + "st.global.u32 [%mine], %r6;\n", {}, kFunctions);
  expect_ok(outcome);
  for (uint32_t lane = 0; lane < 32; lane++) EXPECT_EQ(outcome.out[lane], 22 * lane + 190);
}

TEST(Control, ExitInsideAFunctionEndsTheThread) {
  const Outcome outcome = run_body(
      "{\n.param .b32 p;\nst.param.b32 [p], %id;\ncall.uni leave, (p);\n}\nbar.sync 0;\nst.global.u32 [%mine], 1;\n",
      {},
      ".func leave(.param .b32 a)\n{\n.reg .b32 %r<4>;\n.reg .pred %p<2>;\nld.param.u32 %r1, [a];\nsetp.lt.u32 %p1, "
      "%r1, 9;\n@%p1 exit;\nret;\n}\n");
  expect_ok(outcome);
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), 1u), 23);
}

TEST(Control, RecursionIsRefusedWhenReached) {
  const std::string functions =
      ".func down(.param .b32 a)\n{\n.reg .b32 %r<4>;\nld.param.u32 %r1, [a];\n{\n.param .b32 p;\nst.param.b32 [p], "
      "%r1;\ncall.uni down, (p);\n}\nret;\n}\n";
  const std::string call = "{\n.param .b32 p;\nst.param.b32 [p], %id;\ncall.uni down, (p);\n}\n";
  EXPECT_THAT(fault(call, {}, functions), HasSubstr("unsupported-instruction: `call.uni down, (p)"));
  EXPECT_THAT(fault(call, {}, functions), HasSubstr("recursion (down) is not supported"));
  expect_ok(run_body("bra END;\n" + call + "END:\n", {}, functions));
  const std::string mutual =
      ".func b(.param .b32 a);\n.func a(.param .b32 x)\n{\n{\n.param .b32 p;\nst.param.b32 [p], 1;\ncall.uni b, "
      "(p);\n}\nret;\n}\n.func b(.param .b32 y)\n{\n{\n.param .b32 p;\nst.param.b32 [p], 1;\ncall.uni a, "
      "(p);\n}\nret;\n}\n";
  EXPECT_THAT(fault("{\n.param .b32 p;\nst.param.b32 [p], %id;\ncall.uni a, (p);\n}\n", {}, mutual),
              HasSubstr("recursion (a) is not supported"));
}

TEST(Control, Trap) {
  const Outcome outcome = run_body(".loc 1 7 1\nsetp.eq.u32 %p1, %id, 4;\n.loc 1 8 1\n@%p1 trap;\n", {}, kFile);
  EXPECT_EQ(outcome.status, LaunchStatus::Fault);
  EXPECT_EQ(outcome.problem(), "trap: warp 0 lane 4 executes trap");
  EXPECT_EQ(outcome.diagnostics.at(0).place.line, 8u);
}

TEST(Control, NanosleepPassesTime) {
  const Outcome outcome = run_body(
      "mov.u64 %rd1, %clock64;\nnanosleep.u32 1000;\nmov.u64 %rd2, %clock64;\nsub.u64 %rd3, %rd2, %rd1;\nst.global.u64 "
      "[%mine8], %rd3;\n");
  expect_ok(outcome);
  EXPECT_GE(outcome.out64(0), 1000u);  // [0, 2t] of about two cycles a nanosecond
  EXPECT_LE(outcome.out64(0), 5000u);
}

TEST(Control, ClocksRunForward) {
  const Outcome outcome = run_body(
      "mov.u32 %r1, %clock;\nmov.u64 %rd1, %globaltimer;\nmov.u32 %r9, 0;\nL: add.u32 %r9, %r9, 1;\nsetp.lt.u32 %p1, "
      "%r9, 500;\n@%p1 bra L;\nmov.u32 %r2, %clock;\nmov.u64 %rd2, %globaltimer;\nmov.u32 %r3, %clock_hi;\n"
      "sub.u32 %r2, %r2, %r1;\nsub.u64 %rd2, %rd2, %rd1;\nst.global.u32 [%out], %r2;\nst.global.u64 [%out+8], "
      "%rd2;\nst.global.u32 [%out+16], %r3;\n");
  expect_ok(outcome);
  EXPECT_GT(outcome.out[0], 500u);
  EXPECT_GT(outcome.out64(1), 200u);
  EXPECT_EQ(outcome.out[4], 0u);
}

// --- device runtime --------------------------------------------------------------------------------------------------

constexpr const char* kVprintf = ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n";

std::string vprintf_call(const std::string& pack) {
  return ".local .align 8 .b8 buffer[32];\nmov.u64 %rd10, buffer;\ncvta.local.u64 %rd11, %rd10;\n" + pack +
         "mov.u64 %rd12, text;\ncvta.global.u64 %rd12, %rd12;\n{\n.param .b64 p0;\n.param .b64 p1;\n.param .b32 "
         "q;\nst.param.b64 [p0], %rd12;\nst.param.b64 [p1], %rd11;\ncall.uni (q), vprintf, (p0, p1);\nld.param.b32 "
         "%r60, [q];\n}\n";
}

std::string text_global(const std::string& text) {
  std::string bytes;
  for (const char c : text) bytes += std::to_string(static_cast<int>(c)) + ", ";
  return ".global .align 1 .b8 text[" + std::to_string(text.size() + 1) + "] = {" + bytes + "0};\n";
}

TEST(DeviceRuntime, VprintfPrintsLaneByLane) {
  const Outcome outcome =
      run_body("setp.ge.u32 %p1, %id, 3;\n@%p1 ret;\n" +
                   vprintf_call("st.local.u32 [%rd10], %id;\nmov.f64 %fd1, 0d3FF8000000000000;\nst.local.f64 "
                                "[%rd10+8], %fd1;\nst.local.u64 [%rd10+16], %out;\n") +
                   "st.global.u32 [%mine], %r60;\n",
               {}, kVprintf + text_global("lane %d: %.2f %p\n"));
  expect_ok(outcome);
  EXPECT_THAT(outcome.output, ::testing::StartsWith("lane 0: 1.50 0x7f"));
  EXPECT_THAT(outcome.output, HasSubstr("\nlane 1: 1.50 "));
  EXPECT_THAT(outcome.output, HasSubstr("\nlane 2: 1.50 "));
  EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 3);
  EXPECT_EQ(outcome.out[0], 3u);  // arguments
}

TEST(DeviceRuntime, OutputIsBounded) {
  const Outcome outcome = run_body("mov.u32 %r1, 0;\nL:\n" + vprintf_call("st.local.u32 [%rd10], %id;\n") +
                                       "add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 64;\n@%p1 bra L;\n",
                                   {}, kVprintf + text_global("%01000d\n"));
  expect_ok(outcome);
  EXPECT_EQ(outcome.output.size(), size_t{1} << 20);
}

TEST(DeviceRuntime, AssertFail) {
  const std::string globals =
      ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);\n" +
      text_global("n > 0");
  const Outcome outcome = run_body(
      ".loc 1 30 1\nsetp.ne.u32 %p1, %id, 6;\n@%p1 bra END;\nmov.u64 %rd1, text;\ncvta.global.u64 %rd1, "
      "%rd1;\n{\n.param .b64 p0;\n.param .b64 p1;\n.param .b32 p2;\n.param .b64 p3;\n.param .b64 p4;\n"
      "st.param.b64 [p0], %rd1;\nst.param.b64 [p1], %rd1;\nst.param.b32 [p2], 30;\nst.param.b64 [p3], "
      "%rd1;\nst.param.b64 [p4], 1;\ncall.uni __assertfail, (p0, p1, p2, p3, p4);\n}\nEND:\n",
      {}, kFile + globals);
  EXPECT_EQ(outcome.status, LaunchStatus::Fault);
  EXPECT_EQ(outcome.problem(), "assertion-failed: thread 6: assertion `n > 0` failed");
  EXPECT_EQ(outcome.diagnostics.at(0).place.line, 30u);
}

TEST(DeviceRuntime, UnknownFunctionFaultsWhenCalled) {
  const std::string globals = ".extern .func (.param .b64 r) malloc(.param .b64 n);\n";
  const std::string call =
      "{\n.param .b64 p0;\n.param .b64 q;\nst.param.b64 [p0], 16;\ncall.uni (q), malloc, (p0);\n}\n";
  EXPECT_THAT(fault(call, {}, globals), HasSubstr("the device runtime's function malloc is not supported"));
  expect_ok(run_body("bra END;\n" + call + "END:\n", {}, globals));
}

// --- setmaxnreg ------------------------------------------------------------------------------------------------------

/// A block of `warps` warps, of which those below `first` take the branch at `mine`, the others that at `others`.
Outcome roles(uint32_t warps, uint32_t first, const std::string& mine, const std::string& others) {
  Options options;
  options.block = {32 * warps, 1, 1};
  return run_body("setp.lt.u32 %p0, %id, " + std::to_string(32 * first) + ";\n@%p0 bra MINE;\n" + others +
                      "\nbra DONE;\nMINE:\n" + mine + "\nDONE:\nmov.u32 %r1, 1;\nst.global.u32 [%mine], %r1;\n",
                  options);
}

TEST(ControlOps, SetmaxnregIsAWarpgroups) {
  const std::string dec = "setmaxnreg.dec.sync.aligned.u32 ", inc = "setmaxnreg.inc.sync.aligned.u32 ";
  // Two warpgroups, two requests; then one warpgroup whose warps make the same request in branches of their own.
  expect_ok(roles(8, 4, dec + "40;", inc + "232;"));
  expect_ok(roles(4, 1, dec + "24;", dec + "24;"));
  expect_ok(roles(6, 4, dec + "40;", ""));
  Outcome o = roles(4, 1, dec + "24;", dec + "40;");
  EXPECT_THAT(o.problem(),
              HasSubstr("warp 1 lanes 0-31 executes setmaxnreg.dec 40, but warp 0 of the same warpgroup executed "
                        "setmaxnreg.dec 24"));
  EXPECT_EQ(o.diagnostics[0].id, "diverged-collective");
  EXPECT_EQ(o.out[127], 1u);  // the run goes on
  EXPECT_THAT(roles(4, 2, dec + "24;", inc + "24;").problem(),
              HasSubstr("warp 2 lanes 0-31 executes setmaxnreg.inc 24, but warp 0 of"));
  EXPECT_THAT(roles(8, 6, dec + "24;", "").problem(),
              HasSubstr("warp 4 executed setmaxnreg.dec 24, but warp 6 of the same warpgroup ended without it"));
  EXPECT_THAT(run_body(dec + "28;").problem(), HasSubstr("a multiple of 8 from 24 to 256"));
}

TEST(ControlOps, ReduxOrdersZeros) {
  for (const bool min : {true, false}) {
    for (const uint32_t odd : {0x80000000u, 0u}) {
      // Zeros of both signs, in either order of lanes.
      const Outcome o =
          run_body("and.b32 %r1, %lane, 1;\nsetp.eq.u32 %p0, %r1, 1;\nselp.b32 %r1, " + std::to_string(odd) + ", " +
                   std::to_string(odd ^ 0x80000000u) + ", %p0;\nredux.sync." + (min ? "min" : "max") +
                   ".f32 %r2, %r1, -1;\nst.global.u32 [%mine], %r2;\n");
      expect_ok(o);
      EXPECT_EQ(o.out[0], min ? 0x80000000u : 0u);
    }
  }
}

}  // namespace
}  // namespace handoff::machine
