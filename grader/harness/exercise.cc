#include "grader/harness/exercise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <regex>

#include "grader/emulator/machine/memory.h"
#include "grader/emulator/machine/memory_access.h"
#include "grader/emulator/machine/random.h"
#include "grader/harness/session.h"

namespace handoff::harness {
namespace {

Session* g_session = nullptr;

size_t element_size(ElementType t) { return t == ElementType::F64 ? 8 : t == ElementType::U8 ? 1 : 4; }

template <class T>
T read_as(const std::byte* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

bool is_poison(const std::byte* p, size_t bytes) {
  return std::all_of(p, p + bytes, [](std::byte b) { return b == static_cast<std::byte>(machine::kPoison); });
}

std::string print_element(ElementType t, const std::byte* p) {
  switch (t) {
    case ElementType::F32:
      return fmt::format("{:g}", read_as<float>(p));
    case ElementType::F64:
      return fmt::format("{:g}", read_as<double>(p));
    case ElementType::S32:
      return fmt::format("{}", read_as<int32_t>(p));
    case ElementType::U32:
      return fmt::format("{}", read_as<uint32_t>(p));
    case ElementType::U8:
      return fmt::format("{}", read_as<uint8_t>(p));
  }
  return {};
}

/// As print_element, for what a kernel left behind: all bits set in an output is what the harness wrote before the
/// launch. −1 is an honest integer.
std::string print_output(ElementType t, const std::byte* p) {
  return t != ElementType::S32 && is_poison(p, element_size(t)) ? "poison" : print_element(t, p);
}

template <class T>
bool close(const std::byte* a, const std::byte* b, double tolerance) {
  const auto x = static_cast<double>(read_as<T>(a)), y = static_cast<double>(read_as<T>(b));
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y) && !is_poison(a, sizeof(T));
  // An infinity is within any relative tolerance of nothing but itself.
  if (tolerance == 0 || std::isinf(x) || std::isinf(y)) return x == y;
  return std::abs(x - y) <= tolerance * std::max(std::abs(y), 1.0);
}

bool same(ElementType t, const std::byte* got, const std::byte* expected, double tolerance) {
  switch (t) {
    case ElementType::F32:
      return close<float>(got, expected, tolerance);
    case ElementType::F64:
      return close<double>(got, expected, tolerance);
    default:
      return std::memcmp(got, expected, element_size(t)) == 0;
  }
}

}  // namespace

Session* current_session() { return g_session; }
void set_current_session(Session* session) { g_session = session; }

Case& Case::grid(uint32_t x, uint32_t y, uint32_t z) {
  config_.grid = {x, y, z};
  return *this;
}
Case& Case::block(uint32_t x, uint32_t y, uint32_t z) {
  config_.block = {x, y, z};
  return *this;
}
Case& Case::dynamic_smem(uint32_t bytes) {
  config_.dynamic_smem = bytes;
  return *this;
}

Case& Case::only_by_map() {
  if (!params_.empty() && params_.back().is_buffer) params_.back().is_passed = false;
  return *this;
}
Case& Case::tensor_map(std::string name, std::string buffer, const device::TensorMapArgs& args) {
  Parameter p;
  p.name = std::move(name);
  p.buffer = std::move(buffer);
  p.map = args;
  params_.push_back(std::move(p));
  return *this;
}

Case& Case::tensor_map_from(std::string name, std::string symbol, std::string buffer) {
  Parameter p;
  p.name = std::move(name);
  p.buffer = std::move(buffer);
  p.symbol = std::move(symbol);
  params_.push_back(std::move(p));
  return *this;
}

std::string KernelRun::where() const {
  std::string s = device == "emulator" ? machine::to_string(schedule)
                  : repeat == 0        ? std::string("GPU")
                                       : fmt::format("GPU, run {}", repeat + 1);
  if (test_case != nullptr) s += ", " + test_case->name();
  return s;
}

void PrintTo(const KernelRun& run, std::ostream* os) { *os << '[' << run.where() << ']'; }

Comparison compare(const Case& test_case, const std::vector<std::vector<std::byte>>& buffers) {
  Comparison c;
  size_t index = 0;
  int shown = 0;
  for (const Parameter& p : test_case.parameters()) {
    if (!p.is_buffer) continue;
    const std::vector<std::byte>& got = buffers[index++];
    if (!p.is_output) {
      if (got != p.initial && c.changed_input.empty()) c.changed_input = p.name;
      continue;
    }
    const size_t size = element_size(p.type);
    for (size_t k = 0; k * size < p.expected.size(); k++) {
      c.total++;
      if (same(p.type, &got[k * size], &p.expected[k * size], p.tolerance)) continue;
      c.wrong++;
      if (shown++ < 3) {
        if (!c.first.empty()) c.first += "; ";
        c.first += fmt::format("{}[{}]: got {}, expected {}", p.name, k, print_output(p.type, &got[k * size]),
                               print_element(p.type, &p.expected[k * size]));
      }
    }
  }
  return c;
}

std::vector<machine::Schedule> schedules_for(const GradeOptions& options) {
  using Kind = machine::Schedule::Kind;
  if (options.schedule != "all") {
    const Kind kind = machine::schedule_from_string(options.schedule).value_or(Kind::Nominal);
    return {{kind, options.seed.value_or(kind == Kind::Random ? 1 : 0)}};
  }
  std::vector<machine::Schedule> all = {{Kind::Nominal, 0}, {Kind::Lazy, 0}, {Kind::Eager, 0}, {Kind::Reverse, 0}};
  const uint64_t first = options.seed.value_or(1);
  for (uint64_t k = 0; k < 4; k++) all.push_back({Kind::Random, first + k});
  return all;
}

namespace {

/// A buffer of a case on the device.
struct Buffer {
  const Parameter* parameter;
  device::DevicePtr at;
  size_t bytes;
};

/// Fresh memory for every buffer of a case, filled.
device::Error place_buffers(device::Device& device, const Case& test_case, std::vector<Buffer>* buffers) {
  for (const Parameter& p : test_case.parameters()) {
    if (!p.is_buffer) continue;
    const size_t bytes = p.is_output ? p.expected.size() : p.initial.size();
    device::DevicePtr at = 0;
    if (device::Error e = device.allocate(bytes, &at)) return e;
    device.name_allocation(at, p.name);
    const std::vector<std::byte> poison(p.is_output ? bytes : 0, static_cast<std::byte>(machine::kPoison));
    if (device::Error e = device.write(at, p.is_output ? poison : p.initial)) return e;
    buffers->push_back({&p, at, bytes});
  }
  return {};
}

/// TensorMapArguments of exercises/include/tensor_map.cuh, as nvcc lays it out in a module.
struct TensorMapSymbol {
  uint32_t tensor_data_type, tensor_rank;
  uint64_t global_dim[5], global_strides[4];
  uint32_t box_dim[5], element_strides[5];
  uint32_t interleave, swizzle, l2_promotion, oob_fill;
};
static_assert(sizeof(TensorMapSymbol) == 136 && offsetof(TensorMapSymbol, box_dim) == 80 &&
              offsetof(TensorMapSymbol, interleave) == 120);

/// The arguments in the submission's constant `symbol`, as they are: the encoder checks them.
device::Error read_map_arguments(device::Device& device, const std::string& symbol, device::TensorMapArgs* args) {
  std::array<std::byte, sizeof(TensorMapSymbol)> bytes{};
  if (const device::Error e = device.read_symbol(symbol, bytes)) {
    return {fmt::format("{}; the tensor map is made of `extern \"C\" __constant__ TensorMapArguments {}`", e.message,
                        symbol)};
  }
  const auto from = std::bit_cast<TensorMapSymbol>(bytes);
  args->tensor_data_type = static_cast<device::TensorDataType>(from.tensor_data_type);
  args->tensor_rank = from.tensor_rank;
  std::copy(std::begin(from.global_dim), std::end(from.global_dim), args->global_dim.begin());
  std::copy(std::begin(from.global_strides), std::end(from.global_strides), args->global_strides.begin());
  std::copy(std::begin(from.box_dim), std::end(from.box_dim), args->box_dim.begin());
  std::copy(std::begin(from.element_strides), std::end(from.element_strides), args->element_strides.begin());
  args->interleave = static_cast<device::TensorInterleave>(from.interleave);
  args->swizzle = static_cast<device::TensorSwizzle>(from.swizzle);
  args->l2_promotion = static_cast<device::TensorL2Promotion>(from.l2_promotion);
  args->oob_fill = static_cast<device::TensorOobFill>(from.oob_fill);
  return {};
}

/// Where the submission sets the field of its constant `symbol` that `refusal` begins with ("boxDim[0] is 3: …"): the
/// line that names the field, else that of the constant; line 0 where neither is found. PTX has no lines of variables,
/// so this reads the source.
SourcePlace place_of_field(const std::filesystem::path& submission, const std::string& symbol,
                           const std::string& refusal) {
  static const std::regex first_word("[A-Za-z0-9]+");
  std::smatch field;
  std::regex_search(refusal, field, first_word);
  const std::regex defines("\\b" + symbol + R"(\s*(=|\{))"), sets("\\b" + field.str() + "\\b");
  SourcePlace place{submission.filename().string(), 0};
  std::ifstream source(submission);
  uint32_t number = 0;
  for (std::string line; std::getline(source, line);) {
    number++;
    const std::string code = line.substr(0, line.find("//"));
    if (place.line == 0 && std::regex_search(code, defines)) place.line = number;
    if (place.line != 0 && std::regex_search(code, sets)) return {place.file, number};
    if (place.line != 0 && code.find("};") != std::string::npos) break;
  }
  return place;
}

/// The map of a parameter, over its buffer. A refusal is told as a diagnostic too: the arguments may be the learner's.
device::Error encode_map(device::Device& device, const Session& session, const Parameter& p,
                         const std::vector<Buffer>& buffers, std::array<std::byte, 128>* image,
                         std::vector<Diagnostic>* diagnostics) {
  const auto over =
      std::find_if(buffers.begin(), buffers.end(), [&p](const Buffer& b) { return b.parameter->name == p.buffer; });
  if (over == buffers.end()) return {fmt::format("tensor map `{}`: the case has no buffer `{}`", p.name, p.buffer)};
  device::TensorMapArgs args;
  if (p.map) args = *p.map;
  if (!p.symbol.empty()) {
    if (device::Error e = read_map_arguments(device, p.symbol, &args)) return e;
  }
  args.global_address += over->at;
  device::Error refused = device.encode_tensor_map(args, image);
  constexpr std::string_view kRefusal = "cuTensorMapEncodeTiled: ";
  if (!refused.message.starts_with(kRefusal)) return refused;  // none, or it is not the arguments' fault
  Diagnostic d;
  d.id = "bad-tensor-map";
  if (p.symbol.empty()) {
    d.message = fmt::format("tensor map `{}` over `{}`: {}", p.name, p.buffer, refused.message);
  } else {
    const std::string rule = refused.message.substr(kRefusal.size());
    d.message = fmt::format("cuTensorMapEncodeTiled refuses `{}`: {}", p.symbol, rule);
    d.place = place_of_field(session.submission, p.symbol, rule);
  }
  diagnostics->push_back(d);
  return {d.message};
}

/// The kernel's arguments, in order.
device::Error make_arguments(device::Device& device, const Session& session, const Case& test_case,
                             const std::vector<Buffer>& buffers, std::vector<device::Argument>* args,
                             std::vector<Diagnostic>* diagnostics) {
  auto buffer = buffers.begin();
  for (const Parameter& p : test_case.parameters()) {
    if (p.is_buffer) {
      if (p.is_passed) args->push_back(device::Argument::pointer(buffer->at));
      ++buffer;
    } else if (p.is_map()) {
      std::array<std::byte, 128> image;
      if (device::Error e = encode_map(device, session, p, buffers, &image, diagnostics)) return e;
      args->push_back(device::Argument::bytes_of(image));
    } else {
      args->push_back(device::Argument::bytes_of(p.value));
    }
  }
  return {};
}

/// Launches one case; buffers are fresh each time.
KernelRun run_once(device::Device& device, const Session& session, const Case& test_case,
                   const machine::Schedule& schedule, bool trace) {
  KernelRun run;
  run.test_case = &test_case;
  run.device = device.kind();
  run.schedule = schedule;
  std::vector<device::Argument> args;
  std::vector<Buffer> buffers;
  device::Error error = place_buffers(device, test_case, &buffers);
  if (!error) error = make_arguments(device, session, test_case, buffers, &args, &run.result.diagnostics);
  if (error) {
    run.result.status = device::LaunchResult::Status::Error;
    run.result.message = error.message;
    return run;
  }
  device::LaunchConfig config = test_case.config();
  config.schedule = schedule;
  config.trace = trace;
  run.result = device.launch(session.exercise->kernel, config, args);
  if (run.result.ok()) {
    std::vector<std::vector<std::byte>> contents;
    for (const Buffer& b : buffers) {
      contents.emplace_back(b.bytes);
      if (device::Error e = device.read(contents.back(), b.at); e) {
        run.result.status = device::LaunchResult::Status::Error;
        run.result.message = e.message;
        break;
      }
    }
    if (run.result.ok()) run.outputs = compare(test_case, contents);
  }
  if (run.result.ok()) {
    for (const Buffer& b : buffers) device.free(b.at);
  }
  return run;
}

device::Error load(device::Device& device, const Session& session) {
  const CompileResult& compiled = device.kind() == "cuda" ? session.for_gpu : *session.compiled;
  return device.load({session.submission.filename().string(), compiled.ptx, compiled.cubin});
}

}  // namespace

Session::Results run_cases(device::Device& device, const Session& session, std::vector<Case> cases) {
  Session::Results results;
  results.cases = std::move(cases);
  if (device::Error e = load(device, session); e) {
    results.error = e.message;
    return results;
  }
  device::KernelInfo info;
  if (device::Error e = device.find_kernel(session.exercise->kernel, &info); e) {
    results.error = e.message;
    return results;
  }
  const bool emulator = device.kind() == "emulator";
  std::vector<machine::Schedule> schedules =
      emulator ? schedules_for(session.options)
               : std::vector<machine::Schedule>(static_cast<size_t>(std::max(session.options.repeats, 1)));
  for (size_t s = 0; s < schedules.size() && !results.nominal_failed; s++) {
    for (const Case& c : results.cases) {
      KernelRun run = run_once(device, session, c, schedules[s], emulator && s == 0);
      run.repeat = static_cast<int>(s);
      const bool bad = !run.result.ok() || !run.outputs.right();
      const bool dead = !run.result.ok();
      results.runs.push_back(std::move(run));
      if (s == 0 && bad) results.nominal_failed = true;
      if (dead) {
        // A device that was killed or faulted starts again with the module; a refused launch will not get better.
        if (device::Error e = load(device, session); e) results.error = e.message;
        break;
      }
    }
    if (!results.error.empty()) break;
  }
  return results;
}

const std::vector<KernelRun>& ExerciseTest::runs() {
  const std::string kind = on_emulator() ? "emulator" : "cuda";
  Session& session = *current_session();
  auto found = session.results.find(kind);
  if (found == session.results.end()) {
    const uint64_t seed = session.options.seed.value_or(0) * 0x9e3779b97f4a7c15ull + 20240607;
    found = session.results.emplace(kind, run_cases(*session.devices.at(kind), session, cases(seed))).first;
  }
  // Tests that look at no run at all would otherwise pass.
  if (!found->second.error.empty()) ADD_FAILURE() << found->second.error;
  return found->second.runs;
}

std::vector<std::reference_wrapper<const KernelRun>> ExerciseTest::nominal_runs() {
  std::vector<std::reference_wrapper<const KernelRun>> list;
  const std::vector<KernelRun>& all = runs();
  for (const KernelRun& r : all) {
    if (!on_emulator() ||
        (r.schedule.kind == all.front().schedule.kind && r.schedule.seed == all.front().schedule.seed))
      list.emplace_back(r);
  }
  return list;
}

std::vector<std::reference_wrapper<const KernelRun>> ExerciseTest::traced_runs() { return nominal_runs(); }

const std::string& ExerciseTest::ptx() const {
  return on_emulator() ? current_session()->compiled->ptx : current_session()->for_gpu.ptx;
}

bool ExerciseTest::on_emulator() const {
  const char* suite = ::testing::UnitTest::GetInstance()->current_test_info()->test_suite_name();
  return std::string_view(suite).ends_with("/emulator");
}

void ExerciseTest::check_result() {
  for (const KernelRun& run : nominal_runs()) EXPECT_THAT(run, IsRight());
}
void ExerciseTest::check_every_schedule() {
  const std::vector<KernelRun>& all = runs();
  if (!on_emulator()) GTEST_SKIP() << "schedules exist on the emulator only";
  if (current_session()->results.at("emulator").nominal_failed) GTEST_SKIP() << "nominal failed";
  for (const KernelRun& run : all) EXPECT_THAT(run, IsRight());
}
void ExerciseTest::check_no_hazards() {
  for (const KernelRun& run : runs()) EXPECT_THAT(run, IsHazardFree());
}

std::vector<float> random_floats(size_t count, uint64_t seed) {
  machine::Random random{seed};
  std::vector<float> v(count);
  for (float& x : v) {
    const auto k = static_cast<int32_t>(random.below(1024)) - 512;
    x = static_cast<float>(k == 0 ? 1 : k) / 64.0f;
  }
  return v;
}

std::vector<uint16_t> random_bf16(size_t count, uint64_t seed) {
  std::vector<uint16_t> bits;
  bits.reserve(count);
  for (const float x : random_floats(count, seed)) {
    const int eighths = static_cast<int>(x * 64) % 32;
    bits.push_back(machine::float_to_bf16(static_cast<float>(eighths == 0 ? 9 : eighths) / 8.0f));
  }
  return bits;
}

// --- matchers --------------------------------------------------------------------------------------------------------

namespace {

/// A matcher from a function that returns an empty string if all is well, else what was found.
class RunMatcher : public ::testing::MatcherInterface<const KernelRun&> {
 public:
  RunMatcher(std::string wants, std::function<std::string(const KernelRun&)> problem)
      : wants_(std::move(wants)), problem_(std::move(problem)) {}
  bool MatchAndExplain(const KernelRun& run, ::testing::MatchResultListener* listener) const override {
    const std::string p = problem_(run);
    *listener << p;
    return p.empty();
  }
  void DescribeTo(std::ostream* os) const override { *os << wants_; }

 private:
  std::string wants_;
  std::function<std::string(const KernelRun&)> problem_;
};

::testing::Matcher<const KernelRun&> make(std::string wants, std::function<std::string(const KernelRun&)> problem) {
  return ::testing::Matcher<const KernelRun&>(new RunMatcher(std::move(wants), std::move(problem)));
}

std::string not_run(const KernelRun& run) {
  if (run.result.ok()) return {};
  return run.result.status == device::LaunchResult::Status::Hang
             ? fmt::format("the launch hangs: {}", run.result.message)
             : run.result.message;
}

}  // namespace

::testing::Matcher<const KernelRun&> IsRight() {
  return make("ends with the expected outputs", [](const KernelRun& run) -> std::string {
    if (!run.result.ok()) return not_run(run);
    if (!run.outputs.changed_input.empty())
      return fmt::format("the kernel changed its input `{}`", run.outputs.changed_input);
    if (run.outputs.right()) return {};
    return fmt::format("{} of {} elements wrong, first at {}", run.outputs.wrong, run.outputs.total, run.outputs.first);
  });
}

::testing::Matcher<const KernelRun&> IsHazardFree() {
  return make("has no error-level diagnostic", [](const KernelRun& run) -> std::string {
    for (const Diagnostic& d : run.result.diagnostics) {
      if (d.severity == Severity::Error) return fmt::format("{} at line {}", d.id, d.place.line);
    }
    return run.result.ok() ? std::string() : not_run(run);
  });
}

::testing::Matcher<const KernelRun&> Reports(std::string id, uint32_t line) {
  return make(fmt::format("reports {} at line {}", id, line), [id, line](const KernelRun& run) -> std::string {
    std::string seen;
    for (const Diagnostic& d : run.result.diagnostics) {
      if (d.id == id && (line == 0 || d.place.line == line)) return {};
      seen += fmt::format("{}{} @ {}", seen.empty() ? "" : ", ", d.id, d.place.line);
    }
    return seen.empty() ? "nothing was reported" : "reported: " + seen;
  });
}

::testing::Matcher<const KernelRun&> Traced(const std::string& wants,
                                            std::function<bool(const trace::Trace&)> predicate,
                                            std::function<std::string(const trace::Trace&)> got) {
  return make(wants,
              [wants, predicate = std::move(predicate), got = std::move(got)](const KernelRun& run) -> std::string {
                if (!run.result.ok()) return "not judged: the launch did not end";
                if (predicate(run.result.trace)) return {};
                return fmt::format("{}; wanted: {}", got(run.result.trace), wants);
              });
}

::testing::Matcher<const KernelRun&> LoadsByBulkCopy(uint64_t bytes, uint64_t plain) {
  return Traced(
      plain == 0 ? fmt::format("all {} bytes by bulk copy", bytes)
                 : fmt::format("{} bytes by bulk copy and at most {} by ordinary loads", bytes, plain),
      [=](const trace::Trace& t) {
        return t.totals.bulk_bytes_to_shared >= bytes && t.totals.global_load_bytes + t.totals.cp_async_bytes <= plain;
      },
      [](const trace::Trace& t) {
        return fmt::format("{} bytes came by bulk copy, {} by ordinary loads, {} by cp.async",
                           t.totals.bulk_bytes_to_shared, t.totals.global_load_bytes, t.totals.cp_async_bytes);
      });
}

::testing::Matcher<const KernelRun&> BytesAddUp(uint64_t bytes) {
  return Traced(
      fmt::format("{} bytes announced, and as many arrived", bytes),
      [=](const trace::Trace& t) { return t.totals.expected_bytes == bytes && t.totals.completed_bytes == bytes; },
      [](const trace::Trace& t) {
        return fmt::format("{} bytes were announced by expect_tx, {} arrived", t.totals.expected_bytes,
                           t.totals.completed_bytes);
      });
}

::testing::Matcher<const KernelRun&> HandsOffByMbarrier(uint64_t arrivals, uint64_t waits, uint64_t block_barriers,
                                                        uint64_t ctas) {
  return Traced(
      fmt::format("at least {} arrivals on mbarriers, {} threads that saw a wait succeed, and at most {} block-wide "
                  "barrier{} in each block",
                  arrivals, waits, block_barriers, block_barriers == 1 ? "" : "s"),
      [=](const trace::Trace& t) {
        return t.totals.arrivals >= arrivals && t.totals.waits_true >= waits &&
               t.totals.block_barriers <= block_barriers * ctas;
      },
      [=](const trace::Trace& t) {
        return fmt::format("{} arrivals, {} threads whose wait succeeded, {} block-wide barriers in {} block{}",
                           t.totals.arrivals, t.totals.waits_true, t.totals.block_barriers, ctas, ctas == 1 ? "" : "s");
      });
}

::testing::Matcher<const KernelRun&> AvoidsBankConflicts(uint64_t above, uint64_t accesses) {
  return Traced(
      fmt::format("at least {} access{} of shared memory, which take at most {} wavefronts above the minimum", accesses,
                  accesses == 1 ? "" : "es", above),
      [=](const trace::Trace& t) {
        return t.totals.shared_accesses >= accesses && t.totals.shared_wavefronts - t.totals.shared_minimum <= above;
      },
      [](const trace::Trace& t) {
        const trace::Totals& n = t.totals;
        std::string got = fmt::format("{} accesses of shared memory take {} wavefronts, {} above the minimum",
                                      n.shared_accesses, n.shared_wavefronts, n.shared_wavefronts - n.shared_minimum);
        if (t.shared_lines.empty() || t.shared_lines.front().above() == 0) return got;
        const trace::SharedLine& worst = t.shared_lines.front();
        return got + fmt::format(", most of them at line {} ({}-way)", worst.place.line, worst.ways);
      });
}

bool register_test(const char* exercise, const char* name, const char* file, int line, const TestFactory& factory) {
  for (const char* device : {"emulator", "cuda"}) {
    ::testing::RegisterTest((std::string(exercise) + "/" + device).c_str(), name, nullptr, nullptr, file, line,
                            [factory]() -> ExerciseTest* { return factory(); });
  }
  return true;
}

}  // namespace handoff::harness
