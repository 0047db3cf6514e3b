#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "grader/conformance/case.h"
#include "grader/conformance/compile.h"
#include "grader/conformance/inputs.h"
#include "grader/conformance/map_text.h"
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

/// Grid, block and cluster, x to z.
std::vector<uint32_t> extents(const Case& c) {
  std::vector<uint32_t> all;
  for (const device::Dim3& d : {c.grid, c.block, c.cluster}) all.insert(all.end(), {d.x, d.y, d.z});
  return all;
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
  EXPECT_THAT(extents(c), ElementsAre(4, 1, 1, 64, 1, 1, 2, 1, 1));
  EXPECT_EQ(c.out_words, 12U);
  EXPECT_EQ(c.dynamic_smem, 1024U);
  EXPECT_EQ(c.source, "PTX §9.7.1.1");
  EXPECT_EQ(c.undefined, "the sign of NaN");
  EXPECT_THAT(c.diagnostics, ElementsAre("stale-parity"));
}

TEST(ParseCase, ReadsAFault) {
  EXPECT_EQ(case_of(std::string(kHead) + "// fault: bad-copy\n").fault, "bad-copy");
  EXPECT_THAT(problem_of(std::string(kHead) + "// fault: a\n// fault: b\n"), HasSubstr("5: fault: a second time"));
  EXPECT_THAT(problem_of(std::string(kHead) + "// fault: a\n// undefined: b\n"), HasSubstr("must either fault"));
}

TEST(ParseCase, HasDefaults) {
  const Case c = case_of(kHead);
  EXPECT_THAT(extents(c), ElementsAre(1, 1, 1, 32, 1, 1, 1, 1, 1));
  EXPECT_EQ(c.out_words, 4U);
  EXPECT_EQ(c.dynamic_smem, 0U);
  EXPECT_THAT(c.maps, IsEmpty());
  EXPECT_THAT(c.undefined, IsEmpty());
  EXPECT_THAT(c.diagnostics, IsEmpty());
  EXPECT_EQ(c.fault, "");
}

TEST(ParseCase, ReadsExtentsOfThreeDimensions) {
  const Case c = case_of("// t\n// run: --grid 4x6x2 --cluster 2x3 --block 8x4 --out 1\n// source: s\n");
  EXPECT_THAT(extents(c), ElementsAre(4, 6, 2, 8, 4, 1, 2, 3, 1));
}

TEST(ParseCase, ReadsTensorMaps) {
  const Case c = case_of(
      "// t\n// run: --out 1\n// tensor-map: type=u8 dims=64 box=16\n"
      "// tensor-map: type=bf16 dims=64x16 strides=128 box=64x8 base=out+32\n// source: s\n");
  ASSERT_EQ(c.maps.size(), 2U);
  EXPECT_EQ(c.maps[0].args.tensor_rank, 1U);
  EXPECT_EQ(c.maps[1].args.tensor_rank, 2U);
  EXPECT_THAT(problem_of("// t\n// run: --out 1\n// tensor-map: dims=64\n"), HasSubstr("3: tensor-map: needs type="));
}

TEST(ParseCase, NamesTheLineThatIsWrong) {
  EXPECT_THAT(problem_of("int x;\n"), HasSubstr("1: the first line must say"));
  EXPECT_THAT(problem_of("// x\n// source: PTX\n"), HasSubstr("no line '// run:"));
  EXPECT_THAT(problem_of("// x\n// run: --out 1\n"), HasSubstr("no line '// source:"));
  EXPECT_THAT(problem_of("// x\n// run: --grid 1\n"), HasSubstr("2: run: needs --out"));
  EXPECT_THAT(problem_of("// x\n// run: --out 1 --gird 2\n"), HasSubstr("got '--gird'"));
  EXPECT_THAT(problem_of("// x\n// run: --out 0\n"), HasSubstr("2: run: --out takes a whole number from 1"));
  EXPECT_THAT(problem_of("// x\n// run: --out\n"), HasSubstr("got ''"));
  EXPECT_THAT(problem_of("// x\n// run: --out 1 --block 1025\n"), HasSubstr("together 1 to 1024, got '1025'"));
  EXPECT_THAT(problem_of("// x\n// run: --out 1 --block 64x32\n"), HasSubstr("got '64x32'"));
  EXPECT_THAT(problem_of("// x\n// run: --out 1 --grid 2x0\n"), HasSubstr("got '2x0'"));
  EXPECT_THAT(problem_of("// x\n// run: --out 1 --grid 2x\n"), HasSubstr("got '2x'"));
  EXPECT_THAT(problem_of("// x\n// run: --out 1 --grid 1x1x1x1\n"), HasSubstr("got '1x1x1x1'"));
  EXPECT_THAT(problem_of("// x\n// run: --out 1 --grid 4x2 --cluster 1x4\n"), HasSubstr("not a multiple"));
  EXPECT_THAT(problem_of("// x\n// run: --out 1 --cluster 2\n"), HasSubstr("not a multiple"));
  EXPECT_THAT(problem_of("// x\n// run: --out 1\n// run: --out 1\n"), HasSubstr("3: run: a second time"));
  EXPECT_THAT(problem_of("// x\n// undefined:\n"), HasSubstr("2: undefined: says nothing"));
}

TEST(ParseCase, FingerprintFollowsCodeAndLaunchOnly) {
  const std::string head = kHead;
  const std::string plain = case_of(head + "int x;\nint y;\n").fingerprint;
  EXPECT_EQ(case_of(head + "// a comment\n\n  int x;\n// another\nint y;\n").fingerprint, plain);
  EXPECT_EQ(case_of(head + "// fault: bad-copy\nint x;\nint y;\n").fingerprint, plain);
  EXPECT_NE(case_of(head + "int x;\nint z;\n").fingerprint, plain);
  EXPECT_NE(case_of("// t\n// run: --out 5\n// source: s\nint x;\nint y;\n").fingerprint, plain);
  EXPECT_NE(case_of("// t\n// run: --out 4 --block 33\n// source: s\nint x;\nint y;\n").fingerprint, plain);
  EXPECT_NE(case_of(head + "// tensor-map: type=u8 dims=64 box=16\nint x;\nint y;\n").fingerprint, plain);
}

TEST(ParseMap, ReadsEveryField) {
  MapSpec map;
  ASSERT_EQ(parse_map("type=tf32.ftz dims=64x2^32-1x5 strides=256x2^40+16 box=8x4x2 element-strides=1x2x3  base=out+48 "
                      "interleave=16B swizzle=128B.atom32 promotion=256B oob=nan",
                      &map),
            "");
  EXPECT_EQ(map.base, MapSpec::Base::Output);
  const device::TensorMapArgs& a = map.args;
  EXPECT_EQ(a.global_address, 48U);
  EXPECT_EQ(a.tensor_data_type, device::TensorDataType::Tfloat32Ftz);
  EXPECT_EQ(a.tensor_rank, 3U);
  EXPECT_THAT(a.global_dim, ElementsAre(64, 0xffffffff, 5, 0, 0));
  EXPECT_THAT(a.global_strides, ElementsAre(256, (uint64_t{1} << 40) + 16, 0, 0));
  EXPECT_THAT(a.box_dim, ElementsAre(8, 4, 2, 0, 0));
  EXPECT_THAT(a.element_strides, ElementsAre(1, 2, 3, 1, 1));
  EXPECT_EQ(a.interleave, device::TensorInterleave::B16);
  EXPECT_EQ(a.swizzle, device::TensorSwizzle::B128Atom32B);
  EXPECT_EQ(a.l2_promotion, device::TensorL2Promotion::L2_256B);
  EXPECT_EQ(a.oob_fill, device::TensorOobFill::NanRequestZeroFma);
}

TEST(ParseMap, HasDefaultsAndTakesNumbers) {
  MapSpec map;
  ASSERT_EQ(parse_map("type=16 dims=64 box=16 swizzle=7 rank=0 base=4096", &map), "");
  EXPECT_EQ(map.base, MapSpec::Base::Absolute);
  EXPECT_EQ(map.args.global_address, 4096U);
  EXPECT_EQ(static_cast<uint32_t>(map.args.tensor_data_type), 16U);
  EXPECT_EQ(static_cast<uint32_t>(map.args.swizzle), 7U);
  EXPECT_EQ(map.args.tensor_rank, 0U);
  EXPECT_EQ(map.args.interleave, device::TensorInterleave::None);
  EXPECT_EQ(map.args.oob_fill, device::TensorOobFill::None);
}

TEST(ParseMap, SaysWhatIsWrong) {
  const auto problem = [](const std::string& text) {
    MapSpec map;
    return parse_map(text, &map);
  };
  EXPECT_THAT(problem("type=u8 dims=64 box"), HasSubstr("got 'box'"));
  EXPECT_THAT(problem("type=u8 dims=64 boxes=4"), HasSubstr("got 'boxes=4'"));
  EXPECT_THAT(problem("type=u8 dims=64 dims=64 box=16"), HasSubstr("dims: a second time"));
  EXPECT_THAT(problem("type=u8 dims=64"), HasSubstr("needs box="));
  EXPECT_THAT(problem("type=u9 dims=64 box=16"), HasSubstr("type=u9: is not"));
  for (const char* dims : {"64x", "x64", "64y64", "-1", "2^64", "2^", "1x1x1x1x1x1", "18446744073709551616"})
    EXPECT_THAT(problem(std::string("type=u8 box=16 dims=") + dims), HasSubstr("is not what this field takes")) << dims;
  EXPECT_THAT(problem("type=u8 dims=64 box=2^32"), HasSubstr("box=2^32: is not"));
  EXPECT_THAT(problem("type=u8 dims=64 box=16 base=in-16"), HasSubstr("base=in-16: is not"));
  EXPECT_THAT(problem("type=u8 dims=64x8 box=16 strides=64"), HasSubstr("box has 1 dimensions, dims 2"));
  EXPECT_THAT(problem("type=u8 dims=64x8 box=16x8"), HasSubstr("strides has 0 entries: 2 dimensions need 1"));
  EXPECT_THAT(problem("type=u8 dims=64x8 box=16x8 strides=64 element-strides=1"), HasSubstr("element-strides has 1"));
}

TEST(ParseEncodeCases, ReadsLines) {
  const std::vector<Case> cases = parse_encode_cases(
      "cases.txt",
      "# about\n\nfirst: type=u8 dims=64 box=16\nsecond: type=u8 dims=64 box=17 ; undefined: it depends\n");
  ASSERT_EQ(cases.size(), 2U);
  EXPECT_EQ(cases[0].name, "encode/first");
  EXPECT_TRUE(cases[0].encodes);
  EXPECT_EQ(cases[0].out_words, 1U);
  EXPECT_EQ(cases[0].undefined, "");
  EXPECT_EQ(cases[0].maps.at(0).args.box_dim[0], 16U);
  EXPECT_EQ(cases[1].undefined, "it depends");
  EXPECT_EQ(cases[1].head_problem, "");
  EXPECT_NE(cases[0].fingerprint, cases[1].fingerprint);
}

TEST(ParseEncodeCases, NamesTheLineThatIsWrong) {
  const std::vector<Case> cases = parse_encode_cases("cases.txt",
                                                     "# about\nno fields\na: type=u8\nb c: type=u8 dims=64 box=16\nd: "
                                                     "type=u8 dims=64 box=16\nd: type=u8 dims=64 box=16\n"
                                                     "e: type=u8 dims=64 box=16 ; undefined:\n");
  std::vector<std::string> problems;
  for (const Case& c : cases) problems.push_back(c.head_problem);
  EXPECT_THAT(problems,
              ElementsAre("cases.txt:2: takes NAME: FIELDS",
                          "cases.txt:3: needs dims=", "cases.txt:4: a name has no blanks or slashes", "",
                          "cases.txt:6: the name stands here a second time", "cases.txt:7: undefined: says nothing"));
}

TEST(CombinedSource, KeepsFilesApart) {
  EXPECT_EQ(combined_source({{"a.cu", "// t\n#include <cstdint>\n#define F(x) x\nvoid conformance();\n"},
                             {"b.cu", "#include <cstdint>\n#include <cuda.h>\nint y;\n"}}),
            "#include <cstdint>\n#include <cuda.h>\n"
            "namespace case_0 {\n#define conformance conformance_0\n#line 1 \"a.cu\"\n"
            "// t\n\n#define F(x) x\nvoid conformance();\n#undef F\n#undef conformance\n}\n"
            "namespace case_1 {\n#define conformance conformance_1\n#line 1 \"b.cu\"\n"
            "\n\nint y;\n#undef conformance\n}\n");
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
  EXPECT_THAT(names, ::testing::IsSupersetOf({"samples/float-minimum", "samples/shift-counts", "encode/rank-1"}));
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
  record.inputs = "123";
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
  EXPECT_EQ(back.inputs, record.inputs);
  ASSERT_EQ(back.cases.size(), 2U);
  EXPECT_EQ(back.cases["a/one"].out, record.cases.at("a/one").out);
  EXPECT_EQ(back.cases["a/one"].fingerprint, "abc");
  EXPECT_EQ(back.cases["b/two"].out, record.cases.at("b/two").out);
  EXPECT_EQ(to_json(back), to_json(record));
}

/// `count` words, 0 and up.
std::vector<uint32_t> counted(size_t count) {
  std::vector<uint32_t> words(count);
  for (size_t i = 0; i < count; ++i) words[i] = static_cast<uint32_t>(i);
  return words;
}

TEST(RecordJson, KeepsFaults) {
  Record record = record_of_two(), back;
  record.cases["c/three"] = {{}, "ghi", /*fault=*/true};
  ASSERT_EQ(from_json(to_json(record), &back), "");
  EXPECT_TRUE(back.cases["c/three"].fault);
  EXPECT_EQ(back.cases["c/three"].fingerprint, "ghi");
  EXPECT_FALSE(back.cases["a/one"].fault);
  EXPECT_EQ(to_json(back), to_json(record));
}

TEST(RecordJson, KeepsTheBeginningAndAHashOfLongAnswers) {
  Record record = record_of_two(), back;
  record.cases["a/one"].out = counted(kMaxWholeWords);
  record.cases["b/two"].out = counted(kMaxWholeWords + 1);
  ASSERT_EQ(from_json(to_json(record), &back), "");
  EXPECT_EQ(back.cases["a/one"].out, counted(kMaxWholeWords));
  EXPECT_EQ(back.cases["a/one"].hash, "");
  const Answer& shortened = back.cases["b/two"];
  EXPECT_EQ(shortened.out, counted(kFirstWords));
  EXPECT_EQ(shortened.words, kMaxWholeWords + 1);
  EXPECT_EQ(shortened.hash, hash_words(counted(kMaxWholeWords + 1)));
  EXPECT_NE(shortened.hash, hash_words(counted(kMaxWholeWords + 2)));
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
  wrong = good;
  wrong.insert(wrong.find("}", wrong.find("a/one")), ",\"hash\":\"123\"");
  EXPECT_THAT(from_json(wrong, &back), HasSubstr("a/one: has a hash, and 3 of 3 words"));
  wrong = good;
  wrong.insert(wrong.find("}", wrong.find("a/one")), ",\"fault\":false");
  EXPECT_THAT(from_json(wrong, &back), HasSubstr("a/one: \"fault\" is false"));
  wrong = good;
  wrong.replace(wrong.find("inputs"), 6, "output");
  EXPECT_THAT(from_json(wrong, &back), HasSubstr("inputs"));
}

Outcome outcome_of(std::vector<uint32_t> out) {
  Outcome outcome;
  outcome.out = std::move(out);
  return outcome;
}

Outcome fault() {
  Outcome outcome;
  outcome.faulted = true;
  return outcome;
}

TEST(CompareAnswers, ShowsTheFirstThreeWords) {
  Case c;
  c.fingerprint = "abc";
  const Answer recorded = {{0, 1, 2, 3, 4, 5}, "abc"};
  EXPECT_EQ(compare_answers(c, outcome_of(recorded.out), "emulator", recorded, "GPU").difference, "");
  const Comparison found = compare_answers(c, outcome_of({0, 9, 9, 3, 9, 9}), "emulator", recorded, "GPU");
  EXPECT_EQ(found.problem, "");
  EXPECT_EQ(found.difference, "4 of 6 words differ");
  EXPECT_THAT(found.lines,
              ElementsAre("out[1]: emulator 0x00000009, GPU 0x00000001", "out[2]: emulator 0x00000009, GPU 0x00000002",
                          "out[4]: emulator 0x00000009, GPU 0x00000004"));
}

TEST(CompareAnswers, ComparesLongAnswersByTheirHash) {
  Case c;
  c.fingerprint = "abc";
  std::vector<uint32_t> words = counted(600);
  const Answer recorded = {counted(kFirstWords), "abc", false, hash_words(words), words.size()};
  EXPECT_EQ(compare_answers(c, outcome_of(words), "emulator", recorded, "GPU").difference, "");
  words[599] = 0;
  EXPECT_EQ(compare_answers(c, outcome_of(words), "emulator", recorded, "GPU").difference,
            "the hashes of 600 words differ, and 0 of the first 16 words, which alone are recorded");
  words[2] = 9;
  const Comparison found = compare_answers(c, outcome_of(words), "emulator", recorded, "GPU");
  EXPECT_THAT(found.difference, HasSubstr("and 1 of the first 16"));
  EXPECT_THAT(found.lines, ElementsAre("out[2]: emulator 0x00000009, GPU 0x00000002"));
  words.resize(16);
  EXPECT_THAT(compare_answers(c, outcome_of(words), "emulator", recorded, "GPU").problem, HasSubstr("record it again"));
}

TEST(CompareAnswers, ComparesFaults) {
  Case c;
  c.fingerprint = "abc";
  const Answer faulted = {{}, "abc", /*fault=*/true}, ended = {{1}, "abc"};
  EXPECT_EQ(compare_answers(c, fault(), "emulator", faulted, "GPU").difference, "");
  EXPECT_EQ(compare_answers(c, fault(), "emulator", ended, "GPU").difference,
            "a fault stopped the launch of emulator, and that of GPU ended by itself");
  EXPECT_EQ(compare_answers(c, outcome_of({1}), "emulator", faulted, "GPU").difference,
            "a fault stopped the launch of GPU, and that of emulator ended by itself");
}

TEST(CompareAnswers, RefusesAnAnswerOfAnotherKernel) {
  Case c;
  c.fingerprint = "abc";
  const Outcome one = outcome_of({1});
  EXPECT_THAT(compare_answers(c, one, "emulator", {{1}, "abd"}, "GPU").problem, HasSubstr("record it again"));
  EXPECT_THAT(compare_answers(c, one, "emulator", {{1, 2}, "abc"}, "GPU").problem, HasSubstr("record it again"));
  EXPECT_THAT(compare_answers(c, one, "emulator", {{}, "abd", true}, "GPU").problem, HasSubstr("record it again"));
}

// --- run_case, on PTX written here -----------------------------------------------------------------------------------

/// `parameters` follow the two that every kernel has.
Code kernel(const std::string& body, const std::string& name = "conformance", const std::string& parameters = "") {
  auto compiled = std::make_shared<harness::CompileResult>();
  compiled->ok = true;
  compiled->ptx =
      ".version 9.0\n.target sm_100a\n.address_size 64\n"
      ".visible .entry " +
      name + "(.param .u64 p0, .param .u64 p1" + parameters +
      ") {\n"
      "  .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .pred %p<4>; .shared .align 128 .b8 shared[256];\n"
      "  ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1];\n" +
      body + "\n  ret;\n}\n";
  return {compiled, "conformance"};
}

/// A device whose answer counts the launches.
class Fickle : public device::Device {
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
    device::LaunchResult result;
    result.status = ends;
    return result;
  }
  int launches = 0, fickle_from = 99;
  device::LaunchResult::Status ends = device::LaunchResult::Status::Ok;
};

Outcome run_on_emulator(const std::string& body, std::vector<std::string> diagnostics = {},
                        const std::string& fault = "") {
  Case c;
  c.name = "family/name";
  c.file = "name.cu";
  c.block.x = 64;
  c.out_words = 3;
  c.diagnostics = std::move(diagnostics);
  c.fault = fault;
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
  const Outcome outcome = run_on_emulator("st.global.u32 [%rd2+4096], 1;");
  EXPECT_THAT(outcome.problem, HasSubstr("nominal: fault: "));
  EXPECT_TRUE(outcome.crashed);
  EXPECT_TRUE(outcome.faulted);
  EXPECT_FALSE(run_on_emulator(kRace).crashed);
}

TEST(RunCase, WantsTheFaultThatTheHeadNames) {
  const Outcome outcome = run_on_emulator("st.global.u32 [%rd2+4096], 1;", {}, "out-of-bounds");
  EXPECT_EQ(outcome.problem, "");
  EXPECT_TRUE(outcome.faulted);
  EXPECT_FALSE(outcome.crashed);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_EQ(run_on_emulator("st.global.u32 [%rd2+4096], 1;", {}, "misaligned").problem,
            "nominal: the head says 'fault: misaligned', and the first diagnostic is 'out-of-bounds'");
  EXPECT_EQ(run_on_emulator(kStoreSecondInput, {}, "misaligned").problem,
            "nominal: the head says 'fault: misaligned', and the launch ended by itself");
}

TEST(RunCase, WantsAFaultOfAGpuOnce) {
  using Status = device::LaunchResult::Status;
  Case c;
  c.out_words = 2;
  c.fault = "bad-copy";
  for (const Status ends : {Status::Fault, Status::Hang, Status::Ok}) {
    Fickle device;
    device.ends = ends;
    const Outcome outcome = run_case(device, c, kernel(""));
    EXPECT_EQ(outcome.problem.empty(), ends == Status::Fault) << outcome.problem;
    EXPECT_EQ(outcome.faulted, ends == Status::Fault);
    EXPECT_EQ(device.launches, 1);
  }
}

TEST(RunCase, TellsOfAKernelThatIsNotThere) {
  Case c;
  c.out_words = 1;
  EXPECT_THAT(run_case(*device::make_emulated_device(), c, kernel("", "another")).problem,
              HasSubstr("no kernel named conformance; the module has another"));
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

/// A device whose encoder says what it is told to.
class Encoder final : public Fickle {
 public:
  explicit Encoder(std::string said) : said_(std::move(said)) {}
  device::Error encode_tensor_map(const device::TensorMapArgs& args, std::array<std::byte, 128>*) override {
    asked = args;
    return {said_};
  }
  device::TensorMapArgs asked;

 private:
  std::string said_;
};

Case encode_case(const std::string& fields) { return parse_encode_cases("cases.txt", "name: " + fields + "\n").at(0); }

TEST(RunCase, PassesMapsAfterTheBuffers) {
  Case c;
  c.file = "name.cu";
  c.block = {1, 1, 1};
  c.out_words = 8;
  ASSERT_EQ(parse_map("type=u32 dims=8x4 strides=32 box=4x1 base=in+128", &c.maps.emplace_back()), "");
  ASSERT_EQ(parse_map("type=u32 dims=8 box=4 base=out", &c.maps.emplace_back()), "");
  const Code code = kernel(
      "  mov.u32 %r1, shared; mov.b64 %rd3, p2; cvta.param.u64 %rd3, %rd3; mov.b64 %rd4, p3; cvta.param.u64 %rd4, "
      "%rd4;\n"
      "  add.u32 %r2, %r1, 128; mbarrier.init.shared.b64 [%r2], 1;\n"
      "  mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 16;\n"
      "  mov.u32 %r3, 4; mov.u32 %r4, 1;\n"
      "  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd3, {%r3, %r4}], "
      "[%r2];\n"
      "again: mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0; @!%p1 bra again;\n"
      "  cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%rd4, {%r3}], [%r1];\n"
      "  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n",
      "conformance", ", .param .align 64 .b8 p2[128], .param .align 64 .b8 p3[128]");
  const Outcome outcome = run_case(*device::make_emulated_device(), c, code);
  EXPECT_EQ(outcome.problem, "");
  const std::vector<uint32_t> in = input_words();
  const size_t at = 128 / 4 + 8 + 4;  // the base, a row, four elements
  EXPECT_THAT(outcome.out,
              ElementsAre(0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, in[at], in[at + 1], in[at + 2], in[at + 3]));
}

TEST(RunCase, TellsOfAMapThatIsRefused) {
  Case c;
  c.out_words = 1;
  ASSERT_EQ(parse_map("type=u8 dims=64 box=17", &c.maps.emplace_back()), "");
  EXPECT_THAT(run_case(*device::make_emulated_device(), c, kernel("")).problem, HasSubstr("boxDim[0] is 17"));
}

TEST(RunCase, AsksTheEncoder) {
  const std::unique_ptr<device::Device> emulator = device::make_emulated_device();
  EXPECT_THAT(run_case(*emulator, encode_case("type=u8 dims=64 box=16 base=in+16"), {}).out, ElementsAre(1));
  const Outcome refused = run_case(*emulator, encode_case("type=u8 dims=64 box=17"), {});
  EXPECT_EQ(refused.problem, "");
  EXPECT_THAT(refused.out, ElementsAre(0));
  EXPECT_THAT(refused.detail, HasSubstr("boxDim[0] is 17"));

  Encoder accepts(""), refuses("cuTensorMapEncodeTiled: CUDA_ERROR_INVALID_VALUE"), gone("the GPU was restarted");
  const Case c = encode_case("type=u8 dims=64 box=16 base=in+16");
  EXPECT_THAT(run_case(accepts, c, {}).out, ElementsAre(1));
  EXPECT_EQ(accepts.asked.global_address, 512U + 16);
  EXPECT_THAT(run_case(refuses, c, {}).out, ElementsAre(0));
  EXPECT_EQ(run_case(refuses, c, {}).problem, "");
  EXPECT_EQ(run_case(gone, c, {}).problem, "the GPU was restarted");
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
