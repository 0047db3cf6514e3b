// Harness of 10b: each block multiplies 128 rows of A by all 256 rows of B, 16 elements deep, with one tcgen05.mma.
#include <fmt/format.h>

#include "grader/emulator/machine/memory_access.h"
#include "grader/harness/exercise.h"

namespace {

using namespace handoff::harness;

constexpr uint32_t kM = 128, kN = 256, kK = 16;  // of a block

/// Multiples of 1/16 in [−8, 8): 8 significant bits, so that they are numbers of type bf16, and any sum of 16 products
/// is exact in binary32, in whatever order it is taken.
std::vector<float> random_operand(size_t count, uint64_t seed) {
  std::vector<float> values = random_floats(count, seed);
  for (float& v : values) v = static_cast<float>(static_cast<int>((v + 8.0f) * 16.0f)) / 16.0f - 8.0f;
  return values;
}

std::vector<uint16_t> as_bf16(const std::vector<float>& values) {
  std::vector<uint16_t> encoded(values.size());
  for (size_t i = 0; i < values.size(); i++) encoded[i] = handoff::machine::float_to_bf16(values[i]);
  return encoded;
}

class OneMma : public ExerciseTest {
 public:
  std::vector<Case> cases(uint64_t seed) const override {
    std::vector<Case> list;
    // Two 256-column accumulators fill the tensor memory of an SM: with five blocks some wait for others to give theirs
    // back.
    for (const uint32_t blocks : {1U, 2U, 5U}) list.push_back(one(blocks, seed + 64 * blocks));
    return list;
  }

 protected:
  static uint64_t blocks(const KernelRun& run) { return run.test_case->config().grid.x; }

 private:
  static Case one(uint32_t blocks, uint64_t seed) {
    const uint32_t rows = blocks * kM;
    const std::vector<float> a = random_operand(size_t{rows} * kK, seed);
    const std::vector<float> b = random_operand(size_t{kN} * kK, seed + 1);
    std::vector<float> d(size_t{rows} * kN);
    for (uint32_t m = 0; m < rows; m++) {
      for (uint32_t n = 0; n < kN; n++) {
        float sum = 0;
        for (uint32_t k = 0; k < kK; k++) sum += a[m * kK + k] * b[n * kK + k];
        d[m * kN + n] = sum;
      }
    }
    Case c(fmt::format("{} block{} of {} rows", blocks, blocks == 1 ? "" : "s", kM));
    c.grid(blocks).block(kM);
    return c.in("a", as_bf16(a)).in("b", as_bf16(b)).out("d", d);
  }
};

HANDOFF_STANDARD_TESTS("10b", OneMma)

// A CUDA core does at most two fp32 multiply-adds with one instruction of one thread (fma.rn.f32x2). Who takes fewer
// instructions than that for the whole kernel, staging and epilogue included, did not compute the product there.
HANDOFF_TEST("10b", OneMma, product_by_mma, "product-by-mma") {
  if (!on_emulator()) {
    EXPECT_NE(ptx().find("tcgen05.mma.cta_group::1.kind::f16"), std::string::npos)
        << "the kernel has no tcgen05.mma of 16-bit elements";
    return;
  }
  for (const KernelRun& run : traced_runs()) {
    const uint64_t products = blocks(run) * kM * kN * kK;
    EXPECT_THAT(run, Traced(
                         fmt::format("all {} multiply-adds by tcgen05.mma", products),
                         [=](const handoff::trace::Trace& t) {
                           return t.totals.mma_flops >= 2 * products && t.totals.lane_instructions < products / 2;
                         },
                         [=](const handoff::trace::Trace& t) {
                           return fmt::format(
                               "{} multiply-adds by tcgen05.mma, and {} instructions of threads, enough for {}",
                               t.totals.mma_flops / 2, t.totals.lane_instructions, 2 * t.totals.lane_instructions);
                         }));
  }
}

// Every element of D comes from tensor memory, once a commit has said that it is complete.
HANDOFF_TEST("10b", OneMma, reads_tensor_memory, "reads-tensor-memory") {
  if (!on_emulator()) {
    EXPECT_NE(ptx().find("tcgen05.ld"), std::string::npos) << "the kernel has no tcgen05.ld";
    EXPECT_NE(ptx().find("tcgen05.commit"), std::string::npos) << "the kernel has no tcgen05.commit";
    return;
  }
  for (const KernelRun& run : traced_runs()) {
    const uint64_t grid = blocks(run), bytes = grid * kM * kN * sizeof(float);
    EXPECT_THAT(run, Traced(
                         fmt::format("all {} bytes of D read from tensor memory, after a commit in each block", bytes),
                         [=](const handoff::trace::Trace& t) {
                           return t.totals.tmem_load_bytes >= bytes && t.totals.tcgen_commits >= grid &&
                                  t.totals.waits_true >= grid;
                         },
                         [](const handoff::trace::Trace& t) {
                           return fmt::format(
                               "{} bytes read from tensor memory, {} commits, and waits that ended in {} threads",
                               t.totals.tmem_load_bytes, t.totals.tcgen_commits, t.totals.waits_true);
                         }));
  }
}

}  // namespace
