// What is measured of a kernel, on the emulator and on a GPU that the emulator plays; tables, shortfalls, JSON.
#include "grader/timing/gpu_speed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace handoff::timing {
namespace {

using device::Error;
using testing::AllOf;
using testing::ElementsAre;
using testing::Eq;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(Median, IsTheMiddleOfTheSorted) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
}

TEST(StreamInput, IsExactAndUnlikeInEachTile) {
  std::set<float> seen;
  for (uint64_t i = 0; i < 100'000; ++i) {
    const float x = stream_input(i);
    ASSERT_EQ(x * 64, std::round(x * 64));
    ASSERT_GE(x, -8);
    ASSERT_LT(x, 8);
    seen.insert(x);
  }
  EXPECT_THAT(seen, SizeIs(1024));
  int alike = 0;
  for (uint64_t i = 0; i < 4096; ++i) alike += stream_input(i) == stream_input(i + 4096) ? 1 : 0;
  EXPECT_LT(alike, 20);
}

/// A GPU that the emulator plays: a modeled cycle is a nanosecond, and a copy takes 2 ms.
class PlayedGpu final : public device::GpuDevice {
 public:
  std::string_view kind() const override { return "cuda"; }
  std::string name() const override { return "played"; }
  int compute_capability() const override { return emulator_->compute_capability(); }
  bool has_tcgen05() const override { return emulator_->has_tcgen05(); }
  Error load(const device::ModuleImage& image) override {
    has_cubin = !image.cubin.empty();
    return emulator_->load(image);
  }
  Error find_kernel(std::string_view name, device::KernelInfo* info) override {
    return emulator_->find_kernel(name, info);
  }
  Error allocate(size_t bytes, device::DevicePtr* out) override { return emulator_->allocate(bytes, out); }
  Error free(device::DevicePtr p) override { return emulator_->free(p); }
  Error write(device::DevicePtr dst, std::span<const std::byte> bytes) override { return emulator_->write(dst, bytes); }
  Error read(std::span<std::byte> out, device::DevicePtr src) override {
    const Error e = emulator_->read(out, src);
    if (spoil) out[4 * 77] ^= std::byte{1};
    return e;
  }
  Error read_symbol(std::string_view name, std::span<std::byte> out) override {
    return emulator_->read_symbol(name, out);
  }
  Error encode_tensor_map(const device::TensorMapArgs& args, std::array<std::byte, 128>* out) override {
    return emulator_->encode_tensor_map(args, out);
  }
  device::LaunchResult launch(std::string_view kernel, const device::LaunchConfig& config,
                              std::span<const device::Argument> args) override {
    grids.push_back(config.grid.x);
    device::LaunchResult result = emulator_->launch(kernel, config, args);
    result.seconds = static_cast<double>(std::exchange(result.modeled_cycles, 0)) * 1e-9;
    return result;
  }
  Error occupancy(std::string_view, uint32_t threads, uint32_t, Occupancy* out) override {
    *out = {3, threads > 64 ? 0U : 2U};
    return {};
  }
  Error copy(device::DevicePtr dst, device::DevicePtr src, size_t bytes, double* seconds) override {
    copies.emplace_back(dst, src);
    *seconds = 2e-3;
    std::vector<std::byte> all(bytes);
    if (Error e = emulator_->read(all, src)) return e;
    return emulator_->write(dst, all);
  }

  bool spoil = false;           // a bit of what is read
  bool has_cubin = false;       // the module that was loaded last
  std::vector<uint32_t> grids;  // blocks of each launch
  std::vector<std::pair<device::DevicePtr, device::DevicePtr>> copies;

 private:
  std::unique_ptr<device::Device> emulator_ = device::make_emulated_device(machine::kH200);
};

/// Kernels that add `option`, a tile of 64 floats at a time.
class Streams : public testing::Test {
 protected:
  void SetUp() override {
    toolchain_ = harness::find_toolchain();
    if (!toolchain_.found()) GTEST_SKIP() << harness::missing_toolchain_message(toolchain_);
    file_ = std::filesystem::temp_directory_path() / ("handoff_gpu_speed_" + std::to_string(::getpid()) + ".cu");
    std::ofstream(file_) << R"(
extern "C" __global__ void add(const float* in, float* out, int tiles, int option) {
  for (int t = blockIdx.x; t < tiles; t += gridDim.x)
    for (int i = threadIdx.x; i < 64; i += blockDim.x) out[64 * t + i] = in[64 * t + i] + option;
}
extern "C" __global__ void add_slowly(const float* in, float* out, int tiles, int option) {
  for (int t = blockIdx.x; t < tiles; t += gridDim.x)
    for (int i = threadIdx.x; i < 64; i += blockDim.x) {
      __threadfence();
      out[64 * t + i] = in[64 * t + i] + option;
    }
}
extern "C" __global__ void outside(const float* in, float* out, int tiles, int option) { out[-64 * option] = 1; }
)";
  }
  void TearDown() override {
    std::error_code nothing;
    std::filesystem::remove(file_, nothing);
  }
  StreamKernel kernel(std::string entry, uint32_t threads = 64) const {
    return {"k", file_, std::move(entry), threads, 256, 0, 3};
  }

  harness::Toolchain toolchain_;
  std::filesystem::path file_;
  PlayedGpu gpu_;
};

constexpr BandwidthPlan kSmall{64 << 10, 1, 4};
constexpr TilePlan kFew{1 << 10, 16 << 10, 0, 3};

float plus_three(float x) { return x + 3; }

TEST_F(Streams, BandwidthIsMeasuredOnAFullGpu) {
  Bandwidth b;
  ASSERT_EQ(measure_bandwidth(gpu_, toolchain_, kernel("add"), plus_three, kSmall, &b), "");
  EXPECT_TRUE(gpu_.has_cubin);
  EXPECT_THAT(gpu_.grids, ElementsAre(6, 6, 6, 6, 6));
  EXPECT_THAT(gpu_.copies, SizeIs(5));
  EXPECT_THAT(b.kernel_seconds, SizeIs(4));
  EXPECT_EQ(b.wrong, 0U);
  EXPECT_DOUBLE_EQ(b.copy_rate(), 2 * 65536 / 2e-3);
  EXPECT_DOUBLE_EQ(b.kernel_rate(), 2 * 65536 / median(b.kernel_seconds));
  EXPECT_GT(b.kernel_seconds.front(), 0);
}

TEST_F(Streams, EveryElementOfTheOutputIsCompared) {
  Bandwidth b;
  ASSERT_EQ(measure_bandwidth(
                gpu_, toolchain_, kernel("add"), [](float x) { return x + 4; }, kSmall, &b),
            "");
  EXPECT_EQ(b.wrong, b.bytes / 4);
  gpu_.spoil = true;
  ASSERT_EQ(measure_bandwidth(gpu_, toolchain_, kernel("add"), plus_three, kSmall, &b), "");
  EXPECT_EQ(b.wrong, 1U);
  EXPECT_THAT(b.first_wrong, HasSubstr("element 77 is "));
}

TEST_F(Streams, WhatFailsIsSaid) {
  Bandwidth b;
  EXPECT_THAT(measure_bandwidth(gpu_, toolchain_, kernel("add", 128), plus_three, kSmall, &b),
              Eq("k: no block of it fits on this GPU"));
  EXPECT_THAT(measure_bandwidth(gpu_, toolchain_, kernel("outside"), plus_three, kSmall, &b),
              testing::StartsWith("k: "));
  TileCost cost;
  EXPECT_THAT(measure_tiles(gpu_, toolchain_, kernel("ad"), kFew, &cost), AllOf(HasSubstr("k: "), HasSubstr("ad")));
  StreamKernel missing = kernel("add");
  missing.file = "/nowhere/kernel.cu";
  EXPECT_THAT(measure_tiles(gpu_, toolchain_, missing, kFew, &cost), Eq("k: /nowhere/kernel.cu is not there"));
}

TEST_F(Streams, ATileCostsTheSameOnBothWherePlayedByTheModel) {
  const auto emulator = device::make_emulated_device(machine::kH200);
  TileCost chip, model, slow;
  ASSERT_EQ(measure_tiles(gpu_, toolchain_, kernel("add"), kFew, &chip), "");
  ASSERT_EQ(measure_tiles(*emulator, toolchain_, kernel("add"), kFew, &model), "");
  ASSERT_EQ(measure_tiles(*emulator, toolchain_, kernel("add_slowly"), kFew, &slow), "");
  EXPECT_EQ(model.tiles, 60U);
  EXPECT_THAT(chip.many, SizeIs(3));
  EXPECT_THAT(model.many, SizeIs(1));
  EXPECT_NEAR(chip.per_tile() * 1e9, model.per_tile(), 1e-6);
  EXPECT_GT(slow.per_tile(), model.per_tile() + machine::kHopper.fence_gpu / 2.0);
  EXPECT_EQ(chip.output, model.output);
  ASSERT_THAT(model.output, SizeIs(4096));
  for (size_t i = 0; i < model.output.size(); ++i) ASSERT_EQ(model.output[i], stream_input(i) + 3) << i;
  EXPECT_EQ(std::set<uint32_t>(gpu_.grids.begin(), gpu_.grids.end()), std::set<uint32_t>{1});
}

SpeedRecord made_record() {
  SpeedRecord r;
  r.gpu = "GPU";
  r.driver = "CUDA 13.0 (driver 580.1)";
  r.date = "2026-11-30";
  r.toolkit = "13.0";
  r.model = "GPU (emulated)";
  r.bandwidth = {"stream", uint64_t{1} << 30, {132, 3}, {1e-3, 3e-3, 1e-3}, {0.95e-3, 0.95e-3}, 0, ""};
  r.streams = {{"slow", 4e-7, 800, true}, {"fast", 2e-7, 400, true}};
  r.speedups = {{"fast against slow", 0, 1}};
  return r;
}

TEST(SpeedRecord, IsInOrderWithinBothTolerances) {
  SpeedRecord r = made_record();
  EXPECT_THAT(shortfalls(r), IsEmpty());
  r.streams[1].cycles = 800 / 2.29;
  EXPECT_THAT(shortfalls(r), IsEmpty());
}

TEST(SpeedRecord, SaysEachThingThatFallsShort) {
  SpeedRecord r = made_record();
  r.bandwidth.copy_seconds = {0.89e-3};
  r.bandwidth.wrong = 2;
  r.bandwidth.first_wrong = "element 5 is 1, expected 2";
  r.streams[0].same = false;
  r.streams[1].cycles = 800 / 2.31;
  EXPECT_THAT(
      shortfalls(r),
      ElementsAre("stream: 2 of 268435456 elements are wrong: element 5 is 1, expected 2",
                  "stream reaches 89.0 % of the copy; 90 % are wanted", "slow: the GPU's output is not the emulator's",
                  "fast against slow: 2.00 on the chip, 2.31 in the model, more than 15 % apart"));
}

TEST(SpeedRecord, ARatioThatIsNoNumberFallsShort) {
  SpeedRecord r = made_record();
  r.bandwidth.kernel_seconds.clear();
  r.bandwidth.copy_seconds.clear();
  r.streams[1].cycles = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(shortfalls(r), SizeIs(2));
}

TEST(SpeedRecord, PrintsTables) {
  const SpeedRecord r = made_record();
  EXPECT_EQ(bandwidth_table(r),
            "| | GB/s, read plus written | ms, median | launches |\n|---|---|---|---|\n"
            "| stream, 3 blocks on each of 132 SMs | 2147 | 1.000 | 3 |\n"
            "| cuMemcpyDtoDAsync | 2261 | 0.950 | 2 |\n\n"
            "95.0 % of the copy; 1024 MiB in, as many out; 268435456 of 268435456 results are right\n");
  EXPECT_EQ(speedup_table(r),
            "| one block on one SM | GPU: ns a tile | GPU (emulated): cycles a tile |\n|---|---|---|\n"
            "| slow | 400.0 | 800.0 |\n| fast | 200.0 | 400.0 |\n\n"
            "| speed-up | GPU | GPU (emulated) | difference |\n|---|---|---|---|\n"
            "| fast against slow | 2.00 | 2.00 | +0.0 % |\n");
}

TEST(SpeedRecord, IsJson) {
  SpeedRecord r = made_record();
  r.streams[1].cycles = 500;
  const nlohmann::json json = nlohmann::json::parse(to_json(r));
  EXPECT_EQ(json["about"]["gpu"], "GPU");
  EXPECT_EQ(json["about"]["driver"], r.driver);
  EXPECT_EQ(json["about"]["date"], r.date);
  EXPECT_DOUBLE_EQ(json["bandwidth"]["share"], r.bandwidth.share());
  EXPECT_EQ(json["bandwidth"]["kernel_seconds"].size(), 3U);
  EXPECT_EQ(json["one_sm"][1]["kernel"], "fast");
  EXPECT_EQ(json["one_sm"][1]["cycles_a_tile"], 500);
  EXPECT_DOUBLE_EQ(json["speedups"][0]["chip"], 2.0);
  EXPECT_DOUBLE_EQ(json["speedups"][0]["model"], 1.6);
  EXPECT_NEAR(json["speedups"][0]["difference"], -0.2, 1e-9);
  EXPECT_EQ(json["shortfalls"].size(), 1U);
}

}  // namespace
}  // namespace handoff::timing
