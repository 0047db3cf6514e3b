// Harness of 01a: each tile of 256 elements is written by one half of the block and read, reversed, by the other.
#include <fmt/format.h>

#include <cmath>

#include "grader/harness/exercise.h"

namespace {

using namespace handoff::harness;

constexpr uint32_t kTile = 256;  // elements a block

class FirstHandoff : public ExerciseTest {
 public:
  std::vector<Case> cases(uint64_t seed) const override {
    struct Shape {
      uint32_t n, block;
    };
    std::vector<Case> list;
    // One element, part of a tile, a whole one, one more, and several; the block has 1 + 1, 2 + 2 or 4 + 4 warps.
    for (const Shape s :
         {Shape{1, 64}, Shape{200, 128}, Shape{256, 256}, Shape{257, 128}, Shape{1000, 64}, Shape{2560, 256}})
      list.push_back(one(s.n, s.block, seed + s.n));
    return list;
  }

 protected:
  static uint32_t blocks(uint32_t n) { return (n + kTile - 1) / kTile; }

 private:
  static Case one(uint32_t n, uint32_t block, uint64_t seed) {
    const std::vector<float> in = random_floats(n, seed);
    std::vector<float> out(n);
    for (uint32_t i = 0; i < n; i++) {
      const uint32_t from = i / kTile * kTile + (kTile - 1 - i % kTile);
      out[i] = std::fma(3.0f, from < n ? in[from] : 0.0f, 1.0f);
    }
    return Case(fmt::format("n = {}, {} threads", n, block))
        .grid(blocks(n))
        .block(block)
        .in("in", in)
        .out("out", out)
        .value("n", static_cast<int32_t>(n));
  }
};

HANDOFF_STANDARD_TESTS("01a", FirstHandoff)

// The consumers must have waited on an mbarrier, and only the barrier that publishes the init may be block-wide. One
// arrival or one wait for a warp is as good as one for each of its threads.
HANDOFF_TEST("01a", FirstHandoff, uses_mbarrier, "uses-mbarrier") {
  if (!on_emulator()) {
    EXPECT_NE(ptx().find("mbarrier.arrive"), std::string::npos) << "the kernel never arrives on an mbarrier";
    EXPECT_TRUE(ptx().find("mbarrier.try_wait") != std::string::npos ||
                ptx().find("mbarrier.test_wait") != std::string::npos)
        << "the kernel never waits on an mbarrier";
    return;
  }
  for (const KernelRun& run : traced_runs()) {
    const auto& config = run.test_case->config();
    const uint64_t producers = config.block.x / 2, consumers = config.block.x / 2;
    EXPECT_THAT(
        run, HandsOffByMbarrier(config.grid.x * (producers / 32), config.grid.x * (consumers / 32), 1, config.grid.x));
  }
}

}  // namespace
