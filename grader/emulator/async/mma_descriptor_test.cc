// Descriptors of tcgen05.mma against the tables of PTX §9.7.16.4, and addresses against CuTe layouts and the tables of
// §5.5.7.
#include "grader/emulator/async/mma_descriptor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace handoff::async {
namespace {

using Swizzle = SmemDescriptor::Swizzle;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint32_t kF32 = 1 << 4;
constexpr uint32_t type_bits(uint32_t a, uint32_t b) { return a << 7 | b << 10; }
constexpr uint32_t shape_bits(uint32_t m, uint32_t n) { return n / 8 << 17 | m / 16 << 24; }
constexpr uint32_t kTransposeA = 1 << 15, kTransposeB = 1 << 16;
constexpr uint32_t kBf16 = kF32 | type_bits(1, 1) | shape_bits(128, 256);
constexpr uint32_t kTf32 = kF32 | type_bits(2, 2) | shape_bits(128, 256);

MmaForm cta_group(uint8_t group) {
  MmaForm form;
  form.cta_group = group;
  return form;
}
MmaForm sparse(uint8_t group) {
  MmaForm form = cta_group(group);
  form.sparse = true;
  return form;
}
MmaForm weight_stationary() {
  MmaForm form;
  form.weight_stationary = true;
  return form;
}

/// Texts of the problems; an advisory one begins with "note: ".
std::vector<std::string> texts(const std::vector<DescriptorProblem>& problems) {
  std::vector<std::string> list;
  for (const DescriptorProblem& p : problems) list.push_back((p.advisory ? "note: " : "") + p.text);
  return list;
}
std::vector<std::string> check(MmaKind kind, uint32_t bits, const MmaForm& form = {}) {
  return texts(check_instruction_descriptor(decode_instruction_descriptor(kind, bits), form));
}

TEST(InstructionDescriptor, DecodesBf16) {
  const InstructionDescriptor d = decode_instruction_descriptor(MmaKind::F16, 0x08400490);
  EXPECT_EQ(d.m, 128);
  EXPECT_EQ(d.n, 256);
  EXPECT_EQ(d.k(), 16u);
  EXPECT_EQ(d.a_type, MmaType::Bf16);
  EXPECT_EQ(d.b_type, MmaType::Bf16);
  EXPECT_EQ(d.d_type, MmaType::F32);
  EXPECT_FALSE(d.transpose_a || d.transpose_b || d.negate_a || d.negate_b || d.sparse || d.saturate);
  EXPECT_THAT(check_instruction_descriptor(d, {}), IsEmpty());
}

TEST(InstructionDescriptor, DecodesEachFieldOfTable42) {
  const auto decode = [](uint32_t bits) { return decode_instruction_descriptor(MmaKind::F8F6F4, bits); };
  EXPECT_EQ(decode(3).sparsity_selector, 3);
  EXPECT_TRUE(decode(1 << 2).sparse);
  EXPECT_EQ(decode(1 << 2).k(), 64u);
  EXPECT_TRUE(decode(1 << 3).saturate);
  EXPECT_EQ(decode(2 << 4).d_type, MmaType::S32);
  EXPECT_EQ(decode(3 << 4).d_type, MmaType::Reserved);
  EXPECT_EQ(decode(4 << 7).a_type, MmaType::E3m2);
  EXPECT_EQ(decode(5 << 10).b_type, MmaType::E2m1);
  EXPECT_EQ(decode(2 << 10).b_type, MmaType::Reserved);
  EXPECT_TRUE(decode(1 << 13).negate_a);
  EXPECT_TRUE(decode(1 << 14).negate_b);
  EXPECT_TRUE(decode(1 << 15).transpose_a);
  EXPECT_TRUE(decode(1 << 16).transpose_b);
  EXPECT_EQ(decode(63u << 17).n, 504);
  EXPECT_EQ(decode(31u << 24).m, 496);
  EXPECT_EQ(decode(3u << 30).max_shift, 32);
  EXPECT_EQ(decode_instruction_descriptor(MmaKind::I8, 1 << 7).a_type, MmaType::S8);
  EXPECT_EQ(decode_instruction_descriptor(MmaKind::Tf32, 2 << 7).a_type, MmaType::Tf32);
}

TEST(InstructionDescriptor, DecodesTheBlockScaledKinds) {
  const InstructionDescriptor mx = decode_instruction_descriptor(
      MmaKind::Mxf8f6f4, 3u << 4 | 3u << 7 | 4u << 10 | 16u << 17 | 1u << 23 | 1u << 27 | 2u << 29);
  EXPECT_EQ(mx.scale_b_id, 3);
  EXPECT_EQ(mx.scale_a_id, 2);
  EXPECT_EQ(mx.a_type, MmaType::E2m3);
  EXPECT_EQ(mx.b_type, MmaType::E3m2);
  EXPECT_EQ(mx.n, 128);
  EXPECT_EQ(mx.m, 128);
  EXPECT_EQ(mx.k(), 32u);
  EXPECT_TRUE(mx.scale_ue8m0);
  EXPECT_THAT(texts(check_instruction_descriptor(mx, {})), IsEmpty());

  const uint32_t fp4 = 1u << 7 | 1u << 10 | 32u << 17 | 2u << 27;
  const InstructionDescriptor nv = decode_instruction_descriptor(MmaKind::Mxf4nvf4, fp4 | 1u << 31);
  EXPECT_EQ(nv.k(), 96u);
  EXPECT_EQ(nv.b_type, MmaType::E2m1);
  EXPECT_THAT(texts(check_instruction_descriptor(nv, cta_group(2))), IsEmpty());
  EXPECT_THAT(
      check(MmaKind::Mxf4, fp4, cta_group(2)),
      ElementsAre("instruction descriptor: scale type = 0 (bit 23); the scale factors of kind::mxf4 are ue8m0 (1)"));
  EXPECT_THAT(check(MmaKind::Mxf4, fp4 | 1u << 23 | 1u << 29 | 1u << 12 | kTransposeB, cta_group(2)),
              ElementsAre("instruction descriptor: reserved = 1 (bit 12); this bit must be 0",
                          "instruction descriptor: transpose B = 1 (bit 16); kind::mxf4 takes K-major matrices only",
                          "instruction descriptor: scale factor A id = 1 (bits 30:29); kind::mxf4 takes 0 or 2"));
}

// Every code of M and N against PTX Table 39, written out.
struct Shapes {
  const char* name;
  MmaKind kind;
  MmaForm form;
  uint32_t bits;  // of the other fields
  std::set<uint32_t> m, n;
};
std::set<uint32_t> steps(uint32_t from, uint32_t to, uint32_t step) {
  std::set<uint32_t> s;
  for (uint32_t v = from; v <= to; v += step) s.insert(v);
  return s;
}
class InstructionShapes : public ::testing::TestWithParam<Shapes> {};
TEST_P(InstructionShapes, AreThoseOfTable39) {
  const Shapes& s = GetParam();
  const bool scaled = is_block_scaled(s.kind);
  for (uint32_t m = 0; m < (scaled ? 4 : 32); m++) {
    for (uint32_t n = 0; n < 64; n++) {
      const uint32_t bits = s.bits | n << 17 | m << (scaled ? 27 : 24);
      const bool legal = s.m.count(m * (scaled ? 128 : 16)) != 0 && s.n.count(n * 8) != 0;
      EXPECT_EQ(check(s.kind, bits, s.form).empty(), legal) << "m code " << m << ", n code " << n;
    }
  }
}
std::set<uint32_t> int8_columns() {
  std::set<uint32_t> s = steps(32, 256, 16);
  s.insert({8, 16, 24});
  return s;
}
INSTANTIATE_TEST_SUITE_P(
    Kinds, InstructionShapes,
    ::testing::Values(
        Shapes{"f16", MmaKind::F16, cta_group(1), kF32, {64, 128}, steps(8, 256, 8)},
        Shapes{"f16_pair", MmaKind::F16, cta_group(2), kF32, {128, 256}, steps(16, 256, 16)},
        Shapes{"f16_ws", MmaKind::F16, weight_stationary(), kF32, {32, 64, 128}, {64, 128, 256}},
        Shapes{"tf32", MmaKind::Tf32, cta_group(1), kF32 | type_bits(2, 2), {64, 128}, steps(8, 256, 8)},
        Shapes{"tf32_sparse", MmaKind::Tf32, sparse(2), kF32 | type_bits(2, 2) | 4, {128, 256}, steps(16, 256, 16)},
        Shapes{"f8", MmaKind::F8F6F4, cta_group(1), kF32, {64, 128}, steps(8, 256, 8)},
        Shapes{"f8_n_major", MmaKind::F8F6F4, cta_group(1), kF32 | kTransposeB, {64, 128}, steps(16, 256, 16)},
        Shapes{"f8_n_major_pair", MmaKind::F8F6F4, cta_group(2), kF32 | kTransposeB, {128, 256}, steps(32, 256, 32)},
        Shapes{"i8", MmaKind::I8, cta_group(1), 2 << 4, {64, 128}, int8_columns()},
        Shapes{"i8_pair", MmaKind::I8, cta_group(2), 2 << 4, {128, 256}, steps(32, 256, 32)},
        Shapes{"mxf8", MmaKind::Mxf8f6f4, cta_group(1), 1 << 23, {128}, steps(8, 256, 8)},
        Shapes{"mxf8_pair", MmaKind::Mxf8f6f4, cta_group(2), 1 << 23, {128, 256}, steps(16, 256, 16)},
        Shapes{"mxf8_sparse_pair", MmaKind::Mxf8f6f4, sparse(2), 1 << 23 | 4, {256}, steps(16, 256, 16)},
        Shapes{"nvf4_k96", MmaKind::Mxf4nvf4, cta_group(2), type_bits(1, 1) | 1u << 31, {256}, steps(16, 256, 16)}),
    [](const auto& info) { return std::string(info.param.name); });

struct BadInstruction {
  const char* name;
  MmaKind kind;
  uint32_t bits;
  MmaForm form;
  const char* text;
};
class BadInstructionDescriptor : public ::testing::TestWithParam<BadInstruction> {};
TEST_P(BadInstructionDescriptor, IsExplained) {
  const BadInstruction& b = GetParam();
  EXPECT_THAT(check(b.kind, b.bits, b.form), ElementsAre(b.text));
}
MmaForm a_in_tensor_memory() {
  MmaForm form;
  form.a_in_tensor_memory = true;
  return form;
}
INSTANTIATE_TEST_SUITE_P(
    Fields, BadInstructionDescriptor,
    ::testing::Values(
        BadInstruction{
            "m",
            MmaKind::F16,
            kF32 | shape_bits(48, 256),
            {},
            "instruction descriptor: M = 48 (bits 28:24 hold 3); kind::f16 with cta_group::1 takes 64 or 128"},
        BadInstruction{
            "m_of_a_pair",
            MmaKind::F16,
            kF32 | shape_bits(256, 256),
            {},
            "instruction descriptor: M = 256 (bits 28:24 hold 16); kind::f16 with cta_group::1 takes 64 or 128"},
        BadInstruction{
            "m_of_one_cta", MmaKind::F16, kF32 | shape_bits(64, 256), cta_group(2),
            "instruction descriptor: M = 64 (bits 28:24 hold 4); kind::f16 with cta_group::2 takes 128 or 256, "
            "the rows of both CTAs"},
        BadInstruction{
            "n",
            MmaKind::F16,
            kF32 | shape_bits(128, 0),
            {},
            "instruction descriptor: N = 0 (bits 22:17); kind::f16 with cta_group::1 takes 8 to 256 in steps of "
            "8"},
        BadInstruction{
            "sparse",
            MmaKind::F16,
            kBf16 | 4,
            {},
            "instruction descriptor: sparsity = 1 (bit 2); a sparse A is for tcgen05.mma.sp; this is tcgen05.mma"},
        BadInstruction{"dense", MmaKind::F16, kBf16, sparse(1),
                       "instruction descriptor: sparsity = 0 (bit 2); tcgen05.mma.sp needs 1 here"},
        BadInstruction{
            "selector",
            MmaKind::F16,
            kBf16 | 2,
            {},
            "note: instruction descriptor: sparsity selector = 2 (bits 1:0); it has no meaning where bit 2 says "
            "that A is dense"},
        BadInstruction{"selector_of_f8", MmaKind::F8F6F4, kF32 | shape_bits(128, 64) | 4 | 1, sparse(1),
                       "instruction descriptor: sparsity selector = 1 (bits 1:0); kind::f8f6f4 takes 0"},
        BadInstruction{"saturate",
                       MmaKind::F16,
                       kBf16 | 8,
                       {},
                       "instruction descriptor: saturate = 1 (bit 3); only kind::i8 saturates"},
        BadInstruction{
            "d_of_bf16",
            MmaKind::F16,
            kBf16 & ~kF32,
            {},
            "instruction descriptor: D type = f16 (bits 5:4 hold 0); D of type f16 goes with A and B of type f16 "
            "only; bf16 takes f32 (1)"},
        BadInstruction{"d_integer",
                       MmaKind::F16,
                       (kBf16 & ~kF32) | 2 << 4,
                       {},
                       "instruction descriptor: D type = s32 (bits 5:4 hold 2); kind::f16 takes f16 (0) or f32 (1)"},
        BadInstruction{"d_of_tf32",
                       MmaKind::Tf32,
                       kTf32 & ~kF32,
                       {},
                       "instruction descriptor: D type = f16 (bits 5:4 hold 0); kind::tf32 takes f32 (1)"},
        BadInstruction{"d_of_i8",
                       MmaKind::I8,
                       kF32 | shape_bits(128, 64),
                       {},
                       "instruction descriptor: D type = f32 (bits 5:4 hold 1); kind::i8 takes s32 (2)"},
        BadInstruction{"bit_6",
                       MmaKind::F16,
                       kBf16 | 1 << 6,
                       {},
                       "instruction descriptor: reserved = 1 (bit 6); this bit must be 0"},
        BadInstruction{"a_type",
                       MmaKind::F16,
                       kF32 | type_bits(2, 1) | shape_bits(128, 256),
                       {},
                       "instruction descriptor: A type = 2 (bits 9:7); kind::f16 takes f16 (0) or bf16 (1)"},
        BadInstruction{"b_type",
                       MmaKind::Tf32,
                       kF32 | type_bits(2, 0) | shape_bits(128, 256),
                       {},
                       "instruction descriptor: B type = 0 (bits 12:10); kind::tf32 takes tf32 (2)"},
        BadInstruction{"negate_i8",
                       MmaKind::I8,
                       2 << 4 | shape_bits(128, 64) | 1 << 13,
                       {},
                       "instruction descriptor: negate A = 1 (bit 13); kind::i8 cannot negate"},
        BadInstruction{"bit_23",
                       MmaKind::F16,
                       kBf16 | 1 << 23,
                       {},
                       "instruction descriptor: reserved = 1 (bit 23); this bit must be 0"},
        BadInstruction{"bit_29",
                       MmaKind::F16,
                       kBf16 | 1 << 29,
                       {},
                       "instruction descriptor: reserved = 1 (bit 29); this bit must be 0"},
        BadInstruction{
            "shift",
            MmaKind::F16,
            kBf16 | 2u << 30,
            {},
            "note: instruction descriptor: maximum shift of B = 16 (bits 31:30 hold 2); it has a meaning with .ws "
            "only"},
        BadInstruction{
            "transposed_tensor_memory", MmaKind::F16, kBf16 | kTransposeA, a_in_tensor_memory(),
            "instruction descriptor: transpose A = 1 (bit 15); an A in tensor memory is row-major (PTX Table 53): "
            "it cannot be transposed"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(InstructionDescriptor, ReportsFieldValueAndRule) {
  EXPECT_THAT(
      check_instruction_descriptor(decode_instruction_descriptor(MmaKind::F16, kF32 | shape_bits(48, 12 * 8)), {}),
      ElementsAre(AllOf(Field(&DescriptorProblem::field, "M"), Field(&DescriptorProblem::value, 3),
                        Field(&DescriptorProblem::rule, "kind::f16 with cta_group::1 takes 64 or 128"),
                        Field(&DescriptorProblem::advisory, false))));
}

/// Fields of a shared memory descriptor, as bytes.
struct Smem {
  Swizzle swizzle = Swizzle::None;
  uint32_t lbo = 0, sbo = 0, start = 0, base_offset = 0;

  uint64_t bits() const {
    return (start & 0x3ffff) >> 4 | uint64_t{(lbo & 0x3ffff) >> 4} << 16 | uint64_t{(sbo & 0x3ffff) >> 4} << 32 |
           uint64_t{1} << 46 | uint64_t{base_offset} << 49 | static_cast<uint64_t>(swizzle) << 61;
  }
  SmemDescriptor decode() const { return decode_smem_descriptor(bits()); }
};
/// The operand of a dense instruction with cta_group::1.
MatrixOperand operand(uint32_t element_bits, bool mn_major, uint32_t rows, char name = 'A') {
  MatrixOperand o;
  o.name = name;
  o.kind = element_bits == 32 ? MmaKind::Tf32 : element_bits == 16 ? MmaKind::F16 : MmaKind::F8F6F4;
  o.type = element_bits == 32 ? MmaType::Tf32 : element_bits == 16 ? MmaType::Bf16 : MmaType::E4m3;
  o.mn_major = mn_major;
  o.element_bits = element_bits;
  o.rows = rows;
  o.k = 256 / element_bits;
  return o;
}

TEST(SmemDescriptor, DecodesEachField) {
  const SmemDescriptor d = Smem{Swizzle::B64, 0x12340, 0x3fff0, 0x2abc0, 5}.decode();
  EXPECT_EQ(d.start, 0x2abc0u);
  EXPECT_EQ(d.leading_byte_offset, 0x12340u);
  EXPECT_EQ(d.stride_byte_offset, 0x3fff0u);
  EXPECT_EQ(d.base_offset, 5);
  EXPECT_EQ(d.swizzle, Swizzle::B64);
  EXPECT_FALSE(d.absolute_leading);
  EXPECT_TRUE(decode_smem_descriptor(uint64_t{1} << 52).absolute_leading);
}

TEST(SmemDescriptor, OperandsFollowTheInstruction) {
  const InstructionDescriptor d =
      decode_instruction_descriptor(MmaKind::F16, kF32 | shape_bits(256, 128) | kTransposeB);
  const MatrixOperand a = operand_a(d, cta_group(2)), b = operand_b(d, cta_group(2));
  EXPECT_EQ(a.rows, 128u);
  EXPECT_FALSE(a.mn_major);
  EXPECT_EQ(b.rows, 64u);
  EXPECT_TRUE(b.mn_major);
  EXPECT_EQ(b.k, 16u);
  EXPECT_EQ(a.element_bits, 16u);
  const InstructionDescriptor s = decode_instruction_descriptor(MmaKind::F16, kF32 | shape_bits(128, 128) | 4);
  EXPECT_EQ(operand_a(s, {}).k, 16u);
  EXPECT_EQ(operand_b(s, {}).k, 32u);
  EXPECT_EQ(operand_b(decode_instruction_descriptor(MmaKind::Mxf4, 0), {}).element_bits, 4u);
}

TEST(SmemDescriptor, AcceptsTheUsualTiles) {
  EXPECT_THAT(check_smem_descriptor(Smem{Swizzle::B128, 16, 1024, 0x8000}.decode(), operand(16, false, 128)),
              IsEmpty());
  EXPECT_THAT(check_smem_descriptor(Smem{Swizzle::B128, 0, 1024, 0x8060}.decode(), operand(16, false, 128)), IsEmpty());
  EXPECT_THAT(check_smem_descriptor(Smem{Swizzle::None, 2048, 128}.decode(), operand(16, false, 128)), IsEmpty());
  EXPECT_THAT(check_smem_descriptor(Smem{Swizzle::B128, 8192, 1024}.decode(), operand(16, true, 256)), IsEmpty());
  EXPECT_THAT(check_smem_descriptor(Smem{Swizzle::B128Atom32, 8192, 512}.decode(), operand(32, true, 256)), IsEmpty());
  EXPECT_THAT(check_smem_descriptor(Smem{Swizzle::B32, 0, 256}.decode(), operand(32, false, 64)), IsEmpty());
  EXPECT_THAT(check_smem_descriptor(Smem{Swizzle::None, 0, 0}.decode(), operand(16, true, 8)),
              ElementsAre(Field(&DescriptorProblem::field, "LBO")));
}

// Tables 51 and 54: which swizzle goes with which order and element size.
TEST(SmemDescriptor, SwizzleGoesWithMajorAndElementSize) {
  for (const uint32_t element_bits : {8u, 16u, 32u}) {
    for (const bool mn_major : {false, true}) {
      for (uint32_t code = 0; code < 8; code++) {
        const bool exists = code == 0 || code == 1 || code == 2 || code == 4 || code == 6;
        const bool fits = mn_major && element_bits == 32 ? code == 1 : code != 1;
        const Smem smem{static_cast<Swizzle>(code), 16384, 1024};
        bool bad = false;
        for (const DescriptorProblem& p : check_smem_descriptor(smem.decode(), operand(element_bits, mn_major, 64))) {
          bad |= p.field == "swizzle" && !p.advisory;
        }
        EXPECT_EQ(bad, !(exists && fits)) << element_bits << " bits, mn_major " << mn_major << ", code " << code;
      }
    }
  }
}

struct BadSmem {
  const char* name;
  uint64_t bits;
  MatrixOperand operand;
  const char* text;
};
class BadSmemDescriptor : public ::testing::TestWithParam<BadSmem> {};
TEST_P(BadSmemDescriptor, IsExplained) {
  const BadSmem& b = GetParam();
  EXPECT_THAT(texts(check_smem_descriptor(decode_smem_descriptor(b.bits), b.operand)), ElementsAre(b.text));
}
constexpr uint64_t bit(int n) { return uint64_t{1} << n; }
const Smem kUsual{Swizzle::B128, 16, 1024};
INSTANTIATE_TEST_SUITE_P(
    Fields, BadSmemDescriptor,
    ::testing::Values(
        BadSmem{"bit_14", kUsual.bits() | bit(14), operand(16, false, 128),
                "shared memory descriptor of A: reserved = 1 (bits 15:14); these bits must be 0"},
        BadSmem{"bit_31", kUsual.bits() | bit(31), operand(16, false, 128),
                "shared memory descriptor of A: reserved = 2 (bits 31:30); these bits must be 0"},
        BadSmem{"constant", kUsual.bits() & ~bit(46), operand(16, false, 128, 'B'),
                "shared memory descriptor of B: constant = 0 (bits 48:46); these bits must hold 1: the descriptor "
                "version of "
                "tcgen05"},
        BadSmem{"bit_60", kUsual.bits() | bit(60), operand(16, false, 128),
                "shared memory descriptor of A: reserved = 128 (bits 60:53); these bits must be 0"},
        BadSmem{"swizzle", kUsual.bits() | bit(61), operand(16, false, 128),
                "shared memory descriptor of A: swizzle = 3 (bits 63:61); the codes are 0 (none), 1 (128 bytes with "
                "32-byte "
                "atoms), 2 (128 bytes), 4 (64 bytes) and 6 (32 bytes)"},
        BadSmem{"mn_major_tf32", Smem{Swizzle::B128, 8192, 1024}.bits(), operand(32, true, 128),
                "shared memory descriptor of A: swizzle = 128-byte swizzle (bits 63:61 hold 2); an MN-major matrix of "
                "32-bit "
                "elements (A) takes 128-byte swizzle with 32-byte atoms (1) only"},
        BadSmem{"atom32_bf16", Smem{Swizzle::B128Atom32, 8192, 512}.bits(), operand(16, true, 128),
                "shared memory descriptor of A: swizzle = 128-byte swizzle with 32-byte atoms (bits 63:61 hold 1); "
                "128-byte "
                "swizzle with 32-byte atoms is for MN-major tf32; A has 16-bit elements"},
        BadSmem{"atom32_k_major", Smem{Swizzle::B128Atom32, 16, 1024}.bits(), operand(32, false, 128),
                "shared memory descriptor of A: swizzle = 128-byte swizzle with 32-byte atoms (bits 63:61 hold 1); "
                "128-byte "
                "swizzle with 32-byte atoms is for MN-major tf32; A is K-major (transpose bit 0)"},
        BadSmem{"absolute", kUsual.bits() | bit(52), operand(16, false, 128),
                "shared memory descriptor of A: LBO mode = 1 (bit 52); an absolute LBO is for K = 96 (sm_103a) only; "
                "here LBO "
                "is a distance: 0"},
        BadSmem{
            "no_lbo", Smem{Swizzle::None, 0, 128}.bits(), operand(16, false, 128),
            "note: shared memory descriptor of A: LBO = 0 (bits 29:16); without swizzle a K-major matrix needs it: the "
            "distance from one 16-byte column of K to the next (16 x rows in a tile of 16-byte columns); here it is 0, "
            "so "
            "that elements of A share bytes (2048 elements in 2048 bytes instead of 4096)"},
        BadSmem{
            "small_sbo", Smem{Swizzle::B128, 16, 128}.bits(), operand(16, false, 128),
            "note: shared memory descriptor of A: SBO = 128 (bits 45:32 hold 8); it is the distance from 8 rows to the "
            "next 8, and 8 lines of 128 bytes take 1024, so that elements of A share bytes (2048 elements in 736 "
            "bytes "
            "instead of 4096)"},
        BadSmem{
            "mn_no_lbo", Smem{Swizzle::B128, 0, 1024}.bits(), operand(16, true, 128),
            "note: shared memory descriptor of A: LBO = 0 (bits 29:16); it is the distance from 128 bytes along MN to "
            "the "
            "next 128; here it is 0, so that elements of A share bytes (2048 elements in 2048 bytes instead of 4096)"},
        BadSmem{
            "mn_small_sbo", Smem{Swizzle::B128, 2048, 16}.bits(), operand(16, true, 128),
            "note: shared memory descriptor of A: SBO = 16 (bits 45:32 hold 1); it is the distance from 8 columns k to "
            "the next 8, and 8 lines of 128 bytes take 1024, so that elements of A share bytes (2048 elements in 2080 "
            "bytes instead of 4096)"},
        BadSmem{"mn_swapped", Smem{Swizzle::B128, 1024, 1024}.bits(), operand(16, true, 128),
                "note: shared memory descriptor of A: SBO = 1024 (bits 45:32 hold 64); with LBO = 1024, the two "
                "strides lead "
                "to the same places, so that elements of A share bytes (2048 elements in 3072 bytes instead of 4096)"},
        BadSmem{
            "base_offset", Smem{Swizzle::B128, 16, 1024, 0x480, 1}.bits(), operand(16, false, 128),
            "note: shared memory descriptor of A: base offset = 1 (bits 51:49); the ISA does not say how it enters the "
            "address; here it is subtracted from address bits 9:7 before the XOR"},
        BadSmem{
            "start", Smem{Swizzle::B128, 16, 1024, 0x480}.bits(), operand(16, false, 128),
            "note: shared memory descriptor of A: start address = 0x480 (bits 13:0 hold 72); with base offset 0 the "
            "pattern of 128-byte swizzle starts at a multiple of 1024 bytes, and this address is not in the first line "
            "of "
            "one"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(SmemDescriptor, AbsoluteLeadingOffsetNeedsK96) {
  MatrixOperand k96 = operand(8, false, 128);
  k96.kind = MmaKind::Mxf4;
  k96.element_bits = 4;
  k96.k = 96;
  EXPECT_THAT(check_smem_descriptor(decode_smem_descriptor(kUsual.bits() | bit(52)), k96), IsEmpty());
  EXPECT_THAT(
      texts(check_smem_descriptor(decode_smem_descriptor(Smem{Swizzle::B64, 16, 512}.bits() | bit(52)), k96)),
      ElementsAre("shared memory descriptor of A: LBO mode = 1 (bit 52); an absolute LBO needs 128-byte swizzle with "
                  "16-byte atoms, a K-major matrix and base offset 0"));
}

// ---- Addresses, by CuTe layouts ----

/// One mode of a CuTe layout: (shape…):(stride…), strides in elements. The last extent is open.
struct Mode {
  std::vector<uint32_t> shape, stride;

  uint32_t operator()(uint32_t index) const {
    uint32_t offset = 0;
    for (size_t i = 0; i < shape.size(); i++) {
      const bool last = i + 1 == shape.size();
      offset += (last ? index : index % shape[i]) * stride[i];
      index /= shape[i];
    }
    return offset;
  }
};
/// CuTe's Swizzle<B, M, S> on byte addresses: bits [M+S, M+S+B) are XORed into [M, M+B).
uint32_t cute_swizzle(uint32_t bits, uint32_t base, uint32_t shift, uint32_t address) {
  const uint32_t mask = ((1u << bits) - 1) << (base + shift);
  return address ^ (address & mask) >> shift;
}
struct Canonical {
  Mode mn, k;
  uint32_t swizzle_bits, swizzle_base, swizzle_shift;

  uint32_t address(uint32_t start, uint32_t element_bytes, uint32_t row, uint32_t column) const {
    return cute_swizzle(swizzle_bits, swizzle_base, swizzle_shift, start + (mn(row) + k(column)) * element_bytes);
  }
};
/// The table of §9.7.16.3.3, and the 32-byte atom of Table 55 (8x4) in the same style. Strides in elements.
Canonical canonical(Swizzle swizzle, bool mn_major, uint32_t element_bytes, uint32_t lbo, uint32_t sbo) {
  const uint32_t t = 16 / element_bytes, l = lbo / element_bytes, s = sbo / element_bytes;
  if (mn_major) {
    switch (swizzle) {
      case Swizzle::None:
        return {{{t, 1, 99}, {1, t, s}}, {{8, 99}, {t, l}}, 0, 4, 3};
      case Swizzle::B32:
        return {{{t, 2, 99}, {1, t, l}}, {{8, 99}, {2 * t, s}}, 1, 4, 3};
      case Swizzle::B64:
        return {{{t, 4, 99}, {1, t, l}}, {{8, 99}, {4 * t, s}}, 2, 4, 3};
      case Swizzle::B128:
        return {{{t, 8, 99}, {1, t, l}}, {{8, 99}, {8 * t, s}}, 3, 4, 3};
      case Swizzle::B128Atom32:
        return {{{t, 8, 99}, {1, t, l}}, {{4, 99}, {8 * t, s}}, 2, 5, 2};
    }
  }
  switch (swizzle) {
    case Swizzle::B32:
      return {{{8, 99}, {2 * t, s}}, {{t, 99}, {1, t}}, 1, 4, 3};
    case Swizzle::B64:
      return {{{8, 99}, {4 * t, s}}, {{t, 99}, {1, t}}, 2, 4, 3};
    case Swizzle::B128:
      return {{{8, 99}, {8 * t, s}}, {{t, 99}, {1, t}}, 3, 4, 3};
    default:
      return {{{8, 99}, {t, s}}, {{t, 99}, {1, l}}, 0, 4, 3};
  }
}

/// A descriptor that some instruction may have.
struct Tile {
  Smem smem;
  MatrixOperand operand;
};
std::vector<Tile> legal_tiles() {
  std::mt19937 random(7);
  const auto units_below = [&](uint32_t limit) { return static_cast<uint32_t>(random() % limit) * 16; };
  std::vector<Tile> tiles;
  for (const uint32_t element_bits : {8u, 16u, 32u}) {
    for (const bool mn_major : {false, true}) {
      for (const Swizzle swizzle : {Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128, Swizzle::B128Atom32}) {
        const bool atom32 = swizzle == Swizzle::B128Atom32;
        if (atom32 != (mn_major && element_bits == 32)) continue;
        for (const uint32_t rows : {16u, 64u, 128u, 256u}) {
          for (int variant = 0; variant < 4; variant++) {
            Smem smem{swizzle, units_below(1024), units_below(1024), units_below(2048)};
            if (variant == 0) smem = {swizzle, 4096, 1024, 0x4000};
            tiles.push_back({smem, operand(element_bits, mn_major, rows)});
          }
        }
      }
    }
  }
  return tiles;
}

TEST(OperandAddress, IsTheCanonicalLayoutThenTheSwizzle) {
  for (const Tile& tile : legal_tiles()) {
    const MatrixOperand& o = tile.operand;
    const Smem& s = tile.smem;
    const Canonical layout = canonical(s.swizzle, o.mn_major, o.element_bits / 8, s.lbo, s.sbo);
    for (uint32_t row = 0; row < o.rows; row++) {
      for (uint32_t k = 0; k < o.k; k++) {
        ASSERT_EQ(operand_address(s.decode(), o.mn_major, o.element_bits, row, k),
                  layout.address(s.start, o.element_bits / 8, row, k))
            << to_string(s.swizzle) << ", mn_major " << o.mn_major << ", bits " << o.element_bits << ", lbo " << s.lbo
            << ", sbo " << s.sbo << ", row " << row << ", k " << k;
      }
    }
  }
}

// The worked examples of §9.7.16.3.3: the exact layout, and the fields of the descriptor that are said to describe it.
struct Example {
  const char* name;
  Canonical layout;
  uint32_t element_bytes, rows, columns;
  bool mn_major;
  Swizzle swizzle;
  uint32_t encoded_lbo, encoded_sbo;
};
class WorkedExample : public ::testing::TestWithParam<Example> {};
TEST_P(WorkedExample, HasTheAddressesOfTheIsa) {
  const Example& e = GetParam();
  const SmemDescriptor d = Smem{e.swizzle, e.encoded_lbo * 16, e.encoded_sbo * 16, 0x1000}.decode();
  for (uint32_t row = 0; row < e.rows; row++) {
    for (uint32_t k = 0; k < e.columns; k++) {
      EXPECT_EQ(operand_address(d, e.mn_major, e.element_bytes * 8, row, k),
                e.layout.address(0x1000, e.element_bytes, row, k));
    }
  }
}
INSTANTIATE_TEST_SUITE_P(
    Isa, WorkedExample,
    ::testing::Values(
        Example{"k_major_none_tf32",
                {{{8, 2}, {4, 32}}, {{4, 4}, {1, 64}}, 0, 4, 3},
                4,
                16,
                16,
                false,
                Swizzle::None,
                16,
                8},
        Example{
            "k_major_32_tf32", {{{8, 2}, {8, 64}}, {{4, 4}, {1, 4}}, 1, 4, 3}, 4, 16, 16, false, Swizzle::B32, 1, 16},
        Example{"mn_major_none_bf16",
                {{{8, 1, 2}, {1, 8, 64}}, {{8, 2}, {8, 128}}, 0, 4, 3},
                2,
                16,
                16,
                true,
                Swizzle::None,
                16,
                8},
        Example{"mn_major_32_bf16",
                {{{8, 2, 2}, {1, 8, 128}}, {{8, 2}, {16, 256}}, 1, 4, 3},
                2,
                32,
                16,
                true,
                Swizzle::B32,
                16,
                32},
        Example{"mn_major_64_bf16",
                {{{8, 4, 2}, {1, 8, 256}}, {{8, 2}, {32, 512}}, 2, 4, 3},
                2,
                64,
                16,
                true,
                Swizzle::B64,
                32,
                64}),
    [](const auto& info) { return std::string(info.param.name); });

// §5.5.7: 16-byte chunk x of 128-byte line y goes to chunk x ^ (y mod 8) of that line. A K-major tile of 64 bf16 by 64
// rows is such a copy, and a step of 16 along K advances the start address by 32 bytes.
TEST(OperandAddress, FindsWhatATensorCopyPlaced) {
  constexpr uint32_t kTile = 0x2400;
  for (uint32_t step = 0; step < 4; step++) {
    const SmemDescriptor d = Smem{Swizzle::B128, 16, 1024, kTile + 32 * step}.decode();
    for (uint32_t row = 0; row < 64; row++) {
      for (uint32_t k = 0; k < 16; k++) {
        const uint32_t byte_in_row = (step * 16 + k) * 2;
        const uint32_t line = kTile / 128 + row, chunk = (byte_in_row / 16) ^ (line % 8);
        EXPECT_EQ(operand_address(d, false, 16, row, k), line * 128 + chunk * 16 + byte_in_row % 16);
      }
    }
  }
}

TEST(OperandAddress, BaseOffsetMovesThePattern) {
  // The pattern starts at line 1 of an aligned 1024 bytes: the tile's row r is its line r.
  const SmemDescriptor d = Smem{Swizzle::B128, 16, 1024, 0x1080, 1}.decode();
  for (uint32_t row = 0; row < 16; row++) {
    for (uint32_t k = 0; k < 16; k++) {
      EXPECT_EQ(operand_address(d, false, 16, row, k), 0x1080 + row * 128 + ((k / 8) ^ (row % 8)) * 16 + k % 8 * 2);
    }
  }
}

TEST(OperandAddress, PackedFloat4HasTwoElementsAByte) {
  const SmemDescriptor d = Smem{Swizzle::None, 2048, 128, 0x100}.decode();
  EXPECT_EQ(operand_address(d, false, 4, 9, 0), 0x100u + 128 + 16);
  EXPECT_EQ(operand_address(d, false, 4, 9, 31), 0x100u + 128 + 16 + 15);
  EXPECT_EQ(operand_address(d, false, 4, 9, 32), 0x100u + 128 + 16 + 2048);
}

// ---- Footprints ----

std::vector<ByteRun> slow_footprint(const Tile& tile) {
  const MatrixOperand& o = tile.operand;
  const uint32_t element_bytes = o.element_bits / 8;
  const Canonical layout = canonical(tile.smem.swizzle, o.mn_major, element_bytes, tile.smem.lbo, tile.smem.sbo);
  std::set<uint32_t> bytes;
  for (uint32_t row = 0; row < o.rows; row++) {
    for (uint32_t k = 0; k < o.k; k++) {
      for (uint32_t b = 0; b < element_bytes; b++)
        bytes.insert(layout.address(tile.smem.start, element_bytes, row, k) + b);
    }
  }
  std::vector<ByteRun> runs;
  for (const uint32_t byte : bytes) {
    if (!runs.empty() && runs.back().offset + runs.back().bytes == byte) {
      runs.back().bytes++;
    } else {
      runs.push_back({byte, 1});
    }
  }
  return runs;
}

TEST(Footprint, IsTheBytesOfAllElements) {
  bool far_apart = false;
  for (const Tile& tile : legal_tiles()) {
    const std::vector<ByteRun> runs = footprint(tile.smem.decode(), tile.operand);
    ASSERT_EQ(runs, slow_footprint(tile)) << to_string(tile.smem.swizzle) << ", mn_major " << tile.operand.mn_major
                                          << ", lbo " << tile.smem.lbo << ", sbo " << tile.smem.sbo;
    far_apart |= runs.back().offset - runs.front().offset > 256 * 1024;
  }
  EXPECT_TRUE(far_apart) << "no tile is wider than the shared memory that a descriptor can address";
}

TEST(Footprint, OfAWholeTileIsOneRun) {
  // 8 rows of 128 bytes hold 4 steps along K; one step covers a quarter of each row.
  EXPECT_EQ(footprint(Smem{Swizzle::B32, 0, 256, 0x400}.decode(), operand(16, false, 128)),
            (std::vector<ByteRun>{{0x400, 4096}}));
  EXPECT_EQ(
      footprint(Smem{Swizzle::B128, 0, 1024, 0x400}.decode(), operand(16, false, 8)),
      (std::vector<ByteRun>{
          {0x400, 32}, {0x480, 32}, {0x520, 32}, {0x5a0, 32}, {0x640, 32}, {0x6c0, 32}, {0x760, 32}, {0x7e0, 32}}));
}

TEST(OperandUnits, ComeInTheOrderOfTheMatrix) {
  for (const Tile& tile : legal_tiles()) {
    const MatrixOperand& o = tile.operand;
    const uint32_t unit_elements = 128 / o.element_bits;
    std::vector<uint32_t> units(3, 1), expected;
    operand_units(tile.smem.decode(), o, units);
    if (o.mn_major) {
      for (uint32_t k = 0; k < o.k; k++) {
        for (uint32_t row = 0; row < o.rows; row += unit_elements) {
          expected.push_back(operand_address(tile.smem.decode(), true, o.element_bits, row, k));
        }
      }
    } else {
      for (uint32_t row = 0; row < o.rows; row++) {
        for (uint32_t k = 0; k < o.k; k += unit_elements) {
          expected.push_back(operand_address(tile.smem.decode(), false, o.element_bits, row, k));
        }
      }
    }
    ASSERT_EQ(units, expected);
  }
}

// The examples of PTX §9.7.16.4.3, whose masks are written with the last column first.
TEST(ZeroColumns, AreThoseOfTheExamples) {
  const auto descriptor = [](uint64_t start, uint64_t first, bool generated, uint64_t skip, uint64_t use) {
    return decode_zero_column_mask(start | first << 32 | uint64_t{generated} << 39 | skip << 40 | use << 48);
  };
  const auto part = [](const ZeroColumnMask& mask, uint32_t m, uint32_t n, uint32_t from, uint32_t count) {
    std::string s;
    const std::array<uint64_t, 4> columns = mask.columns(m, n);
    for (uint32_t c = from + count; c-- > from;) s += (columns[c / 64] >> c % 64 & 1) != 0 ? '1' : '0';
    return s;
  };
  EXPECT_EQ(descriptor(0, 0, false, 4, 3).columns(128, 256), (std::array<uint64_t, 4>{}));
  EXPECT_EQ(part(descriptor(0, 0, true, 2, 3), 128, 256, 0, 14), "11100001110000");
  EXPECT_EQ(part(descriptor(0, 0, true, 2, 3), 128, 256, 14 * 9, 14), "11100001110000") << "beyond 64 columns";
  const ZeroColumnMask third = descriptor(0, 1, true, 2, 3);
  EXPECT_EQ(part(third, 64, 128, 0, 17), "11100001110000111");
  EXPECT_EQ(part(third, 64, 128, 64, 18), "000011100001110000");
  const ZeroColumnMask fourth = descriptor(0x01020100, 3, true, 2, 3);
  EXPECT_EQ(part(fourth, 32, 128, 0, 14), "00001110000111");
  EXPECT_EQ(part(fourth, 32, 128, 32, 13), "0000111000011");
  EXPECT_EQ(part(fourth, 32, 128, 64, 12), "111000011100");
  EXPECT_EQ(part(fourth, 32, 128, 96, 13), "1110000111000");
}

TEST(ZeroColumns, WhatTheIsaLeavesOpenIsSaid) {
  const auto texts = [](uint64_t bits) {
    std::vector<std::string> list;
    for (const DescriptorProblem& p : check_zero_column_mask(decode_zero_column_mask(bits)))
      list.push_back((p.advisory ? "note: " : "") + p.text);
    return list;
  };
  EXPECT_THAT(texts(0x00ffff0f'ffffffff), IsEmpty());
  EXPECT_THAT(texts(uint64_t{1} << 39), ElementsAre(HasSubstr("note: zero-column mask descriptor: non-zero mask = 1")));
  EXPECT_THAT(texts(uint64_t{0x3f} << 56), ElementsAre(HasSubstr("column shift = 63 (bits 61:56)")));
  EXPECT_THAT(texts(uint64_t{7} << 36 | uint64_t{3} << 62),
              ElementsAre(HasSubstr("(bits 38:36)"), HasSubstr("(bits 63:62)")));
}

}  // namespace
}  // namespace handoff::async
