// Tested by tensor_memory_test.cc.
#include "grader/emulator/async/tensor_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace handoff::async {

using Shape = TensorAccessForm::Shape;

uint32_t TensorAccessForm::registers() const {
  switch (shape) {
    case Shape::L16x128b:
      return 2 * repeat;
    case Shape::L16x256b:
      return 4 * repeat;
    default:
      return repeat;
  }
}

std::vector<std::pair<uint32_t, uint32_t>> TensorAccessForm::columns() const {
  const uint32_t each = packed ? 2 : 1;
  switch (shape) {
    case Shape::L16x64b:
      return {{0, 2 * repeat * each}};
    case Shape::L16x128b:
      return {{0, 4 * repeat * each}};
    case Shape::L16x256b:
      return {{0, 8 * repeat * each}};
    case Shape::L16x32bx2:
      return {{0, repeat * each}, {split, repeat * each}};
    default:
      return {{0, repeat * each}};
  }
}

std::string TensorAccessForm::problem() const {
  const uint32_t most = shape == Shape::L16x128b ? 64 : shape == Shape::L16x256b ? 32 : 128;
  return repeat > most ? fmt::format("this shape has no .x{}; .x{} is its largest", repeat, most) : std::string();
}

// PTX §9.7.16.2.3: data movement shapes.
TensorCell TensorAccessForm::cell(uint32_t t, uint32_t i) const {
  const uint32_t each = packed ? 2 : 1;
  switch (shape) {
    case Shape::L16x64b:
      return {(t >> 2) + 8 * (t & 1), each * ((t >> 1 & 1) + 2 * i)};
    case Shape::L16x128b:
      return {(t >> 2) + 8 * (i & 1), each * ((t & 3) + 4 * (i >> 1))};
    case Shape::L16x256b:
      return {(t >> 2) + 8 * (i >> 1 & 1), each * (2 * (t & 3) + (i & 1) + 8 * (i >> 2))};
    case Shape::L16x32bx2:
      return {t & 15, each * i + (t < 16 ? 0 : split)};
    default:
      return {t, each * i};
  }
}

void tensor_load(const uint32_t* cells, const TensorAccessForm& form, TensorCell at, uint32_t (*registers)[32]) {
  const uint32_t count = form.registers();
  for (uint32_t i = 0; i < count; i++) {
    for (uint32_t t = 0; t < 32; t++) {
      const TensorCell c = form.cell(t, i);
      const uint32_t* p = cells + size_t{at.lane + c.lane} * kTensorMemoryColumns + at.column + c.column;
      registers[i][t] = form.packed ? (p[0] & 0xffffu) | p[1] << 16 : p[0];
    }
  }
}

void tensor_store(uint32_t* cells, const TensorAccessForm& form, TensorCell at, const uint32_t (*registers)[32]) {
  const uint32_t count = form.registers();
  for (uint32_t i = 0; i < count; i++) {
    for (uint32_t t = 0; t < 32; t++) {
      const TensorCell c = form.cell(t, i);
      uint32_t* p = cells + size_t{at.lane + c.lane} * kTensorMemoryColumns + at.column + c.column;
      if (form.packed) {
        p[0] = registers[i][t] & 0xffffu;
        p[1] = registers[i][t] >> 16;
      } else {
        p[0] = registers[i][t];
      }
    }
  }
}

uint32_t TensorCopyForm::rows() const {
  switch (shape) {
    case Shape::C4x256b:
      return 4;
    case Shape::C64x128b02_13:
    case Shape::C64x128b01_23:
      return 64;
    case Shape::C32x128b:
      return 32;
    default:
      return 128;
  }
}

std::array<uint32_t, 4> TensorCopyForm::lanes(uint32_t row, uint32_t& count) const {
  switch (shape) {
    case Shape::C4x256b:
      count = 1;
      return {32 * row};
    case Shape::C64x128b02_13:
      count = 2;
      return {row, row + 64};
    case Shape::C64x128b01_23:
      count = 2;
      return {row / 32 * 64 + row % 32, row / 32 * 64 + 32 + row % 32};
    case Shape::C32x128b:
      count = 4;
      return {row, row + 32, row + 64, row + 96};
    default:
      count = 1;
      return {row};
  }
}

namespace {

constexpr uint32_t kUnitWords = 4;

/// 16 elements of `bits` bits become bytes.
void widen(const std::byte* unit, uint32_t bits, uint32_t (&words)[kUnitWords]) {
  uint64_t packed[2];
  std::memcpy(packed, unit, sizeof packed);
  std::memset(words, 0, sizeof words);
  const uint32_t place = 6 - bits;
  for (uint32_t e = 0; e < 16; e++) {
    const uint32_t bit = e * bits;
    uint64_t from = packed[bit / 64] >> bit % 64;
    if (bit % 64 + bits > 64) from |= packed[1] << (64 - bit % 64);
    words[e / 4] |= static_cast<uint32_t>(from & ((1u << bits) - 1)) << (e % 4 * 8 + place);
  }
}

}  // namespace

void tensor_copy(const TensorCopyForm& form, const std::byte* shared, const std::vector<uint32_t>& units,
                 uint32_t* cells, TensorCell at) {
  const uint32_t units_per_row = form.columns() / kUnitWords;
  for (uint32_t row = 0; row < form.rows(); row++) {
    uint32_t count = 0;
    const std::array<uint32_t, 4> lanes = form.lanes(row, count);
    for (uint32_t u = 0; u < units_per_row; u++) {
      const std::byte* unit = shared + units[size_t{row} * units_per_row + u];
      uint32_t words[kUnitWords];
      if (form.element_bits == 8) {
        std::memcpy(words, unit, sizeof words);
      } else {
        widen(unit, form.element_bits, words);
      }
      for (uint32_t k = 0; k < count; k++) {
        std::memcpy(cells + size_t{at.lane + lanes[k]} * kTensorMemoryColumns + at.column + size_t{u} * kUnitWords,
                    words, sizeof words);
      }
    }
  }
}

ColumnSet TensorMemory::columns() const {
  ColumnSet set;
  for (const Allocation& a : allocations) {
    for (uint32_t c = a.column; c < a.column + a.columns; c++) set.set(c);
  }
  return set;
}

bool TensorMemory::allocates(uint32_t column, uint32_t count) const {
  return std::any_of(allocations.begin(), allocations.end(),
                     [&](const Allocation& a) { return a.column == column && a.columns == count; });
}

bool TensorMemory::holds(uint32_t column, uint32_t count) const {
  // An access may run over several allocations, which need not stand in order.
  for (uint32_t c = column; c < column + count;) {
    const Allocation* in = nullptr;
    for (const Allocation& a : allocations) {
      if (c >= a.column && c < a.column + a.columns) in = &a;
    }
    if (in == nullptr) return false;
    c = in->column + in->columns;
  }
  return true;
}

int find_columns(const ColumnSet& used, uint32_t columns, bool highest) {
  int found = -1;
  for (uint32_t at = 0; at + columns <= kTensorMemoryColumns && (found < 0 || highest); at += 32) {
    bool free = true;
    for (uint32_t c = at; c < at + columns; c++) free = free && !used.test(c);
    if (free) found = static_cast<int>(at);
  }
  return found;
}

}  // namespace handoff::async
