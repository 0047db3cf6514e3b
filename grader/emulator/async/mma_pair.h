// The arithmetic of tcgen05.mma with cta_group::2: one product over the memory of two CTAs (PTX §9.7.16.5.1,
// §9.7.16.10.5, layouts A and B).
//
// Each CTA has half of the rows of A, half of the columns of B and, in its tensor memory, half of the rows of D: the
// even CTA the first halves. So D is four products of one CTA's A by one CTA's B, and each of them is an operation that
// mma() can do. Descriptors and tensor memory addresses are the same in both CTAs.
//   M = 256 (layout A): a CTA's 128 rows are its 128 lanes; its columns are side by side.
//   M = 128 (layout B): a CTA has 64 rows. The first half of the columns is in lanes 0 to 63, the second in lanes 64 to
//   127 of the same columns. A in tensor memory is there twice, for each half of the lanes.
// Scale factors of block-scaled kinds: each CTA has those of its own rows of A and of all columns of B. With M = 128,
// of which the ISA says nothing, each half of the lanes has those of its half of the columns, as CUTLASS lays them.
#pragma once

#include <array>

#include "grader/emulator/async/mma_compute.h"

namespace handoff::async {

/// The memory of one CTA of a pair.
struct PairMember {
  const std::byte* shared = nullptr;  ///< shared memory, addressed from 0
  uint32_t* tensor_memory = nullptr;  ///< [128 lanes][512 columns]
  /// Bit l % 32 of element l / 32: lane l of this CTA is not written.
  std::array<uint32_t, 4> disable_output_lane = {};
};

/// What one CTA holds of an operation whose descriptor has M = 128 or 256: D has 128 lanes and N columns, or N / 2
/// where M = 128; A in tensor memory 128 lanes. For d_blocks, a_blocks and check_tensor_memory.
InstructionDescriptor share_of_pair(const InstructionDescriptor& instruction);

/// Does `operation` for the two CTAs, the even one first: reads A and B, then writes D. Of `operation`, `shared`,
/// `tensor_memory` and `disable_output_lane` are not used.
/// REQUIRES: as MmaOperation, with MmaForm::cta_group 2 and the footprints within the shared memory of either CTA; A in
/// tensor memory does not lie in columns of D.
void mma_of_pair(const MmaOperation& operation, const std::array<PairMember, 2>& members);

}  // namespace handoff::async
