// Arithmetic against plain scalar references: edges, random values, partial masks, a destination that is its own
// source, and both variants of the loops, which must agree bit for bit.
#include "grader/emulator/machine/alu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cfenv>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "grader/emulator/machine/warp.h"
#include "grader/emulator/ptx/instruction_table.h"

namespace handoff::machine {
namespace {

using ptx::Operand;
using ptx::Type;
using uint128 = unsigned __int128;

constexpr uint32_t kSlotBytes = 512;  // a 128-bit register
constexpr uint32_t kSlots = 16;
constexpr uint32_t kCarrySlot = kSlots - 1, kConstantSlot = kSlots - 2;

/// Register i of a type lives in slot i; `!p` stays with the decoder. There is room for one constant.
class FakeContext : public DecodeContext {
 public:
  std::vector<Type> types;  ///< of the registers
  uint32_t value = 0;       ///< of the constant

  uint32_t destination(const Operand& operand, SlotWidth) override { return operand.reg * kSlotBytes; }
  uint32_t source(const Operand& operand, Type) override {
    if (operand.kind != Operand::Kind::Integer) return operand.reg * kSlotBytes;
    value = static_cast<uint32_t>(operand.bits);
    return kConstantSlot * kSlotBytes;
  }
  SlotWidth width(const Operand& operand, Type type) override {
    const Type t = operand.kind == Operand::Kind::Integer ? type : types[operand.reg];
    return t == Type::Pred ? 0 : static_cast<SlotWidth>(std::max<size_t>(4, ptx::size_of(t)));
  }
  bool narrow(const Operand& operand) override { return ptx::size_of(types[operand.reg]) < 4; }
  uint32_t constant(uint64_t, SlotWidth) override { return 0; }
  uint32_t pool(const std::vector<uint32_t>&) override { return 0; }
  MemoryOperand address(const Operand&, ptx::Space) override { return {}; }
  uint32_t carry() override { return kCarrySlot * kSlotBytes; }
};

Operand reg(uint32_t index, bool negated = false) {
  Operand operand;
  operand.kind = Operand::Kind::Register;
  operand.reg = index;
  operand.negated = negated;
  return operand;
}
Operand group(Operand::Kind kind, std::vector<Operand> elements) {
  Operand operand;
  operand.kind = kind;
  operand.elements = std::move(elements);
  return operand;
}
Operand integer(uint64_t bits) {
  Operand operand;
  operand.bits = bits;
  return operand;
}
Operand sink() {
  Operand operand;
  operand.kind = Operand::Kind::Sink;
  return operand;
}

ptx::Statement statement(const std::string& opcode, std::vector<Operand> operands) {
  ptx::Statement s;
  for (size_t at = 0; at <= opcode.size();) {
    const size_t dot = std::min(opcode.find('.', at), opcode.size());
    s.opcode.push_back(opcode.substr(at, dot - at));
    at = dot + 1;
  }
  s.operands = std::move(operands);
  s.text = opcode;
  return s;
}

/// A warp's registers and one instruction on them.
class Machine {
 public:
  Machine() : file_(kSlots * kSlotBytes / sizeof(uint128)) {
    warp_.regs = reinterpret_cast<std::byte*>(file_.data());
    register_alu_decoders(table_);
    context_.types.assign(kSlots, Type::B32);
  }
  void declare(uint32_t r, Type type) { context_.types[r] = type; }
  void set(uint32_t r, int lane, uint128 value) {
    switch (ptx::size_of(context_.types[r])) {
      case 0: {
        uint32_t& p = *lanes<uint32_t>(warp_.regs, r * kSlotBytes);
        p = (p & ~(1u << lane)) | static_cast<uint32_t>(value & 1) << lane;
        break;
      }
      case 8:
        lanes<uint64_t>(warp_.regs, r * kSlotBytes)[lane] = static_cast<uint64_t>(value);
        break;
      case 16:
        lanes<uint128>(warp_.regs, r * kSlotBytes)[lane] = value;
        break;
      default:
        lanes<uint32_t>(warp_.regs, r * kSlotBytes)[lane] = static_cast<uint32_t>(value);
        break;
    }
  }
  uint128 get(uint32_t r, int lane) {
    switch (ptx::size_of(context_.types[r])) {
      case 0:
        return *lanes<uint32_t>(warp_.regs, r * kSlotBytes) >> lane & 1;
      case 8:
        return lanes<uint64_t>(warp_.regs, r * kSlotBytes)[lane];
      case 16:
        return lanes<uint128>(warp_.regs, r * kSlotBytes)[lane];
      default:
        return lanes<uint32_t>(warp_.regs, r * kSlotBytes)[lane];
    }
  }
  /// Decodes and executes; returns why not, or "".
  std::string run(const ptx::Statement& s, LaneMask mask = kFullMask) {
    const ptx::Resolved resolved = ptx::resolve(s);
    if (resolved.spec == nullptr) return resolved.problem;
    Inst inst;
    const Decoder decoder = table_[resolved.spec->op];
    if (decoder == nullptr) return "no decoder";
    std::string problem = decoder(context_, resolved, s, &inst);
    std::fill_n(lanes<uint32_t>(warp_.regs, kConstantSlot * kSlotBytes), kWarpSize, context_.value);
    if (problem.empty()) inst.fn(warp_, inst, mask);
    return problem;
  }

 private:
  std::vector<uint128> file_;
  Warp warp_;
  FakeContext context_;
  DecoderTable table_;
};

using Lane = std::vector<uint64_t>;  // the sources of one lane
using Reference = std::function<uint64_t(const Lane&)>;

std::vector<uint64_t> edges(Type t) {
  switch (t) {
    case Type::Pred:
      return {0, 1};
    case Type::F64:
      return {0,
              0x8000000000000000,
              0x3ff0000000000000,
              0xbff0000000000000,
              0x7ff0000000000000,
              0xfff0000000000000,
              0x7ff8000000000001,
              0xfff4000060000000,
              1,
              0x8000000000000001,
              0x7fefffffffffffff,
              0x0010000000000000,
              0x3fe0000000000000,
              0x41e0000000000000,
              0xc1e0000000000000,
              0x43e0000000000000,
              0x4330000000000001,
              0x3ff8000000000000,
              0x4004000000000000,
              0x36a0000000000000,
              0x47efffffe0000000,
              0x40effe0000000000};
    case Type::F32:
      return {0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00001, 0xffc00000,
              1,          0x80000001, 0x007fffff, 0x00800000, 0x7f7fffff, 0xff7fffff, 0x3f000000, 0xbf000000,
              0x3fc00000, 0x40200000, 0x4f000000, 0xcf000000, 0x4f800000, 0x477fe000, 0x477ff000, 0x38800000,
              0x387fffff, 0x33000000, 0x33000001, 0x3f808000, 0x3f818000, 0x3f801000, 0x3f803000, 0x43e00000,
              0x43e80000, 0x3b000000, 0x40400000, 0x4effffff, 0x5f000000};
    case Type::F16:
    case Type::F16x2:
      return {0,      0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e01, 1,
              0x8001, 0x3ff,  0x400,  0x7bff, 0xfbff, 0x3800, 0x3e00};
    case Type::BF16:
    case Type::BF16x2:
      return {0, 0x8000, 0x3f80, 0xbf80, 0x7f80, 0xff80, 0x7fc1, 1, 0x8001, 0x7f, 0x80, 0x7f7f, 0xff7f, 0x3f00, 0x3fc0};
    default: {
      const size_t bits = 8 * ptx::size_of(t);
      const uint64_t top = uint64_t{1} << (bits - 1), ones = top - 1 + top;
      return {0, 1, 2, 3, ones, ones - 1, top, top - 1, top + 1, 31, 32, 33, 63, 64};
    }
  }
}

uint64_t random_bits(std::mt19937_64& random, Type t) {
  const auto short_pair = [&](const std::vector<uint64_t>& e) {
    const uint64_t low = random() % 3 ? random() & 0xffff : e[random() % e.size()];
    const uint64_t high = random() % 3 ? random() & 0xffff : e[random() % e.size()];
    return low | high << 16;
  };
  const std::vector<uint64_t> e = edges(t);
  if (t == Type::F16x2 || t == Type::BF16x2) return short_pair(e);
  if (random() % 3 == 0) return e[random() % e.size()];
  const size_t bits = t == Type::Pred ? 1 : 8 * ptx::size_of(t);
  uint64_t v = random();
  if (t == Type::F32 && random() % 2) {  // exponents near each other
    v = (v & 0x807fffff) | (120 + random() % 16) << 23;
  }
  return bits == 64 ? v : v & ((uint64_t{1} << bits) - 1);
}

/// Runs `opcode d, a, b, …` on edges and random values and compares every lane with `reference`. The first `grouped`
/// sources stand in a vector, `{a, b}`.
void check(const std::string& opcode, Type d, const std::vector<Type>& sources, const Reference& reference,
           size_t grouped = 0) {
  SCOPED_TRACE(opcode);
  std::mt19937_64 random(std::hash<std::string>()(opcode));
  for (const bool base : {false, true}) {
    use_base_alu(base);
    for (int round = 0; round < 48; ++round) {
      const LaneMask mask = round % 3 == 0 ? kFullMask : static_cast<LaneMask>(random()) | 1u;
      const bool alias = round % 4 == 3 && d == sources[0];
      Machine m;
      m.declare(0, d);
      std::vector<Operand> operands = {reg(alias ? 1 : 0)};
      for (size_t i = 0; i < sources.size(); ++i) {
        m.declare(static_cast<uint32_t>(i + 1), sources[i]);
        operands.push_back(reg(static_cast<uint32_t>(i + 1)));
      }
      if (grouped > 0) {
        const auto first = operands.begin() + 1, end = first + static_cast<std::ptrdiff_t>(grouped);
        const Operand vector = group(Operand::Kind::Vector, {first, end});
        operands.erase(first, end);
        operands.insert(operands.begin() + 1, vector);
      }
      std::vector<Lane> inputs(kWarpSize);
      std::vector<uint128> before(kWarpSize);
      for (int l = 0; l < kWarpSize; ++l) {
        for (size_t i = 0; i < sources.size(); ++i) {
          inputs[l].push_back(random_bits(random, sources[i]));
          m.set(static_cast<uint32_t>(i + 1), l, inputs[l].back());
        }
        if (!alias) m.set(0, l, 0x5a5a5a5a & (d == Type::Pred ? 1u : ptx::size_of(d) < 4 ? 0xffffu : 0xffffffffu));
        before[l] = m.get(alias ? 1 : 0, l);
      }
      ASSERT_EQ(m.run(statement(opcode, operands), mask), "");
      for (int l = 0; l < kWarpSize; ++l) {
        const auto got = static_cast<uint64_t>(m.get(alias ? 1 : 0, l));
        const uint64_t want = (mask >> l & 1) ? reference(inputs[l]) : static_cast<uint64_t>(before[l]);
        std::string text;
        for (const uint64_t v : inputs[l]) text += " " + std::to_string(v);
        ASSERT_EQ(got, want) << (base ? "base" : "host") << " lane " << l << " of mask " << std::hex << mask
                             << ", inputs" << text << ", got 0x" << got << ", want 0x" << want;
      }
    }
  }
  use_base_alu(false);
}

template <class T>
T as(uint64_t bits) {
  return static_cast<T>(bits);
}
template <class T>
uint64_t bits(T value) {
  return static_cast<std::make_unsigned_t<T>>(value);
}
float f32(uint64_t b) { return std::bit_cast<float>(static_cast<uint32_t>(b)); }
double f64(uint64_t b) { return std::bit_cast<double>(b); }
uint64_t f32_bits(float f) { return std::isnan(f) ? 0x7fffffffu : std::bit_cast<uint32_t>(f); }

template <class T>
void check_integers(const std::string& suffix, Type t) {
  using W = __int128;
  const auto clip = [](W v) { return bits(static_cast<T>(v)); };
  const auto s = [](uint64_t v) { return W{static_cast<T>(v)}; };
  constexpr int kBits = 8 * sizeof(T);
  check("add." + suffix, t, {t, t}, [&](const Lane& v) { return clip(s(v[0]) + s(v[1])); });
  check("sub." + suffix, t, {t, t}, [&](const Lane& v) { return clip(s(v[0]) - s(v[1])); });
  const auto product = [&](const Lane& v) { return static_cast<uint128>(s(v[0])) * static_cast<uint128>(s(v[1])); };
  check("mul.lo." + suffix, t, {t, t}, [&](const Lane& v) { return clip(static_cast<W>(product(v))); });
  const auto high = [&](const Lane& v) {
    if constexpr (std::is_signed_v<T>) {
      return static_cast<W>(product(v)) >> kBits;
    } else {
      return static_cast<W>(product(v) >> kBits);
    }
  };
  check("mul.hi." + suffix, t, {t, t}, [&](const Lane& v) { return clip(high(v)); });
  check("mad.lo." + suffix, t, {t, t, t},
        [&](const Lane& v) { return clip(static_cast<W>(product(v) + static_cast<uint128>(s(v[2])))); });
  check("mad.hi." + suffix, t, {t, t, t}, [&](const Lane& v) { return clip(high(v) + s(v[2])); });
  check("min." + suffix, t, {t, t}, [&](const Lane& v) { return clip(std::min(s(v[0]), s(v[1]))); });
  check("max." + suffix, t, {t, t}, [&](const Lane& v) { return clip(std::max(s(v[0]), s(v[1]))); });
  check("sad." + suffix, t, {t, t, t},
        [&](const Lane& v) { return clip(s(v[2]) + std::max(s(v[0]) - s(v[1]), s(v[1]) - s(v[0]))); });
  const uint64_t ones = bits(static_cast<T>(-1));
  check("div." + suffix, t, {t, t}, [&](const Lane& v) { return s(v[1]) == 0 ? ones : clip(s(v[0]) / s(v[1])); });
  check("rem." + suffix, t, {t, t}, [&](const Lane& v) { return s(v[1]) == 0 ? ones : clip(s(v[0]) % s(v[1])); });
  check("shr." + suffix, t, {t, Type::U32},
        [&](const Lane& v) { return v[1] >= kBits ? (s(v[0]) < 0 ? ones : 0) : clip(s(v[0]) >> v[1]); });
  if constexpr (std::is_signed_v<T>) {
    check("abs." + suffix, t, {t}, [&](const Lane& v) { return clip(s(v[0]) < 0 ? -s(v[0]) : s(v[0])); });
    check("neg." + suffix, t, {t}, [&](const Lane& v) { return clip(-s(v[0])); });
  }
  const std::map<std::string, std::function<bool(W, W)>> compares = {
      {"eq", std::equal_to<W>()},   {"ne", std::not_equal_to<W>()}, {"lt", std::less<W>()},
      {"le", std::less_equal<W>()}, {"gt", std::greater<W>()},      {"ge", std::greater_equal<W>()}};
  for (const auto& [name, holds] : compares) {
    check("setp." + name + "." + suffix, Type::Pred, {t, t},
          [&, &holds = holds](const Lane& v) { return holds(s(v[0]), s(v[1])); });
    check("set." + name + ".u32." + suffix, Type::U32, {t, t},
          [&, &holds = holds](const Lane& v) { return holds(s(v[0]), s(v[1])) ? 0xffffffffu : 0u; });
  }
}

TEST(Alu, Integers) {
  check_integers<uint16_t>("u16", Type::U16);
  check_integers<int16_t>("s16", Type::S16);
  check_integers<uint32_t>("u32", Type::U32);
  check_integers<int32_t>("s32", Type::S32);
  check_integers<uint64_t>("u64", Type::U64);
  check_integers<int64_t>("s64", Type::S64);
}

TEST(Alu, SaturatingAndWideIntegers) {
  const auto saturate = [](int64_t v) {
    return bits(static_cast<int32_t>(std::clamp<int64_t>(v, INT32_MIN, INT32_MAX)));
  };
  const Type s32 = Type::S32, u32 = Type::U32;
  check("add.sat.s32", s32, {s32, s32},
        [&](const Lane& v) { return saturate(int64_t{as<int32_t>(v[0])} + as<int32_t>(v[1])); });
  check("sub.sat.s32", s32, {s32, s32},
        [&](const Lane& v) { return saturate(int64_t{as<int32_t>(v[0])} - as<int32_t>(v[1])); });
  check("mad.hi.sat.s32", s32, {s32, s32, s32}, [&](const Lane& v) {
    return saturate((int64_t{as<int32_t>(v[0])} * as<int32_t>(v[1]) >> 32) + as<int32_t>(v[2]));
  });
  check("mul.wide.s32", Type::S64, {s32, s32},
        [](const Lane& v) { return bits(int64_t{as<int32_t>(v[0])} * as<int32_t>(v[1])); });
  check("mul.wide.u32", Type::U64, {u32, u32}, [](const Lane& v) { return v[0] * v[1]; });
  check("mul.wide.u16", u32, {Type::U16, Type::U16}, [](const Lane& v) { return v[0] * v[1]; });
  check("mul.wide.s16", s32, {Type::S16, Type::S16},
        [](const Lane& v) { return bits(int32_t{as<int16_t>(v[0])} * as<int16_t>(v[1])); });
  check("mad.wide.u32", Type::U64, {u32, u32, Type::U64}, [](const Lane& v) { return v[0] * v[1] + v[2]; });
  check("mad.wide.s32", Type::S64, {s32, s32, Type::S64},
        [](const Lane& v) { return static_cast<uint64_t>(int64_t{as<int32_t>(v[0])} * as<int32_t>(v[1])) + v[2]; });
  check("mul24.lo.u32", u32, {u32, u32},
        [](const Lane& v) { return (v[0] & 0xffffff) * (v[1] & 0xffffff) & 0xffffffff; });
  check("mul24.hi.u32", u32, {u32, u32},
        [](const Lane& v) { return (v[0] & 0xffffff) * (v[1] & 0xffffff) >> 16 & 0xffffffff; });
  check("max.relu.s32", s32, {s32, s32}, [](const Lane& v) {
    return bits(std::max({as<int32_t>(v[0]), as<int32_t>(v[1]), 0}));
  });
  check("add.u16x2", u32, {u32, u32},
        [](const Lane& v) { return ((v[0] + v[1]) & 0xffff) | ((((v[0] >> 16) + (v[1] >> 16)) & 0xffff) << 16); });
  check("min.s16x2", u32, {u32, u32}, [](const Lane& v) {
    const auto low = std::min(as<int16_t>(v[0]), as<int16_t>(v[1])),
               high = std::min(as<int16_t>(v[0] >> 16), as<int16_t>(v[1] >> 16));
    return bits(low) | bits(high) << 16;
  });
  check("dp4a.s32.u32", s32, {u32, u32, s32}, [](const Lane& v) {
    int64_t sum = as<int32_t>(v[2]);
    for (int i = 0; i < 4; ++i) sum += as<int8_t>(v[0] >> 8 * i) * as<uint8_t>(v[1] >> 8 * i);
    return bits(static_cast<int32_t>(sum));
  });
  check("dp2a.hi.u32.s32", s32, {u32, u32, s32}, [](const Lane& v) {
    int64_t sum = as<int32_t>(v[2]);
    for (int i = 0; i < 2; ++i) sum += int64_t{as<uint16_t>(v[0] >> 16 * i)} * as<int8_t>(v[1] >> (16 + 8 * i));
    return bits(static_cast<int32_t>(sum));
  });
}

TEST(Alu, Bits) {
  const Type b32 = Type::B32, b64 = Type::B64, u32 = Type::U32;
  check("and.b32", b32, {b32, b32}, [](const Lane& v) { return v[0] & v[1]; });
  check("or.b64", b64, {b64, b64}, [](const Lane& v) { return v[0] | v[1]; });
  check("xor.b16", Type::B16, {Type::B16, Type::B16}, [](const Lane& v) { return v[0] ^ v[1]; });
  check("not.b16", Type::B16, {Type::B16}, [](const Lane& v) { return ~v[0] & 0xffff; });
  check("cnot.b32", b32, {b32}, [](const Lane& v) { return v[0] == 0; });
  check("and.pred", Type::Pred, {Type::Pred, Type::Pred}, [](const Lane& v) { return v[0] & v[1]; });
  check("not.pred", Type::Pred, {Type::Pred}, [](const Lane& v) { return v[0] ^ 1; });
  check("shl.b16", Type::B16, {Type::B16, u32}, [](const Lane& v) { return v[1] > 15 ? 0 : v[0] << v[1] & 0xffff; });
  check("shl.b32", b32, {b32, u32}, [](const Lane& v) { return v[1] > 31 ? 0 : v[0] << v[1] & 0xffffffff; });
  check("shl.b64", b64, {b64, u32}, [](const Lane& v) { return v[1] > 63 ? 0 : v[0] << v[1]; });
  const auto funnel = [](const Lane& v) { return v[1] << 32 | v[0]; };
  check("shf.l.wrap.b32", b32, {b32, b32, u32}, [&](const Lane& v) { return funnel(v) << (v[2] & 31) >> 32; });
  check("shf.l.clamp.b32", b32, {b32, b32, u32},
        [&](const Lane& v) { return funnel(v) << std::min<uint64_t>(v[2], 32) >> 32; });
  check("shf.r.wrap.b32", b32, {b32, b32, u32}, [&](const Lane& v) { return funnel(v) >> (v[2] & 31) & 0xffffffff; });
  check("shf.r.clamp.b32", b32, {b32, b32, u32},
        [&](const Lane& v) { return funnel(v) >> std::min<uint64_t>(v[2], 32) & 0xffffffff; });
  check("popc.b32", u32, {b32}, [](const Lane& v) { return std::popcount(v[0]); });
  check("popc.b64", u32, {b64}, [](const Lane& v) { return std::popcount(v[0]); });
  check("clz.b32", u32, {b32}, [](const Lane& v) { return std::countl_zero(as<uint32_t>(v[0])); });
  check("clz.b64", u32, {b64}, [](const Lane& v) { return std::countl_zero(v[0]); });
  const auto leading = [](uint64_t v, int top) -> uint64_t {
    for (int i = top; i >= 0; --i) {
      if (v >> i & 1) return static_cast<uint64_t>(i);
    }
    return 0xffffffff;
  };
  check("bfind.u32", u32, {u32}, [&](const Lane& v) { return leading(v[0], 31); });
  check("bfind.s64", u32, {Type::S64}, [&](const Lane& v) { return leading(v[0] >> 63 ? ~v[0] : v[0], 63); });
  check("bfind.shiftamt.s32", u32, {Type::S32}, [&](const Lane& v) {
    const uint64_t p = leading(v[0] >> 31 ? ~v[0] & 0xffffffff : v[0], 31);
    return p == 0xffffffff ? p : 31 - p;
  });
  check("brev.b64", b64, {b64}, [](const Lane& v) {
    uint64_t r = 0;
    for (int i = 0; i < 64; ++i) r |= (v[0] >> i & 1) << (63 - i);
    return r;
  });
  // The loop of the manual, §9.7.1.19.
  const auto bfe = [](int msb, bool is_signed) {
    return [=](const Lane& v) {
      const int position = static_cast<int>(v[1] & 0xff), length = static_cast<int>(v[2] & 0xff);
      const uint64_t sign = !is_signed || length == 0 ? 0 : v[0] >> std::min(position + length - 1, msb) & 1;
      uint64_t d = 0;
      for (int i = 0; i <= msb; ++i) d |= (i < length && position + i <= msb ? v[0] >> (position + i) & 1 : sign) << i;
      return d;
    };
  };
  check("bfe.u32", u32, {u32, u32, u32}, bfe(31, false));
  check("bfe.s32", Type::S32, {Type::S32, u32, u32}, bfe(31, true));
  check("bfe.u64", Type::U64, {Type::U64, u32, u32}, bfe(63, false));
  check("bfe.s64", Type::S64, {Type::S64, u32, u32}, bfe(63, true));
  const auto bfi = [](int msb) {
    return [=](const Lane& v) {
      const int position = static_cast<int>(v[2] & 0xff), length = static_cast<int>(v[3] & 0xff);
      uint64_t f = v[1];
      for (int i = 0; i < length && position + i <= msb; ++i) {
        f = (f & ~(uint64_t{1} << (position + i))) | (v[0] >> i & 1) << (position + i);
      }
      return f;
    };
  };
  check("bfi.b32", b32, {b32, b32, u32, u32}, bfi(31));
  check("bfi.b64", b64, {b64, b64, u32, u32}, bfi(63));
  check("bmsk.clamp.b32", b32, {u32, u32}, [](const Lane& v) {
    uint64_t r = 0;
    for (uint64_t i = 0; i < 32; ++i) r |= uint64_t{i >= v[0] && i - v[0] < v[1]} << i;
    return r;
  });
  check("szext.wrap.s32", Type::S32, {Type::S32, u32}, [](const Lane& v) {
    const uint64_t n = v[1] & 31;
    if (n == 0) return uint64_t{0};
    const uint64_t low = v[0] & ((uint64_t{1} << n) - 1);
    return (low >> (n - 1) & 1) ? (low | ~uint64_t{0} << n) & 0xffffffff : low;
  });
  // The manual's table, §9.7.9.7.
  const std::map<std::string, std::vector<uint32_t>> modes = {
      {".f4e", {0x3210, 0x4321, 0x5432, 0x6543}}, {".b4e", {0x5670, 0x6701, 0x7012, 0x0123}},
      {".rc8", {0x0000, 0x1111, 0x2222, 0x3333}}, {".ecl", {0x3210, 0x3211, 0x3222, 0x3333}},
      {".ecr", {0x0000, 0x1110, 0x2210, 0x3210}}, {".rc16", {0x1010, 0x3232, 0x1010, 0x3232}}};
  const auto permute = [](const Lane& v, uint64_t selector) {
    uint64_t r = 0;
    for (int i = 0; i < 4; ++i) {
      const uint64_t s = selector >> 4 * i;
      uint64_t byte = (v[1] << 32 | v[0]) >> 8 * (s & 7) & 0xff;
      if (s & 8) byte = byte & 0x80 ? 0xff : 0;
      r |= byte << 8 * i;
    }
    return r;
  };
  check("prmt.b32", b32, {b32, b32, b32}, [&](const Lane& v) { return permute(v, v[2]); });
  for (const auto& [mode, table] : modes) {
    check("prmt.b32" + mode, b32, {b32, b32, b32},
          [&, &table = table](const Lane& v) { return permute(v, table[v[2] & 3]); });
  }
}

TEST(Alu, Lop3EveryTable) {
  std::mt19937_64 random(1);
  for (const bool base : {false, true}) {
    use_base_alu(base);
    for (uint32_t table = 0; table < 256; ++table) {
      Machine m;
      m.declare(5, Type::Pred);
      m.declare(6, Type::Pred);
      for (int l = 0; l < kWarpSize; ++l) {
        for (uint32_t r = 1; r < 4; ++r) m.set(r, l, random() & 0xffffffff);
        m.set(6, l, random() & 1);
      }
      const auto lookup = [&](int l) {
        uint32_t want = 0;
        for (int i = 0; i < 32; ++i) {
          const auto bit = [&](uint32_t r) { return static_cast<uint32_t>(m.get(r, l) >> i & 1); };
          want |= (table >> (bit(1) << 2 | bit(2) << 1 | bit(3)) & 1) << i;
        }
        return want;
      };
      ASSERT_EQ(m.run(statement("lop3.b32", {reg(0), reg(1), reg(2), reg(3), integer(table)})), "");
      for (int l = 0; l < kWarpSize; ++l) ASSERT_EQ(static_cast<uint32_t>(m.get(0, l)), lookup(l)) << table;
      ASSERT_EQ(m.run(statement("lop3.and.b32", {group(Operand::Kind::Pair, {reg(0), reg(5)}), reg(1), reg(2), reg(3),
                                                 integer(table), reg(6, true)})),
                "");
      for (int l = 0; l < kWarpSize; ++l) {
        ASSERT_EQ(static_cast<bool>(m.get(5, l)), lookup(l) != 0 && !m.get(6, l)) << table;
      }
    }
  }
  use_base_alu(false);
}

// --- floating point --------------------------------------------------------------------------------------------------

/// One rounded host operation in a given mode; volatile keeps it between the mode changes.
template <class T, class F>
T rounded(int mode, F f) {
  std::fesetround(mode);
  volatile T result = f();
  std::fesetround(FE_TONEAREST);
  return result;
}
const std::map<std::string, int> kModes = {
    {"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};

uint64_t flushed(uint64_t b) { return (b & 0x7f800000) == 0 ? b & 0x80000000 : b; }

TEST(Alu, Float32) {
  const Type t = Type::F32;
  for (const auto& entry : kModes) {
    const std::string& name = entry.first;
    const int mode = entry.second;
    const auto two = [mode](auto f) {
      return [=](const Lane& v) {
        volatile float a = f32(v[0]), b = f32(v[1]);
        return f32_bits(rounded<float>(mode, [&] { return f(a, b); }));
      };
    };
    check("add." + name + ".f32", t, {t, t}, two([](float a, float b) { return a + b; }));
    check("sub." + name + ".f32", t, {t, t}, two([](float a, float b) { return a - b; }));
    check("mul." + name + ".f32", t, {t, t}, two([](float a, float b) { return a * b; }));
    check("div." + name + ".f32", t, {t, t}, two([](float a, float b) { return a / b; }));
    check("fma." + name + ".f32", t, {t, t, t}, [mode](const Lane& v) {
      volatile float a = f32(v[0]), b = f32(v[1]), c = f32(v[2]);
      return f32_bits(rounded<float>(mode, [&] { return std::fmaf(a, b, c); }));
    });
    check("rcp." + name + ".f32", t, {t}, [mode](const Lane& v) {
      volatile float a = f32(v[0]);
      return f32_bits(rounded<float>(mode, [&] { return 1.0f / a; }));
    });
    check("sqrt." + name + ".f32", t, {t}, [mode](const Lane& v) {
      volatile float a = f32(v[0]);
      return f32_bits(rounded<float>(mode, [&] { return std::sqrt(a); }));
    });
  }
  check("add.ftz.f32", t, {t, t},
        [](const Lane& v) { return flushed(f32_bits(f32(flushed(v[0])) + f32(flushed(v[1])))); });
  check("mul.ftz.f32", t, {t, t},
        [](const Lane& v) { return flushed(f32_bits(f32(flushed(v[0])) * f32(flushed(v[1])))); });
  check("add.sat.f32", t, {t, t}, [](const Lane& v) {
    const float r = f32(v[0]) + f32(v[1]);
    return std::isnan(r) || r <= 0 ? 0 : f32_bits(std::min(r, 1.0f));
  });
  check("add.rn.f32x2", Type::B64, {Type::B64, Type::B64}, [](const Lane& v) {
    return f32_bits(f32(v[0]) + f32(v[1])) | f32_bits(f32(v[0] >> 32) + f32(v[1] >> 32)) << 32;
  });
  check("fma.rn.f32x2", Type::B64, {Type::B64, Type::B64, Type::B64}, [](const Lane& v) {
    return f32_bits(std::fmaf(f32(v[0]), f32(v[1]), f32(v[2]))) |
           f32_bits(std::fmaf(f32(v[0] >> 32), f32(v[1] >> 32), f32(v[2] >> 32))) << 32;
  });
  check("abs.f32", t, {t}, [](const Lane& v) { return f32_bits(std::fabs(f32(v[0]))); });
  check("neg.ftz.f32", t, {t}, [](const Lane& v) { return f32_bits(-f32(flushed(v[0]))); });
  check("copysign.f32", t, {t, t}, [](const Lane& v) { return (v[0] & 0x80000000) | (v[1] & 0x7fffffff); });
  const auto extreme = [](bool max, bool nan) {
    return [=](const Lane& v) -> uint64_t {
      const float a = f32(v[0]), b = f32(v[1]);
      if (std::isnan(a) && std::isnan(b)) return 0x7fffffff;
      if (std::isnan(a) || std::isnan(b)) return nan ? 0x7fffffff : std::isnan(a) ? v[1] : v[0];
      if (a == b) return max ? (std::signbit(a) ? v[1] : v[0]) : (std::signbit(a) ? v[0] : v[1]);
      return (max ? a > b : a < b) ? v[0] : v[1];
    };
  };
  check("min.f32", t, {t, t}, extreme(false, false));
  check("max.f32", t, {t, t}, extreme(true, false));
  check("min.NaN.f32", t, {t, t}, extreme(false, true));
  check("max.NaN.f32", t, {t, t}, extreme(true, true));
  check("max.f32", t, {t, t, t}, [&](const Lane& v) { return extreme(true, false)({extreme(true, false)(v), v[2]}); });
  // .abs with three inputs compares magnitudes and leaves the sign out.
  const auto magnitudes = [](const Lane& v) { return Lane{v[0] & 0x7fffffff, v[1] & 0x7fffffff, v[2] & 0x7fffffff}; };
  check("max.abs.f32", t, {t, t, t}, [&](const Lane& v) {
    const Lane m = magnitudes(v);
    return extreme(true, false)({extreme(true, false)(m), m[2]});
  });
  check("min.ftz.NaN.abs.f32", t, {t, t, t}, [&](const Lane& v) {
    Lane m = magnitudes(v);
    for (uint64_t& x : m) x = flushed(x);
    return extreme(false, true)({extreme(false, true)(m), m[2]});
  });
  check("max.xorsign.abs.f32", t, {t, t}, [&](const Lane& v) {
    const uint64_t r = extreme(true, false)({v[0] & 0x7fffffff, v[1] & 0x7fffffff});
    return std::isnan(f32(v[0])) && std::isnan(f32(v[1])) ? r : r | ((v[0] ^ v[1]) & 0x80000000);
  });
  check("ex2.approx.f32", t, {t},
        [](const Lane& v) { return f32_bits(static_cast<float>(std::exp2(double{f32(v[0])}))); });
  check("rsqrt.approx.ftz.f32", t, {t}, [](const Lane& v) {
    return flushed(f32_bits(static_cast<float>(1.0 / std::sqrt(double{f32(flushed(v[0]))}))));
  });
  check("testp.subnormal.f32", Type::Pred, {t},
        [](const Lane& v) { return std::fpclassify(f32(v[0])) == FP_SUBNORMAL; });
  check("testp.number.f32", Type::Pred, {t}, [](const Lane& v) { return !std::isnan(f32(v[0])); });
  check("testp.normal.f32", Type::Pred, {t},  // zeros too
        [](const Lane& v) { return std::isnormal(f32(v[0])) || f32(v[0]) == 0; });
}

TEST(Alu, QuotientsAreFlushedForWhatTheyAreBeforeRounding) {
  // Divisors near one, so that many quotients of the least normal numbers lie just below 2^-126.
  const auto dividend = [](uint64_t v) { return (v & 0x80000000) | (0x00800000 + (v & 3)); };
  const auto divisor = [](uint64_t v) { return (v & 0x80000000) | (0x3f800000 + (v >> 2 & 3)); };
  for (const auto& entry : kModes) {
    const std::string opcode = "div." + entry.first + ".ftz.f32";
    Machine m;
    std::vector<uint64_t> a(kWarpSize), b(kWarpSize);
    for (uint32_t r = 0; r < 3; ++r) m.declare(r, Type::F32);
    for (int l = 0; l < kWarpSize; ++l) {
      const auto bits = static_cast<uint64_t>(l & 15) | uint64_t{l >= 16} << 31;
      a[l] = dividend(bits);
      b[l] = divisor(bits & 15);
      m.set(1, l, a[l]);
      m.set(2, l, b[l]);
    }
    ASSERT_EQ(m.run(statement(opcode, {reg(0), reg(1), reg(2)})), "");
    int below = 0;
    for (int l = 0; l < kWarpSize; ++l) {
      const bool zero = std::fabs(double{f32(a[l])}) < double{f32(b[l])} * 0x1p-126;
      below += zero ? 1 : 0;
      volatile float x = f32(a[l]), y = f32(b[l]);
      const uint64_t rounded_bits = f32_bits(rounded<float>(entry.second, [&] { return x / y; }));
      EXPECT_EQ(static_cast<uint64_t>(m.get(0, l)), zero ? rounded_bits & 0x80000000 : rounded_bits) << opcode << l;
    }
    EXPECT_EQ(below, 12);
  }
}

TEST(Alu, SinAndCosReduceTheirArgumentToShortTurns) {
  const auto run = [](const char* opcode, uint32_t bits) {
    Machine m;
    for (uint32_t r = 0; r < 2; ++r) m.declare(r, Type::F32);
    m.set(1, 0, bits);
    EXPECT_EQ(m.run(statement(opcode, {reg(0), reg(1)})), "");
    return static_cast<uint32_t>(m.get(0, 0));
  };
  // Within the bound of the manual from -2π to 2π (PTX §9.7.3.18).
  for (float x = -6.25f; x <= 6.25f; x += 0.03125f) {
    EXPECT_NEAR(f32(run("sin.approx.f32", static_cast<uint32_t>(f32_bits(x)))), std::sin(x), std::exp2(-20.5)) << x;
    EXPECT_NEAR(f32(run("cos.approx.f32", static_cast<uint32_t>(f32_bits(x)))), std::cos(x), std::exp2(-20.5)) << x;
  }
  struct Case {
    uint32_t x, sine, cosine;
  };
  for (const Case& c : {Case{0x00000000, 0x00000000, 0x3f800000}, Case{0x80000000, 0x80000000, 0x3f800000},
                        Case{0x00800000, 0x00000000, 0x3f800000}, Case{0xb3800000, 0x80000000, 0x3f800000},
                        Case{0x4f000000, 0x00000000, 0x3f800000}, Case{0xff7fffff, 0x80000000, 0x3f800000},
                        Case{0x4b000000, 0x3f3504f3, 0xbf3504f3}, Case{0x4affffff, 0x3f800000, 0x80000000},
                        Case{0x7f800000, 0x7fffffff, 0x7fffffff}, Case{0xffc00001, 0x7fffffff, 0x7fffffff}}) {
    EXPECT_EQ(run("sin.approx.f32", c.x), c.sine) << std::hex << c.x;
    EXPECT_EQ(run("cos.approx.f32", c.x), c.cosine) << std::hex << c.x;
  }
}

TEST(Alu, Float64) {
  const Type t = Type::F64;
  // The first NaN among the operands in this order, made quiet.
  const auto result = [](double r, const Lane& operands) -> uint64_t {
    if (!std::isnan(r)) return std::bit_cast<uint64_t>(r);
    for (const uint64_t operand : operands) {
      if (std::isnan(f64(operand))) return operand | 0x0008000000000000;
    }
    return 0xfff8000000000000;
  };
  for (const auto& entry : kModes) {
    const std::string& name = entry.first;
    const int mode = entry.second;
    const auto two = [=](auto f, bool second_first = true) {
      return [=](const Lane& v) {
        volatile double a = f64(v[0]), b = f64(v[1]);
        return result(rounded<double>(mode, [&] { return f(a, b); }), second_first ? Lane{v[1], v[0]} : v);
      };
    };
    check("add." + name + ".f64", t, {t, t}, two([](double a, double b) { return a + b; }));
    check("sub." + name + ".f64", t, {t, t}, two([](double a, double b) { return a - b; }));
    check("mul." + name + ".f64", t, {t, t}, two([](double a, double b) { return a * b; }));
    check("div." + name + ".f64", t, {t, t}, two([](double a, double b) { return a / b; }, false));
    check("fma." + name + ".f64", t, {t, t, t}, [=](const Lane& v) {
      volatile double a = f64(v[0]), b = f64(v[1]), c = f64(v[2]);
      return result(rounded<double>(mode, [&] { return std::fma(a, b, c); }), {v[1], v[2], v[0]});
    });
  }
  // A NaN keeps its sign.
  const auto changed = [](auto f) {
    return [=](const Lane& v) {
      return std::isnan(f64(v[0])) ? v[0] | 0x0008000000000000 : std::bit_cast<uint64_t>(f(f64(v[0])));
    };
  };
  check("abs.f64", t, {t}, changed([](double x) { return std::fabs(x); }));
  check("neg.f64", t, {t}, changed([](double x) { return -x; }));
  const auto extreme = [](bool max) {
    return [=](const Lane& v) -> uint64_t {
      const double a = f64(v[0]), b = f64(v[1]);
      if (std::isnan(a)) return std::isnan(b) ? v[0] | 0x0008000000000000 : v[1];
      if (std::isnan(b)) return v[0];
      if (a == b) return std::signbit(a) == max ? v[1] : v[0];
      return (max ? a > b : a < b) ? v[0] : v[1];
    };
  };
  check("min.f64", t, {t, t}, extreme(false));
  check("max.f64", t, {t, t}, extreme(true));
  check("testp.normal.f64", Type::Pred, {t}, [](const Lane& v) { return std::isnormal(f64(v[0])) || f64(v[0]) == 0; });
}

TEST(Alu, FloatComparisons) {
  const std::map<std::string, std::function<bool(float, float)>> compares = {
      {"eq", [](float a, float b) { return a == b; }},
      {"ne", [](float a, float b) { return a < b || a > b; }},
      {"lt", [](float a, float b) { return a < b; }},
      {"le", [](float a, float b) { return a <= b; }},
      {"gt", [](float a, float b) { return a > b; }},
      {"ge", [](float a, float b) { return a >= b; }},
      {"num", [](float a, float b) { return !std::isunordered(a, b); }},
      {"nan", [](float a, float b) { return std::isunordered(a, b); }}};
  for (const auto& [name, holds] : compares) {
    const Reference ordered = [&, &holds = holds](const Lane& v) { return holds(f32(v[0]), f32(v[1])); };
    check("setp." + name + ".f32", Type::Pred, {Type::F32, Type::F32}, ordered);
    check("set." + name + ".f32.f32", Type::F32, {Type::F32, Type::F32},
          [&](const Lane& v) { return ordered(v) ? 0x3f800000 : 0; });
    check("setp." + name + ".bf16", Type::Pred, {Type::BF16, Type::BF16}, [&](const Lane& v) {
      return ordered({v[0] << 16, v[1] << 16});
    });
    if (name == "num" || name == "nan") continue;
    check("setp." + name + "u.f32", Type::Pred, {Type::F32, Type::F32},
          [&](const Lane& v) { return ordered(v) || std::isunordered(f32(v[0]), f32(v[1])); });
  }
}

TEST(Alu, SetpCombinesPredicates) {
  for (const std::string op : {"and", "or", "xor"}) {
    for (const bool negated : {false, true}) {
      Machine m;
      for (const uint32_t p : {0, 1, 4}) m.declare(p, Type::Pred);
      for (int l = 0; l < kWarpSize; ++l) {
        m.set(2, l, l & 1);
        m.set(3, l, 1);
        m.set(4, l, l >> 1 & 1);
      }
      // q is computed from the negated comparison; c is also a destination.
      ASSERT_EQ(m.run(statement("setp.lt." + op + ".s32",
                                {group(Operand::Kind::Pair, {reg(4), reg(1)}), reg(2), reg(3), reg(4, negated)})),
                "");
      for (int l = 0; l < kWarpSize; ++l) {
        const bool less = (l & 1) < 1, c = ((l >> 1 & 1) != 0) != negated;
        const auto combine = [&](bool r) { return op == "and" ? r && c : op == "or" ? r || c : r != c; };
        EXPECT_EQ(static_cast<bool>(m.get(4, l)), combine(less)) << op << l;
        EXPECT_EQ(static_cast<bool>(m.get(1, l)), combine(!less)) << op << l;
      }
    }
  }
}

// --- short formats: the reference searches a table of all values -----------------------------------------------------

struct Narrow {
  int exponent_bits, mantissa_bits, bias;
  bool has_infinity, has_nan;
};
#if defined(__x86_64__)
__extension__ using Quad = __float128;  // 113 bits: products of two bf16 and sums of such products of f16 are exact
#else
using Quad = long double;
#endif

class NarrowTable {
 public:
  explicit NarrowTable(Narrow f) : format(f) {
    const int codes = 1 << (f.exponent_bits + f.mantissa_bits);
    for (int code = 0; code < codes; ++code) {
      const int e = code >> f.mantissa_bits, m = code & ((1 << f.mantissa_bits) - 1);
      if (f.has_infinity && e == (1 << f.exponent_bits) - 1) break;
      if (!f.has_infinity && f.has_nan && code == codes - 1) break;
      values.push_back(std::ldexp(static_cast<double>(e == 0 ? m : m + (1 << f.mantissa_bits)),
                                  (e == 0 ? 1 : e) - f.bias - f.mantissa_bits));
    }
  }
  /// Code of the value nearest to magnitude + rest, where |rest| is less than a rounding error of `magnitude`; ties to
  /// the even code; past the largest plus half a step: one code beyond.
  uint64_t nearest(Quad magnitude, Quad rest = 0) const {
    size_t low = 0, high = values.size() - 1;
    const double step = values[high] - values[high - 1];
    if (magnitude >= Quad{values[high]} + Quad{step} / 2) return values.size();
    if (magnitude >= Quad{values[high]}) return high;
    while (high - low > 1) {
      const size_t middle = (low + high) / 2;
      (Quad{values[middle]} <= magnitude ? low : high) = middle;
    }
    const Quad below = magnitude - Quad{values[low]}, above = Quad{values[high]} - magnitude;
    if (below != above) return below < above ? low : high;
    if (rest != 0) return rest < 0 ? low : high;
    return low % 2 == 0 ? low : high;
  }
  Narrow format;
  std::vector<double> values;
};

const NarrowTable& half_table() {
  static const NarrowTable kTable({5, 10, 15, true, true});
  return kTable;
}
const NarrowTable& bfloat_table() {
  static const NarrowTable kTable({8, 7, 127, true, true});
  return kTable;
}
double narrow_value(const NarrowTable& table, uint64_t code) {
  const uint64_t magnitude = code & 0x7fff;
  const double v = magnitude < table.values.size()    ? table.values[magnitude]
                   : magnitude == table.values.size() ? INFINITY
                                                      : NAN;
  return code & 0x8000 ? -v : v;
}
uint64_t to_narrow(const NarrowTable& table, double special, Quad exact, Quad rest = 0) {
  if (std::isnan(special)) return 0x7fff;
  const uint64_t sign = std::signbit(special) ? 0x8000 : 0;
  if (std::isinf(special)) return sign | table.values.size();
  return sign | (exact < 0 ? table.nearest(-exact, -rest) : table.nearest(exact, rest));
}

TEST(Alu, HalfAndBfloat) {
  for (const bool half : {true, false}) {
    const NarrowTable& table = half ? half_table() : bfloat_table();
    const Type t = half ? Type::F16 : Type::BF16, t2 = half ? Type::F16x2 : Type::BF16x2;
    const std::string name = half ? "f16" : "bf16";
    const auto value = [&](uint64_t code) { return narrow_value(table, code & 0xffff); };
    const auto add = [&](uint64_t a, uint64_t b) {
      return to_narrow(table, value(a) + value(b), Quad{value(a)} + Quad{value(b)});
    };
    const auto mul = [&](uint64_t a, uint64_t b) {
      return to_narrow(table, value(a) * value(b), Quad{value(a)} * Quad{value(b)});
    };
    const auto fma = [&](uint64_t a, uint64_t b, uint64_t c) {
      const double special = std::fma(value(a), value(b), value(c));
      const Quad product = Quad{value(a)} * Quad{value(b)}, addend = value(c), sum = product + addend;
      // What the sum of two bf16 terms far apart loses (Knuth's two-sum).
      const Quad addend_part = sum - product;
      const Quad rest = (product - (sum - addend_part)) + (addend - addend_part);
      return to_narrow(table, special, sum, rest);
    };
    check("add.rn." + name, t, {t, t}, [&](const Lane& v) { return add(v[0], v[1]); });
    check("mul.rn." + name, t, {t, t}, [&](const Lane& v) { return mul(v[0], v[1]); });
    check("fma.rn." + name, t, {t, t, t}, [&](const Lane& v) { return fma(v[0], v[1], v[2]); });
    check("fma.rn.relu." + name, t, {t, t, t}, [&](const Lane& v) {
      const uint64_t r = fma(v[0], v[1], v[2]);
      return r & 0x8000 ? 0 : r;
    });
    check("add.rn." + name + "x2", t2, {t2, t2},
          [&](const Lane& v) { return add(v[0], v[1]) | add(v[0] >> 16, v[1] >> 16) << 16; });
    check("fma.rn." + name + "x2", t2, {t2, t2, t2},
          [&](const Lane& v) { return fma(v[0], v[1], v[2]) | fma(v[0] >> 16, v[1] >> 16, v[2] >> 16) << 16; });
    check("cvt.f32." + name, Type::F32, {t}, [&](const Lane& v) {  // a NaN of bf16 stays as it is
      return half ? f32_bits(static_cast<float>(value(v[0]))) : v[0] << 16;
    });
    const auto sign = [&](uint64_t code, bool abs) {
      return std::isnan(value(code)) ? 0x7fffu : abs ? code & 0x7fff : (code ^ 0x8000) & 0xffff;
    };
    check("abs." + name, t, {t}, [&](const Lane& v) { return sign(v[0], true); });
    check("neg." + name, t, {t}, [&](const Lane& v) { return sign(v[0], false); });
    check("abs." + name + "x2", t2, {t2},
          [&](const Lane& v) { return sign(v[0], true) | sign(v[0] >> 16, true) << 16; });
    check("neg." + name + "x2", t2, {t2},
          [&](const Lane& v) { return sign(v[0], false) | sign(v[0] >> 16, false) << 16; });
    check("cvt.rn." + name + ".f32", t, {Type::F32},
          [&](const Lane& v) { return to_narrow(table, f32(v[0]), Quad{f32(v[0])}); });
    // To and from f64 a NaN keeps its sign and the upper bits of its payload, and becomes quiet.
    const int fraction = half ? 10 : 7;
    const uint64_t infinity = half ? 0x7c00 : 0x7f80, quiet = uint64_t{1} << (fraction - 1);
    check("cvt.rn." + name + ".f64", t, {Type::F64}, [&](const Lane& v) {
      if (!std::isnan(f64(v[0]))) return to_narrow(table, f64(v[0]), Quad{f64(v[0])});
      return (v[0] >> 63) << 15 | infinity | quiet | (v[0] & 0x000fffffffffffff) >> (52 - fraction);
    });
    check("cvt.f64." + name, Type::F64, {t}, [&](const Lane& v) {
      if (!std::isnan(value(v[0]))) return std::bit_cast<uint64_t>(value(v[0]));
      const uint64_t payload = v[0] & (infinity ^ 0x7fff);
      return (v[0] & 0x8000) << 48 | 0x7ff8000000000000 | payload << (52 - fraction);
    });
    check("cvt.rz." + name + ".f32", t, {Type::F32}, [&](const Lane& v) -> uint64_t {
      const float x = f32(v[0]);
      if (std::isnan(x)) return 0x7fff;
      const uint64_t sign = std::signbit(x) ? 0x8000 : 0;
      if (std::isinf(x)) return sign | table.values.size();
      uint64_t code = table.values.size() - 1;
      while (table.values[code] > std::fabs(double{x})) --code;
      return sign | code;
    });
    check("cvt.rn." + name + "x2.f32", t2, {Type::F32, Type::F32}, [&](const Lane& v) {
      return to_narrow(table, f32(v[0]), Quad{f32(v[0])}) << 16 | to_narrow(table, f32(v[1]), Quad{f32(v[1])});
    });
    check("cvt.rn." + name + ".s64", t, {Type::S64}, [&](const Lane& v) {
      return to_narrow(table, static_cast<double>(as<int64_t>(v[0])), static_cast<Quad>(as<int64_t>(v[0])));
    });
    check("add.f32." + name, Type::F32, {t, Type::F32},
          [&](const Lane& v) { return f32_bits(static_cast<float>(value(v[0])) + f32(v[1])); });
  }
}

TEST(Alu, FmaZeroesWhatLiesOutside) {
  constexpr uint64_t kOutside = 0x7fff;  // the NaN that tensor copies fill with
  for (const bool half : {true, false}) {
    const NarrowTable& table = half ? half_table() : bfloat_table();
    const Type t = half ? Type::F16 : Type::BF16, t2 = half ? Type::F16x2 : Type::BF16x2;
    const std::string name = half ? "f16" : "bf16";
    // Products of small powers of two, so that the sum is exact in double: the interest lies in the NaN.
    const auto factor = [half](uint64_t v) -> uint64_t {
      return v % 4 == 0 ? kOutside : v % 4 == 1 ? 0x7e00 | (half ? 0 : 0x180) : (half ? 0x3c00 : 0x3f80) | (v & 0x8000);
    };
    const auto want = [&](uint64_t a, uint64_t b, bool relu) -> uint64_t {
      if (a == kOutside || b == kOutside) return 0;
      const double r = narrow_value(table, a) * narrow_value(table, b) + 1;
      return std::isnan(r) ? 0x7fff : r < 0 && relu ? 0 : to_narrow(table, r, Quad{r});
    };
    std::mt19937_64 random(half);
    for (const bool relu : {false, true}) {
      for (const bool packed : {false, true}) {
        Machine m;
        const uint64_t one = half ? 0x3c00 : 0x3f80;
        std::vector<std::array<uint64_t, 2>> a(kWarpSize), b(kWarpSize);
        for (uint32_t r = 0; r < 4; ++r) m.declare(r, packed ? t2 : t);
        for (int l = 0; l < kWarpSize; ++l) {
          for (int h = 0; h < 2; ++h) {
            a[l][h] = factor(random());
            b[l][h] = factor(random());
          }
          m.set(1, l, a[l][0] | (packed ? a[l][1] << 16 : 0));
          m.set(2, l, b[l][0] | (packed ? b[l][1] << 16 : 0));
          m.set(3, l, packed ? one | one << 16 : one);
        }
        const std::string opcode = std::string("fma.rn.oob.") + (relu ? "relu." : "") + name + (packed ? "x2" : "");
        ASSERT_EQ(m.run(statement(opcode, {reg(0), reg(1), reg(2), reg(3)})), "") << opcode;
        for (int l = 0; l < kWarpSize; ++l) {
          const uint64_t high = packed ? want(a[l][1], b[l][1], relu) << 16 : 0;
          EXPECT_EQ(static_cast<uint64_t>(m.get(0, l)), want(a[l][0], b[l][0], relu) | high) << opcode << ' ' << l;
        }
      }
    }
  }
}

TEST(Alu, StochasticRounding) {
  struct Case {
    const char* name;
    const NarrowTable* table;
    int least, mantissa, random;  // exponent of subnormal numbers; bits kept; random bits of a half
  };
  for (const Case& c : {Case{"f16x2", &half_table(), -14, 10, 13}, Case{"bf16x2", &bfloat_table(), -126, 7, 16}}) {
    for (const bool satfinite : {false, true}) {
      for (const bool relu : {false, true}) {
        // In units of the last bit kept: the fraction that is cut off plus the random bits carries, or does not.
        const auto convert = [&](uint64_t bits, uint64_t random) -> uint64_t {
          const double x = f32(bits);
          if (std::isnan(x)) return 0x7fff;
          const uint64_t sign = std::signbit(x) ? 0x8000 : 0;
          if (sign != 0 && relu) return 0;
          const uint64_t beyond = c.table->values.size();
          if (std::isinf(x)) return sign | (satfinite ? beyond - 1 : beyond);
          if (x == 0) return sign;
          const double unit = std::ldexp(1.0, std::max(std::ilogb(x), c.least) - c.mantissa);
          const double whole = std::trunc(std::fabs(x) / unit), fraction = std::fabs(x) / unit - whole;
          const double range = std::ldexp(1.0, c.random);
          const double magnitude = (fraction * range + static_cast<double>(random) >= range ? whole + 1 : whole) * unit;
          if (magnitude > c.table->values.back()) return sign | (satfinite ? beyond - 1 : beyond);
          return sign | c.table->nearest(Quad{magnitude});
        };
        const uint64_t mask = (uint64_t{1} << c.random) - 1;
        check(std::string("cvt.rs.") + (relu ? "relu." : "") + (satfinite ? "satfinite." : "") + c.name + ".f32",
              Type::B32, {Type::F32, Type::F32, Type::B32},
              [&](const Lane& v) { return convert(v[0], v[2] >> 16 & mask) << 16 | convert(v[1], v[2] & mask); });
      }
    }
  }
}

TEST(Alu, StochasticRoundingOfFour) {
  struct Case {
    const char* name;
    Narrow format;
    int part;
  };
  for (const Case& c : {Case{"e4m3x4", {4, 3, 7, false, true}, 8}, Case{"e5m2x4", {5, 2, 15, true, true}, 8},
                        Case{"e2m1x4", {2, 1, 1, false, false}, 4}, Case{"e2m3x4", {2, 3, 1, false, false}, 8},
                        Case{"e3m2x4", {3, 2, 3, false, false}, 8}}) {
    const NarrowTable table(c.format);
    const int width = 1 + c.format.exponent_bits + c.format.mantissa_bits;
    for (const bool relu : {false, true}) {
      const auto convert = [&](uint64_t bits, uint64_t random) -> uint64_t {
        const double x = f32(bits);
        if (std::isnan(x)) return c.format.has_nan ? 0x7f : table.values.size() - 1;
        if (std::signbit(x) && relu) return 0;
        const uint64_t sign = uint64_t{std::signbit(x)} << (width - 1);
        const auto above = std::upper_bound(table.values.begin(), table.values.end(), std::fabs(x));
        if (above == table.values.end()) return sign | (table.values.size() - 1);
        // Where x lies between two neighbours, in 2^16th of their distance, plus the random bits: a carry rounds up.
        const double part = (std::fabs(x) - above[-1]) / (above[0] - above[-1]) * 65536;
        const bool up = std::floor(part) + static_cast<double>(random) >= 65536;
        return sign | static_cast<uint64_t>(above - table.values.begin() - (up ? 0 : 1));
      };
      const auto reversed = [](uint64_t bits) {
        uint64_t out = 0;
        for (int i = 0; i < 16; ++i) out |= (bits >> i & 1) << (15 - i);
        return out;
      };
      check(
          std::string("cvt.rs.") + (relu ? "relu." : "") + "satfinite." + c.name + ".f32",
          c.part == 4 ? Type::B16 : Type::B32, {Type::F32, Type::F32, Type::F32, Type::F32, Type::B32},
          [&](const Lane& v) {
            const auto byte = [&](int i) { return v[4] >> 8 * i & 0xff; };
            const uint64_t high = c.part == 4 ? byte(3) << 8 | byte(1) : byte(3) << 8 | byte(2);
            const uint64_t low = c.part == 4 ? byte(2) << 8 | byte(0) : byte(1) << 8 | byte(0);
            return convert(v[0], reversed(high)) << 3 * c.part | convert(v[1], high) << 2 * c.part |
                   convert(v[2], reversed(low)) << c.part | convert(v[3], low);
          },
          4);
    }
  }
  // What the forms take.
  Machine m;
  for (uint32_t r = 1; r < 6; ++r) m.declare(r, Type::F32);
  const auto run = [&m](const char* opcode, size_t count, Type d) {
    m.declare(0, d);
    std::vector<Operand> values;
    for (size_t i = 0; i < count; ++i) values.push_back(reg(static_cast<uint32_t>(i + 1)));
    return m.run(statement(opcode, {reg(0), group(Operand::Kind::Vector, values), reg(5)}));
  };
  EXPECT_EQ(run("cvt.rs.satfinite.e4m3x4.f32", 4, Type::B32), "");
  EXPECT_NE(run("cvt.rs.satfinite.e4m3x4.f32", 4, Type::B16), "");
  EXPECT_NE(run("cvt.rs.satfinite.e4m3x4.f32", 2, Type::B32), "");
  EXPECT_NE(run("cvt.rs.satfinite.e2m1x4.f32", 4, Type::B32), "");
  EXPECT_NE(run("cvt.rs.e4m3x4.f32", 4, Type::B32), "") << "ptxas asks for .satfinite";
}

TEST(Alu, SetWritesShortFloats) {
  const auto one = [](bool yes, uint64_t value) { return yes ? value : uint64_t{0}; };
  check("set.lt.f16.f32", Type::F16, {Type::F32, Type::F32},
        [&](const Lane& v) { return one(f32(v[0]) < f32(v[1]), 0x3c00); });
  check("set.geu.bf16.f64", Type::BF16, {Type::F64, Type::F64},
        [&](const Lane& v) { return one(!(f64(v[0]) < f64(v[1])), 0x3f80); });
  check("set.gt.f16.s16", Type::F16, {Type::S16, Type::S16},
        [&](const Lane& v) { return one(as<int16_t>(v[0]) > as<int16_t>(v[1]), 0x3c00); });
  check("set.hi.bf16.u64", Type::BF16, {Type::U64, Type::U64}, [&](const Lane& v) { return one(v[0] > v[1], 0x3f80); });
  check("set.ne.f16.b32", Type::F16, {Type::B32, Type::B32}, [&](const Lane& v) { return one(v[0] != v[1], 0x3c00); });
  check("set.le.and.bf16.f16", Type::BF16, {Type::F16, Type::F16, Type::Pred}, [&](const Lane& v) {
    return one(narrow_value(half_table(), v[0]) <= narrow_value(half_table(), v[1]) && v[2], 0x3f80);
  });
}

TEST(Alu, NarrowFormats) {
  struct Case {
    const char* name;
    Narrow format;
    int part;
  };
  for (const Case& c : {Case{"e4m3x2", {4, 3, 7, false, true}, 8}, Case{"e5m2x2", {5, 2, 15, true, true}, 8},
                        Case{"e2m1x2", {2, 1, 1, false, false}, 4}, Case{"e2m3x2", {2, 3, 1, false, false}, 8},
                        Case{"e3m2x2", {3, 2, 3, false, false}, 8}}) {
    const NarrowTable table(c.format);
    const int width = 1 + c.format.exponent_bits + c.format.mantissa_bits;
    const auto encode = [&](double v) -> uint64_t {
      if (std::isnan(v)) return c.format.has_nan ? 0x7f : table.values.size() - 1;
      const uint64_t sign = uint64_t{std::signbit(v)} << (width - 1);
      return sign |
             std::min<uint64_t>(table.values.size() - 1, std::isinf(v) ? ~0ull : table.nearest(Quad{std::fabs(v)}));
    };
    const Type d = ptx::type_from_string(c.name);
    const Type storage = c.part == 4 ? Type::B8 : Type::B16;
    check(std::string("cvt.rn.satfinite.") + c.name + ".f32", storage, {Type::F32, Type::F32},
          [&](const Lane& v) { return encode(f32(v[0])) << c.part | encode(f32(v[1])); });
    ASSERT_NE(d, Type::None);
    // Every finite code goes to f16 and back.
    Machine m;
    m.declare(1, storage);
    for (uint64_t code = 0; code < table.values.size(); ++code) {
      const uint64_t both = (code | 1ull << (width - 1)) << c.part | code;
      for (int l = 0; l < kWarpSize; ++l) m.set(1, l, both);
      ASSERT_EQ(m.run(statement(std::string("cvt.rn.f16x2.") + c.name, {reg(2), reg(1)})), "");
      const auto pair = static_cast<uint64_t>(m.get(2, 7));
      EXPECT_EQ(narrow_value(half_table(), pair & 0xffff), table.values[code]) << c.name << code;
      EXPECT_EQ(narrow_value(half_table(), pair >> 16), -table.values[code]) << c.name << code;
      ASSERT_EQ(m.run(statement(std::string("cvt.rn.satfinite.") + c.name + ".f16x2", {reg(1), reg(2)})), "");
      EXPECT_EQ(static_cast<uint64_t>(m.get(1, 7)), both) << c.name << code;
    }
  }
  // A scale is a power of two: up with .rp, saturated to 2^127.
  check("cvt.rp.satfinite.ue8m0x2.f32", Type::B16, {Type::F32, Type::F32}, [](const Lane& v) {
    const auto scale = [](float x) -> uint64_t {
      if (std::isnan(x)) return 255;
      const double magnitude = std::fabs(double{x});
      uint64_t code = 0;
      while (code < 254 && std::ldexp(1.0, static_cast<int>(code) - 127) < magnitude) ++code;
      return code;
    };
    return scale(f32(v[0])) << 8 | scale(f32(v[1]));
  });
}

// --- conversions -----------------------------------------------------------------------------------------------------

template <class From, class To>
void check_integer_cvt(const std::string& from, const std::string& to) {
  const Type s = ptx::type_from_string(from), d = ptx::type_from_string(to);
  // Registers have 16 bits at least; bytes live in those, the result extended to them.
  const Type source = sizeof(From) == 1 ? Type::B16 : s, destination = sizeof(To) == 1 ? Type::B16 : d;
  const auto store = [](To v) -> uint64_t {
    if constexpr (sizeof(To) == 1) return bits(static_cast<int16_t>(v));
    return bits(v);
  };
  check("cvt." + to + "." + from, destination, {source},
        [&](const Lane& v) { return store(static_cast<To>(as<From>(v[0]))); });
  check("cvt.sat." + to + "." + from, destination, {source}, [&](const Lane& v) {
    using W = __int128;
    const W clamped = std::clamp<W>(as<From>(v[0]), std::numeric_limits<To>::min(), std::numeric_limits<To>::max());
    return store(static_cast<To>(clamped));
  });
}
template <class From>
void check_integer_cvts(const std::string& from) {
  check_integer_cvt<From, uint8_t>(from, "u8");
  check_integer_cvt<From, int8_t>(from, "s8");
  check_integer_cvt<From, uint16_t>(from, "u16");
  check_integer_cvt<From, int16_t>(from, "s16");
  check_integer_cvt<From, uint32_t>(from, "u32");
  check_integer_cvt<From, int32_t>(from, "s32");
  check_integer_cvt<From, uint64_t>(from, "u64");
  check_integer_cvt<From, int64_t>(from, "s64");
}

TEST(Alu, IntegerConversions) {
  check_integer_cvts<uint8_t>("u8");
  check_integer_cvts<int8_t>("s8");
  check_integer_cvts<uint16_t>("u16");
  check_integer_cvts<int16_t>("s16");
  check_integer_cvts<uint32_t>("u32");
  check_integer_cvts<int32_t>("s32");
  check_integer_cvts<uint64_t>("u64");
  check_integer_cvts<int64_t>("s64");
  // Registers wider than the types.
  check("cvt.u32.u16", Type::U32, {Type::U64}, [](const Lane& v) { return v[0] & 0xffff; });
  check("cvt.s8.s32", Type::S64, {Type::S32}, [](const Lane& v) { return bits(int64_t{as<int8_t>(v[0])}); });
}

template <class To>
void check_to_integer(const std::string& to, Type d) {
  const std::map<std::string, double (*)(double)> modes = {
      {"rni", std::nearbyint}, {"rzi", std::trunc}, {"rmi", std::floor}, {"rpi", std::ceil}};
  for (const auto& [mode, round] : modes) {
    const auto convert = [round = round](double x, bool f64) -> uint64_t {
      if (std::isnan(x)) return f64 || sizeof(To) == 8 ? uint64_t{1} << (8 * sizeof(To) - 1) : 0;
      const long double r = round(x);
      if (r > static_cast<long double>(std::numeric_limits<To>::max())) return bits(std::numeric_limits<To>::max());
      if (r < static_cast<long double>(std::numeric_limits<To>::min())) return bits(std::numeric_limits<To>::min());
      return bits(static_cast<To>(r));
    };
    check("cvt." + mode + "." + to + ".f32", d, {Type::F32}, [&](const Lane& v) { return convert(f32(v[0]), false); });
    check("cvt." + mode + "." + to + ".f64", d, {Type::F64}, [&](const Lane& v) { return convert(f64(v[0]), true); });
    check("cvt." + mode + "." + to + ".f16", d, {Type::F16},
          [&](const Lane& v) { return convert(narrow_value(half_table(), v[0]), false); });
  }
}

TEST(Alu, FloatConversions) {
  check_to_integer<int16_t>("s16", Type::S16);
  check_to_integer<uint16_t>("u16", Type::U16);
  check_to_integer<int32_t>("s32", Type::S32);
  check_to_integer<uint32_t>("u32", Type::U32);
  check_to_integer<int64_t>("s64", Type::S64);
  check_to_integer<uint64_t>("u64", Type::U64);
  for (const auto& entry : kModes) {
    const std::string& name = entry.first;
    const int mode = entry.second;
    const auto from = [mode]<class T>(T x) {
      volatile T value = x;
      const float r = rounded<float>(mode, [&] { return static_cast<float>(value); });
      return x == 0 && std::is_integral_v<T> ? 0 : f32_bits(r);
    };
    check("cvt." + name + ".f32.s32", Type::F32, {Type::S32}, [=](const Lane& v) { return from(as<int32_t>(v[0])); });
    check("cvt." + name + ".f32.u32", Type::F32, {Type::U32}, [=](const Lane& v) { return from(as<uint32_t>(v[0])); });
    check("cvt." + name + ".f32.s64", Type::F32, {Type::S64}, [=](const Lane& v) { return from(as<int64_t>(v[0])); });
    check("cvt." + name + ".f32.f64", Type::F32, {Type::F64}, [=](const Lane& v) -> uint64_t {
      if (!std::isnan(f64(v[0]))) return from(f64(v[0]));
      return (v[0] >> 63) << 31 | 0x7fc00000 | (v[0] >> 29 & 0x007fffff);
    });
  }
  check("cvt.rn.f64.u64", Type::F64, {Type::U64},
        [](const Lane& v) { return std::bit_cast<uint64_t>(static_cast<double>(v[0])); });
  check("cvt.rn.f64.s32", Type::F64, {Type::S32},
        [](const Lane& v) { return std::bit_cast<uint64_t>(static_cast<double>(as<int32_t>(v[0]))); });
  check("cvt.f64.f32", Type::F64, {Type::F32}, [](const Lane& v) {
    if (!std::isnan(f32(v[0]))) return std::bit_cast<uint64_t>(double{f32(v[0])});
    return (v[0] >> 31) << 63 | 0x7ff8000000000000 | (v[0] & 0x007fffff) << 29;
  });
  check("cvt.ftz.f64.f32", Type::F64, {Type::F32}, [](const Lane& v) {  // a NaN becomes that of f32 on its way
    return std::isnan(f32(v[0])) ? 0x7fffffffe0000000 : std::bit_cast<uint64_t>(double{f32(flushed(v[0]))});
  });
  check("cvt.rmi.f32.f32", Type::F32, {Type::F32}, [](const Lane& v) { return f32_bits(std::floor(f32(v[0]))); });
  check("cvt.sat.f32.f32", Type::F32, {Type::F32}, [](const Lane& v) {
    const float x = f32(v[0]);
    return x > 0 ? f32_bits(std::min(x, 1.0f)) : 0;
  });
  check("cvt.ftz.f32.f16", Type::F32, {Type::F16},
        [](const Lane& v) { return f32_bits(static_cast<float>(narrow_value(half_table(), v[0]))); });
  check("cvt.rna.tf32.f32", Type::B32, {Type::F32}, [](const Lane& v) -> uint64_t {
    // Half a unit of the magnitude, then cut; a NaN is only cut.
    return std::isfinite(f32(v[0])) ? (v[0] + 0x1000) & 0xffffe000 : v[0] & 0xffffe000;
  });
  check("cvt.rna.satfinite.tf32.f32", Type::B32, {Type::F32}, [](const Lane& v) -> uint64_t {
    const uint64_t r = std::isfinite(f32(v[0])) ? (v[0] + 0x1000) & 0xffffe000 : v[0] & 0xffffe000;
    return (r & 0x7f800000) == 0x7f800000 ? r - 0x2000 : r;
  });
  check("cvt.rz.tf32.f32", Type::B32, {Type::F32},
        [](const Lane& v) -> uint64_t { return std::isnan(f32(v[0])) ? 0x7fffe000 : v[0] & 0xffffe000; });
  check("cvt.pack.sat.s16.s32", Type::U32, {Type::S32, Type::S32}, [](const Lane& v) {
    const auto clip = [](uint64_t b) { return bits(static_cast<int16_t>(std::clamp(as<int32_t>(b), -32768, 32767))); };
    return clip(v[0]) << 16 | clip(v[1]);
  });
  check("cvt.pack.sat.u8.s32.b32", Type::U32, {Type::S32, Type::S32, Type::B32}, [](const Lane& v) {
    const auto clip = [](uint64_t b) { return bits(static_cast<uint8_t>(std::clamp(as<int32_t>(b), 0, 255))); };
    return (v[2] << 16 & 0xffffffff) | clip(v[0]) << 8 | clip(v[1]);
  });
}

// --- select, move, carry ---------------------------------------------------------------------------------------------

TEST(Alu, SelectsAndMoves) {
  const Type u32 = Type::U32, u64 = Type::U64;
  check("selp.b32", u32, {u32, u32, Type::Pred}, [](const Lane& v) { return v[2] ? v[0] : v[1]; });
  check("selp.f64", u64, {u64, u64, Type::Pred}, [](const Lane& v) { return v[2] ? v[0] : v[1]; });
  check("slct.u32.s32", u32, {u32, u32, Type::S32}, [](const Lane& v) { return as<int32_t>(v[2]) >= 0 ? v[0] : v[1]; });
  check("slct.u64.f32", u64, {u64, u64, Type::F32}, [](const Lane& v) { return f32(v[2]) >= 0 ? v[0] : v[1]; });
  check("mov.u32", u32, {u32}, [](const Lane& v) { return v[0]; });
  check("mov.b64", u64, {u64}, [](const Lane& v) { return v[0]; });
  check("mov.pred", Type::Pred, {Type::Pred}, [](const Lane& v) { return v[0]; });
}

TEST(Alu, ConstantsOf16BitsHaveNoBitsAbove) {
  const Operand least = integer(static_cast<uint64_t>(int64_t{-32768}));
  struct Case {
    const char* opcode;
    Type d;
    std::vector<Operand> operands;
    uint32_t want;
  };
  for (const Case& c : {Case{"setp.eq.s16", Type::Pred, {reg(0), reg(1), least}, 1},
                        Case{"setp.ne.b16", Type::Pred, {reg(0), least, reg(1)}, 0},
                        Case{"mov.b16", Type::B16, {reg(0), least}, 0x8000},
                        Case{"selp.b16", Type::B16, {reg(0), least, reg(1), reg(2)}, 0x8000},
                        Case{"or.b16", Type::B16, {reg(0), reg(1), least}, 0x8000}}) {
    Machine m;
    m.declare(0, c.d);
    m.declare(1, Type::B16);
    m.declare(2, Type::Pred);
    m.set(1, 0, 0x8000);
    m.set(2, 0, 1);
    ASSERT_EQ(m.run(statement(c.opcode, c.operands)), "");
    EXPECT_EQ(static_cast<uint32_t>(m.get(0, 0)), c.want) << c.opcode;
  }
}

TEST(Alu, MovPacksAndUnpacks) {
  struct Case {
    const char* opcode;
    Type whole, part;
    size_t count;
  };
  std::mt19937_64 random(3);
  for (const bool base : {false, true}) {
    use_base_alu(base);
    for (const Case& c : {Case{"mov.b16", Type::B16, Type::B8, 2}, Case{"mov.b32", Type::B32, Type::B16, 2},
                          Case{"mov.b32", Type::B32, Type::B8, 4}, Case{"mov.b64", Type::B64, Type::B32, 2},
                          Case{"mov.b64", Type::B64, Type::B16, 4}, Case{"mov.b128", Type::B128, Type::B64, 2},
                          Case{"mov.b128", Type::B128, Type::B32, 4}}) {
      const size_t width = 8 * ptx::size_of(c.part);
      const uint128 ones = (uint128{1} << width) - 1;
      Machine m;
      std::vector<Operand> sources, destinations;
      for (uint32_t i = 0; i < c.count; ++i) {
        m.declare(1 + i, c.part);
        m.declare(6 + i, c.part);
        sources.push_back(reg(1 + i));
        destinations.push_back(i == 1 ? sink() : reg(6 + i));
      }
      m.declare(0, c.whole);
      for (int l = 0; l < kWarpSize; ++l) {
        for (uint32_t i = 0; i < c.count; ++i) m.set(1 + i, l, random() & ones);
      }
      const LaneMask mask = 0xfffffff5;
      ASSERT_EQ(m.run(statement(c.opcode, {reg(0), group(Operand::Kind::Vector, sources)}), mask), "");
      ASSERT_EQ(m.run(statement(c.opcode, {group(Operand::Kind::Vector, destinations), reg(0)})), "");
      for (int l = 0; l < kWarpSize; ++l) {
        uint128 want = 0;
        for (uint32_t i = 0; i < c.count && (mask >> l & 1); ++i) want |= m.get(1 + i, l) << (width * i);
        EXPECT_TRUE(m.get(0, l) == want) << c.opcode << c.count;
        for (uint32_t i = 0; i < c.count; ++i) {
          EXPECT_TRUE(m.get(6 + i, l) == (i == 1 ? 0 : want >> (width * i) & ones)) << c.opcode << c.count;
        }
      }
    }
  }
  use_base_alu(false);
  // Halves into the register that they come from.
  Machine m;
  for (int l = 0; l < kWarpSize; ++l) m.set(1, l, 0xaaaa5555);
  ASSERT_EQ(m.run(statement("mov.b32", {group(Operand::Kind::Vector, {reg(1), reg(2)}), reg(1)})), "");
  EXPECT_EQ(static_cast<uint32_t>(m.get(1, 9)), 0x5555u);
  EXPECT_EQ(static_cast<uint32_t>(m.get(2, 9)), 0xaaaau);
}

TEST(Alu, CarryChainsAddLikeWideIntegers) {
  std::mt19937_64 random(5);
  for (const bool base : {false, true}) {
    use_base_alu(base);
    Machine m;
    for (uint32_t r = 0; r < 8; ++r) m.declare(r, Type::U64);
    for (int l = 0; l < kWarpSize; ++l) {
      for (uint32_t r = 2; r < 6; ++r) m.set(r, l, random() % 3 == 0 ? ~0ull : random());
    }
    const auto wide = [&](uint32_t r, int l) { return m.get(r + 1, l) << 64 | m.get(r, l); };
    ASSERT_EQ(m.run(statement("add.cc.u64", {reg(0), reg(2), reg(4)})), "");
    ASSERT_EQ(m.run(statement("addc.u64", {reg(1), reg(3), reg(5)})), "");
    for (int l = 0; l < kWarpSize; ++l) EXPECT_TRUE(wide(0, l) == wide(2, l) + wide(4, l)) << l;
    ASSERT_EQ(m.run(statement("sub.cc.u64", {reg(0), reg(2), reg(4)})), "");
    ASSERT_EQ(m.run(statement("subc.cc.u64", {reg(1), reg(3), reg(5)})), "");
    for (int l = 0; l < kWarpSize; ++l) EXPECT_TRUE(wide(0, l) == wide(2, l) - wide(4, l)) << l;
    // a * b + c in 128 bits: the low half's carry goes into the high half.
    ASSERT_EQ(m.run(statement("mad.lo.cc.u64", {reg(0), reg(2), reg(3), reg(4)})), "");
    ASSERT_EQ(m.run(statement("madc.hi.u64", {reg(1), reg(2), reg(3), reg(5)})), "");
    for (int l = 0; l < kWarpSize; ++l) EXPECT_TRUE(wide(0, l) == m.get(2, l) * m.get(3, l) + wide(4, l)) << l;
  }
  use_base_alu(false);
}

TEST(Alu, FnsCountsFromTheBase) {
  Machine m;
  const auto fns = [&](uint32_t mask, uint32_t base, int32_t offset) {
    m.set(1, 0, mask);
    m.set(2, 0, base);
    m.set(3, 0, static_cast<uint32_t>(offset));
    EXPECT_EQ(m.run(statement("fns.b32", {reg(0), reg(1), reg(2), reg(3)}), 1), "");
    return static_cast<uint32_t>(m.get(0, 0));
  };
  EXPECT_EQ(fns(0xaaaaaaaa, 3, 1), 3u);  // the examples of §9.7.1.17
  EXPECT_EQ(fns(0xaaaaaaaa, 3, -1), 3u);
  EXPECT_EQ(fns(0xaaaaaaaa, 2, 0), 0xffffffffu);
  EXPECT_EQ(fns(0xaaaaaaaa, 2, 1), 3u);
  EXPECT_EQ(fns(0xaaaaaaaa, 2, -1), 1u);
  EXPECT_EQ(fns(0xaaaaaaaa, 3, 2), 5u);
  EXPECT_EQ(fns(0, 0, 1), 0xffffffffu);
}

TEST(Alu, RefusesWhatPtxLacks) {
  Machine m;
  EXPECT_NE(m.run(statement("mul.wide.u64", {reg(0), reg(1), reg(2)})), "");
  EXPECT_NE(m.run(statement("setp.ltu.s32", {reg(0), reg(1), reg(2)})), "");
  EXPECT_NE(m.run(statement("setp.lt.b32", {reg(0), reg(1), reg(2)})), "");
  EXPECT_NE(m.run(statement("setp.lt.and.s32", {reg(0), reg(1), reg(2)})), "");
  const Operand pair = group(Operand::Kind::Pair, {reg(0), reg(1)});
  for (const char* opcode : {"lop3.and.b32", "lop3.or.b32"}) {
    EXPECT_NE(m.run(statement(opcode, {reg(0), reg(1), reg(2), reg(3), integer(8), reg(4)})), "") << opcode;
  }
  EXPECT_NE(m.run(statement("lop3.xor.b32", {pair, reg(1), reg(2), reg(3), integer(8), reg(4)})), "");
}

}  // namespace
}  // namespace handoff::machine
