// The arithmetic of tcgen05.mma: D = A·B or D = A·B + D, where the block-scaled kinds first multiply A and B with their
// scale factors; dense, cta_group::1 (PTX §9.7.16.10).
//
// Nothing is kept between calls, and nothing is checked here: check_instruction_descriptor, check_smem_descriptor,
// footprint and the blocks below are for the caller, before.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "grader/emulator/async/mma_descriptor.h"

namespace handoff::async {

inline constexpr uint32_t kTensorMemoryLanes = 128;
inline constexpr uint32_t kTensorMemoryColumns = 512;

/// A place in tensor memory: a tensor memory address (lane in bits 31:16, column in bits 15:0) taken apart.
struct TensorMemoryAddress {
  uint16_t lane = 0;    ///< 0 … 127
  uint16_t column = 0;  ///< 0 … 511
};

/// A rectangle of 32-bit cells of tensor memory.
struct TensorMemoryBlock {
  uint16_t lane = 0;     ///< the first
  uint16_t lanes = 0;    ///< how many
  uint16_t column = 0;   ///< the first
  uint16_t columns = 0;  ///< how many
};

/// One tcgen05.mma with cta_group::1, not sparse, K not 96.
/// REQUIRES: the descriptors are legal; the footprints of A and B lie within shared memory; the blocks of D (of A, of
/// the scale factors) lie within tensor memory.
struct MmaOperation {
  InstructionDescriptor instruction;    ///< shape, types, order of the operands
  const std::byte* shared = nullptr;    ///< the CTA's shared memory, addressed from 0
  const std::byte* shared_b = nullptr;  ///< where B is, if that is another CTA's shared memory; nullptr: `shared`
  uint32_t shared_bytes = 0;            ///< its size
  bool a_in_tensor_memory = false;      ///< A is at a_tensor, not at a
  SmemDescriptor a;                     ///< unless a_in_tensor_memory
  TensorMemoryAddress a_tensor;         ///< if a_in_tensor_memory
  SmemDescriptor b;                     ///< B
  uint32_t* tensor_memory = nullptr;    ///< [128 lanes][512 columns]
  TensorMemoryAddress d;                ///< D, and the old D
  bool enable_input_d = false;          ///< false: the old D is not read
  uint8_t scale_input_d = 0;  ///< D is multiplied by 2^-scale_input_d first, 0 … 15; 0 where the form has none
  /// Block-scaled kinds: factors a row of A and a column of B, 1, 2 or 4 (.scale_vec::1X, 2X, 4X); else 0.
  uint8_t scale_factors = 0;
  /// Where they begin, of A and of B; lane 0.
  ///@{
  TensorMemoryAddress scale_a, scale_b;
  ///@}
  uint16_t scale_b_first = 0;  ///< the column of scale_B that column 0 of B takes: another CTA may have those before
  /// Row m of A and D is at lane d.lane + m, also where M = 64 (mma_pair.h).
  bool lanes_in_order = false;
  /// `.ws`: where M is 32 or 64 the columns of D are 4 or 2 blocks of N / 4 or N / 2, each in the next M lanes of the
  /// same columns of tensor memory (layouts G and E). A is in shared memory then.
  bool weight_stationary = false;
  /// `.ws`: bit n % 64 of element n / 64: column n of B is taken to be zero.
  std::array<uint64_t, 4> zero_columns = {};
  /// Bit l % 32 of element l / 32: lane l is not written.
  std::array<uint32_t, 4> disable_output_lane = {};
};

/// Lane that holds row `m` of A or D (PTX §9.7.16.10.5): M = 128, m (layout D); M = 64, m % 16 + 32·(m / 16) (layout
/// F).
inline uint32_t tensor_memory_lane(uint32_t rows, uint32_t m) { return rows == 64 ? m % 16 + m / 16 * 32 : m; }

/// The cells of D: one block for M = 128 and with `.ws`, four of 16 lanes for M = 64. Disabled lanes are not left out.
std::vector<TensorMemoryBlock> d_blocks(const InstructionDescriptor& instruction, TensorMemoryAddress d,
                                        bool weight_stationary = false);
/// The cells of A in tensor memory: 8 columns (32 bytes of K) of the same lanes.
std::vector<TensorMemoryBlock> a_blocks(const InstructionDescriptor& instruction, TensorMemoryAddress a);
/// The cells of the scale factors of `rows` rows of A or columns of B: all lanes, a column for 32 rows
/// (PTX §9.7.16.10.7). Row r has its factors in the bytes of the cell in column r / 32 of lane r % 32; the four
/// quarters of the lanes hold a copy each.
TensorMemoryBlock scale_block(uint32_t rows, TensorMemoryAddress address);
/// What is wrong with the addresses of the scale factors of A and of B: lane 0; the columns end at 512.
std::vector<DescriptorProblem> check_scale_factors(const InstructionDescriptor& instruction, TensorMemoryAddress a,
                                                   TensorMemoryAddress b);
/// What is wrong with the address of D, and of A where it is in tensor memory (else nullptr): lane 0, for M = 64 also
/// 16 and the same for both; the columns end at 512. With `.ws` A is there only where M = 128: the manual does not say
/// where the rows of a smaller one are.
std::vector<DescriptorProblem> check_tensor_memory(const InstructionDescriptor& instruction, TensorMemoryAddress d,
                                                   const TensorMemoryAddress* a, bool weight_stationary = false);

/// Does `operation`: reads A and B, then writes D.
///
/// Products and sums are those of fma in binary32, k ascending, starting from D·2^-s (PTX leaves order and precision of
/// the sum open). All types enter exactly, subnormal numbers included; of a tf32 the low 13 bits are ignored. A NaN
/// result is 0x7fffffff (f16 D: 0x7fff). D of type f16: the sum is rounded once, to nearest even, into the low half of
/// the cell; the high half becomes 0. Scale factors multiply the elements of their block exactly, before the product;
/// the rows of a quarter of the lanes take both from that quarter's copy, so that a missing copy shows. kind::i8: the
/// sum is exact; added to D it is clamped with the saturate bit, and modulo 2^32 without (PTX does not say). The bits
/// do not depend on the host.
void mma(const MmaOperation& operation);

/// While true, mma uses the loops for any host. For tests that compare the variants; not for use by threads.
void use_base_mma(bool base);

}  // namespace handoff::async
