// Harness of 07a: each block brings a run of tiles of 1024 floats with bulk copies, two stages in turn, and computes a
// function of each element.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <tuple>

#include "grader/emulator/machine/memory.h"
#include "grader/emulator/machine/timing.h"
#include "grader/harness/exercise.h"

namespace {

using namespace handoff::harness;
using handoff::trace::Event;
using handoff::trace::Trace;

constexpr uint64_t kTile = 1024;  // floats
constexpr uint64_t kTileBytes = kTile * sizeof(float);
constexpr uint32_t kHeavy = 128;  // steps of a function so heavy that the use of a tile can be told from its handoff

class TwoStage : public ExerciseTest {
 public:
  std::vector<Case> cases(uint64_t seed) const override {
    struct Shape {
      uint32_t tiles, blocks, threads, steps;
    };
    std::vector<Case> list;
    // One block with 0, 1 = S - 1, 2 = S, 3 = S + 1 and 7 = 2 S + 3 tiles, S = 2 stages; then several blocks, not all
    // with as many tiles, and with fewer tiles than blocks. In the last case loading and using a tile take about as
    // long.
    for (const Shape s : {Shape{0, 1, 128, 1}, Shape{1, 1, 64, 0}, Shape{2, 1, 256, 1}, Shape{3, 1, 128, 3},
                          Shape{7, 1, 128, 5}, Shape{5, 1, 128, kHeavy}, Shape{2, 4, 64, 2}, Shape{11, 3, 256, 7},
                          Shape{17, 4, 128, kHeavy}, Shape{16, 1, 128, 16}}) {
      list.push_back(one(s.tiles, s.blocks, s.threads, s.steps, seed + 64 * s.tiles + s.threads + s.steps));
    }
    return list;
  }

 protected:
  static uint64_t count(const KernelRun& run, const char* name) {
    int32_t value = 0;
    for (const Parameter& p : run.test_case->parameters())
      if (p.name == name) std::memcpy(&value, p.value.data(), sizeof value);
    return static_cast<uint64_t>(value);
  }

 private:
  static Case one(uint32_t tiles, uint32_t blocks, uint32_t threads, uint32_t steps, uint64_t seed) {
    Case c(fmt::format("{} tile{}, {} block{} of {} threads, {} step{}", tiles, tiles == 1 ? "" : "s", blocks,
                       blocks == 1 ? "" : "s", threads, steps, steps == 1 ? "" : "s"));
    c.grid(blocks).block(threads);
    if (tiles == 0) {
      // There is one tile of memory, and it must stay as it was.
      c.in("in", random_floats(kTile, seed)).out("out", std::vector<uint8_t>(kTileBytes, handoff::machine::kPoison));
    } else {
      const std::vector<float> in = random_floats(tiles * kTile, seed);
      std::vector<float> out = in;
      for (float& x : out)
        for (uint32_t k = 0; k < steps; k++) x = std::fma(-0.875f, x, 1.0f);
      c.in("in", in).out("out", out);
    }
    return c.value("tiles", static_cast<int32_t>(tiles)).value("steps", static_cast<int32_t>(steps));
  }
};

HANDOFF_STANDARD_TESTS("07a", TwoStage)

HANDOFF_TEST("07a", TwoStage, uses_bulk_copies, "uses-bulk-copies") {
  if (!on_emulator()) {
    EXPECT_NE(ptx().find("cp.async.bulk.shared"), std::string::npos)
        << "the kernel has no bulk copy into shared memory";
    EXPECT_EQ(ptx().find("ld.global"), std::string::npos) << "the kernel reads global memory with ordinary loads";
    return;
  }
  for (const KernelRun& run : traced_runs()) EXPECT_THAT(run, LoadsByBulkCopy(kTileBytes * count(run, "tiles")));
}

/// Tiles that followed another one in their block, and those of them whose load was issued too late to overlap.
struct Overlap {
  uint64_t followed = 0, late = 0;
  uint64_t unseen = 0;  ///< tiles that another one follows, and whose load nobody waited for
  uint64_t worst = 0;   ///< longest time from "tile i is there" to "the load of tile i + 1 is issued", cycles
};

/// Load number i of a block is what its bulk copies bring from byte i * kTileBytes on, in the order of their issue. The
/// tile is there when a wait for the phase that its last bytes completed answers true for the first time.
Overlap overlap(const Trace& trace, uint64_t use) {
  using Kind = Event::Kind;
  struct Load {
    uint64_t issued = 0, there = 0;
    bool seen = true;
  };
  std::map<uint64_t, std::tuple<uint32_t, std::string, uint64_t>> signals;           // by copy: CTA, barrier, phase
  std::map<std::tuple<uint32_t, std::string, uint64_t>, uint64_t> seen;              // by phase: first wait, cycle
  std::map<uint32_t, std::pair<std::vector<Load>, std::vector<const Event*>>> ctas;  // by CTA: tiles, copies
  for (const Event& e : trace.events) {
    if (e.kind == Kind::CopyIssued && !e.object.empty()) ctas[e.cta].second.push_back(&e);
    if (e.kind == Kind::Complete) signals[e.op] = {e.cta, e.object, e.phase};
    if (e.kind == Kind::WaitTrue) seen.emplace(std::tuple(e.cta, e.object, e.phase), e.cycle);
  }
  Overlap o;
  for (auto& [cta, work] : ctas) {
    auto& [loads, copies] = work;
    std::stable_sort(copies.begin(), copies.end(), [](const Event* a, const Event* b) { return a->op < b->op; });
    uint64_t bytes = 0;
    for (const Event* copy : copies) {
      const uint64_t i = bytes / kTileBytes;
      bytes += static_cast<uint64_t>(copy->bytes);
      loads.resize(std::max<size_t>(loads.size(), i + 1));
      const auto signal = signals.find(copy->op);
      const auto wait = signal == signals.end() ? seen.end() : seen.find(signal->second);
      loads[i].issued = std::max(loads[i].issued, copy->cycle);
      if (wait == seen.end())
        loads[i].seen = false;
      else
        loads[i].there = std::max(loads[i].there, wait->second);
    }
    for (size_t i = 0; i + 1 < loads.size(); i++) {
      o.followed++;
      if (!loads[i].seen) {
        o.unseen++;
        continue;
      }
      const uint64_t after = loads[i + 1].issued - std::min(loads[i + 1].issued, loads[i].there);
      o.worst = std::max(o.worst, after);
      if (after >= use) o.late++;
    }
  }
  return o;
}

// A trace has no event "tile i has been used", but with a heavy function that takes long: f is a chain of `steps`
// fused multiply-adds, and an instruction of a warp makes at most one step of two elements a lane. So there is a time,
// from the moment when the tile is there, before which no kernel can be done with it, and a load that is issued within
// that time is issued before tile i has been used. A serial kernel orders it afterwards.
HANDOFF_TEST("07a", TwoStage, loads_overlap, "loads-overlap") {
  if (!on_emulator()) GTEST_SKIP() << "loads in flight are observed on the emulator only";
  bool decided = false;
  for (const KernelRun& run : traced_runs()) {
    if (run.schedule.kind != handoff::machine::Schedule::Kind::Nominal || count(run, "steps") < kHeavy) continue;
    const uint64_t tiles = count(run, "tiles"), blocks = run.test_case->config().grid.x;
    const uint64_t use =
        kTile / 2 / run.test_case->config().block.x * count(run, "steps") * handoff::machine::kBlackwell.alu;  // cycles
    const uint64_t followed = tiles - std::min(tiles, blocks);  // the first load of a block has no use to overlap with
    decided = true;
    EXPECT_THAT(
        run, Traced(
                 "the load of tile i + 1 is issued before tile i has been used",
                 [=](const Trace& t) {
                   const Overlap o = overlap(t, use);
                   return o.followed >= followed && o.unseen == 0 && o.late == 0;
                 },
                 [=](const Trace& t) {
                   const Overlap o = overlap(t, use);
                   if (o.followed < followed)
                     return fmt::format("{} tiles follow another one in their block, and {} were loaded by bulk copy",
                                        followed, o.followed);
                   if (o.unseen > 0) return fmt::format("nobody waited for {} of {} loads", o.unseen, o.followed);
                   return fmt::format(
                       "{} of {} loads were issued when the tile before had been used, up to {} cycles after it was "
                       "there (its use takes at least {})",
                       o.late, o.followed, o.worst, use);
                 }));
  }
  if (!decided) GTEST_SKIP() << "decided on the nominal schedule";
}

}  // namespace
