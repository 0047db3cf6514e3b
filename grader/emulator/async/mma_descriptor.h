// The descriptors of tcgen05.mma: what the bits say, which rule they break, and where a matrix lies in shared memory
// (PTX §9.7.16.4).
//
// Pure functions of their arguments: no launch, no memory. An instruction's operands are checked in this order:
// decode_instruction_descriptor, check_instruction_descriptor, operand_a and operand_b, check_smem_descriptor for each
// matrix in shared memory; then `footprint` says which bytes are read.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace handoff::async {

/// `.kind::…` of tcgen05.mma (PTX §9.7.16.2.1).
enum class MmaKind : uint8_t { F16, Tf32, F8F6F4, I8, Mxf8f6f4, Mxf4, Mxf4nvf4 };
/// As in PTX: "kind::f16".
const char* to_string(MmaKind kind);
/// mxf8f6f4, mxf4 and mxf4nvf4: the descriptor is that of PTX Tables 43 and 44.
inline bool is_block_scaled(MmaKind kind) { return kind >= MmaKind::Mxf8f6f4; }

/// Type of an element of A, B or D. Reserved: the descriptor's code means no type.
enum class MmaType : uint8_t { F16, Bf16, Tf32, E4m3, E5m2, E2m3, E3m2, E2m1, U8, S8, F32, S32, Reserved };
/// As in PTX: "bf16".
const char* to_string(MmaType type);

/// What the opcode says, and the descriptor must agree with.
struct MmaForm {
  uint8_t cta_group = 1;            ///< 1 or 2
  bool sparse = false;              ///< `.sp`
  bool weight_stationary = false;   ///< `.ws`
  bool a_in_tensor_memory = false;  ///< the operand is `[a-tmem]`, not `a-desc`
  uint8_t scale_factors = 0;        ///< of a row of A and a column of B: 1, 2, 4 (`.scale_vec::1X` …); 0: not told
};

/// The 32-bit instruction descriptor (PTX §9.7.16.4.2, Tables 42, 43 and 44).
struct InstructionDescriptor {
  MmaKind kind = MmaKind::F16;  ///< of the instruction; decides what the bits mean
  uint32_t bits = 0;            ///< as decoded
  uint16_t m = 0;               ///< rows of D, over both CTAs with cta_group::2
  uint16_t n = 0;               ///< columns of D
  /// Elements of A; of B.
  ///@{
  MmaType a_type = MmaType::Reserved, b_type = MmaType::Reserved;
  ///@}
  MmaType d_type = MmaType::Reserved;  ///< F32 for the block-scaled kinds, which have no such field
  /// A·(−1); B·(−1).
  ///@{
  bool negate_a = false, negate_b = false;
  ///@}
  /// The matrix in shared memory is MN-major: A is stored M-contiguous, B is stored N-contiguous.
  ///@{
  bool transpose_a = false, transpose_b = false;
  ///@}
  bool sparse = false;            ///< A is stored with half of its columns
  uint8_t sparsity_selector = 0;  ///< 0 … 3
  bool saturate = false;          ///< kind::i8: clamp to the range of s32
  uint8_t max_shift = 0;          ///< `.ws`: columns that B may shift: 0, 8, 16, 32
  /// Byte of a tensor memory word that holds the first scale factor (block-scaled kinds).
  ///@{
  uint8_t scale_a_id = 0, scale_b_id = 0;
  ///@}
  bool scale_ue8m0 = false;  ///< the scale factors are ue8m0, else ue4m3 (block-scaled kinds)
  bool k96 = false;          ///< K = 96 instead of 64 (mxf4, mxf4nvf4)

  /// Elements along K of one instruction: 32 bytes of a row as tensor cores read it (48 with k96), twice that many
  /// elements when sparse (PTX Table 39).
  uint32_t k() const;
};

/// Every field of `bits`; does not judge.
InstructionDescriptor decode_instruction_descriptor(MmaKind kind, uint32_t bits);

/// The 64-bit shared memory descriptor (PTX §9.7.16.4.1, Table 40). Offsets and addresses are in bytes.
struct SmemDescriptor {
  /// Codes of bits 63:61.
  enum class Swizzle : uint8_t { None = 0, B128Atom32 = 1, B128 = 2, B64 = 4, B32 = 6 };

  uint64_t bits = 0;                 ///< as decoded
  uint32_t start = 0;                ///< shared memory address of the matrix, a multiple of 16, below 256 KiB
  uint32_t leading_byte_offset = 0;  ///< LBO: see operand_address
  uint32_t stride_byte_offset = 0;   ///< SBO: see operand_address
  uint8_t base_offset = 0;           ///< rows of 128 bytes by which the swizzle pattern is shifted, 0 … 7
  bool absolute_leading = false;     ///< bit 52: LBO is an address
  Swizzle swizzle = Swizzle::None;   ///< may hold a code that is none of the above; check_smem_descriptor says so
};
/// As in PTX Table 40: "128-byte swizzle".
const char* to_string(SmemDescriptor::Swizzle swizzle);

/// Every field of `bits`; does not judge.
SmemDescriptor decode_smem_descriptor(uint64_t bits);

/// The 64-bit zero-column mask descriptor of `.ws` (PTX §9.7.16.4.3, Table 45).
struct ZeroColumnMask {
  uint64_t bits = 0;             ///< as decoded
  uint8_t start[4] = {};         ///< bits of each part of the mask that are left out at its low end
  bool begins_with_one[4] = {};  ///< does the part begin with a run of ones?
  bool generated = false;        ///< false: no column is zero
  uint16_t ones = 0;             ///< length of a run of ones, columns that are zero ("skip span" + 1)
  uint16_t zeros = 0;            ///< length of a run of zeros, columns that are used ("use span" + 1)
  uint8_t shift = 0;             ///< columns by which B is shifted

  /// The mask for M rows and N columns: bit n % 64 of element n / 64 is column n. One part of N bits for M = 128, two
  /// of N / 2 for 64, four of N / 4 for 32: runs of ones and zeros in turn. The examples of the manual have it so; the
  /// words of its table give the two lengths the other way round.
  std::array<uint64_t, 4> columns(uint32_t m, uint32_t n) const;
};
/// Every field of `bits`; does not judge.
ZeroColumnMask decode_zero_column_mask(uint64_t bits);

/// One field of a descriptor that breaks a rule.
struct DescriptorProblem {
  std::string field;      ///< its name: "M", "LBO"
  uint64_t value = 0;     ///< its bits, as they stand in the descriptor
  std::string rule;       ///< what the ISA asks for, or what follows
  std::string text;       ///< all of it in one sentence, without a final full stop
  bool advisory = false;  ///< no rule is broken, but the ISA does not settle it or it hardly can be meant
};

/// What is wrong with a zero-column mask: reserved bits; a shift, of which the ISA does not say whether the mask moves
/// with it, and which is refused; an advisory note where the mask is generated.
std::vector<DescriptorProblem> check_zero_column_mask(const ZeroColumnMask& mask);

/// What is wrong with `d` for an instruction of `form`; empty if nothing. Problems come in the order of the bits,
/// except that a wrong M or N is told before fields whose rules depend on them.
std::vector<DescriptorProblem> check_instruction_descriptor(const InstructionDescriptor& d, const MmaForm& form);

/// A or B as one CTA holds it.
struct MatrixOperand {
  char name = 'A';              ///< 'A' or 'B'
  MmaKind kind = MmaKind::F16;  ///< of the instruction
  MmaType type = MmaType::F16;  ///< of an element
  bool mn_major = false;        ///< the descriptor's transpose bit
  uint32_t element_bits =
      0;              ///< as stored in shared memory: 32, 16, 8 (f8f6f4's narrow types too: 16 in 16 bytes) or 4
  uint32_t rows = 0;  ///< M or N of this CTA's share
  uint32_t k = 0;     ///< stored elements along K (half of K for a sparse A)
};
/// A of an instruction whose descriptor is legal: the CTA's share has M / cta_group rows.
MatrixOperand operand_a(const InstructionDescriptor& d, const MmaForm& form);
/// B likewise, with N / cta_group rows (row n of the operand is column n of B).
MatrixOperand operand_b(const InstructionDescriptor& d, const MmaForm& form);

/// What is wrong with `d` as the descriptor of `operand`; empty if nothing. Does not know the size of shared memory:
/// compare footprint() with it.
std::vector<DescriptorProblem> check_smem_descriptor(const SmemDescriptor& d, const MatrixOperand& operand);

/// Shared memory address (bytes) of the element in row `row` (m of A, n of B) and column `k`; for packed 4-bit
/// elements, of its byte. PTX §9.7.16.3, canonical layouts; the swizzle of §5.5.7 on the final address.
///
/// T elements make 16 bytes, a unit. K-major: LBO is the distance between two units along K (without swizzle; with it,
/// units are contiguous), SBO that between groups of 8 rows. MN-major: with swizzle, LBO is the distance between groups
/// of a swizzle's width along MN, SBO that between groups of 8 columns k (4 for the 32-byte atom); without, SBO is that
/// between units along MN and LBO that between groups of 8 columns k.
/// Not reduced to the size of shared memory: an address may lie beyond. `absolute_leading` is ignored.
uint32_t operand_address(const SmemDescriptor& d, bool mn_major, uint32_t element_bits, uint32_t row, uint32_t k);

/// Addresses of the operand's 16-byte units, in the order in which the matrix holds them. K-major: for each row, the
/// units along K. MN-major: for each k, the units along MN. `addresses` is overwritten.
void operand_units(const SmemDescriptor& d, const MatrixOperand& operand, std::vector<uint32_t>& addresses);

/// A run of bytes of shared memory.
struct ByteRun {
  uint32_t offset = 0;  ///< shared memory address
  uint32_t bytes = 0;   ///< length
  /// Equal runs.
  friend bool operator==(const ByteRun& a, const ByteRun& b) { return a.offset == b.offset && a.bytes == b.bytes; }
};
/// The bytes that the operand covers: ascending, disjoint, not adjacent; multiples of 16.
std::vector<ByteRun> footprint(const SmemDescriptor& d, const MatrixOperand& operand);

}  // namespace handoff::async
