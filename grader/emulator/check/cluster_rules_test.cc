// The rules of clusters with the smallest kernel that breaks each and the smallest that does not.
//
// A cluster of two CTAs of two warps. Thread 0 of rank 0 is %p0, thread 0 of rank 1 %p1, thread 32 of rank 1 %p2; %p3
// is thread 0 of either CTA, %p4 thread 32 of either. Addresses in the other CTA: %r20 data, %r21 full, %r22 empty,
// %r23 flag. A case names the diagnosis that must come first, at a line marked `// here` (two accesses that race are
// both marked: which is the later one is the schedule's choice); "" means that nothing may be said. Every schedule.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "grader/emulator/async/testing.h"
#include "grader/emulator/check/checker.h"

namespace handoff::check::testing {
namespace {

using async::testing::Kernel;
using async::testing::Outcome;

struct Case {
  const char* name;
  std::string id;  ///< "": silent
  std::string body;
  bool warning = false;
  uint32_t clusters = 1;
  bool any_schedule = true;  ///< false: nominal only; who comes first decides which of two mistakes it is
};

Outcome run_checked(const Case& c, const machine::Schedule& schedule) {
  Checker checker;
  Kernel k;
  k.shared =
      ".shared .align 128 .b8 data[256];\n.shared .align 8 .b64 full;\n.shared .align 8 .b64 empty;\n.shared .align 4 "
      ".b8 flag[4];\n";
  k.block = {64, 1, 1};
  k.cluster = {2, 1, 1};
  k.grid = {2 * c.clusters, 1, 1};
  k.in.assign(64, 3);
  k.schedule = schedule;
  k.observer = &checker;
  k.progress_budget = 100'000;
  std::string head =
      "\nmov.u32 %r1, %cluster_ctarank;\nxor.b32 %r2, %r1, 1;\nsetp.eq.u32 %p3, %t, 0;\nsetp.eq.u32 %p4, "
      "%t, 32;\nsetp.eq.and.u32 %p0, %r1, 0, %p3;\nsetp.eq.and.u32 %p1, %r1, 1, %p3;\nsetp.eq.and.u32 "
      "%p2, %r1, 1, %p4;\nmov.u32 %r5, 1;\n";
  const char* const kNames[] = {"data", "full", "empty", "flag"};
  for (int n = 0; n < 4; n++) {
    const std::string r = "%r2" + std::to_string(n);
    head += std::string("mov.u32 ") + r + ", " + kNames[n] + ";\nmapa.shared::cluster.u32 " + r + ", " + r + ", %r2;\n";
  }
  k.body = head + c.body;
  return async::testing::run(k);
}

bool marked(const std::string& body, uint32_t line) {
  std::istringstream text(body);
  std::string s;
  for (uint32_t n = 0; std::getline(text, s); n++) {
    if (n == line) return s.find("// here") != std::string::npos;
  }
  return false;
}

void expect_all(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    for (const machine::Schedule& schedule : async::testing::schedules(4)) {
      if (!c.any_schedule && schedule.kind != machine::Schedule::Kind::Nominal) continue;
      const Outcome o = run_checked(c, schedule);
      SCOPED_TRACE(std::string(c.name) + ", " + to_string(schedule) + "\n" + async::testing::text_of(o) + o.body);
      if (c.id.empty()) {
        EXPECT_TRUE(o.ok());
        continue;
      }
      if (o.diagnostics.empty()) {
        ADD_FAILURE() << "nothing found";
        continue;
      }
      EXPECT_EQ(o.diagnostics[0].id, c.id);
      EXPECT_TRUE(marked(o.body, o.diagnostics[0].place.line));
      EXPECT_EQ(o.diagnostics[0].severity, c.warning ? Severity::Warning : Severity::Error);
    }
  }
}

const std::string kArrive = "barrier.cluster.arrive.aligned;\n", kWait = "barrier.cluster.wait.aligned;\n",
                  kMeet = kArrive + kWait, kMeetRelaxed = "barrier.cluster.arrive.relaxed.aligned;\n" + kWait;
const std::string kInits =
    "@%p3 mbarrier.init.shared::cta.b64 [full], 1;\n@%p3 mbarrier.init.shared::cta.b64 [empty], 1;\n";
const std::string kInitFence = "@%p3 fence.mbarrier_init.release.cluster;\n";
const std::string kReady = kInits + kInitFence + kMeet;

/// Whoever comes here waits for a phase of this parity; `label` is unique.
std::string wait(const std::string& barrier, int parity, const std::string& label, const std::string& sem = "") {
  return label + ":\nmbarrier.try_wait.parity" + sem + ".shared::cta.b64 %p8, [" + barrier + "], " +
         std::to_string(parity) + ";\n@!%p8 bra " + label + ";\n";
}
/// Only the thread whose predicate is `p` executes `text`.
std::string only(const std::string& p, const std::string& label, const std::string& text) {
  return "@!" + p + " bra " + label + ";\n" + text + label + ":\n";
}
std::string remote_arrive(const std::string& p, const std::string& barrier,
                          const std::string& sem = ".release.cluster") {
  return "@" + p + " mbarrier.arrive" + sem + ".shared::cluster.b64 _, [" + barrier + "];";
}
/// A flag that says when, and orders nothing: so that what comes first does so on every schedule. The other rank polls.
const std::string kFlagDown = "@%p3 st.shared.u32 [flag], 0;\n",
                  kRaise = "st.relaxed.cluster.shared.u32 [flag], %r5;\n",
                  kPoll =
                      "POLL:\nld.relaxed.cluster.shared::cluster.u32 %r9, [%r23];\nsetp.eq.u32 %p8, %r9, 0;\n@%p8 "
                      "bra POLL;\n";
const std::string kArmOwn = "@%p3 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;\n";
const std::string kMulticast =
    "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [data], [%inp], 16, "
    "[full], %h1;";
const std::string kBoth = "mov.u16 %h1, 3;\n";
const std::string kStoreAsync = "@%p1 st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r20], %r5, [%r21];";

TEST(ClusterRules, ABarrierOfAnotherBlock) {
  const std::string use = remote_arrive("%p1", "%r21") + " // here\n",
                    rest = only("%p0", "WAITED", wait("full", 0, "W0", ".acquire.cluster")) + kMeet;
  const std::string fence_elsewhere = "@%p4 fence.mbarrier_init.release.cluster;\n";
  expect_all({
      {"a fence and a meeting", "", kInits + kInitFence + kMeet + use + rest},
      {"a fence and a relaxed meeting", "", kInits + kInitFence + kMeetRelaxed + use + rest},
      {"no fence", "barrier-init-not-visible", kInits + kMeet + use + rest, true},
      {"a fence in another thread", "barrier-init-not-visible", kInits + fence_elsewhere + kMeet + use + rest, true},
      {"a fence before the init", "barrier-init-not-visible", kInitFence + kInits + kMeet + use + rest, true},
      {"a barrier of the block only", "barrier-not-initialized", kInits + kInitFence + "bar.sync 0;\n" + use + rest},
      {"used before the wait of the meeting", "barrier-not-initialized",
       kInits + kInitFence + kArrive + use + kWait + rest},
      {"no fence and a relaxed meeting", "barrier-init-not-visible", kInits + kMeetRelaxed + use + rest},
      {"the own barrier needs no fence for arrivals", "",
       kInits + kMeet + "@%p0 mbarrier.arrive.shared::cta.b64 _, [full];\n" + rest},
      {"a proxy fence does not make up for a relaxed meeting", "barrier-init-not-visible",
       kInits + "@%p3 fence.proxy.async;\n" + kMeetRelaxed + use + rest},
      {"the own barrier, fenced, signalled by a copy of another thread behind a relaxed meeting", "",
       kInits + kInitFence + kMeetRelaxed +
           "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;\n"
           "setp.eq.and.u32 %p5, %r1, 0, %p4;\n@%p5 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes "
           "[data], [%inp], 16, [full];\n" +
           rest},
      {"handed on by a third thread", "",
       kInits + kInitFence + kMeetRelaxed + "bar.sync 0;\n" + remote_arrive("%p2", "%r21") + "\n" + rest},
  });
}

TEST(ClusterRules, ABarrierOfAnotherBlockThatCopiesSignal) {
  const std::string rest = only("%p0", "WAITED", wait("full", 0, "W0")) + kMeet;
  const std::string store = kStoreAsync + " // here\n";
  const std::string copy =
      "@%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r20], [data+128], 16, [%r21]; // "
      "here\n";
  const auto arm = [](int bytes) {
    return "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], " + std::to_string(bytes) + ";\n";
  };
  expect_all({
      {"st.async", "", kReady + arm(4) + store + rest},
      {"st.async, relaxed meeting", "", kInits + kInitFence + kMeetRelaxed + arm(4) + store + rest},
      {"st.async, no fence", "barrier-init-not-visible", kInits + kMeet + arm(4) + store + rest, true},
      {"st.async, no meeting", "barrier-not-initialized",
       kInits + kInitFence + "bar.sync 0;\n" + arm(4) + store + rest},
      {"a bulk copy", "", kReady + arm(16) + copy + rest},
      {"a bulk copy, no fence", "barrier-init-not-visible", kInits + kMeet + arm(16) + copy + rest, true},
      {"a bulk copy, no meeting", "barrier-not-initialized",
       kInits + kInitFence + "bar.sync 0;\n" + arm(16) + copy + rest},
      {"multicast", "", kReady + kArmOwn + kMeet + kBoth + kMulticast + "\n" + wait("full", 0, "W0") + kMeet},
      {"multicast, no fence", "barrier-init-not-visible",
       kInits + kMeet + kArmOwn + kMeet + kBoth + kMulticast + " // here\n" + wait("full", 0, "W0") + kMeet, true},
      {"st.async, no fence and a relaxed meeting", "barrier-init-not-visible",
       kInits + kMeetRelaxed + arm(4) + store + rest},
  });
}

TEST(ClusterRules, DataInDistributedSharedMemory) {
  const std::string write = "@%p0 st.shared.u32 [data], %r5; // here\n",
                    read = "@%p1 ld.shared::cluster.u32 %r6, [%r20]; // here\n",
                    push = "@%p1 st.shared::cluster.u32 [%r20], %r5; // here\n",
                    take = "@%p0 ld.shared.u32 %r6, [data]; // here\n";
  const std::string fence = "fence.acq_rel.cluster;\n", narrow_fence = "fence.acq_rel.cta;\n";
  expect_all({
      {"nothing between", "data-race", write + read + kMeet},
      {"a barrier of the block between", "data-race", write + "bar.sync 0;\n" + read + kMeet},
      {"a meeting between", "", write + kMeet + read + kMeet},
      {"pushed", "data-race", push + take + kMeet},
      {"pushed, a meeting between", "", push + kMeet + take + kMeet},
      {"two writes", "data-race", write + push + kMeet},
      {"a read, a meeting, a write", "", read + kMeet + write + kMeet},
      {"a generic address", "data-race",
       write + "cvt.u64.u32 %rd1, %r20;\ncvta.shared::cluster.u64 %rd1, %rd1;\n@%p1 ld.u32 %r6, [%rd1]; // here\n" +
           kMeet},
      {"written between arrive and wait", "data-race", kArrive + write + kWait + read + kMeet},
      {"read between arrive and wait", "data-race", write + kArrive + read + kWait + kMeet},
      {"a relaxed meeting", "data-race", write + kMeetRelaxed + read + kMeet},
      {"a fence and a relaxed meeting", "", write + fence + kMeetRelaxed + read + kMeet},
      {"a fence of the block and a relaxed meeting", "scope-too-narrow",
       write + narrow_fence + kMeetRelaxed + read + kMeet},
      {"the init fence publishes no data", "data-race", write + kInits + kInitFence + kMeetRelaxed + read + kMeet},
      {"a barrier of the block and a meeting of one thread each", "",
       write + "bar.sync 0;\n" + kMeet + "@%p2 ld.shared::cluster.u32 %r6, [%r20];\n" + kMeet},
      {"atomics of the cluster", "",
       "@%p0 red.relaxed.cluster.shared.add.u32 [data], %r5;\n@%p1 red.relaxed.cluster.shared::cluster.add.u32 [%r20], "
       "%r5;\n" +
           kMeet},
      {"atomics of the block", "data-race",
       "@%p0 red.relaxed.cta.shared.add.u32 [data], %r5; // here\n@%p1 red.relaxed.cta.shared::cluster.add.u32 [%r20], "
       "%r5; // here\n" +
           kMeet},
      {"the same offset in each block", "",
       "@%p3 st.shared.u32 [data], %r5;\n@%p3 ld.shared.u32 %r6, [data];\n" + kMeet},
  });
}

/// Rank 1 puts a word into rank 0's data and arrives on rank 0's full; rank 0 waits and reads it.
std::string handoff(const std::string& arrive, const std::string& wait_sem, const std::string& before_arrive = "",
                    const std::string& after_wait = "",
                    const std::string& use = "ld.shared.u32 %r6, [data]; // here\n") {
  return kReady + "@%p1 st.shared::cluster.u32 [%r20], %r5;\n" + before_arrive + remote_arrive("%p1", "%r21", arrive) +
         "\n" + only("%p0", "TAKEN", wait("full", 0, "W0", wait_sem) + after_wait + use) + kMeet;
}

TEST(ClusterRules, ScopesOfRemoteArrivals) {
  const std::string cluster = "fence.acq_rel.cluster;\n", block = "fence.acq_rel.cta;\n";
  expect_all({
      {"release and acquire of the cluster", "", handoff(".release.cluster", ".acquire.cluster")},
      {"released to the own block", "scope-too-narrow", handoff(".release.cta", ".acquire.cluster")},
      {"the default scope is the block", "scope-too-narrow", handoff("", ".acquire.cluster")},
      {"acquired from the own block", "scope-too-narrow", handoff(".release.cluster", ".acquire.cta")},
      {"the default wait", "scope-too-narrow", handoff(".release.cluster", "")},
      {"both of the block", "scope-too-narrow", handoff("", "")},
      {"a relaxed arrive", "data-race", handoff(".relaxed.cluster", ".acquire.cluster")},
      {"a fence and a relaxed arrive", "", handoff(".relaxed.cluster", ".acquire.cluster", cluster)},
      {"a fence of the block and a relaxed arrive", "scope-too-narrow",
       handoff(".relaxed.cluster", ".acquire.cluster", block)},
      {"a relaxed wait", "data-race", handoff(".release.cluster", ".relaxed.cluster")},
      {"a relaxed wait and a fence", "", handoff(".release.cluster", ".relaxed.cluster", "", cluster)},
      {"a relaxed wait and a fence of the block", "scope-too-narrow",
       handoff(".release.cluster", ".relaxed.cluster", "", block)},
      {"fences at both ends", "", handoff(".relaxed.cluster", ".relaxed.cluster", cluster, cluster)},
      {"a fence of the gpu reaches the cluster", "",
       handoff(".relaxed.cluster", ".relaxed.cluster", "fence.acq_rel.gpu;\n", "fence.acq_rel.gpu;\n")},
      {"a fence does not widen the scope of the arrive", "scope-too-narrow",
       handoff(".relaxed.cta", ".acquire.cluster", cluster)},
      {"a bulk copy of the data", "",
       handoff(".release.cluster", ".acquire.cluster", "fence.proxy.async;\n", "",
               "cp.async.bulk.global.shared::cta.bulk_group [%outp], [data], 16;\n"
               "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n")},
      {"a bulk copy of the data, released to the own block", "scope-too-narrow",
       handoff("", ".acquire.cluster", "fence.proxy.async;\n", "",
               "cp.async.bulk.global.shared::cta.bulk_group [%outp], [data], 16; // here\n"
               "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n")},
      {"a bulk copy of the data without a proxy fence", "missing-proxy-fence",
       handoff(".release.cluster", ".acquire.cluster", "", "",
               "cp.async.bulk.global.shared::cta.bulk_group [%outp], [data], 16; // here\n"
               "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n")},
      {"passed on within the block", "",
       kReady + "@%p1 st.shared::cluster.u32 [%r20], %r5;\n" + remote_arrive("%p1", "%r21") + "\n" +
           only("%p0", "TAKEN", wait("full", 0, "W0", ".acquire.cluster")) +
           "bar.sync 0;\nld.shared.u32 %r6, [data];\n" + kMeet},
      {"what the arriving block learnt by a barrier of the block", "",
       kReady + "@%p2 st.shared::cluster.u32 [%r20], %r5;\nbar.sync 0;\n" + remote_arrive("%p1", "%r21") + "\n" +
           only("%p0", "TAKEN", wait("full", 0, "W0", ".acquire.cluster") + "ld.shared.u32 %r6, [data];\n") + kMeet},
  });
}

TEST(ClusterRules, OfSeveralWordsTheOneWithoutAnyOrder) {
  // Threads 0 and 1 of rank 1 each put a word into rank 0's data; only thread 0 arrives, at the scope of its block.
  const std::string push = "setp.lt.u32 %p5, %t, 2;\nsetp.eq.and.u32 %p5, %r1, 1, %p5;\nmad.lo.u32 %r6, %t, 4, %r20;\n",
                    write = "@%p5 st.shared::cluster.u32 [%r6], %r5;\n",
                    read = "@%p5 ld.shared::cluster.u32 %r7, [%r6];\n",
                    arrive = remote_arrive("%p1", "%r21", "") + "\n";
  const auto taken = [](const std::string& use) {
    return only("%p0", "TAKEN", wait("full", 0, "W0", ".acquire.cluster") + use) + kMeet;
  };
  expect_all({
      {"a vector load", "data-race",
       kReady + push + write + arrive + taken("ld.shared.v2.u32 {%r7, %r8}, [data]; // here\n")},
      {"a vector store", "data-race",
       kReady + push + write + arrive + taken("st.shared.v2.u32 [data], {%r5, %r5}; // here\n")},
      {"a vector store over reads", "data-race",
       kReady + push + read + arrive + taken("st.shared.v2.u32 [data], {%r5, %r5}; // here\n")},
      {"cp.async", "data-race",
       kReady + push + write + arrive +
           taken("cp.async.ca.shared.global [data], [%inp], 8; // here\ncp.async.wait_all;\n")},
      {"cp.async over reads", "refill-before-release",
       kReady + push + read + arrive +
           taken("cp.async.ca.shared.global [data], [%inp], 8; // here\ncp.async.wait_all;\n")},
      {"both arrive", "scope-too-narrow",
       "@%p3 mbarrier.init.shared::cta.b64 [full], 2;\n" + kInitFence + kMeet + push + write +
           remote_arrive("%p5", "%r21", "") + "\n" + taken("ld.shared.v2.u32 {%r7, %r8}, [data]; // here\n")},
  });
}

TEST(ClusterRules, FlagsInSharedMemoryOfAnotherBlock) {
  // Rank 0 writes its data and raises its flag; rank 1 polls the flag over there, then reads the data.
  const auto flag = [](const std::string& store, const std::string& load) {
    return "@%p3 st.shared.u32 [flag], 0;\n" + kMeet + "@%p0 st.shared.u32 [data], %r5;\n@%p0 " + store +
           ".shared.u32 [flag], %r5; // here\n" +
           only("%p1", "SEEN",
                "POLL:\n" + load +
                    ".shared::cluster.u32 %r6, [%r23]; // here\nsetp.eq.u32 %p8, %r6, 0;\n"
                    "@%p8 bra POLL;\nld.shared::cluster.u32 %r7, [%r20]; // here\n") +
           kMeet;
  };
  expect_all({
      {"cluster", "", flag("st.release.cluster", "ld.acquire.cluster")},
      {"gpu", "", flag("st.release.gpu", "ld.acquire.gpu")},
      {"cluster and gpu", "", flag("st.release.cluster", "ld.acquire.gpu")},
      {"released to the own block", "scope-too-narrow", flag("st.release.cta", "ld.acquire.cluster")},
      {"acquired from the own block", "scope-too-narrow", flag("st.release.cluster", "ld.acquire.cta")},
      {"relaxed", "data-race", flag("st.relaxed.cluster", "ld.acquire.cluster")},
      {"volatile", "data-race", flag("st.volatile", "ld.volatile")},
  });
}

TEST(ClusterRules, FlagsInGlobalMemory) {
  // CTA 0 raises a flag for CTA `reader`.
  const auto flag = [](const std::string& scope, int reader) {
    return "setp.eq.and.u32 %p5, %c, 0, %p3;\nsetp.eq.and.u32 %p6, %c, " + std::to_string(reader) +
           ", %p3;\n@%p5 st.global.u32 [%outp], %r5;\n@%p5 st.release." + scope +
           ".global.u32 [%outp+128], %r5; // here\n" +
           only("%p6", "SEEN",
                "POLL:\nld.acquire." + scope +
                    ".global.u32 %r6, [%outp+128]; // here\nsetp.eq.u32 %p8, "
                    "%r6, 0;\n@%p8 bra POLL;\nld.global.u32 %r7, [%outp]; // here\n");
  };
  expect_all({
      {"gpu, within a cluster", "", flag("gpu", 1), false, 2},
      {"gpu, between clusters", "", flag("gpu", 2), false, 2},
      {"cluster, within a cluster", "", flag("cluster", 1), false, 2},
      {"cluster, between clusters", "scope-too-narrow", flag("cluster", 2), false, 2},
      {"cta, within a cluster", "scope-too-narrow", flag("cta", 1), false, 2},
      {"barrier.cluster orders its own cluster only", "data-race",
       "setp.eq.and.u32 %p5, %c, 0, %p3;\nsetp.eq.and.u32 %p6, %c, 3, %p3;\n@%p5 st.global.u32 [%outp], %r5; // "
       "here\n" +
           kMeet + "@%p6 ld.global.u32 %r6, [%outp]; // here\n",
       false, 2},
      {"barrier.cluster orders global memory, too", "",
       "setp.eq.and.u32 %p5, %c, 0, %p3;\nsetp.eq.and.u32 %p6, %c, 1, %p3;\n@%p5 st.global.u32 [%outp], %r5;\n" +
           kMeet + "@%p6 ld.global.u32 %r6, [%outp];\n",
       false, 2},
  });
}

TEST(ClusterRules, RemoteStores) {
  const std::string arm = "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 4;\n",
                    send = kStoreAsync + " // here\n", read = "@%p0 ld.shared.u32 %r6, [data]; // here\n";
  const std::string waited = only("%p0", "WAITED", wait("full", 0, "W0"));
  expect_all({
      {"observed", "", kReady + arm + send + waited + "@%p0 ld.shared.u32 %r6, [data];\n" + kMeet},
      {"not observed", "async-read-before-complete", kReady + arm + kMeet + send + kMeet + read + waited + kMeet},
      {"observed by another thread of the block", "",
       kReady + arm + send + waited + "bar.sync 0;\n@%p4 ld.shared.u32 %r6, [data];\n" + kMeet},
      {"a relaxed wait", "async-read-before-complete",
       kReady + arm + kMeet + send + only("%p0", "WAITED", wait("full", 0, "W0", ".relaxed.cluster")) + read + kMeet},
      {"the sender reads it back", "async-read-before-complete",
       kReady + arm + send + "@%p1 ld.shared::cluster.u32 %r6, [%r20]; // here\n" + waited + kMeet},
      {"the sender writes it, too", "data-race",
       kReady + arm + send + "@%p1 st.shared::cluster.u32 [%r20], %r5; // here\n" + waited + kMeet},
      {"no proxy fence is needed", "",
       kReady + "@%p0 st.shared.u32 [data], %r5;\n" + arm + kMeet + send + waited + kMeet},
      {"over a word that is being read", "refill-before-release",
       kReady + kFlagDown + arm + kMeet + "@%p0 ld.shared.u32 %r6, [data];\n@%p0 " + kRaise +
           only("%p1", "SEEN", kPoll) + send + waited + kMeet},
      {"over a word that has been read", "",
       kReady + arm + "@%p0 ld.shared.u32 %r6, [data];\n" + kMeet + send + waited + kMeet},
      {"reductions of one word", "",
       kReady + "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 8;\n@%p0 st.shared.u32 [data], 0;\n" +
           kMeet +
           "@%p1 red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r20], %r5, [%r21];\n"
           "@%p2 red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r20], %r5, "
           "[%r21];\n" +
           waited + "@%p0 ld.shared.u32 %r6, [data];\n" + kMeet},
      {"two stores of one word", "data-race",
       kReady + "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 8;\n" + send +
           "@%p2 st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r20], %r5, [%r21]; // here\n" + waited +
           kMeet},
      {"what the sender did before is not published by it", "data-race",
       kReady + arm + "@%p1 st.shared::cluster.u32 [%r20+4], %r5; // here\n" + send + waited +
           "@%p0 ld.shared.u32 %r6, [data+4]; // here\n" + kMeet},
  });
}

TEST(ClusterRules, Multicast) {
  // Rank 0 copies to both blocks; each has armed its own barrier, and each waits for its own.
  const std::string all_wait = wait("full", 0, "W0"), copy = kBoth + kMulticast + "\n",
                    here = kBoth + kMulticast + " // here\n", read = "@%p3 ld.shared.u32 %r6, [data];\n";
  expect_all({
      {"armed and awaited by both", "", kReady + kArmOwn + kMeet + copy + all_wait + read + kMeet},
      {"read without waiting", "async-read-before-complete",
       kReady + kArmOwn + kMeet + copy + kMeet + "@%p1 ld.shared.u32 %r6, [data]; // here\n" + all_wait + kMeet},
      {"the sender's wait says nothing of the other block", "async-read-before-complete",
       kReady + kArmOwn + kMeet + copy + only("%p0", "WAITED", wait("full", 0, "W1")) + kMeet +
           "@%p0 ld.shared::cluster.u32 %r6, [%r20]; // here\n" + all_wait + kMeet},
      {"the receiver never arms and waits", "tx-bytes-mismatch",
       kReady + "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;\n" + here + all_wait + kMeet},
      {"the receiver never arms and does not wait", "tx-bytes-mismatch",
       kReady + "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;\n" + here +
           only("%p0", "WAITED", wait("full", 0, "W1")) + kMeet,
       false, 1, false},
      {"the receiver arms for fewer bytes", "tx-bytes-mismatch",
       kReady +
           "mov.u32 %r9, 16;\n@%p1 mov.u32 %r9, 8;\n@%p3 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], %r9; "
           "// here\n" +
           kMeet + copy + all_wait + kMeet},
  });
}

/// A stage that rank 1 reads and rank 0 refills by a multicast copy: what rank 1 does when it has read, what rank 0
/// does before it copies again.
std::string refill(const std::string& release, const std::string& acquire) {
  return kReady + kFlagDown + kArmOwn + kMeet + kBoth + kMulticast + "\n" + wait("full", 0, "W0") +
         "@%p3 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;\n" + kArrive +
         "@%p1 ld.shared.u32 %r6, [data];\n" + release + kWait + only("%p0", "FREE", acquire) + kMulticast +
         " // here\n" + wait("full", 1, "W1") + kMeet;
}

TEST(ClusterRules, RefillOfAStageOfAnotherBlock) {
  expect_all({
      {"released to and acquired from the cluster", "",
       refill(remote_arrive("%p1", "%r22") + "\n", wait("empty", 0, "E0", ".acquire.cluster"))},
      {"released to the own block", "scope-too-narrow",
       refill(remote_arrive("%p1", "%r22", "") + "\n", wait("empty", 0, "E0", ".acquire.cluster")), true},
      {"acquired from the own block", "scope-too-narrow",
       refill(remote_arrive("%p1", "%r22") + "\n", wait("empty", 0, "E0")), true},
      {"both of the block, as public rings have it", "scope-too-narrow",
       refill(remote_arrive("%p1", "%r22", "") + "\n", wait("empty", 0, "E0")), true},
      {"no empty arrive", "refill-before-release", refill("@%p1 " + kRaise, kPoll)},
      {"an empty arrive that nobody awaits", "refill-before-release",
       refill(remote_arrive("%p1", "%r22") + "\n@%p1 " + kRaise, kPoll)},
      {"arrived before the read", "refill-before-release",
       kReady + kFlagDown + kArmOwn + kMeet + kBoth + kMulticast + "\n" + wait("full", 0, "W0") +
           "@%p3 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;\n" + kMeet + remote_arrive("%p1", "%r22") +
           "\n@%p1 ld.shared.u32 %r6, [data];\n@%p1 " + kRaise +
           only("%p0", "FREE", wait("empty", 0, "E0", ".acquire.cluster") + kPoll) + kMulticast + " // here\n" +
           wait("full", 1, "W1") + kMeet},
      {"freed by a meeting", "",
       kReady + kArmOwn + kMeet + kBoth + kMulticast + "\n" + wait("full", 0, "W0") +
           "@%p3 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;\n@%p1 ld.shared.u32 %r6, [data];\n" + kMeet +
           kMulticast + "\n" + wait("full", 1, "W1") + kMeet},
  });
}

TEST(ClusterRules, ABlockMustStay) {
  const std::string read = "@%p1 ld.shared::cluster.u32 %r6, [%r20]; // here\n",
                    write = "@%p0 st.shared.u32 [data], %r5;\n";
  const std::string last = remote_arrive("%p1", "%r22") + " // here\n";
  const std::string awaited = only("%p0", "FREE", wait("empty", 0, "E0", ".acquire.cluster"));
  expect_all({
      {"read behind the last meeting", "remote-cta-gone", write + kMeet + read},
      {"read before the last meeting", "", write + kMeet + read + kMeet},
      {"a relaxed meeting is enough to stay", "", write + kMeet + read + kMeetRelaxed},
      {"an arrival without a wait does not make one stay", "remote-cta-gone",
       write + kMeet + read + kArrive + "@%p1 ld.shared::cluster.u32 %r6, [%r20]; // here\n"},
      {"an arrive that nobody awaits", "remote-cta-gone", kReady + last},
      {"an arrive that somebody awaits", "", kReady + last + awaited},
      {"an arrive that somebody awaits, with the scopes of public rings", "",
       kReady + remote_arrive("%p1", "%r22", "") + "\n" + only("%p0", "FREE", wait("empty", 0, "E0"))},
      {"an arrive that nobody awaits, before a meeting", "", kReady + last + kMeet},
      {"a needless arrive beside one that is awaited", "remote-cta-gone",
       kReady + remote_arrive("%p1", "%r22") + "\n" + remote_arrive("%p1", "%r21") + " // here\n" + awaited},
      {"a thread that knows tells one that stays", "", kReady + last + awaited + "bar.sync 0;\n"},
      {"st.async, awaited by the receiver", "",
       kReady + "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 4;\n" + kStoreAsync + "\n" +
           only("%p0", "WAITED", wait("full", 0, "W0"))},
      {"atomics", "remote-cta-gone",
       "@%p0 st.shared.u32 [data], 0;\n" + kMeet +
           "@%p1 red.relaxed.cluster.shared::cluster.add.u32 [%r20], %r5; // here\n"},
  });
}

/// Copies to a block that leaves without having seen them come. Where they come first, nothing happens: so on the eager
/// schedule, where the machine itself has nothing to say.
TEST(ClusterRules, ABlockMustStayForCopies) {
  const std::string arm = "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 4;\n",
                    reduce =
                        "@%p1 red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 "
                        "[%r20], %r5, [%r21];",
                    bulk =
                        "@%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r20], "
                        "[data+128], 16, [%r21];";
  const std::string arm_16 = "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;\n",
                    fill =
                        "@%p1 st.shared.v4.u32 [data+128], {%r5, %r5, %r5, %r5};\n@%p1 "
                        "fence.proxy.async.shared::cta;\n";
  const std::string linger =
      "mov.u32 %r9, 0;\nSTAY:\nadd.u32 %r9, %r9, 1;\nsetp.lt.u32 %p8, %r9, 4000;\n@%p8 bra "
      "STAY;\n";
  const std::string waited = only("%p0", "WAITED", wait("full", 0, "W0"));
  const std::string sender_waits = only("%p0", "WAITED", wait("full", 0, "W1"));
  const std::string zero = "@%p0 st.shared.u32 [data], 0;\n";
  for (const Case& c : std::vector<Case>{
           {"st.async", "remote-cta-gone", kReady + arm + kStoreAsync + " // here\n" + linger},
           {"red.async", "remote-cta-gone", zero + kReady + arm + reduce + " // here\n" + linger},
           {"a bulk copy", "remote-cta-gone", fill + kReady + arm_16 + bulk + " // here\n" + linger},
           {"a multicast that only its sender awaits", "remote-cta-gone",
            kReady + kArmOwn + kMeet + kBoth + kMulticast + " // here\n" + sender_waits + linger},
           {"the second of two phases", "remote-cta-gone",
            kReady + arm + kStoreAsync + "\n" + waited + arm + kMeet + kStoreAsync + " // here\n" + linger},
           {"a meeting tells nothing of the copy", "remote-cta-gone",
            kReady + arm + kStoreAsync + " // here\n" + linger + kMeet},
       }) {
    const Outcome o = run_checked(c, {machine::Schedule::Kind::Eager, 0});
    SCOPED_TRACE(std::string(c.name) + "\n" + async::testing::text_of(o) + o.body);
    ASSERT_FALSE(o.diagnostics.empty());
    EXPECT_EQ(o.diagnostics[0].id, c.id);
    EXPECT_TRUE(marked(o.body, o.diagnostics[0].place.line));
  }
  expect_all({
      {"st.async, awaited", "", kReady + arm + kStoreAsync + "\n" + waited},
      {"red.async, awaited", "", zero + kReady + arm + reduce + "\n" + waited},
      {"a bulk copy, awaited by a relaxed wait", "",
       fill + kReady + arm_16 + bulk + "\n" + only("%p0", "WAITED", wait("full", 0, "W0", ".relaxed.cluster")) + kMeet},
      {"a multicast that both await", "",
       kReady + kArmOwn + kMeet + kBoth + kMulticast + "\n" + only("%p3", "WAITED", wait("full", 0, "W0"))},
      {"both phases", "",
       kReady + arm + kStoreAsync + "\n" + waited + arm + kMeet + kStoreAsync + "\n" +
           only("%p0", "AGAIN", wait("full", 1, "W2"))},
  });
}

TEST(ClusterRules, ABarrierWithParticipantsInBothBlocks) {
  // `empty` of rank 0 expects an arrival of each block; three rounds of refills of both blocks' stages.
  const std::string init =
      "@%p3 mbarrier.init.shared::cta.b64 [full], 1;\n@%p3 mbarrier.init.shared::cta.b64 [empty], 2;\n" + kInitFence +
      kMeetRelaxed;
  const auto ring = [&](const std::string& own_arrive, const std::string& remote) {
    return init + kBoth +
           "mov.u32 %r10, 0;\nROUND:\nand.b32 %r11, %r10, 1;\nxor.b32 %r12, %r11, 1;\n"
           "@%p3 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;\n" +
           only("%p0", "FREE",
                "EMPTY:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p8, [empty], %r12;\n@!%p8 "
                "bra EMPTY;\n") +
           kMeet + kMulticast +
           " // here\nFULL:\nmbarrier.try_wait.parity.shared::cta.b64 %p8, [full], %r11;\n@!%p8 bra FULL;\n@%p4 "
           "ld.shared.u32 %r6, [data]; // here\nsetp.eq.and.u32 %p5, %r1, 0, %p4;\n@%p5 mbarrier.arrive" +
           own_arrive + ".shared::cta.b64 _, [empty];\n" + "@%p2 mbarrier.arrive" + remote +
           ".shared::cluster.b64 _, [%r22];\nadd.u32 %r10, %r10, 1;\nsetp.lt.u32 %p6, %r10, 3;\n@%p6 bra ROUND;\n" +
           kMeet;
  };
  expect_all({
      {"right", "", ring("", ".release.cluster")},
  });
}

TEST(ClusterRules, MissingArrivalsOfTheOtherBlock) {
  const auto program = [](const std::string& remote) {
    return "@%p3 mbarrier.init.shared::cta.b64 [full], 2;\n" + kInitFence + kMeetRelaxed +
           "@%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [full];\n" + remote +
           only(
               "%p0", "DONE",
               "W:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p8, [full], 0; // here\n@!%p8 bra W;\n") +
           kMeet;
  };
  const std::string own = "@%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [full];\n",
                    leader = "@%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r21];\n";
  expect_all({
      {"at the leader's barrier", "", program(leader)},
      {"at the own block's barrier", "arrival-count-mismatch", program(own)},
      {"nowhere", "arrival-count-mismatch", program("")},
      {"behind a barrier of the cluster", "deadlock", program("") + leader},
  });
  const auto hint = [&](const std::string& remote) {
    const Outcome o = run_checked({"", "", program(remote)}, {});
    return o.diagnostics.empty() ? std::string() : o.diagnostics[0].hint;
  };
  EXPECT_NE(hint(own).find("mapa"), std::string::npos) << hint(own);
  EXPECT_EQ(hint("").find("mapa"), std::string::npos) << hint("");
}

}  // namespace
}  // namespace handoff::check::testing
