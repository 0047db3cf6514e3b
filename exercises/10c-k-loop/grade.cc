// Harness of 10c: one block multiplies 128 x k by k x n; k is 0, less than one panel of 64 columns, whole panels, and
// panels and a part of one.
#include <fmt/format.h>

#include <cstring>

#include "grader/emulator/machine/memory_access.h"
#include "grader/harness/exercise.h"

namespace {

using namespace handoff::harness;
using handoff::machine::bf16_to_float;
using handoff::trace::Trace;

constexpr uint32_t kM = 128;     // rows of a and d
constexpr uint32_t kSlice = 16;  // columns of a and b in one MMA
constexpr uint32_t kPanel = 64;  // columns of a and b in one panel of shared memory

class KLoop : public ExerciseTest {
 public:
  std::vector<Case> cases(uint64_t seed) const override {
    struct Shape {
      uint32_t n, k;
    };
    std::vector<Case> list;
    for (const Shape s : {Shape{64, 0}, Shape{64, 16}, Shape{64, 32}, Shape{128, 48}, Shape{64, 64}, Shape{64, 80},
                          Shape{128, 128}, Shape{128, 176}, Shape{64, 192}, Shape{128, 256}}) {
      list.push_back(one(s.n, s.k, seed + 2 * s.k + s.n));
    }
    return list;
  }

 protected:
  static uint64_t extent(const KernelRun& run, size_t parameter) {
    int32_t value;
    std::memcpy(&value, run.test_case->parameters()[parameter].value.data(), sizeof value);
    return static_cast<uint64_t>(value);
  }
  static uint64_t extent_n(const KernelRun& run) { return extent(run, 3); }
  static uint64_t extent_k(const KernelRun& run) { return extent(run, 4); }

 private:
  static Case one(uint32_t n, uint32_t k, uint64_t seed) {
    Case c(fmt::format("n = {}, k = {}", n, k));
    c.block(128).dynamic_smem((k + kPanel - 1) / kPanel * kPanel * 2 * (kM + n));
    std::vector<float> d(size_t{kM} * n);
    if (k == 0) {
      // There is one slice of memory, which an empty sum does not read; d is 0.
      c.in("a", random_bf16(size_t{kM} * kSlice, seed)).in("b", random_bf16(size_t{n} * kSlice, seed + 1000));
    } else {
      const std::vector<uint16_t> a = random_bf16(size_t{kM} * k, seed), b = random_bf16(size_t{n} * k, seed + 1000);
      for (size_t row = 0; row < kM; row++) {
        for (size_t column = 0; column < n; column++) {
          float sum = 0;
          for (size_t i = 0; i < k; i++) sum += bf16_to_float(a[row * k + i]) * bf16_to_float(b[column * k + i]);
          d[row * n + column] = sum;
        }
      }
      c.in("a", a).in("b", b);
    }
    return c.out("d", d).value("n", static_cast<int32_t>(n)).value("k", static_cast<int32_t>(k));
  }
};

HANDOFF_STANDARD_TESTS("10c", KLoop)

// All products are the tensor core's: as many multiply-adds as the matrices ask for, a slice of 16 columns each time,
// and far fewer instructions of threads than that.
HANDOFF_TEST("10c", KLoop, uses_mma, "uses-mma") {
  if (!on_emulator()) {
    EXPECT_NE(ptx().find("tcgen05.mma"), std::string::npos) << "the kernel has no tcgen05.mma";
    return;
  }
  for (const KernelRun& run : traced_runs()) {
    const uint64_t multiply_adds = kM * extent_n(run) * extent_k(run), slices = extent_k(run) / kSlice;
    if (slices == 0) continue;
    EXPECT_THAT(run, Traced(
                         fmt::format("{} multiply-adds by {} or more tcgen05.mma, and fewer thread instructions than "
                                     "multiply-adds",
                                     multiply_adds, slices),
                         [=](const Trace& t) {
                           return t.totals.mma_flops == 2 * multiply_adds && t.totals.mma_instructions >= slices &&
                                  t.totals.lane_instructions < multiply_adds;
                         },
                         [](const Trace& t) {
                           return fmt::format("{} tcgen05.mma with {} multiply-adds, {} instructions of threads",
                                              t.totals.mma_instructions, t.totals.mma_flops / 2,
                                              t.totals.lane_instructions);
                         }));
  }
}

// The sum over K stays in tensor memory until it is complete: one commit, after which every element is read once.
HANDOFF_TEST("10c", KLoop, one_accumulator, "one-accumulator") {
  if (!on_emulator()) GTEST_SKIP() << "commits are counted on the emulator only";
  for (const KernelRun& run : traced_runs()) {
    if (extent_k(run) == 0) continue;
    const uint64_t bytes = kM * extent_n(run) * sizeof(float);
    EXPECT_THAT(run,
                Traced(
                    fmt::format("one tcgen05.commit, and the accumulator's {} bytes read once", bytes),
                    [=](const Trace& t) { return t.totals.tcgen_commits == 1 && t.totals.tmem_load_bytes == bytes; },
                    [](const Trace& t) {
                      return fmt::format("{} tcgen05.commit, {} bytes read from tensor memory", t.totals.tcgen_commits,
                                         t.totals.tmem_load_bytes);
                    }));
  }
}

}  // namespace
