// Harness of 02a: each block runs `rounds` rounds of a three-point stencil over its tile, one phase of one mbarrier a
// round.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <tuple>

#include "grader/emulator/machine/timing.h"
#include "grader/harness/exercise.h"

namespace {

using namespace handoff::harness;
using handoff::trace::Event;
using handoff::trace::Trace;

class PhaseByPhase : public ExerciseTest {
 public:
  std::vector<Case> cases(uint64_t seed) const override {
    std::vector<Case> list;
    // No round at all, one, both buffers once, twice and more; tiles with one cell, some, all; blocks of one warp,
    // three and eight.
    for (const Shape s : {Shape{100, 32, 0}, Shape{1, 32, 1}, Shape{96, 96, 2}, Shape{200, 96, 3}, Shape{257, 256, 5},
                          Shape{97, 96, 7}, Shape{700, 256, 8}, Shape{33, 32, 13}}) {
      list.push_back(one(s, seed + s.n + s.rounds));
    }
    return list;
  }

 protected:
  struct Shape {
    uint32_t n, block, rounds;
  };

  /// What a case was made from.
  static Shape shape_of(const Case& test_case) {
    const auto scalar = [&](size_t parameter) {
      int32_t value = 0;
      std::memcpy(&value, test_case.parameters()[parameter].value.data(), sizeof value);
      return static_cast<uint32_t>(value);
    };
    return {scalar(2), test_case.config().block.x, scalar(3)};
  }

 private:
  /// The reference rounds as the kernel does: a product with a power of two is exact, so 0.5a + 0.25(b + c) + d is
  /// rounded at its three additions and nowhere else, with or without fused multiply-adds on either side. Hence no
  /// tolerance.
  static Case one(const Shape& s, uint64_t seed) {
    const std::vector<float> in = random_floats(s.n, seed);
    std::vector<float> out = in;
    for (uint32_t base = 0; base < s.n; base += s.block) {
      const uint32_t cells = std::min(s.block, s.n - base);
      std::vector<float> old(cells);
      for (uint32_t r = 0; r < s.rounds; r++) {
        std::copy_n(out.begin() + base, cells, old.begin());
        for (uint32_t i = 0; i < cells; i++) {
          const float neighbours = old[i == 0 ? 0 : i - 1] + old[std::min(i + 1, cells - 1)];
          out[base + i] = 0.5f * old[i] + 0.25f * neighbours + in[(base + i + r) % s.n];
        }
      }
    }
    return Case(fmt::format("n = {}, {} threads, {} round{}", s.n, s.block, s.rounds, s.rounds == 1 ? "" : "s"))
        .grid((s.n + s.block - 1) / s.block)
        .block(s.block)
        .in("in", in)
        .out("out", out)
        .value("n", static_cast<int32_t>(s.n))
        .value("rounds", static_cast<int32_t>(s.rounds));
  }
};

/// The warp whose gap between its arrival of a phase and its first wait for that phase is the smallest.
struct Gap {
  bool any = false;     ///< some warp with a cell arrived in a phase and waited for it
  uint64_t cycles = 0;  ///< from arrival to first wait
  uint32_t cta = 0;     ///< of that warp
  int32_t warp = 0;     ///< its index in the block
  uint64_t phase = 0;   ///< which phase it was
};

Gap smallest_gap(const Trace& trace, uint32_t n, uint32_t block) {
  using Key = std::tuple<uint32_t, int32_t, std::string, uint64_t>;  // CTA, warp, barrier, phase
  std::map<Key, uint64_t> arrived;
  Gap least;
  for (const Event& e : trace.events) {
    if (e.warp < 0 || uint64_t{e.cta} * block + static_cast<uint64_t>(e.warp) * 32 >= n) continue;
    const Key key{e.cta, e.warp, e.object, e.phase};
    if (e.kind == Event::Kind::Arrive) arrived[key] = e.cycle;
    if (e.kind != Event::Kind::WaitTrue && e.kind != Event::Kind::WaitFalse) continue;
    const auto mine = arrived.find(key);
    if (mine == arrived.end()) continue;
    const uint64_t cycles = e.cycle - mine->second;
    arrived.erase(mine);  // only the first wait counts
    if (!least.any || cycles < least.cycles) least = {true, cycles, e.cta, e.warp, e.phase};
  }
  return least;
}

HANDOFF_STANDARD_TESTS("02a", PhaseByPhase)

// One mbarrier a block carries the handoff of every round, and only the barrier that publishes its init may be
// block-wide. An elected arrival or wait a warp is as good as one a thread, and the handoff into the first round or out
// of the last one may be had without a phase.
HANDOFF_TEST("02a", PhaseByPhase, one_mbarrier, "one-mbarrier") {
  if (!on_emulator()) {
    EXPECT_NE(ptx().find("mbarrier.arrive"), std::string::npos) << "the kernel never arrives on an mbarrier";
    EXPECT_TRUE(ptx().find("mbarrier.try_wait") != std::string::npos ||
                ptx().find("mbarrier.test_wait") != std::string::npos)
        << "the kernel never waits on an mbarrier";
    return;
  }
  for (const KernelRun& run : traced_runs()) {
    const Shape s = shape_of(*run.test_case);
    const uint64_t ctas = run.test_case->config().grid.x, phases = s.rounds == 0 ? 0 : s.rounds - 1;
    EXPECT_THAT(run, HandsOffByMbarrier(ctas * phases * (s.block / 32), ctas * phases * (s.block / 32), 1, ctas));
    const auto inits = [](const Trace& t) {
      return static_cast<uint64_t>(
          std::count_if(t.events.begin(), t.events.end(), [](const Event& e) { return e.kind == Event::Kind::Init; }));
    };
    EXPECT_THAT(
        run,
        Traced(
            fmt::format(
                "one mbarrier in each of the {} blocks, initialised once, and at least {} completed phases of each",
                ctas, phases),
            [=](const Trace& t) { return inits(t) <= ctas && t.totals.phases >= ctas * phases; },
            [=](const Trace& t) {
              return fmt::format("{} inits and {} completed phases in {} block{}", inits(t), t.totals.phases, ctas,
                                 ctas == 1 ? "" : "s");
            }));
  }
}

// The load of what the round adds stands between arrive and wait: at least its latency passes between the two in every
// warp.
HANDOFF_TEST("02a", PhaseByPhase, works_before_waiting, "works-before-waiting") {
  if (!on_emulator()) GTEST_SKIP() << "the time between arrive and wait is seen on the emulator only";
  for (const KernelRun& run : traced_runs()) {
    const Shape s = shape_of(*run.test_case);
    const auto gap = [s](const Trace& t) { return smallest_gap(t, s.n, s.block); };
    EXPECT_THAT(run, Traced(
                         fmt::format("between its arrive and its first wait for the same phase each warp loads from "
                                     "global memory, which takes {} cycles in the model",
                                     handoff::machine::kBlackwell.global_load),
                         [=](const Trace& t) {
                           const Gap g = gap(t);
                           return g.any ? g.cycles >= handoff::machine::kBlackwell.global_load : s.rounds < 2;
                         },
                         [=](const Trace& t) {
                           const Gap g = gap(t);
                           return g.any ? fmt::format(
                                              "warp {} of block {} waits for phase {} only {} cycles after it arrived",
                                              g.warp, g.cta, g.phase, g.cycles)
                                        : std::string("no warp arrives in a phase and then waits for it");
                         }));
  }
}

}  // namespace
