// Each rule of the checker with the smallest kernel that breaks it and the smallest that does not.
//
// Thread 0 is %p0 and thread 1 %p1, of one warp; thread 32, of the other warp, is %p2. A case names the diagnosis that
// must come first, at the line marked `// here`; "" means that nothing may be said, not even a warning. Cases run on
// every schedule: what a kernel orders does not depend on luck.
#include "grader/emulator/check/checker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "grader/emulator/async/testing.h"

namespace handoff::check::testing {
namespace {

using async::testing::Kernel;
using async::testing::Outcome;

struct Case {
  const char* name;
  std::string id;  ///< "": silent
  std::string body;
  uint32_t ctas = 1;
  bool any_schedule = true;  ///< false: which of two mistakes is seen first depends on who comes first, so nominal only
};

Outcome run_checked(const Case& c, const machine::Schedule& schedule) {
  Checker checker;
  Kernel k;
  k.shared =
      ".shared .align 128 .b8 data[256];\n.shared .align 8 .b64 full;\n.shared .align 8 .b64 empty;\n.shared .align 4 "
      ".b8 flag[4];\n";
  k.block = {64, 1, 1};
  k.grid = {c.ctas, 1, 1};
  k.in.assign(64, 3);
  k.schedule = schedule;
  k.observer = &checker;
  k.progress_budget = 100'000;
  k.body = "\nsetp.eq.u32 %p0, %t, 0;\nsetp.eq.u32 %p1, %t, 1;\nsetp.eq.u32 %p2, %t, 32;\nmov.u32 %r5, 1;\n" + c.body;
  return async::testing::run(k);
}

void expect_all(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    for (const machine::Schedule& schedule : async::testing::schedules(2)) {
      if (!c.any_schedule && schedule.kind != machine::Schedule::Kind::Nominal) continue;
      const Outcome o = run_checked(c, schedule);
      SCOPED_TRACE(std::string(c.name) + ", " + to_string(schedule) + "\n" + async::testing::text_of(o) + o.body);
      if (c.id.empty()) {
        EXPECT_TRUE(o.ok());
        continue;
      }
      ASSERT_FALSE(o.diagnostics.empty());
      EXPECT_EQ(o.diagnostics[0].id, c.id);
      EXPECT_EQ(o.diagnostics[0].place.line, async::testing::line_of(o.body, "// here"));
    }
  }
}

/// Thread 0 initialises `full` and `empty`, for all.
std::string init(int full = 1, int empty = 1) {
  return "@%p0 mbarrier.init.shared::cta.b64 [full], " + std::to_string(full) +
         ";\n@%p0 mbarrier.init.shared::cta.b64 [empty], " + std::to_string(empty) +
         ";\n@%p0 fence.mbarrier_init.release.cluster;\nbar.sync 0;\n";
}

/// Whoever comes here waits for a phase of this parity; `label` is unique.
std::string wait(const std::string& barrier, int parity, const std::string& label, const std::string& sem = "") {
  return label + ":\nmbarrier.try_wait.parity" + sem + ".shared::cta.b64 %p8, [" + barrier + "], " +
         std::to_string(parity) + ";\n@!%p8 bra " + label + ";\n";
}

/// Only the thread whose predicate is `p` executes `text`.
std::string only(const std::string& p, const std::string& label, const std::string& text) {
  return "@!" + p + " bra " + label + ";\n" + text + label + ":\n";
}

/// Takes its time.
std::string delay(int turns, const std::string& label) {
  return "mov.u32 %r9, 0;\n" + label + ":\nadd.u32 %r9, %r9, 1;\nsetp.lt.u32 %p5, %r9, " + std::to_string(turns) +
         ";\n@%p5 bra " + label + ";\n";
}

const std::string kArriveTx = "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;\n";
const std::string kLoad =
    "@%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [data], [%inp], 16, [full];";
const std::string kStore = "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%outp], [data], 16;";
const std::string kCommit = "@%p0 cp.async.bulk.commit_group;\n";
const std::string kWaitRead = "@%p0 cp.async.bulk.wait_group.read 0;\n",
                  kWaitAll = "@%p0 cp.async.bulk.wait_group 0;\n";

TEST(CheckerTest, BarriersOfTheBlockAndOfAWarp) {
  const std::string write = "@%p0 st.shared.u32 [data], %r5;\n", other = "@%p2 ld.shared.u32 %r6, [data];",
                    neighbour = "@%p1 ld.shared.u32 %r6, [data];";
  expect_all({
      {"nothing between", "data-race", write + other + " // here\n"},
      {"a barrier between", "", write + "bar.sync 0;\n" + other + "\n"},
      {"two writes", "data-race", write + "@%p2 st.shared.u32 [data], %r5; // here\n"},
      {"a write after a read", "data-race",
       "@%p0 ld.shared.u32 %r6, [data];\n@%p2 st.shared.u32 [data], %r5; // here\n"},
      {"a write after a read and a barrier", "",
       "@%p0 ld.shared.u32 %r6, [data];\nbar.sync 0;\n@%p2 st.shared.u32 [data], %r5;\n"},
      {"two reads", "", "@%p0 ld.shared.u32 %r6, [data];\n" + other + "\n"},
      {"arrive releases", "",
       only("%p2", "A", "") + "setp.lt.u32 %p4, %t, 32;\n@!%p4 bra W1;\n" + write +
           "bar.arrive 1, 64;\nbra END;\nW1:\nbar.sync 1, 64;\n" + other + "\nEND:\n"},
      {"arrive acquires nothing", "data-race",
       "setp.lt.u32 %p4, %t, 32;\n@%p4 bra W0;\n@%p2 st.shared.u32 [data], %r5;\nbar.sync 1, 64;\nbra "
       "END;\nW0:\nbar.arrive 1, 64;\nmov.u32 %r9, 0;\nL:\nadd.u32 %r9, %r9, 1;\nsetp.lt.u32 %p5, %r9, "
       "400;\n@%p5 bra L;\n@%p0 ld.shared.u32 %r6, [data]; // here\nEND:\n"},
      {"different barriers order nothing", "data-race",
       write + "setp.lt.u32 %p4, %t, 32;\n@!%p4 bra W1;\nbar.sync 1, 32;\nbra END;\nW1:\nbar.sync 2, 32;\n" + other +
           " // here\nEND:\n"},
      {"lanes of a warp", "data-race", write + neighbour + " // here\n"},
      {"lanes behind bar.warp.sync", "", write + "bar.warp.sync 0xffffffff;\n" + neighbour + "\n"},
      {"bar.warp.sync of the own warp only", "data-race", write + "bar.warp.sync 0xffffffff;\n" + other + " // here\n"},
      {"one thread alone", "", write + "@%p0 ld.shared.u32 %r6, [data];\n" + write},
  });
}

TEST(CheckerTest, PartsOfWords) {
  const std::string low = "@%p0 st.shared.u8 [data+1], %r5;\n";
  expect_all({
      {"neighbouring bytes", "", low + "@%p2 st.shared.u8 [data+2], %r5;\n@%p2 ld.shared.u8 %r6, [data];\n"},
      {"the same byte", "data-race", low + "@%p2 st.shared.u8 [data+1], %r5; // here\n"},
      {"a byte of a word", "data-race", low + "@%p2 ld.shared.u32 %r6, [data]; // here\n"},
      {"a half word beside it", "", low + "@%p2 ld.shared.u16 %h1, [data+2];\n"},
      {"a half word over it", "data-race", low + "@%p2 ld.shared.u16 %h1, [data]; // here\n"},
      {"a word first, then a byte", "data-race",
       "@%p0 st.shared.u32 [data], %r5;\n@%p2 ld.shared.u8 %r6, [data+3]; // here\n"},
      {"only one byte of a word is ordered", "data-race",
       "@%p2 st.shared.u8 [data], %r5;\nbar.sync 0;\n@%p0 st.shared.u8 [data+3], %r5;\n@%p2 ld.shared.u8 %r6, "
       "[data];\n@%p2 ld.shared.u32 %r6, [data]; // here\n"},
      {"vectors that overlap in part", "data-race",
       "@%p0 st.shared.v4.u32 [data], {%r5, %r5, %r5, %r5};\n@%p2 ld.shared.v2.u32 {%r6, %r7}, [data+8]; // here\n"},
      {"vectors side by side", "",
       "@%p0 st.shared.v4.u32 [data], {%r5, %r5, %r5, %r5};\n@%p2 ld.shared.v2.u32 {%r6, %r7}, [data+16];\n"},
      {"the end of one row and the start of the next", "",
       "@%p0 st.shared.v4.u32 [data+112], {%r5, %r5, %r5, %r5};\n@%p2 st.shared.v4.u32 [data+128], {%r5, %r5, %r5, "
       "%r5};\n"},
  });
}

// What the lanes of one warp write to one place with one instruction: one write takes place, whose is undefined (CUDA
// C++ Programming Guide, SIMT architecture). With one value for all that is no matter.
TEST(CheckerTest, LanesThatWriteOnePlace) {
  const std::string first = "setp.lt.u32 %p4, %t, 32;\n", read = "bar.sync 0;\nld.shared.u32 %r6, [data];\n";
  const std::string same = "@%p4 st.shared.u32 [data], %r5;", own = "@%p4 st.shared.u32 [data], %t;";
  // Half of the warp takes another way, so that the lanes know different things, and comes back.
  const std::string part = init() + first + "setp.lt.u32 %p6, %t, 16;\n@!%p6 bra P;\n" +
                           "@%p0 mbarrier.arrive.shared::cta.b64 _, [full];\n" + wait("full", 0, "W") + "P:\n";
  expect_all({
      {"one value", "", first + same + "\n" + read},
      {"a constant", "", first + "@%p4 st.shared.u32 [data], 7;\n" + read},
      {"each its own value", "data-race", first + own + " // here\n" + read},
      {"one lane's value differs", "data-race",
       first + "selp.u32 %r7, 2, %r5, %p1;\n@%p4 st.shared.u32 [data], %r7; // here\n"},
      {"in a loop, a new value each time", "",
       first +
           "mov.u32 %r9, 0;\nL:\n@%p4 st.shared.u32 [data], %r9;\nadd.u32 %r9, %r9, 1;\nsetp.lt.u32 %p5, %r9, "
           "4;\n@%p5 bra L;\n" +
           read},
      {"in global memory", "", first + "@%p4 st.global.u32 [%outp], %r5;\n"},
      {"in global memory, each its own value", "data-race", first + "@%p4 st.global.u32 [%outp], %t; // here\n"},
      {"bytes, of registers that differ above them", "",
       first + "shl.b32 %r7, %t, 8;\n@%p4 st.shared.u8 [data+1], %r7;\n" + read},
      {"bytes that differ", "data-race", first + "@%p4 st.shared.u8 [data+1], %t; // here\n"},
      {"the second element of a vector differs", "data-race",
       first + "@%p4 st.shared.v2.u32 [data], {%r5, %t}; // here\n"},
      {"pairs of lanes", "",
       first + "shr.u32 %r7, %t, 1;\nand.b32 %r8, %t, 30;\nshl.b32 %r8, %r8, 1;\nmov.u32 %r9, data;\nadd.u32 %r8, "
               "%r8, %r9;\n@%p4 st.shared.u32 [%r8], %r7;\nbar.sync 0;\n"},
      {"lanes that know different things", "", part + same + "\n" + read},
      {"lanes that know different things, each its own value", "data-race", part + own + " // here\n" + read},
      {"each reads it back", "", first + same + "\n@%p4 ld.shared.u32 %r6, [data];\n"},
      {"another value by the last lane afterwards", "data-race",
       first + same + "\nsetp.eq.u32 %p6, %t, 31;\n@%p6 st.shared.u32 [data], 9; // here\n"},
      {"another value by the first lane afterwards", "data-race",
       first + same + "\n@%p0 st.shared.u32 [data], 9; // here\n"},
      {"in a loop that lanes leave", "data-race",
       first +
           "mov.u32 %r9, 0;\nL:\nsetp.le.and.u32 %p6, %r9, %t, %p4;\n@%p6 st.shared.u32 [data], %r9; // here\nadd.u32 "
           "%r9, %r9, 1;\nsetp.lt.u32 %p5, %r9, 4;\n@%p5 bra L;\n"},
      {"only the last lane arrives for all", "data-race",
       init() + first + same + "\nsetp.eq.u32 %p6, %t, 31;\n@%p6 mbarrier.arrive.shared::cta.b64 _, [full];\n" +
           only("%p2", "O", wait("full", 0, "W")) + "@%p2 st.shared.u32 [data], 9; // here\n"},
      {"two instructions", "data-race",
       first + same + "\nsetp.ge.and.u32 %p6, %t, 16, %p4;\n@%p6 st.shared.u32 [data], %r5; // here\n"},
      {"two warps", "data-race", "st.shared.u32 [data], %r5; // here\n"},
      {"nobody waits for them", "data-race", first + same + "\n@%p2 ld.shared.u32 %r6, [data]; // here\n", 1, false},
      {"over what another warp reads", "data-race",
       "@%p2 ld.shared.u32 %r6, [data];\n" + first + delay(100, "D") + same + " // here\n", 1, false},
      {"matrices", "data-race",
       first + "mov.u32 %r9, data;\n@%p4 stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r9], {%r5}; // here\n"},
  });
}

// What one lane has waited for is nothing to the others until something tells them, and the hint says who has waited.
TEST(CheckerTest, WhatOneLaneKnowsReachesOthersThroughABarrier) {
  const std::string late = "@%p1 ld.shared.u32 %r6, [data];";
  const std::string begin = init() + kArriveTx + kLoad + "\n" + only("%p0", "O", wait("full", 0, "W"));
  const std::string all = "setp.lt.u32 %p4, %t, 32;\n@!%p4 bra END;\n", end = "END:\n";
  const std::string shuffle = "shfl.sync.idx.b32 %r7|%p7, %r5, 0, 31, 0xffffffff;\n";
  expect_all({
      {"a shuffle", "async-read-before-complete", begin + all + shuffle + late + " // here\n" + end},
      {"a vote", "async-read-before-complete",
       begin + all + "vote.sync.any.pred %p7, %p0, 0xffffffff;\n" + late + " // here\n" + end},
      {"bar.warp.sync", "", begin + all + "bar.warp.sync 0xffffffff;\n" + late + "\n" + end},
      {"a barrier of the block", "", begin + "bar.sync 0;\n" + late + "\n"},
  });
  const Outcome o = run_checked({"", "", begin + all + shuffle + late + "\n" + end}, {});
  ASSERT_FALSE(o.diagnostics.empty());
  EXPECT_NE(o.diagnostics[0].hint.find("What warp 0 lane 0 can rely on does not reach"), std::string::npos)
      << o.diagnostics[0].hint;
  // Nobody has waited: the hint names the wait.
  const Outcome none = run_checked({"", "", init() + kArriveTx + kLoad + "\n" + late + "\n"}, {});
  ASSERT_FALSE(none.diagnostics.empty());
  EXPECT_NE(none.diagnostics[0].hint.find("A wait on `full`"), std::string::npos) << none.diagnostics[0].hint;
}

// Thread 0 writes data and raises a flag; thread 32, of CTA `c`, sees the flag and reads the data.
std::string flag(const std::string& raise, const std::string& see, const std::string& use, uint32_t cta = 0) {
  const std::string me = std::to_string(cta);
  return "setp.eq.and.u32 %p3, %c, 0, %p0;\nsetp.eq.and.u32 %p4, %c, " + me +
         ", %p2;\n@%p3 st.global.u32 [%outp], %r5;\n" + raise + only("%p4", "OUT", "AGAIN:\n" + see + use);
}
std::string spin(const std::string& load) {
  return load + " %r6, [%outp+128];\nsetp.eq.u32 %p8, %r6, 0;\n@%p8 bra AGAIN;\n";
}

TEST(CheckerTest, FlagsFencesAndScopes) {
  const std::string release = "@%p3 st.release.gpu.global.u32 [%outp+128], %r5;\n",
                    relaxed = "@%p3 st.relaxed.gpu.global.u32 [%outp+128], %r5;\n";
  const std::string acquire = spin("ld.acquire.gpu.global.u32"), look = spin("ld.relaxed.gpu.global.u32");
  const std::string fence = "fence.acq_rel.gpu;\n", use = "ld.global.u32 %r7, [%outp];\n",
                    here = "ld.global.u32 %r7, [%outp]; // here\n";
  expect_all({
      {"release and acquire", "", flag(release, acquire, use)},
      {"relaxed store", "data-race", flag(relaxed, acquire, here)},
      {"relaxed load", "data-race", flag(release, look, here)},
      {"volatile is relaxed", "data-race",
       flag("@%p3 st.volatile.global.u32 [%outp+128], %r5;\n", spin("ld.volatile.global.u32"), here)},
      {"fences around relaxed accesses", "", flag("@%p3 " + fence + relaxed, look, fence + use)},
      {"fence of the writer only", "data-race", flag("@%p3 " + fence + relaxed, look, here)},
      {"fence of the reader only", "data-race", flag(relaxed, look, fence + here)},
      {"fence and acquire", "", flag("@%p3 " + fence + relaxed, acquire, use)},
      {"release and fence", "", flag(release, look, fence + use)},
      {"fence after the flag", "data-race", flag(relaxed + "@%p3 " + fence, acquire, here)},
      {"an atomic releases", "", flag("@%p3 atom.release.gpu.global.add.u32 %r6, [%outp+128], %r5;\n", acquire, use)},
      {"an atomic of another thread keeps the release sequence", "",
       flag(release + "@%p3 red.relaxed.gpu.global.add.u32 [%outp+128], %r5;\n", acquire, use)},
      {"an atomic acquires", "",
       flag(release,
            "atom.acquire.gpu.global.add.u32 %r6, [%outp+128], 0;\nsetp.eq.u32 %p8, %r6, 0;\n@%p8 bra AGAIN;\n", use)},
      {"another location", "data-race",
       flag("@%p3 st.release.gpu.global.u32 [%outp+132], %r5;\n" + relaxed, acquire, here)},
      {"across blocks", "", flag(release, acquire, use, 1), 2},
      {"across blocks, released to its own", "scope-too-narrow",
       flag("@%p3 st.release.cta.global.u32 [%outp+128], %r5;\n",
            "ld.acquire.gpu.global.u32 %r6, [%outp+128]; // here\nsetp.eq.u32 %p8, %r6, 0;\n@%p8 bra AGAIN;\n", use, 1),
       2},
      {"a narrow pair within a block", "",
       flag("@%p3 st.release.cta.global.u32 [%outp+128], %r5;\n", spin("ld.acquire.cta.global.u32"), use)},
      {"strong accesses of one location do not race", "",
       "@%p0 st.relaxed.gpu.global.u32 [%outp], %r5;\n@%p2 ld.relaxed.gpu.global.u32 %r6, [%outp];\n@%p2 "
       "red.relaxed.gpu.global.add.u32 [%outp], %r5;\n"},
      {"a weak access beside strong ones", "data-race",
       "@%p0 st.relaxed.gpu.global.u32 [%outp], %r5;\n@%p2 st.global.u32 [%outp], %r5; // here\n"},
  });
}

TEST(CheckerTest, AtomicsAsLocks) {
  const auto lock = [](const std::string& acquire, const std::string& unlock, const std::string& mark) {
    const auto section = [&](const std::string& p, const std::string& n, const std::string& here) {
      return only(p, "END" + n,
                  "TAKE" + n + ":\natom" + acquire +
                      ".cta.shared.cas.b32 %r6, [flag], 0, 1;\nsetp.ne.u32 %p8, %r6, 0;\n@%p8 bra TAKE" + n +
                      ";\nld.shared.u32 %r7, [data];" + here +
                      "\nadd.u32 %r7, %r7, 1;\nst.shared.u32 [data], %r7;\natom" + unlock +
                      ".cta.shared.exch.b32 %r6, [flag], 0;\n");
    };
    return "@%p0 st.shared.u32 [flag], 0;\n@%p0 st.shared.u32 [data], 0;\nbar.sync 0;\n" + section("%p0", "0", "") +
           section("%p2", "1", mark);
  };
  const Outcome right = run_checked({"", "", lock(".acquire", ".release", "")}, {});
  EXPECT_TRUE(right.ok()) << async::testing::text_of(right);
  for (const auto& body : {lock(".relaxed", ".release", ""), lock(".acquire", ".relaxed", "")}) {
    const Outcome wrong = run_checked({"", "", body}, {});
    ASSERT_FALSE(wrong.diagnostics.empty()) << body;
    EXPECT_EQ(wrong.diagnostics[0].id, "data-race");
  }
}

// A phase that may complete before another thread's wait for the one before has seen it: if it is the last, the wait
// hangs.
TEST(CheckerTest, WaitsThatAreOvertaken) {
  const std::string arrive = "@%p0 mbarrier.arrive.shared::cta.b64 _, [full];\n", bar = "bar.sync 0;\n",
                    empty = "@%p2 mbarrier.arrive.shared::cta.b64 _, [empty];\n", late = delay(300, "LATE");
  const auto full = [](int parity, const std::string& label) { return wait("full", parity, label); };
  const std::string here = "W0:\nmbarrier.try_wait.parity.shared::cta.b64 %p8, [full], 0; // here\n@!%p8 bra W0;\n";
  const auto thread_0 = [&](const std::string& text) { return only("%p0", "ZERO", text); };
  const auto others = [&](const std::string& text) {  // warp 1
    return "setp.lt.u32 %p6, %t, 32;\n@%p6 bra REST;\n" + text + "REST:\n";
  };
  expect_all({
      {"two phases, thread 0 waits for itself", "phase-overrun",
       init() + thread_0(arrive + full(0, "A") + arrive + full(1, "B")) + others(here + full(1, "W1"))},
      {"the others are late", "phase-overrun",
       init() + thread_0(arrive + full(0, "A") + arrive + full(1, "B")) + others(late + here + full(1, "W1"))},
      {"only the first of two phases is waited for", "phase-overrun",
       init() + thread_0(arrive + full(0, "A") + arrive + full(1, "B")) + others(here)},
      {"three phases, and only the first is waited for: it ends late at worst", "",
       init() + thread_0(arrive + full(0, "A") + arrive + full(1, "B") + arrive + full(0, "C")) +
           others(full(0, "W0"))},
      {"a barrier of the block behind each phase", "",
       init() + arrive + full(0, "W0") + bar + arrive + full(1, "W1") + bar + arrive + full(0, "W2")},
      {"a barrier of the block behind the last phase only", "phase-overrun",
       init() + thread_0(arrive + full(0, "A") + arrive) + others(here) + bar + full(1, "W1")},
      {"lanes of the warp that arrives", "phase-overrun",
       init() + thread_0(arrive + full(0, "A") + arrive + full(1, "B")) + only("%p1", "ONE", here)},
      {"one lane tells thread 0 for its warp", "",
       init() + thread_0(arrive + full(0, "A") + wait("empty", 0, "E") + arrive + full(1, "B")) +
           others(full(0, "W0") + empty + full(1, "W1"))},
      {"told before the wait", "phase-overrun",
       init() + thread_0(arrive + full(0, "A") + wait("empty", 0, "E") + arrive + full(1, "B")) +
           others(empty + here + full(1, "W1"))},
      {"told by a relaxed arrive, which orders no data and is in time", "",
       init() + thread_0(arrive + full(0, "A") + wait("empty", 0, "E", ".relaxed.cta") + arrive + full(1, "B")) +
           others(full(0, "W0") + "@%p2 mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [empty];\n" + full(1, "W1"))},
      {"the copy of the second phase waits for them", "",
       init() +
           thread_0(kArriveTx + kLoad + "\n" + full(0, "A") + kArriveTx + wait("empty", 0, "E") + kLoad + "\n" +
                    full(1, "B")) +
           others(full(0, "W0") + empty + full(1, "W1"))},
      {"the copy of the second phase does not", "phase-overrun",
       init() + thread_0(kArriveTx + kLoad + "\n" + full(0, "A") + kArriveTx + kLoad + "\n" + full(1, "B")) +
           others(here + full(1, "W1"))},
  });
}

// In the run at hand nobody hangs: a warning. In one in which somebody does it is what explains the hang.
TEST(CheckerTest, AnOvertakenWaitIsAWarningUntilItHangs) {
  const std::string arrive = "@%p0 mbarrier.arrive.shared::cta.b64 _, [full];\n";
  const std::string zero =
      only("%p0", "ZERO", arrive + wait("full", 0, "A") + delay(300, "D") + arrive + wait("full", 1, "B"));
  const auto others = [](const std::string& text) {
    return "setp.lt.u32 %p6, %t, 32;\n@%p6 bra REST;\n" + text + wait("full", 0, "W0") + wait("full", 1, "W1") +
           "REST:\n";
  };
  const Outcome in_time = run_checked({"", "", init() + zero + others("")}, {machine::Schedule::Kind::Nominal, 0});
  ASSERT_EQ(in_time.diagnostics.size(), 1u) << async::testing::text_of(in_time);
  EXPECT_EQ(in_time.diagnostics[0].id, "phase-overrun");
  EXPECT_EQ(in_time.diagnostics[0].severity, Severity::Warning);
  const Outcome late =
      run_checked({"", "", init() + zero + others(delay(3000, "LATE"))}, {machine::Schedule::Kind::Nominal, 0});
  ASSERT_GE(late.diagnostics.size(), 2u) << async::testing::text_of(late);
  EXPECT_EQ(late.diagnostics[0].id, "phase-overrun");
  EXPECT_EQ(late.diagnostics[0].severity, Severity::Error);
  EXPECT_EQ(late.diagnostics[1].id, "deadlock");
}

TEST(CheckerTest, HandoffsThroughMbarriers) {
  const std::string write = "@%p0 st.shared.u32 [data], %r5;\n", use = "@%p2 ld.shared.u32 %r6, [data];\n",
                    here = "@%p2 ld.shared.u32 %r6, [data]; // here\n";
  const std::string arrive = "@%p0 mbarrier.arrive.shared::cta.b64 _, [full];\n",
                    relaxed = "@%p0 mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [full];\n";
  const std::string acquire = wait("full", 0, "W"), look = wait("full", 0, "W", ".relaxed.cta");
  expect_all({
      {"arrive and wait", "", init() + write + arrive + acquire + use},
      {"relaxed arrive", "data-race", init() + write + relaxed + acquire + here},
      {"relaxed wait", "data-race", init() + write + arrive + look + here},
      {"fence before a relaxed arrive", "", init() + write + "@%p0 fence.acq_rel.cta;\n" + relaxed + acquire + use},
      {"fence after a relaxed wait", "", init() + write + arrive + look + "fence.acq_rel.cta;\n" + use},
      {"written after the arrive", "data-race", init() + arrive + write + acquire + here},
      {"one of two arrivals is nobody's business", "",
       init(2) + write + arrive + "@%p2 mbarrier.arrive.shared::cta.b64 _, [full];\n" + acquire + use},
      {"two phases", "", init() + arrive + acquire + "bar.sync 0;\n" + write + arrive + wait("full", 1, "W2") + use},
      {"the answer is not asked again", "missing-retry-loop",
       init() +
           only("%p2", "OUT",
                "mbarrier.try_wait.parity.shared::cta.b64 %p8, [full], 0; // here\nld.shared.u32 %r6, [data];\n") +
           delay(300, "D") + write + arrive + acquire,
       1, false},
      {"a wait for the phase before", "stale-parity",
       init() +
           only("%p2", "OUT",
                "W1:\nmbarrier.try_wait.parity.shared::cta.b64 %p8, [full], 1; // here\n@!%p8 bra W1;\nld.shared.u32 "
                "%r6, [data];\n") +
           delay(300, "D") + write + arrive + acquire,
       1, false},
      {"nobody saw the phase before", "phase-overrun",
       init() + arrive + "@%p0 mbarrier.arrive.shared::cta.b64 _, [full]; // here\n" + wait("full", 1, "W")},
      {"a thread that the init is not ordered with", "barrier-not-initialized",
       "@%p0 mbarrier.init.shared::cta.b64 [full], 1;\n" + delay(50, "L") +
           "@%p2 mbarrier.arrive.shared::cta.b64 _, [full]; // here\n"},
      {"its own thread needs no order", "", "@%p0 mbarrier.init.shared::cta.b64 [full], 1;\n" + arrive},
      {"no barrier is invalidated at the end", "", init()},
      {"a producer starts with the parity of the phase before", "",
       init() +
           only("%p0", "OUT",
                wait("empty", 1, "W0") + "st.shared.u32 [data], %r5;\nmbarrier.arrive.shared::cta.b64 _, [full];\n") +
           acquire + use},
  });
}

TEST(CheckerTest, BulkLoads) {
  const std::string use = "@%p2 ld.shared.u32 %r6, [data];\n", here = "@%p2 ld.shared.u32 %r6, [data]; // here\n",
                    all = wait("full", 0, "W"), end = wait("full", 0, "LAST");
  const std::string read =
      only("%p2", "READ",
           wait("full", 0, "W") + "ld.shared.u32 %r6, [data];\nmbarrier.arrive.shared::cta.b64 _, [empty];\n");
  expect_all({
      {"wait, then read", "", init() + kArriveTx + kLoad + "\n" + all + use},
      {"read before the wait", "async-read-before-complete",
       init() + kArriveTx + kLoad + "\nbar.sync 0;\n" + here + end},
      {"a relaxed wait", "async-read-before-complete",
       init() + kArriveTx + kLoad + "\n" + wait("full", 0, "W", ".relaxed.cta") + here},
      {"a relaxed wait and a fence", "",
       init() + kArriveTx + kLoad + "\n" + wait("full", 0, "W", ".relaxed.cta") + "fence.acq_rel.cta;\n" + use},
      {"another's wait, passed on by a barrier", "",
       init() + kArriveTx + kLoad + "\n" + only("%p0", "OUT", all) + "bar.sync 0;\n" + use},
      {"another's wait, not passed on", "async-read-before-complete",
       init() + kArriveTx + kLoad + "\nbar.sync 0;\n" + only("%p0", "OUT", all) + here + end},
      {"written while it arrives", "data-race",
       init() + kArriveTx + kLoad + "\nbar.sync 0;\n@%p2 st.shared.u32 [data], %r5; // here\n" + end},
      {"the announcement after the copy", "", init() + kLoad + "\n" + kArriveTx + all + use},
      {"two copies, one announcement", "",
       init() + "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 32;\n" + kLoad +
           "\n@%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [data+16], [%inp+16], 16, [full];\n" +
           all + use},
      {"two copies to the same bytes", "data-race",
       init() + "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 32;\n" + kLoad + "\n" + kLoad +
           " // here\n" + all},
      {"no proxy fence after the wait", "",
       init() + kArriveTx + kLoad + "\n" + all + "@%p2 st.shared.u32 [data], %r5;\n"},
      {"refilled while it may be read", "refill-before-release",
       init() + kArriveTx + kLoad + "\n" + read +
           only("%p0", "OUT",
                wait("full", 0, "V") + delay(100, "D") + kArriveTx + kLoad + " // here\n" + wait("full", 1, "X"))},
      {"refilled when it was released", "",
       init() + kArriveTx + kLoad + "\n" + read +
           only("%p0", "OUT",
                wait("empty", 0, "V") + wait("full", 0, "Y") + kArriveTx + kLoad + "\n" + wait("full", 1, "X"))},
      {"the init was not published to the copy engine", "barrier-init-not-visible",
       "@%p0 mbarrier.init.shared::cta.b64 [full], 1;\nbar.sync 0;\n" + kArriveTx + kLoad + " // here\n" + all},
      {"published by a proxy fence", "",
       "@%p0 mbarrier.init.shared::cta.b64 [full], 1;\n@%p0 fence.proxy.async.shared::cta;\nbar.sync 0;\n" + kArriveTx +
           kLoad + "\n" + all},
      {"published before the init", "barrier-init-not-visible",
       "@%p0 fence.mbarrier_init.release.cluster;\n@%p0 mbarrier.init.shared::cta.b64 [full], 1;\nbar.sync 0;\n" +
           kArriveTx + kLoad + " // here\n" + all},
      {"issued by another thread than the init is ordered with", "barrier-not-initialized",
       "@%p0 mbarrier.init.shared::cta.b64 [full], 2;\n@%p0 fence.mbarrier_init.release.cluster;\n" + delay(50, "L") +
           "@%p2 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [data], [%inp], 16, [full]; // "
           "here\n@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;\n@%p0 mbarrier.arrive.shared::cta.b64 "
           "_, [full];\n" +
           only("%p0", "OUT", all)},
      {"two lanes issue it", "many-lanes-issue",
       init(2) +
           "setp.lt.u32 %p3, %t, 2;\n@%p3 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;\n@%p3 "
           "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [data], [%inp], 16, [full]; // here\n" +
           all},
      {"too many bytes announced, at the end", "tx-bytes-mismatch",
       init() + "@%p0 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [full], 32; // here\n"},
      {"too many bytes announced, and waited for", "tx-bytes-mismatch",
       init() + "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 32; // here\n" + kLoad + "\n" + all},
      {"an arrival that never comes", "arrival-count-mismatch",
       init(2) + "@%p0 mbarrier.arrive.shared::cta.b64 _, [full];\nW:\nmbarrier.try_wait.parity.shared::cta.b64 %p8, "
                 "[full], 0; // here\n@!%p8 bra W;\n"},
  });
}

TEST(CheckerTest, BulkStoresAndGroups) {
  const std::string write = "@%p2 st.shared.u32 [data], %r5;\n", fence = "@%p2 fence.proxy.async.shared::cta;\n",
                    bar = "bar.sync 0;\n";
  const std::string again = "@%p0 st.shared.u32 [data], %r5;\n",
                    again_here = "@%p0 st.shared.u32 [data], %r5; // here\n";
  const std::string second = "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%outp+16], [data+16], 16;\n";
  const std::string end = kWaitAll;
  expect_all({
      {"fence by the writer", "", write + fence + bar + kStore + "\n" + kCommit + kWaitRead},
      {"no fence", "missing-proxy-fence", write + bar + kStore + " // here\n" + kCommit + kWaitRead},
      {"fence before the write", "missing-proxy-fence",
       fence + write + bar + kStore + " // here\n" + kCommit + kWaitRead},
      {"fence of the other state space", "missing-proxy-fence",
       write + "@%p2 fence.proxy.async.global;\n" + bar + kStore + " // here\n" + kCommit + kWaitRead},
      {"a fence of all spaces", "", write + "@%p2 fence.proxy.async;\n" + bar + kStore + "\n" + kCommit + kWaitRead},
      {"fence by the issuing thread only", "proxy-fence-misplaced",
       write + bar + "@%p0 fence.proxy.async.shared::cta;\n" + kStore + " // here\n" + kCommit + kWaitRead},
      {"fence by a thread that is not on the path", "missing-proxy-fence",
       write + bar + "@%p1 fence.proxy.async.shared::cta;\n" + kStore + " // here\n" + kCommit + kWaitRead},
      {"its own write without a fence", "missing-proxy-fence", again + kStore + " // here\n" + kCommit + kWaitRead},
      {"a thread fence is no proxy fence", "missing-proxy-fence",
       write + "@%p2 fence.acq_rel.gpu;\n" + bar + kStore + " // here\n" + kCommit + kWaitRead},
      {"not ordered at all", "data-race",
       write +
           "@%p2 fence.proxy.async.shared::cta;\nmov.u32 %r9, 0;\nsetp.lt.u32 %p4, %t, 32;\n@!%p4 bra L2;\nL:\nadd.u32 "
           "%r9, %r9, 1;\nsetp.lt.u32 %p5, %r9, 200;\n@%p5 bra L;\nL2:\n" +
           kStore + " // here\n" + kCommit + kWaitRead},
      {"overwritten after the sources were read", "", kStore + "\n" + kCommit + kWaitRead + again},
      {"overwritten at once", "source-overwritten", kStore + "\n" + kCommit + again_here + end},
      {"overwritten by another, after a barrier only", "source-overwritten",
       kStore + "\n" + kCommit + bar + "@%p2 st.shared.u32 [data], %r5; // here\n" + end},
      {"overwritten by another, waited for and passed on", "", kStore + "\n" + kCommit + kWaitRead + bar + write},
      {"the depth leaves the older group", "",
       kStore + "\n" + kCommit + second + kCommit + "@%p0 cp.async.bulk.wait_group.read 1;\n" + again + kWaitRead},
      {"read again after .read", "", kStore + "\n" + kCommit + kWaitRead + "@%p0 ld.shared.u32 %r6, [data];\n"},
      {"the result, after the full wait", "",
       kStore + "\n" + kCommit + kWaitAll + "@%p0 ld.global.u32 %r6, [%outp];\n"},
      {"the result, not waited for", "async-read-before-complete",
       kStore + "\n" + kCommit + "@%p0 ld.global.u32 %r6, [%outp]; // here\n" + end},
      {"two stores to the same bytes", "data-race", kStore + "\n" + kStore + " // here\n" + kCommit + end},
      {"two reductions to the same bytes", "",
       "@%p0 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%outp], [data], 16;\n@%p0 "
       "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%outp], [data], 16;\n" +
           kCommit + kWaitRead},
      {"loaded over what a store still reads", "refill-before-release",
       init() + kStore + "\n" + kCommit + kArriveTx + kLoad + " // here\n" + wait("full", 0, "W") + end},
      {"loaded over ordinary writes without a fence", "missing-proxy-fence",
       init() + again + kArriveTx + kLoad + " // here\n" + wait("full", 0, "W")},
      {"loaded over ordinary reads needs no fence", "",
       init() + "@%p2 ld.shared.u32 %r6, [data];\nbar.sync 0;\n" + kArriveTx + kLoad + "\n" + wait("full", 0, "W")},
  });
}

// Somebody waited for groups, but not for these bytes: the wait's depth or kind is what is wrong.
TEST(CheckerTest, WaitsOfTheWrongDepthOrKind) {
  const std::string second = "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%outp+16], [data+16], 16;\n";
  expect_all({
      {"the depth leaves the younger group", "group-not-awaited",
       kStore + "\n" + kCommit + second + kCommit +
           "@%p0 cp.async.bulk.wait_group.read 1;\n@%p0 st.shared.u32 [data+16], %r5; // here\n" + kWaitRead},
      {"never committed", "group-not-awaited",
       kStore + "\n" + kWaitRead + "@%p0 st.shared.u32 [data], %r5; // here\n" + kCommit + kWaitAll},
      {"the result, after .read", "group-not-awaited",
       kStore + "\n" + kCommit + kWaitRead + "@%p0 ld.global.u32 %r6, [%outp]; // here\n" + kWaitAll},
      {"another thread's wait", "group-not-awaited",
       kStore + "\n" + kCommit +
           "bar.sync 0;\n@%p2 cp.async.bulk.wait_group 0;\n@%p2 st.shared.u32 [data], %r5; // here\n" + kWaitAll,
       1, false},
  });
  // What is said of reading the result is said of overwriting it.
  const std::string again = "@%p0 st.global.u32 [%outp], %r5;",
                    reduce = "@%p0 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%outp], [data], 16;\n";
  const std::string other = "@%p2 st.global.u32 [%outp], %r5;";
  expect_all({
      {"overwritten after .read", "group-not-awaited",
       kStore + "\n" + kCommit + kWaitRead + again + " // here\n" + kWaitAll},
      {"overwritten after the full wait", "", kStore + "\n" + kCommit + kWaitAll + again + "\n"},
      {"overwritten without a wait", "data-race", kStore + "\n" + kCommit + again + " // here\n" + kWaitAll},
      {"stored again after .read", "group-not-awaited",
       kStore + "\n" + kCommit + kWaitRead + kStore + " // here\n" + kCommit + kWaitAll},
      {"stored again after the full wait", "", kStore + "\n" + kCommit + kWaitAll + kStore + "\n" + kCommit + kWaitAll},
      {"reduced again after .read", "", reduce + kCommit + kWaitRead + reduce + kCommit + kWaitAll},
      {"overwritten by another, after .read and a barrier", "group-not-awaited",
       kStore + "\n" + kCommit + kWaitRead + "bar.sync 0;\n" + other + " // here\nbar.sync 0;\n" + kWaitAll},
      {"overwritten by another, after the full wait and a barrier", "",
       kStore + "\n" + kCommit + kWaitAll + "bar.sync 0;\n" + other + "\n"},
      {"overwritten by another who does not know of it: no wait would help", "data-race",
       kStore + "\n" + kCommit + kWaitRead + only("%p2", "E", delay(400, "D") + other + " // here\n") +
           "bar.sync 0;\n" + kWaitAll,
       1, false},
  });
}

// Bytes whose bit of .cp_mask is clear are not copied (PTX §9.7.9.25.4.1): whatever others do to them is no conflict.
TEST(CheckerTest, StoresOfChosenBytes) {
  const auto store = [](const std::string& guard, int mask, const char* behind = "\n") {
    return "mov.u16 %h1, " + std::to_string(mask) + ";\n" + guard +
           "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%outp], [data], 32, %h1;" + behind;
  };
  const std::string p0 = "@%p0 ", end = kCommit + kWaitAll;
  const std::string lanes =
      "setp.lt.u32 %p4, %t, 4;\nmov.u32 %r6, 0x1111;\nshl.b32 %r6, %r6, %t;\ncvt.u16.u32 %h1, %r6;\n";
  const std::string by_lanes = "@%p4 cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%outp], [data], 32, %h1;";
  const std::string lanes_end = "@%p4 cp.async.bulk.commit_group;\n@%p4 cp.async.bulk.wait_group 0;\n";
  expect_all({
      {"halves of each chunk", "", store(p0, 0x00ff) + store(p0, 0xff00) + end},
      {"bytes of each word", "", store(p0, 0x5a5a) + store(p0, 0xa5a5) + end},
      {"one byte in common", "data-race", store(p0, 0x00ff) + store(p0, 0xff80, " // here\n") + end},
      {"a masked copy and a whole one", "data-race", kStore + "\n" + store(p0, 0x8000, " // here\n") + end},
      {"no byte at all", "", kStore + "\n" + store(p0, 0) + end},
      {"two warps", "",
       store(p0, 0x00ff) + store("@%p2 ", 0xff00) + end +
           "@%p2 cp.async.bulk.commit_group;\n@%p2 cp.async.bulk.wait_group 0;\n"},
      {"lanes, each its bytes", "", lanes + by_lanes + "\n" + lanes_end},
      {"lanes, all the same bytes", "many-lanes-issue",
       lanes + "mov.u16 %h1, 0x1111;\n" + by_lanes + " // here\n" + lanes_end},
      {"a clear byte is written", "", store(p0, 0x7fff) + "@%p0 st.global.u8 [%outp+31], %r5;\n" + end},
      {"a copied byte is written", "data-race",
       store(p0, 0x7fff) + "@%p0 st.global.u8 [%outp+30], %r5; // here\n" + end},
      {"a clear byte is read", "", store(p0, 0xfffe) + "@%p0 ld.global.u8 %r6, [%outp+16];\n" + end},
      {"a copied byte is read", "async-read-before-complete",
       store(p0, 0x0001) + "@%p0 ld.global.u8 %r6, [%outp+16]; // here\n" + end},
      // The text says of the destination only what is copied: the source is taken as read whole.
      {"the source of a clear byte is written", "source-overwritten",
       store(p0, 0x0001) + "@%p0 st.shared.u8 [data+1], %r5; // here\n" + end},
  });
}

TEST(CheckerTest, CpAsync) {
  const std::string copy = "@%p0 cp.async.ca.shared.global [data], [%inp], 4;\n",
                    commit = "@%p0 cp.async.commit_group;\n", wait_own = "@%p0 cp.async.wait_group 0;\n";
  const std::string own = "@%p0 ld.shared.u32 %r6, [data];\n", other = "@%p2 ld.shared.u32 %r6, [data];\n";
  expect_all({
      {"wait_group, then its own read", "", copy + commit + wait_own + own},
      {"wait_all needs no commit", "", copy + "@%p0 cp.async.wait_all;\n" + own},
      {"no wait", "async-read-before-complete", copy + commit + "@%p0 ld.shared.u32 %r6, [data]; // here\n" + wait_own},
      {"passed on by a barrier", "", copy + commit + wait_own + "bar.sync 0;\n" + other},
      {"a barrier without a wait", "async-read-before-complete",
       copy + commit + "bar.sync 0;\n@%p2 ld.shared.u32 %r6, [data]; // here\n" + wait_own},
      {"a wait that is not passed on", "async-read-before-complete",
       copy + commit + wait_own +
           "mov.u32 %r9, 0;\nsetp.ge.u32 %p4, %t, 32;\n@!%p4 bra L2;\nL:\nadd.u32 %r9, %r9, 1;\nsetp.lt.u32 %p5, %r9, "
           "900;\n@%p5 bra L;\nL2:\n@%p2 ld.shared.u32 %r6, [data]; // here\n"},
      {"no proxy fence for what it reads or overwrites", "",
       "@%p0 st.shared.u32 [data], %r5;\n" + copy + commit + wait_own + own},
      {"over what another may be reading", "refill-before-release",
       other + delay(100, "D") +
           "@%p0 cp.async.ca.shared.global [data], [%inp], 4; // here\n@%p0 cp.async.wait_all;\n"},
  });
}

// Cases in which the checker and the reference of model_test.cc once disagreed.
TEST(CheckerTest, FoundByComparison) {
  const std::string copy = "@%p0 cp.async.ca.shared.global [data], [%inp], 4;\n";
  const std::string here = "@%p2 ld.shared.u32 %r6, [data]; // here\n", use = "@%p2 ld.shared.u32 %r6, [data];\n";
  const std::string relaxed = "@%p3 st.relaxed.gpu.global.u32 [%outp+128], %r5;\n";
  const std::string acquire = spin("ld.acquire.gpu.global.u32"), look = spin("ld.relaxed.gpu.global.u32");
  const std::string read = "ld.global.u32 %r7, [%outp];\n", read_here = "ld.global.u32 %r7, [%outp]; // here\n";
  expect_all({
      {"cp.async known complete by an mbarrier", "",
       init() + copy + "@%p0 cp.async.mbarrier.arrive.noinc.shared::cta.b64 [full];\n" + wait("full", 0, "W") + use},
      {"cp.async after the arrive", "async-read-before-complete",
       init() + "@%p0 cp.async.mbarrier.arrive.noinc.shared::cta.b64 [full];\n" + copy + wait("full", 0, "W") + here +
           "@%p0 cp.async.wait_all;\n"},
      {"a completion tells nothing of the thread", "data-race",
       init() + "@%p0 st.shared.u32 [data+64], %r5;\n" + copy +
           "@%p0 cp.async.mbarrier.arrive.noinc.shared::cta.b64 [full];\n" + wait("full", 0, "W") +
           "@%p2 ld.shared.u32 %r6, [data+64]; // here\n"},
      {"a fence of all lanes publishes each lane's own accesses", "data-race",
       init() + "@%p1 st.shared.u32 [data], %r5;\nfence.acq_rel.cta;\n" +
           "@%p0 mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [full];\n" + wait("full", 0, "W") + here},
      {"a fence of the block, across blocks", "scope-too-narrow",
       flag("fence.acq_rel.cta;\n" + relaxed, acquire, read_here, 1), 2},
      {"an acquire fence of the block, across blocks", "scope-too-narrow",
       flag("fence.acq_rel.gpu;\n" + relaxed, look, "fence.acq_rel.cta;\n" + read_here, 1), 2},
      {"fences of the device, across blocks", "",
       flag("fence.acq_rel.gpu;\n" + relaxed, look, "fence.acq_rel.gpu;\n" + read, 1), 2},
      {"fences of the block, within it", "",
       flag("fence.acq_rel.cta;\n" + relaxed, look, "fence.acq_rel.cta;\n" + read)},
      {"a release, then a relaxed store of the same thread", "",
       flag("@%p3 st.release.gpu.global.u32 [%outp+128], %r5;\n" + relaxed, acquire, read)},
      {"the bytes of a block that has ended", "source-overwritten",
       "setp.eq.and.u32 %p3, %c, 0, %p0;\nsetp.eq.and.u32 %p4, %c, 1, %p0;\n@%p3 mbarrier.init.shared::cta.b64 [full], "
       "1;\n@%p3 fence.mbarrier_init.release.cluster;\n@%p3 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], "
       "16;\n@%p3 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [data], [%outp], 16, [full];\n" +
           only("%p3", "OUT", wait("full", 0, "W")) +
           only("%p4", "OUT1", delay(3000, "D") + "st.global.u32 [%outp], %r5; // here\n"),
       2},
  });
}

TEST(CheckerTest, ADeadlockWhereNobodyArrivedSaysSo) {
  const Outcome o = run_checked({"nobody arrives", "", init() + wait("full", 0, "W")}, {});
  SCOPED_TRACE(async::testing::text_of(o) + o.body);
  ASSERT_FALSE(o.diagnostics.empty());
  EXPECT_EQ(o.diagnostics[0].id, "deadlock");
  EXPECT_EQ(o.diagnostics[0].hint, "Nobody has arrived on `full` in phase 0. Who should have, and what keeps them?");
}

/// A producer whose first wait for a free slot has parity 0, and its consumer.
TEST(CheckerTest, AFirstWaitForAFreeSlotIsExplained) {
  const auto ring = [](int parity) {
    return Case{"ring of one", "",
                init() +
                    only("%p0", "A", wait("empty", parity, "A0") + "mbarrier.arrive.shared::cta.b64 _, [full];\n") +
                    only("%p2", "B", wait("full", 0, "B0") + "mbarrier.arrive.shared::cta.b64 _, [empty];\n")};
  };
  EXPECT_TRUE(run_checked(ring(1), {}).diagnostics.empty());
  const Outcome o = run_checked(ring(0), {});
  SCOPED_TRACE(async::testing::text_of(o) + o.body);
  ASSERT_FALSE(o.diagnostics.empty());
  EXPECT_EQ(o.diagnostics[0].id, "deadlock");
  EXPECT_NE(o.diagnostics[0].hint.find("Nobody has arrived on `empty` in phase 0"), std::string::npos);
  EXPECT_NE(o.diagnostics[0].hint.find("Nobody on `full` either, for which kernel.cu:"), std::string::npos);
  EXPECT_NE(o.diagnostics[0].hint.find("parity 1 of a fresh barrier returns at once"), std::string::npos);
}

/// Threads 0 and 32 are to arrive, and thread 32 does not; the block meets behind the wait, or before the arrive.
TEST(CheckerTest, WhoIsHeldInABarrierCannotArrive) {
  const std::string arrive = "mbarrier.arrive.shared::cta.b64 _, [full];\n";
  const auto first = [](const std::string& text) {
    const Outcome o = run_checked({"", "", text}, {});
    return o.diagnostics.empty() ? std::string() : o.diagnostics[0].id;
  };
  const std::string start = init(2) + "@%p0 " + arrive, first_waits = only("%p0", "A", wait("full", 0, "A0"));
  EXPECT_EQ(first(start + first_waits + "bar.sync 0;\n"), "arrival-count-mismatch");
  EXPECT_EQ(first(start + "@%p2 " + arrive + first_waits + "bar.sync 0;\n"), "");
  EXPECT_EQ(first(start + first_waits + "bar.sync 0;\n@%p2 " + arrive), "deadlock");
}

/// Thread 0 signals `full` and thread 32 `empty`, each once; then each waits for the other's second signal before it
/// gives its own.
TEST(CheckerTest, ACycleOfBarriersIsPrinted) {
  const std::string signal_full = "mbarrier.arrive.shared::cta.b64 %rd5, [full];\n",
                    signal_empty = "mbarrier.arrive.shared::cta.b64 %rd5, [empty];\n";
  const Case c{"each waits for the other", "",
               init() + only("%p0", "A", signal_full + wait("empty", 0, "A0") + wait("empty", 1, "A1") + signal_full) +
                   only("%p2", "B", signal_empty + wait("full", 0, "B0") + wait("full", 1, "B1") + signal_empty)};
  const Outcome o = run_checked(c, {});
  SCOPED_TRACE(async::testing::text_of(o) + o.body);
  ASSERT_FALSE(o.diagnostics.empty());
  EXPECT_EQ(o.diagnostics[0].id, "deadlock");
  const auto cycle =
      std::find_if(o.state.begin(), o.state.end(), [](const std::string& l) { return l.starts_with("cycle: "); });
  ASSERT_NE(cycle, o.state.end());
  EXPECT_NE(cycle->find("`full` misses an arrival of warp 0 lane 0, who wait for `empty`"), std::string::npos)
      << *cycle;
  EXPECT_NE(cycle->find("`empty` misses an arrival of warp 1 lane 0, who wait for `full`"), std::string::npos)
      << *cycle;
}

}  // namespace
}  // namespace handoff::check::testing
