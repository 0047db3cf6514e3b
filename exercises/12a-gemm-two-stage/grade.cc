// Harness of 12a: each block computes a tile of 128 x 128 of a matrix product, with two stages, for 0 to 9 K tiles
// of 64.
#include "grader/harness/gemm_case.h"

namespace {

using namespace handoff::harness;
using gemm::Problem;

class GemmTwoStage : public ExerciseTest {
 public:
  std::vector<Case> cases(uint64_t seed) const override {
    std::vector<Case> list;
    for (const Problem& p :
         {Problem{1, 1, 0, false}, Problem{1, 1, 1, false}, Problem{1, 1, 2, true}, Problem{1, 1, 3, false},
          Problem{1, 1, 5, true}, Problem{1, 2, 9, false}, Problem{3, 2, 4, true}, Problem{2, 3, 3, false},
          Problem{2, 1, 0, true}, Problem{1, 1, 64, false}}) {
      list.push_back(gemm::product_case(p, seed + list.size(), 128, 2 * gemm::kStageBytes));
    }
    return list;
  }
};

HANDOFF_STANDARD_TESTS("12a", GemmTwoStage)

HANDOFF_TEST("12a", GemmTwoStage, tensor_copies, "tensor-copies") {
  if (!on_emulator()) {
    EXPECT_NE(ptx().find("cp.async.bulk.tensor"), std::string::npos) << "the kernel has no tensor copy";
    return;
  }
  for (const KernelRun& run : traced_runs()) EXPECT_THAT(run, gemm::LoadsByTensorCopy(gemm::problem_of(run)));
}

HANDOFF_TEST("12a", GemmTwoStage, uses_mma, "uses-mma") {
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

HANDOFF_TEST("12a", GemmTwoStage, one_accumulator, "one-accumulator") {
  if (!on_emulator()) GTEST_SKIP() << "reads of tensor memory are counted on the emulator only";
  for (const KernelRun& run : traced_runs()) {
    const Problem p = gemm::problem_of(run);
    if (p.k_tiles > 0) {
      EXPECT_THAT(run, gemm::SumsInTensorMemory(p));
    }
  }
}

// The load of the next K tile runs under the MMAs of this one. Who loads and multiplies in turn has one stage, however
// many there is room for.
HANDOFF_TEST("12a", GemmTwoStage, overlap, "overlap") {
  if (!on_emulator()) GTEST_SKIP() << "loads and MMAs are observed in time on the emulator only";
  for (const KernelRun& run : traced_runs()) {
    if (run.schedule.kind != handoff::machine::Schedule::Kind::Nominal)
      GTEST_SKIP() << "decided on the nominal schedule";
    const Problem p = gemm::problem_of(run);
    if (p.k_tiles > 0) {
      EXPECT_THAT(run, gemm::LoadsRunAhead(p, 2));
    }
  }
}

}  // namespace
