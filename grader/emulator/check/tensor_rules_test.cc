// The checker's rules for tensor memory and for the operands of MMAs: each with the smallest kernel that breaks it and
// the smallest that does not.
//
// A block has four warps, one for each quarter of the lanes. Thread 0 is %p0, thread 1 %p1 and their warp %p3; thread
// 32 is %p2 and its warp %p4; thread 64 is %p9. 64 columns start at %r10; %r11 is the same address in the warp's own
// quarter. An MMA multiplies `tile`, as a 128×8 matrix of tf32, by its own first 16 rows, so D takes 16 columns; a
// thread's row of `tile` is the 16 bytes at %r20 and the 16 bytes 2048 further. The barrier `all` counts 32 arrivals,
// the others one. A case names the diagnosis that must come first, at the line marked `// here`; "" means that nothing
// may be said, not even a warning.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "grader/emulator/async/testing.h"
#include "grader/emulator/check/checker.h"

namespace handoff::check::testing {
namespace {

using async::testing::Kernel;
using async::testing::Outcome;
using machine::Schedule;

/// On which schedules a case holds: which of two unordered accesses comes first may depend on them.
enum class On : uint8_t { Every, Nominal };

struct Case {
  const char* name;
  std::string id;  ///< "": silent
  std::string body;
  On on = On::Every;
  Severity severity = Severity::Error;
  const char* says = "";  ///< part of the message
};

Outcome run_checked(const Case& c, const Schedule& schedule) {
  Checker checker;
  Kernel k;
  k.shared = ".shared .align 128 .b8 tile[4096];\n.shared .align 4 .b32 slot;\n";
  for (const char* barrier : {"full", "empty", "done", "other", "all"})
    k.shared += ".shared .align 8 .b64 " + std::string(barrier) + ";\n";
  k.block = {128, 1, 1};
  k.in.assign(1024, 0x3f800000);  // 1.0f
  k.schedule = schedule;
  k.observer = &checker;
  k.progress_budget = 1'000'000;
  k.body = "\n.reg .b32 %v<16>;\n" + c.body;
  return async::testing::run(k);
}

void expect_all(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    for (const Schedule& schedule : async::testing::schedules(2)) {
      if (c.on == On::Nominal && schedule.kind != Schedule::Kind::Nominal) continue;
      const Outcome o = run_checked(c, schedule);
      SCOPED_TRACE(std::string(c.name) + ", " + to_string(schedule) + "\n" + async::testing::text_of(o) + o.body);
      if (c.id.empty()) {
        EXPECT_TRUE(o.ok());
        continue;
      }
      EXPECT_FALSE(o.diagnostics.empty());
      if (o.diagnostics.empty()) continue;
      EXPECT_EQ(o.diagnostics[0].id, c.id);
      EXPECT_EQ(o.diagnostics[0].place.line, async::testing::line_of(o.body, "// here"));
      EXPECT_EQ(o.diagnostics[0].severity, c.severity);
      EXPECT_NE(o.diagnostics[0].message.find(c.says), std::string::npos);
    }
  }
}

// --- pieces of kernels -----------------------------------------------------------------------------------------------

/// The line that a diagnosis must name.
std::string here(std::string line) {
  line.pop_back();
  return line + " // here\n";
}

/// Only the threads whose predicate is `p` execute `text`; `label` is unique.
std::string only(const std::string& p, const std::string& label, const std::string& text) {
  return "@!" + p + " bra " + label + ";\n" + text + label + ":\n";
}

/// Whoever comes here waits for a phase of this parity.
std::string wait(const std::string& barrier, int parity, const std::string& label, const std::string& sem = "") {
  return label + ":\nmbarrier.try_wait.parity" + sem + ".shared::cta.b64 %p8, [" + barrier + "], " +
         std::to_string(parity) + ";\n@!%p8 bra " + label + ";\n";
}

std::string arrive(const std::string& barrier, const std::string& sem = "") {
  return "mbarrier.arrive" + sem + ".shared::cta.b64 _, [" + barrier + "];\n";
}

/// Takes its time.
std::string delay(const std::string& label) {
  return "mov.u32 %r9, 0;\n" + label + ":\nadd.u32 %r9, %r9, 1;\nsetp.lt.u32 %p5, %r9, 2000;\n@%p5 bra " + label +
         ";\n";
}

const std::string kBar = "bar.sync 0;\n";
const std::string kBefore = "tcgen05.fence::before_thread_sync;\n", kAfter = "tcgen05.fence::after_thread_sync;\n";
const std::string kWaitLoad = "tcgen05.wait::ld.sync.aligned;\n", kWaitStore = "tcgen05.wait::st.sync.aligned;\n";
const std::string kProxyFence = "fence.proxy.async.shared::cta;\n";
const std::string kUse = "add.u32 %v9, %v0, 1;\n";

/// Columns of the warp's own quarter, from `column` on.
///@{
std::string load(int column = 0) {
  return "tcgen05.ld.sync.aligned.32x32b.x8.b32 {%v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7}, [%r11+" +
         std::to_string(column) + "];\n";
}
std::string store(int column = 0) {
  return "tcgen05.st.sync.aligned.32x32b.x8.b32 [%r11+" + std::to_string(column) +
         "], {%r5, %r5, %r5, %r5, %r5, %r5, %r5, %r5};\n";
}
///@}

const std::string kSmall = "%r12", kLarge = "%r13";  // N = 16 and 32
/// D = A·B, or D += A·B if `add`; D is at `column`.
std::string mma(int column = 0, bool add = false, const std::string& shape = kSmall, const std::string& a = "%rd5") {
  return "tcgen05.mma.cta_group::1.kind::tf32 [%r10+" + std::to_string(column) + "], " + a + ", %rd5, " + shape +
         (add ? ", %p15;\n" : ", %p14;\n");
}
std::string mma_with_a_at(int a, int column) { return mma(column, false, kSmall, "[%r10+" + std::to_string(a) + "]"); }
std::string commit(const std::string& barrier = "done") {
  return "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [" + barrier + "];\n";
}

const std::string kPublish = "@%p0 fence.mbarrier_init.release.cluster;\n";
/// Predicates and constants, barriers, 64 columns.
std::string begin() {
  // PTX ISA 9.1, §9.7.16.4.2: D is f32, A and B are tf32; N / 8 and M / 16. §9.7.16.4.1: start, leading (2048) and
  // stride (128) byte offset in units of 16, and the constant.
  const uint32_t types = 1u << 4 | 2u << 7 | 2u << 10 | 128u / 16 << 24;
  std::string s =
      "setp.eq.u32 %p0, %t, 0;\nsetp.eq.u32 %p1, %t, 1;\nsetp.eq.u32 %p9, %t, 64;\nsetp.eq.u32 %p2, %t, "
      "32;\nsetp.eq.u32 %p3, %w, 0;\nsetp.eq.u32 %p4, %w, "
      "1;\nsetp.ne.u32 "
      "%p14, 0, 0;\nsetp.eq.u32 %p15, 0, 0;\nmov.u32 %r5, 0;\nmov.u32 %r6, 0x3f800000;\nmov.u32 %r12, " +
      std::to_string(types | 16u / 8 << 17) + ";\nmov.u32 %r13, " + std::to_string(types | 32u / 8 << 17) +
      ";\nmov.u32 %r20, tile;\nshr.u32 %r21, %r20, 4;\ncvt.u64.u32 %rd5, %r21;\nor.b64 %rd5, %rd5, " +
      std::to_string(uint64_t{2048 / 16} << 16 | uint64_t{128 / 16} << 32 | uint64_t{1} << 46) +
      ";\nshl.b32 %r21, %t, 4;\nadd.u32 %r20, %r20, %r21;\n";
  for (const char* barrier : {"full", "empty", "done", "other", "all"}) {
    s += "@%p0 mbarrier.init.shared::cta.b64 [" + std::string(barrier) + "], " +
         (barrier == std::string("all") ? "32" : "1") + ";\n";
  }
  return s + kPublish + only("%p3", "ALLOC", "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;\n");
}
const std::string kFirstHalf = "st.shared.v4.u32 [%r20], {%r6, %r6, %r6, %r6};\n",
                  kSecondHalf = "st.shared.v4.u32 [%r20+2048], {%r6, %r6, %r6, %r6};\n";
const std::string kFill = kFirstHalf + kSecondHalf;
const std::string kAddress = "ld.shared.u32 %r10, [slot];\nshl.b32 %r11, %w, 21;\nadd.u32 %r11, %r11, %r10;\n";
/// The block joins, and all know the columns.
const std::string kJoin = kBar + kAddress;
/// begin(), and the operands are there.
std::string ready() { return begin() + kFill + kProxyFence + kJoin; }

/// Thread 0 issues an MMA and its commit.
std::string issue() { return only("%p0", "ISSUED", mma() + commit()); }
std::string dealloc() { return "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 64;\n"; }
/// The warps join, and warp 0 frees the columns.
std::string finish() { return kBefore + kBar + kAfter + only("%p3", "FREED", dealloc()); }

// --- results ---------------------------------------------------------------------------------------------------------

TEST(TensorRulesTest, AResultIsThereWhenItsCommitWasObserved) {
  const std::string begun = ready() + issue(), read = load() + kWaitLoad, read_here = here(load()) + kWaitLoad;
  const std::string late = wait("done", 0, "LATE") + kAfter + finish();
  const std::string one_waits = only("%p0", "SEEN", wait("done", 0, "W"));
  expect_all({
      {"observed", "", begun + wait("done", 0, "W") + kAfter + read + finish()},
      {"not observed at all", "mma-result-unobserved", begun + read_here + late},
      {"read before it was issued", "mma-result-unobserved",
       ready() + only("%p4", "READ", read_here) + only("%p0", "ISSUED", delay("D") + mma() + commit()) + late,
       On::Nominal},
      {"only its issue is ordered before", "mma-result-unobserved", begun + kBefore + kBar + kAfter + read_here + late},
      {"a wait that asks once", "missing-retry-loop",
       begun + here("mbarrier.try_wait.parity.shared::cta.b64 %p8, [done], 0;\n") + kAfter + read + delay("D") + late,
       On::Nominal},
      {"no fence behind the wait", "missing-tcgen05-fence", begun + wait("done", 0, "W") + read_here + finish()},
      {"no fence, and the issuer's wait for an empty stage was satisfied by a fresh barrier", "missing-tcgen05-fence",
       ready() + only("%p0", "ISSUED", wait("empty", 1, "E") + mma() + commit("empty") + commit("done")) +
           wait("done", 0, "W") + read_here + finish()},
      {"committed ahead of the last MMA, by a thread that found a fresh stage empty", "mma-result-unobserved",
       ready() + only("%p0", "ISSUED", wait("empty", 1, "E") + commit("done") + mma() + commit("empty")) +
           wait("done", 0, "W") + kAfter + read_here + wait("empty", 0, "LATE") + finish()},
      {"the fence before the wait", "missing-tcgen05-fence",
       begun + kAfter + wait("done", 0, "W") + read_here + finish()},
      {"the other fence", "missing-tcgen05-fence", begun + wait("done", 0, "W") + kBefore + read_here + finish()},
      {"a relaxed wait and the fence", "", begun + wait("done", 0, "W", ".relaxed.cluster") + kAfter + read + finish()},
      {"a relaxed wait without it", "missing-tcgen05-fence",
       begun + wait("done", 0, "W", ".relaxed.cluster") + read_here + finish()},
      {"observed by another thread, which tells", "", begun + one_waits + kBar + kAfter + read + finish()},
      {"and the reader has no fence", "missing-tcgen05-fence", begun + one_waits + kBar + read_here + finish()},
      {"and only the other thread has one", "missing-tcgen05-fence",
       begun + only("%p0", "SEEN", wait("done", 0, "W") + kAfter + kBefore) + kBar + read_here + finish()},
      {"and the reader's is before the barrier", "missing-tcgen05-fence",
       begun + one_waits + kAfter + kBar + read_here + finish()},
      {"observed by another thread, which does not tell", "mma-result-unobserved",
       begun + kBar + one_waits + only("%p4", "READ", kAfter + read_here) + late},
      {"one lane observed it and told its warp", "",
       begun + one_waits + "bar.warp.sync 0xffffffff;\n" + kAfter + only("%p3", "READ", read) + late},
      {"one lane observed it and did not tell its warp", "mma-result-unobserved",
       begun + one_waits + kAfter + only("%p3", "READ", read_here) + late},
      {"a commit from before the MMA", "mma-result-unobserved",
       ready() + only("%p0", "ISSUED", commit() + mma() + commit("other")) + wait("done", 0, "W") + kAfter + read_here +
           wait("other", 0, "LATE") + kAfter + finish()},
  });
}

TEST(TensorRulesTest, ACommitCoversWhatItsThreadIssuedBefore) {
  const std::string two = ready() + only("%p0", "ISSUED", mma(0) + commit("done") + mma(16) + commit("other"));
  const std::string wait_first = wait("done", 0, "W1") + kAfter, wait_second = wait("other", 0, "W2") + kAfter;
  std::string unpublished = begin();
  unpublished.erase(unpublished.find(kPublish), kPublish.size());
  const std::string zero_trips = only("%p0", "NONE", commit());
  expect_all({
      {"each result behind its own commit", "",
       two + wait_first + load(0) + kWaitLoad + wait_second + load(16) + kWaitLoad + finish()},
      {"both behind the second commit", "", two + wait_second + load(0) + load(16) + kWaitLoad + finish()},
      {"a second commit covers what the first did", "",
       ready() + only("%p0", "ISSUED", mma() + commit("done") + commit("other")) + wait_second + load() + kWaitLoad +
           finish()},
      {"the second behind the first commit", "mma-result-unobserved",
       two + wait_first + load(0) + here(load(16)) + kWaitLoad + wait_second + finish()},
      {"committed by another thread", "commit-tracks-nothing",
       ready() + only("%p0", "ISSUED", mma() + commit("other")) + kBar + only("%p2", "COMMITTED", here(commit())) +
           wait("done", 0, "W") + kAfter + load() + kWaitLoad + wait_second + finish()},
      {"committed by another lane", "commit-tracks-nothing",
       ready() + only("%p0", "ISSUED", mma() + commit("other")) + kBar + only("%p1", "COMMITTED", here(commit())) +
           wait("done", 0, "W") + kAfter + load() + kWaitLoad + wait_second + finish()},
      {"in the second round of a loop, the MMA in the first", "commit-tracks-nothing",
       ready() + "mov.u32 %r8, 0;\nLOOP:\n" + only("%p2", "COMMITTED", here(commit())) +
           "W:\nmbarrier.try_wait.parity.shared::cta.b64 %p8, [done], %r8;\n@!%p8 bra W;\nbar.sync "
           "0;\nsetp.eq.and.u32 %p11, %r8, 0, %p0;\n" +
           only("%p11", "ISSUED", mma() + commit("other")) +
           "bar.sync 0;\nadd.u32 %r8, %r8, 1;\nsetp.lt.u32 %p10, %r8, 2;\n@%p10 bra LOOP;\n" + kAfter + load() +
           kWaitLoad + wait_second + finish()},
      {"to a barrier that was not made visible", "",
       unpublished + kJoin + only("%p0", "NONE", commit()) + wait_first + finish()},
      {"to a barrier whose init is not ordered before", "barrier-not-initialized",
       begin() + only("%p2", "NONE", delay("D") + here(commit())) + kJoin + wait_first + finish(), On::Nominal},
      {"another thread's empty commit is waited for too", "",
       ready() + only("%p0", "ISSUED", mma() + commit("other")) + only("%p2", "COMMITTED", commit()) +
           wait("done", 0, "W") + wait_second + load() + kWaitLoad + finish()},
      {"the commit of a loop that ran zero times", "", ready() + zero_trips + wait("done", 0, "W") + kAfter + finish()},
      {"and another lane that has observed it issues an MMA", "mma-result-unobserved",
       ready() + only("%p1", "NONE", commit()) + wait("done", 0, "W") + only("%p0", "ISSUED", mma() + commit()) + kBar +
           kAfter + here(load()) + kWaitLoad + wait("done", 1, "LATE") + kAfter + finish()},
      {"and another thread that has observed it issues an MMA", "mma-result-unobserved",
       ready() + only("%p2", "NONE", commit()) + wait("done", 0, "W") + only("%p0", "ISSUED", mma() + commit()) + kBar +
           kAfter + here(load()) + kWaitLoad + wait("done", 1, "LATE") + kAfter + finish()},
      {"and is over when another thread issues an MMA", "mma-result-unobserved",
       ready() + only("%p2", "NONE", commit()) + wait("done", 0, "W") + kBar + only("%p0", "ISSUED", mma() + commit()) +
           kBar + kAfter + here(load()) + kWaitLoad + wait("done", 1, "LATE") + kAfter + finish()},
      {"and an MMA of the same thread in the next phase", "",
       ready() + zero_trips + wait("done", 0, "W") + kBar + kAfter + only("%p0", "ISSUED", mma() + commit()) +
           wait("done", 1, "W1") + kAfter + load() + kWaitLoad + finish()},
  });
}

TEST(TensorRulesTest, AForgottenCommitIsNamedInTheDeadlock) {
  const Case c{"", "", ready() + only("%p0", "ISSUED", here(mma())) + wait("done", 0, "W") + kAfter + finish()};
  const Outcome o = run_checked(c, {Schedule::Kind::Nominal, 0});
  ASSERT_FALSE(o.diagnostics.empty()) << async::testing::text_of(o);
  const Diagnostic& d = o.diagnostics[0];
  EXPECT_EQ(d.id, "deadlock");
  EXPECT_NE(d.hint.find("No tcgen05.commit follows the MMA"), std::string::npos) << d.hint;
  ASSERT_FALSE(d.related.empty());
  EXPECT_EQ(d.related.back().place.line, async::testing::line_of(o.body, "// here"));
}

TEST(TensorRulesTest, MmasOfOneAccumulatorAreOrderedInTheirThread) {
  const auto pair = [](const std::string& second) {
    return ready() + only("%p0", "ISSUED", mma() + second + commit()) + wait("done", 0, "LATE") + kAfter + finish();
  };
  const std::string observe = commit("other") + wait("other", 0, "W");
  const auto other_thread = [](const std::string& sync, const std::string& second) {
    return ready() + issue() + kBar + only("%p2", "SECOND", sync + second + commit("other")) + wait("done", 0, "LATE") +
           wait("other", 0, "LAST") + kAfter + finish();
  };
  expect_all({
      {"one accumulator", "", pair(mma(0, true) + mma(0, true))},
      {"two accumulators", "", pair(mma(16))},
      {"another shape over the same columns", "mma-result-unobserved", pair(here(mma(0, false, kLarge)))},
      {"the same shape half over it", "mma-result-unobserved", pair(here(mma(8)))},
      {"another shape elsewhere", "", pair(mma(16, false, kLarge))},
      {"another shape, and the first was observed", "", pair(observe + kAfter + mma(0, false, kLarge))},
      {"observed without a fence", "missing-tcgen05-fence", pair(observe + here(mma(0, false, kLarge)))},
      {"the first one's D is the second one's A", "", pair(mma_with_a_at(0, 32))},
      {"the first one's A is overwritten by the second", "", pair(mma_with_a_at(0, 32) + mma())},
      {"another thread", "mma-result-unobserved", other_thread("", here(mma()))},
      {"another thread that has waited", "", other_thread(wait("done", 0, "W") + kAfter, mma())},
      {"and has no fence", "missing-tcgen05-fence", other_thread(wait("done", 0, "W"), here(mma()))},
      {"another thread, other columns", "", other_thread("", mma(16))},
      {"several lanes", "many-lanes-issue",
       ready() + only("%p3", "ISSUED", here(mma())) + only("%p0", "COMMITTED", commit()) + delay("D") +
           wait("done", 0, "LATE") + kAfter + finish()},
  });
}

// §9.7.16.6.3: a pipeline across threads, behind fences in both of them, and no commit in between.
TEST(TensorRulesTest, MmasOfOneAccumulatorAreOrderedAcrossThreads) {
  // Thread 0 issues `first`, thread 32 `second`, of which alone a commit is awaited.
  const auto pair = [](const std::string& first, const std::string& before, const std::string& after,
                       const std::string& second, const std::string& rest) {
    return ready() + only("%p0", "FIRST", first + before) + kBar + only("%p2", "SECOND", after + second + commit()) +
           wait("done", 0, "W") + kAfter + rest;
  };
  const std::string read = load() + kWaitLoad, add = mma(0, true), add_here = here(mma(0, true)),
                    finish_here = kBefore + kBar + kAfter + only("%p3", "FREED", here(dealloc()));
  expect_all({
      {"both fences", "", pair(mma(), kBefore, kAfter, add, read + finish())},
      {"a relaxed signal between them", "",
       ready() + only("%p0", "FIRST", mma() + kBefore + arrive("other", ".relaxed.cluster")) +
           only("%p2", "SECOND", wait("other", 0, "V", ".relaxed.cluster") + kAfter + add + commit()) +
           wait("done", 0, "W") + kAfter + read + finish()},
      {"back and forth", "",
       ready() + only("%p0", "FIRST", mma() + kBefore) + kBar + only("%p2", "SECOND", kAfter + add + kBefore) + kBar +
           only("%p0", "THIRD", kAfter + add + kBefore) + kBar + only("%p2", "LAST", kAfter + add + commit()) +
           wait("done", 0, "W") + kAfter + read + finish()},
      {"no fence before", "missing-tcgen05-fence", pair(mma(), "", kAfter, add_here, finish()), On::Every,
       Severity::Error, "without tcgen05.fence::before_thread_sync"},
      {"the fence before in front of the MMA", "missing-tcgen05-fence",
       ready() + only("%p0", "FIRST", kBefore + mma()) + kBar + only("%p2", "SECOND", kAfter + add_here + commit()) +
           wait("done", 0, "W") + kAfter + finish()},
      {"no fence after", "missing-tcgen05-fence", pair(mma(), kBefore, "", add_here, finish()), On::Every,
       Severity::Error, "without tcgen05.fence::after_thread_sync"},
      {"the fence after before the signal", "missing-tcgen05-fence",
       ready() + only("%p0", "FIRST", mma() + kBefore) + only("%p2", "EARLY", kAfter) + kBar +
           only("%p2", "SECOND", add_here + commit()) + wait("done", 0, "W") + kAfter + finish()},
      {"another shape", "mma-result-unobserved", pair(mma(), kBefore, kAfter, here(mma(0, false, kLarge)), finish())},
      {"another accumulator, half over it", "mma-result-unobserved",
       pair(mma(), kBefore, kAfter, here(mma(8)), finish())},
      {"the first one's D is the second one's A", "mma-result-unobserved",
       pair(mma(), kBefore, kAfter, here(mma_with_a_at(0, 32)), finish())},
      {"no signal between them", "mma-result-unobserved",
       ready() + only("%p0", "FIRST", mma() + commit("other") + kBefore) +
           only("%p2", "SECOND", delay("D") + kAfter + add_here + commit()) + wait("done", 0, "W") +
           wait("other", 0, "V") + kAfter + finish(),
       On::Nominal},
      {"the operands of both are free when the second is over", "",
       pair(mma(), kBefore, kAfter, add, kBar + kFill + finish())},
      {"an MMA that no pipeline joins to the second is not over with it", "tmem-freed-early",
       pair(mma(16) + mma(), kBefore, kAfter, add, finish_here)},
      {"nor are its operands free", "source-overwritten",
       pair(mma() + mma(16), kBefore, kAfter, add, kBar + here(kFirstHalf) + finish())},
  });
}

// --- readers and writers of columns ----------------------------------------------------------------------------------

// Warp 1 reads what thread 0 overwrites.
TEST(TensorRulesTest, AnAccumulatorIsOverwrittenWhenItsReadersAreDone) {
  const auto hand_back = [](const std::string& reader, const std::string& issuer, const std::string& second) {
    return ready() + issue() + only("%p4", "READ", wait("done", 0, "W") + kAfter + reader) +
           only("%p0", "AGAIN", wait("done", 0, "V") + issuer + second + commit("other")) + wait("other", 0, "LATE") +
           kAfter + finish();
  };
  const std::string wait_all = wait("all", 0, "E"), wait_one = wait("empty", 0, "E");
  const std::string again = mma(), again_here = here(mma());
  const std::string elected = only("%p2", "ELECTED", arrive("empty"));
  expect_all({
      {"wait::ld, the fences and the barrier", "",
       hand_back(load() + kWaitLoad + kBefore + arrive("all"), wait_all + kAfter, again)},
      {"nothing orders them", "accumulator-overwritten", hand_back(load() + kWaitLoad, delay("D") + kAfter, again_here),
       On::Nominal},
      {"it arrives before it reads", "accumulator-overwritten",
       hand_back(kBefore + arrive("all") + load() + kWaitLoad, wait_all + delay("D") + kAfter, again_here),
       On::Nominal},
      {"it arrives between ld and wait::ld", "missing-tcgen05-wait",
       hand_back(load() + kBefore + arrive("all") + kWaitLoad + kUse, wait_all + kAfter, again_here)},
      {"and has used a register before", "missing-tcgen05-wait",
       hand_back(load() + here(kUse) + kBefore + arrive("all") + kWaitLoad, wait_all + kAfter, again)},
      {"it arrives before the last of two loads is waited for", "missing-tcgen05-wait",
       hand_back(load() + kWaitLoad + load() + kBefore + arrive("all") + kWaitLoad, wait_all + kAfter, again_here)},
      {"no fence::before", "missing-tcgen05-fence",
       hand_back(load() + kWaitLoad + arrive("all"), wait_all + kAfter, again_here), On::Every, Severity::Error,
       "fence::before_thread_sync by that warp"},
      {"fence::before in front of wait::ld", "missing-tcgen05-fence",
       hand_back(load() + kBefore + kWaitLoad + arrive("all"), wait_all + kAfter, again_here), On::Every,
       Severity::Error, "fence::before_thread_sync by that warp"},
      {"no fence::after", "missing-tcgen05-fence",
       hand_back(load() + kWaitLoad + kBefore + arrive("all"), wait_all, again_here), On::Every, Severity::Error,
       "fence::after_thread_sync behind"},
      {"fence::after in front of the wait", "missing-tcgen05-fence",
       hand_back(load() + kWaitLoad + kBefore + arrive("all"), kAfter + wait_all, again_here), On::Every,
       Severity::Error, "fence::after_thread_sync behind"},
      {"passed on by a thread that has no fences", "",
       ready() + issue() +
           only("%p4", "READ", wait("done", 0, "W") + kAfter + load() + kWaitLoad + kBefore + arrive("all")) +
           only("%p9", "PASSED", wait_all + arrive("empty")) +
           only("%p0", "AGAIN", wait("empty", 0, "V") + kAfter + again + commit("other")) + wait("other", 0, "LATE") +
           kAfter + finish()},
      {"relaxed signals between the fences", "",
       hand_back(load() + kWaitLoad + kBefore + arrive("all", ".relaxed.cta"),
                 wait("all", 0, "E", ".relaxed.cta") + kAfter, again)},
      {"one elected lane arrives", "", hand_back(load() + kWaitLoad + kBefore + elected, wait_one + kAfter, again)},
      {"and only it has the fence", "",
       hand_back(load() + kWaitLoad + only("%p2", "ELECTED", kBefore + arrive("empty")), wait_one + kAfter, again)},
      {"one elected lane arrives before wait::ld", "missing-tcgen05-wait",
       hand_back(load() + kBefore + elected + kWaitLoad, wait_one + kAfter, again_here)},
      {"other columns", "", hand_back(load() + kWaitLoad, kAfter, mma(16))},
  });
}

TEST(TensorRulesTest, AWarpOverwritesWhatItHasRead) {
  const std::string seen = ready() + issue() + wait("done", 0, "W") + kAfter;
  const std::string again = only("%p0", "AGAIN", mma() + commit("other")),
                    again_here = only("%p0", "AGAIN", here(mma()) + commit("other"));
  const std::string read = only("%p3", "READ", load() + kWaitLoad), hasty = only("%p3", "READ", load());
  const std::string end = wait("other", 0, "LATE") + kAfter + finish();
  const std::string stored = store() + kWaitStore + finish();
  expect_all({
      {"an MMA after wait::ld needs no fence", "", seen + read + again + end},
      {"an MMA without it", "missing-tcgen05-wait", seen + hasty + again_here + kWaitLoad + end},
      {"a store after wait::ld", "", seen + load() + kWaitLoad + stored},
      {"a store without it", "missing-tcgen05-wait", seen + load() + here(store()) + kWaitStore + kWaitLoad + finish()},
      {"wait::st is not wait::ld", "missing-tcgen05-wait",
       seen + load() + kWaitStore + here(store()) + kWaitStore + kWaitLoad + finish()},
      {"a store to other columns", "", seen + load() + store(8) + kWaitStore + kWaitLoad + finish()},
      {"registers used before wait::ld", "", seen + load() + kUse + kWaitLoad + finish()},
      {"used, waited for, overwritten", "", seen + load() + kUse + kWaitLoad + stored},
      {"used and overwritten without a wait", "missing-tcgen05-wait",
       seen + load() + here(kUse) + store() + kWaitStore + kWaitLoad + finish()},
      {"a copy of a register used", "missing-tcgen05-wait",
       seen + load() + "mov.b32 %r30, %v3;\n" + here("add.u32 %r31, %r30, 1;\n") + store() + kWaitStore + kWaitLoad +
           finish()},
      {"a register left out is none that could be used", "missing-tcgen05-wait",
       seen + "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%v0, _}, [%r11];\nadd.u64 %rd9, %outp, 4;\n" + here(store()) +
           kWaitStore + kWaitLoad + finish()},
      {"used, never waited for, freed", "missing-tcgen05-wait", seen + load() + here(kUse) + finish()},
  });
}

TEST(TensorRulesTest, StoresAreWaitedForByTheirWarp) {
  const std::string read = load() + kWaitLoad, read_here = here(load()) + kWaitLoad;
  expect_all({
      {"wait::st, then ld", "", ready() + store() + kWaitStore + read + finish()},
      {"no wait", "missing-tcgen05-wait", ready() + store() + read_here + kWaitStore + finish()},
      {"wait::ld is not wait::st", "missing-tcgen05-wait",
       ready() + store() + kWaitLoad + read_here + kWaitStore + finish()},
      {"the wait for the store before it", "missing-tcgen05-wait",
       ready() + store() + kWaitStore + store(0) + read_here + kWaitStore + finish()},
      {"two stores to the same columns", "missing-tcgen05-wait",
       ready() + store() + here(store()) + kWaitStore + finish()},
      {"two stores side by side", "", ready() + store() + store(8) + kWaitStore + finish()},
  });
}

// All warps store A at column 32; thread 0 multiplies it.
TEST(TensorRulesTest, AnOperandInTensorMemory) {
  const auto handed = [](const std::string& writers, const std::string& issuer, const std::string& product) {
    return ready() + store(32) + writers + only("%p0", "ISSUED", issuer + product + commit()) +
           wait("done", 0, "LATE") + kAfter + finish();
  };
  const std::string product = mma_with_a_at(32, 0), product_here = here(product);
  const auto reuse = [&](const std::string& between, const std::string& second) {
    return ready() + store(32) + kWaitStore + kBefore + kBar + only("%p0", "ISSUED", kAfter + product + commit()) +
           between + second + kWaitStore + wait("done", 0, "LATE") + kAfter + finish();
  };
  expect_all({
      {"wait::st, the fences and the barrier", "", handed(kWaitStore + kBefore + kBar, kAfter, product)},
      {"no wait::st", "missing-tcgen05-wait", handed(kBefore + kBar, kAfter, product_here)},
      {"no fence::before", "missing-tcgen05-fence", handed(kWaitStore + kBar, kAfter, product_here)},
      {"no fence::after", "missing-tcgen05-fence", handed(kWaitStore + kBefore + kBar, "", product_here)},
      {"no barrier", "data-race", handed(kWaitStore + kBefore, delay("D") + kAfter, product_here), On::Nominal},
      {"never written", "tmem-uninitialized",
       ready() + only("%p0", "ISSUED", product_here + commit()) + wait("done", 0, "LATE") + kAfter + finish()},
      {"overwritten at once", "source-overwritten", reuse(kBefore + kBar + kAfter, here(store(32)))},
      {"overwritten when the commit was observed", "", reuse(wait("done", 0, "W") + kAfter, store(32))},
      {"and without a fence", "missing-tcgen05-fence", reuse(wait("done", 0, "W"), here(store(32)))},
      {"read again at once", "", reuse("", load(32) + kWaitLoad)},
  });
}

TEST(TensorRulesTest, TheFirstMmaOfAnAccumulator) {
  const auto first = [](const std::string& zeros, const std::string& product) {
    return ready() + zeros + kWaitStore + kBefore + kBar + kAfter + only("%p0", "ISSUED", product + commit()) +
           wait("done", 0, "LATE") + kAfter + finish();
  };
  const std::string adds = mma(0, true);
  expect_all({
      {"it writes", "", first("", mma())},
      {"it adds", "tmem-uninitialized", first("", here(adds))},
      {"it adds to zeros", "", first(store(0) + store(8), adds)},
      {"it adds to some zeros", "tmem-uninitialized", first(store(0), here(adds))},
      {"one warp's zeros are missing", "tmem-uninitialized",
       first("@%p4 bra NOT;\n" + store(0) + store(8) + "NOT:\n", here(adds))},
  });
}

TEST(TensorRulesTest, Freeing) {
  const std::string seen = ready() + issue() + wait("done", 0, "W") + kAfter;
  const std::string free_here = only("%p3", "FREED", here(dealloc()));
  const auto again = [&](const std::string& product) {
    return seen + load() + kWaitLoad + kBefore + kBar + kAfter +
           only("%p3", "FREED", dealloc() + "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;\n") +
           kJoin + only("%p0", "AGAIN", product + commit("other")) + wait("other", 0, "V") + kAfter + load() +
           kWaitLoad + kBefore + kBar + kAfter + only("%p3", "END", dealloc());
  };
  expect_all({
      {"the warps join", "", seen + load() + kWaitLoad + finish()},
      {"without fences", "", seen + load() + kWaitLoad + kBar + only("%p3", "FREED", dealloc())},
      {"by another warp", "", seen + load() + kWaitLoad + kBefore + kBar + kAfter + only("%p4", "FREED", dealloc())},
      {"another warp may still be reading", "tmem-freed-early",
       seen + only("%p4", "READ", load() + kWaitLoad) + only("%p3", "SLOW", delay("D")) + free_here, On::Nominal},
      {"another warp may still be writing", "tmem-freed-early",
       seen + only("%p4", "WRITE", store() + kWaitStore) + only("%p3", "SLOW", delay("D")) + free_here, On::Nominal},
      {"another warp did not wait for its load", "missing-tcgen05-wait",
       seen + only("%p4", "READ", load()) + kBefore + kBar + kAfter + free_here},
      {"its own load was not waited for", "missing-tcgen05-wait", seen + only("%p3", "READ", load()) + free_here},
      {"its own store was not waited for", "missing-tcgen05-wait", seen + only("%p3", "WRITE", store()) + free_here},
      {"the commit was not observed", "tmem-freed-early", ready() + issue() + free_here + wait("done", 0, "LATE")},
      {"one lane observed it and told its warp", "",
       ready() + issue() + only("%p1", "SEEN", wait("done", 0, "W")) + "bar.warp.sync 0xffffffff;\n" +
           only("%p3", "FREED", dealloc())},
      {"what one lane has observed is enough", "",
       ready() + issue() + only("%p1", "SEEN", wait("done", 0, "W")) + only("%p3", "FREED", dealloc())},
      {"each of two lanes has observed one commit", "",
       ready() + only("%p0", "ISSUED", mma() + commit() + wait("done", 0, "W")) +
           only("%p2", "SECOND", mma(16) + commit("other")) + only("%p1", "SEEN", wait("other", 0, "V")) +
           only("%p3", "FREED", dealloc())},
      {"one of two commits was observed", "tmem-freed-early",
       ready() + only("%p0", "ISSUED", mma() + commit() + mma(16) + commit("other")) + wait("done", 0, "W") + kAfter +
           free_here + wait("other", 0, "LATE")},
      {"read before anybody wrote", "tmem-uninitialized", ready() + here(load()) + kWaitLoad + finish()},
      {"allocated again", "", again(mma())},
      {"allocated again, what was there is gone", "tmem-uninitialized", again(here(mma(0, true)))},
  });
}

// --- operands in shared memory ---------------------------------------------------------------------------------------

TEST(TensorRulesTest, OperandsThatThreadsWrite) {
  const std::string end = wait("done", 0, "LATE") + kAfter + finish();
  const auto after = [&](const std::string& filled, const std::string& issuer, const std::string& product) {
    return begin() + kJoin + filled + only("%p0", "ISSUED", issuer + product + commit()) + end;
  };
  const std::string product = mma(), product_here = here(mma());
  const std::string overwrite = "@%p2 st.shared.u32 [tile+512], %r6;\n";
  expect_all({
      {"fence by the writers, then a barrier", "", after(kFill + kProxyFence + kBar, "", product)},
      {"no proxy fence", "missing-proxy-fence", after(kFill + kBar, "", product_here)},
      {"fence before the writes", "missing-proxy-fence", after(kProxyFence + kFill + kBar, "", product_here)},
      {"a tcgen05 fence is no proxy fence", "missing-proxy-fence", after(kFill + kBefore + kBar, kAfter, product_here)},
      {"fence by the issuing thread only", "proxy-fence-misplaced", after(kFill + kBar, kProxyFence, product_here),
       On::Every, Severity::Warning},
      {"nothing orders the writes", "data-race", after(kFill + kProxyFence, delay("D"), product_here), On::Nominal},
      {"overwritten when the commit was observed", "", ready() + issue() + wait("done", 0, "W") + overwrite + finish()},
      {"overwritten at once", "source-overwritten", ready() + issue() + kBar + here(overwrite) + end},
      {"overwritten after a relaxed wait", "source-overwritten",
       ready() + issue() + wait("done", 0, "W", ".relaxed.cta") + here(overwrite) + kAfter + finish()},
      {"read at once", "", ready() + issue() + "ld.shared.u32 %r7, [tile+512];\n" + end},
      {"overwritten after the commit of an earlier MMA only", "source-overwritten",
       ready() + only("%p0", "ISSUED", mma() + commit("other") + mma() + commit()) + wait("other", 0, "W") +
           here(overwrite) + end},
  });
}

TEST(TensorRulesTest, OperandsThatACopyBrings) {
  const std::string announce = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 4096;\n",
                    copy =
                        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%inp], 4096, "
                        "[full];\n";
  const std::string end = wait("done", 0, "LATE") + kAfter + finish();
  const std::string filled = wait("full", 0, "F0");
  // The other warps have told warp 0 only that they have filled their rows.
  const std::string gathered = begin() + kJoin + kFill + kProxyFence +
                               "@%p3 bra GATHER;\nbar.arrive 1, 128;\nbra GATHERED;\nGATHER:\nbar.sync 1, "
                               "128;\nGATHERED:\n";
  const std::string seen = wait("done", 0, "W"), refill = announce + copy + filled;
  // Thread 32 fills and thread 0 multiplies, twice.
  const auto ring = [&](const std::string& before_refill, const std::string& second_copy) {
    return begin() + kJoin +
           only("%p2", "PRODUCED", announce + copy + before_refill + announce + second_copy + wait("full", 1, "LAST")) +
           only("%p0", "CONSUMED",
                wait("full", 0, "C0") + mma() + commit("empty") + wait("full", 1, "C1") + mma(0, true) + commit()) +
           end;
  };
  expect_all({
      {"awaited", "", begin() + kJoin + only("%p0", "ISSUED", announce + copy + filled + mma() + commit()) + end},
      {"awaited by another thread, which tells", "",
       begin() + kJoin + only("%p2", "COPIED", announce + copy + filled) + kBar + issue() + end},
      {"not awaited", "async-read-before-complete",
       begin() + kJoin + only("%p0", "ISSUED", announce + copy + here(mma()) + commit() + filled) + end},
      {"a relaxed wait", "async-read-before-complete",
       begin() + kJoin +
           only("%p0", "ISSUED", announce + copy + wait("full", 0, "F0", ".relaxed.cta") + here(mma()) + commit()) +
           end},
      {"refilled when the commit was observed", "",
       ready() + only("%p0", "ISSUED", mma() + commit() + wait("done", 0, "W") + announce + copy + filled) + end},
      {"refilled at once", "refill-before-release",
       ready() + only("%p0", "ISSUED", mma() + commit() + announce + here(copy) + filled) + end},
      {"another thread observed the commit and tells", "",
       ready() + issue() + only("%p0", "SEEN", wait("done", 0, "W")) + kBar +
           only("%p2", "COPIED", announce + copy + filled) + end},
      {"of two MMAs of two threads one was observed", "refill-before-release",
       ready() + issue() +
           only("%p2", "SECOND", mma(16) + commit("other") + wait("done", 0, "W") + announce + here(copy) + filled) +
           wait("other", 0, "LAST") + end},
      {"both were observed", "",
       ready() + issue() +
           only("%p2", "SECOND",
                mma(16) + commit("other") + wait("done", 0, "W") + wait("other", 0, "V") + announce + copy + filled) +
           end},
      {"refilled by one who sees the commit only", "", gathered + issue() + only("%p2", "COPIED", seen + refill) + end},
      {"overwritten by one who sees the commit only", "",
       gathered + issue() + only("%p2", "WRITTEN", seen + "st.shared.u32 [tile+1024], %r6;\n") + end},
      {"overwritten by one who sees nothing", "data-race",
       gathered + issue() + only("%p2", "WRITTEN", delay("D") + here("st.shared.u32 [tile+1024], %r6;\n")) + end,
       On::Nominal},
      {"a ring, whose producer sees the commits only", "", ring(wait("empty", 0, "E"), copy)},
      {"and its MMAs read a part of what is copied", "",
       begin() + kJoin + store(32) + kWaitStore + kBefore + kBar +
           only("%p2", "PRODUCED",
                announce + copy + wait("empty", 0, "E") + announce + copy + wait("full", 1, "LAST")) +
           only("%p0", "CONSUMED",
                kAfter + wait("full", 0, "C0") + mma_with_a_at(32, 0) + commit("empty") + wait("full", 1, "C1") +
                    mma_with_a_at(32, 0) + commit()) +
           end},
      {"a producer that sees its own copies only", "refill-before-release",
       ring(wait("full", 0, "P0") + delay("D"), here(copy)), On::Nominal},
  });
}

TEST(TensorRulesTest, OperandsThatNobodyHasWritten) {
  const auto with = [](const std::string& written) {
    return begin() + "setp.ge.u32 %p6, %t, 64;\nsetp.eq.u32 %p7, %t, 77;\n" + written + kProxyFence + kJoin +
           only("%p0", "ISSUED", here(mma()) + commit()) + wait("done", 0, "LATE") + kAfter + finish();
  };
  const auto without = [](const std::string& p, const std::string& written) {
    return "@" + p + " bra SKIP;\n" + written + "SKIP:\n";
  };
  expect_all({
      {"all rows", "", with(kFill)},
      {"half of each row", "bad-descriptor", with(kFirstHalf)},
      {"half of one row", "bad-descriptor", with(kFirstHalf + without("%p7", kSecondHalf))},
      {"half of the rows", "bad-descriptor", with(without("%p6", kFill)), On::Every, Severity::Warning},
      {"one row", "bad-descriptor", with(without("%p7", kFill)), On::Every, Severity::Warning},
      {"nothing", "bad-descriptor", with("")},
  });
}

// --- pairs -----------------------------------------------------------------------------------------------------------

/// The same blocks, two of them as a pair: %r1 is the rank, %p0 thread 0 of rank 0 and %p1 thread 0 of either. D is
/// 256×16: each block has 128 rows of A in `tile`, of which 8 are its half of B. MMAs are of .cta_group::2.
Outcome run_pair(const Case& c, const Schedule& schedule) {
  Checker checker;
  Kernel k;
  k.shared = ".shared .align 128 .b8 tile[4096];\n.shared .align 4 .b32 slot;\n.shared .align 8 .b64 done;\n";
  k.block = {128, 1, 1};
  k.grid = k.cluster = {2, 1, 1};
  k.in.assign(1024, 0x3f800000);
  k.schedule = schedule;
  k.observer = &checker;
  k.progress_budget = 1'000'000;
  const uint32_t types = 1u << 4 | 2u << 7 | 2u << 10 | 16u / 8 << 17 | 256u / 16 << 24;
  k.body = "\n.reg .b32 %v<16>;\n" + std::string(R"(
    mov.u32 %r1, %cluster_ctarank;
    setp.eq.u32 %p1, %t, 0;
    setp.eq.and.u32 %p0, %r1, 0, %p1;
    setp.eq.u32 %p3, %w, 0;
    setp.eq.u32 %p4, %r1, 0;
    setp.ne.u32 %p14, 0, 0;
    setp.eq.u32 %p15, 0, 0;
    mov.u16 %h1, 3;
    mov.u32 %r5, 0;
    mov.u32 %r6, 0x3f800000;
    mov.u32 %r20, tile;
    and.b32 %r21, %r20, 0x3ffff;
    shr.u32 %r21, %r21, 4;
    cvt.u64.u32 %rd5, %r21;
    shl.b32 %r21, %t, 4;
    add.u32 %r20, %r20, %r21;
    @%p1 mbarrier.init.shared::cta.b64 [done], 1;
    @%p1 fence.mbarrier_init.release.cluster;
)") + "mov.u32 %r12, " +
           std::to_string(types) + ";\nor.b64 %rd5, %rd5, " +
           std::to_string(uint64_t{2048 / 16} << 16 | uint64_t{128 / 16} << 32 | uint64_t{1} << 46) + ";\n" + c.body;
  return async::testing::run(k);
}

void expect_all_pairs(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    for (const Schedule& schedule : async::testing::schedules(2)) {
      if (c.on == On::Nominal && schedule.kind != Schedule::Kind::Nominal) continue;
      const Outcome o = run_pair(c, schedule);
      SCOPED_TRACE(std::string(c.name) + ", " + to_string(schedule) + "\n" + async::testing::text_of(o) + o.body);
      if (c.id.empty()) {
        EXPECT_TRUE(o.ok());
        continue;
      }
      ASSERT_FALSE(o.diagnostics.empty());
      EXPECT_EQ(o.diagnostics[0].id, c.id);
      EXPECT_EQ(o.diagnostics[0].place.line, async::testing::line_of(o.body, "// here"));
      EXPECT_EQ(o.diagnostics[0].severity, c.severity);
      EXPECT_NE(o.diagnostics[0].message.find(c.says), std::string::npos);
    }
  }
}

const std::string kPairBarrier = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
const std::string kPairAlloc =
    only("%p3", "ALLOC", "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 64;\n");
const std::string kPairMma = "tcgen05.mma.cta_group::2.kind::tf32 [%r10], %rd5, %rd5, %r12, %p14;\n";
const std::string kPairCopy = "tcgen05.cp.cta_group::2.128x128b [%r10+32], %rd5;\n";
const std::string kPairCommit =
    "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [done], %h1;\n";
const std::string kPairDealloc = "tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r10, 64;\n";
/// Both blocks have their operands and their columns, and know it of one another.
const std::string kPairReady = kFill + kProxyFence + kPairAlloc + kBar + kAddress + kPairBarrier;
/// Both blocks are done, and warp 0 of each frees.
const std::string kPairFinish = kBefore + kPairBarrier + kAfter + only("%p3", "FREED", kPairDealloc);
const std::string kPairIssue = only("%p0", "ISSUED", kPairMma + kPairCommit);

TEST(TensorRulesTest, APairsOperandsAreThereInBothBlocks) {
  const std::string end = wait("done", 0, "W") + kAfter + load() + kWaitLoad + kPairFinish;
  const std::string issue_here = only("%p0", "ISSUED", here(kPairMma) + kPairCommit);
  expect_all_pairs({
      {"both are there", "", kPairReady + kPairIssue + end},
      {"only the issuer's tile is known to be there", "data-race",
       kPairAlloc + kPairBarrier + kFill + kProxyFence + kBar + kAddress + issue_here + end, On::Nominal},
      {"the other block has not fenced its tile", "missing-proxy-fence",
       kFill + only("%p4", "EVEN", kProxyFence) + kPairAlloc + kBar + kAddress + kPairBarrier + issue_here + end},
      {"nobody has written the other block's tile", "bad-descriptor",
       only("%p4", "EVEN", kFill) + kProxyFence + kPairAlloc + kBar + kAddress + kPairBarrier + issue_here + end,
       On::Every, Severity::Error, "matrix A of the MMA covers bytes of CTA 1 that nobody has written"},
  });
}

TEST(TensorRulesTest, APairsResultIsObservedInEachBlock) {
  const std::string read = load() + kWaitLoad;
  expect_all_pairs({
      {"each waits for the commit", "", kPairReady + kPairIssue + wait("done", 0, "W") + kAfter + read + kPairFinish},
      {"the other block was told by a barrier of the cluster", "",
       kPairReady + kPairIssue + only("%p4", "EVEN", wait("done", 0, "W")) + kPairBarrier + kAfter + read +
           wait("done", 0, "V") + kPairFinish},
      {"the other block does not wait", "mma-result-unobserved",
       kPairReady + kPairIssue + only("%p4", "EVEN", wait("done", 0, "W")) + kAfter + here(load()) + kWaitLoad +
           wait("done", 0, "V") + kPairFinish,
       On::Nominal},
      {"without a fence behind the wait", "missing-tcgen05-fence",
       kPairReady + kPairIssue + wait("done", 0, "W") + here(load()) + kWaitLoad + kPairFinish},
      {"the other block refills its tile before the commit", "source-overwritten",
       kPairReady + kPairIssue + only("%p4", "EVEN", wait("done", 0, "W")) +
           "@!%p4 st.shared.u32 [%r20], %r6; // here\n" + wait("done", 0, "V") + kAfter + read + kPairFinish,
       On::Nominal},
      {"the other block refills its tile behind the commit", "",
       kPairReady + kPairIssue + wait("done", 0, "W") + "@!%p4 st.shared.u32 [%r20], %r6;\n" + kAfter + read +
           kPairFinish},
  });
}

TEST(TensorRulesTest, APairFreesWhenBothBlocksAreDone) {
  const std::string seen = kPairReady + kPairIssue + wait("done", 0, "W") + kAfter + load() + kWaitLoad;
  expect_all_pairs({
      {"they meet", "", seen + kPairFinish},
      {"each meets only its own warps", "tmem-freed-early",
       seen + kBefore + kBar + kAfter + only("%p3", "FREED", here(kPairDealloc))},
  });
}

TEST(TensorRulesTest, CopiesToTensorMemory) {
  const std::string read = load(32) + kWaitLoad;
  const auto issue = [](const std::string& text) { return only("%p0", "ISSUED", text); };
  expect_all_pairs({
      {"observed", "",
       kPairReady + issue(kPairCopy + kPairCommit) + wait("done", 0, "W") + kAfter +
           "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%r11+32];\n" + kWaitLoad + kPairFinish},
      {"not observed", "mma-result-unobserved",
       kPairReady + issue(kPairCopy + kPairCommit) + here("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%r11+32];\n") +
           kWaitLoad + wait("done", 0, "W") + kPairFinish,
       On::Nominal},
      {"an MMA behind it needs no wait", "",
       kPairReady +
           issue(kPairCopy + "tcgen05.mma.cta_group::2.kind::tf32 [%r10+32], %rd5, %rd5, %r12, %p14;\n" + kPairCommit) +
           wait("done", 0, "W") + kAfter + read + kPairFinish},
      {"the source is overwritten too early", "source-overwritten",
       kPairReady + issue(kPairCopy + kPairCommit + "st.shared.u32 [%r20], %r6; // here\n") + wait("done", 0, "W") +
           kPairFinish},
      {"nobody has written the source", "bad-descriptor",
       kPairAlloc + kBar + kAddress + kPairBarrier + issue(here(kPairCopy) + kPairCommit) + wait("done", 0, "W") +
           kPairFinish,
       On::Every, Severity::Error, "the source of the copy covers bytes of CTA 0"},
  });
}

// §9.7.16.6.4.3: thread 0 copies A, thread 32 multiplies by it.
TEST(TensorRulesTest, ACopyIsHandedToAnotherThreadsMma) {
  const std::string copy = "tcgen05.cp.cta_group::1.128x256b [%r10+32], %rd5;\n", use = mma_with_a_at(32, 0),
                    use_here = here(mma_with_a_at(32, 0)), read = load() + kWaitLoad;
  const auto pair = [&](const std::string& before, const std::string& after, const std::string& second,
                        const std::string& rest) {
    return ready() + only("%p0", "COPIED", copy + before) + kBar + only("%p2", "USED", after + second + commit()) +
           rest;
  };
  const std::string seen = wait("done", 0, "W") + kAfter;
  expect_all({
      {"both fences; the columns are free when the MMA is over", "",
       pair(kBefore, kAfter, use, seen + read + finish())},
      {"a relaxed signal between them", "",
       ready() + only("%p0", "COPIED", copy + kBefore + arrive("other", ".relaxed.cluster")) +
           only("%p2", "USED", wait("other", 0, "V", ".relaxed.cluster") + kAfter + use + commit()) + seen + read +
           finish()},
      {"no fence before", "missing-tcgen05-fence", pair("", kAfter, use_here, seen + finish()), On::Every,
       Severity::Error, "without tcgen05.fence::before_thread_sync"},
      {"no fence after", "missing-tcgen05-fence", pair(kBefore, "", use_here, seen + finish()), On::Every,
       Severity::Error, "without tcgen05.fence::after_thread_sync"},
      {"no fence", "missing-tcgen05-fence", pair("", "", use_here, seen + finish())},
      {"no signal", "mma-result-unobserved",
       ready() + only("%p0", "COPIED", copy + commit("other") + kBefore) +
           only("%p2", "USED", delay("D") + kAfter + use_here + commit()) + seen + wait("other", 0, "V") + kAfter +
           finish(),
       On::Nominal},
      {"the source is free when the MMA is over", "", pair(kBefore, kAfter, use, seen + kBar + kFill + finish())},
      {"and not before", "source-overwritten", pair(kBefore, kAfter, use, kBar + here(kFirstHalf) + seen + finish())},
      {"freed behind an MMA of other columns", "tmem-freed-early",
       pair(kBefore, kAfter, mma(), seen + kBefore + kBar + kAfter + only("%p3", "FREED", here(dealloc())))},
  });
}

/// Each block has columns of its own, and thread 0 of rank 0 issues an MMA there.
const std::string kAlone =
    kFill + kProxyFence +
    only("%p3", "ALLOC", "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;\n") + kBar + kAddress +
    kPairBarrier + "mov.u32 %r13, " + std::to_string(1u << 4 | 2u << 7 | 2u << 10 | 16u / 8 << 17 | 128u / 16 << 24) +
    ";\nmov.u32 %r22, done;\nmapa.shared::cluster.u32 %r22, %r22, 1;\n";
const std::string kMmaAlone = "tcgen05.mma.cta_group::1.kind::tf32 [%r10], %rd5, %rd5, %r13, %p14;\n";

// §9.7.16.12.1: the arrival of a commit comes at some later time, to a block that must be there still.
TEST(TensorRulesTest, ABlockStaysForCommits) {
  const std::string both =
                        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
                        "[done], %h1;\n",
                    mapped = commit() + commit("%r22");
  const std::string free = kBefore + kBar + kAfter + only("%p3", "FREED", dealloc());
  const auto issue = [](const std::string& commits) { return kAlone + only("%p0", "ISSUED", kMmaAlone + commits); };
  const std::string all_wait = wait("done", 0, "W"), rank_0_waits = only("%p4", "SEEN", wait("done", 0, "W"));
  expect_all_pairs({
      {"its own wait tells it", "", issue(both) + all_wait + free},
      {"a relaxed wait of one of its threads does", "",
       issue(both) + rank_0_waits + only("%p1", "TAIL", wait("done", 0, "V", ".relaxed.cluster")) + free},
      {"so does a meeting", "", issue(both) + rank_0_waits + free + kPairBarrier},
      {"it leaves without a wait", "remote-cta-gone", issue(here(both)) + rank_0_waits + delay("D") + free, On::Nominal,
       Severity::Error, "commits to `done` of CTA 1, which may have ended by then"},
      {"a barrier of another block, and that waits", "", issue(mapped) + all_wait + free},
      {"and that does not", "remote-cta-gone",
       issue(commit() + here(commit("%r22"))) + rank_0_waits + delay("D") + free, On::Nominal},
      {"the last of several", "remote-cta-gone",
       issue(both) + all_wait + kPairBarrier + only("%p0", "AGAIN", kMmaAlone + here(both)) +
           only("%p4", "MORE", wait("done", 1, "V")) + delay("D") + free,
       On::Nominal},
      {"and that one is awaited", "",
       issue(both) + all_wait + kPairBarrier + only("%p0", "AGAIN", kMmaAlone + both) + wait("done", 1, "V") + free},
  });
}

}  // namespace
}  // namespace handoff::check::testing
