// Tested by mma_test.cc.
//
// mma.sync (PTX §9.7.14.5.1-10, .14): D = A·B + C on matrices that the registers of a warp hold between them. A is
// row-major, B column-major. All layouts of the manual are one: a register holds p factors side by side, four of 8
// bits, two of 16 bits, one of 32 or 64, and with lane t = 4·g + q, in matrices of 8 or 16 rows (i = 0, or 0 and 1; I
// of them)
//
//   A   register I·j + i, part h: row g + 8i, column 4p·j + p·q + h
//   B   register j, part h: row 4p·j + p·q + h, column g
//   C, D   register 2i + h: row g + 8i, column 2q + h; of f16 register i, half h
//
// Arithmetic. The manual promises single precision "at least" for the products and leaves the order of the sum and its
// rounding open (§9.7.14.5.14). Published tests of Volta, Ampere and Hopper tensor cores (Fasi, Higham, Mikaitis,
// Pranesh 2021; Li et al. 2024) agree on the scheme, which is used here: the products are exact; they and c are aligned
// to the largest exponent among them, cut off below kExtraBits bits beyond a binary32's last one, added exactly, and
// the sum is cut off to binary32. Subnormal numbers are kept. The exponent of a product is the sum of its factors'
// exponents: it is not normalised first. A NaN, an infinity times zero and a sum of infinities of both signs give the
// canonical NaN; an exact zero is +0. Of tf32 the low 13 bits are ignored. A D of type f16 is the same sum before it is
// cut off, rounded once to nearest even. Sums of integers are exact, then modulo 2^32 or clamped; those of f64 are
// chains of fma, k ascending. docs/fidelity.md says what a chip has confirmed.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "grader/emulator/machine/fault.h"
#include "grader/emulator/machine/matrix_ops.h"

namespace handoff::machine {
namespace {

using ptx::Operand;
using ptx::Type;

constexpr uint32_t kRows = 16, kColumns = 8, kMaxDepth = 16, kMaxIntegerDepth = 32;  // m, n, the largest k
constexpr int kExtraBits = 2;          // Hopper; Ampere has 1, Volta 0 (Li et al. 2024)
constexpr uint16_t kIssueCycles = 16;  // guess
constexpr uint32_t kNan32 = 0x7fffffff, kInfinity32 = 0x7f800000;

/// (−1)^negative · significand · 2^(exponent − fraction bits of its format); of a special value only what it is.
struct Factor {
  uint32_t significand = 0;
  int exponent = 0;
  bool negative = false, infinite = false, nan = false;
};

/// Takes a value of `fraction` fraction bits and `width` − 1 − `fraction` exponent bits apart.
Factor take_apart(uint32_t bits, int width, int fraction) {
  const uint32_t exponent_mask = (1u << (width - 1 - fraction)) - 1;
  const uint32_t field = bits >> fraction & exponent_mask;
  const uint32_t mantissa = bits & ((1u << fraction) - 1);
  const int bias = static_cast<int>(exponent_mask >> 1);
  Factor f;
  f.negative = bits >> (width - 1) & 1;
  f.infinite = field == exponent_mask && mantissa == 0;
  f.nan = field == exponent_mask && mantissa != 0;
  f.significand = field == 0 ? mantissa : mantissa | 1u << fraction;
  f.exponent = (field == 0 ? 1 : static_cast<int>(field)) - bias;
  return f;
}

/// sum · 2^exponent, cut off to binary32.
uint32_t put_together(int64_t sum, int exponent) {
  if (sum == 0) return 0;
  const uint32_t sign = sum < 0 ? 0x80000000u : 0;
  const auto magnitude = static_cast<uint64_t>(sum < 0 ? -sum : sum);
  const int leading = 63 - std::countl_zero(magnitude);
  const int top = leading + exponent;  // exponent of the leading bit
  if (top > 127) return sign | kInfinity32;
  const int last = (top < -126 ? -126 : top) - 23;  // exponent of the result's last bit
  const int down = last - exponent;
  const uint64_t kept = down >= 64 ? 0 : down >= 0 ? magnitude >> down : magnitude << -down;
  // A subnormal has no implicit bit, so that its field is 0.
  return sign | (top < -126 ? static_cast<uint32_t>(kept)
                            : static_cast<uint32_t>(top + 127) << 23 | (static_cast<uint32_t>(kept) & 0x7fffffu));
}

/// sum · 2^exponent, rounded to f16, ties to even.
uint32_t round_to_half(int64_t sum, int exponent) {
  const auto magnitude = static_cast<uint64_t>(sum < 0 ? -sum : sum);
  const uint32_t sign = sum < 0 ? 0x8000u : 0;
  if (sum == 0) return 0;
  const int top = 63 - std::countl_zero(magnitude) + exponent;  // exponent of the leading bit
  const int field = top < -14 ? 0 : top + 14;                   // what the implicit bit adds one to
  const int down = (top < -14 ? -14 : top) - 10 - exponent;
  uint64_t kept = down >= 64 ? 0 : down >= 0 ? magnitude >> down : magnitude << -down;
  if (down > 0 && down < 64) {
    const uint64_t rest = magnitude << (64 - down), tie = uint64_t{1} << 63;
    if (rest > tie || (rest == tie && (kept & 1) != 0)) kept++;
  }
  const uint64_t code = kept + (static_cast<uint64_t>(field) << 10);
  return sign | (code > 0x7c00 ? 0x7c00u : static_cast<uint32_t>(code));
}

/// One element: c + the sum of a[i]·b[i], in the format of c: f16 if `half`, else binary32.
uint32_t dot(const Factor* a, const Factor* b, uint32_t depth, int fraction, uint32_t c_bits, bool half) {
  const int c_fraction = half ? 10 : 23;
  const uint32_t nan_bits = half ? 0x7fffu : kNan32, infinity = half ? 0x7c00u : kInfinity32;
  const Factor c = take_apart(c_bits, half ? 16 : 32, c_fraction);
  bool nan = c.nan, plus = c.infinite && !c.negative, minus = c.infinite && c.negative;
  int largest = c.significand != 0 ? c.exponent : INT32_MIN;
  for (uint32_t i = 0; i < depth; i++) {
    const bool negative = a[i].negative != b[i].negative;
    if (a[i].nan || b[i].nan) nan = true;
    if (a[i].infinite || b[i].infinite) {
      // The significand of an infinity is not zero.
      if (a[i].significand == 0 || b[i].significand == 0) nan = true;
      (negative ? minus : plus) = true;
    }
    if (a[i].significand == 0 || b[i].significand == 0) continue;
    largest = std::max(largest, a[i].exponent + b[i].exponent);
  }
  if (nan || (plus && minus)) return nan_bits;
  if (plus || minus) return minus ? infinity | (half ? 0x8000u : 0x80000000u) : infinity;
  if (largest == INT32_MIN) return 0;
  const int unit = largest - 23 - kExtraBits;  // exponent of the last bit that is kept
  int64_t sum = 0;
  const auto add = [&sum, unit](uint64_t significand, int exponent, bool negative) {
    const int down = unit - exponent;
    const uint64_t kept = down >= 64 ? 0 : down >= 0 ? significand >> down : significand << -down;
    sum += negative ? -static_cast<int64_t>(kept) : static_cast<int64_t>(kept);
  };
  if (c.significand != 0) add(c.significand, c.exponent - c_fraction, c.negative);
  for (uint32_t i = 0; i < depth; i++) {
    const uint64_t product = uint64_t{a[i].significand} * b[i].significand;
    if (product != 0) add(product, a[i].exponent + b[i].exponent - 2 * fraction, a[i].negative != b[i].negative);
  }
  return half ? round_to_half(sum, unit) : put_together(sum, unit);
}

enum class Kind : uint8_t { Half, Bfloat, Tf32, Integer, Double };

/// Inst::sub, behind the Kind.
constexpr uint8_t kHalfResult = 1 << 3, kSaturate = 1 << 4, kSignedA = 1 << 5, kSignedB = 1 << 6;

/// Shape of one form, from Inst::sub and Inst::imm.
struct MmaForm {
  Kind kind = Kind::Half;
  uint32_t rows = kRows;  ///< 8 or 16
  uint32_t depth = 0;     ///< k

  uint32_t parts() const { return kind == Kind::Integer ? 4 : kind <= Kind::Bfloat ? 2 : 1; }  ///< of a register
  uint32_t a_registers() const { return rows / 8 * b_registers(); }
  uint32_t b_registers() const { return depth / (4 * parts()); }
  uint32_t sums(bool half) const { return rows / (half ? 8 : 4); }  ///< registers of C and of D
};
MmaForm form_of(const Inst& i) {
  return {static_cast<Kind>(i.sub & 7), static_cast<uint32_t>(i.imm >> 8), static_cast<uint32_t>(i.imm & 0xff)};
}

/// Calls a(row, k, value) and b(column, k, value) for every factor; `value` holds the bits of T's part.
template <class T, class A, class B>
void factors(Warp& w, const uint32_t* a_slots, const uint32_t* b_slots, const MmaForm& f, A a, B b) {
  const uint32_t parts = f.parts(), halves = f.rows / 8;
  constexpr uint32_t kBits = 8 * sizeof(T);
  for (uint32_t j = 0; j < f.b_registers(); j++) {
    for (uint32_t t = 0; t < kWarpSize; t++) {
      for (uint32_t h = 0; h < parts; h++) {
        const uint32_t g = t / 4, k = parts * (4 * j + t % 4) + h;
        const auto part = [&](uint32_t slot) {
          return static_cast<T>(lanes<T>(w.regs, slot)[t] >> (kBits / parts * h));
        };
        for (uint32_t i = 0; i < halves; i++) a(g + 8 * i, k, part(a_slots[halves * j + i]));
        b(g, k, part(b_slots[j]));
      }
    }
  }
}

/// D's registers that the instruction names. All factors and C were read before.
template <class T>
void write_sums(Warp& w, const uint32_t* registers, uint32_t sums, const T (*out)[kWarpSize]) {
  for (uint32_t r = 0; r < sums; r++) {
    if (registers[r] != kNoOperand) std::memcpy(lanes<T>(w.regs, registers[r]), out[r], sizeof out[r]);
  }
}

/// list: registers of d, a, b and c; sub: see above; imm: k | rows << 8.
void multiply_floats(Warp& w, const Inst& i, LaneMask mask) {
  require_whole_warp(w, i, mask);
  const uint32_t* registers = &w.cta->launch->program->operand_pool[i.list];
  const MmaForm f = form_of(i);
  const bool half = (i.sub & kHalfResult) != 0;
  const uint32_t sums = f.sums(half);
  const int fraction = f.kind == Kind::Bfloat ? 7 : 10;
  Factor a[kRows][kMaxDepth], b[kColumns][kMaxDepth];
  const auto apart = [&](uint32_t bits) {
    return f.kind == Kind::Tf32 ? take_apart(bits >> 13, 19, 10) : take_apart(bits & 0xffffu, 16, fraction);
  };
  factors<uint32_t>(
      w, registers + sums, registers + sums + f.a_registers(), f,
      [&](uint32_t row, uint32_t k, uint32_t bits) { a[row][k] = apart(bits); },
      [&](uint32_t column, uint32_t k, uint32_t bits) { b[column][k] = apart(bits); });
  uint32_t out[4][kWarpSize];
  const uint32_t* c = registers + sums + f.a_registers() + f.b_registers();
  for (uint32_t r = 0; r < sums; r++) {
    const auto* addend = lanes<uint32_t>(w.regs, c[r]);
    for (uint32_t t = 0; t < kWarpSize; t++) {
      const uint32_t column = t % 4 * 2;
      if (half) {
        const Factor* row = a[t / 4 + 8 * r];
        out[r][t] = dot(row, b[column], f.depth, fraction, addend[t] & 0xffffu, true) |
                    dot(row, b[column + 1], f.depth, fraction, addend[t] >> 16, true) << 16;
      } else {
        out[r][t] = dot(a[t / 4 + r / 2 * 8], b[column + r % 2], f.depth, fraction, addend[t], false);
      }
    }
  }
  write_sums(w, registers, sums, out);
}

void multiply_integers(Warp& w, const Inst& i, LaneMask mask) {
  require_whole_warp(w, i, mask);
  const uint32_t* registers = &w.cta->launch->program->operand_pool[i.list];
  const MmaForm f = form_of(i);
  const uint32_t sums = f.sums(false);
  int32_t a[kRows][kMaxIntegerDepth], b[kColumns][kMaxIntegerDepth];
  const auto value = [](uint32_t bits, bool is_signed) {
    return is_signed ? int32_t{static_cast<int8_t>(bits)} : static_cast<int32_t>(bits & 0xff);
  };
  factors<uint32_t>(
      w, registers + sums, registers + sums + f.a_registers(), f,
      [&](uint32_t row, uint32_t k, uint32_t bits) { a[row][k] = value(bits, i.sub & kSignedA); },
      [&](uint32_t column, uint32_t k, uint32_t bits) { b[column][k] = value(bits, i.sub & kSignedB); });
  uint32_t out[4][kWarpSize];
  const uint32_t* c = registers + sums + f.a_registers() + f.b_registers();
  for (uint32_t r = 0; r < sums; r++) {
    const auto* addend = lanes<uint32_t>(w.regs, c[r]);
    for (uint32_t t = 0; t < kWarpSize; t++) {
      int64_t sum = static_cast<int32_t>(addend[t]);
      for (uint32_t k = 0; k < f.depth; k++) sum += a[t / 4 + r / 2 * 8][k] * b[t % 4 * 2 + r % 2][k];
      if (i.sub & kSaturate) sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
      out[r][t] = static_cast<uint32_t>(sum);
    }
  }
  write_sums(w, registers, sums, out);
}

void multiply_doubles(Warp& w, const Inst& i, LaneMask mask) {
  require_whole_warp(w, i, mask);
  const uint32_t* registers = &w.cta->launch->program->operand_pool[i.list];
  const MmaForm f = form_of(i);
  const uint32_t sums = f.sums(false);
  double a[kRows][kMaxDepth], b[kColumns][kMaxDepth];
  factors<uint64_t>(
      w, registers + sums, registers + sums + f.a_registers(), f,
      [&](uint32_t row, uint32_t k, uint64_t bits) { a[row][k] = std::bit_cast<double>(bits); },
      [&](uint32_t column, uint32_t k, uint64_t bits) { b[column][k] = std::bit_cast<double>(bits); });
  double out[4][kWarpSize];
  const uint32_t* c = registers + sums + f.a_registers() + f.b_registers();
  for (uint32_t r = 0; r < sums; r++) {
    std::memcpy(out[r], lanes<uint64_t>(w.regs, c[r]), sizeof out[r]);
    for (uint32_t t = 0; t < kWarpSize; t++) {
      for (uint32_t k = 0; k < f.depth; k++)
        out[r][t] = std::fma(a[t / 4 + r / 2 * 8][k], b[t % 4 * 2 + r % 2][k], out[r][t]);
    }
  }
  write_sums(w, registers, sums, out);
}

std::string decode_mma(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  const Type factor = r.type(1), sum = r.type(0);
  MmaForm f;
  f.kind = factor == Type::F64    ? Kind::Double
           : factor == Type::TF32 ? Kind::Tf32
           : factor == Type::BF16 ? Kind::Bfloat
           : factor == Type::F16  ? Kind::Half
                                  : Kind::Integer;
  f.rows = r.has("m8n8k4") || r.has("m8n8k16") ? 8 : 16;
  f.depth = r.has("m16n8k32") ? 32 : r.has("m16n8k16") || r.has("m8n8k16") ? 16 : r.has("m16n8k8") ? 8 : 4;
  const SlotWidth width = f.kind == Kind::Double ? 8 : 4;
  const Type bits = width == 8 ? Type::B64 : Type::B32;
  const uint32_t sums = f.sums(sum == Type::F16);
  const uint32_t counts[] = {sums, f.a_registers(), f.b_registers(), sums};
  std::vector<uint32_t> slots;
  for (uint32_t o = 0; o < 4; o++) {
    const std::vector<Operand> one{s.operands[o]};
    const auto& elements = s.operands[o].kind == Operand::Kind::Vector ? s.operands[o].elements : one;
    if (elements.size() != counts[o])
      return fmt::format("expects {} registers of {}, got {}", counts[o], "dabc"[o], elements.size());
    for (const Operand& e : elements) {
      if (o == 0 && e.kind == Operand::Kind::Sink) {
        slots.push_back(kNoOperand);
        continue;
      }
      if (c.width(e, bits) != width) return fmt::format("its registers have {} bits", 8 * width);
      slots.push_back(o == 0 ? c.destination(e, width) : c.source(e, o == 3 && sum != Type::F16 ? sum : bits));
    }
  }
  inst->fn = f.kind == Kind::Double ? multiply_doubles : f.kind == Kind::Integer ? multiply_integers : multiply_floats;
  inst->list = c.pool(slots);
  inst->list_size = static_cast<uint16_t>(slots.size());
  inst->imm = f.depth | uint64_t{f.rows} << 8;
  inst->sub = static_cast<uint8_t>(static_cast<uint32_t>(f.kind) | (sum == Type::F16 ? kHalfResult : 0u) |
                                   (r.has("satfinite") ? kSaturate : 0u) | (factor == Type::S8 ? kSignedA : 0u) |
                                   (r.type(2) == Type::S8 ? kSignedB : 0u));
  inst->sync = kSyncAligned;
  inst->ends_slice = 1;
  inst->cost = kIssueCycles;
  return {};
}

}  // namespace

void register_mma_decoder(DecoderTable& table) { table[ptx::Op::Mma] = decode_mma; }

}  // namespace handoff::machine
