// clusterlaunchcontrol through PTX: every piece of work is done once, whoever does it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "grader/emulator/async/testing.h"

namespace handoff::async::testing {
namespace {

using machine::AsyncOpInfo;
using machine::LaunchStatus;
using machine::MbarrierEvent;
using ::testing::ElementsAre;
using ::testing::Gt;

constexpr uint32_t kStarted = 63;  // word of `out` that counts the CTAs

/// One thread a CTA; as much shared memory as makes a CTA fill an SM.
Kernel kernel(std::string body, machine::Dim grid, uint32_t sms) {
  Kernel k;
  k.shared = ".shared .align 16 .b8 response[32];\n.shared .align 8 .b64 done;\n.extern .shared .align 16 .b8 big[];\n";
  k.body = "\n.reg .b128 %q<4>;\n" + std::move(body);
  k.block = {1, 1, 1};
  k.grid = grid;
  k.sms = sms;
  k.dynamic_smem = 200 * 1024;
  return k;
}

/// Each CTA counts its own piece of work in `out`, then the pieces of CTAs that it cancels.
std::string loop(const std::string& query) {
  return R"(
    mbarrier.init.shared::cta.b64 [done], 1;
    atom.global.add.u32 %r1, [%outp+252], 1;
    mov.u32 %r10, %ctaid.x;
    mov.u32 %r11, %ctaid.y;
    mov.u32 %r12, %ctaid.z;
    mov.u32 %r13, 0;
    LOOP:
    mov.u32 %r2, %nctaid.x;
    mov.u32 %r3, %nctaid.y;
    mad.lo.u32 %r4, %r12, %r3, %r11;
    mad.lo.u32 %r4, %r4, %r2, %r10;
    mul.wide.u32 %rd1, %r4, 4;
    add.u64 %rd1, %rd1, %outp;
    atom.global.add.u32 %r5, [%rd1], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [done], 16;
    clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [response+16], [done];
    WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [done], %r13;
    @!%p2 bra WAIT;
    xor.b32 %r13, %r13, 1;
    ld.shared.b128 %q1, [response+16];
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q1;
    @!%p3 bra END;
  )" + query +
         R"(
    bra LOOP;
    END:
  )";
}
const char* const kVector = "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r10, %r11, %r12, _}, %q1;";

/// Words of `out` from the first one on.
std::vector<uint32_t> work(const Outcome& o, size_t count) {
  return {o.out.begin(), o.out.begin() + static_cast<std::ptrdiff_t>(count)};
}

TEST(LaunchControl, EveryCtaIsStartedOrCancelledOnce) {
  for (const auto& schedule : schedules(12)) {
    Kernel k = kernel(loop(kVector), {40, 1, 1}, 3);
    k.schedule = schedule;
    const Outcome o = run(k);
    ASSERT_TRUE(clean(o)) << machine::to_string(schedule);
    EXPECT_EQ(work(o, 40), std::vector<uint32_t>(40, 1)) << machine::to_string(schedule);
    // What the chip has room for starts on its own before anything is cancelled.
    if (schedule.kind != machine::Schedule::Kind::Random) {
      EXPECT_EQ(o.out[kStarted], 3u) << machine::to_string(schedule);
    }
  }
}

TEST(LaunchControl, TheRoomOfAFinishedCtaIsForTheNext) {
  // CTAs that do not ask leave theirs to be started.
  Kernel k = kernel("mov.u32 %r1, %ctaid.x;\nand.b32 %r2, %r1, 3;\nsetp.ne.u32 %p1, %r2, 0;\n@%p1 bra PLAIN;\n" +
                        loop(kVector) + "ret;\nPLAIN:\n" + R"(
    mul.wide.u32 %rd1, %r1, 4;
    add.u64 %rd1, %rd1, %outp;
    atom.global.add.u32 %r5, [%rd1], 1;
    atom.global.add.u32 %r5, [%outp+252], 1;
  )",
                    {40, 1, 1}, 4);
  for (const auto& schedule : schedules(6)) {
    k.schedule = schedule;
    const Outcome o = run(k);
    ASSERT_TRUE(clean(o)) << machine::to_string(schedule);
    EXPECT_EQ(work(o, 40), std::vector<uint32_t>(40, 1)) << machine::to_string(schedule);
    EXPECT_THAT(o.out[kStarted], Gt(0u));
  }
}

TEST(LaunchControl, CoordinatesOfAllDimensions) {
  const std::string single =
      "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r10, %q1;\n"
      "clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r11, %q1;\n"
      "clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 %r12, %q1;\n";
  for (const std::string& query : {std::string(kVector), single}) {
    Kernel k = kernel(loop(query), {4, 3, 2}, 1);
    const Outcome o = run(k);
    ASSERT_TRUE(clean(o));
    EXPECT_EQ(work(o, 24), std::vector<uint32_t>(24, 1));
    EXPECT_EQ(o.out[kStarted], 1u);
  }
}

TEST(LaunchControl, GenericAddresses) {
  std::string body = loop(kVector);
  const std::string shared = ".async.shared::cta", operands = "[response+16], [done]";
  body.replace(body.find(shared), shared.size(), ".async");
  body.replace(body.find(operands), operands.size(), "[%rd5+16], [%rd6]");
  body = R"(
    mov.u32 %r20, response;
    cvt.u64.u32 %rd5, %r20;
    cvta.shared.u64 %rd5, %rd5;
    mov.u32 %r20, done;
    cvt.u64.u32 %rd6, %r20;
    cvta.shared.u64 %rd6, %rd6;
  )" + body;
  const Outcome o = run(kernel(body, {9, 1, 1}, 2));
  ASSERT_TRUE(clean(o));
  EXPECT_EQ(work(o, 9), std::vector<uint32_t>(9, 1));
}

// The loop of PTX §9.7.13.17: the first CTA of a cluster asks, all are told.
TEST(LaunchControl, ARequestOfAClusterIsAnsweredToAllOfIt) {
  const std::string body = R"(
    mbarrier.init.shared::cta.b64 [done], 1;
    fence.mbarrier_init.release.cluster;
    atom.global.add.u32 %r1, [%outp+252], 1;
    mov.u32 %r10, %ctaid.x;
    mov.u32 %r14, %cluster_ctarank;
    setp.eq.u32 %p1, %r14, 0;
    mov.u32 %r13, 0;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    LOOP:
    mul.wide.u32 %rd1, %r10, 4;
    add.u64 %rd1, %rd1, %outp;
    atom.global.add.u32 %r5, [%rd1], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [done], 16;
    @%p1 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [response], [done]; // ask
    WAIT:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [done], %r13;
    @!%p2 bra WAIT;
    xor.b32 %r13, %r13, 1;
    ld.shared.b128 %q1, [response];
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q1;
    @!%p3 bra END;
    clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r10, _, _, _}, %q1;
    add.u32 %r10, %r10, %r14;
    fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;
    barrier.cluster.arrive.relaxed.aligned;
    barrier.cluster.wait.aligned;
    fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;
    bra LOOP;
    END:
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
  )";
  for (const auto& schedule : schedules(8)) {
    Kernel k = kernel(body, {48, 1, 1}, 8);
    k.cluster = {4, 1, 1};
    k.schedule = schedule;
    const Outcome o = run(k);
    ASSERT_TRUE(clean(o)) << machine::to_string(schedule);
    EXPECT_EQ(work(o, 48), std::vector<uint32_t>(48, 1)) << machine::to_string(schedule);
    EXPECT_EQ(o.out[kStarted] % 4, 0u);
    if (schedule.kind != machine::Schedule::Kind::Random) {
      EXPECT_EQ(o.out[kStarted], 8u) << machine::to_string(schedule);
    }
  }
}

TEST(LaunchControl, WhatItsWatcherIsTold) {
  Recorder seen;
  Kernel k = kernel(loop(kVector), {2, 1, 1}, 1);
  k.observer = &seen;
  ASSERT_TRUE(clean(run(k)));
  using Milestone = AsyncOpInfo::Milestone;
  std::vector<Milestone> stages;
  for (const Recorder::Milestone& m : seen.copies) {
    stages.push_back(m.milestone);
    EXPECT_EQ(m.info.kind, AsyncOpInfo::Kind::LaunchCancel);
    EXPECT_EQ(m.info.bytes, 16u);
    EXPECT_EQ(m.info.source_owner, nullptr);
    EXPECT_EQ(m.info.destination_owner, m.info.mbarrier_owner);
  }
  EXPECT_THAT(stages, ElementsAre(Milestone::Issued, Milestone::SourceRead, Milestone::Written, Milestone::Signalled,
                                  Milestone::Issued, Milestone::SourceRead, Milestone::Written, Milestone::Signalled));
  EXPECT_EQ(seen.count(MbarrierEvent::Kind::CompleteTx), 2u);
}

/// A request in a grid of one CTA, which is refused, and `then`, behind the wait.
std::string refused(const std::string& then) {
  return R"(
    mbarrier.init.shared::cta.b64 [done], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [done], 16;
    clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [response], [done];
    WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [done], 0;
    @!%p2 bra WAIT;
    ld.shared.b128 %q1, [response];
  )" + then;
}

TEST(LaunchControl, WhatIsUndefinedStops) {
  const auto stops = [](const std::string& body, const char* id, const char* says) {
    const Outcome o = run(kernel(body, {1, 1, 1}, 1));
    EXPECT_EQ(o.status, LaunchStatus::Fault);
    return reports(o, id, "// here", says);
  };
  EXPECT_TRUE(stops(refused("clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r1, %q1; // here\n"),
                    "bad-copy", "get_first_ctaid of a request that failed"));
  EXPECT_TRUE(stops(refused(R"(
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q1;
    clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [response], [done]; // here
  )"),
                    "bad-copy", "after this CTA has seen a request fail"));
  EXPECT_TRUE(
      stops("ld.shared.b128 %q1, [response];\nclusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q1; "
            "// here\n",
            "bad-copy", "no response of try_cancel"));
  const std::string request = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 ";
  EXPECT_TRUE(stops(request + "[response], [done]; // here\n", "barrier-not-initialized", "done"));
  const std::string init = "mbarrier.init.shared::cta.b64 [done], 1;\n";
  EXPECT_TRUE(stops(init + request + "[response+8], [done]; // here\n", "misaligned",
                    "the response of clusterlaunchcontrol.try_cancel at response+8 is not a multiple of 16 bytes"));
  EXPECT_TRUE(stops(init + request + "[big+204800], [done]; // here\n", "out-of-bounds", "with 16 bytes runs past"));
}

TEST(LaunchControl, ACtaMustNotEndBeforeItsResponseIsThere) {
  const Outcome o =
      run(kernel("mbarrier.init.shared::cta.b64 [done], 1;\n"
                 "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [response], "
                 "[done]; // ask\n",
                 {1, 1, 1}, 1));
  EXPECT_TRUE(reports(o, "copy-in-flight-at-exit", "// ask"));
}

}  // namespace
}  // namespace handoff::async::testing
