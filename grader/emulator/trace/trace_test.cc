// What a run leaves in its trace.
#include "grader/emulator/trace/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "grader/emulator/async/testing.h"

namespace handoff::trace {
namespace {

using async::testing::clean;
using async::testing::Kernel;
using async::testing::line_of;
using async::testing::run;
using async::testing::schedules;
using Kind = Event::Kind;
using ::testing::ElementsAre;

// Two copies of 2048 bytes on one barrier: 128 threads wait for both, then read and write a word each.
Kernel two_copies() {
  Kernel s;
  s.shared = ".shared .align 128 .b8 tile[4096];\n.shared .align 8 .b64 full;\n";
  s.block = {128, 1, 1};
  s.in.resize(1024);
  for (uint32_t k = 0; k < 1024; k++) s.in[k] = 3 * k;
  s.out.assign(128, 0);
  s.body = R"(
    setp.ne.u32 %p1, %t, 0;
    @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [full], 1;
  READY:
    bar.sync 0;
    @%p1 bra L;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 4096;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%inp], 2048, [full]; // first
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile+2048], [%inp+2048], 2048, [full]; // second
  L:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0;
    @!%p2 bra L;
    shl.b32 %r1, %t, 2;
    mov.u32 %r2, tile;
    add.u32 %r2, %r2, %r1;
    ld.shared.u32 %r3, [%r2+2048];
    cvt.u64.u32 %rd1, %r1;
    add.u64 %rd1, %rd1, %outp;
    st.global.u32 [%rd1], %r3;
  )";
  return s;
}

Trace traced(Kernel s, bool accesses = true) {
  Recorder recorder(accesses);
  s.observer = &recorder;
  EXPECT_TRUE(clean(run(s)));
  return recorder.take();
}

TEST(TraceTest, TotalsOfTwoCopiesOnOneBarrier) {
  for (const auto& schedule : schedules(6)) {
    Kernel s = two_copies();
    s.schedule = schedule;
    const Totals t = traced(s).totals;
    EXPECT_EQ(t.bulk_copies, 2u);
    EXPECT_EQ(t.bulk_bytes_to_shared, 4096u);
    EXPECT_EQ(t.bulk_bytes_to_global, 0u);
    EXPECT_EQ(t.cp_async_bytes, 0u);
    EXPECT_EQ(t.arrivals, 1u);
    EXPECT_EQ(t.expected_bytes, 4096u);
    EXPECT_EQ(t.completed_bytes, 4096u);
    EXPECT_EQ(t.waits_true, 128u);
    EXPECT_LE(t.waits_false, 128u);
    EXPECT_EQ(t.phases, 1u);
    EXPECT_EQ(t.block_barriers, 1u);
    EXPECT_EQ(t.shared_load_bytes, 512u);
    EXPECT_EQ(t.shared_store_bytes, 0u);
    EXPECT_EQ(t.global_store_bytes, 512u);
    EXPECT_EQ(t.global_load_bytes, 0u);
    EXPECT_EQ(t.global_atomics + t.shared_atomics, 0u);
    EXPECT_GT(t.warp_instructions, 0u);
    EXPECT_GT(t.lane_instructions, t.warp_instructions);
  }
}

TEST(TraceTest, EventsOfTwoCopiesOnNominal) {
  const Kernel s = two_copies();
  const Trace t = traced(s);
  EXPECT_FALSE(t.truncated);
  std::vector<Kind> kinds;
  for (const Event& e : t.events) {
    if (e.kind != Kind::WaitTrue && e.kind != Kind::WaitFalse) kinds.push_back(e.kind);
  }
  EXPECT_THAT(kinds, ElementsAre(Kind::Init, Kind::BlockBarrier, Kind::Arrive, Kind::CopyIssued, Kind::CopyIssued,
                                 Kind::CopyRead, Kind::CopyRead, Kind::CopyWritten, Kind::Complete, Kind::CopySignalled,
                                 Kind::CopyWritten, Kind::Complete, Kind::PhaseComplete, Kind::CopySignalled));
  const auto nth = [&](Kind kind, size_t n) -> const Event& {
    for (const Event& e : t.events) {
      if (e.kind == kind && n-- == 0) return e;
    }
    ADD_FAILURE() << "no such event";
    return t.events[0];
  };
  const Event& init = nth(Kind::Init, 0);
  EXPECT_EQ(init.object, "full");
  EXPECT_EQ(init.line, line_of(s.body, "mbarrier.init"));
  EXPECT_EQ(init.warp, 0);
  EXPECT_EQ(init.mask, 1u);
  EXPECT_EQ(init.pending, 1u);
  const Event& arrive = nth(Kind::Arrive, 0);
  EXPECT_EQ(arrive.line, line_of(s.body, "arrive.expect_tx"));
  EXPECT_EQ(arrive.bytes, 4096);
  EXPECT_EQ(arrive.pending, 0u);
  EXPECT_EQ(arrive.tx, 4096);
  for (size_t k = 0; k < 2; k++) {
    const Event& issued = nth(Kind::CopyIssued, k);
    EXPECT_EQ(issued.object, k == 0 ? "tile" : "tile+2048");
    EXPECT_EQ(issued.line, line_of(s.body, k == 0 ? "// first" : "// second"));
    EXPECT_EQ(issued.bytes, 2048);
    EXPECT_EQ(issued.op, k + 1);
    EXPECT_EQ(issued.warp, 0);
    const Event& written = nth(Kind::CopyWritten, k);
    EXPECT_EQ(written.op, k + 1);
    EXPECT_EQ(written.warp, -1) << "the hardware's";
    EXPECT_GT(written.cycle, issued.cycle);
    const Event& complete = nth(Kind::Complete, k);
    EXPECT_EQ(complete.bytes, 2048);
    EXPECT_EQ(complete.tx, k == 0 ? 2048 : 0);
    EXPECT_EQ(complete.op, k + 1);
    EXPECT_EQ(complete.warp, -1);
    EXPECT_EQ(complete.line, issued.line);
  }
  EXPECT_EQ(nth(Kind::PhaseComplete, 0).phase, 0u);
  uint32_t woken = 0;
  const uint64_t completed = nth(Kind::PhaseComplete, 0).cycle;
  for (const Event& e : t.events) {
    if (e.kind != Kind::WaitTrue) continue;
    EXPECT_EQ(e.phase, 0u);
    EXPECT_GT(e.cycle, completed);
    EXPECT_EQ(e.line, line_of(s.body, "try_wait"));
    woken += static_cast<uint32_t>(__builtin_popcount(e.mask));
  }
  EXPECT_EQ(woken, 128u);
}

// The two copies queue for one engine: it works without a pause, on one after the other.
TEST(TraceTest, TheCopyEnginesTimeIsKept) {
  const Trace t = traced(two_copies());
  std::vector<const Event*> copies;
  for (const Event& e : t.events) {
    if (e.kind == Kind::CopyIssued) copies.push_back(&e);
  }
  ASSERT_EQ(copies.size(), 2u);
  const uint64_t each = 2048 / machine::kBlackwell.tma_bytes_per_cycle;
  EXPECT_EQ(copies[0]->busy_from, copies[0]->cycle);
  EXPECT_EQ(copies[0]->busy_until, copies[0]->busy_from + each);
  EXPECT_EQ(copies[1]->busy_from, std::max(copies[0]->busy_until, copies[1]->cycle));
  EXPECT_EQ(copies[1]->busy_until, copies[1]->busy_from + each);
  EXPECT_EQ(t.totals.load_busy, 2 * each);
  EXPECT_EQ(t.totals.store_busy, 0u);
  EXPECT_EQ(t.totals.mma_busy, 0u);
  EXPECT_EQ(t.first_cta.operations, 2u);
  uint64_t busy = 0;
  for (const Span& s : t.first_cta.loads) busy += s.end - s.begin;
  EXPECT_EQ(busy, 2 * each);
  EXPECT_TRUE(t.first_cta.stores.empty());
}

// Warps 1 to 3 have nothing to do between the barrier and the copies' arrival.
TEST(TraceTest, AWarpThatWaitsIsNotAtWork) {
  const Trace t = traced(two_copies());
  EXPECT_EQ(t.totals.cta_cycles, t.first_cta.end - t.first_cta.begin);
  uint64_t completed = 0;
  for (const Event& e : t.events) {
    if (e.kind == Kind::PhaseComplete) completed = e.cycle;
  }
  ASSERT_EQ(t.first_cta.warps.size(), 4u);
  for (const std::vector<Span>& warp : t.first_cta.warps) {
    ASSERT_FALSE(warp.empty());
    for (size_t k = 0; k < warp.size(); k++) {
      EXPECT_LT(warp[k].begin, warp[k].end);
      if (k > 0) {
        EXPECT_GT(warp[k].begin, warp[k - 1].end);
      }
    }
    EXPECT_LE(warp.back().end, t.first_cta.end);
    EXPECT_GT(warp.back().begin, completed) << "woken by the phase";
    ASSERT_GE(warp.size(), 2u);
    EXPECT_LT(warp[warp.size() - 2].end, completed - 100) << "asleep until then";
  }
}

// Two blocks, one after the other or side by side: the totals have both, the first one's activity stands for itself.
TEST(TraceTest, CyclesOfAllBlocksAddUp) {
  Kernel s = two_copies();
  s.grid = {3, 1, 1};
  const Trace one = traced(two_copies()), three = traced(s);
  EXPECT_EQ(three.totals.load_busy, 3 * one.totals.load_busy);
  EXPECT_GE(three.totals.cta_cycles, 3 * (one.first_cta.end - one.first_cta.begin));
  EXPECT_EQ(three.first_cta.operations, 2u);
}

// A tensor copy counts as a bulk copy does: all of its box in shared memory, what lies inside the tensor in global
// memory. Here a store tells of a box of 64 bytes with 24 of them inside.
TEST(TraceTest, TensorStoresCountTheBytesInside) {
  struct Clipped : Recorder {
    using Recorder::Recorder;
    void async_op(const machine::AsyncOpInfo& info, machine::AsyncOpInfo::Milestone milestone) override {
      const std::vector<machine::ByteRun> runs = {{info.destination, 16}, {info.destination + 32, 8}};
      machine::AsyncOpInfo tensor = info;
      tensor.kind = machine::AsyncOpInfo::Kind::TensorStore;
      tensor.global_runs = &runs;
      Recorder::async_op(tensor, milestone);
    }
  };
  Clipped recorder(true);
  Kernel s;
  s.shared = ".shared .align 128 .b8 tile[64];\n";
  s.block = {1, 1, 1};
  s.observer = &recorder;
  s.body = R"(
    cp.async.bulk.global.shared::cta.bulk_group [%outp], [tile], 64;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
  )";
  EXPECT_TRUE(clean(run(s)));
  const Trace t = recorder.take();
  EXPECT_EQ(t.totals.bulk_copies, 1u);
  EXPECT_EQ(t.totals.bulk_bytes_to_global, 24u);
  EXPECT_EQ(t.totals.bulk_bytes_to_shared, 0u);
}

// A warp's own time only goes forward, and nothing happens before its cause: what a phase's completion answers comes
// after it, and a completion after the arrive or the bytes that brought it about.
TEST(TraceTest, CyclesFollowCauses) {
  for (const auto& schedule : schedules(6)) {
    Kernel s = two_copies();
    s.schedule = schedule;
    s.body += R"(
      bar.sync 0;
      @!%p1 mbarrier.arrive.shared::cta.b64 _, [full];
    )";
    std::map<int32_t, uint64_t> last;
    uint64_t before = 0;
    for (const Event& e : traced(s).events) {
      if (e.warp >= 0) {
        EXPECT_GE(e.cycle, last[e.warp]) << machine::to_string(schedule) << " warp " << e.warp;
        last[e.warp] = e.cycle;
      }
      const uint64_t cause = e.kind == Kind::PhaseComplete ? before : 0;
      EXPECT_GE(e.cycle, cause) << machine::to_string(schedule) << " phase " << e.phase;
      before = e.cycle;
    }
  }
}

TEST(TraceTest, StoresGroupsAndOrdinaryAccesses) {
  Kernel s;
  s.shared = ".shared .align 128 .b8 tile[256];\n";
  s.block = {32, 1, 1};
  s.grid = {2, 1, 1};
  s.body = R"(
    shl.b32 %r1, %t, 2;
    mov.u32 %r2, tile;
    add.u32 %r2, %r2, %r1;
    st.shared.u32 [%r2], %t;
    ld.global.u32 %r3, [%inp];
    cp.async.ca.shared.global [%r2+128], [%inp], 4;
    cp.async.commit_group;
    cp.async.wait_group 0;
    atom.shared.add.u32 %r4, [tile+252], 1;
    red.global.add.u32 [%outp+128], 1;
    bar.sync 0;
    setp.ne.u32 %p1, %t, 0;
    @%p1 bra END;
    cp.async.bulk.global.shared::cta.bulk_group [%outp], [tile], 128;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;
  END:
  )";
  const Trace t = traced(s);
  EXPECT_EQ(t.totals.bulk_copies, 2u);
  EXPECT_EQ(t.totals.bulk_bytes_to_global, 256u);
  EXPECT_EQ(t.totals.bulk_bytes_to_shared, 0u);
  EXPECT_EQ(t.totals.cp_async_bytes, 2u * 32 * 4);
  EXPECT_EQ(t.totals.shared_store_bytes, 2u * 32 * 4);
  EXPECT_EQ(t.totals.global_load_bytes, 2u * 32 * 4);
  EXPECT_EQ(t.totals.global_store_bytes, 0u);
  EXPECT_EQ(t.totals.shared_atomics, 64u);
  EXPECT_EQ(t.totals.global_atomics, 64u);
  EXPECT_EQ(t.totals.block_barriers, 2u);
  std::map<std::pair<uint32_t, Kind>, uint32_t> count;
  for (const Event& e : t.events) count[{e.cta, e.kind}]++;
  for (uint32_t cta = 0; cta < 2; cta++) {
    EXPECT_EQ((count[{cta, Kind::Commit}]), 2u);
    EXPECT_EQ((count[{cta, Kind::GroupWait}]), 2u);
    EXPECT_EQ((count[{cta, Kind::CopyIssued}]), 33u);
    EXPECT_EQ((count[{cta, Kind::CopyWritten}]), 33u);
    EXPECT_EQ((count[{cta, Kind::CopySignalled}]), 0u);
  }
  const Trace quiet = traced(s, false);
  EXPECT_EQ(quiet.totals.shared_store_bytes + quiet.totals.global_load_bytes + quiet.totals.shared_atomics, 0u);
  EXPECT_EQ(quiet.events.size(), t.events.size());
}

// One CTA of two warps: a row, a column, a vector column of half a warp, and atomics on one word.
Kernel shared_accesses() {
  Kernel s;
  s.shared = ".shared .align 128 .b8 tile[8192];\n";
  s.block = {64, 1, 1};
  s.body = R"(
    mov.u32 %r1, %laneid;
    mov.u32 %r2, tile;
    shl.b32 %r3, %t, 2;
    add.u32 %r3, %r2, %r3;
    st.shared.u32 [%r3], %t;
    shl.b32 %r4, %r1, 7;
    add.u32 %r4, %r2, %r4;
    ld.shared.u32 %r5, [%r4]; ld.shared.u32 %r6, [%r3];
    and.b32 %r7, %r1, 16;
    setp.ne.u32 %p1, %r7, 0;
    @!%p1 ld.shared.v4.u32 {%r8, %r9, %r10, %r11}, [%r4];
    red.shared.add.u32 [tile+4], 1;
    ld.global.u32 %r12, [%inp];
    st.bulk.weak.shared::cta [tile], 64, 0;
  )";
  return s;
}

TEST(TraceTest, SharedAccessesByLine) {
  for (const auto& schedule : schedules(3)) {
    Kernel s = shared_accesses();
    s.schedule = schedule;
    const Trace t = traced(s);
    const auto line = [&](const char* text) { return line_of(s.body, text); };
    struct Line {
      uint32_t line;
      uint64_t accesses, wavefronts, minimum;
      uint32_t ways;
      bool operator==(const Line&) const = default;
    };
    std::vector<Line> lines;
    for (const SharedLine& l : t.shared_lines) {
      EXPECT_EQ(l.place.file, "kernel.cu");
      lines.push_back({l.place.line, l.accesses, l.wavefronts, l.minimum, l.ways});
    }
    // The column's line has a row, too. Both it and the atomics cost 62 more than they must: then in order of the file.
    EXPECT_THAT(lines,
                ElementsAre(Line{line("[%r4]; ld"), 4, 2 * 32 + 2, 4, 32}, Line{line("red.shared"), 2, 64, 2, 32},
                            Line{line("v4.u32"), 2, 2 * 2 * 8, 4, 8}, Line{line("st.shared"), 2, 2, 2, 1}));
    EXPECT_EQ(t.totals.shared_accesses, 10u);
    EXPECT_EQ(t.totals.shared_wavefronts, 66u + 64 + 32 + 2);
    EXPECT_EQ(t.totals.shared_minimum, 4u + 2 + 4 + 2);
    EXPECT_EQ(t.totals.distributed_accesses, 0u);
  }
  const Trace quiet = traced(shared_accesses(), false);
  EXPECT_TRUE(quiet.shared_lines.empty());
  EXPECT_EQ(quiet.totals.shared_accesses, 0u);
}

// What a bulk copy, a cp.async or an mbarrier moves in shared memory are not accesses of a warp.
TEST(TraceTest, CopiesAndBarriersAreNoSharedAccesses) {
  const Kernel s = two_copies();
  const Trace t = traced(s);
  ASSERT_EQ(t.shared_lines.size(), 1u);
  EXPECT_EQ(t.shared_lines[0].place.line, line_of(s.body, "ld.shared"));
  EXPECT_EQ(t.totals.shared_accesses, 4u);
  EXPECT_EQ(t.totals.shared_wavefronts, 4u);
  EXPECT_EQ(t.totals.shared_minimum, 4u);
}

// The banks of another CTA's shared memory are behind a network: such accesses are counted, but not their wavefronts.
TEST(TraceTest, AccessesOfOtherCtasStandApart) {
  struct Elsewhere : Recorder {
    using Recorder::Recorder;
    void access(const machine::Access& access) override {
      machine::Access moved = access;
      if (moved.region == machine::Region::Shared) moved.owner = nullptr;
      Recorder::access(moved);
    }
  };
  Elsewhere recorder(true);
  Kernel s = shared_accesses();
  s.observer = &recorder;
  EXPECT_TRUE(clean(run(s)));
  const Trace t = recorder.take();
  EXPECT_EQ(t.totals.distributed_accesses, 10u + 2 * 32 * 8) << "each 8 bytes of a st.bulk";
  EXPECT_EQ(t.totals.shared_accesses, 0u);
  EXPECT_TRUE(t.shared_lines.empty());
}

TEST(TraceTest, KeepsTheFirstEventsOnlyButCountsAll) {
  Kernel s;
  s.shared = ".shared .align 8 .b64 full;\n";
  s.block = {1, 1, 1};
  s.body = R"(
    mbarrier.init.shared::cta.b64 [full], 1;
    mov.u32 %r1, 0;
  L:
    mbarrier.arrive.shared::cta.b64 _, [full];
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 60000;
    @%p1 bra L;
  )";
  const Trace t = traced(s, false);
  EXPECT_TRUE(t.truncated);
  EXPECT_EQ(t.events.size(), kMaxEvents);
  EXPECT_EQ(t.totals.arrivals, 60000u);
  EXPECT_EQ(t.totals.phases, 60000u);
}

}  // namespace
}  // namespace handoff::trace
