// How fast the emulator is: `./handoff bench`, or the program handoff_bench with Google Benchmark's own options.
//
// Loops run on one CTA and so on one core. Rates count instructions that the emulator says it executed, not what the
// text promises, and a launch whose kernel fails ends the program with status 1. Set-up (the CTA, its registers) is
// below one per cent of every loop; `noop` shows it alone.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grader/bench/failure.h"
#include "grader/bench/kernels.h"
#include "grader/device/cuda_worker.h"
#include "grader/emulator/async/tensor_map.h"
#include "grader/emulator/emulator.h"

namespace handoff::bench {
namespace {

constexpr uint32_t kInstructions = 4'000'000;  // of all warps, in one launch of a loop
constexpr uint32_t kBlockLimit = 256;          // threads
constexpr size_t kTextBytes = 4 << 20;

template <class T>
std::vector<std::byte> bytes_of(const T& value) {
  std::vector<std::byte> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

enum class Watch { Nobody, Trace, TraceAndAccesses, Checker };

/// The module of kernels(), loaded, with a buffer for its kernels to write or read.
class Loaded {
 public:
  Loaded() {
    error_ = emulator_.load(std::string(kernels()));
    buffer_ = emulator_.memory().allocate(kCopyBytes, "buffer")->base;
  }
  /// The address of the buffer, which is the first argument of most kernels.
  std::vector<std::byte> buffer() const { return bytes_of(buffer_); }
  /// A map of the buffer as a tensor of two tiles of kTileEdge × kTileEdge bf16, 128-byte swizzle; empty on failure.
  std::vector<std::byte> map() const {
    async::TensorMapArgs args;
    args.tensor_data_type = async::TensorDataType::Bfloat16;
    args.tensor_rank = 2;
    args.global_address = buffer_;
    args.global_dim = {kTileEdge, 2 * kTileEdge};
    args.global_strides = {kTileEdge * 2};
    args.box_dim = {kTileEdge, kTileEdge};
    args.swizzle = async::TensorSwizzle::B128;
    async::TensorMapImage image;
    return async::encode_tiled(args, &image).empty() ? bytes_of(image) : std::vector<std::byte>();
  }
  /// Runs `kernel`(`first`, iterations) on one CTA, without arguments if there are no iterations; on failure ends the
  /// benchmark.
  EmulatedRun run(benchmark::State& state, std::string_view kernel, uint32_t threads,
                  const std::vector<std::byte>& first, uint32_t iterations, Watch watch) {
    EmulatedRun r;
    if (!error_.empty()) {
      fail(state, error_);
      return r;
    }
    machine::LaunchConfig config;
    config.block.x = threads;
    std::vector<std::vector<std::byte>> arguments;
    if (iterations > 0) arguments = {first, bytes_of(iterations)};
    EmulatorOptions options;
    options.check = watch == Watch::Checker;
    options.trace = watch == Watch::Trace || watch == Watch::TraceAndAccesses;
    options.trace_accesses = watch == Watch::TraceAndAccesses;
    r = emulator_.launch(kernel, config, arguments, options);
    if (!r.config_error.empty()) {
      fail(state, r.config_error);
    } else if (r.status != machine::LaunchStatus::Ok) {
      fail(state, r.diagnostics.empty() ? "the launch failed" : r.diagnostics.front().message);
    } else if (!r.diagnostics.empty()) {
      fail(state, r.diagnostics.front().message);
    }
    return r;
  }

 private:
  Emulator emulator_;
  std::string error_;
  uint64_t buffer_ = 0;
};

benchmark::Counter rate(uint64_t count) { return {static_cast<double>(count), benchmark::Counter::kIsRate}; }

/// A loop of kernels() on `warps` warps: warp- and lane-instructions a second.
void loop(benchmark::State& state, std::string_view kernel, uint32_t warps, Watch watch) {
  Loaded loaded;
  const uint32_t iterations = kInstructions / (16 * warps);
  uint64_t warp_instructions = 0, lane_instructions = 0;
  for (auto _ : state) {
    const EmulatedRun r = loaded.run(state, kernel, warps * machine::kWarpSize, loaded.buffer(), iterations, watch);
    warp_instructions += r.warp_instructions;
    lane_instructions += r.lane_instructions;
    if (state.error_occurred()) break;
  }
  state.counters["warp_instructions"] = rate(warp_instructions);
  state.counters["lane_instructions"] = rate(lane_instructions);
}

/// Bulk copies, one in flight: bytes a second.
void copy(benchmark::State& state, Watch watch) {
  constexpr uint32_t kCopies = 2000;
  Loaded loaded;
  uint64_t launches = 0;
  for (auto _ : state) {
    loaded.run(state, "copy", machine::kWarpSize, loaded.buffer(), kCopies, watch);
    launches++;
    if (state.error_occurred()) break;
  }
  state.SetBytesProcessed(static_cast<int64_t>(launches * kCopies * kCopyBytes));
  state.counters["copies"] = rate(launches * kCopies);
}

/// Tensor copies of tiles of kTileEdge × kTileEdge bf16 with the 128-byte swizzle, one in flight: bytes a second.
void tensor_copy(benchmark::State& state, Watch watch) {
  constexpr uint32_t kCopies = 2000;
  Loaded loaded;
  const std::vector<std::byte> map = loaded.map();
  uint64_t launches = 0;
  for (auto _ : state) {
    loaded.run(state, "tensor_copy", machine::kWarpSize, map, kCopies, watch);
    launches++;
    if (state.error_occurred()) break;
  }
  state.SetBytesProcessed(static_cast<int64_t>(launches * kCopies * kTileEdge * kTileEdge * 2));
  state.counters["copies"] = rate(launches * kCopies);
}

/// Chains of four MMAs of 128×256×16 bf16, launch and all: multiply-adds count two.
void mma_chain(benchmark::State& state, Watch watch) {
  constexpr uint32_t kChains = 250;
  Loaded loaded;
  uint64_t launches = 0;
  for (auto _ : state) {
    loaded.run(state, "mma", machine::kWarpSize, loaded.buffer(), kChains, watch);
    launches++;
    if (state.error_occurred()) break;
  }
  state.counters["flops"] = rate(launches * kChains * 4 * 2 * 128 * 256 * 16);
}

/// The solution of 04a, as kept in the repository, on tiles of 4096 bytes, each copied from one buffer and written to
/// another: tiles a second, and bytes of shadow memory for each byte of global memory touched.
void two_copies(benchmark::State& state, uint32_t tiles, Watch watch) {
  const uint32_t floats = tiles * 1024;
  std::ifstream file(HANDOFF_SOURCE_DIR "/solutions/04a-two-copies-one-barrier/kernel.ptx");
  std::stringstream text;
  text << file.rdbuf();
  Emulator emulator;
  if (const std::string error = emulator.load(text.str()); !error.empty()) return fail(state, error);
  const uint64_t in = emulator.memory().allocate(floats * sizeof(float), "in")->base;
  const uint64_t out = emulator.memory().allocate(floats * sizeof(float), "out")->base;
  machine::LaunchConfig config;
  config.grid.x = tiles;
  config.block.x = 128;
  const std::vector<std::vector<std::byte>> arguments = {bytes_of(in), bytes_of(out),
                                                         bytes_of(static_cast<int32_t>(floats))};
  EmulatorOptions options;
  options.check = watch == Watch::Checker;
  size_t shadow = 0;
  for (auto _ : state) {
    const EmulatedRun r = emulator.launch("two_copies", config, arguments, options);
    if (r.status != machine::LaunchStatus::Ok || !r.diagnostics.empty()) return fail(state, "the launch failed");
    shadow = r.shadow_bytes;
  }
  state.counters["tiles"] = rate(static_cast<uint64_t>(state.iterations()) * tiles);
  if (watch == Watch::Checker)
    state.counters["shadow_bytes_per_byte"] = static_cast<double>(shadow) / (2.0 * floats * sizeof(float));
}

/// A launch of one CTA whose threads do nothing.
void noop(benchmark::State& state, uint32_t threads) {
  Loaded loaded;
  for (auto _ : state) {
    loaded.run(state, "noop", threads, {}, 0, Watch::Nobody);
    if (state.error_occurred()) break;
  }
}

/// What nvcc wrote for the solutions, as kept in the repository: line information, long names, debug sections.
std::vector<std::string> kept_modules() {
  std::vector<std::string> texts;
  for (const auto& folder : std::filesystem::directory_iterator(HANDOFF_SOURCE_DIR "/solutions")) {
    std::ifstream file(folder.path() / "kernel.ptx");
    if (!file) continue;
    std::stringstream text;
    text << file.rdbuf();
    texts.push_back(text.str());
  }
  return texts;
}

/// Parsing `texts`, a module each, and freeing what came of it.
void parse(benchmark::State& state, const std::vector<std::string>& texts) {
  size_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size();
  if (bytes == 0) return fail(state, "there is no text to parse");
  for (auto _ : state) {
    for (const std::string& text : texts) {
      ptx::Module module;
      ptx::ParseError error;
      if (!ptx::parse(text, &module, &error)) return fail(state, error.message);
      benchmark::DoNotOptimize(module);
    }
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes));
}

/// `text`, parsed; if it is no PTX, the benchmark fails.
ptx::Module parsed(benchmark::State& state, std::string_view text) {
  ptx::Module module;
  ptx::ParseError error;
  if (!ptx::parse(text, &module, &error)) fail(state, error.message);
  return module;
}

/// Matching opcodes against the table alone.
void resolve(benchmark::State& state) {
  const std::string text = large_module(kTextBytes);
  const ptx::Module module = parsed(state, text);
  uint64_t statements = 0;
  for (auto _ : state) {
    for (const ptx::Function& f : module.functions) {
      for (const ptx::Statement& s : f.statements) benchmark::DoNotOptimize(ptx::resolve(s));
      statements += f.statements.size();
    }
  }
  state.counters["statements"] = rate(statements);
}

/// Making kernels ready to run: resolving, register layout, handlers, liveness of loops.
void decode(benchmark::State& state) {
  const std::string text = large_module(kTextBytes);
  const ptx::Module module = parsed(state, text);
  const std::unordered_map<std::string, machine::LoadedModule::Symbol> symbols;
  uint64_t statements = 0;
  for (auto _ : state) {
    machine::GlobalMemory memory;
    for (const ptx::Function& f : module.functions) {
      const auto program = machine::decode_kernel(module, f, symbols, all_decoders(), memory);
      if (!program->unsupported.empty()) {
        fail(state, program->unsupported.front());
        return;
      }
      statements += f.statements.size();
    }
  }
  state.counters["statements"] = rate(statements);
}

void register_all() {
  const auto add = [](const std::string& name, auto&& function) {
    benchmark::RegisterBenchmark(name.c_str(), function)->Unit(benchmark::kMillisecond);
  };
  const std::pair<std::string, Watch> watches[] = {{"", Watch::Nobody},
                                                   {"/trace", Watch::Trace},
                                                   {"/trace+accesses", Watch::TraceAndAccesses},
                                                   {"/check", Watch::Checker}};
  for (const std::string kernel : {"arithmetic", "shared", "divergent"}) {
    for (const uint32_t warps : {1u, kBlockLimit / machine::kWarpSize}) {
      for (const auto& [suffix, watch] : watches) {
        if (watch != Watch::Nobody && (warps == 1 || kernel == "divergent")) continue;
        add(kernel + "/warps:" + std::to_string(warps) + suffix,
            [kernel, warps, watch = watch](benchmark::State& s) { loop(s, kernel, warps, watch); });
      }
    }
  }
  for (const auto& [suffix, watch] : watches) {
    if (watch != Watch::Nobody && watch != Watch::Checker) continue;
    add("shared/warps:32" + suffix, [watch = watch](benchmark::State& s) { loop(s, "shared", 32, watch); });
    for (const uint32_t tiles : {256u, 1000u, 4000u}) {
      add("two_copies/tiles:" + std::to_string(tiles) + suffix,
          [tiles, watch = watch](benchmark::State& s) { two_copies(s, tiles, watch); });
    }
  }
  for (const auto& [suffix, watch] : watches) {
    if (watch == Watch::TraceAndAccesses) continue;  // the same as /trace: it has no loads and stores
    add("bulk_copy" + suffix, [watch = watch](benchmark::State& s) { copy(s, watch); });
    add("tensor_copy" + suffix, [watch = watch](benchmark::State& s) { tensor_copy(s, watch); });
    add("mma_chain" + suffix, [watch = watch](benchmark::State& s) { mma_chain(s, watch); });
  }
  for (const uint32_t threads : {32u, 1024u}) {
    benchmark::RegisterBenchmark(("noop_launch/threads:" + std::to_string(threads)).c_str(), [threads](
                                                                                                 benchmark::State& s) {
      noop(s, threads);
    })->Unit(benchmark::kMicrosecond);
  }
  add("parse", [](benchmark::State& s) { parse(s, {large_module(kTextBytes)}); });
  add("parse/nvcc", [](benchmark::State& s) { parse(s, kept_modules()); });
  add("resolve", resolve);
  add("decode", decode);
}

int run(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  register_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return any_failed() ? 1 : 0;
}

}  // namespace
}  // namespace handoff::bench

int main(int argc, char** argv) {
  if (const int status = handoff::device::run_cuda_worker_if_asked(argc, argv); status >= 0) return status;
  return handoff::bench::run(argc, argv);
}
