// Every rule of cuTensorMapEncodeTiled, images, and the swizzles against the tables of the manual.
#include "grader/emulator/async/tensor_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

namespace handoff::async {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// 64 × 32 × 4 bfloat16, box 64 × 8 × 1: valid.
TensorMapArgs valid() {
  TensorMapArgs a;
  a.tensor_data_type = TensorDataType::Bfloat16;
  a.tensor_rank = 3;
  a.global_address = 0x7f0000001000;
  a.global_dim = {64, 32, 4};
  a.global_strides = {128, 4096};
  a.box_dim = {64, 8, 1};
  a.swizzle = TensorSwizzle::B128;
  return a;
}

std::string problem(const TensorMapArgs& a) {
  TensorMapImage image;
  image.fill(std::byte{0xee});
  const TensorMapImage before = image;
  std::string text = encode_tiled(a, &image);
  EXPECT_EQ(text.empty(), image != before) << text;
  return text;
}

TEST(TensorMapTest, AValidMapIsEncodedAndDecoded) {
  for (uint32_t rank = 1; rank <= 5; rank++) {
    TensorMapArgs a;
    a.tensor_data_type = TensorDataType::Float16;
    a.tensor_rank = rank;
    a.global_address = 0x7f00deadbe00;
    a.global_dim = {uint64_t{1} << 32, 77, 1, 3, 0xffffffff};
    a.global_strides = {(uint64_t{1} << 40) - 16, 16, 160, 0};
    a.box_dim = {256, 1, 17, 64, 2};
    a.element_strides = {1, 2, 8, 1, 3};
    a.l2_promotion = TensorL2Promotion::L2_256B;
    a.oob_fill = TensorOobFill::NanRequestZeroFma;
    TensorMapImage image;
    ASSERT_EQ(encode_tiled(a, &image), "");
    TensorMapArgs b;
    ASSERT_EQ(decode_tiled(image, &b), "");
    EXPECT_EQ(b.tensor_data_type, a.tensor_data_type);
    EXPECT_EQ(b.tensor_rank, rank);
    EXPECT_EQ(b.global_address, a.global_address);
    for (uint32_t i = 0; i < rank; i++) {
      EXPECT_EQ(b.global_dim[i], a.global_dim[i]);
      EXPECT_EQ(b.box_dim[i], a.box_dim[i]);
      EXPECT_EQ(b.element_strides[i], a.element_strides[i]);
      if (i > 0) {
        EXPECT_EQ(b.global_strides[i - 1], a.global_strides[i - 1]);
      }
    }
    EXPECT_EQ(b.interleave, a.interleave);
    EXPECT_EQ(b.swizzle, a.swizzle);
    EXPECT_EQ(b.l2_promotion, a.l2_promotion);
    EXPECT_EQ(b.oob_fill, a.oob_fill);
  }
}

TEST(TensorMapTest, EveryTypeAndSwizzle) {
  for (uint32_t type = 0; type <= 12; type++) {
    for (uint32_t swizzle = 0; swizzle <= 6; swizzle++) {
      TensorMapArgs a = valid();
      a.tensor_data_type = static_cast<TensorDataType>(type);
      a.swizzle = static_cast<TensorSwizzle>(swizzle);
      a.box_dim[0] = 32 / element_bytes(a.tensor_data_type);
      EXPECT_EQ(problem(a), "") << to_string(a.tensor_data_type) << " " << to_string(a.swizzle);
    }
  }
  EXPECT_EQ(to_string(TensorDataType::Bfloat16), "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16");
  EXPECT_EQ(to_string(TensorDataType::U6Align16B), "CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B");
  EXPECT_EQ(to_string(TensorSwizzle::B128Atom64B), "CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B");
  EXPECT_EQ(to_string(static_cast<TensorSwizzle>(9)), "9");
}

struct Refused {
  std::function<void(TensorMapArgs&)> change;
  const char* argument;  ///< with its value
  const char* rule;
};
class TensorMapRuleTest : public ::testing::TestWithParam<Refused> {};
TEST_P(TensorMapRuleTest, NamesTheArgumentItsValueAndTheRule) {
  TensorMapArgs a = valid();
  ASSERT_EQ(problem(a), "");
  GetParam().change(a);
  EXPECT_THAT(problem(a), AllOf(HasSubstr(GetParam().argument), HasSubstr(GetParam().rule)));
}
using A = TensorMapArgs;
INSTANTIATE_TEST_SUITE_P(
    All, TensorMapRuleTest,
    ::testing::Values(
        Refused{[](A& a) { a.tensor_data_type = static_cast<TensorDataType>(16); }, "tensorDataType is 16", "0 to 15"},
        Refused{[](A& a) { a.interleave = static_cast<TensorInterleave>(3); }, "interleave is 3", "0 to 2"},
        Refused{[](A& a) { a.swizzle = static_cast<TensorSwizzle>(7); }, "swizzle is 7", "0 to 6"},
        Refused{[](A& a) { a.l2_promotion = static_cast<TensorL2Promotion>(4); }, "l2Promotion is 4", "0 to 3"},
        Refused{[](A& a) { a.oob_fill = static_cast<TensorOobFill>(2); }, "oobFill is 2", "0 or 1"},
        Refused{[](A& a) { a.tensor_rank = 0; }, "tensorRank is 0", "1 to 5"},
        Refused{[](A& a) { a.tensor_rank = 6; }, "tensorRank is 6", "1 to 5"},
        Refused{[](A& a) {
                  a.tensor_rank = 2;
                  a.interleave = TensorInterleave::B16;
                },
                "tensorRank is 2", "3 to 5 with interleave CU_TENSOR_MAP_INTERLEAVE_16B"},
        Refused{[](A& a) { a.global_address += 8; }, "globalAddress is 0x7f0000001008", "a multiple of 16 bytes"},
        Refused{[](A& a) {
                  a.global_address += 16;
                  a.interleave = TensorInterleave::B32;
                  a.swizzle = TensorSwizzle::B32;
                },
                "globalAddress is 0x7f0000001010", "32 bytes with interleave CU_TENSOR_MAP_INTERLEAVE_32B"},
        Refused{[](A& a) {
                  a.global_address += 16;
                  a.tensor_data_type = TensorDataType::U4Align16B;
                },
                "globalAddress is 0x7f0000001010",
                "32 bytes with tensorDataType CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B"},
        Refused{[](A& a) { a.global_dim[1] = 0; }, "globalDim[1] is 0", "1 to 2^32"},
        Refused{[](A& a) { a.global_dim[2] = (uint64_t{1} << 32) + 1; }, "globalDim[2] is 4294967297", "1 to 2^32"},
        Refused{[](A& a) { a.tensor_data_type = TensorDataType::U6Align16B; }, "globalDim[0] is 64",
                "a multiple of 128"},
        Refused{[](A& a) {
                  a.tensor_data_type = TensorDataType::U4Align8B;
                  a.global_dim[0] = 63;
                },
                "globalDim[0] is 63", "a multiple of 2"},
        Refused{[](A& a) { a.global_strides[0] = 120; }, "globalStrides[0] is 120", "a multiple of 16"},
        Refused{[](A& a) { a.global_strides[1] = uint64_t{1} << 40; }, "globalStrides[1] is 1099511627776",
                "less than 2^40"},
        Refused{[](A& a) {
                  a.global_strides[1] = 4112;
                  a.interleave = TensorInterleave::B32;
                  a.swizzle = TensorSwizzle::B32;
                },
                "globalStrides[1] is 4112", "a multiple of 32"},
        Refused{[](A& a) { a.box_dim[2] = 0; }, "boxDim[2] is 0", "1 to 256"},
        Refused{[](A& a) { a.box_dim[1] = 257; }, "boxDim[1] is 257", "1 to 256"},
        Refused{[](A& a) { a.box_dim[0] = 12; }, "boxDim[0] is 12", "24 bytes, which must be a multiple of 16"},
        Refused{[](A& a) { a.box_dim[0] = 72; }, "boxDim[0] is 72", "144 bytes, but swizzle"},
        Refused{[](A& a) { a.swizzle = TensorSwizzle::B32; }, "boxDim[0] is 64", "SWIZZLE_32B spans 32"},
        Refused{[](A& a) { a.swizzle = TensorSwizzle::B64; }, "boxDim[0] is 64", "SWIZZLE_64B spans 64"},
        Refused{[](A& a) {
                  a.tensor_data_type = TensorDataType::Float32;
                  a.swizzle = TensorSwizzle::B128Atom32BFlip8B;
                },
                "boxDim[0] is 64", "256 bytes"},
        Refused{[](A& a) {
                  a.tensor_data_type = TensorDataType::U4Align16B;
                  a.global_dim[0] = 128;
                },
                "boxDim[0] is 64", "must be 128"},
        Refused{[](A& a) { a.element_strides[0] = 0; }, "elementStrides[0] is 0", "1 to 8"},
        Refused{[](A& a) { a.element_strides[2] = 9; }, "elementStrides[2] is 9", "1 to 8"},
        Refused{[](A& a) { a.global_address = uint64_t{1} << 57; }, "globalAddress is 0x200000000000000", "below 2^57"},
        Refused{[](A& a) {
                  a.box_dim = {64, 229, 8};
                  a.tensor_rank = 3;
                  a.global_strides[1] = a.global_strides[0];
                },
                "boxDim makes a box of 234496 bytes", "at most 233472"},
        Refused{[](A& a) {
                  a.tensor_data_type = TensorDataType::U6Align16B;
                  a.global_dim[0] = 128;
                  a.interleave = TensorInterleave::B16;
                },
                "interleave is CU_TENSOR_MAP_INTERLEAVE_16B", "must be CU_TENSOR_MAP_INTERLEAVE_NONE"},
        Refused{[](A& a) {
                  a.tensor_data_type = TensorDataType::U4Align16B;
                  a.global_dim[0] = 128;
                  a.swizzle = TensorSwizzle::B128Atom64B;
                },
                "swizzle is CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B", "allows NONE, 128B, 128B_ATOM_32B"},
        Refused{[](A& a) {
                  a.tensor_data_type = TensorDataType::Int32;
                  a.box_dim[0] = 32;
                  a.oob_fill = TensorOobFill::NanRequestZeroFma;
                },
                "oobFill is CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA", "floating-point"},
        Refused{[](A& a) { a.interleave = TensorInterleave::B16; }, "interleave is CU_TENSOR_MAP_INTERLEAVE_16B",
                "the emulator supports CU_TENSOR_MAP_INTERLEAVE_NONE only; give the slices of channels"},
        Refused{[](A& a) {
                  a.interleave = TensorInterleave::B32;
                  a.swizzle = TensorSwizzle::B32;
                },
                "interleave is CU_TENSOR_MAP_INTERLEAVE_32B", "the emulator supports"},
        Refused{[](A& a) { a.tensor_data_type = TensorDataType::U4Align8B; },
                "tensorDataType is CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B",
                "the emulator does not support the 4- and 6-bit types; copy the packed bytes"},
        Refused{[](A& a) {
                  a.tensor_data_type = TensorDataType::U4Align16B;
                  a.global_dim[0] = a.box_dim[0] = 128;
                },
                "tensorDataType is CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B", "the emulator does not support"},
        Refused{[](A& a) {
                  a.tensor_data_type = TensorDataType::U6Align16B;
                  a.global_dim[0] = a.box_dim[0] = 128;
                  a.swizzle = TensorSwizzle::B128Atom64B;
                },
                "tensorDataType is CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B", "the emulator does not support"}));

// --- tensormap.replace ---

TEST(TensorMapReplaceTest, EveryFieldIsReplaced) {
  TensorMapImage image;
  ASSERT_EQ(encode_tiled(valid(), &image), "");
  struct Edit {
    TensorMapField field;
    uint32_t ordinal;
    uint64_t value;
    std::function<void(TensorMapArgs&)> same;  ///< what the edit does to the arguments
  };
  using F = TensorMapField;
  TensorMapArgs expected = valid();
  for (const Edit& e :
       std::vector<Edit>{{F::GlobalAddress, 0, 0x7f0000002000, [](A& a) { a.global_address = 0x7f0000002000; }},
                         {F::GlobalDim, 0, 48, [](A& a) { a.global_dim[0] = 48; }},
                         {F::GlobalDim, 2, 0xffffffff, [](A& a) { a.global_dim[2] = 0xffffffff; }},
                         {F::GlobalStride, 0, 144, [](A& a) { a.global_strides[0] = 144; }},
                         {F::GlobalStride, 1, 4608, [](A& a) { a.global_strides[1] = 4608; }},
                         {F::BoxDim, 0, 32, [](A& a) { a.box_dim[0] = 32; }},
                         {F::BoxDim, 1, 256, [](A& a) { a.box_dim[1] = 256; }},
                         {F::ElementStride, 2, 8, [](A& a) { a.element_strides[2] = 8; }},
                         {F::Rank, 0, 1, [](A& a) { a.tensor_rank = 2; }},
                         {F::Rank, 0, 2, [](A& a) { a.tensor_rank = 3; }},  // what lay in dimension 2 is still there
                         {F::FillMode, 0, 1, [](A& a) { a.oob_fill = TensorOobFill::NanRequestZeroFma; }},
                         {F::SwizzleAtomicity, 0, 1, [](A& a) { a.swizzle = TensorSwizzle::B128Atom32B; }},
                         {F::SwizzleAtomicity, 0, 2, [](A& a) { a.swizzle = TensorSwizzle::B128Atom32BFlip8B; }},
                         {F::SwizzleAtomicity, 0, 3, [](A& a) { a.swizzle = TensorSwizzle::B128Atom64B; }},
                         {F::SwizzleAtomicity, 0, 0, [](A& a) { a.swizzle = TensorSwizzle::B128; }},
                         {F::SwizzleMode, 0, 2, [](A& a) { a.swizzle = TensorSwizzle::B64; }},
                         {F::SwizzleMode, 0, 0, [](A& a) { a.swizzle = TensorSwizzle::None; }},
                         // Codes of .elemtype: Table 33 of PTX §9.7.9.28.
                         {F::Elemtype, 0, 6, [](A& a) { a.tensor_data_type = TensorDataType::Float16; }},
                         {F::Elemtype, 0, 7, [](A& a) { a.tensor_data_type = TensorDataType::Float32; }},
                         {F::Elemtype, 0, 8, [](A& a) { a.tensor_data_type = TensorDataType::Float32Ftz; }},
                         {F::Elemtype, 0, 9, [](A& a) { a.tensor_data_type = TensorDataType::Float64; }},
                         {F::Elemtype, 0, 10, [](A& a) { a.tensor_data_type = TensorDataType::Bfloat16; }},
                         {F::Elemtype, 0, 11, [](A& a) { a.tensor_data_type = TensorDataType::Tfloat32; }},
                         {F::Elemtype, 0, 12, [](A& a) { a.tensor_data_type = TensorDataType::Tfloat32Ftz; }},
                         {F::FillMode, 0, 0, [](A& a) { a.oob_fill = TensorOobFill::None; }},
                         {F::Elemtype, 0, 0, [](A& a) { a.tensor_data_type = TensorDataType::Uint8; }},
                         {F::Elemtype, 0, 5, [](A& a) { a.tensor_data_type = TensorDataType::Int64; }}}) {
    ASSERT_EQ(replace_field(&image, e.field, e.ordinal, e.value), "");
    e.same(expected);
    TensorMapImage encoded;
    ASSERT_EQ(encode_tiled(expected, &encoded), "");
    TensorMapArgs got, want;
    ASSERT_EQ(decode_tiled(image, &got), "") << static_cast<int>(e.field);
    ASSERT_EQ(decode_tiled(encoded, &want), "");
    EXPECT_EQ(got.tensor_data_type, want.tensor_data_type);
    EXPECT_EQ(got.tensor_rank, want.tensor_rank);
    EXPECT_EQ(got.global_address, want.global_address);
    EXPECT_EQ(got.global_dim, want.global_dim);
    EXPECT_EQ(got.global_strides, want.global_strides);
    EXPECT_EQ(got.box_dim, want.box_dim);
    EXPECT_EQ(got.element_strides, want.element_strides);
    EXPECT_EQ(got.swizzle, want.swizzle) << static_cast<int>(e.field) << " " << e.value;
    EXPECT_EQ(got.oob_fill, want.oob_fill);
  }
}

TEST(TensorMapReplaceTest, AFieldNeverHoldsWhatItMayNot) {
  TensorMapImage image;
  ASSERT_EQ(encode_tiled(valid(), &image), "");
  const TensorMapImage before = image;
  using F = TensorMapField;
  EXPECT_EQ(replace_field(&image, F::BoxDim, 1, 257), "box_dim[1] is 257: it must be 1 to 256");
  EXPECT_EQ(replace_field(&image, F::BoxDim, 4, 0), "box_dim[4] is 0: it must be 1 to 256");
  EXPECT_EQ(replace_field(&image, F::ElementStride, 0, 9), "element_stride[0] is 9: it must be 1 to 8");
  EXPECT_EQ(replace_field(&image, F::Rank, 0, 5), "rank is 5: it must be 0 to 4");
  EXPECT_EQ(replace_field(&image, F::SwizzleMode, 0, 4), "swizzle_mode is 4: it must be 0 to 3");
  EXPECT_EQ(replace_field(&image, F::SwizzleAtomicity, 0, 4), "swizzle_atomicity is 4: it must be 0 to 3");
  EXPECT_EQ(replace_field(&image, F::InterleaveLayout, 0, 3), "interleave_layout is 3: it must be 0 to 2");
  EXPECT_EQ(replace_field(&image, F::FillMode, 0, 2), "fill_mode is 2: it must be 0 to 1");
  EXPECT_EQ(replace_field(&image, F::Elemtype, 0, 16), "elemtype is 16: it must be 0 to 15");
  EXPECT_EQ(image, before);
  TensorMapImage zeros{};
  EXPECT_THAT(replace_field(&zeros, F::Rank, 0, 1), HasSubstr("no tensor map"));
}

// A map may make no sense between two edits; it is judged as a whole when it is used.
TEST(TensorMapReplaceTest, CombinationsAreCheckedWhenTheMapIsRead) {
  TensorMapImage image;
  TensorMapArgs unused;
  using F = TensorMapField;
  ASSERT_EQ(encode_tiled(valid(), &image), "");
  ASSERT_EQ(replace_field(&image, F::SwizzleMode, 0, 1), "");
  EXPECT_THAT(decode_tiled(image, &unused), HasSubstr("SWIZZLE_32B spans 32"));
  ASSERT_EQ(replace_field(&image, F::BoxDim, 0, 16), "");
  EXPECT_EQ(decode_tiled(image, &unused), "");
  ASSERT_EQ(replace_field(&image, F::SwizzleAtomicity, 0, 1), "");
  EXPECT_THAT(decode_tiled(image, &unused), HasSubstr("swizzle_atomicity is 1: with swizzle_mode 1"));
  ASSERT_EQ(replace_field(&image, F::SwizzleMode, 0, 3), "");
  EXPECT_EQ(decode_tiled(image, &unused), "");
  EXPECT_EQ(unused.swizzle, TensorSwizzle::B128Atom32B);
  ASSERT_EQ(replace_field(&image, F::GlobalDim, 1, 0), "");
  EXPECT_THAT(decode_tiled(image, &unused), HasSubstr("globalDim[1] is 0"));
  ASSERT_EQ(replace_field(&image, F::GlobalDim, 1, 5), "");
  ASSERT_EQ(replace_field(&image, F::Rank, 0, 3), "");  // nobody described dimension 3
  EXPECT_THAT(decode_tiled(image, &unused), HasSubstr("globalDim[3] is 0"));
  ASSERT_EQ(replace_field(&image, F::Rank, 0, 1), "");
  ASSERT_EQ(replace_field(&image, F::GlobalAddress, 0, 24), "");
  EXPECT_THAT(decode_tiled(image, &unused), HasSubstr("globalAddress is 0x18"));
}

// What lies beyond the rank is not looked at.
TEST(TensorMapTest, UnusedEntriesDoNotMatter) {
  TensorMapArgs a = valid();
  a.tensor_rank = 1;
  a.global_dim = {64, 0, uint64_t{1} << 40};
  a.global_strides = {3, uint64_t{1} << 50};
  a.box_dim = {64, 0, 999};
  a.element_strides = {1, 0, 99};
  EXPECT_EQ(problem(a), "");
}

TEST(TensorMapTest, OtherBytesAreNoMap) {
  TensorMapArgs a = valid(), unused;
  TensorMapImage image;
  ASSERT_EQ(encode_tiled(a, &image), "");
  TensorMapImage zeros{};
  EXPECT_THAT(decode_tiled(zeros, &unused), HasSubstr("no tensor map"));
  // Any changed byte is noticed.
  for (size_t k = 0; k < image.size(); k++) {
    TensorMapImage changed = image;
    changed[k] ^= std::byte{0x40};
    EXPECT_NE(decode_tiled(changed, &unused), "") << k;
  }
  TensorMapImage half = image;
  std::fill(half.begin() + 64, half.end(), std::byte{0});
  EXPECT_THAT(decode_tiled(half, &unused), HasSubstr("changed after it was encoded, or only part of it"));
  EXPECT_EQ(decode_tiled(image, &unused), "");
}

// CUTLASS clears this bit of maps of small tensors where the driver is old (copy_traits_sm90_tma.hpp).
TEST(TensorMapTest, Bit21OfTheSecondWordIsNotUsed) {
  TensorMapImage image;
  ASSERT_EQ(encode_tiled(valid(), &image), "");
  uint64_t word;
  std::memcpy(&word, &image[8], 8);
  EXPECT_EQ(word >> 21 & 1, 0u);
}

// §5.5.7 as CuTe writes it: Swizzle<B, M, S> puts bits [M + S, M + S + B) of the address onto bits [M, M + B) by XOR.
TEST(TensorMapTest, SwizzlesAreThoseOfTheManual) {
  struct Mode {
    TensorSwizzle swizzle;
    uint32_t b, m, s;
  };
  for (const Mode& mode : {Mode{TensorSwizzle::None, 0, 4, 3}, Mode{TensorSwizzle::B32, 1, 4, 3},
                           Mode{TensorSwizzle::B64, 2, 4, 3}, Mode{TensorSwizzle::B128, 3, 4, 3},
                           Mode{TensorSwizzle::B128Atom32B, 2, 5, 2}, Mode{TensorSwizzle::B128Atom64B, 1, 6, 1}}) {
    for (uint32_t address = 0; address < 8192; address++) {
      uint32_t expected = address;
      for (uint32_t bit = 0; bit < mode.b; bit++)
        expected ^= (address >> (mode.m + mode.s + bit) & 1) << (mode.m + bit);
      ASSERT_EQ(swizzled(mode.swizzle, address), expected) << to_string(mode.swizzle) << " " << address;
    }
  }
  // Examples of the manual's 128-byte mode, worked by hand.
  EXPECT_EQ(swizzled(TensorSwizzle::B128, 0x1400), 0x1400u);
  EXPECT_EQ(swizzled(TensorSwizzle::B128, 0x1580), 0x15b0u);
  EXPECT_EQ(swizzled(TensorSwizzle::B128, 0x16b4), 0x16e4u);
  EXPECT_EQ(swizzled(TensorSwizzle::B128, 0x1af0), 0x1aa0u);
  EXPECT_EQ(swizzled(TensorSwizzle::B128, 0x1480), 0x1490u);
}

TEST(TensorMapTest, SwizzlesAreInvolutionsWithinTheirSpan) {
  for (uint32_t mode = 1; mode <= 6; mode++) {
    const auto swizzle = static_cast<TensorSwizzle>(mode);
    for (uint32_t address = 0; address < 4096; address++) {
      const uint32_t there = swizzled(swizzle, address);
      EXPECT_EQ(swizzled(swizzle, there), address);
      EXPECT_EQ(there / swizzle_span(swizzle), address / swizzle_span(swizzle));
    }
  }
}

}  // namespace
}  // namespace handoff::async
