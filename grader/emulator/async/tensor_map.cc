// Tested by tensor_map_test.cc.
//
// The driver's CUtensorMap is 128 opaque bytes; only the API makes them and only the copy engine reads them, so the
// emulator has a layout of its own. It begins with a magic word and a version and ends with a checksum: a kernel that
// passes something else (a pointer to a map, a map that was built by hand or only half copied) is told so. A kernel
// that edits a map does so with tensormap.replace (PTX §9.7.9.28), which renews the checksum. Between two edits a map
// may make no sense as a whole, so rules that combine fields are checked when the copy engine reads it.
//
// The checks are those that the driver's documentation lists for cuTensorMapEncodeTiled (cuda.h, CUDA 13.0). The driver
// answers CUDA_ERROR_INVALID_VALUE to all of them alike; here each says which argument breaks which rule.
#include "grader/emulator/async/tensor_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace handoff::async {
namespace {

constexpr uint64_t kMagic = 0x50414d5254444e48;  // "HNDTRMAP", least significant byte first
constexpr uint8_t kVersion = 2;

/// Swizzle mode and atomicity are apart, as the fields of tensormap.replace are; together they make a TensorSwizzle.
struct Layout {
  uint64_t magic;
  uint8_t version, rank, swizzle_atomicity, data_type;  // bit 21 of the second word stays 0: CUTLASS clears it in place
  uint8_t interleave, swizzle_mode, l2_promotion, oob_fill;
  uint64_t global_address;
  uint64_t global_strides[4];
  uint64_t global_dim[5];
  uint16_t box_dim[5];
  uint8_t element_strides[5];
  uint8_t padding[13];
  uint32_t checksum;  // of all bytes before it
};
static_assert(sizeof(Layout) == sizeof(TensorMapImage));

/// FNV-1a.
uint32_t checksum(const Layout& layout) {
  std::byte bytes[sizeof(Layout)];
  std::memcpy(bytes, &layout, sizeof layout);
  uint32_t sum = 0x811c9dc5;
  for (size_t k = 0; k < offsetof(Layout, checksum); k++) sum = (sum ^ static_cast<uint32_t>(bytes[k])) * 0x01000193;
  return sum;
}

/// The fields of 128 bytes that are a whole map; else what is wrong with them.
std::string open(const TensorMapImage& image, Layout* l) {
  std::memcpy(l, image.data(), sizeof *l);
  if (l->magic != kMagic) return "these 128 bytes are no tensor map";
  if (l->version != kVersion) return fmt::format("this is a tensor map of version {}, not {}", l->version, kVersion);
  if (l->checksum != checksum(*l))
    return "this tensor map was changed after it was encoded, or only part of it is here";
  return {};
}

constexpr uint8_t kMode128B = 3;  // the swizzle mode that has atomicities; CUtensorMapSwizzle counts on from it

constexpr const char* kDataTypes[] = {
    "UINT8",   "UINT16",   "UINT32",      "INT32",    "UINT64",       "INT64",        "FLOAT16",       "FLOAT32",
    "FLOAT64", "BFLOAT16", "FLOAT32_FTZ", "TFLOAT32", "TFLOAT32_FTZ", "16U4_ALIGN8B", "16U4_ALIGN16B", "16U6_ALIGN16B"};
constexpr const char* kInterleaves[] = {"NONE", "16B", "32B"};
constexpr const char* kSwizzles[] = {"NONE",         "32B", "64B", "128B", "128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B",
                                     "128B_ATOM_64B"};
constexpr const char* kL2Promotions[] = {"NONE", "L2_64B", "L2_128B", "L2_256B"};
constexpr const char* kOobFills[] = {"NONE", "NAN_REQUEST_ZERO_FMA"};

template <class E, size_t N>
bool known(E value, const char* const (&)[N]) {
  return static_cast<size_t>(value) < N;
}
template <class E, size_t N>
std::string name(E value, const char* prefix, const char* const (&names)[N]) {
  if (!known(value, names)) return fmt::format("{}", static_cast<uint32_t>(value));
  return std::string(prefix) + names[static_cast<size_t>(value)];
}
std::string to_string(TensorInterleave i) { return name(i, "CU_TENSOR_MAP_INTERLEAVE_", kInterleaves); }
std::string to_string(TensorOobFill f) { return name(f, "CU_TENSOR_MAP_FLOAT_OOB_FILL_", kOobFills); }

/// The types of which 16 elements lie in 16 bytes of shared memory, with gaps.
bool align_16b(TensorDataType t) { return t == TensorDataType::U4Align16B || t == TensorDataType::U6Align16B; }
uint32_t element_bits(TensorDataType t) {
  if (t == TensorDataType::U6Align16B) return 6;
  return element_bytes(t) == 0 ? 4 : 8 * element_bytes(t);
}
bool floating(TensorDataType t) {
  switch (t) {
    case TensorDataType::Float16:
    case TensorDataType::Float32:
    case TensorDataType::Float64:
    case TensorDataType::Bfloat16:
    case TensorDataType::Float32Ftz:
    case TensorDataType::Tfloat32:
    case TensorDataType::Tfloat32Ftz:
      return true;
    default:
      return false;
  }
}

std::string check_enumerations(const TensorMapArgs& a) {
  if (!known(a.tensor_data_type, kDataTypes)) {
    return fmt::format("tensorDataType is {}: it must be a CUtensorMapDataType, 0 to 15",
                       static_cast<uint32_t>(a.tensor_data_type));
  }
  if (!known(a.interleave, kInterleaves)) {
    return fmt::format("interleave is {}: it must be a CUtensorMapInterleave, 0 to 2",
                       static_cast<uint32_t>(a.interleave));
  }
  if (!known(a.swizzle, kSwizzles))
    return fmt::format("swizzle is {}: it must be a CUtensorMapSwizzle, 0 to 6", static_cast<uint32_t>(a.swizzle));
  if (!known(a.l2_promotion, kL2Promotions)) {
    return fmt::format("l2Promotion is {}: it must be a CUtensorMapL2promotion, 0 to 3",
                       static_cast<uint32_t>(a.l2_promotion));
  }
  if (!known(a.oob_fill, kOobFills))
    return fmt::format("oobFill is {}: it must be a CUtensorMapFloatOOBfill, 0 or 1",
                       static_cast<uint32_t>(a.oob_fill));
  return {};
}

std::string check_global(const TensorMapArgs& a) {
  const bool wide = a.interleave == TensorInterleave::B32 || align_16b(a.tensor_data_type);
  const uint64_t alignment = wide ? 32 : 16;
  const std::string why = a.interleave == TensorInterleave::B32 ? " with interleave " + to_string(a.interleave)
                          : wide ? " with tensorDataType " + to_string(a.tensor_data_type)
                                 : "";
  if (a.global_address % alignment != 0)
    return fmt::format("globalAddress is {:#x}: it must be a multiple of {} bytes{}", a.global_address, alignment, why);
  if (a.global_address >= uint64_t{1} << 57)
    return fmt::format("globalAddress is {:#x}: it must be below 2^57", a.global_address);
  for (uint32_t i = 0; i < a.tensor_rank; i++) {
    if (a.global_dim[i] == 0 || a.global_dim[i] > uint64_t{1} << 32)
      return fmt::format("globalDim[{}] is {}: it must be 1 to 2^32 elements", i, a.global_dim[i]);
  }
  const uint64_t multiple = align_16b(a.tensor_data_type)                     ? 128
                            : a.tensor_data_type == TensorDataType::U4Align8B ? 2
                                                                              : 1;
  if (a.global_dim[0] % multiple != 0) {
    return fmt::format("globalDim[0] is {}: it must be a multiple of {} with tensorDataType {}", a.global_dim[0],
                       multiple, to_string(a.tensor_data_type));
  }
  for (uint32_t i = 0; i + 1 < a.tensor_rank; i++) {
    if (a.global_strides[i] % alignment != 0) {
      return fmt::format("globalStrides[{}] is {} bytes: it must be a multiple of {}{}", i, a.global_strides[i],
                         alignment, why);
    }
    if (a.global_strides[i] >= uint64_t{1} << 40)
      return fmt::format("globalStrides[{}] is {} bytes: it must be less than 2^40", i, a.global_strides[i]);
  }
  return {};
}

/// Of a box in shared memory: what an SM has. Found on an H200: 228 KiB are accepted, 229 refused (encode/box-*).
constexpr uint64_t kMaxBoxBytes = 228 * 1024;

std::string check_box(const TensorMapArgs& a) {
  for (uint32_t i = 0; i < a.tensor_rank; i++) {
    if (a.box_dim[i] == 0 || a.box_dim[i] > 256)
      return fmt::format("boxDim[{}] is {}: it must be 1 to 256 elements", i, a.box_dim[i]);
  }
  if (align_16b(a.tensor_data_type) && a.box_dim[0] != 128) {
    return fmt::format("boxDim[0] is {}: it must be 128 with tensorDataType {}", a.box_dim[0],
                       to_string(a.tensor_data_type));
  }
  for (uint32_t i = 0; i < a.tensor_rank; i++) {
    // The first step is ignored without interleave, but the driver's text asks for the range all the same.
    if (a.element_strides[i] == 0 || a.element_strides[i] > 8)
      return fmt::format("elementStrides[{}] is {}: it must be 1 to 8 elements", i, a.element_strides[i]);
  }
  // The 16-byte rule speaks of packed bytes, which for the ALIGN16B types boxDim[0] = 128 fulfils.
  const uint32_t inner = a.box_dim[0] * element_bits(a.tensor_data_type);
  if (inner % 128 != 0) {
    return fmt::format("boxDim[0] is {}: with {} it makes {} bytes, which must be a multiple of 16", a.box_dim[0],
                       to_string(a.tensor_data_type), static_cast<double>(inner) / 8);
  }
  uint64_t box_bytes = inner / 8;
  for (uint32_t i = 1; i < a.tensor_rank; i++)
    box_bytes *= (a.box_dim[i] + a.element_strides[i] - 1) / a.element_strides[i];
  if (box_bytes > kMaxBoxBytes) {
    return fmt::format("boxDim makes a box of {} bytes in shared memory: it must be at most {}", box_bytes,
                       kMaxBoxBytes);
  }
  // The driver looks at the span without interleave only.
  if (a.interleave != TensorInterleave::None) return {};
  const uint32_t span = swizzle_span(a.swizzle);
  const uint32_t bytes = align_16b(a.tensor_data_type) ? a.box_dim[0] : inner / 8;
  if (span != 0 && bytes > span) {
    return fmt::format("boxDim[0] is {}: with {} it makes {} bytes, but swizzle {} spans {}", a.box_dim[0],
                       to_string(a.tensor_data_type), bytes, to_string(a.swizzle), span);
  }
  return {};
}

std::string check_combinations(const TensorMapArgs& a) {
  // The driver's text asks for swizzle 32B with interleave 32B; the driver does not (encode/interleave-32B-swizzle-*).
  if (a.tensor_data_type == TensorDataType::U6Align16B && a.interleave != TensorInterleave::None) {
    return fmt::format("interleave is {}: it must be CU_TENSOR_MAP_INTERLEAVE_NONE with tensorDataType {}",
                       to_string(a.interleave), to_string(a.tensor_data_type));
  }
  if (align_16b(a.tensor_data_type)) {
    const bool u6 = a.tensor_data_type == TensorDataType::U6Align16B;
    const bool fine = a.swizzle == TensorSwizzle::None || a.swizzle == TensorSwizzle::B128 ||
                      a.swizzle == TensorSwizzle::B128Atom32B || (u6 && a.swizzle == TensorSwizzle::B128Atom64B);
    if (!fine) {
      return fmt::format("swizzle is {}: tensorDataType {} allows NONE, 128B, 128B_ATOM_32B{}", to_string(a.swizzle),
                         to_string(a.tensor_data_type), u6 ? " and 128B_ATOM_64B" : "");
    }
  }
  if (a.oob_fill == TensorOobFill::NanRequestZeroFma && !floating(a.tensor_data_type)) {
    return fmt::format("oobFill is {}: it needs a floating-point tensorDataType, not {}", to_string(a.oob_fill),
                       to_string(a.tensor_data_type));
  }
  return {};
}

/// What the API has and the emulator has not.
std::string check_limits(const TensorMapArgs& a) {
  if (a.interleave != TensorInterleave::None) {
    return fmt::format(
        "interleave is {}: the emulator supports CU_TENSOR_MAP_INTERLEAVE_NONE only; give the slices "
        "of channels a dimension of their own, or run on a GPU",
        to_string(a.interleave));
  }
  if (element_bytes(a.tensor_data_type) == 0) {
    return fmt::format(
        "tensorDataType is {}: the emulator does not support the 4- and 6-bit types; copy the packed "
        "bytes as CU_TENSOR_MAP_DATA_TYPE_UINT8, or run on a GPU",
        to_string(a.tensor_data_type));
  }
  return {};
}

std::string check(const TensorMapArgs& a) {
  std::string problem = check_tiled(a);
  return problem.empty() ? check_limits(a) : problem;
}

}  // namespace

std::string check_tiled(const TensorMapArgs& a) {
  if (std::string e = check_enumerations(a); !e.empty()) return e;
  if (a.tensor_rank < 1 || a.tensor_rank > 5) return fmt::format("tensorRank is {}: it must be 1 to 5", a.tensor_rank);
  if (a.interleave != TensorInterleave::None && a.tensor_rank < 3) {
    return fmt::format("tensorRank is {}: it must be 3 to 5 with interleave {}", a.tensor_rank,
                       to_string(a.interleave));
  }
  if (std::string e = check_global(a); !e.empty()) return e;
  if (std::string e = check_combinations(a); !e.empty()) return e;
  if (std::string e = check_box(a); !e.empty()) return e;
  return {};
}

std::string encode_tiled(const TensorMapArgs& args, TensorMapImage* image) {
  if (std::string problem = check(args); !problem.empty()) return problem;
  Layout l{};
  l.magic = kMagic;
  l.version = kVersion;
  l.rank = static_cast<uint8_t>(args.tensor_rank);
  l.data_type = static_cast<uint8_t>(args.tensor_data_type);
  l.interleave = static_cast<uint8_t>(args.interleave);
  l.swizzle_mode = std::min(static_cast<uint8_t>(args.swizzle), kMode128B);
  l.swizzle_atomicity = static_cast<uint8_t>(static_cast<uint8_t>(args.swizzle) - l.swizzle_mode);
  l.l2_promotion = static_cast<uint8_t>(args.l2_promotion);
  l.oob_fill = static_cast<uint8_t>(args.oob_fill);
  l.global_address = args.global_address;
  for (uint32_t i = 0; i < args.tensor_rank; i++) {
    if (i > 0) l.global_strides[i - 1] = args.global_strides[i - 1];
    l.global_dim[i] = args.global_dim[i];
    l.box_dim[i] = static_cast<uint16_t>(args.box_dim[i]);
    l.element_strides[i] = static_cast<uint8_t>(args.element_strides[i]);
  }
  l.checksum = checksum(l);
  std::memcpy(image->data(), &l, sizeof l);
  return {};
}

std::string decode_tiled(const TensorMapImage& image, TensorMapArgs* args) {
  Layout l;
  if (std::string problem = open(image, &l); !problem.empty()) return problem;
  if (l.swizzle_atomicity != 0 && l.swizzle_mode != 0 && l.swizzle_mode != kMode128B) {
    return fmt::format("swizzle_atomicity is {}: with swizzle_mode {} it must be 0, 16 bytes", l.swizzle_atomicity,
                       l.swizzle_mode);
  }
  TensorMapArgs a;
  a.tensor_data_type = static_cast<TensorDataType>(l.data_type);
  a.tensor_rank = l.rank;
  a.global_address = l.global_address;
  a.interleave = static_cast<TensorInterleave>(l.interleave);
  a.swizzle =
      static_cast<TensorSwizzle>(l.swizzle_mode == kMode128B ? l.swizzle_mode + l.swizzle_atomicity : l.swizzle_mode);
  a.l2_promotion = static_cast<TensorL2Promotion>(l.l2_promotion);
  a.oob_fill = static_cast<TensorOobFill>(l.oob_fill);
  for (uint32_t i = 0; i < l.rank && i < 5; i++) {
    if (i > 0) a.global_strides[i - 1] = l.global_strides[i - 1];
    a.global_dim[i] = l.global_dim[i];
    a.box_dim[i] = l.box_dim[i];
    a.element_strides[i] = l.element_strides[i];
  }
  // Bytes in global memory can be anything, a right checksum included.
  if (std::string problem = check(a); !problem.empty()) return problem;
  *args = a;
  return {};
}

std::string replace_field(TensorMapImage* image, TensorMapField field, uint32_t ordinal, uint64_t value) {
  Layout l;
  if (std::string problem = open(*image, &l); !problem.empty()) return problem;
  // Codes of .elemtype differ from CUtensorMapDataType: f32.ftz stands before f64 and bf16 (PTX §9.7.9.28, Table 33).
  static constexpr uint8_t kDataTypeOfCode[] = {0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 11, 12, 13, 14, 15};
  const auto out_of_range = [&](const char* what, uint64_t least, uint64_t most) {
    return value < least || value > most ? fmt::format("{} is {}: it must be {} to {}", what, value, least, most)
                                         : std::string();
  };
  std::string problem;
  switch (field) {
    case TensorMapField::GlobalAddress:
      l.global_address = value;
      break;
    case TensorMapField::Rank:
      problem = out_of_range("rank", 0, 4);
      l.rank = static_cast<uint8_t>(value + 1);
      break;
    case TensorMapField::BoxDim:
      problem = out_of_range(fmt::format("box_dim[{}]", ordinal).c_str(), 1, 256);
      l.box_dim[ordinal] = static_cast<uint16_t>(value);
      break;
    case TensorMapField::GlobalDim:
      l.global_dim[ordinal] = value;
      break;
    case TensorMapField::GlobalStride:
      l.global_strides[ordinal] = value;
      break;
    case TensorMapField::ElementStride:
      problem = out_of_range(fmt::format("element_stride[{}]", ordinal).c_str(), 1, 8);
      l.element_strides[ordinal] = static_cast<uint8_t>(value);
      break;
    case TensorMapField::Elemtype:
      problem = out_of_range("elemtype", 0, std::size(kDataTypeOfCode) - 1);
      l.data_type = kDataTypeOfCode[value % std::size(kDataTypeOfCode)];
      break;
    case TensorMapField::InterleaveLayout:
      problem = out_of_range("interleave_layout", 0, 2);
      l.interleave = static_cast<uint8_t>(value);
      break;
    case TensorMapField::SwizzleMode:
      problem = out_of_range("swizzle_mode", 0, kMode128B);
      l.swizzle_mode = static_cast<uint8_t>(value);
      break;
    case TensorMapField::SwizzleAtomicity:
      problem = out_of_range("swizzle_atomicity", 0, 3);
      l.swizzle_atomicity = static_cast<uint8_t>(value);
      break;
    case TensorMapField::FillMode:
      problem = out_of_range("fill_mode", 0, 1);
      l.oob_fill = static_cast<uint8_t>(value);
      break;
  }
  if (!problem.empty()) return problem;
  l.checksum = checksum(l);
  std::memcpy(image->data(), &l, sizeof l);
  return {};
}

std::string to_string(TensorDataType type) { return name(type, "CU_TENSOR_MAP_DATA_TYPE_", kDataTypes); }
std::string to_string(TensorSwizzle swizzle) { return name(swizzle, "CU_TENSOR_MAP_SWIZZLE_", kSwizzles); }

uint32_t element_bytes(TensorDataType type) {
  switch (type) {
    case TensorDataType::Uint8:
      return 1;
    case TensorDataType::Uint16:
    case TensorDataType::Float16:
    case TensorDataType::Bfloat16:
      return 2;
    case TensorDataType::Uint64:
    case TensorDataType::Int64:
    case TensorDataType::Float64:
      return 8;
    case TensorDataType::U4Align8B:
    case TensorDataType::U4Align16B:
    case TensorDataType::U6Align16B:
      return 0;
    default:
      return 4;
  }
}

uint32_t swizzle_span(TensorSwizzle swizzle) {
  switch (swizzle) {
    case TensorSwizzle::None:
      return 0;
    case TensorSwizzle::B32:
      return 32;
    case TensorSwizzle::B64:
      return 64;
    default:
      return 128;
  }
}

uint32_t swizzled(TensorSwizzle swizzle, uint32_t a) {
  const uint32_t line = a >> 7;  // 128 bytes, all banks of shared memory once
  switch (swizzle) {
    case TensorSwizzle::None:
      return a;
    case TensorSwizzle::B32:
      return a ^ (line & 1) << 4;
    case TensorSwizzle::B64:
      return a ^ (line & 3) << 4;
    case TensorSwizzle::B128:
      return a ^ (line & 7) << 4;
    case TensorSwizzle::B128Atom32B:
      return a ^ (line & 3) << 5;
    case TensorSwizzle::B128Atom32BFlip8B:
      // UNCONFIRMED: the manual says "every alternate line" and shows in a figure which; here the odd ones.
      return a ^ (line & 3) << 5 ^ (line & 1) << 3;
    case TensorSwizzle::B128Atom64B:
      return a ^ (line & 1) << 6;
  }
  return a;
}

}  // namespace handoff::async
