// Harness of 13a: each block computes a tile of 128 x 128 of a matrix product, with 1 to 6 stages, for as many K tiles
// as tell rings of different sizes apart.
#include <fmt/ranges.h>

#include <set>

#include "grader/harness/gemm_case.h"

namespace {

using namespace handoff::harness;
using gemm::Problem;

constexpr uint32_t kLongK = 64;  // K tiles: K = 4096
constexpr uint32_t kLongStages = 4;

class GemmFullEmpty : public ExerciseTest {
 public:
  std::vector<Case> cases(uint64_t seed) const override {
    std::vector<Case> list;
    const auto add = [&](const Problem& p) {
      list.push_back(gemm::product_case(p, seed + list.size(), 192, p.stages * gemm::kStageBytes));
    };
    // One block with 0, 1, S - 1, S, S + 1 and 2 S + 3 K tiles for S stages, S = 1 … 6; then several blocks; then a sum
    // that is long enough to measure the pipeline.
    for (uint32_t s = 1; s <= 6; s++) {
      for (const uint32_t k : std::set<uint32_t>{0, 1, s - 1, s, s + 1, 2 * s + 3}) add({1, 1, k, (k + s) % 2 == 0, s});
    }
    add({2, 3, 5, false, 2});
    add({3, 2, 7, true, 3});
    add({2, 1, 0, false, 4});
    add({1, 1, kLongK, false, kLongStages});
    return list;
  }
};

HANDOFF_STANDARD_TESTS("13a", GemmFullEmpty)

HANDOFF_TEST("13a", GemmFullEmpty, tensor_copies, "tensor-copies") {
  if (!on_emulator()) {
    EXPECT_NE(ptx().find("cp.async.bulk.tensor"), std::string::npos) << "the kernel has no tensor copy";
    return;
  }
  for (const KernelRun& run : traced_runs()) EXPECT_THAT(run, gemm::LoadsByTensorCopy(gemm::problem_of(run)));
}

HANDOFF_TEST("13a", GemmFullEmpty, uses_mma, "uses-mma") {
  if (!on_emulator()) {
    EXPECT_NE(ptx().find("tcgen05.mma"), std::string::npos) << "the kernel has no tcgen05.mma";
    return;
  }
  for (const KernelRun& run : traced_runs()) {
    const Problem p = gemm::problem_of(run);
    if (p.k_tiles > 0) {
      EXPECT_THAT(run, gemm::MultipliesByMma(p));
    }
  }
}

HANDOFF_TEST("13a", GemmFullEmpty, one_accumulator, "one-accumulator") {
  if (!on_emulator()) GTEST_SKIP() << "reads of tensor memory are counted on the emulator only";
  for (const KernelRun& run : traced_runs()) {
    const Problem p = gemm::problem_of(run);
    if (p.k_tiles > 0) {
      EXPECT_THAT(run, gemm::SumsInTensorMemory(p));
    }
  }
}

// S stages let S loads run ahead, and a stage is loaded again while later ones are multiplied.
HANDOFF_TEST("13a", GemmFullEmpty, ring, "ring") {
  if (!on_emulator()) GTEST_SKIP() << "loads and MMAs are observed in time on the emulator only";
  bool judged = false;
  for (const KernelRun& run : traced_runs()) {
    if (run.schedule.kind != handoff::machine::Schedule::Kind::Nominal)
      GTEST_SKIP() << "decided on the nominal schedule";
    const Problem p = gemm::problem_of(run);
    // With one stage there is nothing to run ahead of.
    if (p.k_tiles == 0 || p.stages == 1) continue;
    judged = true;
    EXPECT_THAT(run, gemm::LoadsRunAhead(p, p.stages));
  }
  EXPECT_TRUE(judged) << "not judged: a launch did not end";
}

/// Which warps of a run do what, all blocks together.
struct Roles {
  std::set<int32_t> load, multiply, store;
  bool separate() const {
    const auto apart = [](const std::set<int32_t>& x, const std::set<int32_t>& y) {
      return std::none_of(x.begin(), x.end(), [&](int32_t warp) { return y.contains(warp); });
    };
    return !load.empty() && !multiply.empty() && !store.empty() && apart(load, multiply) && apart(load, store) &&
           apart(multiply, store);
  }
};

Roles roles(const handoff::trace::Trace& trace) {
  using Kind = handoff::trace::Event::Kind;
  Roles r;
  for (const handoff::trace::Event& e : trace.events) {
    if (e.kind == Kind::CopyIssued) r.load.insert(e.warp);
    if (e.kind == Kind::MmaIssued) r.multiply.insert(e.warp);
    if (e.kind == Kind::TmemLoad) r.store.insert(e.warp);
  }
  return r;
}

// Loads, MMAs and the epilogue belong to different warps, which meet at mbarriers: the number of block-wide barriers
// does not grow with K.
HANDOFF_TEST("13a", GemmFullEmpty, warp_roles, "warp-roles") {
  if (!on_emulator()) GTEST_SKIP() << "which warp does what is observed on the emulator only";
  constexpr uint64_t kBarriers = 4;  // of a block: before the pipeline and behind it
  for (const KernelRun& run : traced_runs()) {
    const Problem p = gemm::problem_of(run);
    if (p.k_tiles == 0) continue;
    EXPECT_THAT(run,
                Traced(
                    fmt::format("loads, MMAs and reads of tensor memory by different warps, and at most {} block-wide "
                                "barriers in each block",
                                kBarriers),
                    [=](const handoff::trace::Trace& t) {
                      return roles(t).separate() && t.totals.block_barriers <= kBarriers * p.ctas();
                    },
                    [=](const handoff::trace::Trace& t) {
                      const Roles r = roles(t);
                      return fmt::format(
                          "warps {{{}}} load, {{{}}} multiply, {{{}}} read tensor memory; {} block-wide barriers in "
                          "{} block{}",
                          fmt::join(r.load, ", "), fmt::join(r.multiply, ", "), fmt::join(r.store, ", "),
                          t.totals.block_barriers, p.ctas(), p.ctas() == 1 ? "" : "s");
                    }));
  }
}

// With enough stages and K tiles the kernel is as fast as the slower of the two units lets it be.
HANDOFF_TEST("13a", GemmFullEmpty, near_the_bound, "near-the-bound") {
  if (!on_emulator()) GTEST_SKIP() << "the bound is that of the emulator's timing model";
  constexpr uint64_t kPercent = 90;
  bool judged = false;
  for (const KernelRun& run : traced_runs()) {
    if (run.schedule.kind != handoff::machine::Schedule::Kind::Nominal)
      GTEST_SKIP() << "decided on the nominal schedule";
    const Problem p = gemm::problem_of(run);
    if (p.k_tiles != kLongK) continue;
    judged = true;
    const uint64_t cycles = run.result.modeled_cycles, bound = gemm::bound(p);
    EXPECT_THAT(
        run, Traced(
                 fmt::format("the product at {} % or more of the model's bound, which is {} cycles", kPercent, bound),
                 [=](const handoff::trace::Trace& t) {
                   return t.totals.mma_flops == 2 * p.multiply_adds() && bound * 100 >= kPercent * cycles;
                 },
                 [=](const handoff::trace::Trace& t) {
                   return fmt::format("{} multiply-adds in {} cycles, {} % of the bound", t.totals.mma_flops / 2,
                                      cycles, bound * 100 / cycles);
                 }));
  }
  EXPECT_TRUE(judged) << "not judged: a launch did not end";
}

}  // namespace
