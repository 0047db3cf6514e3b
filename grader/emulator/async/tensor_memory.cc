// Tested by tensor_memory_test.cc.
#include "grader/emulator/async/tensor_memory.h"

#include <fmt/format.h>

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

ColumnSet TensorMemory::columns() const {
  ColumnSet set;
  for (const Allocation& a : allocations) {
    for (uint32_t c = a.column; c < a.column + a.columns; c++) set.set(c);
  }
  return set;
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
