// tcgen05.mma of the narrow kinds: f8f6f4, i8, mxf8f6f4, mxf4 and mxf4nvf4 against sums over the values of the
// formats, written down here once more, exact where the sums are exact.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <random>

#include "grader/emulator/async/mma_compute.h"
#include "grader/emulator/async/mma_formats.h"
#include "grader/emulator/async/mma_pair.h"

namespace handoff::async {
namespace {

using Swizzle = SmemDescriptor::Swizzle;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

constexpr uint32_t kCells = kTensorMemoryLanes * kTensorMemoryColumns;
constexpr uint32_t kUntouched = 0xdeadbeef;
constexpr uint32_t kSharedBytes = 227 * 1024;
constexpr MmaType kFloatTypes[] = {MmaType::E4m3, MmaType::E5m2, MmaType::E2m3, MmaType::E3m2, MmaType::E2m1};

uint32_t width_of(MmaType type) {
  return type == MmaType::E2m1 ? 4 : type == MmaType::E2m3 || type == MmaType::E3m2 ? 6 : 8;
}
/// Exponent bits, mantissa bits.
std::pair<int, int> fields_of(MmaType type) {
  return type == MmaType::E4m3   ? std::pair{4, 3}
         : type == MmaType::E5m2 ? std::pair{5, 2}
         : type == MmaType::E2m3 ? std::pair{2, 3}
         : type == MmaType::E3m2 ? std::pair{3, 2}
                                 : std::pair{2, 1};
}
double computed_value(MmaType type, uint32_t code) {
  if (type == MmaType::U8) return code;
  if (type == MmaType::S8) return code < 128 ? static_cast<int>(code) : static_cast<int>(code) - 256;
  const auto [exponent_bits, mantissa_bits] = fields_of(type);
  const uint32_t magnitude = code & ((1u << (exponent_bits + mantissa_bits)) - 1);
  const double sign = magnitude == code ? 1 : -1;
  if (type == MmaType::E4m3 && magnitude == 0x7f) return std::numeric_limits<double>::quiet_NaN();
  if (type == MmaType::E5m2 && magnitude > 0x7c) return std::numeric_limits<double>::quiet_NaN();
  if (type == MmaType::E5m2 && magnitude == 0x7c) return sign * std::numeric_limits<double>::infinity();
  // Counting up from zero: the step doubles where the exponent field does not stay at 1 or below.
  double value = 0;
  for (uint32_t c = 0; c < magnitude; c++) {
    const int exponent = std::max(1, static_cast<int>(c >> mantissa_bits));
    value += std::ldexp(1, exponent - ((1 << (exponent_bits - 1)) - 1) - mantissa_bits);
  }
  return sign * value;
}

double value_of(MmaType type, uint32_t code) {
  static const std::map<MmaType, std::vector<double>> kValues = [] {
    std::map<MmaType, std::vector<double>> values;
    for (const MmaType t :
         {MmaType::E4m3, MmaType::E5m2, MmaType::E2m3, MmaType::E3m2, MmaType::E2m1, MmaType::U8, MmaType::S8}) {
      for (uint32_t c = 0; c < 1u << width_of(t); c++) values[t].push_back(computed_value(t, c));
    }
    return values;
  }();
  return kValues.at(type)[code];
}

TEST(NarrowFormats, AreThoseOfTheSpecification) {
  for (const MmaType type : kFloatTypes) {
    for (uint32_t code = 0; code < 1u << width_of(type); code++) {
      const double expected = value_of(type, code);
      const float is = narrow_value(type, code);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(is)) << to_string(type) << " " << code;
      } else {
        EXPECT_EQ(is, expected) << to_string(type) << " " << code;
        EXPECT_EQ(std::signbit(is), std::signbit(expected)) << to_string(type) << " " << code;
      }
    }
  }
  const auto all = [](MmaType type, uint32_t codes) {
    std::vector<float> values;
    for (uint32_t code = 0; code < codes; code++) values.push_back(narrow_value(type, code));
    return values;
  };
  EXPECT_THAT(all(MmaType::E2m1, 16),
              ElementsAre(0.f, .5f, 1.f, 1.5f, 2.f, 3.f, 4.f, 6.f, -0.f, -.5f, -1.f, -1.5f, -2.f, -3.f, -4.f, -6.f));
  // Least subnormal, least normal and largest number.
  EXPECT_EQ(narrow_value(MmaType::E4m3, 0x01), 0x1p-9f);
  EXPECT_EQ(narrow_value(MmaType::E4m3, 0x08), 0x1p-6f);
  EXPECT_EQ(narrow_value(MmaType::E4m3, 0x7e), 448.0f);
  EXPECT_EQ(narrow_value(MmaType::E5m2, 0x01), 0x1p-16f);
  EXPECT_EQ(narrow_value(MmaType::E5m2, 0x04), 0x1p-14f);
  EXPECT_EQ(narrow_value(MmaType::E5m2, 0x7b), 57344.0f);
  EXPECT_EQ(narrow_value(MmaType::E5m2, 0xfc), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(narrow_value(MmaType::E2m3, 0x01), 0.125f);
  EXPECT_EQ(narrow_value(MmaType::E2m3, 0x1f), 7.5f);
  EXPECT_EQ(narrow_value(MmaType::E3m2, 0x01), 0.0625f);
  EXPECT_EQ(narrow_value(MmaType::E3m2, 0x3f), -28.0f);
  EXPECT_EQ(narrow_value(MmaType::U8, 0xff), 255.0f);
  EXPECT_EQ(narrow_value(MmaType::S8, 0x80), -128.0f);
  // Padding above a narrow code does not count.
  EXPECT_EQ(narrow_value(MmaType::E2m1, 0xf7), 6.0f);
  EXPECT_EQ(narrow_value(MmaType::E3m2, 0xdf), 28.0f);
}

TEST(NarrowFormats, ScaleFactors) {
  for (uint32_t code = 0; code < 255; code++)
    EXPECT_EQ(scale_value(true, static_cast<uint8_t>(code)), std::ldexp(1.0, static_cast<int>(code) - 127));
  EXPECT_TRUE(std::isnan(scale_value(true, 255)));
  for (uint32_t code = 0; code < 127; code++) {
    EXPECT_EQ(scale_value(false, static_cast<uint8_t>(code)), value_of(MmaType::E4m3, code));
    EXPECT_EQ(scale_value(false, static_cast<uint8_t>(code | 0x80)), value_of(MmaType::E4m3, code)) << "no sign";
  }
  EXPECT_TRUE(std::isnan(scale_value(false, 0x7f)));
}

// ---- One instruction with all its memory ----

struct Setting {
  MmaKind kind = MmaKind::F8F6F4;
  MmaType a_type = MmaType::E4m3, b_type = MmaType::E4m3, d_type = MmaType::F32;
  uint32_t m = 128, n = 64;
  bool negate_a = false, negate_b = false, transpose_a = false, transpose_b = false, saturate = false;
  Swizzle a_swizzle = Swizzle::B128, b_swizzle = Swizzle::B128;
  bool a_in_tensor_memory = false;
  bool enable_input_d = false;
  std::array<uint32_t, 4> disable_output_lane = {};
  uint8_t scale_factors = 0;
  bool ue8m0 = true;
  uint32_t scale_a_id = 0, scale_b_id = 0;
};
bool packed(MmaKind kind) { return kind == MmaKind::Mxf4 || kind == MmaKind::Mxf4nvf4; }

uint32_t code_of(const Setting& s, MmaType type) {
  if (packed(s.kind)) return 1;
  switch (type) {
    case MmaType::E5m2:
    case MmaType::S8:
      return 1;
    case MmaType::E2m3:
      return 3;
    case MmaType::E3m2:
      return 4;
    case MmaType::E2m1:
      return 5;
    default:
      return 0;
  }
}
uint32_t instruction_bits(const Setting& s) {
  const uint32_t common = code_of(s, s.a_type) << 7 | code_of(s, s.b_type) << 10 | uint32_t{s.negate_a} << 13 |
                          uint32_t{s.negate_b} << 14 | uint32_t{s.transpose_a} << 15 | uint32_t{s.transpose_b} << 16 |
                          s.n / 8 << 17;
  if (is_block_scaled(s.kind))
    return common | s.scale_b_id << 4 | uint32_t{s.ue8m0} << 23 | s.m / 128 << 27 | s.scale_a_id << 29;
  const uint32_t d = s.d_type == MmaType::F32 ? 1 : s.d_type == MmaType::S32 ? 2 : 0;
  return common | d << 4 | uint32_t{s.saturate} << 3 | s.m / 16 << 24;
}
/// Descriptor of a tile at `start` without gaps between its atoms.
SmemDescriptor tile_descriptor(uint32_t start, Swizzle swizzle, const MatrixOperand& operand) {
  const uint32_t line = swizzle == Swizzle::None  ? 16
                        : swizzle == Swizzle::B32 ? 32
                        : swizzle == Swizzle::B64 ? 64
                                                  : 128;
  const uint32_t atom = 8 * line;
  uint32_t lbo = 0, sbo = atom;
  if (operand.mn_major) {
    lbo = atom * (operand.k / 8);
    if (swizzle == Swizzle::None) std::swap(lbo, sbo);
  } else if (swizzle == Swizzle::None) {
    lbo = operand.rows * 16;
  }
  return decode_smem_descriptor(start / 16 | uint64_t{lbo / 16} << 16 | uint64_t{sbo / 16} << 32 | uint64_t{1} << 46 |
                                static_cast<uint64_t>(swizzle) << 61);
}

class Instruction {
 public:
  explicit Instruction(const Setting& s) : setting(s), shared(kSharedBytes), tensor_memory(kCells, kUntouched) {
    std::mt19937 noise(1);  // what padding holds must not matter
    for (std::byte& b : shared) b = static_cast<std::byte>(noise());
    op.instruction = decode_instruction_descriptor(s.kind, instruction_bits(s));
    MmaForm form;
    form.a_in_tensor_memory = s.a_in_tensor_memory;
    form.scale_factors = s.scale_factors;
    for (const DescriptorProblem& p : check_instruction_descriptor(op.instruction, form))
      EXPECT_TRUE(p.advisory) << p.text;
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
    op.a_tensor = {0, 301};
    op.d = {0, 3};
    op.enable_input_d = s.enable_input_d;
    op.disable_output_lane = s.disable_output_lane;
    op.scale_factors = s.scale_factors;
    op.scale_a = {0, 401};
    op.scale_b = {0, 407};
    if (s.scale_factors != 0) {
      EXPECT_THAT(check_scale_factors(op.instruction, op.scale_a, op.scale_b), IsEmpty());
    }
    a.resize(size_t{s.m} * k);
    b.resize(size_t{s.n} * k);
    a_scale.assign(size_t{s.m} * s.scale_factors, 0);
    b_scale.assign(size_t{s.n} * s.scale_factors, 0);
  }
  void fill(const std::function<uint32_t()>& a_code, const std::function<uint32_t()>& b_code) {
    for (uint32_t m = 0; m < setting.m; m++) {
      for (uint32_t i = 0; i < k; i++) {
        a[m * k + i] = a_code();
        if (setting.a_in_tensor_memory) {
          put_in_tensor_memory(m, i, a[m * k + i]);
        } else {
          put_shared(op.a, a_operand, m, i, a[m * k + i]);
        }
      }
    }
    for (uint32_t n = 0; n < setting.n; n++) {
      for (uint32_t i = 0; i < k; i++) put_shared(op.b, b_operand, n, i, b[n * k + i] = b_code());
    }
  }
  void fill_d(const std::function<uint32_t()>& bits) {
    for (uint32_t m = 0; m < setting.m; m++) {
      for (uint32_t n = 0; n < setting.n; n++) cell(m, n) = bits();
    }
  }
  /// `quarters`: bit q: the copy in lanes 32q … 32q + 31 is written.
  void fill_scales(const std::function<uint32_t()>& code, uint32_t quarters = 0xf) {
    const auto put = [&](std::vector<uint32_t>& scales, uint32_t rows, uint32_t column, uint32_t id) {
      for (uint32_t r = 0; r < rows; r++) {
        for (uint32_t s = 0; s < setting.scale_factors; s++) {
          const uint32_t c = scales[r * setting.scale_factors + s] = code(), shift = 8 * (id + s);
          for (uint32_t q = 0; q < 4; q++) {
            if ((quarters >> q & 1) == 0) continue;
            uint32_t& word = tensor_memory[(32 * q + r % 32) * kTensorMemoryColumns + column + r / 32];
            word = (word & ~(0xffu << shift)) | c << shift;
          }
        }
      }
    };
    put(a_scale, setting.m, op.scale_a.column, setting.scale_a_id);
    put(b_scale, setting.n, op.scale_b.column, setting.scale_b_id);
  }
  /// PTX §9.7.16.10.5: M = 128 one lane a row; M = 64 16 rows of each 32 lanes.
  uint32_t lane_of(uint32_t m) const { return setting.m == 128 ? m : m / 16 * 32 + m % 16; }
  uint32_t& cell(uint32_t m, uint32_t n) { return tensor_memory[lane_of(m) * kTensorMemoryColumns + op.d.column + n]; }
  double a_value(uint32_t m, uint32_t i) const {
    return (setting.negate_a ? -1 : 1) * value_of(setting.a_type, a[m * k + i]);
  }
  double b_value(uint32_t n, uint32_t i) const {
    return (setting.negate_b ? -1 : 1) * value_of(setting.b_type, b[n * k + i]);
  }
  double scale_of(const std::vector<uint32_t>& scales, uint32_t row, uint32_t i) const {
    if (setting.scale_factors == 0) return 1;
    const uint32_t code = scales[row * setting.scale_factors + i * setting.scale_factors / k];
    if (!setting.ue8m0) return value_of(MmaType::E4m3, code);
    return code == 255 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1, static_cast<int>(code) - 127);
  }
  std::vector<uint32_t> run(bool base) {
    std::vector<uint32_t> after = tensor_memory;
    op.tensor_memory = after.data();
    use_base_mma(base);
    mma(op);
    use_base_mma(false);
    return after;
  }
  /// Both variants leave `value` in each element of D that is written, and nothing else changed.
  void expect(const std::function<uint32_t(uint32_t, uint32_t)>& value) {
    std::vector<uint32_t> expected = tensor_memory;
    scale();
    for (uint32_t m = 0; m < setting.m; m++) {
      if ((setting.disable_output_lane[lane_of(m) / 32] >> lane_of(m) % 32 & 1u) != 0) continue;
      for (uint32_t n = 0; n < setting.n; n++)
        expected[static_cast<size_t>(&cell(m, n) - tensor_memory.data())] = value(m, n);
    }
    for (const bool base : {false, true}) {
      const std::vector<uint32_t> after = run(base);
      for (uint32_t c = 0; c < kCells; c++) {
        ASSERT_EQ(after[c], expected[c]) << (base ? "base" : "best") << " variant, lane " << c / kTensorMemoryColumns
                                         << ", column " << c % kTensorMemoryColumns;
      }
    }
  }
  /// The elements with their factors.
  void scale() {
    scaled_a.resize(a.size());
    scaled_b.resize(b.size());
    for (uint32_t m = 0; m < setting.m; m++) {
      for (uint32_t i = 0; i < k; i++) scaled_a[m * k + i] = a_value(m, i) * scale_of(a_scale, m, i);
    }
    for (uint32_t n = 0; n < setting.n; n++) {
      for (uint32_t i = 0; i < k; i++) scaled_b[n * k + i] = b_value(n, i) * scale_of(b_scale, n, i);
    }
  }
  /// The sum of products and, with enable-input-d, `d`; after scale().
  double sum(uint32_t m, uint32_t n, double d) const {
    double total = setting.enable_input_d ? d : 0;
    for (uint32_t i = 0; i < k; i++) total += scaled_a[m * k + i] * scaled_b[n * k + i];
    return total;
  }
  /// The same as a chain of roundings to binary32.
  uint32_t chained(uint32_t m, uint32_t n, float d) const {
    float total = setting.enable_input_d ? d : 0;
    for (uint32_t i = 0; i < k; i++) {
      total = static_cast<float>(scaled_a[m * k + i] * scaled_b[n * k + i] + static_cast<double>(total));
    }
    return std::isnan(total) ? 0x7fffffffu : std::bit_cast<uint32_t>(total);
  }

  Setting setting;
  MmaOperation op;
  MatrixOperand a_operand, b_operand;
  uint32_t k = 0;
  std::vector<uint32_t> a, b;              // codes: [m][k], [n][k]
  std::vector<uint32_t> a_scale, b_scale;  // codes: [row][factor]
  std::vector<double> scaled_a, scaled_b;  // values, by scale()
  std::vector<std::byte> shared;
  std::vector<uint32_t> tensor_memory;

 private:
  void put_bits(uint32_t unit, uint32_t bit, uint32_t width, uint32_t code) {
    for (uint32_t i = 0; i < width; i++) {
      std::byte& byte = shared[unit + (bit + i) / 8];
      const auto mask = static_cast<std::byte>(1u << (bit + i) % 8);
      byte = (code >> i & 1) != 0 ? byte | mask : byte & ~mask;
    }
  }
  /// 4- and 6-bit elements stand side by side in 16 bytes, of f8f6f4 and mxf8f6f4 16 of them, padding behind.
  void put_shared(const SmemDescriptor& d, const MatrixOperand& operand, uint32_t row, uint32_t i, uint32_t code) {
    const uint32_t per_unit = packed(setting.kind) ? 32 : 16;
    const uint32_t along = operand.mn_major ? row : i, first = along / per_unit * per_unit;
    const uint32_t unit = operand_address(d, operand.mn_major, operand.element_bits, operand.mn_major ? first : row,
                                          operand.mn_major ? i : first);
    const uint32_t width = width_of(operand.type);
    put_bits(unit, along % per_unit * width, width, code);
  }
  void put_in_tensor_memory(uint32_t m, uint32_t i, uint32_t code) {
    const uint32_t bits = packed(setting.kind) ? 4 : 8;
    uint32_t& word = tensor_memory[lane_of(m) * kTensorMemoryColumns + op.a_tensor.column + i * bits / 32];
    const uint32_t shift = i * bits % 32;
    // PTX §9.7.14.5: e2m1 in the middle of its byte, 6 bits at the bottom; what is around does not count.
    const uint32_t in_byte = bits == 8 && setting.a_type == MmaType::E2m1 ? code << 2 | 0xc3
                             : width_of(setting.a_type) == 6              ? code | 0x80
                                                                          : code;
    word = (word & ~(((1u << bits) - 1) << shift)) | in_byte << shift;
  }
};

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  uint32_t bits() { return static_cast<uint32_t>(engine_()); }
  /// Codes of multiples of 1/2 up to 4, so that sums of products are exact; of integers any.
  std::function<uint32_t()> small(MmaType type) {
    std::vector<uint32_t> codes;
    for (uint32_t code = 0; code < 1u << width_of(type); code++) {
      const double v = value_of(type, code);
      const bool integer = type == MmaType::U8 || type == MmaType::S8;
      if (integer || (std::abs(v) <= 4 && v * 2 == std::floor(v * 2))) codes.push_back(code);
    }
    return [this, codes] { return codes[bits() % codes.size()]; };
  }
  std::function<uint32_t()> any(MmaType type) {
    return [this, type] { return bits() & ((1u << width_of(type)) - 1); };
  }
  /// 1/2, 1 and 2; of ue4m3 also 1.5.
  std::function<uint32_t()> small_scales(bool ue8m0) {
    return [this, ue8m0] { return ue8m0 ? 126 + bits() % 3 : 0x30u + bits() % 4 * 4; };
  }

 private:
  std::mt19937 engine_;
};

uint32_t half_bits(double value) {  // of multiples of 1/4 below 512, which an f16 holds
  if (value == 0) return 0;
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  return (bits >> 16 & 0x8000u) | ((bits >> 23 & 0xffu) - 112) << 10 | (bits >> 13 & 0x3ffu);
}

void expect_exact(const Setting& s, uint32_t seed) {
  Random random(seed);
  Instruction i(s);
  i.fill(random.small(s.a_type), random.small(s.b_type));
  if (s.scale_factors != 0) i.fill_scales(random.small_scales(s.ue8m0));
  std::vector<int> d(size_t{s.m} * s.n);
  for (int& v : d) v = static_cast<int>(random.bits() % 17) - 8;
  if (s.enable_input_d) {
    size_t next = 0;
    i.fill_d([&] {
      const int v = d[next++];
      return s.d_type == MmaType::S32   ? static_cast<uint32_t>(v)
             : s.d_type == MmaType::F16 ? half_bits(v) | 0xabcd0000u
                                        : std::bit_cast<uint32_t>(static_cast<float>(v));
    });
  }
  i.expect([&](uint32_t m, uint32_t n) {
    const double sum = i.sum(m, n, d[m * s.n + n]);
    return s.d_type == MmaType::S32   ? static_cast<uint32_t>(static_cast<int64_t>(sum))
           : s.d_type == MmaType::F16 ? half_bits(sum)
                                      : std::bit_cast<uint32_t>(static_cast<float>(sum));
  });
}

Setting of_types(MmaType a, MmaType b) {
  Setting s;
  s.a_type = a;
  s.b_type = b;
  if (a == MmaType::U8 || a == MmaType::S8) {
    s.kind = MmaKind::I8;
    s.d_type = MmaType::S32;
  }
  return s;
}

TEST(NarrowMma, EveryPairOfTypesIsExact) {
  uint32_t seed = 0;
  const auto check = [&](MmaType a, MmaType b) {
    for (const MmaType d : {MmaType::F32, MmaType::F16}) {
      for (const bool a_in_tensor_memory : {false, true}) {
        for (const uint32_t m : {64u, 128u}) {
          Setting s = of_types(a, b);
          if (s.kind == MmaKind::I8 && d == MmaType::F16) continue;
          if (s.kind != MmaKind::I8) s.d_type = d;
          s.a_in_tensor_memory = a_in_tensor_memory;
          s.enable_input_d = m == 64;
          s.m = m;
          SCOPED_TRACE(::testing::Message() << to_string(a) << ", " << to_string(b) << ", D " << to_string(s.d_type)
                                            << ", M = " << m << ", A in tensor memory " << a_in_tensor_memory);
          expect_exact(s, ++seed);
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
    }
  };
  for (const MmaType a : kFloatTypes) {
    for (const MmaType b : kFloatTypes) check(a, b);
  }
  for (const MmaType a : {MmaType::U8, MmaType::S8}) {
    for (const MmaType b : {MmaType::U8, MmaType::S8}) check(a, b);
  }
}

TEST(NarrowMma, EveryShapeSwizzleAndMajorIsExact) {
  const std::pair<MmaType, MmaType> types[] = {{MmaType::E4m3, MmaType::E2m1}, {MmaType::U8, MmaType::S8}};
  for (const auto& [a, b] : types) {
    for (uint32_t n = 8; n <= 256; n += n < 32 ? 8 : 16) {
      SCOPED_TRACE(::testing::Message() << to_string(a) << ", N = " << n);
      Setting s = of_types(a, b);
      s.n = n;
      expect_exact(s, n);
      if (::testing::Test::HasFatalFailure()) return;
    }
    for (uint32_t options = 0; options < 64; options++) {
      const Swizzle swizzles[] = {Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128};
      Setting s = of_types(a, b);
      s.a_swizzle = swizzles[options % 4];
      s.b_swizzle = swizzles[options / 4 % 4];
      s.transpose_a = (options & 16) != 0;
      s.transpose_b = (options & 32) != 0;
      s.n = 144;
      SCOPED_TRACE(::testing::Message() << to_string(a) << ", options " << options);
      expect_exact(s, options);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(NarrowMma, OptionsAreExact) {
  for (uint32_t options = 0; options < 16; options++) {
    Setting s = of_types(MmaType::E3m2, MmaType::E5m2);
    s.negate_a = (options & 1) != 0;
    s.negate_b = (options & 2) != 0;
    s.enable_input_d = (options & 4) != 0;
    if ((options & 8) != 0) s.disable_output_lane = {0x80000001, 0xffffffff, 0, 0x00f0ff00};
    SCOPED_TRACE(options);
    expect_exact(s, options);
    s.m = 64;
    expect_exact(s, options);
  }
}

TEST(NarrowMma, AnyCodesGiveTheChainOfFma) {
  Random random(3);
  for (const MmaType a : kFloatTypes) {
    for (const MmaType b : kFloatTypes) {
      Setting s = of_types(a, b);
      s.enable_input_d = random.bits() % 2 != 0;
      s.negate_a = random.bits() % 2 != 0;
      Instruction i(s);
      // Of NaNs and infinities a few only: they swallow whole rows.
      const auto some = [&](MmaType type) {
        return [&random, type, code = random.any(type)] {
          uint32_t c = code();
          while (!std::isfinite(value_of(type, c)) && random.bits() % 16 != 0) c = code();
          return c;
        };
      };
      i.fill(some(a), some(b));
      i.fill_d([&] { return (random.bits() & 0x807fffffu) | (120 + random.bits() % 16) << 23; });
      SCOPED_TRACE(::testing::Message() << to_string(a) << ", " << to_string(b));
      i.expect([&](uint32_t m, uint32_t n) { return i.chained(m, n, std::bit_cast<float>(i.cell(m, n))); });
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(IntegerMma, SaturatesOrWraps) {
  for (const bool saturate : {false, true}) {
    Setting s = of_types(MmaType::S8, MmaType::S8);
    s.saturate = saturate;
    s.enable_input_d = true;
    Random random(7);
    Instruction i(s);
    i.fill(random.any(MmaType::S8), random.any(MmaType::S8));
    // Near either end of the range, and anywhere.
    i.fill_d([&] {
      const uint32_t r = random.bits(), near = r >> 4 & 0xffff;
      return r % 4 == 0 ? 0x7fffffffu - near : r % 4 == 1 ? 0x80000000u + near : random.bits();
    });
    uint32_t beyond = 0;
    i.expect([&](uint32_t m, uint32_t n) {
      int64_t sum = static_cast<int32_t>(i.cell(m, n));
      for (uint32_t k = 0; k < i.k; k++)
        sum += static_cast<int64_t>(i.a_value(m, k)) * static_cast<int64_t>(i.b_value(n, k));
      const int64_t clamped = std::min<int64_t>(std::max<int64_t>(sum, -2147483648LL), 2147483647);
      beyond += clamped != sum ? 1 : 0;
      return static_cast<uint32_t>(saturate ? clamped : sum);
    });
    EXPECT_GT(beyond, 500u);
  }
}

TEST(IntegerMma, TheLargestSumsAreExact) {
  Setting s = of_types(MmaType::U8, MmaType::U8);
  Instruction i(s);
  i.fill([] { return 255u; }, [] { return 255u; });
  i.expect([](uint32_t, uint32_t) { return 32u * 255 * 255; });
}

// ---- Block scaling ----

struct Scaling {
  MmaKind kind;
  uint8_t factors;
  bool ue8m0;
  std::vector<uint32_t> ids;
};
const Scaling kScalings[] = {{MmaKind::Mxf8f6f4, 1, true, {0, 1, 2, 3}},
                             {MmaKind::Mxf4, 2, true, {0, 2}},
                             {MmaKind::Mxf4nvf4, 2, true, {0, 2}},
                             {MmaKind::Mxf4nvf4, 4, true, {0}},
                             {MmaKind::Mxf4nvf4, 4, false, {0}}};
Setting of_scaling(const Scaling& scaling) {
  Setting s;
  s.kind = scaling.kind;
  s.scale_factors = scaling.factors;
  s.ue8m0 = scaling.ue8m0;
  if (packed(s.kind)) s.a_type = s.b_type = MmaType::E2m1;
  return s;
}

TEST(ScaledMma, EveryKindAndEveryPlaceOfTheFactorsIsExact) {
  for (const Scaling& scaling : kScalings) {
    for (const uint32_t a_id : scaling.ids) {
      for (const uint32_t b_id : scaling.ids) {
        for (const bool a_in_tensor_memory : {false, true}) {
          Setting s = of_scaling(scaling);
          s.scale_a_id = a_id;
          s.scale_b_id = b_id;
          s.a_in_tensor_memory = a_in_tensor_memory;
          s.enable_input_d = a_id == 0;
          s.negate_b = b_id == 0;
          s.n = 152;  // the last column of factors is not full
          SCOPED_TRACE(::testing::Message() << to_string(s.kind) << ", " << int{s.scale_factors} << " factors, ids "
                                            << a_id << ", " << b_id << ", A in tensor memory " << a_in_tensor_memory);
          expect_exact(s, a_id * 4 + b_id);
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(ScaledMma, EveryPairOfTypesIsExact) {
  uint32_t seed = 0;
  for (const MmaType a : kFloatTypes) {
    for (const MmaType b : kFloatTypes) {
      Setting s = of_scaling(kScalings[0]);
      s.a_type = a;
      s.b_type = b;
      s.n = 40;
      SCOPED_TRACE(::testing::Message() << to_string(a) << ", " << to_string(b));
      expect_exact(s, ++seed);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(ScaledMma, EveryShapeAndSwizzleIsExact) {
  for (const Scaling& scaling : kScalings) {
    for (uint32_t n = 8; n <= 256; n += 8) {
      const Swizzle swizzles[] = {Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128};
      Setting s = of_scaling(scaling);
      s.n = n;
      s.a_swizzle = swizzles[n / 8 % 4];
      s.b_swizzle = swizzles[n / 32 % 4];
      SCOPED_TRACE(::testing::Message() << to_string(s.kind) << ", N = " << n);
      expect_exact(s, n);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

// Scaled elements far outside of binary32 whose products are inside, NaN factors, subnormal results.
TEST(ScaledMma, AnyFactorsGiveTheChainOfFma) {
  Random random(5);
  for (const Scaling& scaling : kScalings) {
    for (const bool wide : {false, true}) {
      Setting s = of_scaling(scaling);
      s.enable_input_d = wide;
      s.n = 64;
      Instruction i(s);
      i.fill(random.any(s.a_type), random.any(s.b_type));
      // Of A large and of B small, or the other way round, since the sum of exponents must stay in range.
      uint32_t next = 0;
      i.fill_scales([&]() -> uint32_t {
        if (!s.ue8m0) return random.bits() % 128;
        const bool of_a = next++ < s.m * s.scale_factors;
        if (random.bits() % 256 == 0) return 255;
        return wide ? (of_a ? 240 + random.bits() % 15 : random.bits() % 20) : random.bits() % 250;
      });
      i.fill_d([&] { return (random.bits() & 0x807fffffu) | (120 + random.bits() % 16) << 23; });
      SCOPED_TRACE(::testing::Message() << to_string(s.kind) << ", wide " << wide);
      i.expect([&](uint32_t m, uint32_t n) { return i.chained(m, n, std::bit_cast<float>(i.cell(m, n))); });
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

// PTX §9.7.16.10.7: the factors must be there in all four quarters of the lanes.
TEST(ScaledMma, AQuarterWithoutItsCopyOfTheFactorsShows) {
  Setting s = of_scaling(kScalings[0]);
  Random random(9);
  Instruction i(s);
  i.fill([] { return 0x38u; }, [] { return 0x38u; });  // 1
  std::fill(i.tensor_memory.begin(), i.tensor_memory.end(), 0xffffffffu);
  i.fill_scales([] { return 127u; }, 0xb);
  for (const bool base : {false, true}) {
    const std::vector<uint32_t> after = i.run(base);
    const auto d = [&](uint32_t m) { return std::bit_cast<float>(after[m * kTensorMemoryColumns + i.op.d.column]); };
    EXPECT_EQ(d(0), 32.0f);
    EXPECT_EQ(d(63), 32.0f);
    EXPECT_TRUE(std::isnan(d(64)));
    EXPECT_TRUE(std::isnan(d(95)));
    EXPECT_EQ(d(96), 32.0f);
  }
}

TEST(ScaledMma, ColumnsMayBeginInsideOfScaleB) {
  Setting s = of_scaling(kScalings[1]);
  s.n = 128;
  Random random(11);
  Instruction whole(s);
  whole.fill(random.small(MmaType::E2m1), random.small(MmaType::E2m1));
  whole.fill_scales(random.small_scales(true));
  // The same factors for an operation on columns 40 to 127.
  Setting part_setting = s;
  part_setting.n = 88;
  Instruction part(part_setting);
  part.tensor_memory = whole.tensor_memory;
  part.op.scale_b_first = 40;
  part.a_scale = whole.a_scale;
  part.b_scale.assign(whole.b_scale.begin() + 40 * s.scale_factors, whole.b_scale.end());
  part.fill(random.small(MmaType::E2m1), random.small(MmaType::E2m1));
  part.expect([&](uint32_t m, uint32_t n) { return std::bit_cast<uint32_t>(static_cast<float>(part.sum(m, n, 0))); });
}

// A pair: each CTA has the factors of its rows of A and, with M = 256, of all columns of B; with M = 128 each half of
// its lanes has those of a half of the columns.
TEST(ScaledMma, APairOfCtas) {
  for (const Scaling& scaling : kScalings) {
    for (const uint32_t m : {128u, 256u}) {
      SCOPED_TRACE(::testing::Message() << to_string(scaling.kind) << ", M = " << m);
      Setting s = of_scaling(scaling);
      s.m = m;
      s.n = 80;
      const uint32_t rows = m / 2, columns = s.n / 2;  // of a CTA
      MmaOperation op;
      op.instruction = decode_instruction_descriptor(s.kind, instruction_bits(s));
      MmaForm form;
      form.cta_group = 2;
      form.scale_factors = s.scale_factors;
      ASSERT_THAT(check_instruction_descriptor(op.instruction, form), IsEmpty());
      const MatrixOperand a_operand = operand_a(op.instruction, form), b_operand = operand_b(op.instruction, form);
      op.a = tile_descriptor(0x4000, Swizzle::B128, a_operand);
      op.b = tile_descriptor(0x10000, Swizzle::B128, b_operand);
      op.shared_bytes = kSharedBytes;
      op.scale_factors = s.scale_factors;
      op.scale_a = {0, 401};
      op.scale_b = {0, 407};
      std::vector<std::byte> shared[2];
      std::vector<uint32_t> cells[2];
      Random random(m);
      const auto element = random.small(s.a_type);
      const auto factor = random.small_scales(s.ue8m0);
      const uint32_t k = op.instruction.k(), bits = packed(s.kind) ? 4 : 8;
      // Values with their factors, of both CTAs: [row][k], [column][k].
      std::vector<double> a(size_t{m} * k), b(size_t{s.n} * k);
      const auto fill = [&](const SmemDescriptor& d, const MatrixOperand& operand, uint32_t share,
                            std::vector<double>& values) {
        for (uint32_t row = 0; row < values.size() / k; row++) {
          for (uint32_t i = 0; i < k; i++) {
            const uint32_t code = element();
            values[row * k + i] = value_of(operand.type, code);
            std::byte& byte = shared[row / share][operand_address(d, false, operand.element_bits, row % share, i)];
            byte |= static_cast<std::byte>(code << i * bits % 8);
          }
        }
      };
      const auto put_factor = [&](std::vector<uint32_t>& memory, uint32_t quarter, uint32_t column, uint32_t row,
                                  uint32_t at, uint32_t code) {
        uint32_t& word = memory[(32 * quarter + row % 32) * kTensorMemoryColumns + column + row / 32];
        word = (word & ~(0xffu << 8 * at)) | code << 8 * at;
      };
      for (uint32_t c = 0; c < 2; c++) {
        shared[c].assign(kSharedBytes, std::byte{0});
        cells[c].assign(kCells, kUntouched);
      }
      fill(op.a, a_operand, rows, a);
      fill(op.b, b_operand, columns, b);
      const auto scale = [&](std::vector<double>& values, uint32_t row, uint32_t at, uint32_t code) {
        const double v = s.ue8m0 ? std::ldexp(1, static_cast<int>(code) - 127) : value_of(MmaType::E4m3, code);
        const uint32_t block = k / s.scale_factors;
        for (uint32_t i = at * block; i < (at + 1) * block; i++) values[row * k + i] *= v;
      };
      for (uint32_t at = 0; at < s.scale_factors; at++) {
        for (uint32_t row = 0; row < m; row++) {
          const uint32_t code = factor();
          for (uint32_t q = 0; q < 4; q++) put_factor(cells[row / rows], q, op.scale_a.column, row % rows, at, code);
          scale(a, row, at, code);
        }
        for (uint32_t n = 0; n < s.n; n++) {
          const uint32_t code = factor();
          for (uint32_t c = 0; c < 2; c++) {
            for (uint32_t q = 0; q < 4; q++) {
              if (m == 256) {
                put_factor(cells[c], q, op.scale_b.column, n, at, code);
              } else if (q / 2 == n / columns) {
                put_factor(cells[c], q, op.scale_b.column, n % columns, at, code);
              }
            }
          }
          scale(b, n, at, code);
        }
      }
      mma_of_pair(op, {PairMember{shared[0].data(), cells[0].data(), {}}, {shared[1].data(), cells[1].data(), {}}});
      for (uint32_t row = 0; row < m; row++) {
        for (uint32_t n = 0; n < s.n; n++) {
          double sum = 0;
          for (uint32_t i = 0; i < k; i++) sum += a[row * k + i] * b[n * k + i];
          const uint32_t lane = m == 256 ? row % rows : row % rows + 64 * (n / columns);
          const uint32_t column = m == 256 ? n : n % columns;
          ASSERT_EQ(std::bit_cast<float>(cells[row / rows][lane * kTensorMemoryColumns + column]), sum)
              << "row " << row << ", column " << n;
        }
      }
    }
  }
}

std::vector<std::string> texts(const std::vector<DescriptorProblem>& problems) {
  std::vector<std::string> list;
  for (const DescriptorProblem& p : problems) list.push_back((p.advisory ? "note: " : "") + p.text);
  return list;
}

TEST(ScaleFactors, AddressesAreChecked) {
  Setting s = of_scaling(kScalings[0]);
  s.n = 136;
  const InstructionDescriptor d = decode_instruction_descriptor(s.kind, instruction_bits(s));
  EXPECT_THAT(check_scale_factors(d, {0, 508}, {0, 507}), IsEmpty());
  EXPECT_THAT(texts(check_scale_factors(d, {0, 509}, {32, 508})),
              ElementsAre("tensor memory address of the scale factors of A: column = 509; the 4 columns from there on "
                          "end beyond the 512 of tensor memory",
                          "tensor memory address of the scale factors of B: lane = 32; M = 128 takes lane 0",
                          "tensor memory address of the scale factors of B: column = 508; the 5 columns from there on "
                          "end beyond the 512 of tensor memory"));
  const TensorMemoryBlock block = scale_block(40, {0, 9});
  EXPECT_THAT((std::vector<int>{block.lane, block.lanes, block.column, block.columns}), ElementsAre(0, 128, 9, 2));
}

TEST(ScaleFactors, TheirNumberGoesWithTheDescriptor) {
  const auto check = [](const Setting& s) {
    MmaForm form;
    form.scale_factors = s.scale_factors;
    form.a_in_tensor_memory = s.a_in_tensor_memory;
    return texts(check_instruction_descriptor(decode_instruction_descriptor(s.kind, instruction_bits(s)), form));
  };
  Setting s = of_scaling(kScalings[4]);
  EXPECT_THAT(check(s), IsEmpty());
  s.scale_a_id = s.scale_b_id = 2;
  EXPECT_THAT(
      check(s),
      ElementsAre(
          "instruction descriptor: scale factor B id = 2 (bits 5:4); four factors a row fill the word: it takes "
          "0",
          "instruction descriptor: scale factor A id = 2 (bits 30:29); four factors a row fill the word: it "
          "takes 0"));
  s.scale_factors = 2;
  EXPECT_THAT(check(s),
              ElementsAre("instruction descriptor: scale type = 0 (bit 23); two factors a row (a block of 32) "
                          "are ue8m0 (1); ue4m3 goes with four"));
  Setting mx = of_scaling(kScalings[0]);
  mx.a_type = mx.b_type = MmaType::E2m1;
  EXPECT_THAT(check(mx), IsEmpty());
  mx.transpose_b = true;
  mx.a_in_tensor_memory = true;
  EXPECT_THAT(
      check(mx),
      ElementsAre(
          "note: instruction descriptor: transpose B = 1 (bit 16); PTX Table 54 lists transposed matrices of 8- "
          "and 16-bit elements, of 4- and 6-bit elements none",
          "note: instruction descriptor: A type = e2m1 (bits 9:7 hold 5); where it stands in its byte of tensor "
          "memory is told by a figure only (PTX Figure 199); here it is bits 5:2, as for mma.sync"));
}

}  // namespace
}  // namespace handoff::async
