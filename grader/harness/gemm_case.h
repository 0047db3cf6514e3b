// What the harnesses of 11a, 12a and 13a share: a matrix product as a Case, its reference, and what a trace says of how
// it was computed.
//
// The three exercises compute the same product with the same tiles; a kernel differs from the next in how loads and
// MMAs are arranged in time. So the cases and most matchers are one, and each grade.cc adds its launches and its
// mechanism.
//
// Elements of A and B are multiples of 1/8 below 4, which both bf16 and fp16 hold. Their products are multiples of
// 1/64, and sums of up to 17'000 of them stay below 2^24 / 64: exact in binary32 in whatever order they are added. The
// reference counts in eighths and sixty-fourths, in integers.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grader/emulator/machine/memory_access.h"
#include "grader/emulator/machine/timing.h"
#include "grader/harness/exercise.h"

namespace handoff::harness::gemm {

inline constexpr uint32_t kTileM = 128;                                  ///< rows of A and of D in a block's tile
inline constexpr uint32_t kTileN = 128;                                  ///< rows of B, columns of D in a block's tile
inline constexpr uint32_t kTileK = 64;                                   ///< columns of A and of B in a K tile
inline constexpr uint32_t kStageBytes = (kTileM + kTileN) * kTileK * 2;  ///< a K tile of A and one of B
inline constexpr uint32_t kSlice = 16;                                   ///< columns of A and of B in one MMA

/// One product: D (m_tiles · 128 × n_tiles · 128) = A · Bᵀ over k_tiles · 64.
struct Problem {
  uint32_t m_tiles = 1;  ///< of the grid's y
  uint32_t n_tiles = 1;  ///< of the grid's x
  uint32_t k_tiles = 0;  ///< may be 0: D is 0, and the maps describe one K tile that nobody may need
  bool f16 = false;      ///< fp16, else bf16
  uint32_t stages = 0;   ///< passed to the kernel as its last parameter; 0: it has no such parameter
  uint32_t ctas() const { return m_tiles * n_tiles; }  ///< blocks
  uint64_t multiply_adds() const {                     ///< of the whole product
    return uint64_t{ctas()} * k_tiles * kTileM * kTileN * kTileK;
  }
  uint64_t operand_bytes() const { return uint64_t{ctas()} * k_tiles * kStageBytes; }  ///< that all blocks load
  uint64_t result_bytes() const { return uint64_t{ctas()} * kTileM * kTileN * sizeof(float); }  ///< of D
};

/// The elements of an operand, in eighths (for the reference) and as bits (for the kernel).
struct Operand {
  std::vector<int16_t> eighths;  ///< −31 … 31, none 0
  std::vector<uint16_t> bits;    ///< bf16 or fp16
};

/// Random elements, the same numbers for both types.
inline Operand random_operand(size_t count, uint64_t seed, bool f16) {
  Operand o;
  o.bits = random_bf16(count, seed);
  o.eighths.reserve(count);
  for (uint16_t& bits : o.bits) {
    const float x = machine::bf16_to_float(bits);
    o.eighths.push_back(static_cast<int16_t>(x * 8));
    if (f16) bits = machine::float_to_half(x);
  }
  return o;
}

/// D = A · Bᵀ for row-major A (m × k) and B (n × k).
inline std::vector<float> product(const Operand& a, const Operand& b, size_t m, size_t n, size_t k) {
  std::vector<float> d(m * n);
  for (size_t row = 0; row < m; row++) {
    for (size_t column = 0; column < n; column++) {
      const int16_t* const x = &a.eighths[row * k];
      const int16_t* const y = &b.eighths[column * k];
      int32_t sum = 0;
      for (size_t i = 0; i < k; i++) sum += x[i] * y[i];
      d[row * n + column] = static_cast<float>(sum) / 64.0f;
    }
  }
  return d;
}

/// The launch of `p`. Parameters: map_a, map_b, d, n, k_tiles, type (0: fp16, 1: bf16, as ptx::element), and stages if
/// p.stages is not 0. A and B are reachable through their maps only: 128 rows × 64 columns, 128-byte swizzle.
inline Case product_case(const Problem& p, uint64_t seed, uint32_t threads, uint32_t dynamic_smem) {
  std::string name = fmt::format("{} x {} x {}, {}", p.m_tiles * kTileM, p.n_tiles * kTileN, p.k_tiles * kTileK,
                                 p.f16 ? "fp16" : "bf16");
  if (p.stages > 0) name += fmt::format(", {} stage{}", p.stages, p.stages == 1 ? "" : "s");
  const size_t m = size_t{p.m_tiles} * kTileM, n = size_t{p.n_tiles} * kTileN;
  const size_t k = size_t{std::max(p.k_tiles, 1u)} * kTileK;
  const Operand a = random_operand(m * k, seed, p.f16), b = random_operand(n * k, seed + 1000, p.f16);
  device::TensorMapArgs map;
  map.tensor_data_type = p.f16 ? device::TensorDataType::Float16 : device::TensorDataType::Bfloat16;
  map.tensor_rank = 2;
  map.global_strides = {k * 2};
  map.box_dim = {kTileK, kTileM};
  map.swizzle = device::TensorSwizzle::B128;
  Case c(std::move(name));
  c.grid(p.n_tiles, p.m_tiles).block(threads).dynamic_smem(dynamic_smem);
  map.global_dim = {k, m};
  c.in("a", a.bits).only_by_map().tensor_map("map_a", "a", map);
  map.global_dim = {k, n};
  c.in("b", b.bits).only_by_map().tensor_map("map_b", "b", map);
  c.out("d", p.k_tiles == 0 ? std::vector<float>(m * n) : product(a, b, m, n, k));
  c.value("n", static_cast<int32_t>(n)).value("k_tiles", static_cast<int32_t>(p.k_tiles));
  c.value("type", uint32_t{p.f16 ? 0u : 1u});
  if (p.stages > 0) c.value("stages", static_cast<int32_t>(p.stages));
  return c;
}

/// The problem that a run's case was made of.
inline Problem problem_of(const KernelRun& run) {
  Problem p;
  p.n_tiles = run.test_case->config().grid.x;
  p.m_tiles = run.test_case->config().grid.y;
  for (const Parameter& parameter : run.test_case->parameters()) {
    if (parameter.is_buffer || parameter.map) continue;
    uint32_t value = 0;
    std::memcpy(&value, parameter.value.data(), sizeof value);
    if (parameter.name == "k_tiles") p.k_tiles = value;
    if (parameter.name == "type") p.f16 = value == 0;
    if (parameter.name == "stages") p.stages = value;
  }
  return p;
}

// --- matchers --------------------------------------------------------------------------------------------------------

/// Every byte of the operands comes to shared memory by a copy of the copy engine, once, and no thread writes operands
/// there.
inline ::testing::Matcher<const KernelRun&> LoadsByTensorCopy(const Problem& p) {
  // What a kernel keeps in shared memory of its own is much smaller than one operand of a K tile.
  constexpr uint64_t kOwn = 4096;
  return Traced(
      fmt::format("the {} bytes of the operands by tensor copy, and none of them written by threads",
                  p.operand_bytes()),
      [p](const trace::Trace& t) {
        return t.totals.bulk_bytes_to_shared == p.operand_bytes() && t.totals.shared_store_bytes <= kOwn * p.ctas() &&
               t.totals.global_load_bytes + t.totals.cp_async_bytes == 0;
      },
      [](const trace::Trace& t) {
        return fmt::format("{} bytes came by tensor copy; threads wrote {} bytes of shared memory and loaded {} bytes",
                           t.totals.bulk_bytes_to_shared, t.totals.shared_store_bytes,
                           t.totals.global_load_bytes + t.totals.cp_async_bytes);
      });
}

/// All products are the tensor core's: as many multiply-adds as the matrices ask for, 16 columns or less each time, and
/// fewer instructions of threads than that.
inline ::testing::Matcher<const KernelRun&> MultipliesByMma(const Problem& p) {
  const uint64_t least = uint64_t{p.ctas()} * p.k_tiles * (kTileK / kSlice);
  return Traced(
      fmt::format("{} multiply-adds by {} or more tcgen05.mma, and fewer thread instructions than multiply-adds",
                  p.multiply_adds(), least),
      [p, least](const trace::Trace& t) {
        return t.totals.mma_flops == 2 * p.multiply_adds() && t.totals.mma_instructions >= least &&
               t.totals.lane_instructions < p.multiply_adds();
      },
      [](const trace::Trace& t) {
        return fmt::format("{} tcgen05.mma with {} multiply-adds, {} instructions of threads",
                           t.totals.mma_instructions, t.totals.mma_flops / 2, t.totals.lane_instructions);
      });
}

/// Sums over K stay in tensor memory until they are complete: every element of D leaves it once, and goes to global
/// memory once. (Somebody multiplies: a kernel that only reads has no sums.)
inline ::testing::Matcher<const KernelRun&> SumsInTensorMemory(const Problem& p) {
  return Traced(
      fmt::format("the sum's {} bytes read from tensor memory once, and stored once", p.result_bytes()),
      [p](const trace::Trace& t) {
        return t.totals.mma_flops > 0 && t.totals.tmem_load_bytes == p.result_bytes() &&
               t.totals.global_store_bytes <= p.result_bytes() && t.totals.global_atomics == 0;
      },
      [](const trace::Trace& t) {
        return fmt::format("{} tcgen05.mma, {} bytes read from tensor memory, {} bytes stored",
                           t.totals.mma_instructions, t.totals.tmem_load_bytes, t.totals.global_store_bytes);
      });
}

/// When one block's K tiles were loaded and multiplied, in cycles of the trace.
struct KTile {
  uint64_t load_issued = 0;  ///< the last of its copies
  uint64_t multiplied = 0;   ///< the last of its MMAs is complete
};

/// The K tiles of block `cta` in order. Copies and MMAs carry no number of their K tile, so they are counted: a K tile
/// is kStageBytes of copies in the order of issue, and an equal share of the block's MMAs. Empty if the block did not
/// load and multiply p.k_tiles of them.
inline std::vector<KTile> k_tiles_of(const trace::Trace& trace, uint32_t cta, const Problem& p) {
  using Kind = trace::Event::Kind;
  std::vector<std::pair<uint64_t, int64_t>> copies;  // cycle, bytes
  std::vector<uint64_t> issued;                      // ids of MMAs
  std::unordered_map<uint64_t, uint64_t> done;       // id of an MMA: cycle
  for (const trace::Event& e : trace.events) {
    if (e.cta != cta) continue;
    if (e.kind == Kind::CopyIssued) copies.emplace_back(e.cycle, e.bytes);
    if (e.kind == Kind::MmaIssued) issued.push_back(e.op);
    if (e.kind == Kind::MmaDone) done[e.op] = e.cycle;
  }
  std::stable_sort(copies.begin(), copies.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<KTile> tiles(p.k_tiles);
  uint64_t bytes = 0;
  for (const auto& [cycle, size] : copies) {
    bytes += static_cast<uint64_t>(size);
    if (bytes % kStageBytes == 0 && bytes / kStageBytes <= tiles.size())
      tiles[bytes / kStageBytes - 1].load_issued = cycle;
  }
  if (bytes != uint64_t{p.k_tiles} * kStageBytes || issued.empty() || issued.size() % p.k_tiles != 0) return {};
  const size_t share = issued.size() / p.k_tiles;
  for (size_t k = 0; k < tiles.size(); k++) {
    for (size_t i = 0; i < share; i++) tiles[k].multiplied = std::max(tiles[k].multiplied, done[issued[k * share + i]]);
  }
  return tiles;
}

/// What k_tiles_of says of all blocks together.
struct Overlap {
  uint64_t pairs = 0;       ///< of neighbours k, k + 1 in one block
  uint64_t overlapped = 0;  ///< of these: the load of k + 1 was issued before the MMAs of k were complete
  uint64_t fewest_ahead =
      ~0u;               ///< of all blocks, the fewest K tiles whose load was issued before K tile 0 was multiplied
  uint64_t unclear = 0;  ///< blocks that did not load and multiply every K tile once
};

/// Looks at every block of a run of `p`, which has K tiles.
inline Overlap overlap(const trace::Trace& trace, const Problem& p) {
  Overlap o;
  for (uint32_t cta = 0; cta < p.ctas(); cta++) {
    const std::vector<KTile> tiles = k_tiles_of(trace, cta, p);
    if (tiles.empty()) {
      o.unclear++;
      continue;
    }
    for (size_t k = 0; k + 1 < tiles.size(); k++) {
      o.pairs++;
      if (tiles[k + 1].load_issued < tiles[k].multiplied) o.overlapped++;
    }
    const auto ahead = static_cast<uint64_t>(std::count_if(
        tiles.begin(), tiles.end(), [&](const KTile& t) { return t.load_issued < tiles.front().multiplied; }));
    o.fewest_ahead = std::min(o.fewest_ahead, ahead);
  }
  return o;
}

/// The load of K tile k + 1 is issued before the MMAs of K tile k are complete, for all k; and before the first K tile
/// is multiplied the loads of `ahead` of them are issued, or of all if there are fewer.
inline ::testing::Matcher<const KernelRun&> LoadsRunAhead(const Problem& p, uint32_t ahead) {
  const uint64_t first = std::min(ahead, p.k_tiles);
  return Traced(
      fmt::format("every load issued before the K tile ahead of it is multiplied, and {} before the first is", first),
      [p, first](const trace::Trace& t) {
        const Overlap o = overlap(t, p);
        return o.unclear == 0 && o.overlapped == o.pairs && o.fewest_ahead >= first;
      },
      [p](const trace::Trace& t) {
        const Overlap o = overlap(t, p);
        if (o.unclear > 0)
          return fmt::format("{} of {} blocks do not load and multiply every K tile once", o.unclear, p.ctas());
        return fmt::format(
            "{} of {} loads were issued before the K tile ahead was multiplied, and {} before the first was",
            o.overlapped, o.pairs, o.fewest_ahead);
      });
}

/// The fewest cycles in which the timing model of the emulator can run one block of `p`: the copy engine takes its time
/// for the operands, the tensor core for the MMAs (128 × 128 × 16 each), whichever is longer.
inline uint64_t bound(const Problem& p) {
  const machine::TimingModel& model = machine::kBlackwell;
  const uint64_t load = uint64_t{p.k_tiles} * kStageBytes / model.tma_bytes_per_cycle;
  const uint64_t interval =
      std::max<uint64_t>(kTileN / 2, (kTileM + kTileN) * kSlice * 2 / model.mma_shared_bytes_per_cycle);
  return std::max(load, uint64_t{p.k_tiles} * (kTileK / kSlice) * interval);
}

}  // namespace handoff::harness::gemm
