// grade() is a GoogleTest run of its own, so each of these tests calls it in a forked copy of the process, where it
// also registers the tests of a made-up exercise 99z, and compares a text made of the verdict.
#include "grader/harness/grade.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grader/device/device.h"
#include "grader/harness/exercise.h"
#include "grader/harness/process.h"
#include "grader/harness/session.h"

namespace handoff::harness {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kCount = 40;  // elements; one block of 64 threads

/// A kernel `doubled(in, out)`, out[i] = 2 * in[i] for i < 40, with `body` in place of its last statements. There %r1
/// is the index, %rd3 the address of in[i], %rd4 that of out[i], %f1 is in[i] and %f2 its double.
std::string kernel(const std::string& body, const std::string& name = "doubled") {
  return ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry " + name +
         R"((.param .u64 p_in, .param .u64 p_out) {
  .reg .pred %p<4>; .reg .b32 %r<8>; .reg .f32 %f<8>; .reg .b64 %rd<8>;
  .shared .align 8 .b64 full;
  mov.u32 %r1, %tid.x;
  setp.ge.u32 %p1, %r1, 40;
  @%p1 bra DONE;
  ld.param.u64 %rd1, [p_in];
  ld.param.u64 %rd2, [p_out];
  cvta.to.global.u64 %rd1, %rd1;
  cvta.to.global.u64 %rd2, %rd2;
  mul.wide.u32 %rd5, %r1, 4;
  add.s64 %rd3, %rd1, %rd5;
  add.s64 %rd4, %rd2, %rd5;
  ld.global.f32 %f1, [%rd3];
  add.f32 %f2, %f1, %f1;
)" + body +
         "\nDONE:\n  ret;\n}\n";
}

const char* const kRight = "st.global.f32 [%rd4], %f2;";
const char* const kWrongAtThree =
    "setp.eq.u32 %p2, %r1, 3;\n  @%p2 mov.f32 %f2, 0f00000000;\n  st.global.f32 [%rd4], %f2;";
const char* const kChangesItsInput = "st.global.f32 [%rd4], %f2;\n  st.global.f32 [%rd3], %f2;";
const char* const kTwoAtOnce = "st.global.f32 [%rd4+160], %f2;";
/// Thread 0 waits for a barrier on which nobody arrives.
const char* const kHangs = R"(setp.ne.u32 %p2, %r1, 0;
  @%p2 bra DONE;
  mov.u32 %r2, full;
  mbarrier.init.shared.b64 [%r2], 1;
  mov.u32 %r3, 0;
L: mbarrier.try_wait.parity.shared.b64 %p3, [%r2], %r3;
  @!%p3 bra L;
  st.global.f32 [%rd4], %f2;)";

class Doubled : public ExerciseTest {
 public:
  std::vector<Case> cases(uint64_t seed) const override {
    const std::vector<float> in = random_floats(kCount, seed);
    std::vector<float> out(kCount);
    for (int i = 0; i < kCount; i++) out[i] = 2 * in[i];
    std::vector<Case> list;
    list.push_back(Case("40 floats").block(64).in("in", in).out("out", out));
    return list;
  }
};

/// A test of 99z whose body is a function.
template <class Body>
void define(const char* name, Body body) {
  class Test : public Doubled {
   public:
    explicit Test(Body b) : body_(std::move(b)) {}

   private:
    void TestBody() override { body_(*this); }
    Body body_;
  };
  register_test("99z", name, __FILE__, __LINE__, [body]() -> ExerciseTest* { return new Test(body); });
}

/// Opens the three standard checks of ExerciseTest.
struct Checks : Doubled {
  static void result(Doubled& t) { (t.*(&Checks::check_result))(); }
  static void every_schedule(Doubled& t) { (t.*(&Checks::check_every_schedule))(); }
  static void no_hazards(Doubled& t) { (t.*(&Checks::check_no_hazards))(); }
};

void define_standard_tests() {
  define("result", [](Doubled& t) { Checks::result(t); });
  define("every-schedule", [](Doubled& t) { Checks::every_schedule(t); });
  define("no-hazards", [](Doubled& t) { Checks::no_hazards(t); });
}

ExerciseInfo exercise() {
  ExerciseInfo info;
  info.id = "99z";
  info.name = "doubled";
  info.kernel = "doubled";
  info.kind = "write";
  info.needs = "mbarrier";
  info.points = {{"result", 3}, {"every-schedule", 2}, {"no-hazards", 5}};
  return info;
}

GradeOptions on_emulator() {
  GradeOptions options;
  options.device = "emulator";
  return options;
}

/// The verdict as lines: score, problem, then "name state score/max: message", then "id severity".
std::string describe(const Verdict& v) {
  std::string s = fmt::format("{}score {}/{}{}\n", v.could_grade ? "" : "not graded, ", v.score, v.max_score,
                              v.passed() ? ", passed" : "");
  if (!v.problem.empty()) s += "problem: " + v.problem + "\n";
  const char* const states[] = {"passed", "failed", "not run"};
  for (const TestOutcome& t : v.tests) {
    s += fmt::format("{}/{} {} {}/{}: {}\n", t.device, t.name, states[static_cast<int>(t.state)], t.score, t.max_score,
                     t.message);
  }
  for (const FoundDiagnostic& d : v.diagnostics)
    s += fmt::format("{} on {}, {}\n", d.diagnostic.id, d.schedule, d.input);
  if (!v.reproduce.empty()) s += "reproduce: " + v.reproduce + "\n";
  return s;
}

/// Grades `ptx` in a child after `registration` has registered tests there.
std::string graded(const std::string& ptx, const ExerciseInfo& info = exercise(),
                   const GradeOptions& options = on_emulator(),
                   const std::function<void()>& registration = define_standard_tests) {
  const ProcessResult child = run_function([&] {
    registration();
    CompileResult compiled;
    compiled.ok = true;
    compiled.ptx = ptx;
    return describe(grade(info, "kernel.cu", compiled, options));
  });
  return child.ok() ? child.output : describe_failure(child) + "\n" + child.errors;
}

TEST(Grade, ARightKernelGetsEveryPoint) {
  EXPECT_EQ(graded(kernel(kRight)),
            "score 10/10, passed\n"
            "emulator/result passed 3/3: \n"
            "emulator/every-schedule passed 2/2: \n"
            "emulator/no-hazards passed 5/5: \n");
}

TEST(Grade, PointsComeFromTheTomlAlone) {
  ExerciseInfo info = exercise();
  info.points = {{"no-hazards", 40}, {"result", 60}};
  EXPECT_EQ(graded(kernel(kRight), info),
            "score 100/100, passed\n"
            "emulator/no-hazards passed 40/40: \n"
            "emulator/result passed 60/60: \n");
}

TEST(Grade, ATestThatTheHarnessDoesNotHaveGivesNothing) {
  ExerciseInfo info = exercise();
  info.points.emplace_back("bytes-add-up", 2);
  EXPECT_THAT(graded(kernel(kRight), info),
              AllOf(HasSubstr("score 10/12\n"),
                    HasSubstr("emulator/bytes-add-up not run 0/2: the harness has no such test\n")));
}

/// Each thread takes its double through word 32·index of `tile`.
const char* const kThroughAColumn = R"(mov.u32 %r2, tile;
  shl.b32 %r3, %r1, 7;
  add.u32 %r2, %r2, %r3;
  st.shared.f32 [%r2], %f2;
  ld.shared.f32 %f3, [%r2];
  st.global.f32 [%rd4], %f3;)";

TEST(Grade, TheVerdictHasTheBankConflictsOfTheNominalRun) {
  const ProcessResult child = run_function([] {
    define_standard_tests();
    CompileResult compiled;
    compiled.ok = true;
    compiled.ptx = kernel(std::string(".shared .align 4 .b8 tile[8192];\n") + kThroughAColumn);
    const SharedMemoryUse use = grade(exercise(), "kernel.cu", compiled, on_emulator()).shared_memory;
    std::string s = fmt::format("{} accesses, {} wavefronts, minimum {}, distributed {}", use.accesses, use.wavefronts,
                                use.minimum, use.distributed_accesses);
    for (const trace::SharedLine& l : use.conflicts) s += fmt::format("; {}: {}-way", l.accesses, l.ways);
    return s;
  });
  // 40 threads: a warp of 32, one of 8. The text has no lines.
  EXPECT_EQ(child.output, "4 accesses, 80 wavefronts, minimum 4, distributed 0; 4: 32-way");
}

TEST(Grade, AWrongElementIsNamedInOneLine) {
  const std::string verdict = graded(kernel(kWrongAtThree));
  EXPECT_THAT(verdict, HasSubstr("score 5/10\n"));
  EXPECT_THAT(verdict, ::testing::ContainsRegex("emulator/result failed 0/3: nominal, 40 floats: 1 of 40 elements "
                                                "wrong, first at out\\[3\\]: got 0, expected -?[0-9.]+\n"));
  EXPECT_THAT(verdict, HasSubstr("emulator/every-schedule not run 0/2: nominal failed\n"));
  EXPECT_THAT(verdict, HasSubstr("emulator/no-hazards passed 5/5: \n"));
  EXPECT_THAT(verdict, HasSubstr("reproduce: --schedule nominal\n"));
}

TEST(Grade, AnInputMayNotBeChanged) {
  EXPECT_THAT(graded(kernel(kChangesItsInput)),
              HasSubstr("emulator/result failed 0/3: nominal, 40 floats: the kernel changed its input `in`\n"));
}

TEST(Grade, UnwrittenOutputsArePoison) {
  EXPECT_THAT(graded(kernel("")), HasSubstr("40 of 40 elements wrong, first at out[0]: got poison, expected "));
}

TEST(Grade, AFaultIsADiagnosticAndFailsEveryTest) {
  const std::string verdict = graded(kernel(kTwoAtOnce));
  EXPECT_THAT(verdict, AllOf(HasSubstr("score 0/10\n"), HasSubstr("out-of-bounds on nominal, 40 floats\n"),
                             HasSubstr("emulator/no-hazards failed 0/5: nominal, 40 floats: out-of-bounds at line")));
}

TEST(Grade, AHangIsADeadlock) {
  const std::string verdict = graded(kernel(kHangs));
  EXPECT_THAT(verdict, AllOf(HasSubstr("score 0/10\n"), HasSubstr("deadlock on nominal, 40 floats\n"),
                             HasSubstr("emulator/result failed 0/3: nominal, 40 floats: the launch hangs: ")));
}

TEST(Grade, AModuleWithoutTheKernelGetsNoPoints) {
  const std::string verdict = graded(kernel(kRight, "tripled"));
  EXPECT_THAT(verdict, AllOf(HasSubstr("score 0/10\n"), HasSubstr("problem: "), HasSubstr("tripled"),
                             Not(HasSubstr(" passed "))));
}

TEST(Grade, AModuleThatDoesNotLoadGetsNoPoints) {
  EXPECT_THAT(graded("this is no PTX"),
              AllOf(HasSubstr("score 0/10\n"), HasSubstr("problem: "), Not(HasSubstr(" passed "))));
}

TEST(Grade, OneScheduleRunsThatOne) {
  GradeOptions options = on_emulator();
  options.schedule = "random";
  options.seed = 5;
  EXPECT_THAT(graded(kernel(kWrongAtThree), exercise(), options),
              AllOf(HasSubstr("result failed 0/3: random (seed 5), 40 floats: 1 of 40"),
                    HasSubstr("reproduce: --schedule random --seed 5\n")));
}

TEST(Grade, TheSeedChangesTheInputs) {
  GradeOptions options = on_emulator();
  const std::string first = graded(kernel(""), exercise(), options);
  options.seed = 77;
  EXPECT_EQ(first, graded(kernel("")));
  EXPECT_NE(first, graded(kernel(""), exercise(), options));
}

TEST(Grade, CudaWithoutAGpuCannotBeGraded) {
  std::string why;
  if (device::make_cuda_device(0, &why) != nullptr) GTEST_SKIP() << "this machine has a GPU";
  GradeOptions options;
  options.device = "cuda";
  EXPECT_EQ(graded(kernel(kRight), exercise(), options), "not graded, score 0/10\nproblem: " + why + "\n");
}

// --- GPUs that an exercise cannot use
// ---------------------------------------------------------------------------------

/// A GPU of which only its properties matter; nothing is ever asked to run on it.
class UnusedGpu : public device::Device {
 public:
  UnusedGpu(std::string name, int capability, bool tcgen05)
      : name_(std::move(name)), capability_(capability), tcgen05_(tcgen05) {}
  std::string_view kind() const override { return "cuda"; }
  std::string name() const override { return name_; }
  int compute_capability() const override { return capability_; }
  bool has_tcgen05() const override { return tcgen05_; }
  device::Error load(const device::ModuleImage&) override { return used(); }
  device::Error find_kernel(std::string_view, device::KernelInfo*) override { return used(); }
  device::Error allocate(size_t, device::DevicePtr*) override { return used(); }
  device::Error free(device::DevicePtr) override { return used(); }
  device::Error write(device::DevicePtr, std::span<const std::byte>) override { return used(); }
  device::Error read(std::span<std::byte>, device::DevicePtr) override { return used(); }
  device::Error read_symbol(std::string_view, std::span<std::byte>) override { return used(); }
  device::Error encode_tensor_map(const device::TensorMapArgs&, std::array<std::byte, 128>*) override { return used(); }
  device::LaunchResult launch(std::string_view, const device::LaunchConfig&,
                              std::span<const device::Argument>) override {
    device::LaunchResult result;
    result.status = device::LaunchResult::Status::Error;
    result.message = used().message;
    return result;
  }

 private:
  static device::Error used() { return {"the GPU was used"}; }
  std::string name_;
  int capability_;
  bool tcgen05_;
};

/// A GPU that launches anything, and counts.
class CountingGpu final : public UnusedGpu {
 public:
  CountingGpu() : UnusedGpu("Counting GPU", 90, false) {}
  device::Error load(const device::ModuleImage&) override { return {}; }
  device::Error find_kernel(std::string_view, device::KernelInfo*) override { return {}; }
  device::LaunchResult launch(std::string_view, const device::LaunchConfig&,
                              std::span<const device::Argument>) override {
    ++launches;
    return {};
  }
  int launches = 0;
};

TEST(Repeats, AGpuLaunchesEachCaseAsOftenAsAskedFor) {
  ExerciseInfo exercise;
  exercise.kernel = "k";
  Session session;
  session.exercise = &exercise;
  for (const int repeats : {3, 20}) {
    CountingGpu gpu;
    session.options.repeats = repeats;
    const Session::Results results = run_cases(gpu, session, {Case("one"), Case("two")});
    EXPECT_EQ(gpu.launches, 2 * repeats);
    ASSERT_FALSE(results.runs.empty());
    EXPECT_EQ(results.runs.back().repeat, repeats - 1);
  }
  EXPECT_EQ(GradeOptions().repeats, 3);
}

struct Gpu {
  const char* name;
  int capability;
  bool tcgen05;
};

/// The verdict on a right kernel of an exercise that needs `needs`, where the machine's GPU is `gpu` and there is no
/// nvcc; then the notes.
std::string graded_beside(const Gpu& gpu, const char* needs, const char* asked) {
  ExerciseInfo info = exercise();
  info.needs = needs;
  GradeOptions options;
  options.device = asked;
  options.open_gpu = [gpu](std::string*) { return std::make_unique<UnusedGpu>(gpu.name, gpu.capability, gpu.tcgen05); };
  const ProcessResult child = run_function([&] {
    setenv("HANDOFF_NVCC", "/nonexistent/nvcc", 1);
    define_standard_tests();
    CompileResult compiled;
    compiled.ok = true;
    compiled.ptx = kernel(kRight);
    const Verdict v = grade(info, "kernel.cu", compiled, options);
    std::string text = describe(v);
    for (const std::string& note : v.notes) text += "note: " + note + "\n";
    return text + "on " + v.devices + "\n";
  });
  return child.ok() ? child.output : describe_failure(child) + "\n" + child.errors;
}

constexpr Gpu kHopper = {"NVIDIA H200", 90, false};
constexpr Gpu kAmpere = {"NVIDIA A100", 80, false};
constexpr Gpu kGeForce = {"NVIDIA GeForce RTX 5090", 120, false};
constexpr Gpu kBlackwell = {"NVIDIA B200", 100, true};

const char* const kFullMarksOnTheEmulator =
    "score 10/10, passed\n"
    "emulator/result passed 3/3: \n"
    "emulator/every-schedule passed 2/2: \n"
    "emulator/no-hazards passed 5/5: \n";

TEST(Grade, TheEmulatorAloneWhereTheGpuLacksTcgen05AndThatIsSaidOnce) {
  EXPECT_EQ(graded_beside(kHopper, "tcgen05", "auto"),
            std::string(kFullMarksOnTheEmulator) +
                "note: cuda: skipped: needs tcgen05 (sm_100, sm_103); this GPU is NVIDIA H200 (sm_90)\n"
                "on emulator\n");
  EXPECT_EQ(graded_beside(kAmpere, "mbarrier", "auto"),
            std::string(kFullMarksOnTheEmulator) +
                "note: cuda: skipped: needs sm_90 or newer; this GPU is NVIDIA A100 (sm_80)\n"
                "on emulator\n");
}

TEST(Grade, CudaOnAGpuWithoutTcgen05CannotBeGraded) {
  EXPECT_EQ(graded_beside(kHopper, "tcgen05", "cuda"),
            "not graded, score 0/10\n"
            "problem: needs tcgen05 (sm_100, sm_103); this GPU is NVIDIA H200 (sm_90)\n"
            "on \n");
  // Newer than sm_100 does not mean that it has tensor memory.
  EXPECT_THAT(graded_beside(kGeForce, "tcgen05", "cuda"),
              HasSubstr("problem: needs tcgen05 (sm_100, sm_103); this GPU is NVIDIA GeForce RTX 5090 (sm_120)\n"));
  EXPECT_THAT(graded_beside(kAmpere, "tma", "cuda"),
              HasSubstr("problem: needs sm_90 or newer; this GPU is NVIDIA A100 (sm_80)\n"));
}

TEST(Grade, AGpuThatHasWhatIsNeededIsCompiledFor) {
  // There is no nvcc in these runs: that is as far as they get.
  EXPECT_THAT(graded_beside(kBlackwell, "tcgen05", "cuda"), HasSubstr("problem: nvcc was not found"));
  EXPECT_THAT(graded_beside(kHopper, "tma", "cuda"), HasSubstr("problem: nvcc was not found"));
  EXPECT_THAT(graded_beside(kHopper, "mbarrier", "auto"), HasSubstr("note: cuda: skipped: nvcc was not found"));
}

TEST(Grade, TheLargestLaunchGivesTheDynamicSharedMemory) {
  class TwoSizes : public Doubled {
   public:
    std::vector<Case> cases(uint64_t seed) const override {
      std::vector<Case> list = Doubled::cases(seed);
      list.push_back(list.front());
      list.front().dynamic_smem(4096);
      list.back().dynamic_smem(1024);
      return list;
    }

   private:
    void TestBody() override { check_result(); }
  };
  const ProcessResult child = run_function([] {
    register_test("99z", "result", __FILE__, __LINE__, []() -> ExerciseTest* { return new TwoSizes; });
    CompileResult compiled;
    compiled.ok = true;
    compiled.ptx = kernel(kRight);
    compiled.resources.registers = 17;
    const Verdict v = grade(exercise(), "kernel.cu", compiled, on_emulator());
    return fmt::format("{} registers, {} bytes", v.resources.registers, v.resources.dynamic_smem);
  });
  EXPECT_EQ(child.output, "17 registers, 4096 bytes") << child.errors;
}

// --- messages --------------------------------------------------------------------------------------------------------

/// The message of one failing test of 99z.
std::string message_of(const std::function<void(Doubled&)>& body) {
  ExerciseInfo info = exercise();
  info.points = {{"no-hazards", 10}};
  const std::string verdict = graded(kernel(kRight), info, on_emulator(), [&] { define("no-hazards", body); });
  const size_t at = verdict.find("no-hazards");
  return at == std::string::npos ? verdict : verdict.substr(at, verdict.find('\n', at) - at);
}

TEST(GradeMessage, TheAuthorsTextWinsOverTheAssertion) {
  EXPECT_EQ(message_of([](Doubled&) { EXPECT_TRUE(1 > 2) << "the kernel never waits\nand more"; }),
            "no-hazards failed 0/10: the kernel never waits");
  EXPECT_EQ(message_of([](Doubled&) { EXPECT_NE(1, 1) << "the kernel never arrives"; }),
            "no-hazards failed 0/10: the kernel never arrives");
  EXPECT_EQ(message_of([](Doubled&) { EXPECT_EQ(1, 2) << "one is not two"; }),
            "no-hazards failed 0/10: one is not two");
  EXPECT_EQ(message_of([](Doubled&) { ADD_FAILURE() << "by hand"; }), "no-hazards failed 0/10: by hand");
  EXPECT_EQ(message_of([](Doubled&) { GTEST_SKIP() << "not here"; }), "no-hazards not run 0/10: not here");
}

TEST(GradeMessage, AMatchersExplanationNamesTheRunAndNoType) {
  const Case c("n = 5");
  EXPECT_EQ(message_of([&c](Doubled&) {
              KernelRun run;
              run.test_case = &c;
              run.device = "emulator";
              run.outputs.wrong = 2;
              run.outputs.total = 5;
              run.outputs.first = "out[1]: got 0, expected 2";
              EXPECT_THAT(run, IsRight());
            }),
            "no-hazards failed 0/10: nominal, n = 5: 2 of 5 elements wrong, first at out[1]: got 0, expected 2");
}

TEST(GradeMessage, TheFirstFailureIsShown) {
  EXPECT_EQ(message_of([](Doubled&) {
              ADD_FAILURE() << "first";
              ADD_FAILURE() << "second";
            }),
            "no-hazards failed 0/10: first");
}

TEST(GradeMessage, AnExceptionIsAFailure) {
  EXPECT_THAT(message_of([](Doubled&) { throw std::runtime_error("unexpected thing"); }),
              AllOf(HasSubstr("failed 0/10: "), HasSubstr("unexpected thing")));
}

}  // namespace
}  // namespace handoff::harness
