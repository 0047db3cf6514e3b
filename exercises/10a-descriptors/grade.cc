// Harness of 10a: one block multiplies 128 x 64 by 64 x n, from tiles without swizzle and with the 128-byte swizzle.
// Launches with `fields` only look at the descriptors, so that a wrong field has a name before an MMA reads by it.
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "grader/emulator/machine/memory_access.h"
#include "grader/harness/exercise.h"

namespace {

using namespace handoff::harness;
using handoff::machine::bf16_to_float;
using handoff::trace::Trace;

constexpr uint32_t kM = 128;  // rows of a and d
constexpr uint32_t kK = 64;   // columns of a and b
constexpr uint32_t kSlice = 16;

// The words that the kernel takes its descriptors apart into: a, b, the instruction.
constexpr std::array<std::string_view, 21> kFields = {
    "a's start address, bits 0-13: how far it is off, in units of 16 bytes",
    "a's leading-dimension byte offset / 16, bits 16-29",
    "a's stride-dimension byte offset / 16, bits 32-45",
    "a's constant 0b001, bits 46-48",
    "a's base offset, bits 49-51",
    "a's swizzle, bits 61-63",
    "a's bits that must be 0 (14-15, 30-31, 52-60)",
    "b's start address, bits 0-13: how far it is off, in units of 16 bytes",
    "b's leading-dimension byte offset / 16, bits 16-29",
    "b's stride-dimension byte offset / 16, bits 32-45",
    "b's constant 0b001, bits 46-48",
    "b's base offset, bits 49-51",
    "b's swizzle, bits 61-63",
    "b's bits that must be 0 (14-15, 30-31, 52-60)",
    "the instruction's type of d, bits 4-5",
    "the instruction's type of a, bits 7-9",
    "the instruction's type of b, bits 10-12",
    "the instruction's negate and transpose, bits 13-16",
    "the instruction's N / 8, bits 17-22",
    "the instruction's M / 16, bits 24-28",
    "the instruction's bits that must be 0 (0-3, 6, 23, 29-31)",
};

class Descriptors : public ExerciseTest {
 public:
  std::vector<Case> cases(uint64_t seed) const override {
    std::vector<Case> list;
    for (const bool swizzle : {false, true}) {
      for (const uint32_t n : {16u, 128u, 256u}) list.push_back(fields(n, swizzle));
      for (const uint32_t n : {16u, 64u, 80u, 128u, 256u}) list.push_back(product(n, swizzle, seed + 2 * n + swizzle));
    }
    return list;
  }

 protected:
  static bool multiplies(const KernelRun& run) { return !run.test_case->parameters()[3].is_buffer; }
  static uint64_t extent_n(const KernelRun& run) {
    int32_t n;
    std::memcpy(&n, run.test_case->parameters()[4].value.data(), sizeof n);
    return static_cast<uint64_t>(n);
  }

 private:
  static Case start(std::string_view what, uint32_t n, bool swizzle) {
    Case c(fmt::format("{}n = {}, {}", what, n, swizzle ? "128-byte swizzle" : "no swizzle"));
    c.block(128).dynamic_smem((kM + n) * kK * 2);
    return c;
  }

  static Case product(uint32_t n, bool swizzle, uint64_t seed) {
    const std::vector<uint16_t> a = random_bf16(size_t{kM} * kK, seed), b = random_bf16(size_t{n} * kK, seed + 1000);
    std::vector<float> d(size_t{kM} * n);
    for (size_t r = 0; r < kM; r++) {
      for (size_t c = 0; c < n; c++) {
        float sum = 0;
        for (size_t i = 0; i < kK; i++) sum += bf16_to_float(a[r * kK + i]) * bf16_to_float(b[c * kK + i]);
        d[r * n + c] = sum;
      }
    }
    return start("", n, swizzle)
        .in("a", a)
        .in("b", b)
        .out("d", d)
        .value("fields", uint64_t{0})
        .value("n", static_cast<int32_t>(n))
        .value("swizzle", static_cast<int32_t>(swizzle));
  }

  static Case fields(uint32_t n, bool swizzle) {
    std::vector<uint32_t> expected;
    for (const uint32_t rows : {kM, n}) {
      const std::array<uint32_t, 7> tile =
          swizzle ? std::array<uint32_t, 7>{0, 0, 64, 1, 0, 2, 0} : std::array<uint32_t, 7>{0, rows, 8, 1, 0, 0, 0};
      expected.insert(expected.end(), tile.begin(), tile.end());
    }
    for (const uint32_t word : {1u, 1u, 1u, 0u, n / 8, kM / 16, 0u}) expected.push_back(word);
    return start("the fields only, ", n, swizzle)
        .value("a", uint64_t{0})
        .value("b", uint64_t{0})
        .value("d", uint64_t{0})
        .out("fields", expected)
        .value("n", static_cast<int32_t>(n))
        .value("swizzle", static_cast<int32_t>(swizzle));
  }
};

HANDOFF_STANDARD_TESTS("10a", Descriptors)

// What a comparison says about "fields[k]", with the field's name in place of the index.
std::string named(const std::string& differences) {
  constexpr std::string_view kIndexed = "fields[";
  std::string text;
  size_t from = 0;
  for (size_t at = 0; (at = differences.find(kIndexed, from)) != std::string::npos;) {
    const size_t close = differences.find(']', at);
    if (close == std::string::npos) break;
    const size_t k = std::strtoul(differences.c_str() + at + kIndexed.size(), nullptr, 10);
    text += differences.substr(from, at - from);
    text += k < kFields.size() ? kFields[k] : "a word past the last field";
    from = close + 1;
  }
  return text + differences.substr(from);
}

HANDOFF_TEST("10a", Descriptors, fields, "fields") {
  for (const KernelRun& run : nominal_runs()) {
    if (multiplies(run)) continue;
    EXPECT_TRUE(run.result.ok() && run.outputs.right())
        << run.where() << ": "
        << (run.result.ok() ? fmt::format("{} of {} fields are wrong. {}", run.outputs.wrong, run.outputs.total,
                                          named(run.outputs.first))
                            : run.result.message);
  }
}

// All products are the tensor core's: as many multiply-adds as the matrices ask for, and far fewer instructions of
// threads than that.
HANDOFF_TEST("10a", Descriptors, uses_mma, "uses-mma") {
  if (!on_emulator()) {
    EXPECT_NE(ptx().find("tcgen05.mma"), std::string::npos) << "the kernel has no tcgen05.mma";
    return;
  }
  for (const KernelRun& run : traced_runs()) {
    if (!multiplies(run)) continue;
    const uint64_t multiply_adds = kM * kK * extent_n(run);
    EXPECT_THAT(run, Traced(
                         fmt::format("{} multiply-adds, all by tcgen05.mma, and fewer thread instructions than that",
                                     multiply_adds),
                         [=](const Trace& t) {
                           return t.totals.mma_flops == 2 * multiply_adds && t.totals.mma_instructions >= kK / kSlice &&
                                  t.totals.lane_instructions < multiply_adds &&
                                  t.totals.tmem_load_bytes >= kM * extent_n(run) * sizeof(float);
                         },
                         [](const Trace& t) {
                           return fmt::format(
                               "{} tcgen05.mma with {} multiply-adds, {} instructions of threads, {} "
                               "bytes read from tensor memory",
                               t.totals.mma_instructions, t.totals.mma_flops / 2, t.totals.lane_instructions,
                               t.totals.tmem_load_bytes);
                         }));
  }
}

}  // namespace
