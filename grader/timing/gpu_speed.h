// How fast kernels that stream tiles run: on a whole GPU beside the GPU's own copy, and on one SM beside the model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "grader/device/cuda_device.h"
#include "grader/device/device.h"
#include "grader/harness/toolchain.h"

namespace handoff::timing {

/// A kernel `(const float* in, float* out, int tiles, int option)` that makes tile t of `out` from tile t of `in`, by
/// block t mod gridDim.x.
struct StreamKernel {
  std::string name;            ///< as tables call it: "07b, 4 stages"
  std::filesystem::path file;  ///< its source
  std::string kernel;          ///< its entry
  uint32_t threads = 0;        ///< of a block
  uint32_t tile_bytes = 0;     ///< of a tile of `in`, and of `out`
  uint32_t dynamic_smem = 0;   ///< bytes of a block
  int32_t option = 0;          ///< the last parameter
};

/// The middle one, or the mean of the middle two; 0 of none.
double median(std::vector<double> samples);

/// Element `i` of every input: multiples of 1/64 in [-8, 8), in no order.
float stream_input(uint64_t i);

// --- the whole GPU ---------------------------------------------------------------------------------------------------

/// How much to move, and how often.
struct BandwidthPlan {
  uint64_t bytes = uint64_t{1} << 30;  ///< in, and as many out; a multiple of the tile
  int warm_up = 3;                     ///< launches, and copies, that do not count
  int repeats = 20;                    ///< that count; kernel and copy take turns
};

/// What a kernel and the GPU's own copy took for the same bytes.
struct Bandwidth {
  std::string kernel;                      ///< its name
  uint64_t bytes = 0;                      ///< in, and as many out
  device::GpuDevice::Occupancy occupancy;  ///< the grid has as many blocks
  std::vector<double> kernel_seconds;      ///< event time of each launch
  std::vector<double> copy_seconds;        ///< of each cuMemcpyDtoDAsync
  uint64_t wrong = 0;                      ///< elements of the output that are not as expected, of all
  std::string first_wrong;                 ///< "element 12 is 0.5, expected 1"; empty: none
  double kernel_rate() const;              ///< bytes read plus bytes written a second, by the median
  double copy_rate() const;                ///< the same of the copy
  double share() const;                    ///< the kernel's rate over the copy's
};

/// Launches `kernel` with as many blocks as the GPU holds at a time, and compares all of its output with `expected` of
/// each element of its input. Ends what the device has allocated. Empty, or one line that says what failed.
std::string measure_bandwidth(device::GpuDevice& gpu, const harness::Toolchain& toolchain, const StreamKernel& kernel,
                              const std::function<float(float)>& expected, const BandwidthPlan& plan, Bandwidth* out);

// --- one block on one SM ---------------------------------------------------------------------------------------------

/// One block streams few tiles, and many: the difference is what tiles cost in a pipeline that runs, without a launch,
/// a prologue and an epilogue. All of it stays in L2, so that memory costs a chip what the model takes for granted.
struct TilePlan {
  /// Bytes in, and as many out; multiples of the tile.
  ///@{
  uint64_t few = uint64_t{1} << 20, many = uint64_t{8} << 20;
  ///@}
  double warm_up_seconds = 0.2;  ///< of launches that do not count: the caches, and the clock that a GPU steps up
  int repeats = 20;              ///< pairs of launches on a GPU; the emulator needs one
};

/// What a tile costs, in seconds on a GPU and in modeled cycles on the emulator.
struct TileCost {
  std::vector<double> few;    ///< of each launch of few tiles
  std::vector<double> many;   ///< of each launch of many
  uint64_t tiles = 0;         ///< that the many have more
  std::vector<float> output;  ///< of the many
  double per_tile() const;    ///< the difference of the medians, for each of `tiles`
};

/// Ends what the device has allocated. Empty, or one line that says what failed.
std::string measure_tiles(device::Device& device, const harness::Toolchain& toolchain, const StreamKernel& kernel,
                          const TilePlan& plan, TileCost* out);

// --- model against chip, and the record ------------------------------------------------------------------------------

/// A kernel on the chip and in the model.
struct StreamCost {
  std::string name;    ///< the kernel's
  double seconds = 0;  ///< a tile, on the chip
  double cycles = 0;   ///< a tile, in the model
  bool same = true;    ///< both left the same output
};

/// How much less a tile costs in one kernel than in another.
struct Speedup {
  std::string name;  ///< "07a: two stages against one"
  size_t base = 0;   ///< index of the kernel that it is measured against
  size_t fast = 0;   ///< index of the other
};

/// All that one run found out; docs/results/bench-*.json.
struct SpeedRecord {
  /// The device's own name; the driver's version; UTC, "2026-11-30"; "13.0"; "H200 (emulated)".
  ///@{
  std::string gpu, driver, date, toolkit, model;
  ///@}
  Bandwidth bandwidth;              ///< on the whole GPU
  std::vector<StreamCost> streams;  ///< on one SM
  std::vector<Speedup> speedups;    ///< of these
  double chip(const Speedup& s) const { return streams[s.base].seconds / streams[s.fast].seconds; }   ///< its ratio
  double modeled(const Speedup& s) const { return streams[s.base].cycles / streams[s.fast].cycles; }  ///< its ratio
  double difference(const Speedup& s) const { return modeled(s) / chip(s) - 1; }  ///< of the model, relative
};

inline constexpr double kWantedShare = 0.9;        ///< of the copy's bandwidth
inline constexpr double kSpeedupTolerance = 0.15;  ///< relative difference of a speed-up in the model

/// What falls short of the two above, or is wrong; a line each.
std::vector<std::string> shortfalls(const SpeedRecord& record);

/// Tables in Markdown.
///@{
std::string bandwidth_table(const SpeedRecord& record);
std::string speedup_table(const SpeedRecord& record);
///@}

/// The record as JSON.
std::string to_json(const SpeedRecord& record);

}  // namespace handoff::timing
