// Descriptors of tcgen05.mma. Tested by mma_descriptor_test.cc.
//
// Where a unit lies. In units of 16 bytes every canonical layout of PTX §9.7.16.3.3 is one formula: a swizzle of width
// w units (1, 2, 4, 8) makes atoms of 8 lines of w units (8 x 4 lines for the 32-byte atom), and the two strides of the
// descriptor place the atoms.
//   K-major:   line = row,  unit in line = unit along K    8 rows an atom; SBO from atom to atom
//   MN-major:  line = k,    unit in line = unit along MN   LBO to the next atom along MN, SBO to the next along K
// Without swizzle a line is one unit, so LBO goes from unit to unit along K (K-major), and the two strides change roles
// (MN-major). The swizzle is then applied to the address itself, not to the offset in the tile (§5.5.7), which is why a
// K-loop may advance the start address inside an atom.
//
// Base offset: §9.7.16.4.1 says when the field must not be 0, but not how it enters the address. Here the line number
// in the XOR, address bits 9:7, is taken relative to it; every use is reported as advisory.
#include "grader/emulator/async/mma_descriptor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace handoff::async {
namespace {

using Swizzle = SmemDescriptor::Swizzle;

constexpr uint32_t kUnitBytes = 16;
constexpr uint32_t kLineShift = 7;  // a line of the swizzle pattern has 128 bytes

constexpr uint32_t field(uint64_t bits, int high, int low) {
  return static_cast<uint32_t>(bits >> low & ((uint64_t{1} << (high - low + 1)) - 1));
}

/// What a swizzle code does. Sizes are powers of two, given by their logarithms.
struct Pattern {
  uint32_t log_units;    // 16-byte units in a line of an atom
  uint32_t log_lines;    // lines in an atom of an MN-major operand; of a K-major one always 8
  uint32_t line_mask;    // of the line number: the pattern repeats after line_mask + 1 lines of 128 bytes
  uint32_t moved_shift;  // the line number is XORed into the address from this bit on

  uint32_t units() const { return 1u << log_units; }
  uint32_t lines() const { return 1u << log_lines; }
  uint32_t line_bytes() const { return kUnitBytes << log_units; }
  uint32_t repeat_bytes() const { return (line_mask + 1) << kLineShift; }
  bool plain() const { return line_mask == 0; }
};
Pattern pattern_of(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::B32:
      return {1, 3, 1, 4};
    case Swizzle::B64:
      return {2, 3, 3, 4};
    case Swizzle::B128:
      return {3, 3, 7, 4};
    case Swizzle::B128Atom32:
      return {3, 2, 3, 5};
    case Swizzle::None:
      break;
  }
  return {0, 3, 0, 4};
}

/// Address of a unit: `line` and `unit` as in the essay above.
class UnitAddress {
 public:
  UnitAddress(const SmemDescriptor& d, bool mn_major)
      : pattern_(pattern_of(d.swizzle)), start_(d.start), base_offset_(d.base_offset) {
    const bool plain = pattern_.plain();
    if (mn_major) {
      log_lines_ = pattern_.log_lines;
      log_units_ = pattern_.log_units;
      next_lines_ = plain ? d.leading_byte_offset : d.stride_byte_offset;
      next_units_ = plain ? d.stride_byte_offset : d.leading_byte_offset;
    } else {
      log_lines_ = 3;
      log_units_ = 0;
      next_lines_ = d.stride_byte_offset;
      next_units_ = plain ? d.leading_byte_offset : kUnitBytes;
    }
  }
  uint32_t operator()(uint32_t line, uint32_t unit) const {
    const uint32_t line_in_atom = line & ((1u << log_lines_) - 1), unit_in_atom = unit & ((1u << log_units_) - 1);
    const uint32_t address = start_ + line_in_atom * pattern_.line_bytes() + (line >> log_lines_) * next_lines_ +
                             unit_in_atom * kUnitBytes + (unit >> log_units_) * next_units_;
    const uint32_t pattern_line = ((address >> kLineShift) - base_offset_) & pattern_.line_mask;
    return address ^ pattern_line << pattern_.moved_shift;
  }

 private:
  Pattern pattern_;
  uint32_t start_, base_offset_;
  uint32_t log_lines_, log_units_;    // of an atom
  uint32_t next_lines_, next_units_;  // bytes to the next atom
};

std::string number(uint64_t v) { return fmt::format("{}", v); }
std::string hex(uint64_t v) { return fmt::format("{:#x}", v); }
/// "bits 28:24"
std::string bit_range(int high, int low) {
  return high == low ? fmt::format("bit {}", high) : fmt::format("bits {}:{}", high, low);
}

/// Collects the problems of one descriptor.
class Problems {
 public:
  Problems(std::string descriptor, uint64_t bits) : descriptor_(std::move(descriptor)), bits_(bits) {}

  /// `shown` is the field's value as a reader thinks of it.
  void add(std::string_view name, int high, int low, std::string_view shown, std::string rule, bool advisory = false) {
    DescriptorProblem p;
    p.field = name;
    p.value = field(bits_, high, low);
    const std::string raw = number(p.value);
    const std::string held = raw == shown ? "" : fmt::format("{} {}", high == low ? " holds" : " hold", raw);
    p.text = fmt::format("{}: {} = {} ({}{}); {}", descriptor_, name, shown, bit_range(high, low), held, rule);
    p.rule = std::move(rule);
    p.advisory = advisory;
    list_.push_back(std::move(p));
  }
  /// A field whose value is a plain number.
  void add(std::string_view name, int high, int low, std::string rule, bool advisory = false) {
    add(name, high, low, number(field(bits_, high, low)), std::move(rule), advisory);
  }
  /// The bits must be 0.
  void reserved(int high, int low) {
    if (field(bits_, high, low) != 0) {
      add("reserved", high, low, high == low ? "this bit must be 0" : "these bits must be 0");
    }
  }
  bool empty() const { return list_.empty(); }
  std::vector<DescriptorProblem> take() { return std::move(list_); }

 private:
  std::string descriptor_;
  uint64_t bits_;
  std::vector<DescriptorProblem> list_;
};

constexpr std::array<MmaType, 8> kFloat8Codes = {MmaType::E4m3, MmaType::E5m2, MmaType::Reserved, MmaType::E2m3,
                                                 MmaType::E3m2, MmaType::E2m1, MmaType::Reserved, MmaType::Reserved};

MmaType operand_type(MmaKind kind, uint32_t code) {
  switch (kind) {
    case MmaKind::F16:
      return code == 0 ? MmaType::F16 : code == 1 ? MmaType::Bf16 : MmaType::Reserved;
    case MmaKind::Tf32:
      return code == 2 ? MmaType::Tf32 : MmaType::Reserved;
    case MmaKind::I8:
      return code == 0 ? MmaType::U8 : code == 1 ? MmaType::S8 : MmaType::Reserved;
    case MmaKind::F8F6F4:
    case MmaKind::Mxf8f6f4:
      return kFloat8Codes[code];
    case MmaKind::Mxf4:
    case MmaKind::Mxf4nvf4:
      break;
  }
  return code == 1 ? MmaType::E2m1 : MmaType::Reserved;
}
const char* operand_codes(MmaKind kind) {
  switch (kind) {
    case MmaKind::F16:
      return "f16 (0) or bf16 (1)";
    case MmaKind::Tf32:
      return "tf32 (2)";
    case MmaKind::I8:
      return "u8 (0) or s8 (1)";
    case MmaKind::F8F6F4:
    case MmaKind::Mxf8f6f4:
      return "e4m3 (0), e5m2 (1), e2m3 (3), e3m2 (4) or e2m1 (5)";
    case MmaKind::Mxf4:
    case MmaKind::Mxf4nvf4:
      break;
  }
  return "e2m1 (1)";
}

MmaType result_type(uint32_t code) {
  constexpr std::array<MmaType, 4> kTypes = {MmaType::F16, MmaType::F32, MmaType::S32, MmaType::Reserved};
  return kTypes[code];
}

/// 4- and 6-bit types.
bool is_narrow(MmaType type) { return type == MmaType::E2m3 || type == MmaType::E3m2 || type == MmaType::E2m1; }
constexpr const char* kNarrowTransposed =
    "PTX Table 54 lists transposed matrices of 8- and 16-bit elements, of 4- and 6-bit elements none";

bool is_packed_float4(MmaKind kind) { return kind == MmaKind::Mxf4 || kind == MmaKind::Mxf4nvf4; }
uint32_t element_bits(MmaKind kind) {
  switch (kind) {
    case MmaKind::F16:
      return 16;
    case MmaKind::Tf32:
      return 32;
    case MmaKind::Mxf4:
    case MmaKind::Mxf4nvf4:
      return 4;
    case MmaKind::F8F6F4:
    case MmaKind::I8:
    case MmaKind::Mxf8f6f4:
      break;
  }
  return 8;
}

/// "kind::f16 with cta_group::1", the subject of the rules on shapes.
std::string name_of(MmaKind kind, const MmaForm& form) {
  return fmt::format("{} with {}{}cta_group::{}", to_string(kind), form.weight_stationary ? ".ws and " : "",
                     form.sparse ? ".sp and " : "", form.cta_group);
}

// PTX Table 39.
void check_m(const InstructionDescriptor& d, const MmaForm& form, Problems& problems) {
  bool legal = false;
  const char* rule = "";
  if (form.cta_group == 2) {
    const bool only_256 = d.k96 || (is_block_scaled(d.kind) && form.sparse);
    legal = d.m == 256 || (d.m == 128 && !only_256);
    rule = only_256 ? "256" : "128 or 256, the rows of both CTAs";
  } else if (is_block_scaled(d.kind)) {
    legal = d.m == 128;
    rule = "128";
  } else if (form.weight_stationary) {
    legal = d.m == 32 || d.m == 64 || d.m == 128;
    rule = "32, 64 or 128";
  } else {
    legal = d.m == 64 || d.m == 128;
    rule = "64 or 128";
  }
  if (legal) return;
  const int low = is_block_scaled(d.kind) ? 27 : 24;
  problems.add("M", 28, low, number(d.m), fmt::format("{} takes {}", name_of(d.kind, form), rule));
}

void check_n(const InstructionDescriptor& d, const MmaForm& form, Problems& problems) {
  bool legal = d.n >= 8 && d.n <= 256;
  const char* rule = "";
  if (form.weight_stationary) {
    legal = d.n == 64 || d.n == 128 || (d.n == 256 && !form.sparse);
    rule = form.sparse ? "64 or 128" : "64, 128 or 256";
  } else if (d.kind == MmaKind::I8) {
    legal = legal && (form.cta_group == 2 ? d.n % 32 == 0 : d.n <= 32 || d.n % 16 == 0);
    rule = form.cta_group == 2 ? "32 to 256 in steps of 32" : "8, 16, 24, 32, then 48 to 256 in steps of 16";
  } else {
    legal = legal && (form.cta_group == 1 || d.n % 16 == 0);
    rule = form.cta_group == 2 ? "16 to 256 in steps of 16" : "8 to 256 in steps of 8";
  }
  if (!legal) {
    problems.add("N", 22, 17, number(d.n), fmt::format("{} takes {}", name_of(d.kind, form), rule));
    return;
  }
  // PTX Table 52.
  if (element_bits(d.kind) == 8 && d.transpose_b && d.n % (16 * form.cta_group) != 0) {
    problems.add("N", 22, 17, number(d.n),
                 fmt::format("an N-major B of 8-bit elements takes multiples of {} with cta_group::{}",
                             16 * form.cta_group, form.cta_group));
  }
}

void check_plain_fields(const InstructionDescriptor& d, const MmaForm& form, Problems& problems) {
  const char* kind = to_string(d.kind);
  if (!d.sparse && d.sparsity_selector != 0) {
    problems.add("sparsity selector", 1, 0, "it has no meaning where bit 2 says that A is dense", true);
  } else if (d.sparse && d.sparsity_selector != 0 && (d.kind == MmaKind::I8 || d.kind == MmaKind::F8F6F4)) {
    problems.add("sparsity selector", 1, 0, fmt::format("{} takes 0", kind));
  }
  if (d.saturate && d.kind != MmaKind::I8) problems.add("saturate", 3, 3, "only kind::i8 saturates");
  bool d_legal = false;
  std::string d_rule;
  switch (d.kind) {
    case MmaKind::F16:
      d_legal = d.d_type == MmaType::F32 ||
                (d.d_type == MmaType::F16 && d.a_type != MmaType::Bf16 && d.b_type != MmaType::Bf16);
      d_rule = d.d_type == MmaType::F16 ? "D of type f16 goes with A and B of type f16 only; bf16 takes f32 (1)"
                                        : "kind::f16 takes f16 (0) or f32 (1)";
      break;
    case MmaKind::F8F6F4:
      d_legal = d.d_type == MmaType::F32 || d.d_type == MmaType::F16;
      d_rule = "kind::f8f6f4 takes f16 (0) or f32 (1)";
      break;
    case MmaKind::I8:
      d_legal = d.d_type == MmaType::S32;
      d_rule = "kind::i8 takes s32 (2)";
      break;
    default:
      d_legal = d.d_type == MmaType::F32;
      d_rule = fmt::format("{} takes f32 (1)", kind);
      break;
  }
  if (!d_legal) problems.add("D type", 5, 4, to_string(d.d_type), d_rule);
  problems.reserved(6, 6);
  if (d.a_type == MmaType::Reserved)
    problems.add("A type", 9, 7, fmt::format("{} takes {}", kind, operand_codes(d.kind)));
  if (d.b_type == MmaType::Reserved) {
    problems.add("B type", 12, 10, fmt::format("{} takes {}", kind, operand_codes(d.kind)));
  }
  if (d.kind == MmaKind::I8) {
    if (d.negate_a) problems.add("negate A", 13, 13, "kind::i8 cannot negate");
    if (d.negate_b) problems.add("negate B", 14, 14, "kind::i8 cannot negate");
  }
  problems.reserved(23, 23);
  problems.reserved(29, 29);
  if (d.max_shift != 0 && !form.weight_stationary) {
    problems.add("maximum shift of B", 31, 30, number(d.max_shift), "it has a meaning with .ws only", true);
  }
}

void check_scaled_fields(const InstructionDescriptor& d, const MmaForm& form, Problems& problems) {
  const bool packed = is_packed_float4(d.kind);
  const char* kind = to_string(d.kind);
  problems.reserved(1, 0);
  problems.reserved(3, 3);
  // PTX §9.7.16.10.7.2, §9.7.16.10.7.3: four factors fill the word, two are half of it.
  const bool whole_word = form.scale_factors == 4;
  const auto check_id = [&](const char* name, int high, int low, uint8_t id) {
    if (whole_word && id != 0) {
      problems.add(name, high, low, "four factors a row fill the word: it takes 0");
    } else if (packed && id % 2 != 0) {
      problems.add(name, high, low, fmt::format("{} takes 0 or 2", kind));
    }
  };
  check_id("scale factor B id", 5, 4, d.scale_b_id);
  problems.reserved(6, 6);
  if (d.a_type == MmaType::Reserved)
    problems.add("A type", 9, 7, fmt::format("{} takes {}", kind, operand_codes(d.kind)));
  if (d.b_type == MmaType::Reserved) {
    problems.add("B type", packed ? 11 : 12, 10, fmt::format("{} takes {}", kind, operand_codes(d.kind)));
  }
  if (packed) {
    problems.reserved(12, 12);
    if (d.transpose_a) problems.add("transpose A", 15, 15, fmt::format("{} takes K-major matrices only", kind));
    if (d.transpose_b) problems.add("transpose B", 16, 16, fmt::format("{} takes K-major matrices only", kind));
  }
  if (!d.scale_ue8m0 && d.kind != MmaKind::Mxf4nvf4) {
    problems.add("scale type", 23, 23, fmt::format("the scale factors of {} are ue8m0 (1)", kind));
  } else if (!d.scale_ue8m0 && form.scale_factors == 2) {  // PTX Table 57
    problems.add("scale type", 23, 23, "two factors a row (a block of 32) are ue8m0 (1); ue4m3 goes with four");
  }
  problems.reserved(26, 24);
  check_id("scale factor A id", 30, 29, d.scale_a_id);
  if (!packed) problems.reserved(31, 31);
  if (d.k96 && d.sparse) problems.add("K dimension", 31, 31, "K = 96 is for a dense A");
  if (d.k96 && form.cta_group == 1) problems.add("K dimension", 31, 31, "K = 96 goes with cta_group::2 and M = 256");
}

/// Distances that make the operand's units overlap: legal, and almost always a mistake.
void check_overlap(const SmemDescriptor& d, const MatrixOperand& operand, Problems& problems) {
  uint64_t covered = 0;
  for (const ByteRun& run : footprint(d, operand)) covered += run.bytes;
  const uint64_t needed = uint64_t{operand.rows} * operand.k * operand.element_bits / 8;
  if (covered >= needed) return;
  const Pattern pattern = pattern_of(d.swizzle);
  const bool plain = pattern.plain();
  const uint32_t line_bytes = pattern.line_bytes();
  const uint32_t units_along_k = operand.k * operand.element_bits / 128;
  const std::string so = fmt::format("so that elements of {} share bytes ({} elements in {} bytes instead of {})",
                                     operand.name, operand.rows * operand.k, covered, needed);
  const auto lbo = [&](const std::string& rule) {
    problems.add("LBO", 29, 16, number(d.leading_byte_offset), rule + ", " + so, true);
  };
  const auto sbo = [&](const std::string& rule) {
    problems.add("SBO", 45, 32, number(d.stride_byte_offset), rule + ", " + so, true);
  };
  if (!operand.mn_major) {
    if (plain && units_along_k > 1 && d.leading_byte_offset == 0) {
      return lbo(
          "without swizzle a K-major matrix needs it: the distance from one 16-byte column of K to the next (16 x rows "
          "in a "
          "tile of 16-byte columns); here it is 0");
    }
    const uint32_t atom_bytes = 8 * line_bytes;
    if (operand.rows > 8 && d.stride_byte_offset < atom_bytes) {
      return sbo(fmt::format("it is the distance from 8 rows to the next 8, and 8 lines of {} bytes take {}",
                             line_bytes, atom_bytes));
    }
  } else {
    const uint32_t atom_bytes = pattern.lines() * line_bytes;
    const uint32_t units_along_mn = operand.rows * operand.element_bits / 128;
    if (units_along_mn > pattern.units() && (plain ? d.stride_byte_offset : d.leading_byte_offset) == 0) {
      if (plain) return sbo("without swizzle it is the distance from 16 bytes along MN to the next 16; here it is 0");
      return lbo(fmt::format("it is the distance from {} bytes along MN to the next {}; here it is 0", line_bytes,
                             line_bytes));
    }
    if (operand.k > pattern.lines() && (plain ? d.leading_byte_offset : d.stride_byte_offset) < atom_bytes) {
      const std::string rule =
          fmt::format("it is the distance from {} columns k to the next {}, and {} lines of {} bytes take {}",
                      pattern.lines(), pattern.lines(), pattern.lines(), line_bytes, atom_bytes);
      return plain ? lbo(rule) : sbo(rule);
    }
  }
  sbo(fmt::format("with LBO = {}, {}", d.leading_byte_offset, "the two strides lead to the same places"));
}

void check_swizzle(const SmemDescriptor& d, const MatrixOperand& operand, Problems& problems) {
  const uint32_t code = field(d.bits, 63, 61);
  if (code == 3 || code == 5 || code == 7) {
    problems.add(
        "swizzle", 63, 61,
        "the codes are 0 (none), 1 (128 bytes with 32-byte atoms), 2 (128 bytes), 4 (64 bytes) and 6 (32 bytes)");
    return;
  }
  const bool atom32 = d.swizzle == Swizzle::B128Atom32;
  const char* name = to_string(d.swizzle);
  if (operand.mn_major && operand.element_bits == 32 && !atom32) {
    problems.add(
        "swizzle", 63, 61, name,
        fmt::format("an MN-major matrix of 32-bit elements ({}) takes 128-byte swizzle with 32-byte atoms (1) only",
                    operand.name));
  } else if (operand.mn_major && operand.element_bits != 32 && atom32) {
    problems.add("swizzle", 63, 61, name,
                 fmt::format("128-byte swizzle with 32-byte atoms is for MN-major tf32; {} has {}-bit elements",
                             operand.name, operand.element_bits));
  } else if (!operand.mn_major && atom32) {
    problems.add(
        "swizzle", 63, 61, name,
        fmt::format("128-byte swizzle with 32-byte atoms is for MN-major tf32; {} is K-major (transpose bit 0)",
                    operand.name));
  }
}

void check_base_offset(const SmemDescriptor& d, Problems& problems) {
  const Pattern pattern = pattern_of(d.swizzle);
  if (d.base_offset != 0) {
    problems.add("base offset", 51, 49,
                 pattern.line_mask == 0 ? "it has no meaning without swizzle"
                                        : "the ISA does not say how it enters the address; here it is subtracted from "
                                          "address bits 9:7 before the XOR",
                 true);
    return;
  }
  if ((d.start >> kLineShift & pattern.line_mask) != 0) {
    problems.add(
        "start address", 13, 0, hex(d.start),
        fmt::format("with base offset 0 the pattern of {} starts at a multiple of {} bytes, and this address is not "
                    "in the first line of one",
                    to_string(d.swizzle), pattern.repeat_bytes()),
        true);
  }
}

}  // namespace

const char* to_string(MmaKind kind) {
  constexpr std::array<const char*, 7> kNames = {"kind::f16",      "kind::tf32", "kind::f8f6f4",  "kind::i8",
                                                 "kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4"};
  return kNames[static_cast<size_t>(kind)];
}

const char* to_string(MmaType type) {
  constexpr std::array<const char*, 13> kNames = {"f16",  "bf16", "tf32", "e4m3", "e5m2", "e2m3",    "e3m2",
                                                  "e2m1", "u8",   "s8",   "f32",  "s32",  "reserved"};
  return kNames[static_cast<size_t>(type)];
}

const char* to_string(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::None:
      return "no swizzle";
    case Swizzle::B128Atom32:
      return "128-byte swizzle with 32-byte atoms";
    case Swizzle::B128:
      return "128-byte swizzle";
    case Swizzle::B64:
      return "64-byte swizzle";
    case Swizzle::B32:
      return "32-byte swizzle";
  }
  return "reserved";
}

uint32_t InstructionDescriptor::k() const {
  const uint32_t dense = k96 ? 96 : 256 / element_bits(kind);
  return sparse ? 2 * dense : dense;
}

InstructionDescriptor decode_instruction_descriptor(MmaKind kind, uint32_t bits) {
  InstructionDescriptor d;
  d.kind = kind;
  d.bits = bits;
  d.sparse = field(bits, 2, 2) != 0;
  d.a_type = operand_type(kind, field(bits, 9, 7));
  d.b_type = operand_type(kind, field(bits, is_packed_float4(kind) ? 11 : 12, 10));
  d.negate_a = field(bits, 13, 13) != 0;
  d.negate_b = field(bits, 14, 14) != 0;
  d.transpose_a = field(bits, 15, 15) != 0;
  d.transpose_b = field(bits, 16, 16) != 0;
  d.n = static_cast<uint16_t>(field(bits, 22, 17) * 8);
  if (is_block_scaled(kind)) {
    d.d_type = MmaType::F32;
    d.scale_b_id = static_cast<uint8_t>(field(bits, 5, 4));
    d.scale_ue8m0 = field(bits, 23, 23) != 0;
    d.m = static_cast<uint16_t>(field(bits, 28, 27) * 128);
    d.scale_a_id = static_cast<uint8_t>(field(bits, 30, 29));
    d.k96 = is_packed_float4(kind) && field(bits, 31, 31) != 0;
    return d;
  }
  constexpr std::array<uint8_t, 4> kShifts = {0, 8, 16, 32};
  d.sparsity_selector = static_cast<uint8_t>(field(bits, 1, 0));
  d.saturate = field(bits, 3, 3) != 0;
  d.d_type = result_type(field(bits, 5, 4));
  d.m = static_cast<uint16_t>(field(bits, 28, 24) * 16);
  d.max_shift = kShifts[field(bits, 31, 30)];
  return d;
}

SmemDescriptor decode_smem_descriptor(uint64_t bits) {
  SmemDescriptor d;
  d.bits = bits;
  d.start = field(bits, 13, 0) * kUnitBytes;
  d.leading_byte_offset = field(bits, 29, 16) * kUnitBytes;
  d.stride_byte_offset = field(bits, 45, 32) * kUnitBytes;
  d.base_offset = static_cast<uint8_t>(field(bits, 51, 49));
  d.absolute_leading = field(bits, 52, 52) != 0;
  d.swizzle = static_cast<Swizzle>(field(bits, 63, 61));
  return d;
}

ZeroColumnMask decode_zero_column_mask(uint64_t bits) {
  ZeroColumnMask mask;
  mask.bits = bits;
  for (int i = 0; i < 4; i++) {
    mask.start[i] = static_cast<uint8_t>(field(bits, 8 * i + 7, 8 * i));
    mask.begins_with_one[i] = field(bits, 32 + i, 32 + i) != 0;
  }
  mask.generated = field(bits, 39, 39) != 0;
  mask.ones = static_cast<uint16_t>(field(bits, 47, 40) + 1);
  mask.zeros = static_cast<uint16_t>(field(bits, 55, 48) + 1);
  mask.shift = static_cast<uint8_t>(field(bits, 61, 56));
  return mask;
}

std::array<uint64_t, 4> ZeroColumnMask::columns(uint32_t m, uint32_t n) const {
  std::array<uint64_t, 4> mask = {};
  if (!generated) return mask;
  const uint32_t parts = m >= 128 ? 1 : 128 / m, length = n / parts;
  for (uint32_t p = 0; p < parts; p++) {
    const uint32_t first = begins_with_one[p] ? ones : zeros, period = ones + zeros;
    for (uint32_t i = 0; i < length; i++) {
      const uint32_t at = (i + start[p]) % period;
      const uint32_t column = p * length + i;
      if ((at < first) == begins_with_one[p]) mask[column / 64] |= uint64_t{1} << column % 64;
    }
  }
  return mask;
}

std::vector<DescriptorProblem> check_zero_column_mask(const ZeroColumnMask& mask) {
  Problems problems("zero-column mask descriptor", mask.bits);
  problems.reserved(38, 36);
  problems.reserved(63, 62);
  if (mask.shift != 0) {
    problems.add("column shift", 61, 56,
                 "the ISA does not say whether the mask moves with the columns; shifted columns are not emulated");
  }
  if (mask.generated) {
    problems.add("non-zero mask", 39, 39,
                 "the ISA's table and its examples exchange the two spans; here, as in the examples, skip span + 1 "
                 "columns are zero and use span + 1 are used",
                 true);
  }
  return problems.take();
}

std::vector<DescriptorProblem> check_instruction_descriptor(const InstructionDescriptor& d, const MmaForm& form) {
  Problems problems("instruction descriptor", d.bits);
  check_m(d, form, problems);
  check_n(d, form, problems);
  if (d.sparse != form.sparse) {
    problems.add("sparsity", 2, 2,
                 form.sparse ? "tcgen05.mma.sp needs 1 here" : "a sparse A is for tcgen05.mma.sp; this is tcgen05.mma");
  }
  if (is_block_scaled(d.kind)) {
    check_scaled_fields(d, form, problems);
  } else {
    check_plain_fields(d, form, problems);
  }
  if (form.a_in_tensor_memory && d.transpose_a) {
    problems.add("transpose A", 15, 15, "an A in tensor memory is row-major (PTX Table 53): it cannot be transposed");
  } else if (d.transpose_a && is_narrow(d.a_type) && !is_packed_float4(d.kind)) {
    problems.add("transpose A", 15, 15, kNarrowTransposed, true);
  }
  if (d.transpose_b && is_narrow(d.b_type) && !is_packed_float4(d.kind)) {
    problems.add("transpose B", 16, 16, kNarrowTransposed, true);
  }
  if (form.a_in_tensor_memory && d.a_type == MmaType::E2m1 && !is_packed_float4(d.kind)) {
    problems.add("A type", 9, 7, to_string(d.a_type),
                 "where it stands in its byte of tensor memory is told by a figure only (PTX Figure 199); here it is "
                 "bits 5:2, as for mma.sync",
                 true);
  }
  return problems.take();
}

MatrixOperand operand_a(const InstructionDescriptor& d, const MmaForm& form) {
  MatrixOperand o;
  o.name = 'A';
  o.kind = d.kind;
  o.type = d.a_type;
  o.mn_major = d.transpose_a;
  o.element_bits = element_bits(d.kind);
  o.rows = d.m / form.cta_group;
  o.k = d.sparse ? d.k() / 2 : d.k();
  return o;
}

MatrixOperand operand_b(const InstructionDescriptor& d, const MmaForm& form) {
  MatrixOperand o;
  o.name = 'B';
  o.kind = d.kind;
  o.type = d.b_type;
  o.mn_major = d.transpose_b;
  o.element_bits = element_bits(d.kind);
  o.rows = d.n / form.cta_group;
  o.k = d.k();
  return o;
}

std::vector<DescriptorProblem> check_smem_descriptor(const SmemDescriptor& d, const MatrixOperand& operand) {
  Problems problems(fmt::format("shared memory descriptor of {}", operand.name), d.bits);
  problems.reserved(15, 14);
  problems.reserved(31, 30);
  if (field(d.bits, 48, 46) != 1) {
    problems.add("constant", 48, 46, "these bits must hold 1: the descriptor version of tcgen05");
  }
  problems.reserved(60, 53);
  check_swizzle(d, operand, problems);
  const bool k_is_48_bytes = operand.k * operand.element_bits == 384;
  if (d.absolute_leading) {
    if (!k_is_48_bytes) {
      problems.add("LBO mode", 52, 52, "an absolute LBO is for K = 96 (sm_103a) only; here LBO is a distance: 0");
    } else if (d.swizzle != Swizzle::B128 || operand.mn_major || d.base_offset != 0) {
      problems.add("LBO mode", 52, 52,
                   "an absolute LBO needs 128-byte swizzle with 16-byte atoms, a K-major matrix and base offset 0");
    }
  }
  // What follows would only repeat a fault found above.
  if (!problems.empty()) return problems.take();
  check_base_offset(d, problems);
  if (!d.absolute_leading) check_overlap(d, operand, problems);
  return problems.take();
}

uint32_t operand_address(const SmemDescriptor& d, bool mn_major, uint32_t element_bits, uint32_t row, uint32_t k) {
  const UnitAddress address(d, mn_major);
  const uint32_t unit_elements = 128 / element_bits;
  const uint32_t along = mn_major ? row : k;
  return address(mn_major ? k : row, along / unit_elements) + along % unit_elements * element_bits / 8;
}

void operand_units(const SmemDescriptor& d, const MatrixOperand& operand, std::vector<uint32_t>& addresses) {
  const UnitAddress address(d, operand.mn_major);
  const uint32_t lines = operand.mn_major ? operand.k : operand.rows;
  const uint32_t units = (operand.mn_major ? operand.rows : operand.k) * operand.element_bits / 128;
  addresses.resize(size_t{lines} * units);
  size_t next = 0;
  for (uint32_t line = 0; line < lines; line++) {
    for (uint32_t unit = 0; unit < units; unit++) addresses[next++] = address(line, unit);
  }
}

std::vector<ByteRun> footprint(const SmemDescriptor& d, const MatrixOperand& operand) {
  std::vector<uint32_t> units;
  operand_units(d, operand, units);
  std::vector<ByteRun> runs;
  if (units.empty()) return runs;
  const auto [low, high] = std::minmax_element(units.begin(), units.end());
  const uint32_t first = *low / kUnitBytes, last = *high / kUnitBytes;
  const auto push = [&](uint32_t unit) {
    const uint32_t offset = unit * kUnitBytes;
    if (!runs.empty() && runs.back().offset + runs.back().bytes >= offset) {
      runs.back().bytes = offset + kUnitBytes - runs.back().offset;
    } else {
      runs.push_back({offset, kUnitBytes});
    }
  };
  // One bit a unit sorts them in a pass; a descriptor may also spread them over megabytes.
  constexpr uint32_t kBitmapUnits = 256 * 1024 / kUnitBytes;
  if (last - first < kBitmapUnits) {
    std::array<uint64_t, kBitmapUnits / 64> bitmap = {};
    for (const uint32_t unit : units) {
      const uint32_t bit = unit / kUnitBytes - first;
      bitmap[bit / 64] |= uint64_t{1} << bit % 64;
    }
    for (uint32_t word = 0; word <= (last - first) / 64; word++) {
      for (uint64_t rest = bitmap[word]; rest != 0; rest &= rest - 1) {
        push(first + word * 64 + static_cast<uint32_t>(__builtin_ctzll(rest)));
      }
    }
  } else {
    std::sort(units.begin(), units.end());
    for (const uint32_t unit : units) push(unit / kUnitBytes);
  }
  return runs;
}

}  // namespace handoff::async
