#include "grader/harness/exercise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "grader/harness/session.h"

namespace handoff::harness {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

template <class T>
std::vector<std::byte> bytes(const std::vector<T>& v) {
  std::vector<std::byte> b(v.size() * sizeof(T));
  std::memcpy(b.data(), v.data(), b.size());
  return b;
}

/// What an output buffer holds where nobody has written.
std::vector<std::byte> untouched(size_t size) { return std::vector<std::byte>(size, std::byte{0xff}); }

/// compare() for a case with one output.
template <class T>
Comparison compare_one(const std::vector<T>& expected, const std::vector<T>& got, double tolerance = 0) {
  return compare(Case("c").out("out", expected, tolerance), {bytes(got)});
}

TEST(Compare, EqualBuffersAreRight) {
  const Case c = Case("c")
                     .in("in", std::vector<float>{1, 2})
                     .value("n", 2)
                     .out("a", std::vector<float>{3, 4, 5})
                     .out("b", std::vector<int32_t>{-1});
  const Comparison all = compare(c, {bytes<float>({1, 2}), bytes<float>({3, 4, 5}), bytes<int32_t>({-1})});
  EXPECT_TRUE(all.right());
  EXPECT_EQ(all.total, 4U);
  EXPECT_EQ(all.first, "");
}

TEST(Compare, CountsTheWrongOnesAndShowsThree) {
  const Comparison c = compare_one<float>({1, 2, 3, 4, 5, 6}, {1, 0, 0, 4, -0.5F, 7});
  EXPECT_FALSE(c.right());
  EXPECT_EQ(c.wrong, 4U);
  EXPECT_EQ(c.total, 6U);
  EXPECT_EQ(c.first, "out[1]: got 0, expected 2; out[2]: got 0, expected 3; out[4]: got -0.5, expected 5");
}

TEST(Compare, ThreeElementsInAllNotForEachOutput) {
  const Case c = Case("c").out("a", std::vector<int32_t>{1, 2}).out("b", std::vector<int32_t>{3, 4});
  EXPECT_EQ(compare(c, {bytes<int32_t>({0, 0}), bytes<int32_t>({0, 0})}).first,
            "a[0]: got 0, expected 1; a[1]: got 0, expected 2; b[0]: got 0, expected 3");
}

TEST(Compare, AnUnwrittenElementIsPoison) {
  EXPECT_EQ(compare(Case("c").out("out", std::vector<float>{7.25F}), {untouched(4)}).first,
            "out[0]: got poison, expected 7.25");
  EXPECT_EQ(compare(Case("c").out("out", std::vector<double>{7.25}), {untouched(8)}).first,
            "out[0]: got poison, expected 7.25");
  EXPECT_EQ(compare(Case("c").out("out", std::vector<uint32_t>{7}), {untouched(4)}).first,
            "out[0]: got poison, expected 7");
}

TEST(Compare, MinusOneIsAnHonestInteger) {
  EXPECT_EQ(compare(Case("c").out("out", std::vector<int32_t>{7}), {untouched(4)}).first, "out[0]: got -1, expected 7");
}

TEST(Compare, AnExpectedValueIsNeverCalledPoison) {
  EXPECT_EQ(compare_one<uint32_t>({0xffffffffU}, {1}).first, "out[0]: got 1, expected 4294967295");
  EXPECT_EQ(compare_one<uint8_t>({255}, {1}).first, "out[0]: got 1, expected 255");
}

TEST(Compare, NanEqualsNanButPoisonDoesNot) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(compare_one<float>({nan}, {-nan}).right());
  EXPECT_TRUE(compare_one<float>({nan}, {nan}, 1e-3).right());
  EXPECT_EQ(compare_one<float>({nan}, {1}).wrong, 1U);
  EXPECT_EQ(compare_one<float>({1}, {nan}).wrong, 1U);
  EXPECT_EQ(compare(Case("c").out("out", std::vector<float>{nan}), {untouched(4)}).wrong, 1U);
}

TEST(Compare, ToleranceIsRelativeAboveOne) {
  EXPECT_TRUE(compare_one<float>({1000}, {1000.9F}, 1e-3).right());
  EXPECT_FALSE(compare_one<float>({1000}, {1001.1F}, 1e-3).right());
  EXPECT_TRUE(compare_one<double>({-1000}, {-1000.9}, 1e-3).right());
  EXPECT_TRUE(compare_one<float>({0}, {0.0009F}, 1e-3).right());
  EXPECT_FALSE(compare_one<float>({0}, {0.0011F}, 1e-3).right());
  EXPECT_FALSE(compare_one<float>({1000}, {1000.0001F}).right());
}

TEST(Compare, AnInfinityIsEqualToItselfOnly) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const double tolerance : {0.0, 1e-3}) {
    EXPECT_TRUE(compare_one<float>({inf}, {inf}, tolerance).right());
    EXPECT_FALSE(compare_one<float>({inf}, {-inf}, tolerance).right());
    EXPECT_FALSE(compare_one<float>({inf}, {5}, tolerance).right());
    EXPECT_FALSE(compare_one<float>({5}, {inf}, tolerance).right());
  }
}

TEST(Compare, AChangedInputIsNotRight) {
  const Case c =
      Case("c").in("a", std::vector<float>{1, 2}).in("b", std::vector<float>{3}).out("out", std::vector<float>{4});
  const Comparison changed = compare(c, {bytes<float>({1, 2}), bytes<float>({-0.0F}), bytes<float>({4})});
  EXPECT_EQ(changed.wrong, 0U);
  EXPECT_EQ(changed.changed_input, "b");
  EXPECT_FALSE(changed.right());
}

TEST(SchedulesFor, AllAreTheFourFixedOnesAndFourSeeds) {
  const std::vector<machine::Schedule> all = schedules_for({});
  std::vector<std::string> names;
  for (const machine::Schedule& s : all) names.push_back(machine::to_string(s));
  EXPECT_THAT(names, ElementsAre("nominal", "lazy", "eager", "reverse", "random (seed 1)", "random (seed 2)",
                                 "random (seed 3)", "random (seed 4)"));
}

TEST(SchedulesFor, ASeedMovesTheRandomOnes) {
  GradeOptions options;
  options.seed = 40;
  const std::vector<machine::Schedule> all = schedules_for(options);
  ASSERT_EQ(all.size(), 8U);
  EXPECT_EQ(machine::to_string(all[4]), "random (seed 40)");
  EXPECT_EQ(machine::to_string(all[7]), "random (seed 43)");
}

TEST(SchedulesFor, OneScheduleIsOne) {
  GradeOptions options;
  options.schedule = "reverse";
  ASSERT_EQ(schedules_for(options).size(), 1U);
  EXPECT_EQ(machine::to_string(schedules_for(options)[0]), "reverse");
  options.schedule = "random";
  ASSERT_EQ(schedules_for(options).size(), 1U);
  EXPECT_EQ(machine::to_string(schedules_for(options)[0]), "random (seed 1)");
  options.seed = 9;
  EXPECT_EQ(machine::to_string(schedules_for(options)[0]), "random (seed 9)");
}

TEST(RandomFloats, AreMultiplesOfASixtyFourthAndNeverZero) {
  const std::vector<float> v = random_floats(20000, 7);
  ASSERT_EQ(v.size(), 20000U);
  float lowest = 0, highest = 0;
  for (const float x : v) {
    EXPECT_EQ(x * 64, std::trunc(x * 64));
    EXPECT_NE(x, 0);
    lowest = std::min(lowest, x);
    highest = std::max(highest, x);
  }
  EXPECT_EQ(lowest, -8);
  EXPECT_EQ(highest, 8 - 1 / 64.0F);
}

TEST(RandomFloats, SumsAndSmallProductsAreExact) {
  const std::vector<float> v = random_floats(4096, 11);
  float sum = 0;
  double exact = 0;
  for (const float x : v) {
    sum += x;
    exact += x;
    EXPECT_EQ(static_cast<double>(std::fma(3.0F, x, 1.0F)), 3.0 * x + 1.0);
    EXPECT_EQ(static_cast<double>(x * v[0]), static_cast<double>(x) * v[0]);
  }
  EXPECT_EQ(static_cast<double>(sum), exact);
}

TEST(RandomFloats, TheSeedDecides) {
  EXPECT_EQ(random_floats(50, 3), random_floats(50, 3));
  EXPECT_NE(random_floats(50, 3), random_floats(50, 4));
}

// --- tensor maps -----------------------------------------------------------------------------------------------------

// 32 threads: thread 0 loads the box of 8 × 4 words at column 4, row 1; thread t stores word t of it.
constexpr const char* kTileKernel = R"ptx(
.version 9.0
.target sm_100a
.address_size 64
.shared .align 128 .b8 tile[128];
.shared .align 8 .b64 full;
.visible .entry k(.param .align 128 .b8 map[128], .param .u64 out)
{
  .reg .pred %p<3>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [out];
  mov.b64 %rd2, map;
  cvta.param.u64 %rd2, %rd2;
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra READY;
  mbarrier.init.shared::cta.b64 [full], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 128;
  cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [%rd2, {4, 1}], [full];
READY:
  bar.sync 0;
L:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0;
  @!%p2 bra L;
  shl.b32 %r2, %r1, 2;
  mov.u32 %r3, tile;
  add.u32 %r3, %r3, %r2;
  ld.shared.u32 %r4, [%r3];
  cvt.u64.u32 %rd3, %r2;
  add.u64 %rd3, %rd3, %rd1;
  st.global.u32 [%rd3], %r4;
  ret;
}
)ptx";

/// A tensor of 16 × 8 words behind a row that does not belong to it, and what the kernel finds in it.
device::TensorMapArgs tile_map() {
  device::TensorMapArgs a;
  a.tensor_data_type = device::TensorDataType::Uint32;
  a.tensor_rank = 2;
  a.global_address = 64;
  a.global_dim = {16, 8};
  a.global_strides = {64};
  a.box_dim = {8, 4};
  return a;
}
Case tile_case(const device::TensorMapArgs& args, const std::string& buffer = "a") {
  std::vector<uint32_t> a(16 * 9), expected(32);
  for (uint32_t k = 0; k < a.size(); k++) a[k] = 1000 + k;
  for (uint32_t k = 0; k < 32; k++) expected[k] = 1000 + 16 * (2 + k / 8) + 4 + k % 8;
  return Case("tile").block(32).in("a", a).only_by_map().tensor_map("map", buffer, args).out("out", expected);
}
Session::Results run_tile(const Case& c, const std::string& ptx = kTileKernel,
                          const std::filesystem::path& submission = "kernel.cu") {
  ExerciseInfo exercise;
  exercise.kernel = "k";
  CompileResult compiled;
  compiled.ptx = ptx;
  Session session;
  session.exercise = &exercise;
  session.compiled = &compiled;
  session.submission = submission;
  const auto device = device::make_emulated_device();
  return run_cases(*device, session, {c});
}

TEST(TensorMap, IsPassedByValueOverABuffer) {
  const Session::Results results = run_tile(tile_case(tile_map()));
  EXPECT_EQ(results.error, "");
  EXPECT_EQ(results.runs.size(), 8U);
  for (const KernelRun& run : results.runs) {
    EXPECT_EQ(run.result.message, "");
    EXPECT_TRUE(run.outputs.right()) << run.where() << ": " << run.outputs.first;
  }
}

TEST(TensorMap, ARefusedArgumentIsADiagnostic) {
  device::TensorMapArgs args = tile_map();
  args.box_dim[0] = 3;
  const Session::Results results = run_tile(tile_case(args));
  ASSERT_EQ(results.runs.size(), 1U);
  EXPECT_EQ(results.runs[0].result.status, device::LaunchResult::Status::Error);
  EXPECT_THAT(results.runs[0].result.message,
              AllOf(HasSubstr("tensor map `map` over `a`"), HasSubstr("boxDim[0] is 3")));
  ASSERT_EQ(results.runs[0].result.diagnostics.size(), 1U);
  EXPECT_EQ(results.runs[0].result.diagnostics[0].id, "bad-tensor-map");
}

TEST(TensorMap, OfABufferThatIsNotThere) {
  const Session::Results results = run_tile(tile_case(tile_map(), "b"));
  ASSERT_EQ(results.runs.size(), 1U);
  EXPECT_EQ(results.runs[0].result.message, "tensor map `map`: the case has no buffer `b`");
}

// --- tensor maps whose arguments are the submission's ----------------------------------------------------------------

/// The bytes of a TensorMapArguments (exercises/include/tensor_map.cuh) in 34 words, low word first.
using MapWords = std::array<uint32_t, 34>;

/// What tile_map() says, but the tensor starts where the buffer does.
MapWords map_words() {
  MapWords w{};
  w[0] = 2;              // tensorDataType: UINT32
  w[1] = 2;              // tensorRank
  w[2] = 16, w[4] = 8;   // globalDim
  w[12] = 64;            // globalStrides
  w[20] = 8, w[21] = 4;  // boxDim
  w[25] = 1, w[26] = 1;  // elementStrides
  return w;              // interleave, swizzle, l2Promotion, oobFill at 30 to 33
}

/// The kernel above in a module with the constant `the_map`; `words` as many as are wanted.
std::string with_constant(const MapWords& words, size_t count = 34) {
  std::string values;
  for (size_t k = 0; k < count; k++) values += (k == 0 ? "" : ", ") + std::to_string(words[k]);
  std::string ptx = kTileKernel;
  const std::string before = ".shared .align 128";
  return ptx.insert(ptx.find(before),
                    ".const .align 8 .b32 the_map[" + std::to_string(count) + "] = {" + values + "};\n");
}

/// A tensor of 16 × `rows` words that fills its buffer; the kernel's box ends with row 4.
Case case_from(const std::string& symbol, uint32_t rows = 8, const std::string& buffer = "a") {
  std::vector<uint32_t> a(16 * rows), expected(32);
  for (uint32_t k = 0; k < a.size(); k++) a[k] = 1000 + k;
  for (uint32_t k = 0; k < 32; k++) expected[k] = 1000 + 16 * (1 + k / 8) + 4 + k % 8;
  return Case("tile").block(32).in("a", a).only_by_map().tensor_map_from("map", symbol, buffer).out("out", expected);
}

/// The only run of `c` there was, which did not even start: its message.
std::string refusal(const Session::Results& results) {
  EXPECT_EQ(results.runs.size(), 1U);
  if (results.runs.empty()) return {};
  EXPECT_EQ(results.runs[0].result.status, device::LaunchResult::Status::Error);
  return results.runs[0].result.message;
}

TEST(TensorMapFrom, TheSubmissionSaysWhatIsCopied) {
  const Session::Results results = run_tile(case_from("the_map"), with_constant(map_words()));
  EXPECT_EQ(results.error, "");
  EXPECT_EQ(results.runs.size(), 8U);
  for (const KernelRun& run : results.runs) {
    EXPECT_EQ(run.result.message, "");
    EXPECT_TRUE(run.outputs.right()) << run.where() << ": " << run.outputs.first;
  }
}

TEST(TensorMapFrom, EveryFieldReachesTheEncoder) {
  struct Change {
    size_t word;
    uint32_t value;
    const char* complaint;
  };
  for (const Change& c :
       {Change{0, 99, "tensorDataType is 99"}, Change{1, 6, "tensorRank is 6"},
        Change{3, 2, "globalDim[0] is 8589934608"}, Change{4, 0, "globalDim[1] is 0"},
        Change{12, 40, "globalStrides[0] is 40"}, Change{13, 0x100, "globalStrides[0] is 1099511627840"},
        Change{20, 3, "boxDim[0] is 3"}, Change{21, 257, "boxDim[1] is 257"}, Change{25, 9, "elementStrides[0] is 9"},
        Change{26, 0, "elementStrides[1] is 0"}, Change{30, 1, "tensorRank is 2"}, Change{31, 7, "swizzle is 7"},
        Change{32, 4, "l2Promotion is 4"},
        Change{33, 1, "oobFill is CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA"}}) {
    MapWords words = map_words();
    words[c.word] = c.value;
    const Session::Results results = run_tile(case_from("the_map"), with_constant(words));
    EXPECT_THAT(refusal(results), HasSubstr(std::string("cuTensorMapEncodeTiled refuses `the_map`: ") + c.complaint));
    ASSERT_EQ(results.runs[0].result.diagnostics.size(), 1U);
    EXPECT_EQ(results.runs[0].result.diagnostics[0].id, "bad-tensor-map");
    EXPECT_EQ(results.runs[0].result.diagnostics[0].message, results.runs[0].result.message);
  }
  // Dimensions and strides beyond the second are the encoder's business from rank 3 on.
  MapWords words = map_words();
  words[1] = 5;
  words[6] = words[8] = words[10] = 1;
  words[14] = words[16] = words[18] = 512;
  words[22] = words[23] = words[24] = 1;
  words[27] = words[28] = words[29] = 1;
  for (const auto& [word, complaint] : {std::pair<size_t, const char*>{10, "globalDim[4] is 0"},
                                        {18, "globalStrides[3] is 8 bytes"},
                                        {24, "boxDim[4] is 0"},
                                        {29, "elementStrides[4] is 0"}}) {
    MapWords changed = words;
    changed[word] = word == 18 ? 8 : 0;
    EXPECT_THAT(refusal(run_tile(case_from("the_map"), with_constant(changed))), HasSubstr(complaint));
  }
}

TEST(TensorMapFrom, AConstantThatIsNotThere) {
  const Session::Results results = run_tile(case_from("image_map"), with_constant(map_words()));
  EXPECT_EQ(refusal(results),
            "the module has no variable image_map; the tensor map is made of `extern \"C\" __constant__ "
            "TensorMapArguments image_map`");
  EXPECT_TRUE(results.runs[0].result.diagnostics.empty());
}

TEST(TensorMapFrom, AConstantOfAnotherSize) {
  const Session::Results results = run_tile(case_from("the_map"), with_constant(map_words(), 33));
  EXPECT_EQ(refusal(results),
            "variable the_map has 132 bytes, expected 136; the tensor map is made of `extern \"C\" __constant__ "
            "TensorMapArguments the_map`");
  EXPECT_TRUE(results.runs[0].result.diagnostics.empty());
}

TEST(TensorMapFrom, ABufferThatIsNotThere) {
  EXPECT_EQ(refusal(run_tile(case_from("the_map", 8, "b"), with_constant(map_words()))),
            "tensor map `map`: the case has no buffer `b`");
}

// The map promises rows 0 to 7, and the buffer ends with row 2: nothing beyond it is read.
TEST(TensorMapFrom, ATensorLargerThanItsBuffer) {
  const Session::Results results = run_tile(case_from("the_map", 3), with_constant(map_words()));
  ASSERT_EQ(results.runs.size(), 1U);
  EXPECT_EQ(results.runs[0].result.status, device::LaunchResult::Status::Fault);
  ASSERT_EQ(results.runs[0].result.diagnostics.size(), 1U);
  const Diagnostic& d = results.runs[0].result.diagnostics[0];
  EXPECT_EQ(d.id, "out-of-bounds");
  EXPECT_THAT(d.message, AllOf(HasSubstr("a tensor copy reads 32 bytes"), HasSubstr("`a`")));
  EXPECT_THAT(d.hint, HasSubstr("globalDim"));
}

/// The line of the diagnostic for map_words() with a box of three columns, if the submission reads so.
uint32_t line_of_refusal(const std::string& source) {
  const std::filesystem::path file = std::filesystem::path(::testing::TempDir()) / "refused.cu";
  std::ofstream(file) << source;
  MapWords words = map_words();
  words[20] = 3;
  const Session::Results results = run_tile(case_from("the_map"), with_constant(words), file);
  std::filesystem::remove(file);
  if (results.runs.empty() || results.runs[0].result.diagnostics.empty()) return 999;
  const SourcePlace& place = results.runs[0].result.diagnostics[0].place;
  EXPECT_EQ(place.file, "refused.cu");
  return place.line;
}

TEST(TensorMapFrom, ARefusalIsToldAtTheLineOfTheField) {
  EXPECT_EQ(line_of_refusal("#include \"tensor_map.cuh\"\n"
                            "// the_map = boxDim\n"
                            "int boxDim;\n"
                            "extern \"C\" __constant__ TensorMapArguments the_map = {\n"
                            "    .tensorRank = 2,  // not boxDim\n"
                            "    .boxDim = {3, 4},\n"
                            "};\n"),
            6U);
  // Fields without names: the constant.
  EXPECT_EQ(
      line_of_refusal("\nextern \"C\" __constant__ TensorMapArguments the_map{\n    UINT32, 2,\n};\nint boxDim;\n"),
      2U);
  EXPECT_EQ(line_of_refusal("/* made by a macro */\n"), 0U);
}

// --- matchers --------------------------------------------------------------------------------------------------------

const Case kCase("n = 5");

/// A run that ended; the rest of it is up to the test.
KernelRun ended() {
  KernelRun run;
  run.test_case = &kCase;
  run.device = "emulator";
  run.outputs.total = 5;
  return run;
}

KernelRun with_diagnostic(const std::string& id, uint32_t line, Severity severity = Severity::Error) {
  KernelRun run = ended();
  Diagnostic d;
  d.id = id;
  d.severity = severity;
  d.place = {"kernel.cu", line};
  run.result.diagnostics.push_back(d);
  return run;
}

/// What a matcher says about a run: empty if it matches.
std::string why_not(const ::testing::Matcher<const KernelRun&>& matcher, const KernelRun& run) {
  ::testing::StringMatchResultListener listener;
  const bool matches = matcher.MatchAndExplain(run, &listener);
  EXPECT_EQ(matches, listener.str().empty());
  return listener.str();
}

TEST(KernelRunWhere, NamesScheduleAndCase) {
  KernelRun run = ended();
  EXPECT_EQ(run.where(), "nominal, n = 5");
  run.schedule = {machine::Schedule::Kind::Random, 3};
  EXPECT_EQ(run.where(), "random (seed 3), n = 5");
  run.device = "cuda";
  EXPECT_EQ(run.where(), "GPU, n = 5");
  run.repeat = 2;
  EXPECT_EQ(run.where(), "GPU, run 3, n = 5");
}

TEST(IsRight, WantsEveryElementAndUnchangedInputs) {
  EXPECT_EQ(why_not(IsRight(), ended()), "");
  KernelRun run = ended();
  run.outputs.wrong = 2;
  run.outputs.first = "out[1]: got 0, expected 2";
  EXPECT_EQ(why_not(IsRight(), run), "2 of 5 elements wrong, first at out[1]: got 0, expected 2");
  run.outputs.changed_input = "in";
  EXPECT_EQ(why_not(IsRight(), run), "the kernel changed its input `in`");
}

TEST(IsRight, ALaunchThatFailedIsNotRight) {
  KernelRun run = ended();
  run.result.status = device::LaunchResult::Status::Hang;
  run.result.message = "nothing can run any more";
  EXPECT_EQ(why_not(IsRight(), run), "the launch hangs: nothing can run any more");
  run.result.status = device::LaunchResult::Status::Fault;
  run.result.message = "warp 0 reads outside";
  EXPECT_EQ(why_not(IsRight(), run), "warp 0 reads outside");
}

TEST(IsHazardFree, OnlyErrorsCount) {
  EXPECT_EQ(why_not(IsHazardFree(), ended()), "");
  EXPECT_EQ(why_not(IsHazardFree(), with_diagnostic("proxy-fence-misplaced", 4, Severity::Warning)), "");
  EXPECT_EQ(why_not(IsHazardFree(), with_diagnostic("advisory-refill", 4, Severity::Note)), "");
  EXPECT_EQ(why_not(IsHazardFree(), with_diagnostic("data-race", 12)), "data-race at line 12");
}

TEST(IsHazardFree, ALaunchThatFailedIsNotFree) {
  KernelRun run = ended();
  run.result.status = device::LaunchResult::Status::Error;
  run.result.message = "a block of 2048 threads; the limit is 1024";
  EXPECT_EQ(why_not(IsHazardFree(), run), "a block of 2048 threads; the limit is 1024");
}

TEST(Reports, ComparesIdAndLine) {
  const KernelRun run = with_diagnostic("data-race", 12);
  EXPECT_THAT(run, Reports("data-race"));
  EXPECT_THAT(run, Reports("data-race", 12));
  EXPECT_EQ(why_not(Reports("data-race", 13), run), "reported: data-race @ 12");
  EXPECT_EQ(why_not(Reports("deadlock"), run), "reported: data-race @ 12");
  EXPECT_EQ(why_not(Reports("deadlock"), ended()), "nothing was reported");
}

TEST(LoadsByBulkCopy, WantsTheBytesAndNoOthers) {
  KernelRun run = ended();
  run.result.trace.totals.bulk_bytes_to_shared = 4096;
  EXPECT_EQ(why_not(LoadsByBulkCopy(4096), run), "");
  EXPECT_THAT(why_not(LoadsByBulkCopy(8192), run),
              AllOf(HasSubstr("4096 bytes came by bulk copy"), HasSubstr("wanted: all 8192 bytes by bulk copy")));
  run.result.trace.totals.global_load_bytes = 40;
  run.result.trace.totals.cp_async_bytes = 8;
  EXPECT_THAT(why_not(LoadsByBulkCopy(4096), run),
              AllOf(HasSubstr("40 by ordinary loads"), HasSubstr("8 by cp.async")));
  EXPECT_EQ(why_not(LoadsByBulkCopy(4096, 48), run), "");
  EXPECT_THAT(why_not(LoadsByBulkCopy(4096, 47), run), HasSubstr("at most 47 by ordinary loads"));
}

TEST(BytesAddUp, AnnouncedAndArrivedMustBoth) {
  KernelRun run = ended();
  run.result.trace.totals.expected_bytes = run.result.trace.totals.completed_bytes = 4096;
  EXPECT_EQ(why_not(BytesAddUp(4096), run), "");
  EXPECT_NE(why_not(BytesAddUp(2048), run), "");
  run.result.trace.totals.expected_bytes = 2048;
  EXPECT_EQ(why_not(BytesAddUp(4096), run),
            "2048 bytes were announced by expect_tx, 4096 arrived; wanted: 4096 bytes announced, and as many arrived");
  run.result.trace.totals.expected_bytes = 4096;
  run.result.trace.totals.completed_bytes = 0;
  EXPECT_THAT(why_not(BytesAddUp(4096), run), HasSubstr("0 arrived"));
}

TEST(HandsOffByMbarrier, CountsArrivalsWaitsAndBlockBarriers) {
  KernelRun run = ended();
  run.result.trace.totals.arrivals = 64;
  run.result.trace.totals.waits_true = 32;
  run.result.trace.totals.block_barriers = 3;
  EXPECT_EQ(why_not(HandsOffByMbarrier(64, 32, 1, 3), run), "");
  EXPECT_NE(why_not(HandsOffByMbarrier(65, 32, 1, 3), run), "");
  EXPECT_NE(why_not(HandsOffByMbarrier(64, 33, 1, 3), run), "");
  EXPECT_EQ(why_not(HandsOffByMbarrier(64, 32, 1, 2), run),
            "64 arrivals, 32 threads whose wait succeeded, 3 block-wide barriers in 2 blocks; wanted: at least 64 "
            "arrivals on mbarriers, 32 threads that saw a wait "
            "succeed, and at most 1 block-wide barrier in each block");
}

TEST(AvoidsBankConflicts, WantsAccessesWithoutConflicts) {
  KernelRun run = ended();
  EXPECT_THAT(why_not(AvoidsBankConflicts(), run), HasSubstr("0 accesses of shared memory"));
  trace::Totals& t = run.result.trace.totals;
  t.shared_accesses = t.shared_wavefronts = t.shared_minimum = 64;
  run.result.trace.shared_lines = {{{"kernel.cu", 12}, 64, 64, 64, 1}};
  EXPECT_EQ(why_not(AvoidsBankConflicts(), run), "");
  EXPECT_EQ(why_not(AvoidsBankConflicts(0, 64), run), "");
  EXPECT_THAT(why_not(AvoidsBankConflicts(0, 65), run), HasSubstr("wanted: at least 65 accesses"));
  t.shared_wavefronts = 96;
  run.result.trace.shared_lines = {{{"kernel.cu", 12}, 64, 96, 64, 2}};
  EXPECT_EQ(why_not(AvoidsBankConflicts(), run),
            "64 accesses of shared memory take 96 wavefronts, 32 above the minimum, most of them at line 12 (2-way); "
            "wanted: at least 1 access of shared memory, which take at most 0 wavefronts above the minimum");
  EXPECT_EQ(why_not(AvoidsBankConflicts(32), run), "");
}

TEST(Traced, ALaunchThatFailedHasNoTrace) {
  KernelRun run = ended();
  run.result.status = device::LaunchResult::Status::Hang;
  EXPECT_THAT(run, Not(BytesAddUp(0)));
  EXPECT_THAT(run, Not(HandsOffByMbarrier(0, 0, 0, 1)));
}

}  // namespace
}  // namespace handoff::harness
