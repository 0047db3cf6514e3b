// Harness of 06b: each block computes a run of tiles of 256 floats in shared memory and takes each out with a bulk
// store.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "grader/emulator/machine/memory.h"
#include "grader/harness/exercise.h"

namespace {

using namespace handoff::harness;

constexpr uint32_t kTile = 256;  // floats

class ReuseAfterStore : public ExerciseTest {
 public:
  std::vector<Case> cases(uint64_t seed) const override {
    struct Shape {
      uint32_t tiles, blocks, threads;
    };
    std::vector<Case> list;
    // One block with 0, 1, S - 1, S, S + 1 and 2 S + 3 tiles, S = 3 buffers; then several blocks, not all with as many
    // tiles, and with fewer tiles than blocks.
    for (const Shape s : {Shape{0, 1, 128}, Shape{1, 1, 64}, Shape{2, 1, 128}, Shape{3, 1, 256}, Shape{4, 1, 64},
                          Shape{9, 1, 128}, Shape{11, 3, 256}, Shape{2, 4, 64}, Shape{25, 4, 128}}) {
      list.push_back(one(s.tiles, s.blocks, s.threads, seed + 64 * s.tiles + s.threads));
    }
    return list;
  }

 protected:
  static uint64_t bytes(const KernelRun& run) {
    int32_t tiles = 0;
    const Parameter& p = run.test_case->parameters().back();
    std::memcpy(&tiles, p.value.data(), sizeof tiles);
    return uint64_t{kTile} * sizeof(float) * static_cast<uint64_t>(tiles);
  }

 private:
  static Case one(uint32_t tiles, uint32_t blocks, uint32_t threads, uint64_t seed) {
    const uint32_t n = tiles * kTile;
    Case c(fmt::format("{} tile{}, {} block{} of {} threads", tiles, tiles == 1 ? "" : "s", blocks,
                       blocks == 1 ? "" : "s", threads));
    c.grid(blocks).block(threads);
    if (n == 0) {
      // There is one tile of memory, and it must stay as it was.
      c.in("in", random_floats(kTile, seed))
          .out("out", std::vector<uint8_t>(kTile * sizeof(float), handoff::machine::kPoison));
    } else {
      const std::vector<float> in = random_floats(n, seed);
      std::vector<float> out(n);
      for (uint32_t i = 0; i < n; i++) out[i] = 2.0f * in[i / kTile * kTile + (kTile - 1 - i % kTile)] + 1.0f;
      c.in("in", in).out("out", out);
    }
    return c.value("tiles", static_cast<int32_t>(tiles));
  }
};

HANDOFF_STANDARD_TESTS("06b", ReuseAfterStore)

HANDOFF_TEST("06b", ReuseAfterStore, uses_bulk_stores, "uses-bulk-stores") {
  if (!on_emulator()) {
    EXPECT_NE(ptx().find("cp.async.bulk.global.shared::cta"), std::string::npos)
        << "the kernel has no bulk copy to global memory";
    return;
  }
  for (const KernelRun& run : traced_runs()) {
    const uint64_t wanted = bytes(run);
    EXPECT_THAT(run, Traced(
                         fmt::format("all {} bytes of the output by bulk store", wanted),
                         [=](const handoff::trace::Trace& t) {
                           return t.totals.bulk_bytes_to_global >= wanted && t.totals.global_store_bytes == 0 &&
                                  t.totals.global_atomics == 0;
                         },
                         [](const handoff::trace::Trace& t) {
                           return fmt::format("{} bytes went out by bulk store, {} by ordinary stores",
                                              t.totals.bulk_bytes_to_global, t.totals.global_store_bytes);
                         }));
  }
}

/// Stores that another one of the same block follows, and those of them after which the block stood still until the
/// engine was done.
struct Overlap {
  uint64_t followed = 0, drained = 0;
};

/// A store was drained if a wait of its block ended at the moment when its source had been read, or its destination
/// written, and nobody of the block got past a barrier or arrived anywhere since it was issued. A wait for an older
/// store ends earlier; a wait that ends later stopped nobody on account of this store.
Overlap overlap(const handoff::trace::Trace& trace) {
  using Event = handoff::trace::Event;
  using Kind = Event::Kind;
  constexpr uint64_t kWakeup = 8;  // cycles from the milestone to the end of a wait for it
  Overlap o;
  for (const Event& issued : trace.events) {
    if (issued.kind != Kind::CopyIssued) continue;
    const auto any = [&](const auto& predicate) {
      return std::any_of(trace.events.begin(), trace.events.end(),
                         [&](const Event& e) { return e.cta == issued.cta && predicate(e); });
    };
    if (!any([&](const Event& e) { return e.kind == Kind::CopyIssued && e.op > issued.op; })) continue;
    o.followed++;
    const bool drained = any([&](const Event& done) {
      if ((done.kind != Kind::CopyRead && done.kind != Kind::CopyWritten) || done.op != issued.op) return false;
      const bool held = any([&](const Event& e) {
        return e.kind == Kind::GroupWait && e.cycle >= done.cycle && e.cycle <= done.cycle + kWakeup;
      });
      const bool went_on = any([&](const Event& e) {
        return (e.kind == Kind::BlockBarrier || e.kind == Kind::Arrive || e.kind == Kind::CopyIssued) &&
               e.cycle > issued.cycle && e.cycle < done.cycle;
      });
      return held && !went_on;
    });
    if (drained) o.drained++;
  }
  return o;
}

// With a ring, the block fills a buffer while the engine reads the one before. Who waits for the newest store each time
// has one buffer, however many are declared.
HANDOFF_TEST("06b", ReuseAfterStore, stores_overlap, "stores-overlap") {
  if (!on_emulator()) GTEST_SKIP() << "stores in flight are observed on the emulator only";
  for (const KernelRun& run : traced_runs()) {
    if (run.schedule.kind != handoff::machine::Schedule::Kind::Nominal)
      GTEST_SKIP() << "decided on the nominal schedule";
    const uint64_t tiles = bytes(run) / (kTile * sizeof(float)), blocks = run.test_case->config().grid.x;
    const uint64_t followed =
        tiles - std::min(tiles, blocks);  // the last store of a block has no other to overlap with
    EXPECT_THAT(run, Traced(
                         "a block goes on while its newest store is in flight",
                         [=](const handoff::trace::Trace& t) {
                           const Overlap o = overlap(t);
                           return o.followed >= followed && 2 * o.drained <= o.followed;
                         },
                         [](const handoff::trace::Trace& t) {
                           const Overlap o = overlap(t);
                           if (o.followed == 0) return std::string("no block issued two bulk stores");
                           return fmt::format(
                               "after {} of {} stores the block stood still until the engine was done with it",
                               o.drained, o.followed);
                         }));
  }
}

}  // namespace
