// How fast a whole product is emulated: the solution of 13a from its kept PTX, launch only, nominal schedule, one core.
//
// The operands are random multiples of 1/8 below 4, so that every sum is exact in binary32. The result is verified with
// a random vector r (Freivalds): D·r and A·(Bᵀ·r), in integers, must agree in every row. A wrong element is missed with
// a chance of one in a thousand; the exercise's own harness compares every element of smaller products.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "grader/bench/failure.h"
#include "grader/device/device.h"
#include "grader/emulator/machine/memory_access.h"

namespace handoff::bench {
namespace {

constexpr uint32_t kTile = 128, kTileK = 64, kThreads = 192, kStages = 4;
constexpr uint32_t kStageBytes = 2 * kTile * kTileK * 2;
constexpr uint32_t kBf16 = 1;  // ptx::element

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// A square product of n x n x n on the emulator.
class Product {
 public:
  explicit Product(uint32_t n) : n_(n), device_(device::make_emulated_device()) {
    device::ModuleImage image{"kernel.ptx", read_file(HANDOFF_SOURCE_DIR "/solutions/13a-gemm-full-empty/kernel.ptx"),
                              ""};
    std::mt19937 random(n);
    a_ = random_eighths(random);
    b_ = random_eighths(random);
    error_ = device_->load(image).message;
    if (error_.empty()) error_ = place(a_, &map_a_);
    if (error_.empty()) error_ = place(b_, &map_b_);
    if (error_.empty()) error_ = device_->allocate(size_t{n} * n * sizeof(float), &d_).message;
  }
  /// One line; empty if all is well.
  const std::string& error() const { return error_; }

  /// Launches the kernel. False if it failed.
  bool launch(bool check) {
    device::LaunchConfig config;
    config.grid = {n_ / kTile, n_ / kTile, 1};
    config.block = {kThreads, 1, 1};
    config.dynamic_smem = kStages * kStageBytes;
    config.check = check;
    config.trace = false;
    using device::Argument;
    const std::vector<Argument> arguments = {Argument::bytes_of(map_a_),
                                             Argument::bytes_of(map_b_),
                                             Argument::pointer(d_),
                                             Argument::value(int32_t(n_)),
                                             Argument::value(int32_t(n_ / kTileK)),
                                             Argument::value(kBf16),
                                             Argument::value(int32_t(kStages))};
    const device::LaunchResult result = device_->launch("gemm_full_empty", config, arguments);
    if (!result.ok()) error_ = result.message;
    if (!result.diagnostics.empty()) error_ = result.diagnostics.front().id + ": " + result.diagnostics.front().message;
    return error_.empty();
  }

  /// Whether D is the product.
  void verify() {
    std::vector<float> d(size_t{n_} * n_);
    if (const device::Error e = device_->read(std::as_writable_bytes(std::span(d)), d_); e) {
      error_ = e.message;
      return;
    }
    std::mt19937 random(4711);
    std::vector<int64_t> r(n_), b_r(n_);
    for (int64_t& x : r) x = static_cast<int64_t>(random() % 1024);
    for (uint32_t column = 0; column < n_; column++) {
      for (uint32_t k = 0; k < n_; k++) b_r[k] += b_[size_t{column} * n_ + k] * r[column];
    }
    for (uint32_t row = 0; row < n_; row++) {
      int64_t expected = 0, got = 0;  // in sixty-fourths
      for (uint32_t k = 0; k < n_; k++) expected += a_[size_t{row} * n_ + k] * b_r[k];
      for (uint32_t column = 0; column < n_; column++) {
        got += static_cast<int64_t>(d[size_t{row} * n_ + column] * 64) * r[column];
      }
      if (got == expected) continue;
      error_ = fmt::format("row {} of the product is wrong", row);
      return;
    }
  }

 private:
  std::vector<int8_t> random_eighths(std::mt19937& random) const {
    std::vector<int8_t> x(size_t{n_} * n_);
    for (int8_t& e : x) e = static_cast<int8_t>(static_cast<int>(random() % 63) - 31);
    return x;
  }
  std::string place(const std::vector<int8_t>& eighths, std::array<std::byte, 128>* map) {
    std::vector<uint16_t> bits;
    bits.reserve(eighths.size());
    for (const int8_t e : eighths) bits.push_back(machine::float_to_bf16(static_cast<float>(e) / 8));
    device::DevicePtr at = 0;
    if (const device::Error e = device_->allocate(bits.size() * 2, &at); e) return e.message;
    if (const device::Error e = device_->write(at, std::as_bytes(std::span(bits))); e) return e.message;
    device::TensorMapArgs args;
    args.tensor_data_type = device::TensorDataType::Bfloat16;
    args.tensor_rank = 2;
    args.global_address = at;
    args.global_dim = {n_, n_};
    args.global_strides = {uint64_t{n_} * 2};
    args.box_dim = {kTileK, kTile};
    args.swizzle = device::TensorSwizzle::B128;
    return device_->encode_tensor_map(args, map).message;
  }

  uint32_t n_;
  std::unique_ptr<device::Device> device_;
  std::vector<int8_t> a_, b_;
  std::array<std::byte, 128> map_a_ = {}, map_b_ = {};
  device::DevicePtr d_ = 0;
  std::string error_;
};

/// range(0): m, n and k.
void gemm(benchmark::State& state, bool check) {
  const auto n = static_cast<uint32_t>(state.range(0));
  Product product(n);
  for (auto _ : state) {
    if (product.error().empty()) product.launch(check);
  }
  if (product.error().empty()) product.verify();
  if (!product.error().empty()) fail(state, product.error());
  state.counters["flops"] = benchmark::Counter(2.0 * n * n * n, benchmark::Counter::kIsIterationInvariantRate,
                                               benchmark::Counter::OneK::kIs1000);
}

BENCHMARK_CAPTURE(gemm, alone, false)->Arg(1024)->Arg(4096)->Unit(benchmark::kSecond)->Iterations(1);
BENCHMARK_CAPTURE(gemm, check, true)->Arg(1024)->Unit(benchmark::kSecond)->Iterations(1);

}  // namespace
}  // namespace handoff::bench
