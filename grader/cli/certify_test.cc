// Tests of certify: the report's form, going on with one that was cut short, what is skipped and why, the products'
// verification. What needs a GPU is tools/gpu_check.sh's.
#include "grader/cli/certify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "grader/cli/certify_gemm.h"
#include "grader/cli/commands.h"
#include "grader/emulator/machine/memory_access.h"

namespace handoff::cli {
namespace {

namespace fs = std::filesystem;
using device::MatmulShape;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// A folder for one test.
class CertifyTest : public testing::Test {
 protected:
  CertifyTest() {
    std::string name = (fs::temp_directory_path() / "handoff-certify-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    limits_.out = (folder_ / "report.json").string();
    limits_.elapsed = [this] { return elapsed_; };
    report_.about = about();
  }
  ~CertifyTest() override {
    std::error_code nothing;
    fs::remove_all(folder_, nothing);
  }
  static CertifyAbout about() {
    return {"Fake GPU", 90, "CUDA 13.0", "13.0", "2026-11-30", "Linux", "abc", "0123", 3, ""};
  }
  static CertifyResult passed() {
    CertifyResult result;
    result.outcome = CertifyOutcome::Passed;
    result.repeats = 3;
    return result;
  }
  /// An item that passes and counts how often it ran.
  CertifyItem counted(const std::string& name) {
    return {name, "", [this, name] { return ran_.push_back(name), passed(); }, {}, {}};
  }
  CertifyReport read(const std::string& file) {
    std::ifstream in(file);
    std::ostringstream text;
    text << in.rdbuf();
    CertifyReport report;
    EXPECT_EQ(from_json(text.str(), &report), "") << file;
    return report;
  }
  bool exists(const std::string& file) { return fs::exists(file); }
  std::string part() const { return limits_.out + ".part"; }

  fs::path folder_;
  CertifyLimits limits_;
  CertifyReport report_;
  double elapsed_ = 0;
  std::vector<std::string> ran_;
};

TEST_F(CertifyTest, AReportComesBackAsItWasWritten) {
  report_.complete = true;
  report_.items["solution/01a"] = passed();
  report_.items["gemm/13a"] = {CertifyOutcome::Failed, 10, 1.5, "bad byte \xff here", {{"seconds", {0.5, 0.25}}}};
  CertifyReport back;
  ASSERT_EQ(from_json(to_json(report_), &back), "");
  EXPECT_EQ(why_not_resumed(report_.about, back.about), "");
  EXPECT_EQ(back.about.date, "2026-11-30");
  EXPECT_EQ(back.about.commit, "abc");
  EXPECT_TRUE(back.complete);
  ASSERT_EQ(back.items.size(), 2U);
  const CertifyResult& gemm = back.items.at("gemm/13a");
  EXPECT_EQ(gemm.outcome, CertifyOutcome::Failed);
  EXPECT_EQ(gemm.repeats, 10);
  EXPECT_EQ(gemm.seconds, 1.5);
  EXPECT_EQ(gemm.message, "bad byte \xef\xbf\xbd here");
  EXPECT_EQ(gemm.record.at("seconds").at(1), 0.25);
  EXPECT_TRUE(back.items.at("solution/01a").record.empty());
}

TEST_F(CertifyTest, AReportCountsItsGroups) {
  report_.items["solution/01a"] = report_.items["solution/02a"] = passed();
  report_.items["solution/09a"].outcome = CertifyOutcome::Skipped;
  const auto json = nlohmann::json::parse(to_json(report_));
  EXPECT_EQ(json.at("summary").at("solution"), nlohmann::json::parse(R"({"passed": 2, "failed": 0, "skipped": 1})"));
  EXPECT_EQ(json.at("complete"), false);
}

TEST_F(CertifyTest, WhatIsNoReportIsRefused) {
  CertifyReport back;
  EXPECT_THAT(from_json("", &back), StartsWith("not a report of certify: "));
  EXPECT_THAT(from_json("{}", &back), StartsWith("not a report of certify: "));
  EXPECT_EQ(from_json(R"({"version": 2})", &back), "a report of another version than 1");
  std::string text = to_json(report_);
  EXPECT_NE(from_json(text.substr(0, text.size() / 2), &back), "");
  report_.items["solution/01a"] = passed();
  text = to_json(report_);
  text.replace(text.find("\"passed\",\"rep"), 8, "\"missed\"");
  EXPECT_EQ(from_json(text, &back), "not a report of certify: no outcome 'missed'");
  EXPECT_TRUE(back.items.empty());
}

TEST_F(CertifyTest, TheReportIsThereOnlyWhenItIsWhole) {
  std::vector<CertifyItem> items = {counted("solution/01a"), counted("solution/02a")};
  items.push_back({"solution/03b",
                   "",
                   [this] {
                     // What is done so far stands beside the report.
                     EXPECT_FALSE(exists(limits_.out));
                     EXPECT_EQ(read(part()).items.size(), 2U);
                     EXPECT_FALSE(read(part()).complete);
                     return passed();
                   },
                   {},
                   {}});
  EXPECT_EQ(run_certify_items(items, limits_, &report_), "");
  EXPECT_TRUE(report_.complete);
  EXPECT_FALSE(exists(part()));
  EXPECT_EQ(read(limits_.out).items.size(), 3U);
  EXPECT_TRUE(read(limits_.out).complete);
}

TEST_F(CertifyTest, ATimeLimitLeavesAPartThatIsTakenUp) {
  limits_.seconds = 5;
  std::vector<CertifyItem> items = {counted("solution/01a"), counted("solution/02a"), counted("solution/03b")};
  items[1].run = [this] { return elapsed_ = 6, ran_.emplace_back("solution/02a"), passed(); };
  EXPECT_EQ(run_certify_items(items, limits_, &report_), "");
  EXPECT_FALSE(report_.complete);
  EXPECT_FALSE(exists(limits_.out));
  EXPECT_EQ(read(part()).items.size(), 2U);

  CertifyReport later;
  later.about = about();
  later.about.date = "2026-12-24";  // of the later call; the report keeps the first item's
  elapsed_ = 0;
  ASSERT_EQ(take_up_certify(limits_.out, true, &later), "");
  EXPECT_EQ(later.about.date, "2026-11-30");
  EXPECT_EQ(run_certify_items(items, limits_, &later), "");
  EXPECT_THAT(ran_, testing::ElementsAre("solution/01a", "solution/02a", "solution/03b"));
  EXPECT_TRUE(read(limits_.out).complete);
  EXPECT_FALSE(exists(part()));
}

TEST_F(CertifyTest, WhatWasCutShortIsNeitherLostNorMixed) {
  EXPECT_EQ(take_up_certify(limits_.out, false, &report_), "");
  EXPECT_THAT(take_up_certify(limits_.out, true, &report_), HasSubstr("nothing to go on with"));
  limits_.seconds = 1;
  std::vector<CertifyItem> items = {counted("solution/01a"), counted("solution/02a")};
  items[0].run = [this] { return elapsed_ = 2, passed(); };
  ASSERT_EQ(run_certify_items(items, limits_, &report_), "");
  EXPECT_THAT(take_up_certify(limits_.out, false, &report_), AllOf(HasSubstr("1 items"), HasSubstr("--resume")));
  CertifyReport other;
  const auto refusal = [&](auto&& change) {
    other = {};
    other.about = about();
    change(other.about);
    return take_up_certify(limits_.out, true, &other);
  };
  EXPECT_EQ(refusal([](CertifyAbout&) {}), "");
  EXPECT_EQ(other.items.size(), 1U);
  EXPECT_THAT(refusal([](CertifyAbout& a) { a.gpu = "B200"; }), HasSubstr("another GPU: 'Fake GPU', now 'B200'"));
  EXPECT_TRUE(other.items.empty());
  EXPECT_THAT(refusal([](CertifyAbout& a) { a.driver = "CUDA 13.1"; }), HasSubstr("another driver"));
  EXPECT_THAT(refusal([](CertifyAbout& a) { a.toolkit = "13.1"; }), HasSubstr("another toolkit"));
  EXPECT_THAT(refusal([](CertifyAbout& a) { a.repeats = 20; }), HasSubstr("another --repeats: '3', now '20'"));
  EXPECT_THAT(refusal([](CertifyAbout& a) { a.only = "x"; }), HasSubstr("another --only"));
  EXPECT_THAT(refusal([](CertifyAbout& a) { a.sources = "4567"; }), HasSubstr("another state of the sources"));
  std::ofstream(part()) << "garbage";
  EXPECT_THAT(refusal([](CertifyAbout&) {}), HasSubstr("not a report of certify"));
}

TEST_F(CertifyTest, AFileThatCannotBeWrittenEndsTheRun) {
  limits_.out = (folder_ / "nowhere" / "report.json").string();
  EXPECT_THAT(run_certify_items({counted("solution/01a"), counted("solution/02a")}, limits_, &report_),
              StartsWith("cannot write "));
  EXPECT_EQ(ran_.size(), 1U);
  EXPECT_FALSE(report_.complete);
}

/// A device that only says what it is.
class NamedGpu : public device::Device {
 public:
  NamedGpu(std::string name, int capability) : name_(std::move(name)), capability_(capability) {}
  std::string_view kind() const override { return "cuda"; }
  std::string name() const override { return name_; }
  int compute_capability() const override { return capability_; }
  bool has_tcgen05() const override { return capability_ == 100; }
  device::Error load(const device::ModuleImage&) override { return no(); }
  device::Error find_kernel(std::string_view, device::KernelInfo*) override { return no(); }
  device::Error allocate(size_t, device::DevicePtr*) override { return no(); }
  device::Error free(device::DevicePtr) override { return no(); }
  device::Error write(device::DevicePtr, std::span<const std::byte>) override { return no(); }
  device::Error read(std::span<std::byte>, device::DevicePtr) override { return no(); }
  device::Error read_symbol(std::string_view, std::span<std::byte>) override { return no(); }
  device::Error encode_tensor_map(const device::TensorMapArgs&, std::array<std::byte, 128>*) override { return no(); }
  device::LaunchResult launch(std::string_view, const device::LaunchConfig&,
                              std::span<const device::Argument>) override {
    return {device::LaunchResult::Status::Error, "it only has a name", {}, {}, {}, 0, 0, {}};
  }

 private:
  static device::Error no() { return {"it only has a name"}; }
  std::string name_;
  int capability_;
};

std::vector<harness::ExerciseInfo> course() {
  std::vector<std::string> errors;
  return harness::load_catalog(harness::project_root(), &errors);
}

const CertifyItem* find_item(const std::vector<CertifyItem>& items, const std::string& name) {
  const auto found = std::find_if(items.begin(), items.end(), [&](const CertifyItem& i) { return i.name == name; });
  return found == items.end() ? nullptr : &*found;
}

TEST_F(CertifyTest, WhatTheGpuCannotRunIsSkippedWithTheReason) {
  const std::vector<CertifyItem> items = submission_items(NamedGpu("NVIDIA H200", 90), {}, course(), 3);
  const CertifyItem *handoff = find_item(items, "solution/01a"), *memory = find_item(items, "solution/09a"),
                    *variant = find_item(items, "variant/09a/two-allocations");
  ASSERT_NE(handoff, nullptr);
  ASSERT_NE(memory, nullptr);
  ASSERT_NE(variant, nullptr);
  EXPECT_EQ(handoff->skip, "");
  EXPECT_EQ(handoff->kernel, "first_handoff");
  EXPECT_TRUE(fs::is_regular_file(handoff->file));
  EXPECT_EQ(memory->skip, "needs tcgen05 (sm_100, sm_103); this GPU is NVIDIA H200 (sm_90)");
  EXPECT_EQ(variant->skip, memory->skip);
  ASSERT_EQ(run_certify_items({*memory}, limits_, &report_), "");
  const CertifyResult written = read(limits_.out).items.at("solution/09a");
  EXPECT_EQ(written.outcome, CertifyOutcome::Skipped);
  EXPECT_EQ(written.repeats, 0);
  EXPECT_EQ(written.message, memory->skip);
  EXPECT_THAT(summarize(report_), HasSubstr("skipped 1: needs tcgen05"));
}

TEST_F(CertifyTest, ABlackwellRunsEverything) {
  const std::vector<CertifyItem> items = submission_items(NamedGpu("NVIDIA B200", 100), {}, course(), 3);
  size_t variants = 0;
  for (const CertifyItem& item : items) {
    EXPECT_EQ(item.skip, "") << item.name;
    variants += certify_group(item.name) == "variant" ? 1 : 0;
  }
  EXPECT_EQ(items.size() - variants, course().size());
  EXPECT_GT(variants, 0U);
}

TEST_F(CertifyTest, TheSummaryNamesWhatFailedAndTheProductsSpeed) {
  report_.items["variant/07a/three-stages"] = {CertifyOutcome::Failed, 3, 1, "result: 5 elements wrong", {}};
  report_.items["gemm/13a/S=4/bf16/4096x4096x4096"] = {
      CertifyOutcome::Passed, 10, 1, "1000 TFLOPS, cuBLASLt 1250: 80 %", {}};
  EXPECT_THAT(
      summarize(report_),
      AllOf(HasSubstr("Fake GPU (sm_90)"), HasSubstr("FAILED variant/07a/three-stages: result: 5 elements wrong"),
            HasSubstr("gemm/13a/S=4/bf16/4096x4096x4096: 1000 TFLOPS"), Not(HasSubstr("solutions"))));
}

TEST_F(CertifyTest, TheScreenIsNotFloodedWithFailures) {
  for (int i = 0; i < 23; ++i) report_.items["conformance/a/" + std::to_string(i)].message = "differs";
  const std::string text = summarize(report_);
  EXPECT_THAT(text,
              AllOf(HasSubstr("conformance kernels    23 failed"), HasSubstr("and 3 more failures: see the report")));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 1 + 20 + 1);
}

TEST_F(CertifyTest, BadArgumentsAreRefusedBeforeTheGpuIsOpened) {
  const auto said = [&](auto&& change) {
    CertifyArguments a;
    a.out = limits_.out;
    change(a);
    testing::internal::CaptureStderr();
    EXPECT_EQ(run_certify(a), kCouldNot);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said([](CertifyArguments& a) { a.repeats = "2"; }), HasSubstr("--repeats takes a whole number from 3"));
  EXPECT_THAT(said([](CertifyArguments& a) { a.repeats = "3.5"; }), HasSubstr("--repeats"));
  EXPECT_THAT(said([](CertifyArguments& a) { a.repeats = "many"; }), HasSubstr("--repeats"));
  EXPECT_THAT(said([](CertifyArguments& a) { a.repeats = "1e300"; }), HasSubstr("--repeats"));
  EXPECT_THAT(said([](CertifyArguments& a) { a.time_limit = "0"; }), HasSubstr("--time-limit"));
  EXPECT_THAT(said([](CertifyArguments& a) { a.time_limit = "nan"; }), HasSubstr("--time-limit"));
  EXPECT_THAT(said([](CertifyArguments& a) { a.only = "("; }), HasSubstr("--only takes a regular expression"));
  EXPECT_THAT(said([](CertifyArguments& a) { a.out = "-"; }), HasSubstr("--out takes a file"));
  EXPECT_THAT(said([](CertifyArguments& a) { a.out = "/"; }), HasSubstr("cannot write /"));
}

// This program does not serve as a GPU worker, so that for it there is none anywhere.
TEST_F(CertifyTest, WithoutAGpuThereIsOneLine) {
  CertifyArguments a;
  a.out = limits_.out;
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_certify(a), kCouldNot);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, StartsWith("handoff: no GPU: "));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
  EXPECT_FALSE(exists(limits_.out) || exists(part()));
}

TEST_F(CertifyTest, TheFingerprintFollowsTheSources) {
  fs::create_directories(folder_ / "solutions" / "01a");
  std::ofstream(folder_ / "solutions" / "01a" / "kernel.cu") << "a";
  const auto now = [&] { return source_fingerprint(folder_.string(), {"solutions", "missing"}); };
  const std::string first = now();
  std::ofstream(folder_ / "solutions" / "notes.md") << "not a source";
  EXPECT_EQ(now(), first);
  std::ofstream(folder_ / "solutions" / "01a" / "kernel.cu") << "b";
  EXPECT_NE(now(), first);
  std::ofstream(folder_ / "solutions" / "01a" / "kernel.cu") << "a";
  EXPECT_EQ(now(), first);
  fs::rename(folder_ / "solutions" / "01a", folder_ / "solutions" / "01b");
  EXPECT_NE(now(), first);
}

class ProductTest : public testing::TestWithParam<MatmulShape::Type> {};

TEST_P(ProductTest, ARightProductIsVerifiedAndAWrongElementFound) {
  const MatmulShape shape{33, 20, 72, GetParam()};
  const bool bf16 = shape.type == MatmulShape::Type::Bf16;
  const std::vector<uint16_t> a = gemm_operand(size_t{shape.m} * shape.k, shape.type, 1),
                              b = gemm_operand(size_t{shape.n} * shape.k, shape.type, 2);
  const auto value = [&](uint16_t bits) { return bf16 ? machine::bf16_to_float(bits) : machine::half_to_float(bits); };
  std::vector<float> d(size_t{shape.m} * shape.n);
  for (uint32_t m = 0; m < shape.m; ++m) {
    for (uint32_t n = 0; n < shape.n; ++n) {
      float sum = 0;
      for (uint32_t k = 0; k < shape.k; ++k) sum += value(a[m * shape.k + k]) * value(b[n * shape.k + k]);
      d[m * shape.n + n] = sum;
    }
  }
  EXPECT_EQ(verify_product(shape, a, b, d, 5), "");
  for (const size_t at : {size_t{0}, d.size() / 2, d.size() - 1}) {
    for (const float wrong : {d[at] + 1.0F / 64, std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> bad = d;
      bad[at] = wrong;
      EXPECT_EQ(verify_product(shape, a, b, bad, 5),
                "row " + std::to_string(at / shape.n) + " of the product is wrong");
    }
  }
  std::vector<float> exchanged = d;
  std::swap(exchanged[3], exchanged[4]);
  ASSERT_NE(d[3], d[4]);
  EXPECT_NE(verify_product(shape, a, b, exchanged, 5), "");
}

INSTANTIATE_TEST_SUITE_P(Types, ProductTest, testing::Values(MatmulShape::Type::Bf16, MatmulShape::Type::F16));

// The launches that a GPU would get, on the emulator: parameters, maps, shared memory and the verification fit the
// solutions as they are.
TEST(GemmKernels, MultiplyOnTheEmulator) {
  const harness::Toolchain toolchain = harness::find_toolchain();
  if (!toolchain.found()) GTEST_SKIP() << harness::missing_toolchain_message(toolchain);
  const std::vector<harness::ExerciseInfo> exercises = course();
  const std::unique_ptr<device::Device> emulator = device::make_emulated_device();
  for (const GemmKernel& kernel : gemm_kernels()) {
    const auto exercise = std::find_if(exercises.begin(), exercises.end(),
                                       [&](const harness::ExerciseInfo& e) { return e.id == kernel.exercise; });
    ASSERT_NE(exercise, exercises.end()) << kernel.exercise;
    for (const MatmulShape::Type type : {MatmulShape::Type::Bf16, MatmulShape::Type::F16}) {
      const CertifyResult result = certify_gemm(*emulator, toolchain, *exercise, kernel, {128, 256, 192, type}, 3);
      EXPECT_EQ(result.outcome, CertifyOutcome::Passed) << kernel.exercise << ": " << result.message;
      EXPECT_EQ(result.record.at("stages"), kernel.stages);
      EXPECT_GE(result.record.at("seconds").size(), 3U);
      EXPECT_TRUE(result.record.contains("cublaslt"));
    }
  }
}

TEST(GemmKernels, AFailureIsTold) {
  const harness::Toolchain toolchain = harness::find_toolchain();
  if (!toolchain.found()) GTEST_SKIP() << harness::missing_toolchain_message(toolchain);
  const std::vector<harness::ExerciseInfo> exercises = course();
  const auto exercise =
      std::find_if(exercises.begin(), exercises.end(), [](const harness::ExerciseInfo& e) { return e.id == "11a"; });
  ASSERT_NE(exercise, exercises.end());
  const std::unique_ptr<device::Device> emulator = device::make_emulated_device();
  // Without the memory of its one stage the kernel writes outside of what it has.
  const CertifyResult result =
      certify_gemm(*emulator, toolchain, *exercise, {"11a", 128, 0}, {128, 128, 64, MatmulShape::Type::Bf16}, 3);
  EXPECT_EQ(result.outcome, CertifyOutcome::Failed);
  EXPECT_NE(result.message, "");
}

}  // namespace
}  // namespace handoff::cli
