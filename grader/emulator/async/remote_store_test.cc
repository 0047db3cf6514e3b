// st.async and red.async (PTX §9.7.9.12, §9.7.13.8) and mbarrier operations on barriers of other CTAs (§9.7.13.15).
//
// Forms and types are those that ptxas 13.0 assembles.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "grader/emulator/async/testing.h"

namespace handoff::async::testing {
namespace {

using machine::LaunchStatus;
using Kind = machine::MbarrierEvent::Kind;
using Milestone = machine::AsyncOpInfo::Milestone;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kPoisonWord = 0xffffffff;
const std::string kMeet = "barrier.cluster.arrive;\nbarrier.cluster.wait;\n";

/// Two CTAs of a warp. In each tile is filled with 100, 101, … and thread 0 initialises `full` with `count` and runs
/// `arm`; the CTAs meet; rank 0 runs `issue`, rank 1 `receive`; they meet again, and thread t of rank 1 writes word t
/// of its tile to word t of `out`. %r1 rank, %r2 tile, %r3 full; of rank 1: %r12 tile and %r13 full as shared::cluster
/// addresses, %rd12 and %rd13 as generic ones. %p0: thread 0.
Kernel pair_kernel(const std::string& arm, const std::string& issue, const std::string& receive, int count = 1) {
  Kernel k;
  k.shared = ".shared .align 128 .b8 tile[256];\n.shared .align 8 .b64 full;\n.shared .align 8 .b64 other;\n";
  k.grid = k.cluster = {2, 1, 1};
  k.progress_budget = 200'000;
  k.body =
      "\nmov.u32 %r1, %cluster_ctarank;\nmov.u32 %r2, tile;\nmov.u32 %r3, full;\nsetp.eq.u32 %p0, %t, 0;\n"
      "mapa.shared::cluster.u32 %r12, %r2, 1;\nmapa.shared::cluster.u32 %r13, %r3, 1;\ncvt.u64.u32 %rd12, %r12;\n"
      "cvta.shared::cluster.u64 %rd12, %rd12;\ncvt.u64.u32 %rd13, %r13;\ncvta.shared::cluster.u64 %rd13, %rd13;\n"
      "mad.lo.u32 %r4, %t, 4, %r2;\nadd.u32 %r5, %t, 100;\nst.shared.u32 [%r4], %r5;\nadd.u32 %r5, %t, 132;\n"
      "st.shared.u32 [%r4+128], %r5;\nsetp.eq.u32 %p1, %r1, 0;\nsetp.ne.u32 %p2, %r1, 0;\n@!%p0 bra READY;\n" +
      fmt::format("mbarrier.init.shared::cta.b64 [full], {};\n", count) + arm +
      "fence.mbarrier_init.release.cluster;\nREADY:\n" + kMeet + "@%p2 bra RECEIVE;\n" + issue +
      "bra BEHIND;\nRECEIVE:\n" + receive + "BEHIND:\n" + kMeet +
      "@%p1 bra DONE;\nmad.wide.u32 %rd30, %t, 4, %outp;\nld.shared.u32 %r5, [%r4];\nst.global.u32 [%rd30], %r5;\n"
      "ld.shared.u32 %r5, [%r4+128];\nst.global.u32 [%rd30+128], %r5;\nDONE:\n";
  return k;
}
std::string expect(int bytes) {
  return fmt::format("mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], {};\n", bytes);
}
std::string wait(int parity = 0, const std::string& label = "WAIT") {
  return fmt::format("{0}:\nmbarrier.try_wait.parity.shared::cta.b64 %p8, [full], {1};\n@!%p8 bra {0};\n", label,
                     parity);
}
std::string by_thread_0(const std::string& line, const std::string& label = "ISSUED") {
  return "@!%p0 bra " + label + ";\n" + line + "\n" + label + ":\n";
}

/// What thread t of rank 1 found in its tile, if nothing was written to it.
std::vector<uint32_t> untouched() {
  std::vector<uint32_t> v(64);
  for (uint32_t k = 0; k < 64; k++) v[k] = 100 + k;
  return v;
}

// --- st.async --------------------------------------------------------------------------------------------------------

struct TypeOf {
  const char* name;
  const char* reg;  // of one element; %r20.., %rd20.., %f0.. hold distinct bits
  uint32_t words;   // of an element
  bool in_vectors_of_4;
};
constexpr TypeOf kTypes[] = {{"b32", "%r2", 1, true},   {"u32", "%r2", 1, true},   {"s32", "%r2", 1, true},
                             {"f32", "%f", 1, true},    {"b64", "%rd2", 2, false}, {"u64", "%rd2", 2, false},
                             {"s64", "%rd2", 2, false}, {"f64", "%fd", 2, false}};

TEST(RemoteStore, EveryForm) {
  // Element e is 0x10e0 + e in its low word and, of 64 bits, 0x20e0 + e in its high one.
  std::string values;
  for (int e = 0; e < 4; e++) {
    values += fmt::format(
        "mov.u32 %r2{0}, {1};\nmov.b32 %f{0}, %r2{0};\nmov.u64 %rd2{0}, {2};\nmov.b64 %fd{0}, %rd2{0};\n", e,
        0x10e0 + e, (uint64_t{0x20e0} + static_cast<uint64_t>(e)) << 32 | (0x10e0 + static_cast<uint64_t>(e)));
  }
  for (const TypeOf& type : kTypes) {
    for (const uint32_t count : {1u, 2u, 4u}) {
      if (count == 4 && !type.in_vectors_of_4) continue;  // ptxas: at most 16 bytes
      for (const bool generic : {false, true}) {
        for (const char* weak : {"", ".weak"}) {
          std::string value;
          for (uint32_t e = 0; e < count; e++)
            value += (e == 0 ? "" : ", ") + std::string(type.reg) + std::to_string(e);
          if (count > 1) value = "{" + value + "}";
          const std::string line =
              fmt::format("st.async{}{}.mbarrier::complete_tx::bytes{}.{} [{}+32], {}, [{}];", weak,
                          generic ? "" : ".shared::cluster", count == 1 ? "" : fmt::format(".v{}", count), type.name,
                          generic ? "%rd12" : "%r12", value, generic ? "%rd13" : "%r13");
          const uint32_t bytes = 4 * type.words * count;
          std::vector<uint32_t> wanted = untouched();
          for (uint32_t e = 0; e < count; e++) {
            wanted[8 + type.words * e] = 0x10e0 + e;
            if (type.words == 2) wanted[9 + 2 * e] = 0x20e0 + e;
          }
          for (const machine::Schedule& schedule : schedules(1)) {
            SCOPED_TRACE(line + " " + to_string(schedule));
            Recorder seen;
            Kernel k = pair_kernel(expect(static_cast<int>(bytes)), ".reg .f64 %fd<4>;\n" + values + by_thread_0(line),
                                   wait());
            k.schedule = schedule;
            k.observer = &seen;
            const Outcome o = run(k);
            EXPECT_TRUE(clean(o));
            EXPECT_EQ(o.out, wanted);
            ASSERT_EQ(seen.order(Milestone::Issued).size(), 1u);
            EXPECT_EQ(seen.order(Milestone::Signalled).size(), 1u);
            const machine::AsyncOpInfo& info = seen.copies[0].info;
            EXPECT_EQ(info.kind, machine::AsyncOpInfo::Kind::RemoteStore);
            EXPECT_EQ(info.source_region, machine::Region::Local);
            EXPECT_EQ(info.bytes, bytes);
            const auto told = std::find_if(seen.barriers.begin(), seen.barriers.end(),
                                           [](const auto& e) { return e.kind == Kind::CompleteTx; });
            ASSERT_NE(told, seen.barriers.end());
            EXPECT_EQ(told->bytes, bytes);
            EXPECT_EQ(told->scope, machine::Scope::Cluster);
            EXPECT_EQ(told->sem, machine::Sem::Release);
            EXPECT_EQ(told->warp, nullptr);
          }
        }
      }
    }
  }
}

TEST(RemoteStore, EachLaneIsAnOperation) {
  // 32 lanes of rank 0 send their number to rank 1, which waits for 128 bytes.
  for (const machine::Schedule& schedule : schedules()) {
    Recorder seen;
    Kernel k = pair_kernel(expect(128),
                           "mad.lo.u32 %r14, %t, 4, %r12;\nst.async.shared::cluster.mbarrier::complete_tx::bytes.u32 "
                           "[%r14], %t, [%r13];\n",
                           wait());
    k.schedule = schedule;
    k.observer = &seen;
    const Outcome o = run(k);
    EXPECT_TRUE(clean(o)) << to_string(schedule);
    std::vector<uint32_t> wanted = untouched();
    for (uint32_t t = 0; t < 32; t++) wanted[t] = t;
    EXPECT_EQ(o.out, wanted);
    EXPECT_EQ(seen.order(Milestone::Issued).size(), 32u);
    EXPECT_EQ(seen.count(Kind::CompleteTx), 32u);
  }
}

TEST(RemoteStore, TheRegistersAreReadAtIssue) {
  for (const machine::Schedule& schedule : schedules()) {
    Kernel k = pair_kernel(expect(4),
                           by_thread_0("mov.u32 %r20, 7;\nst.async.shared::cluster.mbarrier::complete_tx::bytes.u32 "
                                       "[%r12], %r20, [%r13];\nmov.u32 %r20, 8;"),
                           wait());
    k.schedule = schedule;
    const Outcome o = run(k);
    EXPECT_TRUE(clean(o));
    EXPECT_EQ(o.out[0], 7u);
  }
}

TEST(RemoteStore, MayGoToTheOwnCta) {
  // Both addresses are rank 0's own, plain shared::cta ones.
  Kernel k =
      pair_kernel(expect(4),
                  by_thread_0("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [tile+4], 77, [full];") +
                      wait() + "ld.shared.u32 %r20, [tile+4];\nout 64 %r20\n",
                  "");
  // Rank 1's barrier keeps waiting for four bytes, which nobody asks about.
  k.out.assign(65, 0);
  const Outcome o = run(k);
  EXPECT_TRUE(clean(o));
  EXPECT_EQ(o.out[64], 77u);
}

TEST(RemoteStore, PoisonUntilItLands) {
  // Rank 1 reads without waiting, after rank 0 has issued: under the lazy schedule nothing has landed by then.
  const auto early = [](const std::string& line) {
    Kernel k = pair_kernel(expect(8), by_thread_0(line) + kMeet,
                           kMeet +
                               "ld.shared.v2.u32 {%r20, %r21}, [tile+8];\n@%p0 st.global.u32 [%outp+256], %r20;\n"
                               "@%p0 st.global.u32 [%outp+260], %r21;\n" +
                               wait());
    k.out.assign(66, 0);
    k.schedule = kLazy;
    return run(k);
  };
  const Outcome store =
      early("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%r12+8], {%t, %t}, [%r13];");
  EXPECT_TRUE(clean(store));
  EXPECT_THAT(std::vector<uint32_t>(store.out.begin() + 64, store.out.end()), ElementsAre(kPoisonWord, kPoisonWord));
  EXPECT_EQ(store.out[2], 0u);
  const Outcome reduction = early(
      "mov.u64 %rd20, 0x100000005;\nred.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64 "
      "[%r12+8], %rd20, [%r13];");
  EXPECT_TRUE(clean(reduction));
  EXPECT_THAT(std::vector<uint32_t>(reduction.out.begin() + 64, reduction.out.end()), ElementsAre(102, 103));
  EXPECT_EQ(reduction.out[2], 107u);
  EXPECT_EQ(reduction.out[3], 104u);
}

// --- red.async -------------------------------------------------------------------------------------------------------

TEST(RemoteReduction, EveryOperationAndType) {
  struct {
    const char *op, *type;
    uint64_t value, before, after;
  } const kCases[] = {
      {"inc", "u32", 200, 100, 101},
      {"inc", "u32", 100, 100, 0},
      {"dec", "u32", 200, 100, 99},
      {"dec", "u32", 50, 100, 50},
      {"min", "u32", 0x80000000, 100, 100},
      {"min", "s32", 0x80000000, 100, 0x80000000},
      {"max", "u32", 0x80000000, 100, 0x80000000},
      {"max", "s32", 0x80000000, 100, 100},
      {"add", "u32", 0xfffffff0, 100, 84},
      {"add", "s32", 0xfffffff0, 100, 84},
      {"add", "u64", 0x1'ffff'fff0, 100 + (uint64_t{101} << 32), (uint64_t{103} << 32) + 84},
      {"and", "b32", 0x66, 0x64, 0x64},
      {"or", "b32", 0x0b, 0x64, 0x6f},
      {"xor", "b32", 0xff, 0x64, 0x9b},
  };
  for (const auto& c : kCases) {
    const bool wide = std::string(c.type) == "u64";
    for (const bool generic : {false, true}) {
      const std::string line = fmt::format(
          "mov.u32 %r20, {};\nmov.u64 %rd20, {};\nred.async.relaxed.cluster{}.mbarrier::complete_tx::bytes.{}.{} [{}], "
          "{}, [{}];",
          c.value & 0xffffffff, c.value, generic ? "" : ".shared::cluster", c.op, c.type, generic ? "%rd12" : "%r12",
          wide ? "%rd20" : "%r20", generic ? "%rd13" : "%r13");
      for (const machine::Schedule& schedule : schedules(1)) {
        SCOPED_TRACE(line);
        Recorder seen;
        Kernel k = pair_kernel(expect(wide ? 8 : 4), by_thread_0(line), wait());
        k.schedule = schedule;
        k.observer = &seen;
        const Outcome o = run(k);
        EXPECT_TRUE(clean(o));
        EXPECT_EQ(o.out[0] | (wide ? uint64_t{o.out[1]} << 32 : 0), c.after);
        EXPECT_EQ(o.out[2], 102u);
        ASSERT_FALSE(seen.copies.empty());
        EXPECT_EQ(seen.copies[0].info.kind, machine::AsyncOpInfo::Kind::RemoteReduce);
        EXPECT_EQ(seen.copies[0].info.bytes, wide ? 8u : 4u);
      }
    }
  }
}

TEST(RemoteReduction, LanesAddUp) {
  for (const machine::Schedule& schedule : schedules()) {
    Kernel k =
        pair_kernel(expect(128),
                    "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r12+4], %t, "
                    "[%r13];\n",
                    wait());
    k.schedule = schedule;
    const Outcome o = run(k);
    EXPECT_TRUE(clean(o));
    EXPECT_EQ(o.out[1], 101u + 31 * 32 / 2);
  }
}

// --- faults ----------------------------------------------------------------------------------------------------------

TEST(RemoteStore, Faults) {
  const std::string store = "st.async.shared::cluster.mbarrier::complete_tx::bytes";
  struct {
    std::string line, id, says;
  } const kFaults[] = {
      {store + ".u32 [%r12], %t, [%r3];", "bad-copy",
       "CTA 0 warp 0 lane 0: st.async writes to the CTA of rank 1, but its mbarrier lies in the CTA of rank 0"},
      {"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r2], %t, [%r13];", "bad-copy",
       "red.async writes to the CTA of rank 0, but its mbarrier lies in the CTA of rank 1"},
      {"mov.u32 %r20, other;\nmapa.shared::cluster.u32 %r20, %r20, 1;\n" + store + ".u32 [%r12], %t, [%r20];",
       "barrier-not-initialized", "st.async on `other`, where no mbarrier is initialised"},
      {store + ".v2.u32 [%r12+4], {%t, %t}, [%r13];", "misaligned",
       "the destination of st.async tile+4 is not a multiple of 8 bytes"},
      {store + ".v4.u32 [%r12+8], {%t, %t, %t, %t}, [%r13];", "misaligned",
       "the destination of st.async tile+8 is not a multiple of 16 bytes"},
      {store + ".u32 [%r12], %t, [%r13+4];", "misaligned", "mbarrier full+4 is not a multiple of 8 bytes"},
      {"mapa.shared::cluster.u32 %r20, %r2, 3;\n" + store + ".u32 [%r20], %t, [%r13];", "out-of-bounds",
       "the destination of st.async tile of the CTA of rank 3, in a cluster of 2"},
      {store + ".u32 [%r12+65536], %t, [%r13];", "out-of-bounds", "the destination of st.async"},
      {"st.async.mbarrier::complete_tx::bytes.u32 [%outp], %t, [%rd13];", "out-of-bounds", "is not in shared memory"},
      {"st.async.mbarrier::complete_tx::bytes.u32 [%rd12], %t, [%outp];", "out-of-bounds", "is not in shared memory"},
  };
  for (const auto& f : kFaults) {
    const Outcome o = run(pair_kernel(expect(4), by_thread_0(f.line), wait()));
    EXPECT_EQ(o.status, LaunchStatus::Fault) << f.line;
    EXPECT_TRUE(reports(o, f.id, f.line.substr(f.line.rfind('\n') + 1), f.says));
  }
}

TEST(RemoteStore, ToACtaThatHasEnded) {
  Kernel k = pair_kernel("", "", "");
  // Rank 1 leaves behind a flag; rank 0 sends when it has seen it, and some time after.
  const std::string send = "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r12], %t, [%r13];";
  k.body = k.body.substr(0, k.body.find("@%p2 bra RECEIVE;")) +
           "@%p2 st.global.u32 [%outp], 1;\n@%p2 exit;\nmov.u32 %r9, 0;\nTURN:\nadd.u32 %r9, %r9, 1;\nsetp.lt.u32 %p3, "
           "%r9, 5000;\n@%p3 bra TURN;\nSPIN:\nld.volatile.global.u32 %r10, [%outp];\nsetp.eq.u32 %p3, %r10, 0;\n"
           "@%p3 bra SPIN;\n" +
           send + "\n";
  const Outcome o = run(k);
  EXPECT_EQ(o.status, LaunchStatus::Fault);
  EXPECT_TRUE(
      reports(o, "remote-cta-gone", send, "the destination of st.async tile of the CTA of rank 1, which has ended"));
}

TEST(RemoteStore, TheReceiverEndsWhileItIsUnderWay) {
  Kernel k = pair_kernel(expect(4), "", "");
  const std::string send = "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r12], 1, [%r13];";
  k.body =
      k.body.substr(0, k.body.find("@%p2 bra RECEIVE;")) + "@%p2 bra MEET;\n" + by_thread_0(send) + "MEET:\n" + kMeet;
  k.schedule = kLazy;
  const Outcome o = run(k);
  EXPECT_TRUE(reports(o, "copy-in-flight-at-exit", send, "the block ended while this copy of 4 bytes"));
}

TEST(RemoteStore, OutsideAClusterItIsAFault) {
  const std::string send = "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [tile], %t, [full];";
  Kernel k = pair_kernel(expect(4), by_thread_0(send), "");
  k.grid = k.cluster = {1, 1, 1};
  const Outcome o = run(k);
  EXPECT_EQ(o.status, LaunchStatus::Fault);
  EXPECT_TRUE(reports(o, "bad-copy", send, "st.async in a launch without clusters"));
}

// --- mbarriers of other CTAs -----------------------------------------------------------------------------------------

/// Also counts arrivals that come from the barrier's own CTA: events are good during the call only.
struct RemoteRecorder : Recorder {
  size_t own_arrivals = 0;
  void mbarrier(const machine::MbarrierEvent& e) override {
    Recorder::mbarrier(e);
    const bool arrives = e.kind == Kind::Arrive || e.kind == Kind::ArriveDrop || e.kind == Kind::ArriveExpectTx;
    if (arrives && e.warp->cta == e.owner) own_arrivals++;
  }
};

TEST(RemoteBarrier, ArrivalsOfEveryForm) {
  // The barrier of rank 1 expects 32 arrivals, which the lanes of rank 0 give, each in its own way; rank 1 waits.
  for (const char* sem : {"", ".release.cta", ".release.cluster", ".relaxed.cluster", ".relaxed.cta"}) {
    for (const bool generic : {false, true}) {
      const std::string space = generic ? "" : ".shared::cluster", place = generic ? "[%rd13]" : "[%r13]";
      for (const std::string& line :
           {"mbarrier.arrive" + std::string(sem) + space + ".b64 _, " + place + ";",
            "mbarrier.arrive" + std::string(sem) + space + ".b64 _, " + place + ", 1;",
            "mbarrier.arrive_drop" + std::string(sem) + space + ".b64 _, " + place + ";",
            "mbarrier.arrive.expect_tx" + std::string(sem) + space + ".b64 _, " + place + ", 0;",
            "mbarrier.arrive_drop.expect_tx" + std::string(sem) + space + ".b64 _, " + place + ", 0;"}) {
        for (const machine::Schedule& schedule : schedules(1)) {
          SCOPED_TRACE(line + " " + to_string(schedule));
          RemoteRecorder seen;
          Kernel k = pair_kernel("", line + "\n", wait(), 32);
          k.schedule = schedule;
          k.observer = &seen;
          const Outcome o = run(k);
          EXPECT_TRUE(clean(o));
          EXPECT_EQ(o.out, untouched());
          EXPECT_EQ(seen.own_arrivals, 0u);
          uint32_t arrivals = 0;
          for (const machine::MbarrierEvent& e : seen.barriers) {
            if (e.kind != Kind::Arrive && e.kind != Kind::ArriveDrop && e.kind != Kind::ArriveExpectTx) continue;
            arrivals++;
            EXPECT_EQ(e.scope, std::string(sem).find("cluster") != std::string::npos ? machine::Scope::Cluster
                                                                                     : machine::Scope::Cta);
            EXPECT_EQ(e.sem, std::string(sem).find("relaxed") != std::string::npos ? machine::Sem::Relaxed
                                                                                   : machine::Sem::Release);
          }
          EXPECT_EQ(arrivals, 32u);
          EXPECT_EQ(seen.count(Kind::PhaseComplete), 1u);
        }
      }
    }
  }
}

TEST(RemoteBarrier, ArriveExpectTxAnnouncesBytesOverThere) {
  // Rank 0 announces and sends; rank 1 only waits, and asks for the phase after that with nothing to come.
  for (const machine::Schedule& schedule : schedules()) {
    Kernel k = pair_kernel(
        "",
        by_thread_0("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r13], 8;\nst.async.shared::"
                    "cluster.mbarrier::complete_tx::bytes.v2.u32 [%r12], {7, 8}, [%r13];"),
        wait() + "mbarrier.test_wait.parity.shared::cta.b64 %p9, [full], 1;\noutp 64 %p9\n");
    k.out.assign(65, 9);
    k.schedule = schedule;
    const Outcome o = run(k);
    EXPECT_TRUE(clean(o));
    EXPECT_EQ(o.out[0], 7u);
    EXPECT_EQ(o.out[1], 8u);
    EXPECT_EQ(o.out[64], 0u);
  }
}

TEST(RemoteBarrier, ExpectTxAndCompleteTxOverThere) {
  for (const std::string& scope : {std::string(".relaxed.cluster"), std::string()}) {
    Kernel k = pair_kernel("",
                           by_thread_0("mbarrier.expect_tx" + scope +
                                       ".shared::cluster.b64 [%r13], 24;\n"
                                       "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r13];\n"
                                       "mbarrier.complete_tx" +
                                       scope + ".shared::cluster.b64 [%r13], 24;"),
                           wait());
    for (const machine::Schedule& schedule : schedules()) {
      k.schedule = schedule;
      EXPECT_TRUE(clean(run(k)));
    }
  }
}

TEST(RemoteBarrier, PingPong) {
  // Two warps hand a number back and forth for ten phases: the one waits on its own barrier, adds 1 to what the other
  // has sent and sends it on. In the end both know 20 and 19.
  const std::string body = R"(
    mov.u32 %r1, %cluster_ctarank;
    xor.b32 %r2, %r1, 1;
    mov.u32 %r3, tile;
    mov.u32 %r4, full;
    mapa.shared::cluster.u32 %r5, %r3, %r2;
    mapa.shared::cluster.u32 %r6, %r4, %r2;
    setp.ne.u32 %p0, %t, 0;
    @%p0 bra READY;
    mbarrier.init.shared::cta.b64 [full], 1;
    fence.mbarrier_init.release.cluster;
  READY:
    barrier.cluster.arrive.relaxed;
    barrier.cluster.wait;
    @%p0 bra DONE;
    mov.u32 %r7, 0;
    mov.u32 %r8, 0;
    setp.eq.u32 %p1, %r1, 1;
    @%p1 bra TURN;
  SEND:
    add.u32 %r8, %r8, 1;
    st.shared::cluster.u32 [%r5], %r8;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];
  TURN:
    setp.eq.u32 %p2, %r7, 10;
    @%p2 bra DONE;
    and.b32 %r9, %r7, 1;
  WAIT:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [full], %r9;
    @!%p3 bra WAIT;
    add.u32 %r7, %r7, 1;
    ld.shared.u32 %r8, [tile];
    setp.lt.u32 %p4, %r7, 10;
    setp.eq.or.u32 %p4, %r1, 1, %p4;
    @%p4 bra SEND;
  DONE:
    barrier.cluster.arrive;
    barrier.cluster.wait;
    @%p0 exit;
    mad.wide.u32 %rd1, %r1, 4, %outp;
    st.global.u32 [%rd1], %r8;
  )";
  for (const machine::Schedule& schedule : schedules()) {
    Kernel k;
    k.shared = ".shared .align 128 .b8 tile[256];\n.shared .align 8 .b64 full;\n";
    k.grid = k.cluster = {2, 1, 1};
    k.body = body;
    k.schedule = schedule;
    k.progress_budget = 200'000;
    const Outcome o = run(k);
    EXPECT_TRUE(clean(o)) << to_string(schedule);
    EXPECT_EQ(o.out[0], 20u);
    EXPECT_EQ(o.out[1], 20u);
  }
}

TEST(RemoteBarrier, WaitsAreLocal) {
  const std::string other = "mapa.shared::cluster.u32 %r20, %r3, 1;\n";
  struct {
    std::string line, says;
  } const kFaults[] = {
      {"mbarrier.try_wait.parity.b64 %p9, [%rd13], 0;",
       "CTA 0 warp 0 lane 0 waits for a barrier of another CTA; waits are local"},
      {"mbarrier.test_wait.parity.b64 %p9, [%rd13], 0;",
       "CTA 0 warp 0 lane 0 waits for a barrier of another CTA; waits are local"},
      {"mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r13], 0;",
       "CTA 0 warp 0 lane 0: mbarrier full of the CTA of rank 1 in the cluster, but the instruction reaches only the "
       "executing CTA's shared memory (rank 0)"},
      {"mbarrier.arrive.shared::cta.b64 _, [%r13];", "but the instruction reaches only the executing CTA's"},
      {"mbarrier.arrive.shared.b64 %rd20, [%r13];", "but the instruction reaches only the executing CTA's"},
  };
  for (const auto& f : kFaults) {
    const Outcome o = run(pair_kernel("", by_thread_0(f.line), ""));
    EXPECT_EQ(o.status, LaunchStatus::Fault) << f.line;
    EXPECT_TRUE(reports(o, "out-of-bounds", f.line, f.says));
  }
}

TEST(RemoteBarrier, TooManyArrivalsAreAFaultOfWhoArrives) {
  const std::string line = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r13], 2;";
  const Outcome o = run(pair_kernel("", by_thread_0(line), ""));
  EXPECT_EQ(o.status, LaunchStatus::Fault);
  EXPECT_TRUE(
      reports(o, "arrival-count-mismatch", line,
              "CTA 0 warp 0 lane 0 arrives at `full` with count 2, but phase 0 misses only 1 of its 1 arrivals"));
}

TEST(RemoteBarrier, NotInitialised) {
  const std::string line = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r20];";
  const Outcome o =
      run(pair_kernel("", by_thread_0("mov.u32 %r20, other;\nmapa.shared::cluster.u32 %r20, %r20, 1;\n" + line), ""));
  EXPECT_EQ(o.status, LaunchStatus::Fault);
  EXPECT_TRUE(reports(o, "barrier-not-initialized", line, "mbarrier.arrive on `other`"));
}

TEST(RemoteBarrier, InitIsLocal) {
  // PTX §9.7.13.15.9: the address of mbarrier.init lies in .shared::cta.
  for (const std::string& line :
       {std::string("mbarrier.init.b64 [%rd13], 1;"), std::string("mbarrier.inval.b64 [%rd13];")}) {
    const Outcome o = run(pair_kernel("", by_thread_0(line), ""));
    EXPECT_EQ(o.status, LaunchStatus::Fault) << line;
    EXPECT_TRUE(reports(o, "out-of-bounds", line, "reaches only the executing CTA's shared memory"));
  }
}

}  // namespace
}  // namespace handoff::async::testing
