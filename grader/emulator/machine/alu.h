// The arithmetic of a lane: which handler executes which form.
//
// A decoder (alu.cc) reduces an instruction to an AluForm; `find_handler` maps the form to a loop over the 32 lanes.
// The loops are compiled twice from alu_handlers.inc, for any host and for hosts with AVX2 and FMA; both give the same
// bits.
#pragma once

#include <cstdint>

#include "grader/emulator/machine/instruction.h"
#include "grader/emulator/ptx/instruction_table.h"

namespace handoff::machine {

/// Rounding modifiers of PTX §9.7.3 and §9.7.9.21 (`.rn` … `.rs` to a float, `.rni` … `.rpi` to an integral value).
enum class Rounding : uint8_t { None, Rn, Rna, Rz, Rm, Rp, Rs, Rni, Rzi, Rmi, Rpi };

/// Comparison of setp and set. The unsigned spellings lo, ls, hi, hs are lt, le, gt, ge.
enum class Compare : uint8_t { Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan };

/// Form of an instruction that has one Op but several operand shapes.
enum class AluMode : uint8_t {
  None,
  Lo,
  Hi,
  Wide,  ///< mul, mad, mul24, dp2a
  Clamp,
  Wrap,  ///< shf (with `left`), szext, bmsk
  Left,
  LeftWrap,  ///< shf.l
  F4e,
  B4e,
  Rc8,
  Ecl,
  Ecr,
  Rc16,         ///< prmt
  ShiftAmount,  ///< bfind.shiftamt
  Finite,
  Infinite,
  Number,
  NotANumber,
  Normal,
  Subnormal,  ///< testp
  Pack2,
  Pack4,
  Unpack2,
  Unpack4,    ///< mov with a vector; `from` is the element
  Three,      ///< min and max with three inputs
  Predicate,  ///< lop3 with a predicate result
};

/// One form of one instruction: all that selects code. What varies at run time stays in Inst.
struct AluForm {
  ptx::Op op = ptx::Op::Unsupported;   ///< the instruction
  ptx::Type type = ptx::Type::None;    ///< result (setp: operands)
  ptx::Type from = ptx::Type::None;    ///< source, where it differs: cvt, set, slct, mixed add; shf, dp4a: b
  Rounding rounding = Rounding::None;  ///< None where the instruction has no such modifier
  AluMode mode = AluMode::None;        ///< which of the operand shapes
  Compare compare = Compare::Eq;       ///< of setp and set
  /// Slot widths of cvt, which may be wider than its types.
  ///@{
  SlotWidth d_width = 4, a_width = 4;
  ///@}
  /// The modifier is there: `.ftz`, `.sat`, `.satfinite`, `.relu`, `.NaN`, `.xorsign`, `.abs`, `.oob`, `.approx`,
  /// `.full`.
  ///@{
  bool ftz = false, sat = false, satfinite = false, relu = false, nan = false, xorsign = false;
  bool abs = false, oob = false;
  bool approx = false, full = false;
  ///@}
  /// Reads CC.CF (addc, subc, madc); writes it (`.cc`).
  ///@{
  bool carry_in = false, carry_out = false;
  ///@}
};

/// Operands of setp and set in Inst::sub.
inline constexpr uint8_t kCompareNegated = 1;  ///< the comparison's result is inverted
inline constexpr uint8_t kBoolAnd = 1 << 1;    ///< combine with predicate c
inline constexpr uint8_t kBoolOr = 2 << 1;
inline constexpr uint8_t kBoolXor = 3 << 1;
inline constexpr uint8_t kBoolMask = 3 << 1;
inline constexpr uint8_t kPredicateNegated = 1 << 3;  ///< the predicate source c (setp, set, selp, lop3) is inverted
inline constexpr uint8_t kSecondNegated = 1 << 4;     ///< predicate source b is inverted (logic on predicates)

/// Inst::width of cvt. Inst::sub is the Rounding.
inline constexpr uint8_t kCvtFtz = 1, kCvtSat = 2, kCvtRelu = 4, kCvtSatfinite = 8;

/// Inst::imm of cvt from or to integers.
struct IntegerCvt {
  uint8_t from_bits = 0;      ///< 8 … 64; 0: the source is no integer
  uint8_t to_bits = 0;        ///< 8 … 64; 0: the result is no integer
  uint8_t register_bits = 0;  ///< of the destination register, to which the result is extended (PTX §9.4.1)
  /// Signed source; signed result.
  ///@{
  bool from_signed = false, to_signed = false;
  ///@}

  /// As it stands in Inst::imm.
  uint64_t pack() const {
    return from_bits | uint64_t{to_bits} << 8 | uint64_t{register_bits} << 16 | uint64_t{from_signed} << 24 |
           uint64_t{to_signed} << 25;
  }
};

namespace alu_base {
/// Handler of `form` for any host; nullptr if PTX has no such form.
Handler find_handler(const AluForm& form);
}  // namespace alu_base

#if defined(__x86_64__)
namespace alu_avx2 {
/// The same for hosts with AVX2, FMA, F16C and BMI2.
Handler find_handler(const AluForm& form);
}  // namespace alu_avx2
#endif

/// Handler of `form` from the best variant for this host.
Handler find_alu_handler(const AluForm& form);

/// While true, find_alu_handler gives the loops for any host. For tests that compare the variants; not for use by
/// threads.
void use_base_alu(bool base);

}  // namespace handoff::machine
