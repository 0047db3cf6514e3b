// From CUDA C++ to the lines that conflict: nvcc, the emulator and the trace at work together. Skipped without nvcc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "grader/device/device.h"
#include "grader/harness/exercise.h"
#include "grader/harness/toolchain.h"

namespace handoff::harness {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

// A 64 x 64 matrix, a tile of 32 x 32 for each block of 32 x 8 threads.
constexpr const char* kTranspose = R"(extern "C" __global__ void transpose(const float* in, float* out) {
  __shared__ float tile[32][PITCH];
  const int x = threadIdx.x, y = threadIdx.y, left = blockIdx.x * 32, top = blockIdx.y * 32;
#pragma unroll 1
  for (int i = y; i < 32; i += 8)
    tile[i][x] = in[(top + i) * 64 + left + x];
  __syncthreads();
#pragma unroll 1
  for (int i = y; i < 32; i += 8)
    out[(left + i) * 64 + top + x] = tile[x][i];
}
)";
constexpr uint32_t kWriteLine = 6, kReadLine = 10;  // of the tile
constexpr int kSize = 64;
constexpr uint64_t kWarpAccesses = 4 * 8 * 4;  // CTAs, warps, iterations; of each of the two lines

class Transpose : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "handoff-banks-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    setenv("HANDOFF_CACHE", (folder_ / "cache").c_str(), 1);
    if (!find_toolchain().found()) GTEST_SKIP() << missing_toolchain_message(find_toolchain());
  }
  void TearDown() override {
    unsetenv("HANDOFF_CACHE");
    fs::remove_all(folder_);
  }

  /// Runs the transpose with rows of `pitch` floats in the tile; the outcome must be right.
  KernelRun run_with_pitch(int pitch) {
    KernelRun run;
    run.device = "emulator";
    std::string text = kTranspose;
    text.replace(text.find("PITCH"), 5, std::to_string(pitch));
    std::ofstream(folder_ / "kernel.cu") << text;
    CompileOptions options;
    options.kernel = "transpose";
    options.include_dir = folder_;
    const CompileResult compiled = compile(find_toolchain(), folder_ / "kernel.cu", options);
    EXPECT_TRUE(compiled.ok) << compiled.error << compiled.detail;

    const std::unique_ptr<device::Device> device = device::make_emulated_device();
    EXPECT_EQ(device->load({"kernel.cu", compiled.ptx, ""}).message, "");
    std::vector<float> in(kSize * kSize), out(in.size());
    for (size_t k = 0; k < in.size(); k++) in[k] = static_cast<float>(k);
    device::DevicePtr at[2] = {};
    for (device::DevicePtr& p : at) EXPECT_EQ(device->allocate(in.size() * sizeof(float), &p).message, "");
    EXPECT_EQ(device->write(at[0], std::as_bytes(std::span(in))).message, "");
    device::LaunchConfig config;
    config.grid = {2, 2, 1};
    config.block = {32, 8, 1};
    run.result = device->launch("transpose", config,
                                std::vector{device::Argument::pointer(at[0]), device::Argument::pointer(at[1])});
    EXPECT_TRUE(run.result.ok()) << run.result.message;
    EXPECT_THAT(run.result.diagnostics, IsEmpty());
    EXPECT_EQ(device->read(std::as_writable_bytes(std::span(out)), at[1]).message, "");
    for (int row = 0; row < kSize; row++) {
      for (int column = 0; column < kSize; column++) EXPECT_EQ(out[row * kSize + column], in[column * kSize + row]);
    }
    return run;
  }

  fs::path folder_;
};

struct Line {
  uint32_t line;
  uint64_t accesses, wavefronts, minimum;
  uint32_t ways;
  bool operator==(const Line&) const = default;
};

std::vector<Line> lines_of(const KernelRun& run) {
  std::vector<Line> lines;
  for (const trace::SharedLine& l : run.result.trace.shared_lines) {
    lines.push_back({l.place.line, l.accesses, l.wavefronts, l.minimum, l.ways});
  }
  return lines;
}

// In a tile of 32 floats a row a column lies in one bank: reading it takes 32 wavefronts.
TEST_F(Transpose, WithoutPaddingAColumnLiesInOneBank) {
  const KernelRun run = run_with_pitch(32);
  EXPECT_THAT(lines_of(run), ElementsAre(Line{kReadLine, kWarpAccesses, 32 * kWarpAccesses, kWarpAccesses, 32},
                                         Line{kWriteLine, kWarpAccesses, kWarpAccesses, kWarpAccesses, 1}));
  EXPECT_THAT(run, Not(AvoidsBankConflicts()));
  EXPECT_THAT(run, AvoidsBankConflicts(31 * kWarpAccesses, 2 * kWarpAccesses));
  EXPECT_THAT(run, Not(AvoidsBankConflicts(31 * kWarpAccesses - 1)));
}

TEST_F(Transpose, WithPaddingNothingMeets) {
  const KernelRun run = run_with_pitch(33);
  EXPECT_THAT(lines_of(run), ElementsAre(Line{kWriteLine, kWarpAccesses, kWarpAccesses, kWarpAccesses, 1},
                                         Line{kReadLine, kWarpAccesses, kWarpAccesses, kWarpAccesses, 1}));
  EXPECT_THAT(run, AvoidsBankConflicts(0, 2 * kWarpAccesses));
}

// Two floats more instead of one: lanes l and l + 16 meet.
TEST_F(Transpose, WithTheWrongPaddingTwoLanesMeet) {
  const KernelRun run = run_with_pitch(34);
  EXPECT_THAT(lines_of(run), ElementsAre(Line{kReadLine, kWarpAccesses, 2 * kWarpAccesses, kWarpAccesses, 2},
                                         Line{kWriteLine, kWarpAccesses, kWarpAccesses, kWarpAccesses, 1}));
}

}  // namespace
}  // namespace handoff::harness
