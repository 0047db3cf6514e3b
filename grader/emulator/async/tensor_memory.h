// Tensor memory of a CTA: cells, allocations, which register of which lane meets which cell in tcgen05.ld and st, and
// where tcgen05.cp puts what (PTX §9.7.16.1, §9.7.16.2.3, §9.7.16.8, §9.7.16.9).
//
// 128 lanes × 512 columns of 32-bit cells. A tensor memory address holds the lane in bits 31:16 and the column in bits
// 15:0. Everything here is a function of its arguments; who may do what and when is decided in tcgen05.cc.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "grader/emulator/async/mma_compute.h"
#include "grader/emulator/machine/instruction.h"

namespace handoff::machine {
struct Warp;
}

namespace handoff::async {

/// A cell, or its distance from the cell that an address names.
struct TensorCell {
  /// Lane 0 … 127; column 0 … 511.
  ///@{
  uint32_t lane = 0, column = 0;
  ///@}
};

/// Takes a tensor memory address apart; the lane may be beyond 127.
inline TensorCell tensor_cell(uint32_t address) { return {address >> 16, address & 0xffffu}; }

/// What tcgen05.ld and st name in their opcode.
struct TensorAccessForm {
  /// `.shape`.
  enum class Shape : uint8_t { L32x32b, L16x64b, L16x128b, L16x256b, L16x32bx2 };
  Shape shape = Shape::L32x32b;  ///< lanes and columns that a warp's registers cover
  uint32_t repeat = 1;           ///< N of `.xN`
  bool packed = false;  ///< `.pack::16b`, `.unpack::16b`: two 16-bit elements of neighbouring columns in a register
  uint32_t split = 0;   ///< immHalfSplitoff of `.16x32bx2`, columns

  /// Registers of a thread.
  uint32_t registers() const;
  /// Lanes: 32 or 16.
  uint32_t lanes() const { return shape == Shape::L32x32b ? 32 : 16; }
  /// Ranges of columns that are touched, first and number, as distances from the address: one, or two for .16x32bx2.
  std::vector<std::pair<uint32_t, uint32_t>> columns() const;
  /// Why PTX has no such form, or an empty string: the largest N depends on the shape.
  std::string problem() const;
  /// Where register `index` of thread `thread` (0 … 31 in the warp) lies, as a distance from the address; of a packed
  /// form its low half, the high half being one column on.
  TensorCell cell(uint32_t thread, uint32_t index) const;
};

/// Loads the registers of a warp: registers[i][t] is register i of lane t. `cells` is [128][512]. All cells must exist.
void tensor_load(const uint32_t* cells, const TensorAccessForm& form, TensorCell at, uint32_t (*registers)[32]);
/// Stores them. A packed form leaves zeros in the upper halves of the cells (PTX does not say what is there).
void tensor_store(uint32_t* cells, const TensorAccessForm& form, TensorCell at, const uint32_t (*registers)[32]);

/// What tcgen05.cp names in its opcode (PTX §9.7.16.9.2). The source is a K-major matrix of rows() rows in shared
/// memory.
///
/// The ISA says which warps' lanes receive what, not the place of each row; that is as CUTLASS has it (CuTe,
/// copy_traits_sm100.hpp): row r goes to lane r; with .warpx2::02_13 also to lane r + 64; with .warpx2::01_23 row
/// 32·h + q to lanes 64·h + q and 64·h + 32 + q; with .warpx4 to r + 32·{0, 1, 2, 3}; of .4x256b row r goes to lane
/// 32·r.
struct TensorCopyForm {
  /// `.shape` with its `.multicast`.
  enum class Shape : uint8_t { C128x256b, C4x256b, C128x128b, C64x128b02_13, C64x128b01_23, C32x128b };
  Shape shape = Shape::C128x256b;  ///< as above
  /// Bits of an element in shared memory: 8 where bytes are copied as they are; 4 (`.b8x16.b4x16_p64`) or 6
  /// (`.b8x16.b6x16_p32`) where 16 elements, packed from bit 0 of 16 bytes, become a byte each (§9.7.16.9.1): in bits
  /// 5:2 of it or 5:0, the others 0, as tcgen05.mma takes A from tensor memory (mma_formats.h).
  uint8_t element_bits = 8;

  /// Of the source: 128, 64, 32 or 4.
  uint32_t rows() const;
  /// 32-bit cells of a row, in as many columns: 8 or 4.
  uint32_t columns() const { return shape == Shape::C128x256b || shape == Shape::C4x256b ? 8 : 4; }
  /// Lanes that receive row `row`, as distances from the address; `count` of them.
  std::array<uint32_t, 4> lanes(uint32_t row, uint32_t& count) const;
  /// From the lane of the address to behind the last one: 97 for .4x256b, else 128.
  uint32_t span() const { return shape == Shape::C4x256b ? 97 : 128; }
};

/// Does the copy: `units` are the offsets in `shared` of the source's 16-byte units, row after row; `cells` is
/// [128][512].
void tensor_copy(const TensorCopyForm& form, const std::byte* shared, const std::vector<uint32_t>& units,
                 uint32_t* cells, TensorCell at);

/// Columns in use.
using ColumnSet = std::bitset<kTensorMemoryColumns>;

/// What a CTA has of tensor memory.
struct TensorMemory {
  /// One tcgen05.alloc.
  struct Allocation {
    /// First and number.
    ///@{
    uint32_t column, columns;
    ///@}
    const machine::Inst* inst;  ///< the alloc
  };
  /// The warp that waits in tcgen05.alloc.cta_group::2 for one of the other CTA.
  struct PairRequest {
    const machine::Warp* warp = nullptr;  ///< nullptr: nobody waits
    const machine::Inst* inst = nullptr;  ///< the alloc
    uint32_t columns = 0;                 ///< that it asks for
    int granted = -1;                     ///< the first column, once the other warp has come
  };
  std::vector<uint32_t> cells;          ///< [128][512]; empty until the first allocation
  std::vector<Allocation> allocations;  ///< live ones
  uint32_t last_columns = 0;            ///< of the last alloc; 0: none yet
  bool relinquished = false;            ///< no more allocations
  PairRequest request;                  ///< of a warp of this CTA
  /// `.cta_group` of the CTA's first tcgen05 instruction that has one, and that instruction; 0: none yet.
  ///@{
  uint8_t cta_group = 0;
  const machine::Inst* group_inst = nullptr;
  ///@}

  /// Columns of the live allocations.
  ColumnSet columns() const;
  /// Is that one allocation?
  bool allocates(uint32_t column, uint32_t columns) const;
  /// Are all of [column, column + columns) allocated?
  bool holds(uint32_t column, uint32_t columns) const;
};

/// The lowest free range of `columns` columns that starts at a multiple of 32, or the highest one; −1 if there is none.
int find_columns(const ColumnSet& used, uint32_t columns, bool highest = false);

}  // namespace handoff::async
