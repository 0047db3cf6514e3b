// Which register of which thread meets which cell, against the figures of PTX §9.7.16.2.3 as one reads them: row by
// row, from left to right, each piece with the thread and the register that it belongs to.
#include "grader/emulator/async/tensor_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace handoff::async {
namespace {

using Shape = TensorAccessForm::Shape;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

/// Whose a cell is. `half`: of a packed register the low one, 0, or the high one, 1.
struct Owner {
  uint32_t thread, index, half;
};
/// A figure: for each row its cells from left to right. Of .16x32bx2 the second block has a figure of its own.
using Figure = std::vector<std::vector<Owner>>;

/// The figures of a form, left to right.
std::vector<Figure> figures(const TensorAccessForm& form) {
  std::vector<Figure> all(form.shape == Shape::L16x32bx2 ? 2 : 1, Figure(form.lanes()));
  const auto append = [&](Figure& figure, uint32_t row, uint32_t thread, uint32_t index) {
    for (uint32_t half = 0; half < (form.packed ? 2u : 1u); half++) figure[row].push_back({thread, index, half});
  };
  for (uint32_t repeat = 0; repeat < form.repeat; repeat++) {
    switch (form.shape) {
      case Shape::L32x32b:
        for (uint32_t row = 0; row < 32; row++) append(all[0], row, row, repeat);
        break;
      case Shape::L16x32bx2:
        for (uint32_t row = 0; row < 16; row++) append(all[0], row, row, repeat);
        for (uint32_t row = 0; row < 16; row++) append(all[1], row, 16 + row, repeat);
        break;
      // In the others four neighbouring threads, a quad, share row `quad` of the upper 8 and of the lower 8.
      case Shape::L16x64b:
        for (uint32_t quad = 0; quad < 8; quad++) {
          for (const uint32_t even : {0u, 2u}) append(all[0], quad, 4 * quad + even, repeat);
          for (const uint32_t odd : {1u, 3u}) append(all[0], 8 + quad, 4 * quad + odd, repeat);
        }
        break;
      case Shape::L16x128b:
        for (uint32_t lower = 0; lower < 2; lower++) {
          for (uint32_t thread = 0; thread < 32; thread++)
            append(all[0], 8 * lower + thread / 4, thread, 2 * repeat + lower);
        }
        break;
      case Shape::L16x256b:
        for (uint32_t lower = 0; lower < 2; lower++) {
          for (uint32_t thread = 0; thread < 32; thread++) {
            append(all[0], 8 * lower + thread / 4, thread, 4 * repeat + 2 * lower);
            append(all[0], 8 * lower + thread / 4, thread, 4 * repeat + 2 * lower + 1);
          }
        }
        break;
    }
  }
  return all;
}

/// Calls f(distance of the cell from the address, its owner) for every cell of the figures.
template <class F>
void for_cells(const TensorAccessForm& form, F f) {
  uint32_t left = 0;
  for (const Figure& figure : figures(form)) {
    for (uint32_t row = 0; row < figure.size(); row++) {
      for (uint32_t k = 0; k < figure[row].size(); k++) f(TensorCell{row, left + k}, figure[row][k]);
    }
    left = form.split;
  }
}

/// Registers of a thread by the table of PTX §9.7.16.8.2.
uint32_t registers_by_table(const TensorAccessForm& form) {
  const uint32_t of_x1 = form.shape == Shape::L16x128b ? 2 : form.shape == Shape::L16x256b ? 4 : 1;
  return of_x1 * form.repeat;
}

std::vector<TensorAccessForm> all_forms() {
  std::vector<TensorAccessForm> forms;
  for (const Shape shape : {Shape::L32x32b, Shape::L16x64b, Shape::L16x128b, Shape::L16x256b, Shape::L16x32bx2}) {
    const uint32_t most = shape == Shape::L16x128b ? 64 : shape == Shape::L16x256b ? 32 : 128;
    for (uint32_t repeat = 1; repeat <= most; repeat *= 2) {
      for (const bool packed : {false, true}) {
        TensorAccessForm form{shape, repeat, packed, 0};
        if (shape == Shape::L16x32bx2) form.split = (packed ? 2 : 1) * repeat;
        forms.push_back(form);
        if (shape != Shape::L16x32bx2) continue;
        form.split += 3;  // the blocks need not touch
        if (form.split + repeat * (packed ? 2 : 1) <= kTensorMemoryColumns) forms.push_back(form);
      }
    }
  }
  return forms;
}

}  // namespace

void PrintTo(const TensorAccessForm& f, std::ostream* out) {
  const char* const names[] = {"32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"};
  *out << names[static_cast<int>(f.shape)] << ".x" << f.repeat << (f.packed ? " packed" : "") << " split " << f.split;
}

namespace {

class TensorAccessTest : public ::testing::TestWithParam<TensorAccessForm> {
 protected:
  TensorAccessTest() : cells_(size_t{kTensorMemoryLanes} * kTensorMemoryColumns) {
    for (uint32_t& c : cells_) c = static_cast<uint32_t>(random_());
  }
  uint32_t& cell(TensorCell at, TensorCell distance) {
    return cells_[size_t{at.lane + distance.lane} * kTensorMemoryColumns + at.column + distance.column];
  }
  /// Some addresses at which all cells exist: the corners of tensor memory and places between.
  std::vector<TensorCell> places(const TensorAccessForm& form) const {
    uint32_t width = 0;
    for (const auto& [first, count] : form.columns()) width = std::max(width, first + count);
    const uint32_t last_lane = kTensorMemoryLanes - form.lanes(), last_column = kTensorMemoryColumns - width;
    return {{0, 0}, {last_lane, last_column}, {32, last_column / 2}, {last_lane, 0}};
  }

  std::mt19937 random_{1};
  std::vector<uint32_t> cells_;
  uint32_t registers_[128][32] = {};
};

TEST_P(TensorAccessTest, CellsAreThoseOfTheFigure) {
  const TensorAccessForm& form = GetParam();
  EXPECT_EQ(form.problem(), "");
  EXPECT_EQ(form.registers(), registers_by_table(form));
  std::set<std::pair<uint32_t, uint32_t>> hit, owners;
  for_cells(form, [&](TensorCell c, const Owner& o) {
    EXPECT_TRUE(hit.insert({c.lane, c.column}).second) << "cell " << c.lane << ", " << c.column << " is hit twice";
    EXPECT_EQ(form.cell(o.thread, o.index).lane, c.lane) << "thread " << o.thread << " register " << o.index;
    EXPECT_EQ(form.cell(o.thread, o.index).column + o.half, c.column)
        << "thread " << o.thread << " register " << o.index;
    owners.insert({o.thread, o.index});
  });
  EXPECT_EQ(owners.size(), 32u * form.registers()) << "registers without a cell";
  // The rectangle, or both, without a hole.
  std::set<std::pair<uint32_t, uint32_t>> rectangle;
  for (const auto& [first, count] : form.columns()) {
    for (uint32_t lane = 0; lane < form.lanes(); lane++) {
      for (uint32_t c = first; c < first + count; c++) rectangle.insert({lane, c});
    }
  }
  EXPECT_EQ(hit, rectangle);
}

TEST_P(TensorAccessTest, LoadTakesTheCellsOfTheFigure) {
  const TensorAccessForm& form = GetParam();
  for (const TensorCell at : places(form)) {
    tensor_load(cells_.data(), form, at, registers_);
    std::vector<std::vector<uint32_t>> expected(form.registers(), std::vector<uint32_t>(32, 0));
    for_cells(form, [&](TensorCell c, const Owner& o) {
      expected[o.index][o.thread] |= form.packed ? (cell(at, c) & 0xffffu) << 16 * o.half : cell(at, c);
    });
    for (uint32_t i = 0; i < form.registers(); i++) {
      for (uint32_t t = 0; t < 32; t++)
        ASSERT_EQ(registers_[i][t], expected[i][t]) << "thread " << t << " register " << i;
    }
  }
}

TEST_P(TensorAccessTest, StoreWritesTheCellsOfTheFigureAndNoOther) {
  const TensorAccessForm& form = GetParam();
  for (auto& row : registers_) {
    for (uint32_t& r : row) r = static_cast<uint32_t>(random_());
  }
  for (const TensorCell at : places(form)) {
    const std::vector<uint32_t> before = cells_;
    tensor_store(cells_.data(), form, at, registers_);
    const std::vector<uint32_t> after = cells_;
    cells_ = before;
    for_cells(form, [&](TensorCell c, const Owner& o) {
      const uint32_t value = registers_[o.index][o.thread];
      cell(at, c) = form.packed ? value >> 16 * o.half & 0xffffu : value;
    });
    ASSERT_EQ(after, cells_);
    uint32_t back[128][32];
    tensor_load(after.data(), form, at, back);
    for (uint32_t i = 0; i < form.registers(); i++)
      ASSERT_TRUE(std::equal(back[i], back[i] + 32, registers_[i])) << "register " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(AllForms, TensorAccessTest, ::testing::ValuesIn(all_forms()));

TEST(TensorAccessFormTest, EveryShapeHasItsLargestRepeat) {
  EXPECT_EQ((TensorAccessForm{Shape::L16x128b, 128, false, 0}.problem()),
            "this shape has no .x128; .x64 is its largest");
  EXPECT_EQ((TensorAccessForm{Shape::L16x256b, 64, true, 0}.problem()), "this shape has no .x64; .x32 is its largest");
  EXPECT_EQ((TensorAccessForm{Shape::L16x256b, 128, false, 0}.problem()),
            "this shape has no .x128; .x32 is its largest");
}

TEST(TensorAccessFormTest, AnAddressIsTakenApart) {
  EXPECT_EQ(tensor_cell(0x00600020).lane, 96u);
  EXPECT_EQ(tensor_cell(0x00600020).column, 32u);
  EXPECT_EQ(tensor_cell(0x00a001ff).lane, 160u);  // beyond the lanes of a CTA: left to the caller
  EXPECT_EQ(tensor_cell(0x00a001ff).column, 511u);
}

TEST(TensorAccessFormTest, TheSplitStandsInTheSecondRange) {
  const TensorAccessForm form{Shape::L16x32bx2, 8, true, 40};
  EXPECT_THAT(form.columns(), ElementsAre(Pair(0, 16), Pair(40, 16)));
}

ColumnSet columns_of(std::initializer_list<std::pair<uint32_t, uint32_t>> ranges) {
  ColumnSet set;
  for (const auto& [first, last] : ranges) {
    for (uint32_t c = first; c <= last; c++) set.set(c);
  }
  return set;
}

TEST(FindColumnsTest, TakesTheLowestPlace) {
  EXPECT_EQ(find_columns({}, 512), 0);
  EXPECT_EQ(find_columns(columns_of({{0, 31}}), 512), -1);
  EXPECT_EQ(find_columns(columns_of({{0, 31}}), 256), 32);
  EXPECT_EQ(find_columns(columns_of({{0, 31}, {64, 127}}), 32), 32);
  EXPECT_EQ(find_columns(columns_of({{0, 31}, {64, 127}}), 64), 128);
  EXPECT_EQ(find_columns(columns_of({{0, 447}}), 64), 448);
  EXPECT_EQ(find_columns(columns_of({{0, 447}}), 128), -1);
  EXPECT_EQ(find_columns(columns_of({{0, 0}, {511, 511}}), 32), 32);
}

TEST(FindColumnsTest, TakesTheHighestPlaceIfAsked) {
  EXPECT_EQ(find_columns({}, 512, true), 0);
  EXPECT_EQ(find_columns({}, 32, true), 480);
  const ColumnSet used = columns_of({{32, 63}, {128, 511}});  // free: 0, 64 and 96
  EXPECT_EQ(find_columns(used, 32, true), 96);
  EXPECT_EQ(find_columns(used, 64, true), 64);
  EXPECT_EQ(find_columns(used, 128, true), -1);
}

// Pieces that fit together always find their places, from whichever end each is taken.
TEST(FindColumnsTest, NeitherEndTearsTheFreeColumnsApart) {
  const std::vector<std::vector<uint32_t>> sequences = {
      {256, 256}, {256, 128, 64, 32, 32}, {128, 128, 128, 128}, {64, 256, 32, 128, 32}, {32, 32, 64, 128, 256}};
  for (const auto& sizes : sequences) {
    for (uint32_t ends = 0; ends < 1u << sizes.size(); ends++) {
      ColumnSet used;
      for (size_t k = 0; k < sizes.size(); k++) {
        const int at = find_columns(used, sizes[k], (ends >> k & 1u) != 0);
        ASSERT_GE(at, 0) << "piece " << k << " of " << sizes[k] << " columns, ends " << ends;
        const auto first = static_cast<uint32_t>(at);
        const ColumnSet piece = columns_of({{first, first + sizes[k] - 1}});
        ASSERT_TRUE((used & piece).none());
        used |= piece;
      }
      EXPECT_TRUE(used.all());
    }
  }
}

TEST(TensorMemoryTest, HoldsWhatItsAllocationsCoverTogether) {
  TensorMemory m;
  EXPECT_THAT(m.allocations, IsEmpty());
  EXPECT_FALSE(m.holds(0, 1));
  EXPECT_TRUE(m.columns().none());
  m.allocations = {{64, 64, nullptr}, {256, 32, nullptr}, {32, 32, nullptr}, {128, 32, nullptr}};
  ColumnSet covered = columns_of({{32, 159}, {256, 287}});
  EXPECT_EQ(m.columns(), covered);
  for (uint32_t column = 0; column < kTensorMemoryColumns; column++) {
    bool all = true;
    for (uint32_t end = column; end < kTensorMemoryColumns; end++) {
      all = all && covered[end];
      ASSERT_EQ(m.holds(column, end - column + 1), all) << column << " to " << end;
    }
  }
  EXPECT_FALSE(m.holds(256, 0x1000));  // beyond the last column
}

}  // namespace
}  // namespace handoff::async
