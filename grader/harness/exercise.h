// How an exercise's grade.cc is written: inputs as Cases, what must hold as GoogleTest tests over the runs.
//
//   class TwoCopies : public handoff::harness::ExerciseTest {
//    protected:
//     std::vector<Case> cases() const override { … }
//   };
//   HANDOFF_STANDARD_TESTS("04a", TwoCopies)        // result, every-schedule, no-hazards
//   HANDOFF_TEST("04a", TwoCopies, bytes_add_up, "bytes-add-up") {
//     for (const KernelRun& run : traced_runs()) EXPECT_THAT(run, BytesAddUp());
//   }
//
// The harness launches every case on the device under test, on each schedule (emulator) or several times (GPU), once;
// tests only look at the runs. A grade.cc never sees which device it has.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "grader/device/device.h"

namespace handoff::harness {

/// Element types that buffers are compared and printed as.
enum class ElementType : uint8_t { F32, S32, U32, F64, U8 };

/// One kernel parameter of a case.
struct Parameter {
  std::string name;                     ///< "in": named in messages about bad addresses
  std::vector<std::byte> value;         ///< scalars: the bytes passed
  bool is_buffer = false;               ///< a pointer to device memory
  bool is_output = false;               ///< compared with `expected` afterwards; poisoned before
  std::vector<std::byte> initial;       ///< inputs: contents before the launch; must be unchanged after it
  std::vector<std::byte> expected;      ///< outputs
  ElementType type = ElementType::F32;  ///< of buffers
  double tolerance = 0;                 ///< relative, of floating outputs; 0: equal as numbers (NaN equals NaN)
  bool is_passed = true;                ///< false: a buffer that the kernel reaches through tensor maps only
  /// A tensor map over the buffer `buffer`, passed by value; its global_address is relative to the buffer's start.
  ///@{
  std::optional<device::TensorMapArgs> map;
  std::string buffer;
  std::string symbol;  ///< not empty: the arguments come from this constant of the submission instead, see
                       ///< Case::tensor_map_from
  ///@}
  /// Is this a tensor map, wherever its arguments come from?
  bool is_map() const { return map.has_value() || !symbol.empty(); }
};

/// One launch with its input and the expected output.
class Case {
 public:
  /// `name` says what is special about it: "n = 1000, 128 threads".
  explicit Case(std::string name) : name_(std::move(name)) {}
  /// Grid size in blocks.
  Case& grid(uint32_t x, uint32_t y = 1, uint32_t z = 1);
  /// Block size in threads.
  Case& block(uint32_t x, uint32_t y = 1, uint32_t z = 1);
  /// Dynamic shared memory in bytes.
  Case& dynamic_smem(uint32_t bytes);
  /// The next parameter is a pointer to a buffer with these contents, which the kernel must not change.
  template <class T>
  Case& in(std::string name, const std::vector<T>& contents) {
    Parameter p;
    p.name = std::move(name);
    p.is_buffer = true;
    p.type = type_of<T>();
    p.initial = bytes_of(contents);
    params_.push_back(std::move(p));
    return *this;
  }
  /// The next parameter is a pointer to a buffer, poisoned before the launch, that must hold `expected` afterwards.
  template <class T>
  Case& out(std::string name, const std::vector<T>& expected, double tolerance = 0) {
    Parameter p;
    p.name = std::move(name);
    p.is_buffer = p.is_output = true;
    p.type = type_of<T>();
    p.expected = bytes_of(expected);
    p.tolerance = tolerance;
    params_.push_back(std::move(p));
    return *this;
  }
  /// The next parameter is passed by value.
  template <class T>
  Case& value(std::string name, const T& v) {
    static_assert(std::is_trivially_copyable_v<T>);
    Parameter p;
    p.name = std::move(name);
    p.value.resize(sizeof v);
    std::memcpy(p.value.data(), &v, sizeof v);
    params_.push_back(std::move(p));
    return *this;
  }

  /// The buffer given last is no parameter of the kernel: it is there for tensor maps.
  Case& only_by_map();
  /// The next parameter is a `const __grid_constant__ CUtensorMap` over the buffer named `buffer`, which may be given
  /// before or after it. `args.global_address` is relative to the start of the buffer, bytes. Arguments that the
  /// encoder refuses end the run with `bad-tensor-map`.
  Case& tensor_map(std::string name, std::string buffer, const device::TensorMapArgs& args);
  /// As tensor_map, with the arguments that the submission has in its constant `symbol`, a TensorMapArguments
  /// (exercises/include/tensor_map.cuh); the tensor begins where the buffer does. The run ends with one line where
  /// there is no such constant, and with `bad-tensor-map`, at the line of the field, where the encoder refuses the
  /// arguments.
  Case& tensor_map_from(std::string name, std::string symbol, std::string buffer);

  const std::string& name() const { return name_; }                     ///< as given
  const device::LaunchConfig& config() const { return config_; }        ///< grid, block, shared memory
  const std::vector<Parameter>& parameters() const { return params_; }  ///< in order

 private:
  template <class T>
  static ElementType type_of() {
    if constexpr (std::is_same_v<T, float>)
      return ElementType::F32;
    else if constexpr (std::is_same_v<T, double>)
      return ElementType::F64;
    else if constexpr (std::is_same_v<T, int32_t>)
      return ElementType::S32;
    else if constexpr (std::is_same_v<T, uint32_t>)
      return ElementType::U32;
    else
      return ElementType::U8;
  }
  template <class T>
  static std::vector<std::byte> bytes_of(const std::vector<T>& v) {
    std::vector<std::byte> b(v.size() * sizeof(T));
    if (!b.empty()) std::memcpy(b.data(), v.data(), b.size());
    return b;
  }
  std::string name_;
  device::LaunchConfig config_;
  std::vector<Parameter> params_;
};

/// What a comparison of all outputs found.
struct Comparison {
  uint64_t wrong = 0;         ///< elements
  uint64_t total = 0;         ///< elements
  std::string first;          ///< "out[3]: got poison, expected 7.25", up to three of them
  std::string changed_input;  ///< name of an input that the kernel changed, or empty
  bool right() const { return wrong == 0 && changed_input.empty(); }  ///< all as expected
};

/// One launch of one case.
struct KernelRun {
  const Case* test_case = nullptr;  ///< what was launched
  std::string device;               ///< "emulator" or "cuda"
  machine::Schedule schedule;       ///< emulator
  int repeat = 0;                   ///< GPU: which of the repeats
  device::LaunchResult result;      ///< what the device says
  Comparison outputs;               ///< valid if result.ok()
  std::string where() const;        ///< "nominal, n = 1000, 128 threads"
};

/// How GoogleTest prints a run.
void PrintTo(const KernelRun& run, std::ostream* os);

/// Compares what a launch left in its buffers (in order of the case's buffer parameters) with what it should have.
Comparison compare(const Case& test_case, const std::vector<std::vector<std::byte>>& buffers);

/// Base of every exercise's fixture.
class ExerciseTest : public ::testing::Test {
 public:
  /// The launches that the submission must get right, smallest first. Contents are random, from `seed`; never zeros.
  virtual std::vector<Case> cases(uint64_t seed) const = 0;

 protected:
  /// Every run on the device under test, nominal ones first.
  const std::vector<KernelRun>& runs();
  /// The nominal runs (emulator), or all repeats (GPU).
  std::vector<std::reference_wrapper<const KernelRun>> nominal_runs();
  /// The runs whose trace counts ordinary loads and stores too: the nominal ones. A GPU leaves no trace.
  std::vector<std::reference_wrapper<const KernelRun>> traced_runs();
  /// The PTX of the submission.
  const std::string& ptx() const;
  bool on_emulator() const;  ///< the device under test is the emulator

  // The three tests that every exercise has.
  void check_result();          ///< nominal runs give the expected outputs
  void check_every_schedule();  ///< all other runs do, too
  void check_no_hazards();      ///< no error-level diagnostic in any run
};

/// Uniform random numbers in [−8, 8) that are multiples of 1/64: sums and small products of them are exact in binary32.
std::vector<float> random_floats(size_t count, uint64_t seed);
/// Numbers of type bf16, as bits: multiples of 1/8 between -4 and 4, none of them 0. Sums of up to a thousand products
/// are exact in binary32, in whatever order they are added.
std::vector<uint16_t> random_bf16(size_t count, uint64_t seed);

// --- matchers over a KernelRun ---------------------------------------------------------------------------------------

/// The launch ended and every output is as expected.
::testing::Matcher<const KernelRun&> IsRight();
/// No error-level diagnostic.
::testing::Matcher<const KernelRun&> IsHazardFree();
/// Some diagnostic has this id, at this line if given (1-based).
::testing::Matcher<const KernelRun&> Reports(std::string id, uint32_t line = 0);
/// The trace's totals fulfil `predicate`; `wants` says what is asked ("4096 bytes a tile arrive by bulk copy"), `got`
/// what there was.
::testing::Matcher<const KernelRun&> Traced(const std::string& wants,
                                            std::function<bool(const trace::Trace&)> predicate,
                                            std::function<std::string(const trace::Trace&)> got);
/// Bulk copies wrote at least `bytes` of shared memory, and ordinary loads read at most `plain` bytes of global memory.
::testing::Matcher<const KernelRun&> LoadsByBulkCopy(uint64_t bytes, uint64_t plain = 0);
/// The bytes announced by expect_tx, the bytes counted by complete_tx and `bytes` are the same.
::testing::Matcher<const KernelRun&> BytesAddUp(uint64_t bytes);
/// At least `arrivals` threads' arrivals on mbarriers, `waits` threads whose wait answered true, and at most
/// `block_barriers` completed block-wide barriers a CTA.
::testing::Matcher<const KernelRun&> HandsOffByMbarrier(uint64_t arrivals, uint64_t waits, uint64_t block_barriers,
                                                        uint64_t ctas);
/// Warps access their own CTA's shared memory at least `accesses` times, and bank conflicts cost them at most `above`
/// wavefronts above the minimum.
::testing::Matcher<const KernelRun&> AvoidsBankConflicts(uint64_t above = 0, uint64_t accesses = 1);

// --- registration ----------------------------------------------------------------------------------------------------

/// Makes a test object, which GoogleTest then owns.
using TestFactory = std::function<ExerciseTest*()>;
/// Registers one test of an exercise, once for each kind of device ("04a/emulator", "04a/cuda"). Returns true.
bool register_test(const char* exercise, const char* name, const char* file, int line, const TestFactory& factory);

/// Defines a graded test: its points stand in exercise.toml under `NAME`.
#define HANDOFF_TEST(EXERCISE, FIXTURE, IDENT, NAME)                                                                  \
  namespace {                                                                                                         \
  class FIXTURE##_##IDENT : public FIXTURE {                                                                          \
    void TestBody() override;                                                                                         \
  };                                                                                                                  \
  [[maybe_unused]] const bool FIXTURE##_##IDENT##_registered =                                                        \
      ::handoff::harness::register_test(EXERCISE, NAME, __FILE__, __LINE__,                                           \
                                        []() -> ::handoff::harness::ExerciseTest* { return new FIXTURE##_##IDENT; }); \
  }                                                                                                                   \
  void FIXTURE##_##IDENT::TestBody()

/// result, every-schedule and no-hazards.
#define HANDOFF_STANDARD_TESTS(EXERCISE, FIXTURE)                                               \
  HANDOFF_TEST(EXERCISE, FIXTURE, result, "result") { check_result(); }                         \
  HANDOFF_TEST(EXERCISE, FIXTURE, every_schedule, "every-schedule") { check_every_schedule(); } \
  HANDOFF_TEST(EXERCISE, FIXTURE, no_hazards, "no-hazards") { check_no_hazards(); }

}  // namespace handoff::harness
