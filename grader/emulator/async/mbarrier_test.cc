// The mbarrier operations through PTX, against the tables of PTX §9.7.13.15 and against a slow model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "grader/emulator/async/testing.h"

namespace handoff::async::testing {
namespace {

using machine::LaunchStatus;
using machine::Scope;
using machine::Sem;
using Kind = machine::MbarrierEvent::Kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const char* const kFull = ".shared .align 8 .b64 full;\n";

Outcome one_thread(const std::string& body, machine::Observer* observer = nullptr,
                   machine::Schedule schedule = kNominal) {
  Kernel s;
  s.shared = kFull;
  s.body = body;
  s.block = {1, 1, 1};
  s.observer = observer;
  s.schedule = schedule;
  return run(s);
}

TEST(MbarrierTest, ParityWaitsAnswerByTheTruthTable) {
  std::string body = "\nmbarrier.init.shared::cta.b64 [full], 1;\n";
  int n = 0;
  for (int phase = 0; phase < 4; phase++) {
    for (const char* parity : {"0", "1"}) {
      body += std::string("mbarrier.test_wait.parity.shared::cta.b64 %p1, [full], ") + parity + ";\noutp " +
              std::to_string(n++) + " %p1\n";
      body += std::string("mbarrier.try_wait.parity.shared::cta.b64 %p1, [full], ") + parity + ", 1000;\noutp " +
              std::to_string(n++) + " %p1\n";
    }
    body += "mbarrier.arrive.shared::cta.b64 _, [full];\n";
  }
  for (const auto& schedule : schedules()) {
    const Outcome o = one_thread(body, nullptr, schedule);
    ASSERT_TRUE(clean(o));
    for (uint32_t phase = 0; phase < 4; phase++) {
      for (uint32_t parity = 0; parity < 2; parity++) {
        const uint32_t complete = parity != (phase & 1) ? 1 : 0;  // a fresh barrier answers true for parity 1
        EXPECT_EQ(o.out[phase * 4 + parity * 2], complete) << "test_wait, phase " << phase << " parity " << parity;
        EXPECT_EQ(o.out[phase * 4 + parity * 2 + 1], complete) << "try_wait, phase " << phase << " parity " << parity;
      }
    }
  }
}

TEST(MbarrierTest, AreNamedByIndexInAnArrayAndByOffsetInAStructure) {
  const auto named = [](const std::string& shared, const std::string& where) {
    Kernel k;
    k.shared = shared;
    k.block = {1, 1, 1};
    k.body = "\nmbarrier.init.shared::cta.b64 [" + where +
             "], 1;\nW:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [" + where + "], 0;\n@!%p1 bra W;\n";
    const Outcome o = run(k);
    return o.state.empty() ? "" : o.state[0];
  };
  EXPECT_THAT(named(".shared .align 8 .b8 full[16];\n", "full+8"), HasSubstr("full[1]"));
  EXPECT_THAT(named(".shared .align 16 .b8 ring[4112];\n", "ring+4096"), HasSubstr("ring+4096"));
  EXPECT_THAT(named(".shared .align 8 .b64 one;\n", "one"), HasSubstr("one"));
}

// A loop that counts its turns, or has an effect in each, does not look like waiting; the copies come all the same, on
// schedules that hold them, too, and one after the other.
TEST(MbarrierTest, APollThatCountsSeesTheCopiesOnEverySchedule) {
  const std::string effects[] = {"", "atom.add.global.u32 %r8, [%outp+8], 1;\n"};
  for (const std::string& effect : effects) {
    for (const auto& schedule : schedules()) {
      Kernel k;
      k.shared = kFull + std::string("\n.shared .align 16 .b8 tile[64];\n");
      k.block = {1, 1, 1};
      k.in.assign(16, 7);
      k.schedule = schedule;
      k.progress_budget = 200'000;
      k.body = "\nmbarrier.init.shared::cta.b64 [full], 1;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 64;\n";
      for (const char* at : {"0", "16", "32", "48"}) {
        k.body += std::string("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile+") + at +
                  "], [%inp], 16, [full];\n";
      }
      k.body += "mov.u32 %r9, 0;\nAGAIN:\nmbarrier.test_wait.parity.shared::cta.b64 %p1, [full], 0;\n@%p1 bra DONE;\n" +
                effect +
                "add.u32 %r9, %r9, 1;\nbra AGAIN;\nDONE:\nld.shared.u32 %r7, [tile+60];\nst.global.u32 "
                "[%outp], %r7;\nst.global.u32 [%outp+4], %r9;\n";
      const Outcome o = run(k);
      ASSERT_TRUE(clean(o)) << to_string(schedule) << effect;
      EXPECT_EQ(o.out[0], 7u) << to_string(schedule);
      if (schedule.kind == machine::Schedule::Kind::Lazy) {
        EXPECT_GT(o.out[1], 0u);
      }
    }
  }
}

TEST(MbarrierTest, ParityIsTheOperandsLowestBitWhateverItsWidth) {
  const Outcome o = one_thread(R"(
    mbarrier.init.shared.b64 [full], 1;
    mov.u32 %r1, 1;
    mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 %p1, [full], %r1;
    outp 0 %p1
    mov.u32 %r1, 0;
    mbarrier.test_wait.parity.relaxed.cluster.shared::cta.b64 %p1, [full], %r1;
    outp 1 %p1
    mov.u32 %r2, 7;
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [full], %r1, %r2;
    outp 2 %p1
  )");
  ASSERT_TRUE(clean(o));
  EXPECT_THAT(std::vector<uint32_t>(o.out.begin(), o.out.begin() + 3), ElementsAre(1, 0, 0));
}

TEST(MbarrierTest, OtherParitiesThan0And1AreReportedAndTheirLowestBitCounts) {
  const Outcome o = one_thread(R"(
    mbarrier.init.shared.b64 [full], 1;
    mov.u32 %r1, 3;
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [full], %r1; // odd
    outp 0 %p1
    mov.u32 %r1, 2;
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [full], %r1; // even
    outp 1 %p1
  )");
  EXPECT_THAT(std::vector<uint32_t>(o.out.begin(), o.out.begin() + 2), ElementsAre(1, 0));
  ASSERT_EQ(o.diagnostics.size(), 2u);
  for (const Diagnostic& d : o.diagnostics) EXPECT_EQ(d.id, "bad-parity");
  EXPECT_EQ(o.diagnostics[0].place.line, line_of(o.body, "// odd"));
  EXPECT_EQ(o.diagnostics[1].place.line, line_of(o.body, "// even"));
  EXPECT_EQ(o.diagnostics[1].message, "warp 0 lane 0 waits for parity 2; a parity is 0 or 1");
}

TEST(MbarrierTest, TokenWaitsComparePhases) {
  Recorder seen;
  const Outcome o = one_thread(R"(
    mbarrier.init.shared::cta.b64 [full], 2;
    mbarrier.arrive.shared::cta.b64 %rd1, [full];
    mbarrier.test_wait.shared::cta.b64 %p1, [full], %rd1;
    outp 0 %p1
    mbarrier.try_wait.shared::cta.b64 %p1, [full], %rd1, 20;
    outp 1 %p1
    mbarrier.arrive.shared::cta.b64 %rd2, [full];
    mbarrier.test_wait.shared::cta.b64 %p1, [full], %rd1;
    outp 2 %p1
    mbarrier.try_wait.shared::cta.b64 %p1, [full], %rd2;
    outp 3 %p1
    mbarrier.arrive.shared::cta.b64 %rd3, [full], 2;
    mbarrier.test_wait.shared::cta.b64 %p1, [full], %rd3;
    outp 4 %p1
    mbarrier.test_wait.shared::cta.b64 %p1, [full], %rd1;
    outp 5 %p1
  )",
                               &seen);
  ASSERT_TRUE(clean(o));
  // The last is the token of a phase before the preceding one: complete long since.
  EXPECT_THAT(std::vector<uint32_t>(o.out.begin(), o.out.begin() + 6), ElementsAre(0, 0, 1, 1, 1, 1));
  EXPECT_EQ(seen.count(Kind::PhaseComplete), 2u);
}

TEST(MbarrierTest, PendingCountIsThatBeforeTheArrive) {
  const Outcome o = one_thread(R"(
    mbarrier.init.shared::cta.b64 [full], 1048575;
    mbarrier.arrive.noComplete.shared::cta.b64 %rd1, [full], 5;
    mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %rd2, [full], 70;
    mbarrier.arrive_drop.noComplete.shared::cta.b64 %rd3, [full], 100;
    mbarrier.arrive.noComplete.shared::cta.b64 %rd4, [full], 1;
    mbarrier.pending_count.b64 %r1, %rd1;
    mbarrier.pending_count.b64 %r2, %rd2;
    mbarrier.pending_count.b64 %r3, %rd3;
    mbarrier.pending_count.b64 %r4, %rd4;
    out 0 %r1
    out 1 %r2
    out 2 %r3
    out 3 %r4
  )");
  ASSERT_TRUE(clean(o));
  EXPECT_THAT(std::vector<uint32_t>(o.out.begin(), o.out.begin() + 4), ElementsAre(1048575, 1048570, 1048500, 1048400));
}

struct Form {
  const char* text;
  Kind kind;
  uint32_t count, pending, expected;
  int64_t bytes, tx;
  Sem sem;
  Scope scope;
};
void PrintTo(const Form& f, std::ostream* out) { *out << f.text; }
class MbarrierFormTest : public ::testing::TestWithParam<Form> {};

// Every form of arrive and of the tx operations on a barrier of 8 arrivals: counts, order and scope as the observer
// sees them.
TEST_P(MbarrierFormTest, ChangesTheCounts) {
  const Form& f = GetParam();
  Recorder seen;
  const Outcome o = one_thread(R"(
    mov.u32 %r1, full;
    mapa.shared::cluster.u32 %r2, %r1, 0;
    add.u32 %r3, %r2, 0;
    cvt.u64.u32 %rd9, %r1;
    cvta.shared.u64 %rd1, %rd9;
    mbarrier.init.shared::cta.b64 [%r1], 8;
    )" + std::string(f.text) + R"(
    mbarrier.arrive.shared::cta.b64 _, [full], )" +
                                   std::to_string(f.pending == 0 ? 8 : f.pending) + R"(;
  )",
                               &seen);
  EXPECT_EQ(o.status, LaunchStatus::Ok);
  EXPECT_TRUE(clean(o)) << f.text;
  ASSERT_GE(seen.barriers.size(), 3u);
  const machine::MbarrierEvent& e = seen.barriers[1];
  EXPECT_EQ(e.kind, f.kind);
  EXPECT_EQ(e.phase, 0u);
  EXPECT_EQ(e.count, f.count);
  EXPECT_EQ(e.bytes, f.bytes);
  EXPECT_EQ(e.pending, f.pending);
  EXPECT_EQ(e.tx, f.tx);
  EXPECT_EQ(e.sem, f.sem);
  EXPECT_EQ(e.scope, f.scope);
  EXPECT_EQ(e.offset, machine::kSharedBase);
  if (f.tx == 0) {
    // The rest of the arrivals completes phase 0; the next one expects what arrive_drop left.
    const auto& complete = seen.barriers[f.pending == 0 ? 2 : 3];
    EXPECT_EQ(complete.kind, Kind::PhaseComplete);
    EXPECT_EQ(complete.phase, 0u);
  }
}

constexpr Sem kRel = Sem::Release, kRlx = Sem::Relaxed;
INSTANTIATE_TEST_SUITE_P(
    All, MbarrierFormTest,
    ::testing::Values(
        Form{"mbarrier.arrive.shared::cta.b64 %rd5, [full];", Kind::Arrive, 1, 7, 8, 0, 0, kRel, Scope::Cta},
        Form{"mbarrier.arrive.shared.b64 _, [full], 3;", Kind::Arrive, 3, 5, 8, 0, 0, kRel, Scope::Cta},
        Form{"mbarrier.arrive.shared::cta.b64 %rd5, [%r1], 8;", Kind::Arrive, 8, 0, 8, 0, 0, kRel, Scope::Cta},
        Form{"mbarrier.arrive.release.cta.shared::cta.b64 _, [full], 2;", Kind::Arrive, 2, 6, 8, 0, 0, kRel,
             Scope::Cta},
        Form{"mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [full];", Kind::Arrive, 1, 7, 8, 0, 0, kRlx, Scope::Cta},
        Form{"mbarrier.arrive.release.cluster.shared::cta.b64 %rd5, [full];", Kind::Arrive, 1, 7, 8, 0, 0, kRel,
             Scope::Cluster},
        Form{"mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r2];", Kind::Arrive, 1, 7, 8, 0, 0, kRel,
             Scope::Cluster},
        Form{"mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r3], 4;", Kind::Arrive, 4, 4, 8, 0, 0, kRlx,
             Scope::Cluster},
        Form{"mbarrier.arrive.shared::cluster.b64 _, [%r1];", Kind::Arrive, 1, 7, 8, 0, 0, kRel, Scope::Cta},
        Form{"mbarrier.arrive.b64 %rd5, [%rd1];", Kind::Arrive, 1, 7, 8, 0, 0, kRel, Scope::Cta},
        Form{"mbarrier.arrive.noComplete.shared::cta.b64 %rd5, [full], 7;", Kind::Arrive, 7, 1, 8, 0, 0, kRel,
             Scope::Cta},
        Form{"mbarrier.arrive.expect_tx.shared::cta.b64 %rd5, [full], 0;", Kind::ArriveExpectTx, 1, 7, 8, 0, 0, kRel,
             Scope::Cta},
        Form{"mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [full], 4096;", Kind::ArriveExpectTx, 1, 7, 8,
             4096, 4096, kRel, Scope::Cta},
        Form{"mbarrier.arrive.expect_tx.relaxed.cluster.shared::cluster.b64 _, [%r3], 16;", Kind::ArriveExpectTx, 1, 7,
             8, 16, 16, kRlx, Scope::Cluster},
        Form{"mbarrier.arrive_drop.shared::cta.b64 %rd5, [full];", Kind::ArriveDrop, 1, 7, 7, 0, 0, kRel, Scope::Cta},
        Form{"mbarrier.arrive_drop.release.cluster.shared::cluster.b64 _, [%r2], 2;", Kind::ArriveDrop, 2, 6, 6, 0, 0,
             kRel, Scope::Cluster},
        Form{"mbarrier.arrive_drop.noComplete.shared::cta.b64 %rd5, [full], 3;", Kind::ArriveDrop, 3, 5, 5, 0, 0, kRel,
             Scope::Cta},
        Form{"mbarrier.expect_tx.shared::cta.b64 [full], 64;", Kind::ExpectTx, 0, 8, 8, 64, 64, kRlx, Scope::Cta},
        Form{"mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%r2], 64;", Kind::ExpectTx, 0, 8, 8, 64, 64, kRlx,
             Scope::Cluster},
        Form{"mbarrier.expect_tx.b64 [%rd1], 1048575;", Kind::ExpectTx, 0, 8, 8, 1048575, 1048575, kRlx, Scope::Cta},
        Form{"mbarrier.complete_tx.shared::cta.b64 [full], 64;", Kind::CompleteTx, 0, 8, 8, 64, -64, kRlx, Scope::Cta},
        Form{"mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r2], 1048575;", Kind::CompleteTx, 0, 8, 8,
             1048575, -1048575, kRlx, Scope::Cluster}));

TEST(MbarrierTest, ArriveDropLowersLaterPhases) {
  Recorder seen;
  const Outcome o = one_thread(R"(
    mbarrier.init.shared::cta.b64 [full], 3;
    mbarrier.arrive_drop.shared::cta.b64 _, [full];
    mbarrier.arrive.shared::cta.b64 _, [full];
    mbarrier.arrive_drop.expect_tx.shared::cta.b64 %rd1, [full], 32;
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [full], 0;
    outp 0 %p1
    mbarrier.complete_tx.shared::cta.b64 [full], 32;
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [full], 0;
    outp 1 %p1
    mbarrier.arrive.shared::cta.b64 _, [full];
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [full], 1;
    outp 2 %p1
  )",
                               &seen);
  ASSERT_TRUE(clean(o));
  EXPECT_THAT(std::vector<uint32_t>(o.out.begin(), o.out.begin() + 3), ElementsAre(0, 1, 1));
}

TEST(MbarrierTest, TheLastParticipantToDropOutStillCompletesItsPhase) {
  Recorder seen;
  const Outcome o = one_thread(R"(
    mbarrier.init.shared::cta.b64 [full], 2;
    mbarrier.arrive_drop.shared::cta.b64 _, [full];
    mbarrier.arrive_drop.shared::cta.b64 _, [full];
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [full], 0;
    outp 0 %p1
    mbarrier.arrive.shared::cta.b64 _, [full];
  )",
                               &seen);
  EXPECT_EQ(o.out[0], 1u);
  EXPECT_EQ(seen.count(Kind::PhaseComplete), 1u);
  EXPECT_TRUE(
      reports(o, "arrival-count-mismatch", "mbarrier.arrive.shared", "phase 1 misses only 0 of its 0 arrivals"));
  EXPECT_THAT(o.diagnostics.at(0).hint, HasSubstr("dropped out"));
}

TEST(MbarrierTest, BytesMayComeBeforeTheyAreExpected) {
  Recorder seen;
  const Outcome o = one_thread(R"(
    mbarrier.init.shared::cta.b64 [full], 1;
    mbarrier.complete_tx.shared::cta.b64 [full], 96;
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [full], 0;
    outp 0 %p1
    mbarrier.expect_tx.shared::cta.b64 [full], 32;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 64;
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [full], 0;
    outp 1 %p1
  )",
                               &seen);
  ASSERT_TRUE(clean(o));
  EXPECT_EQ(o.out[0], 0u);
  EXPECT_EQ(o.out[1], 1u);
  EXPECT_EQ(seen.barriers[1].tx, -96);
}

TEST(MbarrierTest, APhaseWithBytesOutstandingWaitsForThem) {
  const Outcome o = one_thread(R"(
    mbarrier.init.shared::cta.b64 [full], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 64;
    mbarrier.complete_tx.shared::cta.b64 [full], 48;
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [full], 0;
    outp 0 %p1
    mbarrier.expect_tx.shared::cta.b64 [full], 16;
    mbarrier.complete_tx.shared::cta.b64 [full], 16;
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [full], 0;
    outp 1 %p1
    mbarrier.complete_tx.shared::cta.b64 [full], 16;
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [full], 0;
    outp 2 %p1
  )");
  ASSERT_TRUE(clean(o));
  EXPECT_THAT(std::vector<uint32_t>(o.out.begin(), o.out.begin() + 3), ElementsAre(0, 0, 1));
}

// An arrive that comes before its expect_tx completes the phase too early: the bytes then belong to the next one.
TEST(MbarrierTest, ArriveBeforeExpectCompletesEarly) {
  Recorder seen;
  const Outcome o = one_thread(R"(
    mbarrier.init.shared::cta.b64 [full], 1;
    mbarrier.arrive.shared::cta.b64 _, [full];
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [full], 0;
    outp 0 %p1
    mbarrier.expect_tx.shared::cta.b64 [full], 64;
  )",
                               &seen);
  ASSERT_TRUE(clean(o));
  EXPECT_EQ(o.out[0], 1u);
  EXPECT_EQ(seen.barriers.back().phase, 1u);
  EXPECT_EQ(seen.barriers.back().tx, 64);
}

TEST(MbarrierTest, InvalFreesTheBytes) {
  const Outcome o = one_thread(R"(
    mbarrier.init.shared::cta.b64 [full], 1;
    mbarrier.inval.shared::cta.b64 [full];
    st.shared.u64 [full], 7;
    mbarrier.init.shared::cta.b64 [full], 2;
    mbarrier.arrive.shared::cta.b64 _, [full];
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [full], 0;
    outp 0 %p1
    mbarrier.arrive.shared::cta.b64 _, [full];
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [full], 0;
    outp 1 %p1
  )");
  ASSERT_TRUE(clean(o));
  EXPECT_EQ(o.out[0], 0u);
  EXPECT_EQ(o.out[1], 1u);
}

struct Broken {
  const char* before;  ///< lines in front
  const char* line;    ///< the one at fault
  const char* id;
  const char* says;
};
void PrintTo(const Broken& b, std::ostream* out) { *out << b.line; }
class MbarrierFaultTest : public ::testing::TestWithParam<Broken> {};
TEST_P(MbarrierFaultTest, StopsAtTheLine) {
  const Broken& b = GetParam();
  for (const auto& schedule : schedules(1)) {
    const Outcome o =
        one_thread("\nmov.u32 %r1, full;\n" + std::string(b.before) + "\n" + b.line + "\nmov.u32 %r9, 1;\nout 0 %r9\n",
                   nullptr, schedule);
    EXPECT_TRUE(reports(o, b.id, b.line, b.says));
    EXPECT_EQ(o.status, LaunchStatus::Fault);
    EXPECT_EQ(o.out[0], 0u) << "it went on";
  }
}
const char* const kInit1 = "mbarrier.init.shared::cta.b64 [full], 1;";
INSTANTIATE_TEST_SUITE_P(
    All, MbarrierFaultTest,
    ::testing::Values(
        Broken{"", "mbarrier.arrive.shared::cta.b64 _, [full];", "barrier-not-initialized",
               "mbarrier.arrive on `full`"},
        Broken{"", "mbarrier.expect_tx.shared::cta.b64 [full], 16;", "barrier-not-initialized",
               "mbarrier.expect_tx on `full`"},
        Broken{"", "mbarrier.complete_tx.shared::cta.b64 [full], 16;", "barrier-not-initialized",
               "complete_tx on `full`"},
        Broken{"", "mbarrier.inval.shared::cta.b64 [full];", "barrier-not-initialized", "mbarrier.inval on `full`"},
        Broken{"", "mbarrier.test_wait.parity.shared::cta.b64 %p1, [full], 1;", "barrier-not-initialized",
               "wait on `full`"},
        Broken{"mbarrier.init.shared::cta.b64 [full], 1;\nmbarrier.inval.shared::cta.b64 [full];",
               "mbarrier.try_wait.parity.shared::cta.b64 %p1, [full], 1;", "barrier-not-initialized", "wait on `full`"},
        Broken{"", "mbarrier.init.shared::cta.b64 [full+4], 1;", "misaligned", "full+4 is not a multiple of 8 bytes"},
        Broken{"", "mbarrier.init.shared::cta.b64 [full+8], 1;", "out-of-bounds",
               "runs past the CTA's 8 bytes of shared memory"},
        Broken{"mov.u32 %r2, 256;", "mbarrier.init.shared::cta.b64 [%r2], 1;", "out-of-bounds", "0x100"},
        Broken{kInit1, "mbarrier.arrive.b64 _, [%outp];", "out-of-bounds", "is not in shared memory"},
        Broken{"mbarrier.init.shared::cta.b64 [full], 1;\nor.b32 %r2, %r1, 0x2000000;",
               "mbarrier.arrive.shared::cluster.b64 _, [%r2];", "out-of-bounds",
               "of the CTA of rank 2, in a cluster of 1"},
        Broken{"", "mbarrier.init.shared::cta.b64 [full], 0;", "arrival-count-mismatch",
               "with count 0; a count is 1 to 1048575"},
        Broken{"", "mbarrier.init.shared::cta.b64 [full], 1048576;", "arrival-count-mismatch", "with count 1048576"},
        Broken{kInit1, "mbarrier.arrive.shared::cta.b64 _, [full], 0;", "arrival-count-mismatch",
               "arrives at `full` with count 0"},
        Broken{kInit1, "mbarrier.arrive.shared::cta.b64 _, [full], 2;", "arrival-count-mismatch",
               "count 2, but phase 0 misses only 1 of its 1 arrivals"},
        Broken{"mbarrier.init.shared::cta.b64 [full], 1;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;",
               "mbarrier.arrive.shared::cta.b64 _, [full];", "arrival-count-mismatch", "misses only 0 of its 1"},
        Broken{kInit1, "mbarrier.arrive.noComplete.shared::cta.b64 %rd1, [full], 1;", "arrival-count-mismatch",
               "noComplete would complete phase 0"},
        Broken{"mbarrier.init.shared::cta.b64 [full], 1;\nmbarrier.expect_tx.shared::cta.b64 [full], 1048575;",
               "mbarrier.expect_tx.shared::cta.b64 [full], 1;", "tx-bytes-mismatch",
               "takes the tx-count of `full` to 1048576"},
        Broken{kInit1, "mbarrier.complete_tx.shared::cta.b64 [full], 1048576;", "tx-bytes-mismatch", "to -1048576"},
        Broken{"mbarrier.init.shared::cta.b64 [full], 1;\nmbarrier.complete_tx.shared::cta.b64 [full], "
               "16;\nmbarrier.arrive.shared::cta.b64 _, [full];",
               "mbarrier.expect_tx.shared::cta.b64 [full], 16;", "tx-bytes-mismatch",
               "after the last arrival of phase 0"}));

TEST(MbarrierTest, ASecondInitIsReportedAndCounts) {
  const Outcome o = one_thread(R"(
    mbarrier.init.shared::cta.b64 [full], 4;
    mbarrier.init.shared::cta.b64 [full], 1; // again
    mbarrier.arrive.shared::cta.b64 _, [full];
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [full], 0;
    outp 0 %p1
  )");
  EXPECT_EQ(o.status, LaunchStatus::Ok);
  EXPECT_TRUE(reports(o, "barrier-overwritten", "// again",
                      "thread 0 initialises `full` a second time; it was initialised at line 1"));
  EXPECT_EQ(o.out[0], 1u);
}

TEST(MbarrierTest, EveryThreadInitialisingIsReportedOnce) {
  Kernel s;
  s.shared = kFull;
  s.body = R"(
    mbarrier.init.shared::cta.b64 [full], 32;
  )";
  EXPECT_TRUE(reports(run(s), "barrier-overwritten", "mbarrier.init", "thread 1 initialises `full` a second time"));
}

TEST(MbarrierTest, OrdinaryAccessesOfALiveBarrierAreReported) {
  const auto with = [](const std::string& access) {
    Kernel s;
    s.shared = ".shared .align 16 .b8 before[8];\n.shared .align 8 .b64 full;\n.shared .align 8 .b64 after;\n";
    s.body = R"(
      mov.u32 %r2, 5;
      mov.u32 %r1, full;
      cvt.u64.u32 %rd2, %r1;
      cvta.shared.u64 %rd1, %rd2;
      mbarrier.init.shared::cta.b64 [full], 1;
      )" + access +
             "\n";
    s.block = {1, 1, 1};
    return run(s);
  };
  for (const char* store :
       {"st.shared.u32 [full], 1;", "st.shared.u8 [full+7], %r2;", "st.shared.v4.u32 [before], {%r2, %r2, %r2, %r2};",
        "atom.shared.add.u32 %r3, [full+4], 1;", "atom.shared.cas.b32 %r3, [full], 7, 7;", "st.u64 [%rd1], %rd1;",
        "ld.shared.u64 %rd3, [full];", "ld.volatile.shared.u8 %r3, [full+7];", "ld.u32 %r3, [%rd1+4];",
        "ld.shared.v4.u32 {%r3, %r3, %r3, %r3}, [before];"}) {
    EXPECT_TRUE(reports(with(store), "barrier-overwritten", store, "of the live mbarrier")) << store;
  }
  for (const char* access : {"st.shared.u64 [before], %rd1;", "st.shared.u64 [after], %rd1;",
                             "ld.shared.u64 %rd3, [before];", "ld.shared.u64 %rd3, [after];"})
    EXPECT_TRUE(clean(with(access))) << access;
}

TEST(MbarrierTest, ACollectiveThatLanesHavePassedByIsTheCauseOfTheDeadlock) {
  const auto with = [](const std::string& body) {
    Kernel s;
    s.shared = kFull;
    s.block = {32, 1, 1};
    s.body = R"(
      setp.eq.u32 %p1, %t, 0;
      setp.lt.u32 %p2, %t, 16;
      @%p1 mbarrier.init.shared::cta.b64 [full], 1;
      bar.warp.sync 0xffffffff;
    )" + body;
    return run(s);
  };
  const std::string wait = R"(
    LOOP:
      mbarrier.try_wait.parity.shared::cta.b64 %p3, [full], 0;
      @!%p3 bra LOOP;
  )";
  // Half of the warp is at a barrier of the whole warp, the other half went round it.
  const Outcome passed = with("@!%p2 bra WAIT;\nbar.warp.sync -1;\nWAIT:\n" + wait);
  EXPECT_TRUE(reports(passed, "diverged-collective", "bar.warp.sync -1", "lanes 0-15 wait at"));
  // It has yet to come there: what it waits for is the cause.
  EXPECT_TRUE(reports(with("@!%p2 bra DONE;\n" + wait + "DONE:\nbar.warp.sync -1;\n"), "deadlock", "try_wait", ""));
  // It is a round behind in a loop.
  EXPECT_TRUE(reports(with("AGAIN:\nbar.warp.sync -1;\n@%p2 bra AGAIN;\n" + wait + "bra AGAIN;\n"), "deadlock",
                      "try_wait", ""));
}

TEST(MbarrierTest, TryWaitWithoutALoopSeesFalseOnEverySchedule) {
  for (const auto& schedule : schedules(8)) {
    Kernel s;
    s.shared = kFull;
    s.block = {64, 1, 1};
    s.schedule = schedule;
    s.body = R"(
      setp.eq.u32 %p1, %t, 0;
      @%p1 mbarrier.init.shared::cta.b64 [full], 33;
      bar.sync 0;
      setp.ne.u32 %p2, %w, 0;
      @%p2 bra ARRIVE;
      mbarrier.try_wait.parity.shared::cta.b64 %p3, [full], 0;
      @%p1 mbarrier.arrive.shared::cta.b64 _, [full];
      mul.wide.u32 %rd1, %t, 4;
      add.u64 %rd1, %rd1, %outp;
      selp.u32 %r1, 1, 2, %p3;
      st.global.u32 [%rd1], %r1;
      bra END;
    ARRIVE:
      mbarrier.arrive.shared::cta.b64 _, [full];
    END:
    )";
    const Outcome o = run(s);
    ASSERT_TRUE(clean(o));
    for (int l = 0; l < 32; l++) EXPECT_EQ(o.out[l], 2u) << machine::to_string(schedule) << " lane " << l;
  }
}

TEST(MbarrierTest, TryWaitInALoopSleepsAndWakes) {
  for (const auto& schedule : schedules(8)) {
    Recorder seen;
    Kernel s;
    s.shared = kFull;
    s.block = {64, 1, 1};
    s.schedule = schedule;
    s.observer = &seen;
    s.body = R"(
      setp.eq.u32 %p1, %t, 0;
      @%p1 mbarrier.init.shared::cta.b64 [full], 1;
      bar.sync 0;
      setp.ne.u32 %p2, %w, 0;
      @%p2 bra ARRIVE;
    L:
      mbarrier.try_wait.parity.shared::cta.b64 %p3, [full], 0;
      @!%p3 bra L;
      ld.shared.u32 %r1, [value];
      out 0 %r1
      bra END;
    ARRIVE:
      mov.u32 %r2, 0;
    WORK:
      add.u32 %r2, %r2, 1;
      setp.lt.u32 %p4, %r2, 5000;
      @%p4 bra WORK;
      setp.eq.u32 %p5, %t, 32;
      @%p5 st.shared.u32 [value], %r2;
      @%p5 mbarrier.arrive.shared::cta.b64 _, [full];
    END:
    )";
    s.shared += ".shared .align 4 .b32 value;\n";
    const Outcome o = run(s);
    ASSERT_TRUE(clean(o));
    EXPECT_EQ(o.out[0], 5000u);
    EXPECT_LE(seen.count(Kind::TestFalse), 1u) << "it polls";
    EXPECT_EQ(seen.count(Kind::TestTrue), 1u);
    EXPECT_LT(o.instructions, 15200u) << "it polls";
  }
}

TEST(MbarrierTest, LanesMayWaitForDifferentBarriers) {
  for (const auto& schedule : schedules()) {
    Kernel s;
    s.shared = ".shared .align 8 .b64 full[2];\n";
    s.block = {64, 1, 1};
    s.schedule = schedule;
    s.body = R"(
      setp.eq.u32 %p1, %t, 0;
      @%p1 mbarrier.init.shared::cta.b64 [full], 1;
      @%p1 mbarrier.init.shared::cta.b64 [full+8], 1;
      bar.sync 0;
      setp.ne.u32 %p2, %w, 0;
      @%p2 bra ARRIVE;
      and.b32 %r1, %t, 1;
      shl.b32 %r1, %r1, 3;
      mov.u32 %r2, full;
      add.u32 %r2, %r2, %r1;
    L:
      mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r2], 0;
      @!%p3 bra L;
      mul.wide.u32 %rd1, %t, 4;
      add.u64 %rd1, %rd1, %outp;
      st.global.u32 [%rd1], 1;
      bra END;
    ARRIVE:
      setp.eq.u32 %p5, %t, 40;
      @%p5 mbarrier.arrive.shared::cta.b64 _, [full+8];
      bar.warp.sync 0xffffffff;
      @%p5 mbarrier.arrive.shared::cta.b64 _, [full];
    END:
    )";
    const Outcome o = run(s);
    ASSERT_TRUE(clean(o));
    for (int l = 0; l < 32; l++) EXPECT_EQ(o.out[l], 1u);
  }
}

// --- random operations against a model -------------------------------------------------------------------------------

struct Op {
  enum Kind { Arrive, ArriveExpect, Drop, NoComplete, Expect, Complete } kind;
  uint32_t value;
};

/// The state of the barrier, found by going through all operations from the start. Slow and plain on purpose.
struct Model {
  uint64_t phase = 0;
  uint32_t expected, pending;
  int64_t tx = 0;
  bool completed = false;  ///< by the last operation
  Model(uint32_t count, const std::vector<Op>& ops) : expected(count), pending(count) {
    for (const Op& op : ops) {
      completed = false;
      if (op.kind == Op::Expect || op.kind == Op::ArriveExpect) tx += op.value;
      if (op.kind == Op::Complete) tx -= op.value;
      if (op.kind == Op::Drop) expected -= op.value;
      if (op.kind == Op::Arrive || op.kind == Op::Drop || op.kind == Op::NoComplete) pending -= op.value;
      if (op.kind == Op::ArriveExpect) pending -= 1;
      if (op.kind != Op::Expect && pending == 0 && tx == 0) {
        phase += 1;
        pending = expected;
        completed = true;
      }
    }
  }
};

TEST(MbarrierTest, RandomOperationsAgreeWithAModel) {
  uint64_t phases = 0;
  for (uint64_t seed = 1; seed <= 150; seed++) {
    machine::Random random{seed};
    const auto count = static_cast<uint32_t>(1 + random.below(seed % 3 == 0 ? 40 : 5));
    std::vector<Op> ops;
    std::string body = "\nmbarrier.init.shared::cta.b64 [full], " + std::to_string(count) + ";\n";
    int words = 0;
    std::vector<uint32_t> parities;
    while (ops.size() < 30) {
      const Model now(count, ops);
      Op op{static_cast<Op::Kind>(random.below(6)), 0};
      std::string text;
      switch (op.kind) {
        case Op::Arrive:
          op.value = static_cast<uint32_t>(1 + random.below(std::max(1u, now.pending)));
          text = "mbarrier.arrive.shared::cta.b64 %rd1, [full], %;";
          break;
        case Op::ArriveExpect:
          op.value = static_cast<uint32_t>(random.below(3) * 16);
          text = "mbarrier.arrive.expect_tx.shared::cta.b64 %rd1, [full], %;";
          break;
        case Op::Drop:
          op.value = static_cast<uint32_t>(1 + random.below(2));
          text = "mbarrier.arrive_drop.shared::cta.b64 %rd1, [full], %;";
          break;
        case Op::NoComplete:
          op.value = 1;
          text = "mbarrier.arrive.noComplete.shared::cta.b64 %rd1, [full], %;";
          break;
        case Op::Expect:
          op.value = static_cast<uint32_t>(random.below(4) * 16);
          text = "mbarrier.expect_tx.shared::cta.b64 [full], %;";
          break;
        case Op::Complete:
          // Half of them complete exactly what is outstanding, so that phases end.
          op.value = now.tx > 0 && random.below(2) == 0 ? static_cast<uint32_t>(now.tx)
                                                        : static_cast<uint32_t>(random.below(4) * 16);
          text = "mbarrier.complete_tx.shared::cta.b64 [full], %;";
          break;
      }
      // Leave out what the ISA leaves undefined; the faults have tests of their own.
      const uint32_t arrivals = op.kind == Op::ArriveExpect ? 1 : op.kind <= Op::NoComplete ? op.value : 0;
      if (arrivals > now.pending) continue;
      if (op.kind == Op::Drop && op.value >= now.expected) continue;
      if (op.kind == Op::NoComplete && now.pending == 1) continue;
      if (now.pending == 0 && now.tx <= 0) break;  // stuck for good: no arrivals to come, more bytes than announced
      if (op.kind == Op::Expect && now.pending == 0 && now.tx + op.value == 0) continue;
      ops.push_back(op);
      text.replace(text.find("%;"), 1, std::to_string(op.value));
      body += text + "\n";
      for (const char* parity : {"0", "1"}) {
        body += std::string("mbarrier.test_wait.parity.shared::cta.b64 %p1, [full], ") + parity + ";\noutp " +
                std::to_string(words++) + " %p1\n";
        parities.push_back(static_cast<uint32_t>(parity[0] - '0') != (Model(count, ops).phase & 1) ? 1 : 0);
      }
    }
    Recorder seen;
    Kernel s;
    s.shared = kFull;
    s.body = body;
    s.block = {1, 1, 1};
    s.observer = &seen;
    s.schedule = schedules(2)[seed % 6];
    const Outcome o = run(s);
    ASSERT_TRUE(clean(o)) << "seed " << seed << "\n" << body;
    for (size_t k = 0; k < parities.size(); k++)
      EXPECT_EQ(o.out[k], parities[k]) << "seed " << seed << " operation " << k / 2 << "\n" << body;
    // Each operation's event tells the counts behind it, a completion those that the operation left.
    size_t at = 1;
    for (size_t k = 0; k < ops.size(); k++) {
      const std::vector<Op> prefix(ops.begin(), ops.begin() + static_cast<std::ptrdiff_t>(k) + 1);
      const Model before(count, {prefix.begin(), prefix.end() - 1}), after(count, prefix);
      ASSERT_LT(at, seen.barriers.size());
      const auto& e = seen.barriers[at++];
      EXPECT_EQ(e.phase, before.phase) << "seed " << seed << " operation " << k;
      EXPECT_EQ(e.pending, after.completed ? 0 : after.pending) << "seed " << seed << " operation " << k;
      EXPECT_EQ(e.tx, after.tx) << "seed " << seed << " operation " << k;
      if (after.completed) {
        phases++;
        ASSERT_LT(at, seen.barriers.size());
        EXPECT_EQ(seen.barriers[at].kind, Kind::PhaseComplete);
        EXPECT_EQ(seen.barriers[at++].phase, before.phase);
      }
      at += 2;  // the two tests
    }
    EXPECT_EQ(at, seen.barriers.size());
  }
  EXPECT_GT(phases, 300u) << "the operations drawn complete too few phases to test anything";
}

}  // namespace
}  // namespace handoff::async::testing
