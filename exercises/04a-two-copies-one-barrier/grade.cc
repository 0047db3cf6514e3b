// Harness of 04a: each block brings one tile of 4096 bytes with two bulk copies on one mbarrier.
#include <fmt/format.h>

#include "grader/harness/exercise.h"

namespace {

using namespace handoff::harness;

constexpr uint32_t kTile = 1024;  // floats a block

class TwoCopies : public ExerciseTest {
 public:
  std::vector<Case> cases(uint64_t seed) const override {
    struct Shape {
      uint32_t tiles, block;
    };
    std::vector<Case> list;
    for (const Shape s : {Shape{1, 128}, Shape{1, 32}, Shape{3, 256}, Shape{7, 128}}) {
      const uint32_t n = s.tiles * kTile;
      const std::vector<float> in = random_floats(n, seed + n + s.block);
      std::vector<float> out(n);
      for (uint32_t i = 0; i < n; i++) out[i] = 2.0f * in[i] + in[i / kTile * kTile + (kTile - 1 - i % kTile)];
      list.push_back(Case(fmt::format("{} tile{}, {} threads", s.tiles, s.tiles == 1 ? "" : "s", s.block))
                         .grid(s.tiles)
                         .block(s.block)
                         .in("in", in)
                         .out("out", out)
                         .value("n", static_cast<int32_t>(n)));
    }
    return list;
  }

 protected:
  static uint64_t bytes(const KernelRun& run) {
    return uint64_t{run.test_case->config().grid.x} * kTile * sizeof(float);
  }
};

HANDOFF_STANDARD_TESTS("04a", TwoCopies)

HANDOFF_TEST("04a", TwoCopies, bytes_add_up, "bytes-add-up") {
  if (!on_emulator()) GTEST_SKIP() << "bytes are counted on the emulator only";
  for (const KernelRun& run : traced_runs()) EXPECT_THAT(run, BytesAddUp(bytes(run)));
}

HANDOFF_TEST("04a", TwoCopies, uses_bulk_copies, "uses-bulk-copies") {
  if (!on_emulator()) {
    EXPECT_NE(ptx().find("cp.async.bulk.shared"), std::string::npos)
        << "the kernel has no bulk copy into shared memory";
    return;
  }
  for (const KernelRun& run : traced_runs()) EXPECT_THAT(run, LoadsByBulkCopy(bytes(run)));
}

}  // namespace
