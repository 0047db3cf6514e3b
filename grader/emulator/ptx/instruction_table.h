// The one table of instructions. It drives resolving (which row is this opcode?), decoding (machine/ and
// async/ attach a decoder to each Op), tracing and the generated page docs/instructions.md.
//
// A row is written the way the PTX manual writes syntax:
//
//   {"mbarrier.try_wait", Op::MbarrierTryWait,
//    "{.parity} {.acquire|.relaxed} {.cta|.cluster} {.shared|.shared::cta}", "b64", "d, [a], b, c?", "9.7.13.15.16"}
//
//  * `modifiers`: groups separated by spaces. `.x|.y` must occur exactly once, `{.x|.y}` at most once. The order in
//    which they stand in the text does not matter: nvcc, CUTLASS and others differ.
//  * `types`: one list for each type position, separated by " / "; "f32 f64 / s32 u32". "" = no type. A position that
//    starts with '?' may be missing. Types keep their order.
//  * `operands`: names by role, separated by commas. A name that begins with 'd' is written (`d`, `d|p` is a
//    pair of destinations, `{d}` a vector destination); all others are read; `[a]` is an address; a trailing '?' =
//    optional.
//
// Several rows may share a name (integer `add`, float `add`); the first that matches wins. The longest name that is a
// prefix of the opcode is tried first ("cp.async.bulk.commit_group" before "cp.async.bulk").
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grader/emulator/ptx/module.h"

namespace handoff::ptx {

/// What an instruction does, apart from its types and modifiers. One value a row family.
enum class Op : uint16_t {
  Unsupported,
#define HANDOFF_OP(name) name,
#include "grader/emulator/ptx/ops.inc"
#undef HANDOFF_OP
  Count
};
std::string_view to_string(Op op);

/// One row. The text at the top of this file says how the columns are written.
struct InstructionSpec {
  std::string_view name;       ///< first components of the opcode, "mbarrier.try_wait"
  Op op;                       ///< what it does
  std::string_view modifiers;  ///< groups of modifiers
  std::string_view types;      ///< a list for each type position
  std::string_view operands;   ///< names by role
  std::string_view section;    ///< of the PTX ISA 9.1 manual
};

/// All rows, grouped by family in the order of the manual.
std::span<const InstructionSpec> instruction_table();

/// An opcode matched against its row.
struct Resolved {
  const InstructionSpec* spec = nullptr;    ///< nullptr: no row matches, `problem` says why
  std::vector<Type> types;                  ///< in order of appearance
  std::vector<std::string_view> modifiers;  ///< without the dot, in order of appearance (spaces included, in order)
  std::string problem;                      ///< "unknown opcode 'foo'", "add does not take modifier '.bar'"

  /// Does the opcode carry this modifier (without its dot)?
  bool has(std::string_view modifier) const;
  /// Type at position i, Type::None past the end.
  Type type(size_t i = 0) const { return i < types.size() ? types[i] : Type::None; }
  /// State space named i-th in the opcode (Generic where none is named).
  Space space(size_t i = 0) const;
};

/// Matches `statement.opcode`; views point into `statement`.
Resolved resolve(const Statement& statement);

/// For each operand of a statement under this row: is it written? (`call` is not described by rows.)
/// Operands beyond the row's list count as read.
bool is_destination(const InstructionSpec& spec, size_t operand_index);

}  // namespace handoff::ptx
