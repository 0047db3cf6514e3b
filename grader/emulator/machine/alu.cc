// Decoders of the arithmetic instructions: an opcode's types and modifiers become an AluForm, its operands become
// slots. Tested by alu_test.cc.
//
// Where PTX offers several spellings of one thing, the decoder reduces them to one: gt is lt with the operands
// exchanged, an unordered comparison is a negated ordered one, a negated predicate is a flag. What a form lacks in the
// PTX manual, `find_alu_handler` lacks too, and the instruction is refused with a reason.
#include "grader/emulator/machine/alu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <initializer_list>
#include <optional>
#include <string>

namespace handoff::machine {

namespace {

bool base_only = false;

#if defined(__x86_64__)
/// CPUID leaf 1, ECX bit 29: __builtin_cpu_supports of clang 14 has no name for it.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

}  // namespace

void use_base_alu(bool base) { base_only = base; }

Handler find_alu_handler(const AluForm& form) {
#if defined(__x86_64__)
  static const bool kAvx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") && has_f16c();
  if (kAvx2 && !base_only) return alu_avx2::find_handler(form);
#endif
  return alu_base::find_handler(form);
}

namespace {

using ptx::Op;
using ptx::Operand;
using ptx::Resolved;
using ptx::Statement;
using ptx::Type;

SlotWidth slot_width(Type t) {
  if (t == Type::Pred) return 0;
  const size_t bytes = ptx::size_of(t);
  return bytes <= 4 ? SlotWidth{4} : static_cast<SlotWidth>(bytes);
}

bool is_signed(Type t) { return t == Type::S8 || t == Type::S16 || t == Type::S32 || t == Type::S64; }
bool is_integer(Type t) { return is_signed(t) || t == Type::U8 || t == Type::U16 || t == Type::U32 || t == Type::U64; }

Rounding rounding(const Resolved& resolved) {
  constexpr struct {
    std::string_view name;
    Rounding value;
  } kNames[] = {{"rn", Rounding::Rn},   {"rna", Rounding::Rna}, {"rz", Rounding::Rz},   {"rm", Rounding::Rm},
                {"rp", Rounding::Rp},   {"rs", Rounding::Rs},   {"rni", Rounding::Rni}, {"rzi", Rounding::Rzi},
                {"rmi", Rounding::Rmi}, {"rpi", Rounding::Rpi}};
  for (const auto& entry : kNames) {
    if (resolved.has(entry.name)) return entry.value;
  }
  return Rounding::None;
}

/// The form's type and all modifiers that mean the same everywhere.
AluForm form_of(const Resolved& resolved) {
  AluForm form;
  form.op = resolved.spec->op;
  form.type = resolved.type();
  form.from = resolved.type(1);
  form.rounding = rounding(resolved);
  form.ftz = resolved.has("ftz");
  form.sat = resolved.has("sat");
  form.satfinite = resolved.has("satfinite");
  form.relu = resolved.has("relu");
  form.nan = resolved.has("NaN");
  form.xorsign = resolved.has("xorsign");
  form.abs = resolved.has("abs");
  form.oob = resolved.has("oob");
  form.approx = resolved.has("approx");
  form.full = resolved.has("full");
  form.carry_out = resolved.has("cc");
  if (resolved.has("lo")) form.mode = AluMode::Lo;
  if (resolved.has("hi")) form.mode = AluMode::Hi;
  if (resolved.has("wide")) form.mode = AluMode::Wide;
  return form;
}

std::string attach(const AluForm& form, const Statement& statement, Inst* inst) {
  inst->fn = find_alu_handler(form);
  if (inst->fn != nullptr) return {};
  std::string opcode;
  for (const std::string& part : statement.opcode) opcode += (opcode.empty() ? "" : ".") + part;
  return "PTX has no form '" + opcode + "'";
}

/// Slot of a source. Registers of 16 bits keep zeros above them, so a constant of a 16-bit type loses its upper bits:
/// the sign of `setp.eq.s16 p, a, -1`, say.
uint32_t source(DecodeContext& context, const Operand& operand, Type type) {
  if (operand.kind != Operand::Kind::Integer || ptx::size_of(type) != 2) return context.source(operand, type);
  Operand narrow = operand;
  narrow.bits &= 0xffff;
  return context.source(narrow, type);
}

/// Slot of a predicate source; its `!` is left to the handler.
uint32_t predicate(DecodeContext& context, const Operand& operand, uint8_t negated_flag, Inst* inst) {
  Operand plain = operand;
  plain.negated = false;
  if (operand.negated) inst->sub |= negated_flag;
  return context.source(plain, Type::Pred);
}

/// Operands of type `d`, then `sources` in order: fields d, a, b, c, x.
std::string bind(DecodeContext& context, const Statement& statement, Type d, std::initializer_list<Type> sources,
                 Inst* inst) {
  if (statement.operands.size() != sources.size() + 1) {
    return statement.opcode.front() + " takes " + std::to_string(sources.size() + 1) + " operands here, got " +
           std::to_string(statement.operands.size());
  }
  inst->d = context.destination(statement.operands[0], slot_width(d));
  uint32_t* const fields[] = {&inst->a, &inst->b, &inst->c, &inst->x};
  size_t i = 0;
  for (const Type type : sources) {
    const Operand& operand = statement.operands[i + 1];
    if (context.width(operand, type) != slot_width(type)) {
      return "operand " + std::to_string(i + 2) + " of '" + statement.text + "' does not have the width of ." +
             std::string(ptx::to_string(type));
    }
    *fields[i] = source(context, operand, type);
    ++i;
  }
  return {};
}

/// Instructions whose operands all have the type of the opcode, with one, two or three sources.
std::string decode_uniform(DecodeContext& context, const Resolved& resolved, const Statement& statement, Inst* inst) {
  AluForm form = form_of(resolved);
  const Type t = form.type;
  inst->sub = static_cast<uint8_t>(form.rounding);  // read by loops with a directed rounding
  std::string problem;
  switch (statement.operands.size()) {
    case 2:
      problem = bind(context, statement, t, {t}, inst);
      break;
    case 3:
      problem = bind(context, statement, t, {t, t}, inst);
      break;
    default:
      problem = bind(context, statement, t, {t, t, t}, inst);
      if (form.op == Op::Min || form.op == Op::Max) form.mode = AluMode::Three;
      break;
  }
  return problem.empty() ? attach(form, statement, inst) : problem;
}

/// add, sub, fma: as above, or with short operands and an f32 sum (`add.f32.bf16`).
std::string decode_sum(DecodeContext& context, const Resolved& resolved, const Statement& statement, Inst* inst) {
  const AluForm form = form_of(resolved);
  if (form.from == Type::None) return decode_uniform(context, resolved, statement, inst);
  inst->sub = static_cast<uint8_t>(form.rounding);
  const std::string problem = form.op == Op::Fma
                                  ? bind(context, statement, form.type, {form.from, form.from, form.type}, inst)
                                  : bind(context, statement, form.type, {form.from, form.type}, inst);
  return problem.empty() ? attach(form, statement, inst) : problem;
}

/// mul, mad: `.wide` doubles the width of the result and of the addend.
std::string decode_product(DecodeContext& context, const Resolved& resolved, const Statement& statement, Inst* inst) {
  const AluForm form = form_of(resolved);
  if (form.mode != AluMode::Wide) return decode_uniform(context, resolved, statement, inst);
  const Type t = form.type;
  const Type wide = ptx::size_of(t) == 2 ? Type::U32 : Type::U64;
  const std::string problem = form.op == Op::Mul ? bind(context, statement, wide, {t, t}, inst)
                                                 : bind(context, statement, wide, {t, t, wide}, inst);
  return problem.empty() ? attach(form, statement, inst) : problem;
}

/// add.cc, addc, sub.cc, subc, mad.cc, madc (PTX §9.7.2).
std::string decode_extended(DecodeContext& context, const Resolved& resolved, const Statement& statement, Inst* inst) {
  AluForm form = form_of(resolved);
  form.carry_in = statement.opcode.front().back() == 'c';
  inst->e = context.carry();
  const Type t = form.type;
  const std::string problem =
      form.op == Op::MadC ? bind(context, statement, t, {t, t, t}, inst) : bind(context, statement, t, {t, t}, inst);
  return problem.empty() ? attach(form, statement, inst) : problem;
}

/// Bit instructions: result and operand types by instruction (PTX §9.7.1.15 to §9.7.1.26).
std::string decode_bits(DecodeContext& context, const Resolved& resolved, const Statement& statement, Inst* inst) {
  AluForm form = form_of(resolved);
  const Type t = form.type, u = Type::U32;
  std::string problem;
  switch (form.op) {
    case Op::Popc:
    case Op::Clz:
    case Op::Bfind:
      if (resolved.has("shiftamt")) form.mode = AluMode::ShiftAmount;
      problem = bind(context, statement, u, {t}, inst);
      break;
    case Op::Fns:
      problem = bind(context, statement, u, {u, u, Type::S32}, inst);
      break;
    case Op::Bfe:
      problem = bind(context, statement, t, {t, u, u}, inst);
      break;
    case Op::Bfi:
      problem = bind(context, statement, t, {t, t, u, u}, inst);
      break;
    case Op::Shl:
    case Op::Shr:
      problem = bind(context, statement, t, {t, u}, inst);
      break;
    case Op::Shf: {
      const bool wrap = resolved.has("wrap");
      form.mode =
          resolved.has("l") ? (wrap ? AluMode::LeftWrap : AluMode::Left) : (wrap ? AluMode::Wrap : AluMode::Clamp);
      problem = bind(context, statement, u, {u, u, u}, inst);
      break;
    }
    case Op::Prmt: {
      constexpr struct {
        std::string_view name;
        AluMode mode;
      } kModes[] = {{"f4e", AluMode::F4e}, {"b4e", AluMode::B4e}, {"rc8", AluMode::Rc8},
                    {"ecl", AluMode::Ecl}, {"ecr", AluMode::Ecr}, {"rc16", AluMode::Rc16}};
      for (const auto& entry : kModes) {
        if (resolved.has(entry.name)) form.mode = entry.mode;
      }
      inst->sub = static_cast<uint8_t>(form.mode);
      problem = bind(context, statement, u, {u, u, u}, inst);
      break;
    }
    case Op::Dp4a:
    case Op::Dp2a:
      problem = bind(context, statement, u, {u, u, u}, inst);
      break;
    default:  // szext, bmsk
      form.mode = resolved.has("wrap") ? AluMode::Wrap : AluMode::Clamp;
      problem = bind(context, statement, u, {u, u}, inst);
      break;
  }
  return problem.empty() ? attach(form, statement, inst) : problem;
}

std::string decode_logic(DecodeContext& context, const Resolved& resolved, const Statement& statement, Inst* inst) {
  const AluForm form = form_of(resolved);
  if (form.type != Type::Pred) return decode_uniform(context, resolved, statement, inst);
  const auto& operands = statement.operands;
  inst->d = context.destination(operands[0], 0);
  inst->a = predicate(context, operands[1], kPredicateNegated, inst);
  if (operands.size() > 2) inst->b = predicate(context, operands[2], kSecondNegated, inst);
  return attach(form, statement, inst);
}

uint8_t bool_op(const Resolved& resolved) {
  if (resolved.has("and")) return kBoolAnd;
  if (resolved.has("or")) return kBoolOr;
  return resolved.has("xor") ? kBoolXor : uint8_t{0};
}

/// lop3.b32 d, a, b, c, table; lop3.BoolOp.b32 d|p, a, b, c, table, q.
std::string decode_lop3(DecodeContext& context, const Resolved& resolved, const Statement& statement, Inst* inst) {
  AluForm form = form_of(resolved);
  const auto& operands = statement.operands;
  if (operands[4].kind != Operand::Kind::Integer) return "the lookup table of lop3 must be an integer constant";
  inst->imm = operands[4].bits & 0xff;
  const Operand* d = operands.data();
  const bool predicate_result = operands.size() == 6;
  if (predicate_result != (d->kind == Operand::Kind::Pair))
    return "lop3.and and lop3.or write d|p, lop3 alone writes d";
  if (predicate_result) {
    form.mode = AluMode::Predicate;
    inst->sub = bool_op(resolved);
    inst->e = context.destination(d->elements[1], 0);
    inst->x = predicate(context, operands[5], kPredicateNegated, inst);
    d = d->elements.data();
  }
  inst->d = context.destination(*d, 4);
  inst->a = source(context, operands[1], Type::B32);
  inst->b = source(context, operands[2], Type::B32);
  inst->c = source(context, operands[3], Type::B32);
  return attach(form, statement, inst);
}

/// Operand types that only the destination names: rcp, sqrt, … are uniform; testp, copysign, selp, slct are not.
std::string decode_select(DecodeContext& context, const Resolved& resolved, const Statement& statement, Inst* inst) {
  AluForm form = form_of(resolved);
  const auto& operands = statement.operands;
  const Type t = form.type;
  std::string problem;
  switch (form.op) {
    case Op::Selp:
      if (operands.size() != 4) return "selp takes 4 operands";
      inst->d = context.destination(operands[0], slot_width(t));
      inst->a = source(context, operands[1], t);
      inst->b = source(context, operands[2], t);
      inst->c = predicate(context, operands[3], kPredicateNegated, inst);
      break;
    case Op::Slct:
      problem = bind(context, statement, t, {t, t, form.from}, inst);
      break;
    default: {  // testp
      constexpr struct {
        std::string_view name;
        AluMode mode;
      } kModes[] = {{"finite", AluMode::Finite}, {"infinite", AluMode::Infinite},
                    {"number", AluMode::Number}, {"notanumber", AluMode::NotANumber},
                    {"normal", AluMode::Normal}, {"subnormal", AluMode::Subnormal}};
      for (const auto& entry : kModes) {
        if (resolved.has(entry.name)) form.mode = entry.mode;
      }
      inst->sub = static_cast<uint8_t>(form.mode);
      problem = bind(context, statement, Type::Pred, {t}, inst);
      break;
    }
  }
  return problem.empty() ? attach(form, statement, inst) : problem;
}

std::optional<Compare> compare_of(const Resolved& resolved) {
  constexpr struct {
    std::string_view name;
    Compare value;
  } kNames[] = {{"eq", Compare::Eq},   {"ne", Compare::Ne},   {"lt", Compare::Lt},   {"le", Compare::Le},
                {"gt", Compare::Gt},   {"ge", Compare::Ge},   {"lo", Compare::Lt},   {"ls", Compare::Le},
                {"hi", Compare::Gt},   {"hs", Compare::Ge},   {"equ", Compare::Equ}, {"neu", Compare::Neu},
                {"ltu", Compare::Ltu}, {"leu", Compare::Leu}, {"gtu", Compare::Gtu}, {"geu", Compare::Geu},
                {"num", Compare::Num}, {"nan", Compare::Nan}};
  for (const auto& entry : kNames) {
    if (resolved.has(entry.name)) return entry.value;
  }
  return std::nullopt;
}

/// What a comparison is reduced to: a compiled one, maybe of exchanged operands, maybe negated.
struct Reduced {
  Compare compare;
  bool exchanged;
  bool negated;
};
Reduced reduce(Compare compare, bool integer) {
  if (integer) {  // eq and lt suffice
    switch (compare) {
      case Compare::Eq:
        return {Compare::Eq, false, false};
      case Compare::Ne:
        return {Compare::Eq, false, true};
      case Compare::Lt:
        return {Compare::Lt, false, false};
      case Compare::Ge:
        return {Compare::Lt, false, true};
      case Compare::Gt:
        return {Compare::Lt, true, false};
      default:
        return {Compare::Lt, true, true};  // le
    }
  }
  switch (compare) {
    case Compare::Gt:
      return {Compare::Lt, true, false};
    case Compare::Ge:
      return {Compare::Le, true, false};
    case Compare::Equ:
      return {Compare::Ne, false, true};
    case Compare::Neu:
      return {Compare::Eq, false, true};
    case Compare::Ltu:
      return {Compare::Le, true, true};  // not (b <= a)
    case Compare::Leu:
      return {Compare::Lt, true, true};  // not (b < a)
    case Compare::Gtu:
      return {Compare::Le, false, true};  // not (a <= b)
    case Compare::Geu:
      return {Compare::Lt, false, true};  // not (a < b)
    case Compare::Nan:
      return {Compare::Num, false, true};
    default:
      return {compare, false, false};
  }
}

/// 1 of the destination type of set: all ones for integers, 1.0 for floats; both halves of a packed one.
uint64_t true_value(Type type) {
  switch (type) {
    case Type::F32:
      return 0x3f800000;
    case Type::F16:
      return 0x3c00;
    case Type::BF16:
      return 0x3f80;
    case Type::F16x2:
      return 0x3c003c00;
    case Type::BF16x2:
      return 0x3f803f80;
    case Type::U16:
    case Type::S16:
      return 0xffff;
    default:
      return 0xffffffff;
  }
}

/// setp.CmpOp{.BoolOp} p{|q}, a, b{, {!}c}; set.CmpOp{.BoolOp}.dtype.stype d, a, b{, {!}c}.
std::string decode_compare(DecodeContext& context, const Resolved& resolved, const Statement& statement, Inst* inst) {
  AluForm form = form_of(resolved);
  const bool setp = form.op == Op::Setp;
  if (setp) form.from = form.type;
  const auto& operands = statement.operands;
  const Type t = form.from;
  const bool bits = t == Type::B16 || t == Type::B32 || t == Type::B64;
  const bool integer = bits || is_integer(t);
  const std::optional<Compare> compare = compare_of(resolved);
  if (!compare) return "no comparison operator";
  if (integer && *compare > Compare::Ge) return "unordered comparisons are for floating point types";
  if (bits && *compare != Compare::Eq && *compare != Compare::Ne) return "bits compare with .eq and .ne only";
  const Reduced reduced = reduce(*compare, integer);
  form.compare = reduced.compare;
  inst->sub = static_cast<uint8_t>(bool_op(resolved) | (reduced.negated ? kCompareNegated : 0));
  if (operands.size() < 3) return "a comparison takes two sources";
  const bool has_c = operands.size() > 3;
  if (has_c != ((inst->sub & kBoolMask) != 0)) return "a third source goes with .and, .or or .xor";
  for (const size_t i : {1, 2}) {
    if (context.width(operands[i], t) != slot_width(t)) {
      return "operand " + std::to_string(i + 1) + " does not have the width of ." + std::string(ptx::to_string(t));
    }
  }
  inst->a = source(context, operands[reduced.exchanged ? 2 : 1], t);
  inst->b = source(context, operands[reduced.exchanged ? 1 : 2], t);
  if (has_c) inst->c = predicate(context, operands[3], kPredicateNegated, inst);
  if (!setp) {
    inst->d = context.destination(operands[0], 4);
    inst->imm = true_value(form.type);
  } else {
    const bool pair = operands[0].kind == Operand::Kind::Pair;
    const Operand& p = pair ? operands[0].elements[0] : operands[0];
    if (p.kind != Operand::Kind::Sink) inst->d = context.destination(p, 0);
    if (pair && operands[0].elements[1].kind != Operand::Kind::Sink) {
      inst->e = context.destination(operands[0].elements[1], 0);
    }
  }
  return attach(form, statement, inst);
}

std::string decode_mov(DecodeContext& context, const Resolved& resolved, const Statement& statement, Inst* inst) {
  AluForm form = form_of(resolved);
  const Type t = form.type;
  const auto& operands = statement.operands;
  if (operands.size() != 2) return "mov takes 2 operands";
  const Operand &d = operands[0], &a = operands[1];
  const auto element = [&](size_t count) {
    const size_t bytes = count == 0 ? 0 : ptx::size_of(t) / count;
    return bytes == 1   ? Type::B8
           : bytes == 2 ? Type::B16
           : bytes == 4 ? Type::B32
           : bytes == 8 ? Type::B64
                        : Type::None;
  };
  const auto fits = [](size_t count) { return count == 2 || count == 4; };
  if (a.kind == Operand::Kind::Vector) {
    const size_t count = a.elements.size();
    if (!fits(count)) return "mov packs 2 or 4 elements";
    form.mode = count == 2 ? AluMode::Pack2 : AluMode::Pack4;
    inst->d = context.destination(d, slot_width(t));
    uint32_t* const fields[] = {&inst->a, &inst->b, &inst->c, &inst->x};
    for (size_t i = 0; i < count; ++i) *fields[i] = source(context, a.elements[i], element(count));
  } else if (d.kind == Operand::Kind::Vector) {
    const size_t count = d.elements.size();
    if (!fits(count)) return "mov unpacks 2 or 4 elements";
    form.mode = count == 2 ? AluMode::Unpack2 : AluMode::Unpack4;
    inst->a = source(context, a, t);
    uint32_t* const fields[] = {&inst->d, &inst->e, &inst->c, &inst->x};
    for (size_t i = 0; i < count; ++i) {
      if (d.elements[i].kind == Operand::Kind::Sink) continue;
      *fields[i] = context.destination(d.elements[i], slot_width(element(count)));
    }
  } else if (t == Type::Pred) {
    inst->d = context.destination(d, 0);
    inst->a = predicate(context, a, kPredicateNegated, inst);
  } else {
    if (context.width(a, t) != slot_width(t))
      return "the source does not have the width of ." + std::string(ptx::to_string(t));
    inst->d = context.destination(d, slot_width(t));
    inst->a = source(context, a, t);
  }
  return attach(form, statement, inst);
}

/// cvt.rs.satfinite.{…}x4.f32 d, {a, b, e, f}, random bits.
std::string decode_cvt_four(DecodeContext& context, const AluForm& form, const Statement& statement, Inst* inst) {
  const auto& operands = statement.operands;
  const Operand &d = operands[0], &values = operands[1];
  if (values.kind != Operand::Kind::Vector || values.elements.size() != 4) return "this cvt takes {a, b, e, f}";
  if (d.kind != Operand::Kind::Sink && context.narrow(d) != (ptx::size_of(form.type) == 2))
    return "the destination register has the width of ." + std::string(ptx::to_string(form.type));
  uint32_t* const fields[] = {&inst->a, &inst->b, &inst->c, &inst->x};
  for (size_t i = 0; i < 4; ++i) {
    if (context.width(values.elements[i], Type::F32) != 4) return "the values are registers of 32 bits";
    *fields[i] = source(context, values.elements[i], Type::F32);
  }
  if (context.width(operands[2], Type::B32) != 4) return "the random bits are a register of 32 bits";
  inst->e = source(context, operands[2], Type::B32);
  inst->d = context.destination(d, 4);
  return attach(form, statement, inst);
}

/// cvt{.rounding}{.ftz}{.sat}.dtype.atype d, a and the packed forms d, a, b{, random bits} (PTX §9.7.9.21).
std::string decode_cvt(DecodeContext& context, const Resolved& resolved, const Statement& statement, Inst* inst) {
  AluForm form = form_of(resolved);
  const auto& operands = statement.operands;
  if (form.from == Type::None) return "cvt names two types";
  inst->sub = static_cast<uint8_t>(form.rounding);
  inst->width = static_cast<uint8_t>((form.ftz ? kCvtFtz : 0) | (form.sat ? kCvtSat : 0) | (form.relu ? kCvtRelu : 0) |
                                     (form.satfinite ? kCvtSatfinite : 0));
  if (form.type >= Type::E4M3x4 && form.type <= Type::E3M2x4) return decode_cvt_four(context, form, statement, inst);
  const bool packed = form.from == Type::F32 && ptx::size_of(form.type) <= 4 && form.type != Type::F32 &&
                      form.type != Type::TF32 && form.type != Type::F16 && form.type != Type::BF16 &&
                      !is_integer(form.type);
  const bool random = form.rounding == Rounding::Rs;
  const size_t count = packed ? (random ? 4 : 3) : 2;
  if (operands.size() != count) return "this cvt takes " + std::to_string(count) + " operands";
  // Registers wider than the types are legal (PTX §9.4.1): the source is truncated, the result extended.
  form.d_width =
      operands[0].kind == Operand::Kind::Sink ? slot_width(form.type) : context.width(operands[0], form.type);
  form.a_width = context.width(operands[1], form.from);
  if (form.d_width != slot_width(form.type) && !is_integer(form.type)) return "the destination register is too wide";
  if (form.a_width != slot_width(form.from) && !is_integer(form.from)) return "the source register is too wide";
  IntegerCvt integer;
  if (is_integer(form.from)) integer.from_bits = static_cast<uint8_t>(8 * ptx::size_of(form.from));
  if (is_integer(form.type)) integer.to_bits = static_cast<uint8_t>(8 * ptx::size_of(form.type));
  integer.from_signed = is_signed(form.from);
  integer.to_signed = is_signed(form.type);
  integer.register_bits = form.d_width == 8 ? uint8_t{64} : context.narrow(operands[0]) ? uint8_t{16} : uint8_t{32};
  inst->imm = integer.pack();
  inst->d = context.destination(operands[0], form.d_width);
  inst->a = source(context, operands[1], form.from);
  if (packed) inst->b = source(context, operands[2], form.from);
  if (random) inst->c = source(context, operands[3], Type::B32);
  return attach(form, statement, inst);
}

std::string decode_cvt_pack(DecodeContext& context, const Resolved& resolved, const Statement& statement, Inst* inst) {
  AluForm form = form_of(resolved);
  std::string problem;
  if (statement.operands.size() == 4) {
    form.mode = AluMode::Three;
    problem = bind(context, statement, Type::U32, {Type::S32, Type::S32, Type::B32}, inst);
  } else {
    problem = bind(context, statement, Type::U32, {Type::S32, Type::S32}, inst);
  }
  return problem.empty() ? attach(form, statement, inst) : problem;
}

}  // namespace

void register_alu_decoders(DecoderTable& table) {
  for (const Op op :
       {Op::Div,  Op::Rem,   Op::Abs, Op::Neg, Op::Min, Op::Max, Op::Sad,  Op::Mul24,    Op::Mad24, Op::Rcp,
        Op::Sqrt, Op::Rsqrt, Op::Sin, Op::Cos, Op::Lg2, Op::Ex2, Op::Tanh, Op::Copysign, Op::Brev,  Op::Cnot}) {
    table[op] = decode_uniform;
  }
  for (const Op op : {Op::Add, Op::Sub, Op::Fma}) table[op] = decode_sum;
  for (const Op op : {Op::Mul, Op::Mad}) table[op] = decode_product;
  for (const Op op : {Op::AddC, Op::SubC, Op::MadC}) table[op] = decode_extended;
  for (const Op op : {Op::Popc, Op::Clz, Op::Bfind, Op::Fns, Op::Bfe, Op::Bfi, Op::Szext, Op::Bmsk, Op::Dp4a, Op::Dp2a,
                      Op::Shl, Op::Shr, Op::Shf, Op::Prmt}) {
    table[op] = decode_bits;
  }
  for (const Op op : {Op::And, Op::Or, Op::Xor, Op::Not}) table[op] = decode_logic;
  table[Op::Lop3] = decode_lop3;
  for (const Op op : {Op::Testp, Op::Selp, Op::Slct}) table[op] = decode_select;
  for (const Op op : {Op::Set, Op::Setp}) table[op] = decode_compare;
  table[Op::Mov] = decode_mov;
  table[Op::Cvt] = decode_cvt;
  table[Op::CvtPack] = decode_cvt_pack;
}

}  // namespace handoff::machine
