#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "grader/conformance/case.h"
#include "grader/conformance/inputs.h"
#include "grader/conformance/record.h"
#include "grader/conformance/run.h"
#include "grader/harness/catalog.h"

namespace handoff::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kHead =
    "// what is settled\n"
    "// run: --out 4\n"
    "// source: PTX §9.7\n";

Case case_of(const std::string& text) {
  Case c;
  EXPECT_EQ(parse_case(text, &c), "");
  return c;
}

std::string problem_of(const std::string& text) {
  Case c;
  return parse_case(text, &c);
}

TEST(ParseCase, ReadsTheHead) {
  const Case c = case_of(
      "// what is settled: x\n"
      "// more about it\n"
      "// run: --grid 4 --block 64 --cluster 2 --out 12 --smem 1024\n"
      "// source: PTX §9.7.1.1\n"
      "// undefined: the sign\n"
      "// undefined: of NaN\n"
      "// diagnostic: stale-parity\n"
      "int x;  // run: --grid 9\n"
      "// run: --grid 9\n");
  EXPECT_EQ(c.title, "what is settled: x");
  EXPECT_THAT((std::vector<uint32_t>{c.grid, c.block, c.cluster, c.out_words, c.dynamic_smem}),
              ElementsAre(4, 64, 2, 12, 1024));
  EXPECT_EQ(c.source, "PTX §9.7.1.1");
  EXPECT_EQ(c.undefined, "the sign of NaN");
  EXPECT_THAT(c.diagnostics, ElementsAre("stale-parity"));
}

TEST(ParseCase, HasDefaults) {
  const Case c = case_of(kHead);
  EXPECT_THAT((std::vector<uint32_t>{c.grid, c.block, c.cluster, c.out_words, c.dynamic_smem}),
              ElementsAre(1, 32, 1, 4, 0));
  EXPECT_THAT(c.undefined, IsEmpty());
  EXPECT_THAT(c.diagnostics, IsEmpty());
}

TEST(ParseCase, NamesTheLineThatIsWrong) {
  EXPECT_THAT(problem_of("int x;\n"), HasSubstr("1: the first line must say"));
  EXPECT_THAT(problem_of("// x\n// source: PTX\n"), HasSubstr("no line '// run:"));
  EXPECT_THAT(problem_of("// x\n// run: --out 1\n"), HasSubstr("no line '// source:"));
  EXPECT_THAT(problem_of("// x\n// run: --grid 1\n"), HasSubstr("2: run: needs --out"));
  EXPECT_THAT(problem_of("// x\n// run: --out 1 --gird 2\n"), HasSubstr("got '--gird'"));
  EXPECT_THAT(problem_of("// x\n// run: --out 0\n"), HasSubstr("2: run: --out takes a whole number from 1"));
  EXPECT_THAT(problem_of("// x\n// run: --out\n"), HasSubstr("got ''"));
  EXPECT_THAT(problem_of("// x\n// run: --out 1 --block 1025\n"), HasSubstr("from 1 to 1024, got '1025'"));
  EXPECT_THAT(problem_of("// x\n// run: --out 1 --cluster 2\n"), HasSubstr("not a multiple"));
  EXPECT_THAT(problem_of("// x\n// run: --out 1\n// run: --out 1\n"), HasSubstr("3: run: a second time"));
  EXPECT_THAT(problem_of("// x\n// undefined:\n"), HasSubstr("2: undefined: says nothing"));
}

TEST(ParseCase, FingerprintFollowsCodeAndLaunchOnly) {
  const std::string head = kHead;
  const std::string plain = case_of(head + "int x;\nint y;\n").fingerprint;
  EXPECT_EQ(case_of(head + "// a comment\n\n  int x;\n// another\nint y;\n").fingerprint, plain);
  EXPECT_NE(case_of(head + "int x;\nint z;\n").fingerprint, plain);
  EXPECT_NE(case_of("// t\n// run: --out 5\n// source: s\nint x;\nint y;\n").fingerprint, plain);
  EXPECT_NE(case_of("// t\n// run: --out 4 --block 33\n// source: s\nint x;\nint y;\n").fingerprint, plain);
}

TEST(FindCases, FindsTheSamplesInOrder) {
  std::vector<Case> cases;
  ASSERT_EQ(find_cases(harness::project_root() / "grader" / "conformance", &cases), "");
  std::vector<std::string> names;
  for (const Case& c : cases) {
    names.push_back(c.name);
    EXPECT_EQ(c.head_problem, "");
  }
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_THAT(names, ::testing::IsSupersetOf({"samples/float-minimum", "samples/shift-counts"}));
}

TEST(FindCases, TellsOfAFolderThatIsNotThere) {
  std::vector<Case> cases;
  EXPECT_THAT(find_cases("/nonexistent", &cases), HasSubstr("/nonexistent: "));
}

TEST(Inputs, AreTheListsAndThenSplitmix64) {
  const std::vector<uint32_t> words = input_words();
  ASSERT_EQ(words.size(), 4096U);
  EXPECT_EQ(words[0], 0x00000000U);
  EXPECT_EQ(words[1], 0x80000000U);
  EXPECT_EQ(words[kIntegerWords + 2], 0xffffffffU);
  EXPECT_EQ(words[kHalfWords + 4], 0xbc003c00U);
  EXPECT_EQ(words[kBfloatWords + 4], 0xbf803f80U);
  // splitmix64 from seed 1 begins with 0x910a2dec89025cc1, 0xbeeb8da1658eec67.
  EXPECT_EQ(words[kRandomWords], 0x89025cc1U);
  EXPECT_EQ(words[kRandomWords + 1], 0x658eec67U);
}

TEST(Inputs, RepeatNoPatternWithinAList) {
  const std::vector<uint32_t> words = input_words();
  for (auto [begin, end] : {std::pair{kFloatWords, kIntegerWords}, std::pair{kIntegerWords, kHalfWords},
                            std::pair{kHalfWords, kBfloatWords}, std::pair{kBfloatWords, kRandomWords}}) {
    for (size_t i = begin; i < end; ++i) {
      for (size_t j = begin; j < i; ++j) EXPECT_NE(words[i], words[j]) << i << " and " << j;
    }
  }
}

TEST(Words, AreWrittenInRunsAndReadBack) {
  const std::vector<uint32_t> words = {1, 0xffffffff, 0xffffffff, 0xffffffff, 0, 0xdeadbeef};
  const std::string text = "00000001 ffffffff*3 00000000 deadbeef";
  EXPECT_EQ(encode_words(words), text);
  std::vector<uint32_t> back;
  EXPECT_TRUE(decode_words(text, 6, &back));
  EXPECT_EQ(back, words);
}

TEST(Words, RefuseWhatIsNoList) {
  std::vector<uint32_t> words;
  for (const char* text : {"1", "000000001", "0000000g", "00000000*", "00000000*0", "00000000*-1", "00000000*1x", "*3",
                           "00000000*18446744073709551616", "00000000*7", "00000000*6 00000000"}) {
    EXPECT_FALSE(decode_words(text, 6, &words)) << text;
  }
}

Record record_of_two() {
  Record record;
  record.gpu = "NVIDIA H200";
  record.driver = "CUDA 13.0 (driver 580)";
  record.date = "2026-01-02";
  record.toolkit = "13.0";
  record.cases["a/one"] = {{1, 1, 2}, "abc"};
  record.cases["b/two"] = {{7}, "def"};
  return record;
}

TEST(RecordJson, ComesBackAsItWas) {
  const Record record = record_of_two();
  Record back;
  ASSERT_EQ(from_json(to_json(record), &back), "");
  EXPECT_EQ(back.gpu, record.gpu);
  EXPECT_EQ(back.driver, record.driver);
  EXPECT_EQ(back.date, record.date);
  EXPECT_EQ(back.toolkit, record.toolkit);
  ASSERT_EQ(back.cases.size(), 2U);
  EXPECT_EQ(back.cases["a/one"].out, record.cases.at("a/one").out);
  EXPECT_EQ(back.cases["a/one"].fingerprint, "abc");
  EXPECT_EQ(back.cases["b/two"].out, record.cases.at("b/two").out);
  EXPECT_EQ(to_json(back), to_json(record));
}

TEST(RecordJson, RefusesWhatIsDamaged) {
  Record back;
  const std::string good = to_json(record_of_two());
  EXPECT_THAT(from_json(good.substr(0, good.size() / 2), &back), HasSubstr("is no record of answers"));
  EXPECT_THAT(from_json("{}", &back), HasSubstr("about"));
  std::string wrong = good;
  wrong.replace(wrong.find("\"words\":3"), 9, "\"words\":4");
  EXPECT_THAT(from_json(wrong, &back), HasSubstr("a/one: \"out\" has 3 words, \"words\" says 4"));
}

TEST(CompareAnswers, ShowsTheFirstThreeWords) {
  Case c;
  c.fingerprint = "abc";
  const Answer recorded = {{0, 1, 2, 3, 4, 5}, "abc"};
  EXPECT_EQ(compare_answers(c, recorded.out, "emulator", recorded, "GPU").wrong, 0U);
  const Comparison found = compare_answers(c, {0, 9, 9, 3, 9, 9}, "emulator", recorded, "GPU");
  EXPECT_EQ(found.problem, "");
  EXPECT_EQ(found.wrong, 4U);
  EXPECT_THAT(found.lines,
              ElementsAre("out[1]: emulator 0x00000009, GPU 0x00000001", "out[2]: emulator 0x00000009, GPU 0x00000002",
                          "out[4]: emulator 0x00000009, GPU 0x00000004"));
}

TEST(CompareAnswers, RefusesAnAnswerOfAnotherKernel) {
  Case c;
  c.fingerprint = "abc";
  EXPECT_THAT(compare_answers(c, {1}, "emulator", {{1}, "abd"}, "GPU").problem, HasSubstr("record it again"));
  EXPECT_THAT(compare_answers(c, {1}, "emulator", {{1, 2}, "abc"}, "GPU").problem, HasSubstr("record it again"));
}

// --- run_case, on PTX written here -----------------------------------------------------------------------------------

harness::CompileResult kernel(const std::string& body) {
  harness::CompileResult compiled;
  compiled.ok = true;
  compiled.ptx =
      ".version 9.0\n.target sm_100a\n.address_size 64\n"
      ".visible .entry conformance(.param .u64 p0, .param .u64 p1) {\n"
      "  .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .pred %p<4>; .shared .align 8 .b8 shared[64];\n"
      "  ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1];\n" +
      body + "\n  ret;\n}\n";
  return compiled;
}

/// A device whose answer counts the launches.
class Fickle final : public device::Device {
 public:
  std::string_view kind() const override { return "cuda"; }
  std::string name() const override { return "fickle"; }
  int compute_capability() const override { return 90; }
  bool has_tcgen05() const override { return false; }
  device::Error load(const device::ModuleImage&) override { return {}; }
  device::Error find_kernel(std::string_view, device::KernelInfo*) override { return {}; }
  device::Error allocate(size_t, device::DevicePtr* p) override {
    *p = 512;
    return {};
  }
  device::Error free(device::DevicePtr) override { return {}; }
  device::Error write(device::DevicePtr, std::span<const std::byte>) override { return {}; }
  device::Error read(std::span<std::byte> out, device::DevicePtr) override {
    std::fill(out.begin(), out.end(), std::byte{static_cast<unsigned char>(launches >= fickle_from ? 2 : 1)});
    return {};
  }
  device::Error read_symbol(std::string_view, std::span<std::byte>) override { return {"none"}; }
  device::Error encode_tensor_map(const device::TensorMapArgs&, std::array<std::byte, 128>*) override {
    return {"none"};
  }
  device::LaunchResult launch(std::string_view, const device::LaunchConfig&,
                              std::span<const device::Argument>) override {
    ++launches;
    return {};
  }
  int launches = 0, fickle_from = 99;
};

Outcome run_on_emulator(const std::string& body, std::vector<std::string> diagnostics = {}) {
  Case c;
  c.name = "family/name";
  c.file = "name.cu";
  c.block = 64;
  c.out_words = 3;
  c.diagnostics = std::move(diagnostics);
  const std::unique_ptr<device::Device> device = device::make_emulated_device();
  return run_case(*device, c, kernel(body));
}

constexpr const char* kStoreSecondInput =
    "ld.global.u32 %r1, [%rd1+4]; mov.u32 %r2, %tid.x; setp.ne.u32 %p1, %r2, 0; @%p1 ret; st.global.u32 [%rd2+4], %r1;";
// Two warps write the same word.
constexpr const char* kRace = "mov.u32 %r2, %tid.x; st.shared.u32 [shared], %r2;";

TEST(RunCase, GivesTheInputAndPoisonsTheOutput) {
  const Outcome outcome = run_on_emulator(kStoreSecondInput);
  EXPECT_EQ(outcome.problem, "");
  EXPECT_THAT(outcome.out, ElementsAre(0xffffffff, 0x80000000, 0xffffffff));
}

TEST(RunCase, RunsNothingWhereTheHeadIsWrong) {
  Case c;
  c.head_problem = "name.cu:2: run: needs --out WORDS";
  Fickle device;
  EXPECT_EQ(run_case(device, c, kernel("")).problem, c.head_problem);
  EXPECT_EQ(device.launches, 0);
}

TEST(RunCase, TellsOfAFault) {
  EXPECT_THAT(run_on_emulator("st.global.u32 [%rd2+4096], 1;").problem, HasSubstr("nominal: fault: "));
}

TEST(RunCase, TellsOfAKernelThatIsNotThere) {
  harness::CompileResult compiled = kernel("");
  compiled.ptx.replace(compiled.ptx.find("conformance"), 11, "conformanze");
  Case c;
  c.out_words = 1;
  EXPECT_THAT(run_case(*device::make_emulated_device(), c, compiled).problem, HasSubstr("no kernel named conformance"));
}

TEST(RunCase, WantsTheDiagnosticsThatTheHeadNames) {
  const Outcome plain = run_on_emulator(kRace);
  ASSERT_FALSE(plain.diagnostics.empty());
  const std::string found = plain.diagnostics.front().id;
  EXPECT_THAT(plain.problem, HasSubstr("error[" + found + "]"));
  std::vector<std::string> all;
  for (const Diagnostic& d : plain.diagnostics) all.push_back(d.id);
  EXPECT_EQ(run_on_emulator(kRace, all).problem, "");
  EXPECT_THAT(run_on_emulator(kStoreSecondInput, {found}).problem, HasSubstr("no launch reported it"));
}

TEST(RunCase, ComparesTheLaunchesOfAGpu) {
  Case c;
  c.out_words = 2;
  Fickle steady;
  EXPECT_EQ(run_case(steady, c, kernel("")).problem, "");
  EXPECT_EQ(steady.launches, 3);
  Fickle fickle;
  fickle.fickle_from = 3;
  EXPECT_EQ(run_case(fickle, c, kernel("")).problem,
            "is not deterministic: out[0] was 0x01010101, then 0x02020202 (launch 3)");
}

}  // namespace
}  // namespace handoff::conformance
