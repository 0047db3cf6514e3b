// Harness of 09a: each block computes a run of tiles of 128 rows, every row minus its largest element, and keeps the
// rows in tensor memory between the two passes.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "grader/emulator/machine/memory.h"
#include "grader/harness/exercise.h"

namespace {

using namespace handoff::harness;

constexpr uint32_t kRows = 128;

class TensorMemory : public ExerciseTest {
 public:
  std::vector<Case> cases(uint64_t seed) const override {
    struct Shape {
      uint32_t tiles, columns, blocks;
    };
    std::vector<Case> list;
    // One block with 0, 1, 2 and 5 tiles; then several, not all with as many tiles, and fewer tiles than blocks.
    for (const Shape s : {Shape{0, 32, 1}, Shape{1, 32, 1}, Shape{1, 128, 1}, Shape{2, 64, 1}, Shape{5, 32, 1},
                          Shape{5, 64, 2}, Shape{2, 128, 3}}) {
      list.push_back(one(s.tiles, s.columns, s.blocks, seed + 64 * s.tiles + s.columns));
    }
    return list;
  }

 protected:
  /// Value of a parameter that is passed by value.
  static uint64_t number(const KernelRun& run, const char* name) {
    int32_t n = 0;
    for (const Parameter& p : run.test_case->parameters())
      if (p.name == name) std::memcpy(&n, p.value.data(), sizeof n);
    return static_cast<uint64_t>(n);
  }
  /// Bytes of all tiles.
  static uint64_t bytes(const KernelRun& run) {
    return number(run, "tiles") * number(run, "columns") * kRows * sizeof(float);
  }

 private:
  static Case one(uint32_t tiles, uint32_t columns, uint32_t blocks, uint64_t seed) {
    const uint32_t tile = kRows * columns;
    Case c(fmt::format("{} tile{} of {} columns, {} block{}", tiles, tiles == 1 ? "" : "s", columns, blocks,
                       blocks == 1 ? "" : "s"));
    c.grid(blocks).block(kRows);
    if (tiles == 0) {
      // There is one tile of memory, and it must stay as it was.
      c.in("in", random_floats(tile, seed))
          .out("out", std::vector<uint8_t>(tile * sizeof(float), handoff::machine::kPoison));
    } else {
      const std::vector<float> in = random_floats(size_t{tiles} * tile, seed);
      std::vector<float> out(in.size());
      for (uint32_t t = 0; t < tiles; t++) {
        for (uint32_t row = 0; row < kRows; row++) {
          const auto at = [=](uint32_t column) { return (size_t{t} * columns + column) * kRows + row; };
          float largest = in[at(0)];
          for (uint32_t column = 1; column < columns; column++) largest = std::max(largest, in[at(column)]);
          for (uint32_t column = 0; column < columns; column++) out[at(column)] = in[at(column)] - largest;
        }
      }
      c.in("in", in).out("out", out);
    }
    return c.value("columns", static_cast<int32_t>(columns)).value("tiles", static_cast<int32_t>(tiles));
  }
};

HANDOFF_STANDARD_TESTS("09a", TensorMemory)

// Between the passes a row is in tensor memory: it is written there and read from there, comes from global memory once,
// and makes no detour by shared memory, which holds an address and what a block may need for its barriers.
HANDOFF_TEST("09a", TensorMemory, rows_in_tensor_memory, "rows-in-tensor-memory") {
  if (!on_emulator()) {
    EXPECT_NE(ptx().find("tcgen05.st."), std::string::npos) << "the kernel stores nothing to tensor memory";
    EXPECT_NE(ptx().find("tcgen05.ld."), std::string::npos) << "the kernel loads nothing from tensor memory";
    return;
  }
  constexpr uint64_t kSharedBytesOfABlock = 1024;
  for (const KernelRun& run : traced_runs()) {
    const uint64_t wanted = bytes(run), shared = kSharedBytesOfABlock * run.test_case->config().grid.x;
    EXPECT_THAT(
        run, Traced(
                 fmt::format("{} bytes to tensor memory, and back, and from global memory once", wanted),
                 [=](const handoff::trace::Trace& t) {
                   return t.totals.tmem_store_bytes >= wanted && t.totals.tmem_load_bytes >= wanted &&
                          t.totals.global_load_bytes <= wanted && t.totals.shared_store_bytes <= shared;
                 },
                 [](const handoff::trace::Trace& t) {
                   return fmt::format(
                       "{} bytes stored to tensor memory, {} loaded from it, {} loaded from global memory, {} stored "
                       "to shared memory",
                       t.totals.tmem_store_bytes, t.totals.tmem_load_bytes, t.totals.global_load_bytes,
                       t.totals.shared_store_bytes);
                 }));
  }
}

// A block allocates before its first tile and keeps the columns to its last. Allocation may have to wait for other
// blocks of the SM, so it has no place in the loop; and what one block has in excess another one waits for.
HANDOFF_TEST("09a", TensorMemory, allocates_once, "allocates-once") {
  if (!on_emulator()) {
    EXPECT_NE(ptx().find("tcgen05.alloc."), std::string::npos) << "the kernel does not allocate tensor memory";
    return;
  }
  for (const KernelRun& run : traced_runs()) {
    const uint64_t blocks = run.test_case->config().grid.x, columns = number(run, "columns");
    const uint64_t least = columns * std::min(blocks, number(run, "tiles")), most = columns * blocks;
    EXPECT_THAT(run, Traced(
                         fmt::format("{} columns a block that has a tile, allocated once", columns),
                         [=](const handoff::trace::Trace& t) {
                           return t.totals.tmem_columns >= least && t.totals.tmem_columns <= most;
                         },
                         [=](const handoff::trace::Trace& t) {
                           return fmt::format("{} columns, in {} allocations by {} block{}", t.totals.tmem_columns,
                                              t.totals.tmem_allocations, blocks, blocks == 1 ? "" : "s");
                         }));
  }
}

}  // namespace
