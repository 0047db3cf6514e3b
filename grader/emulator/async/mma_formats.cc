// Tested by mma_narrow_test.cc.
//
// The formats are those of the OCP microscaling specification, which PTX §5.2.3 names and does not spell out: e4m3 has
// bias 7, no infinity and one NaN a sign; e5m2 is an IEEE format; e2m3, e3m2 and e2m1 have biases 1, 3, 1 and only
// numbers. All have subnormal numbers, and all values are exact in binary32.
//
// Where a 4- or 6-bit element stands in its byte of tensor memory is told by figures only (199 to 201); mma.sync, whose
// text names the bits (§9.7.14.5), has the same containers.
#include "grader/emulator/async/mma_formats.h"

#include <array>
#include <cmath>
#include <limits>

namespace handoff::async {
namespace {

constexpr uint32_t kUnitsAlongK = 2;  // 32 bytes of K

struct Format {
  uint32_t exponent_bits, mantissa_bits;
  int bias;
  uint32_t width() const { return 1 + exponent_bits + mantissa_bits; }
};
Format format_of(MmaType type) {
  switch (type) {
    case MmaType::E5m2:
      return {5, 2, 15};
    case MmaType::E2m3:
      return {2, 3, 1};
    case MmaType::E3m2:
      return {3, 2, 3};
    case MmaType::E2m1:
      return {2, 1, 1};
    default:
      return {4, 3, 7};
  }
}

float float_value(MmaType type, uint32_t code) {
  const Format f = format_of(type);
  const uint32_t mantissa = code & ((1u << f.mantissa_bits) - 1);
  const uint32_t exponent = code >> f.mantissa_bits & ((1u << f.exponent_bits) - 1);
  const float sign = (code >> (f.width() - 1) & 1) != 0 ? -1.0f : 1.0f;
  if (type == MmaType::E4m3 && exponent == 15 && mantissa == 7) return std::numeric_limits<float>::quiet_NaN();
  if (type == MmaType::E5m2 && exponent == 31)
    return mantissa != 0 ? std::numeric_limits<float>::quiet_NaN() : sign * std::numeric_limits<float>::infinity();
  const uint32_t significand = exponent == 0 ? mantissa : mantissa | 1u << f.mantissa_bits;
  const int scale = static_cast<int>(exponent == 0 ? 1 : exponent) - f.bias - static_cast<int>(f.mantissa_bits);
  return sign * std::ldexp(static_cast<float>(significand), scale);
}

/// Values by the code's byte.
using Table = std::array<float, 256>;
Table table_of(MmaType type, uint32_t shift) {
  Table t;
  for (uint32_t byte = 0; byte < t.size(); byte++) t[byte] = narrow_value(type, byte >> shift);
  return t;
}
/// `in_the_middle`: e2m1 in bits 5:2.
const Table& table(MmaType type, bool in_the_middle) {
  static const std::array<Table, 8> kTables = {
      table_of(MmaType::E4m3, 0), table_of(MmaType::E5m2, 0), table_of(MmaType::E2m3, 0), table_of(MmaType::E3m2, 0),
      table_of(MmaType::E2m1, 0), table_of(MmaType::U8, 0),   table_of(MmaType::S8, 0),   table_of(MmaType::E2m1, 2)};
  return kTables[in_the_middle ? 7 : static_cast<size_t>(type) - static_cast<size_t>(MmaType::E4m3)];
}

uint32_t width_of(MmaType type) { return type == MmaType::U8 || type == MmaType::S8 ? 8 : format_of(type).width(); }

/// The elements of one unit.
struct Reader {
  const Table* values;
  uint32_t width;   // of an element, bits
  uint32_t stride;  // from one to the next, bits

  void operator()(const std::byte* unit, uint32_t elements, float* out, size_t step) const {
    for (uint32_t e = 0; e < elements; e++) {
      const uint32_t bit = e * stride, at = bit / 8, shift = bit % 8;
      uint32_t code = static_cast<uint32_t>(unit[at]) >> shift;
      if (shift + width > 8) code |= static_cast<uint32_t>(unit[at + 1]) << (8 - shift);
      out[e * step] = (*values)[code & 0xff];
    }
  }
};

}  // namespace

Packing packing_of(MmaKind kind, MmaType type, bool in_tensor_memory) {
  if (kind == MmaKind::Mxf4 || kind == MmaKind::Mxf4nvf4) return Packing::Packed;
  return width_of(type) == 8 || in_tensor_memory ? Packing::Bytes : Packing::Padded;
}

float narrow_value(MmaType type, uint32_t code) {
  if (type == MmaType::U8) return static_cast<float>(code & 0xff);
  if (type == MmaType::S8) return static_cast<float>(static_cast<int8_t>(code));
  return float_value(type, code);
}

float scale_value(bool ue8m0, uint8_t code) {
  if (!ue8m0) return narrow_value(MmaType::E4m3, code & 0x7f);
  return code == 0xff ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, code - 127);
}

void unpack_narrow(const Unpack& u, Packing packing) {
  const uint32_t elements = packing == Packing::Packed ? 32 : 16;  // of a unit
  const uint32_t k_extent = kUnitsAlongK * elements;
  const bool in_the_middle = packing == Packing::Bytes && u.type == MmaType::E2m1;
  const Reader read{&table(u.type, in_the_middle), packing == Packing::Bytes ? 8 : width_of(u.type),
                    packing == Packing::Bytes ? 8 : width_of(u.type)};
  const uint32_t* unit = u.units;
  if (u.mn_major) {
    const uint32_t units = u.rows / elements;
    for (uint32_t k = 0; k < k_extent; k++) {
      for (uint32_t j = 0; j < units; j++) {
        read(u.bytes + *unit++, elements, u.panel + size_t{k} * u.rows + size_t{j} * elements, 1);
      }
    }
  } else {
    for (uint32_t row = 0; row < u.rows; row++) {
      for (uint32_t along = 0; along < kUnitsAlongK; along++) {
        read(u.bytes + *unit++, elements, u.panel + size_t{along} * elements * u.rows + row, u.rows);
      }
    }
  }
  if (!u.negate) return;
  for (size_t i = 0; i < size_t{k_extent} * u.rows; i++) u.panel[i] = -u.panel[i];
}

}  // namespace handoff::async
