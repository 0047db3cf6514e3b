// Tested by certify_test.cc, as far as that goes without a GPU.
#include "grader/cli/certify_gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "grader/cli/submission.h"
#include "grader/conformance/compile.h"
#include "grader/emulator/machine/memory_access.h"
#include "grader/emulator/machine/random.h"
#include "grader/harness/exercise.h"
#include "grader/harness/process.h"

namespace handoff::cli {
namespace {

using device::MatmulResult;
using device::MatmulShape;
using Json = nlohmann::ordered_json;

constexpr uint32_t kTile = 128;                  // rows and columns of D that a block computes
constexpr uint32_t kTileK = 64;                  // columns of A and B in one K tile: 128 bytes, one swizzle panel
constexpr uint32_t kStageBytes = 2 * 128 * 128;  // a tile of A and a tile of B
constexpr double kLibraryPatience = 180;         // seconds: the library reads hundreds of MB of kernels from its file
constexpr int kLeastTimed = 10;                  // launches behind the warm-up: clocks rise during the first
constexpr int kWarmUp = 3;

float to_float(uint16_t bits, MatmulShape::Type type) {
  return type == MatmulShape::Type::Bf16 ? machine::bf16_to_float(bits) : machine::half_to_float(bits);
}

const char* name_of(MatmulShape::Type type) { return type == MatmulShape::Type::Bf16 ? "bf16" : "f16"; }

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double tflops(const MatmulShape& shape, const std::vector<double>& seconds) {
  const double typical = median(seconds);
  return typical > 0 ? shape.operations() / typical * 1e-12 : 0;
}

/// The operands of a product.
struct Operands {
  std::vector<uint16_t> a, b;
  explicit Operands(const MatmulShape& shape)
      : a(gemm_operand(size_t{shape.m} * shape.k, shape.type, 11)),
        b(gemm_operand(size_t{shape.n} * shape.k, shape.type, 12)) {}
};

Json shape_json(const MatmulShape& shape) {
  return {{"m", shape.m}, {"n", shape.n}, {"k", shape.k}, {"type", name_of(shape.type)}};
}

/// cuBLASLt's product in a child process, verified there, and compared there with `ours` unless that is empty:
/// {"problem", "library", "seconds", "tflops", "wrong", "differ"}. A child that hangs or crashes is a problem.
Json run_library(const harness::Toolchain& toolchain, const MatmulShape& shape, const Operands& operands,
                 const std::vector<float>& ours, int repeats) {
  harness::ProcessOptions process;
  process.timeout_s = kLibraryPatience;
  const std::string toolkit = toolchain.nvcc.parent_path().parent_path().string();
  const harness::ProcessResult child = harness::run_function(
      [&] {
        const MatmulResult r = device::multiply_with_cublaslt(shape, operands.a, operands.b, repeats,
                                                              device::cublaslt_candidates(toolkit));
        Json json = {{"problem", r.problem}, {"library", r.library}};
        if (!r.problem.empty()) return json.dump();
        json["seconds"] = r.seconds;
        json["tflops"] = tflops(shape, r.seconds);
        json["wrong"] = verify_product(shape, operands.a, operands.b, r.d, 21);
        size_t differ = 0;
        for (size_t i = 0; i < ours.size(); ++i) differ += ours[i] == r.d[i] ? 0 : 1;
        json["differ"] = differ;
        return json.dump(-1, ' ', false, Json::error_handler_t::replace);
      },
      process);
  Json json = child.ok() ? Json::parse(child.output, nullptr, /*allow_exceptions=*/false) : Json();
  if (json.is_object()) return json;
  return {{"problem", "cuBLASLt's process " + harness::describe_failure(child)}, {"library", ""}};
}

/// What our kernel did.
struct Run {
  std::string problem;
  std::vector<float> d;
  std::vector<double> seconds;
};

/// A map over an operand of `rows` rows: boxes of 64 columns and 128 rows, in the 128-byte swizzle.
device::TensorMapArgs map_over(device::DevicePtr address, const MatmulShape& shape, uint32_t rows) {
  device::TensorMapArgs args;
  args.tensor_data_type =
      shape.type == MatmulShape::Type::Bf16 ? device::TensorDataType::Bfloat16 : device::TensorDataType::Float16;
  args.tensor_rank = 2;
  args.global_address = address;
  args.global_dim = {shape.k, rows};
  args.global_strides = {uint64_t{shape.k} * sizeof(uint16_t)};
  args.box_dim = {kTileK, kTile};
  args.element_strides = {1, 1};
  args.swizzle = device::TensorSwizzle::B128;
  return args;
}

/// Places an operand and encodes its map.
device::Error place(device::Device& gpu, const std::vector<uint16_t>& operand, const MatmulShape& shape, uint32_t rows,
                    std::vector<device::Argument>* arguments) {
  device::DevicePtr at = 0;
  std::array<std::byte, 128> map{};
  if (device::Error e = gpu.allocate(operand.size() * sizeof(uint16_t), &at)) return e;
  if (device::Error e = gpu.write(at, std::as_bytes(std::span(operand)))) return e;
  if (device::Error e = gpu.encode_tensor_map(map_over(at, shape, rows), &map)) return e;
  arguments->push_back(device::Argument::bytes_of(map));
  return {};
}

Run run_kernel(device::Device& gpu, const std::string& entry, const GemmKernel& kernel, const MatmulShape& shape,
               const Operands& operands, int repeats) {
  Run run;
  device::DevicePtr d = 0;
  std::vector<device::Argument> arguments;
  run.d.resize(size_t{shape.m} * shape.n);
  device::Error error = place(gpu, operands.a, shape, shape.m, &arguments);
  if (!error) error = place(gpu, operands.b, shape, shape.n, &arguments);
  if (!error) error = gpu.allocate(run.d.size() * sizeof(float), &d);
  if (error) {
    run.problem = error.message;
    return run;
  }
  arguments.push_back(device::Argument::pointer(d));
  arguments.push_back(device::Argument::value(static_cast<int32_t>(shape.n)));
  arguments.push_back(device::Argument::value(static_cast<int32_t>(shape.k / kTileK)));
  // ptx::element of exercises/include/descriptors.cuh
  arguments.push_back(device::Argument::value(uint32_t{shape.type == MatmulShape::Type::Bf16 ? 1U : 0U}));
  if (kernel.passes_stages) arguments.push_back(device::Argument::value(static_cast<int32_t>(kernel.stages)));
  device::LaunchConfig config;
  config.grid = {shape.n / kTile, shape.m / kTile, 1};
  config.block = {kernel.threads, 1, 1};
  config.dynamic_smem = kernel.stages * kStageBytes;
  config.trace = config.check = false;
  for (int i = 0; i < kWarmUp + repeats; ++i) {
    const device::LaunchResult launched = gpu.launch(entry, config, arguments);
    if (!launched.ok()) {
      run.problem = launched.message;
      return run;
    }
    if (i >= kWarmUp) run.seconds.push_back(launched.seconds);
  }
  run.problem = gpu.read(std::as_writable_bytes(std::span(run.d)), d).message;
  return run;
}

/// A result with one line, and what is known so far.
CertifyResult finding(CertifyOutcome outcome, std::string message, int repeats, Json record) {
  CertifyResult result;
  result.outcome = outcome;
  result.message = std::move(message);
  result.repeats = repeats;
  result.record = std::move(record);
  return result;
}

}  // namespace

std::vector<GemmKernel> gemm_kernels() {
  return {{"11a", 128, 1}, {"12a", 128, 2}, {"13a", 192, 4, true}, {"13a", 192, 6, true}};
}

std::vector<uint16_t> gemm_operand(size_t count, MatmulShape::Type type, uint64_t seed) {
  std::vector<uint16_t> bits = harness::random_bf16(count, seed);
  if (type == MatmulShape::Type::Bf16) return bits;
  for (uint16_t& b : bits) b = machine::float_to_half(machine::bf16_to_float(b));
  return bits;
}

std::string verify_product(const MatmulShape& shape, std::span<const uint16_t> a, std::span<const uint16_t> b,
                           std::span<const float> d, uint64_t seed) {
  constexpr int kVectors = 2;
  constexpr uint64_t kRange = 1000;
  machine::Random random{seed};
  // Every number here is a whole multiple of 1/64 below 2^53 / 64: sums in double are exact.
  for (int vector = 0; vector < kVectors; ++vector) {
    std::vector<double> x(shape.n), bx(shape.k);
    for (double& v : x) v = static_cast<double>(random.below(kRange)) + 1;
    for (uint32_t n = 0; n < shape.n; ++n) {
      for (uint32_t k = 0; k < shape.k; ++k) bx[k] += to_float(b[size_t{n} * shape.k + k], shape.type) * x[n];
    }
    for (uint32_t m = 0; m < shape.m; ++m) {
      double got = 0, expected = 0;
      for (uint32_t n = 0; n < shape.n; ++n) got += d[size_t{m} * shape.n + n] * x[n];
      for (uint32_t k = 0; k < shape.k; ++k) expected += to_float(a[size_t{m} * shape.k + k], shape.type) * bx[k];
      if (!(got == expected)) return fmt::format("row {} of the product is wrong", m);  // also where it is a NaN
    }
  }
  return "";
}

CertifyResult certify_cublaslt(const harness::Toolchain& toolchain, const MatmulShape& shape, int repeats) {
  const int timed = std::max(repeats, kLeastTimed);
  const Json library = run_library(toolchain, shape, Operands(shape), {}, timed);
  const std::string problem = library.at("problem");
  Json record = shape_json(shape);
  record["cublaslt"] = library;
  // Nothing of ours fails where the library is not there.
  if (library.at("library").get<std::string>().empty())
    return finding(CertifyOutcome::Skipped, "not compared: " + problem, 0, record);
  if (!problem.empty()) return finding(CertifyOutcome::Failed, problem, 0, record);
  const std::string wrong = library.at("wrong");
  if (!wrong.empty()) return finding(CertifyOutcome::Failed, "cuBLASLt: " + wrong, timed, record);
  const double speed = library.at("tflops");
  return finding(CertifyOutcome::Passed, fmt::format("cuBLASLt {:.0f} TFLOPS", speed), timed, record);
}

CertifyResult certify_gemm(device::Device& gpu, const harness::Toolchain& toolchain,
                           const harness::ExerciseInfo& exercise, const GemmKernel& kernel, const MatmulShape& shape,
                           int repeats) {
  const int timed = std::max(repeats, kLeastTimed);
  Json record = shape_json(shape);
  record["stages"] = kernel.stages;
  const auto failed = [&](const std::string& why) { return finding(CertifyOutcome::Failed, why, timed, record); };
  harness::CompileOptions options;
  options.target = conformance::target_of(gpu);
  options.want_cubin = true;
  options.kernel = exercise.kernel;
  options.include_dir = include_folder();
  const harness::CompileResult compiled = harness::compile(toolchain, exercise.solution, options);
  if (!compiled.ok) return failed(compiled.error);
  if (const device::Error e = gpu.load({exercise.solution.filename().string(), compiled.ptx, compiled.cubin}))
    return failed(e.message);

  const Operands operands(shape);
  const Run run = run_kernel(gpu, exercise.kernel, kernel, shape, operands, timed);
  record["seconds"] = run.seconds;
  record["tflops"] = tflops(shape, run.seconds);
  if (!run.problem.empty()) return failed(run.problem);
  if (const std::string wrong = verify_product(shape, operands.a, operands.b, run.d, 22); !wrong.empty())
    return failed(wrong);

  const Json library = run_library(toolchain, shape, operands, run.d, timed);
  record["cublaslt"] = library;
  const double ours = record.at("tflops");
  if (const std::string problem = library.at("problem"); !problem.empty()) {
    return finding(CertifyOutcome::Passed, fmt::format("{:.0f} TFLOPS, not compared: {}", ours, problem), timed,
                   record);
  }
  if (const size_t differ = library.at("differ"); differ > 0)
    return failed(fmt::format("{} of {} elements differ from cuBLASLt's", differ, run.d.size()));
  const double theirs = library.at("tflops");
  record["ratio"] = theirs > 0 ? ours / theirs : 0;
  return finding(
      CertifyOutcome::Passed,
      fmt::format("{:.0f} TFLOPS, cuBLASLt {:.0f}: {:.0f} %", ours, theirs, theirs > 0 ? ours / theirs * 100 : 0),
      timed, record);
}

}  // namespace handoff::cli
