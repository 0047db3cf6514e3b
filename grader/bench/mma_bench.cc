// How fast tcgen05.mma is computed: one instruction with everything it needs each time, A and B gathered from shared
// memory included. `flops` counts 2·M·N·K an instruction.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "grader/emulator/async/mma_compute.h"

namespace handoff::bench {
namespace {

using async::MmaKind;
using async::SmemDescriptor;

constexpr uint32_t kSharedBytes = 64 * 1024, kTileOfB = 16 * 1024;
constexpr uint32_t kDF32 = 1 << 4, kBf16 = 1 << 7 | 1 << 10, kTf32 = 2 << 7 | 2 << 10, kMnMajor = 3 << 15;
constexpr uint32_t shape(uint32_t m, uint32_t n) { return n / 8 << 17 | m / 16 << 24; }

/// 128-byte swizzle.
SmemDescriptor tile(uint32_t start, uint32_t lbo) {
  constexpr uint64_t kSbo = 1024 / 16, kConstant = uint64_t{1} << 46, kSwizzle = uint64_t{2} << 61;
  return async::decode_smem_descriptor(start / 16 | uint64_t{lbo / 16} << 16 | kSbo << 32 | kConstant | kSwizzle);
}

void mma(benchmark::State& state, MmaKind kind, uint32_t bits, bool base) {
  std::vector<std::byte> shared(kSharedBytes);
  for (uint32_t at = 0; at < kSharedBytes; at += 2) {
    const auto number = static_cast<uint16_t>(0x3f80 + at / 2 % 128);  // 1 … 2 as bf16 and, in pairs, as f32
    std::memcpy(&shared[at], &number, sizeof number);
  }
  std::vector<uint32_t> tensor_memory(async::kTensorMemoryLanes * async::kTensorMemoryColumns);
  async::MmaOperation op;
  op.instruction = async::decode_instruction_descriptor(kind, bits);
  op.shared = shared.data();
  op.shared_bytes = kSharedBytes;
  op.tensor_memory = tensor_memory.data();
  const bool mn_major = op.instruction.transpose_a;
  const uint32_t step = mn_major ? 2048 : 32;  // along K, in bytes
  async::use_base_mma(base);
  uint32_t k = 0;
  for (auto _ : state) {
    op.a = tile(k % 4 * step, 8192);
    op.b = tile(kTileOfB + k % 4 * step, 8192);
    op.enable_input_d = k % 4 != 0;
    async::mma(op);
    k++;
  }
  async::use_base_mma(false);
  benchmark::DoNotOptimize(tensor_memory.data());
  state.counters["flops"] =
      benchmark::Counter(2.0 * op.instruction.m * op.instruction.n * op.instruction.k(),
                         benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::OneK::kIs1000);
}

BENCHMARK_CAPTURE(mma, bf16_128x256, MmaKind::F16, kDF32 | kBf16 | shape(128, 256), false);
BENCHMARK_CAPTURE(mma, bf16_128x256_mn_major, MmaKind::F16, kDF32 | kBf16 | kMnMajor | shape(128, 256), false);
BENCHMARK_CAPTURE(mma, bf16_64x64, MmaKind::F16, kDF32 | kBf16 | shape(64, 64), false);
BENCHMARK_CAPTURE(mma, f16_128x256_d_f16, MmaKind::F16, shape(128, 256), false);
BENCHMARK_CAPTURE(mma, tf32_128x256, MmaKind::Tf32, kDF32 | kTf32 | shape(128, 256), false);
BENCHMARK_CAPTURE(mma, bf16_128x256_any_host, MmaKind::F16, kDF32 | kBf16 | shape(128, 256), true);

}  // namespace
}  // namespace handoff::bench
