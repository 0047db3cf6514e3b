// tcgen05.mma's arithmetic against sums in double and against a chain of std::fma, for both variants of the kernels.
#include "grader/emulator/async/mma_compute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

namespace handoff::async {
namespace {

using Swizzle = SmemDescriptor::Swizzle;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint32_t kCells = kTensorMemoryLanes * kTensorMemoryColumns;
constexpr uint32_t kUntouched = 0xdeadbeef;
constexpr uint32_t kSharedBytes = 227 * 1024;

// ---- Numbers: an own reading of the formats ----

double decode_float(uint32_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto mantissa = static_cast<double>(bits & ((1u << mantissa_bits) - 1));
  const int exponent = static_cast<int>(bits >> mantissa_bits & ((1u << exponent_bits) - 1));
  const double sign = (bits >> (exponent_bits + mantissa_bits) & 1u) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(1 + std::ldexp(mantissa, -mantissa_bits), exponent - bias);
}
/// Value of an element as stored: 16 bits, or 32 of which a tf32 has the upper 19.
double element_value(MmaType type, uint32_t bits) {
  switch (type) {
    case MmaType::F16:
      return decode_float(bits, 5, 10);
    case MmaType::Bf16:
      return decode_float(bits, 8, 7);
    default:
      return decode_float(bits >> 13, 8, 10);
  }
}
/// Bits of a small integer, exact in each type.
uint32_t element_bits_of(MmaType type, int value) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  switch (type) {
    case MmaType::F16:
      return value == 0 ? 0 : (bits >> 16 & 0x8000u) | (((bits >> 23 & 0xffu) - 112) << 10) | (bits >> 13 & 0x3ffu);
    case MmaType::Bf16:
      return bits >> 16;
    default:
      return bits;
  }
}
/// The f16 nearest to `value`, ties to even: found among the neighbours, by value.
uint16_t nearest_half(float value) {
  if (std::isnan(value)) return 0x7fff;
  const uint32_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::abs(static_cast<double>(value));
  if (magnitude >= 65520) return static_cast<uint16_t>(sign | 0x7c00);
  uint32_t low = 0, high = 0x7bff;
  while (low < high) {  // the largest f16 that is not above
    const uint32_t middle = (low + high + 1) / 2;
    if (decode_float(middle, 5, 10) <= magnitude) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  const double below = magnitude - decode_float(low, 5, 10);
  const double above = (low == 0x7bff ? 65536 : decode_float(low + 1, 5, 10)) - magnitude;
  if (above < below || (above == below && low % 2 != 0)) low++;
  return static_cast<uint16_t>(sign | low);
}

// ---- One instruction with all its memory ----

struct Setting {
  MmaKind kind = MmaKind::F16;
  MmaType a_type = MmaType::Bf16, b_type = MmaType::Bf16, d_type = MmaType::F32;
  uint32_t m = 128, n = 64;
  bool negate_a = false, negate_b = false;
  bool transpose_a = false, transpose_b = false;
  Swizzle a_swizzle = Swizzle::B128, b_swizzle = Swizzle::B128;
  bool a_in_tensor_memory = false;
  TensorMemoryAddress d = {0, 0};
  TensorMemoryAddress a = {0, 304};
  bool enable_input_d = false;
  uint8_t scale_input_d = 0;
  std::array<uint32_t, 4> disable_output_lane = {};
};

uint32_t type_code(MmaType type) { return type == MmaType::F16 ? 0 : type == MmaType::Bf16 ? 1 : 2; }
uint32_t instruction_bits(const Setting& s) {
  return (s.d_type == MmaType::F32 ? 1u << 4 : 0u) | type_code(s.a_type) << 7 | type_code(s.b_type) << 10 |
         uint32_t{s.negate_a} << 13 | uint32_t{s.negate_b} << 14 | uint32_t{s.transpose_a} << 15 |
         uint32_t{s.transpose_b} << 16 | s.n / 8 << 17 | s.m / 16 << 24;
}
/// Descriptor of a tile at `start` without gaps between its atoms.
SmemDescriptor tile_descriptor(uint32_t start, Swizzle swizzle, const MatrixOperand& operand) {
  const uint32_t line = swizzle == Swizzle::None  ? 16
                        : swizzle == Swizzle::B32 ? 32
                        : swizzle == Swizzle::B64 ? 64
                                                  : 128;
  const uint32_t atom = line * (swizzle == Swizzle::B128Atom32 ? 4 : 8);
  uint32_t lbo = 0, sbo = atom;
  if (operand.mn_major) {
    const uint32_t atoms_along_k = operand.k / (swizzle == Swizzle::B128Atom32 ? 4 : 8);
    lbo = atom * atoms_along_k;                         // from one strip along MN to the next
    if (swizzle == Swizzle::None) std::swap(lbo, sbo);  // SBO is along MN there
  } else if (swizzle == Swizzle::None) {
    lbo = operand.rows * 16;
  }
  return decode_smem_descriptor(start / 16 | uint64_t{lbo / 16} << 16 | uint64_t{sbo / 16} << 32 | uint64_t{1} << 46 |
                                static_cast<uint64_t>(swizzle) << 61);
}

class Instruction {
 public:
  explicit Instruction(const Setting& s) : setting(s), shared(kSharedBytes), tensor_memory(kCells, kUntouched) {
    op.instruction = decode_instruction_descriptor(s.kind, instruction_bits(s));
    MmaForm form;
    form.a_in_tensor_memory = s.a_in_tensor_memory;
    EXPECT_THAT(check_instruction_descriptor(op.instruction, form), IsEmpty());
    a_operand = operand_a(op.instruction, form);
    b_operand = operand_b(op.instruction, form);
    k = op.instruction.k();
    op.a = tile_descriptor(0x4000, s.a_swizzle, a_operand);
    op.b = tile_descriptor(0x10000, s.b_swizzle, b_operand);
    if (!s.a_in_tensor_memory) {
      EXPECT_THAT(check_smem_descriptor(op.a, a_operand), IsEmpty());
    }
    EXPECT_THAT(check_smem_descriptor(op.b, b_operand), IsEmpty());
    op.shared = shared.data();
    op.shared_bytes = kSharedBytes;
    op.a_in_tensor_memory = s.a_in_tensor_memory;
    op.a_tensor = s.a;
    op.d = s.d;
    op.enable_input_d = s.enable_input_d;
    op.scale_input_d = s.scale_input_d;
    op.disable_output_lane = s.disable_output_lane;
    a.resize(size_t{s.m} * k);
    b.resize(size_t{s.n} * k);
    d.assign(size_t{s.m} * s.n, kUntouched);
  }
  void fill(const std::function<uint32_t()>& a_bits, const std::function<uint32_t()>& b_bits) {
    for (uint32_t& v : a) v = a_bits();
    for (uint32_t& v : b) v = b_bits();
    for (uint32_t m = 0; m < setting.m; m++) {
      for (uint32_t i = 0; i < k; i++) put_a(m, i, a[m * k + i]);
    }
    for (uint32_t n = 0; n < setting.n; n++) {
      for (uint32_t i = 0; i < k; i++) {
        put_shared(operand_address(op.b, b_operand.mn_major, b_operand.element_bits, n, i), b[n * k + i]);
      }
    }
  }
  void fill_d(const std::function<uint32_t()>& bits) {
    for (uint32_t m = 0; m < setting.m; m++) {
      for (uint32_t n = 0; n < setting.n; n++) d[m * setting.n + n] = cell(m, n) = bits();
    }
  }
  /// Row by row what PTX §9.7.16.10.5 says: M = 128 one lane a row; M = 64 16 rows of each 32 lanes.
  uint32_t lane_of(uint32_t m, uint32_t first) const {
    return first + (setting.m == 128 ? m : m < 16 ? m : m < 32 ? m + 16 : m < 48 ? m + 32 : m + 48);
  }
  uint32_t& cell(uint32_t m, uint32_t n) {
    return tensor_memory[lane_of(m, setting.d.lane) * kTensorMemoryColumns + setting.d.column + n];
  }
  bool disabled(uint32_t m) const {
    const uint32_t lane = lane_of(m, setting.d.lane);
    return (setting.disable_output_lane[lane / 32] >> lane % 32 & 1u) != 0;
  }
  double a_value(uint32_t m, uint32_t i) const {
    return (setting.negate_a ? -1 : 1) * element_value(setting.a_type, a[m * k + i]);
  }
  double b_value(uint32_t n, uint32_t i) const {
    return (setting.negate_b ? -1 : 1) * element_value(setting.b_type, b[n * k + i]);
  }
  double d_value(uint32_t m, uint32_t n) const {
    const uint32_t bits = d[m * setting.n + n];
    return setting.d_type == MmaType::F16 ? decode_float(bits & 0xffffu, 5, 10) : decode_float(bits, 8, 23);
  }
  /// Tensor memory after the instruction.
  std::vector<uint32_t> run(bool base) {
    std::vector<uint32_t> after = tensor_memory;
    op.tensor_memory = after.data();
    use_base_mma(base);
    mma(op);
    use_base_mma(false);
    return after;
  }
  /// Tensor memory as it must be: `value` of each element of D that is written, all else unchanged.
  std::vector<uint32_t> expected(const std::function<uint32_t(uint32_t, uint32_t)>& value) {
    std::vector<uint32_t> cells = tensor_memory;
    for (uint32_t m = 0; m < setting.m; m++) {
      if (disabled(m)) continue;
      for (uint32_t n = 0; n < setting.n; n++)
        cells[static_cast<size_t>(&cell(m, n) - tensor_memory.data())] = value(m, n);
    }
    return cells;
  }
  /// The product as a chain of std::fma, rounded to the type of D.
  uint32_t chained(uint32_t m, uint32_t n) const {
    float sum = 0;
    if (setting.enable_input_d) sum = static_cast<float>(d_value(m, n)) * std::ldexp(1.0f, -setting.scale_input_d);
    for (uint32_t i = 0; i < k; i++) {
      sum = std::fma(static_cast<float>(a_value(m, i)), static_cast<float>(b_value(n, i)), sum);
    }
    if (setting.d_type == MmaType::F16) return nearest_half(sum);
    return std::isnan(sum) ? 0x7fffffffu : std::bit_cast<uint32_t>(sum);
  }

  Setting setting;
  MmaOperation op;
  MatrixOperand a_operand, b_operand;
  uint32_t k = 0;
  std::vector<uint32_t> a, b, d;  // bits: [m][k], [n][k], [m][n] before
  std::vector<std::byte> shared;
  std::vector<uint32_t> tensor_memory;

 private:
  void put_shared(uint32_t address, uint32_t bits) {
    std::memcpy(&shared[address], &bits, setting.kind == MmaKind::Tf32 ? 4 : 2);
  }
  void put_a(uint32_t m, uint32_t i, uint32_t bits) {
    if (!setting.a_in_tensor_memory) {
      put_shared(operand_address(op.a, a_operand.mn_major, a_operand.element_bits, m, i), bits);
      return;
    }
    const uint32_t lane = lane_of(m, setting.a.lane) * kTensorMemoryColumns + setting.a.column;
    if (setting.kind == MmaKind::Tf32) {
      tensor_memory[lane + i] = bits;
    } else {
      const uint32_t shift = i % 2 * 16;
      uint32_t& word = tensor_memory[lane + i / 2];
      word = (word & ~(0xffffu << shift)) | bits << shift;
    }
  }
};

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  uint32_t bits() { return static_cast<uint32_t>(engine_()); }
  int small() { return static_cast<int>(bits() % 17) - 8; }
  std::function<uint32_t()> small_integers(MmaType type) {
    return [this, type] { return element_bits_of(type, small()); };
  }
  /// Numbers with exponents near 0.
  std::function<uint32_t()> ordinary(MmaType type) {
    return [this, type] {
      const uint32_t r = bits();
      switch (type) {
        case MmaType::F16:
          return (r & 0x83ffu) | (13 + (r >> 16) % 4) << 10;
        case MmaType::Bf16:
          return (r & 0x807fu) | (125 + (r >> 16) % 4) << 7;
        default:
          return (r & 0x807fffffu) | (125 + (r >> 24) % 4) << 23;
      }
    };
  }
  /// Any bits, with more zeros and subnormal numbers than chance gives, and infinities and NaNs on request.
  std::function<uint32_t()> any(MmaType type, bool with_nan) {
    return [this, type, with_nan] {
      const uint32_t exponent = type == MmaType::F16 ? 0x7c00 : type == MmaType::Bf16 ? 0x7f80 : 0x7f800000;
      const uint32_t width = type == MmaType::F16 || type == MmaType::Bf16 ? 0xffff : 0xffffffff;
      for (;;) {
        uint32_t r = bits() & width;
        const uint32_t kind = bits() % 32;
        if (kind < 3) r &= ~exponent;
        if (with_nan && kind == 3 && bits() % 8 == 0) r |= exponent;  // few: they swallow whole rows
        if (with_nan || (r & exponent) != exponent) return r;
      }
    };
  }

 private:
  std::mt19937 engine_;
};

const bool kVariants[] = {false, true};

void expect_exact(const Setting& s, uint32_t seed) {
  Random random(seed);
  Instruction i(s);
  i.fill(random.small_integers(s.a_type), random.small_integers(s.b_type));
  const auto value = [&](uint32_t m, uint32_t n) {
    double sum = s.enable_input_d ? std::ldexp(i.d_value(m, n), -s.scale_input_d) : 0;
    for (uint32_t k = 0; k < i.k; k++) sum += i.a_value(m, k) * i.b_value(n, k);
    return s.d_type == MmaType::F16 ? uint32_t{nearest_half(static_cast<float>(sum))}
                                    : std::bit_cast<uint32_t>(static_cast<float>(sum));
  };
  if (s.enable_input_d) {
    i.fill_d([&] {
      const int v = random.small() * 16;  // divisible: D·2^-s stays exact in f16
      return s.d_type == MmaType::F16 ? element_bits_of(MmaType::F16, v) | 0xabcd0000u
                                      : std::bit_cast<uint32_t>(static_cast<float>(v));
    });
  }
  const std::vector<uint32_t> expected = i.expected(value);
  for (const bool base : kVariants) {
    const std::vector<uint32_t> after = i.run(base);
    for (uint32_t c = 0; c < kCells; c++) {
      ASSERT_EQ(after[c], expected[c]) << (base ? "base" : "best") << " variant, lane " << c / kTensorMemoryColumns
                                       << ", column " << c % kTensorMemoryColumns;
    }
  }
}

/// The three ways to read operands: type of A and B, with the kind.
struct Types {
  MmaKind kind;
  MmaType a, b;
};
const Types kTypes[] = {{MmaKind::F16, MmaType::F16, MmaType::F16},
                        {MmaKind::F16, MmaType::Bf16, MmaType::Bf16},
                        {MmaKind::F16, MmaType::F16, MmaType::Bf16},
                        {MmaKind::Tf32, MmaType::Tf32, MmaType::Tf32}};
Setting with_types(const Types& t) {
  Setting s;
  s.kind = t.kind;
  s.a_type = t.a;
  s.b_type = t.b;
  return s;
}

TEST(Mma, EveryShapeIsExactOnSmallIntegers) {
  for (const Types& types : kTypes) {
    for (const uint32_t m : {64u, 128u}) {
      for (uint32_t n = 8; n <= 256; n += 8) {
        SCOPED_TRACE(::testing::Message() << to_string(types.a) << ", M = " << m << ", N = " << n);
        Setting s = with_types(types);
        s.m = m;
        s.n = n;
        s.d.column = static_cast<uint16_t>(n % 3 * 8 + 1);
        expect_exact(s, m + n);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(Mma, EverySwizzleAndMajorIsExactOnSmallIntegers) {
  for (const Types& types : kTypes) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        for (const Swizzle a : {Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128, Swizzle::B128Atom32}) {
          for (const Swizzle b : {Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128, Swizzle::B128Atom32}) {
            const bool tf32 = types.kind == MmaKind::Tf32;
            if ((a == Swizzle::B128Atom32) != (tf32 && transpose_a)) continue;
            if ((b == Swizzle::B128Atom32) != (tf32 && transpose_b)) continue;
            SCOPED_TRACE(::testing::Message() << to_string(types.a) << ", A " << to_string(a) << transpose_a << ", B "
                                              << to_string(b) << transpose_b);
            Setting s = with_types(types);
            s.transpose_a = transpose_a;
            s.transpose_b = transpose_b;
            s.a_swizzle = a;
            s.b_swizzle = b;
            s.n = 136;
            expect_exact(s, 5);
            if (::testing::Test::HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST(Mma, OptionsAreExactOnSmallIntegers) {
  for (const Types& types : kTypes) {
    for (uint32_t options = 0; options < 64; options++) {
      Setting s = with_types(types);
      s.negate_a = (options & 1) != 0;
      s.negate_b = (options & 2) != 0;
      s.enable_input_d = (options & 4) != 0;
      if ((options & 8) != 0) s.scale_input_d = s.enable_input_d ? 3 : 15;
      if ((options & 16) != 0) s.disable_output_lane = {0x80000001, 0xffffffff, 0, 0x00f0ff00};
      if ((options & 32) != 0) {
        if (types.a != MmaType::F16 || types.b != MmaType::F16) continue;
        s.d_type = MmaType::F16;
      }
      SCOPED_TRACE(::testing::Message() << to_string(types.a) << ", options " << options);
      s.n = 40;
      s.d.column = 472;
      expect_exact(s, options);
      s.m = 64;
      s.d.lane = 16;
      expect_exact(s, options);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Mma, ReadsAFromTensorMemory) {
  for (const Types& types : kTypes) {
    for (const uint16_t lane : {0, 16}) {
      for (const uint32_t m : {64u, 128u}) {
        if (m == 128 && lane != 0) continue;
        Setting s = with_types(types);
        s.a_in_tensor_memory = true;
        s.m = m;
        s.n = 256;
        s.d = {lane, 32};
        s.a = {lane, 501};  // no multiple of 4: nothing asks for alignment
        SCOPED_TRACE(::testing::Message() << to_string(types.a) << ", M = " << m << ", lane " << lane);
        expect_exact(s, m + lane);
        s.negate_a = s.enable_input_d = true;
        s.a.column = 24;
        expect_exact(s, m + lane);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(Mma, AMayLieWhereDGoes) {
  Setting s;
  s.a_in_tensor_memory = true;
  s.a = s.d = {0, 64};
  expect_exact(s, 1);
}

TEST(Mma, RandomNumbersAreNearTheSumInDouble) {
  Random random(11);
  for (const Types& types : kTypes) {
    for (const uint32_t m : {64u, 128u}) {
      for (const bool accumulate : {false, true}) {
        Setting s = with_types(types);
        s.m = m;
        s.n = 248;
        s.enable_input_d = accumulate;
        Instruction i(s);
        i.fill(random.ordinary(s.a_type), random.ordinary(s.b_type));
        i.fill_d(random.ordinary(MmaType::F32));
        for (const bool base : kVariants) {
          const std::vector<uint32_t> after = i.run(base);
          for (uint32_t row = 0; row < m; row++) {
            for (uint32_t n = 0; n < s.n; n++) {
              double sum = accumulate ? i.d_value(row, n) : 0, magnitude = std::abs(sum);
              for (uint32_t k = 0; k < i.k; k++) {
                sum += i.a_value(row, k) * i.b_value(n, k);
                magnitude += std::abs(i.a_value(row, k) * i.b_value(n, k));
              }
              const auto at = static_cast<size_t>(&i.cell(row, n) - i.tensor_memory.data());
              ASSERT_NEAR(std::bit_cast<float>(after[at]), sum, 1e-6 * magnitude) << "row " << row << ", column " << n;
            }
          }
        }
      }
    }
  }
}

// Not only near: the bits of the chain that mma's contract names, on inputs where a rounding, a subnormal number, an
// overflow or a NaN would show any other way to compute it.
TEST(Mma, AnyBitsGiveTheChainOfFma) {
  Random random(13);
  for (const Types& types : kTypes) {
    for (uint32_t round = 0; round < 32; round++) {
      Setting s = with_types(types);
      s.m = round % 2 == 0 ? 128 : 64;
      s.n = 8 + random.bits() % 8 * 8;
      s.negate_a = random.bits() % 2 != 0;
      s.negate_b = random.bits() % 2 != 0;
      s.enable_input_d = random.bits() % 2 != 0;
      s.scale_input_d = static_cast<uint8_t>(random.bits() % 16);
      s.disable_output_lane = {0, random.bits(), 0, 0};
      if (types.a == MmaType::F16 && types.b == MmaType::F16 && round % 4 >= 2) s.d_type = MmaType::F16;
      Instruction i(s);
      const bool with_nan = round % 8 == 7;
      if (round < 16) {
        i.fill(random.any(s.a_type, with_nan), random.any(s.b_type, with_nan));
      } else {
        i.fill(random.ordinary(s.a_type), random.ordinary(s.b_type));
      }
      i.fill_d(s.d_type == MmaType::F16 ? random.any(MmaType::F16, with_nan) : random.any(MmaType::F32, with_nan));
      const std::vector<uint32_t> expected = i.expected([&](uint32_t m, uint32_t n) { return i.chained(m, n); });
      for (const bool base : kVariants) {
        const std::vector<uint32_t> after = i.run(base);
        for (uint32_t c = 0; c < kCells; c++) {
          ASSERT_EQ(after[c], expected[c])
              << (base ? "base" : "best") << " variant, " << to_string(types.a) << ", round " << round << ", lane "
              << c / kTensorMemoryColumns << ", column " << c % kTensorMemoryColumns;
        }
      }
    }
  }
}

// One product a sum, at, just above and just below the middle between two results: around 1, and in the subnormal
// range, where the product has more bits than a float there.
TEST(Mma, SumsNearAMiddleRoundOnce) {
  Setting s;
  s.a_type = s.b_type = MmaType::Bf16;
  s.enable_input_d = true;
  s.n = 256;
  Random random(17);
  for (const bool subnormal : {false, true}) {
    Instruction i(s);
    // |a| = 2^-24 or 2^-65, |b| = 1 or 2^-85, up to a few units in the last place.
    const uint32_t a_exponent = subnormal ? 127 - 65 : 127 - 24, b_exponent = subnormal ? 127 - 85 : 127;
    const auto near = [&](uint32_t exponent) {
      return (random.bits() & 0x8000u) + (exponent << 7) + random.bits() % 5 - 2;
    };
    uint32_t next = 0;
    i.fill([&] { return next++ % 16 == 3 ? near(a_exponent) : 0u; }, [&] { return near(b_exponent); });
    i.fill_d([&] { return (random.bits() & 0x80000003u) + (subnormal ? 0u : 0x3f800000u); });
    const std::vector<uint32_t> expected = i.expected([&](uint32_t m, uint32_t n) { return i.chained(m, n); });
    for (const bool base : kVariants) EXPECT_EQ(i.run(base), expected) << "subnormal " << subnormal;
  }
}

TEST(Mma, SubnormalNumbersCount) {
  Setting s;
  s.a_type = s.b_type = s.d_type = MmaType::F16;
  s.n = 8;
  Instruction i(s);
  i.fill([] { return 1u; }, [] { return element_bits_of(MmaType::F16, 1); });  // 16 times 2^-24
  for (const bool base : kVariants) EXPECT_EQ(i.run(base)[0], 16u);
}

TEST(Mma, Tf32IgnoresTheLow13Bits) {
  Setting s;
  s.kind = MmaKind::Tf32;
  s.a_type = s.b_type = MmaType::Tf32;
  s.n = 8;
  Instruction i(s);
  i.fill([] { return 0x3f801fffu; }, [] { return 0x40003fffu; });  // 1, and 2 + 2^-9
  for (const bool base : kVariants) EXPECT_EQ(std::bit_cast<float>(i.run(base)[0]), 8 * (2 + 0x1p-9f));
}

TEST(Mma, HalfDKeepsOneElementACellAndClearsTheRest) {
  Setting s;
  s.a_type = s.b_type = s.d_type = MmaType::F16;
  s.n = 8;
  s.enable_input_d = true;
  Instruction i(s);
  i.fill([] { return element_bits_of(MmaType::F16, 1); }, [] { return element_bits_of(MmaType::F16, 1); });
  i.fill_d([] { return 0xffff0000u | element_bits_of(MmaType::F16, 32); });
  for (const bool base : kVariants) EXPECT_EQ(i.run(base)[7], element_bits_of(MmaType::F16, 48));
}

TEST(Mma, OldDIsNotReadWithoutEnableInputD) {
  Setting s;
  s.n = 8;
  Instruction i(s);
  i.fill([] { return element_bits_of(MmaType::Bf16, 1); }, [] { return element_bits_of(MmaType::Bf16, 2); });
  i.fill_d([] { return 0x7fc00000u; });
  for (const bool base : kVariants) EXPECT_EQ(std::bit_cast<float>(i.run(base)[0]), 32.0f);
}

// ---- Places in tensor memory ----

InstructionDescriptor shape(uint32_t m, uint32_t n) {
  return decode_instruction_descriptor(MmaKind::F16, 1 << 4 | n / 8 << 17 | m / 16 << 24);
}
std::vector<std::vector<int>> numbers(const std::vector<TensorMemoryBlock>& blocks) {
  std::vector<std::vector<int>> list;
  for (const TensorMemoryBlock& b : blocks) list.push_back({b.lane, b.lanes, b.column, b.columns});
  return list;
}
using Rows = std::vector<std::vector<int>>;

TEST(TensorMemoryBlocks, FollowTheLayouts) {
  EXPECT_EQ(numbers(d_blocks(shape(128, 40), {0, 5})), (Rows{{0, 128, 5, 40}}));
  EXPECT_EQ(numbers(d_blocks(shape(64, 256), {16, 256})),
            (Rows{{16, 16, 256, 256}, {48, 16, 256, 256}, {80, 16, 256, 256}, {112, 16, 256, 256}}));
  EXPECT_EQ(numbers(d_blocks(shape(128, 64), {0, 5}, true)), (Rows{{0, 128, 5, 64}}));
  EXPECT_EQ(numbers(d_blocks(shape(64, 256), {0, 384}, true)), (Rows{{0, 128, 384, 128}}));
  EXPECT_EQ(numbers(d_blocks(shape(32, 256), {0, 1}, true)), (Rows{{0, 128, 1, 64}}));
  EXPECT_EQ(numbers(a_blocks(shape(64, 256), {0, 3})),
            (Rows{{0, 16, 3, 8}, {32, 16, 3, 8}, {64, 16, 3, 8}, {96, 16, 3, 8}}));
}

std::vector<std::string> check(uint32_t m, TensorMemoryAddress d, const TensorMemoryAddress* a = nullptr) {
  std::vector<std::string> texts;
  for (const DescriptorProblem& p : check_tensor_memory(shape(m, 256), d, a)) texts.push_back(p.text);
  return texts;
}

TEST(TensorMemoryAddresses, AreChecked) {
  const TensorMemoryAddress low = {0, 0}, high = {16, 504}, end = {0, 505};
  EXPECT_THAT(check(128, {0, 256}, &low), IsEmpty());
  EXPECT_THAT(check(64, {16, 0}, &high), IsEmpty());
  EXPECT_THAT(check(128, {16, 0}), ElementsAre("tensor memory address of D: lane = 16; M = 128 takes lane 0"));
  EXPECT_THAT(check(64, {8, 0}), ElementsAre("tensor memory address of D: lane = 8; M = 64 takes lane 0 or 16"));
  EXPECT_THAT(
      check(128, {0, 257}),
      ElementsAre("tensor memory address of D: column = 257; the 256 columns from there on end beyond the 512 of "
                  "tensor memory"));
  EXPECT_THAT(check(128, {0, 0}, &end),
              ElementsAre("tensor memory address of A: column = 505; the 8 columns from there on end beyond the 512 of "
                          "tensor memory"));
  EXPECT_THAT(check(64, {0, 0}, &high),
              ElementsAre("tensor memory address of A: lane = 16; D has lane 0, and both must have the same"));
}

}  // namespace
}  // namespace handoff::async
