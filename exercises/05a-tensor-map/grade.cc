// Harness of 05a: each block copies one tile of an image, inside it, over its edges or beyond them, through a tensor
// map that the submission describes.
#include <fmt/format.h>

#include <limits>

#include "grader/harness/exercise.h"

namespace {

using namespace handoff::harness;

// The image is 139,840 bytes long. Some drivers of Blackwell GPUs encode the map of a tensor with padded rows wrongly
// where its memory is below 128 KiB (github.com/triton-lang/triton/issues/10442).
constexpr int kColumns = 72, kRows = 460, kPitch = 76;  // floats, rows, floats
constexpr int kTileColumns = 32, kTileRows = 16;

class TensorMap : public ExerciseTest {
 public:
  std::vector<Case> cases(uint64_t seed) const override {
    struct Shape {
      const char* where;
      int x0, y0;
      uint32_t across, down, threads;
    };
    std::vector<Case> list;
    for (const Shape& s : {
             Shape{"inside", 32, 160, 1, 1, 128},
             Shape{"over the right edge", 64, 35, 1, 1, 64},
             Shape{"over the bottom edge", 20, 451, 1, 1, 128},
             Shape{"over the corner", 56, 448, 1, 1, 32},
             Shape{"right of the image", 72, 21, 1, 1, 128},
             Shape{"below the image", 32, 460, 1, 1, 64},
             Shape{"over the left and the upper edge", -4, -3, 1, 1, 128},
             Shape{"left of the image", -32, 80, 1, 1, 64},
             Shape{"over three edges", -12, 445, 4, 2, 256},
             Shape{"the whole image", 0, 0, 3, 29, 128},
         }) {
      list.push_back(one(s.where, s.x0, s.y0, s.across, s.down, s.threads, seed + list.size()));
    }
    return list;
  }

 protected:
  static uint64_t tiles(const KernelRun& run) { return run.test_case->config().grid.volume(); }
  static uint64_t bytes(const KernelRun& run) { return tiles(run) * kTileColumns * kTileRows * sizeof(float); }

 private:
  static Case one(const std::string& where, int x0, int y0, uint32_t across, uint32_t down, uint32_t threads,
                  uint64_t seed) {
    // What lies between the rows is not image, and shows if it is taken for it.
    std::vector<float> image = random_floats(size_t{kRows} * kPitch, seed);
    for (size_t k = 0; k < image.size(); k++) {
      if (k % kPitch >= kColumns) image[k] = std::numeric_limits<float>::quiet_NaN();
    }
    std::vector<float> out;
    for (uint32_t b = 0; b < across * down; b++) {
      const int x = x0 + kTileColumns * static_cast<int>(b % across);
      const int y = y0 + kTileRows * static_cast<int>(b / across);
      for (int i = 0; i < kTileColumns * kTileRows; i++) {
        const int column = x + i % kTileColumns, row = y + i / kTileColumns;
        const bool inside = column >= 0 && column < kColumns && row >= 0 && row < kRows;
        out.push_back(inside ? image[static_cast<size_t>(row) * kPitch + static_cast<size_t>(column)] : 0.0f);
      }
    }
    return Case(fmt::format("{}, {} tile{}, {} threads", where, across * down, across * down == 1 ? "" : "s", threads))
        .grid(across, down)
        .block(threads)
        .in("image", image)
        .only_by_map()
        .tensor_map_from("image", "image_map", "image")
        .out("out", out)
        .value("x0", x0)
        .value("y0", y0);
  }
};

HANDOFF_STANDARD_TESTS("05a", TensorMap)

// The whole box counts, also what is not image: 2048 bytes a tile, wherever it lies.
HANDOFF_TEST("05a", TensorMap, bytes_add_up, "bytes-add-up") {
  if (!on_emulator()) GTEST_SKIP() << "bytes are counted on the emulator only";
  for (const KernelRun& run : traced_runs()) EXPECT_THAT(run, BytesAddUp(bytes(run)));
}

HANDOFF_TEST("05a", TensorMap, one_box_a_tile, "one-box-a-tile") {
  if (!on_emulator()) {
    EXPECT_NE(ptx().find("cp.async.bulk.tensor."), std::string::npos) << "the kernel has no tensor copy";
    return;
  }
  for (const KernelRun& run : traced_runs()) {
    EXPECT_THAT(run, LoadsByBulkCopy(bytes(run)));
    // Padded rows are no contiguous bytes, so a single copy that brings a tile is one of a box.
    const uint64_t wanted = tiles(run);
    EXPECT_THAT(run, Traced(
                         fmt::format("one copy for each tile, {} in all", wanted),
                         [=](const handoff::trace::Trace& t) { return t.totals.bulk_copies == wanted; },
                         [](const handoff::trace::Trace& t) {
                           return fmt::format("{} bulk cop{} issued", t.totals.bulk_copies,
                                              t.totals.bulk_copies == 1 ? "y was" : "ies were");
                         }));
  }
}

}  // namespace
