// Tested by mma_test.cc.
//
// mma.sync (PTX §9.7.14.5.7-8, .14): D = A·B + C on matrices that the registers of a warp hold between them, m16n8k8
// and m16n8k16 with f16 or bf16 factors and f32 sums. A is row-major, B column-major. With lane t = 4·g + q:
//
//   A   register 2j + i, half h: row g + 8i, column 8j + 2q + h
//   B   register j, half h: row 8j + 2q + h, column g
//   C, D   register 2i + h: row g + 8i, column 2q + h
//
// Arithmetic. The manual promises single precision "at least" for the products and leaves the order of the sum and its
// rounding open (§9.7.14.5.14). Published tests of Volta, Ampere and Hopper tensor cores (Fasi, Higham, Mikaitis,
// Pranesh 2021; Li et al. 2024) agree on the scheme, which is used here: the products are exact; they and c are aligned
// to the largest exponent among them, cut off below kExtraBits bits beyond a binary32's last one, added exactly, and
// the sum is cut off to binary32. Subnormal numbers are kept. The exponent of a product is the sum of its factors'
// exponents: it is not normalised first. A NaN, an infinity times zero and a sum of infinities of both signs give the
// canonical NaN; an exact zero is +0. docs/fidelity.md says what a chip has confirmed.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
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

constexpr uint32_t kRows = 16, kColumns = 8, kMaxDepth = 16;  // m, n, the largest k
constexpr int kExtraBits = 2;                                 // Hopper; Ampere has 1, Volta 0 (Li et al. 2024)
constexpr uint16_t kIssueCycles = 16;                         // guess
constexpr uint32_t kNan = 0x7fffffff, kInfinity = 0x7f800000;

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
  if (top > 127) return sign | kInfinity;
  const int last = (top < -126 ? -126 : top) - 23;  // exponent of the result's last bit
  const int down = last - exponent;
  const uint64_t kept = down >= 64 ? 0 : down >= 0 ? magnitude >> down : magnitude << -down;
  // A subnormal has no implicit bit, so that its field is 0.
  return sign | (top < -126 ? static_cast<uint32_t>(kept)
                            : static_cast<uint32_t>(top + 127) << 23 | (static_cast<uint32_t>(kept) & 0x7fffffu));
}

/// One element: c + the sum of a[i]·b[i].
uint32_t dot(const Factor* a, const Factor* b, uint32_t depth, int fraction, uint32_t c_bits) {
  const Factor c = take_apart(c_bits, 32, 23);
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
  if (nan || (plus && minus)) return kNan;
  if (plus || minus) return minus ? kInfinity | 0x80000000u : kInfinity;
  if (largest == INT32_MIN) return 0;
  const int unit = largest - 23 - kExtraBits;  // exponent of the last bit that is kept
  int64_t sum = 0;
  const auto add = [&sum, unit](uint64_t significand, int exponent, bool negative) {
    const int down = unit - exponent;
    const uint64_t kept = down >= 64 ? 0 : down >= 0 ? significand >> down : significand << -down;
    sum += negative ? -static_cast<int64_t>(kept) : static_cast<int64_t>(kept);
  };
  if (c.significand != 0) add(c.significand, c.exponent - 23, c.negative);
  for (uint32_t i = 0; i < depth; i++) {
    const uint64_t product = uint64_t{a[i].significand} * b[i].significand;
    if (product != 0) add(product, a[i].exponent + b[i].exponent - 2 * fraction, a[i].negative != b[i].negative);
  }
  return put_together(sum, unit);
}

/// list: 4 registers of d, k/4 of a, k/8 of b, 4 of c; width: k; sub: 1 = bf16.
void multiply_matrices(Warp& w, const Inst& i, LaneMask mask) {
  require_whole_warp(w, i, mask);
  const uint32_t* registers = &w.cta->launch->program->operand_pool[i.list];
  const uint32_t depth = i.width;
  const int fraction = i.sub != 0 ? 7 : 10;
  Factor a[kRows][kMaxDepth], b[kColumns][kMaxDepth];
  const auto half = [](const uint32_t* values, uint32_t t, uint32_t h) { return values[t] >> (16 * h) & 0xffffu; };
  for (uint32_t j = 0; j < depth / 8; j++) {
    const auto* low = lanes<uint32_t>(w.regs, registers[4 + 2 * j]);
    const auto* high = lanes<uint32_t>(w.regs, registers[5 + 2 * j]);
    const auto* column = lanes<uint32_t>(w.regs, registers[4 + depth / 4 + j]);
    for (uint32_t t = 0; t < kWarpSize; t++) {
      for (uint32_t h = 0; h < 2; h++) {
        const uint32_t g = t / 4, k = 8 * j + t % 4 * 2 + h;
        a[g][k] = take_apart(half(low, t, h), 16, fraction);
        a[g + 8][k] = take_apart(half(high, t, h), 16, fraction);
        b[g][k] = take_apart(half(column, t, h), 16, fraction);
      }
    }
  }
  uint32_t out[4][kWarpSize];
  const uint32_t* c = registers + 4 + depth / 4 + depth / 8;
  for (uint32_t r = 0; r < 4; r++) {
    const auto* addend = lanes<uint32_t>(w.regs, c[r]);
    for (uint32_t t = 0; t < kWarpSize; t++)
      out[r][t] = dot(a[t / 4 + r / 2 * 8], b[t % 4 * 2 + r % 2], depth, fraction, addend[t]);
  }
  for (uint32_t r = 0; r < 4; r++) {
    if (registers[r] != kNoOperand) std::memcpy(lanes<uint32_t>(w.regs, registers[r]), out[r], sizeof out[r]);
  }
}

std::string decode_mma(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  const uint32_t depth = r.has("m16n8k16") ? 16 : 8;
  const uint32_t counts[] = {4, depth / 4, depth / 8, 4};
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
      if (c.width(e, Type::B32) != 4) return "its registers have 32 bits";
      slots.push_back(o == 0 ? c.destination(e, 4) : c.source(e, o == 3 ? Type::F32 : Type::B32));
    }
  }
  inst->fn = multiply_matrices;
  inst->list = c.pool(slots);
  inst->list_size = static_cast<uint16_t>(slots.size());
  inst->width = static_cast<uint8_t>(depth);
  inst->sub = r.type(1) == Type::BF16 ? 1 : 0;
  inst->sync = kSyncAligned;
  inst->ends_slice = 1;
  inst->cost = kIssueCycles;
  return {};
}

}  // namespace

void register_mma_decoder(DecoderTable& table) { table[ptx::Op::Mma] = decode_mma; }

}  // namespace handoff::machine
