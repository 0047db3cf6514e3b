// Warp-level matrix instructions: mma, ldmatrix, stmatrix, movmatrix (PTX §9.7.14.5).
#pragma once

#include <array>
#include <cstddef>

#include "grader/emulator/machine/observer.h"
#include "grader/emulator/machine/warp.h"

namespace handoff::machine {

/// Bytes of shared memory that one address operand of ldmatrix and stmatrix names: a row.
inline constexpr uint32_t kMatrixRowBytes = 16;
/// A row for each lane.
using MatrixRows = std::array<std::array<std::byte, kMatrixRowBytes>, kWarpSize>;

/// The address operand of a matrix instruction into `inst`, as transfer_matrix_rows() reads it (memory_ops.cc).
void set_matrix_address(Inst* inst, const MemoryOperand& operand);

/// Copies, for each lane of `mask`, the row that its address names into `rows` (Access::Kind::Read) or back (Write):
/// weak accesses of the generic proxy, of which the observer is told at the lanes that supplied the addresses. Faults
/// on a row that is misaligned, out of bounds or outside of shared memory (memory_ops.cc).
void transfer_matrix_rows(Warp& warp, const Inst& inst, LaneMask mask, Access::Kind kind, MatrixRows* rows);

/// Faults unless `mask` is the whole warp. Lanes that have left are missing, too: the manual leaves the behaviour of
/// these instructions undefined if any thread of the warp has exited.
void require_whole_warp(const Warp& warp, const Inst& inst, LaneMask mask);

/// mma (mma.cc).
void register_mma_decoder(DecoderTable& table);
/// ldmatrix, stmatrix, movmatrix, mma.
void register_matrix_decoders(DecoderTable& table);

}  // namespace handoff::machine
