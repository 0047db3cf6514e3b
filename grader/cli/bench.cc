// handoff bench: the emulator's speed on this machine, or what streaming kernels reach on a GPU.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <ctime>
#include <memory>

#include "grader/cli/build_folder.h"
#include "grader/cli/commands.h"
#include "grader/cli/exercises.h"
#include "grader/device/cuda_device.h"
#include "grader/device/device.h"
#include "grader/harness/catalog.h"
#include "grader/harness/toolchain.h"
#include "grader/report/json.h"
#include "grader/timing/gpu_speed.h"

namespace handoff::cli {
namespace {

using timing::StreamKernel;

/// 07a's last parameter, steps of its function for each element: enough that using a tile is mostly a chain of
/// dependent instructions. Those the model has; that a warp overlaps independent ones it has not (docs/timing.md).
constexpr int32_t kSteps = 16;

StreamKernel two_stage(const char* name, const char* file) {
  return {name, harness::project_root() / file, "two_stage", 256, 1024 * sizeof(float), 0, kSteps};
}

StreamKernel specialised(uint32_t stages) {
  constexpr uint32_t kTileBytes = 4096 * sizeof(float), kBarriers = 2 * sizeof(uint64_t);
  return {fmt::format("07b, {} stage{}", stages, stages == 1 ? "" : "s"),
          harness::project_root() / "solutions/07b-specialised/kernel.cu",
          "specialised",
          288,
          kTileBytes,
          stages * (kTileBytes + kBarriers),
          static_cast<int32_t>(stages)};
}

/// What 07b makes of an element.
float specialised_result(float x) { return std::fmaf(-0.875F, x, 1.0F); }

/// The kernels whose tiles are timed on one SM, and which of them are compared.
void one_sm_kernels(std::vector<StreamKernel>* kernels, std::vector<timing::Speedup>* speedups) {
  *kernels = {two_stage("07a, one stage", "grader/bypasses/07a-two-stage-pipeline/one-stage.cu"),
              two_stage("07a, two stages", "solutions/07a-two-stage-pipeline/kernel.cu"), specialised(1),
              specialised(2), specialised(4)};
  *speedups = {
      {"07a: two stages against one", 0, 1}, {"07b: 2 stages against 1", 2, 3}, {"07b: 4 stages against 1", 2, 4}};
}

/// Fills the record from the GPU and the emulator. Empty, or one line that says what failed.
std::string measure(device::GpuDevice& gpu, const harness::Toolchain& toolchain, timing::SpeedRecord* record) {
  std::string problem =
      timing::measure_bandwidth(gpu, toolchain, specialised(4), specialised_result, {}, &record->bandwidth);
  if (!problem.empty()) return problem;
  std::printf("%s\n", timing::bandwidth_table(*record).c_str());
  std::fflush(stdout);

  const std::unique_ptr<device::Device> emulator =
      device::make_emulated_device(gpu.compute_capability() < 100 ? machine::kH200 : machine::kB200);
  record->model = emulator->name();
  std::vector<StreamKernel> kernels;
  one_sm_kernels(&kernels, &record->speedups);
  for (const StreamKernel& k : kernels) {
    timing::TileCost chip, model;
    problem = timing::measure_tiles(gpu, toolchain, k, {}, &chip);
    if (problem.empty()) problem = timing::measure_tiles(*emulator, toolchain, k, {}, &model);
    if (!problem.empty()) return problem;
    record->streams.push_back({k.name, chip.per_tile(), model.per_tile(), chip.output == model.output});
  }
  std::printf("%s", timing::speedup_table(*record).c_str());
  return "";
}

int run_gpu_bench(const std::string& json) {
  if (!json.empty()) {
    if (const std::string wrong = report::why_not_writable(json); !wrong.empty()) return refuse(wrong);
  }
  const harness::Toolchain toolchain = harness::find_toolchain();
  if (!toolchain.found()) return refuse(harness::missing_toolchain_message(toolchain));
  std::string problem;
  const std::unique_ptr<device::GpuDevice> gpu = device::make_gpu_device(0, &problem);
  if (gpu == nullptr) return refuse(problem);
  timing::SpeedRecord record;
  record.gpu = gpu->name();
  record.driver = device::cuda_driver_version();
  record.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
  record.toolkit = toolchain.version;
  std::printf("%s, %s, toolkit %s, %s\n\n", record.gpu.c_str(), record.driver.c_str(), record.toolkit.c_str(),
              record.date.c_str());
  problem = measure(*gpu, toolchain, &record);
  if (!problem.empty()) return refuse(problem);
  const std::vector<std::string> shortfalls = timing::shortfalls(record);
  for (const std::string& line : shortfalls) std::printf("\n✗ %s", line.c_str());
  if (!shortfalls.empty()) std::printf("\n");
  if (!json.empty()) {
    if (const std::string wrong = report::write_whole(json, timing::to_json(record)); !wrong.empty())
      return refuse(wrong);
  }
  return shortfalls.empty() ? kFullMarks : kNotFullMarks;
}

}  // namespace

int run_bench(const std::string& device, const std::string& json) {
  if (device == "cuda") return run_gpu_bench(json);
  if (!device.empty() && device != "emulator") {
    return refuse("no device '" + device + "'" +
                  suggestion(device, {"emulator", "cuda"}, "; there are emulator, cuda"));
  }
  if (!json.empty()) return refuse("--json keeps what a GPU does: add --device cuda");
  if (const std::string problem = build_target("handoff_bench"); !problem.empty()) return refuse(problem);
  return run_in_foreground({(build_folder() / "handoff_bench").string()}) == 0 ? kFullMarks : kCouldNot;
}

}  // namespace handoff::cli
