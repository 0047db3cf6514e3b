// Tensor maps: what cuTensorMapEncodeTiled makes of its arguments, for the emulator (CUDA driver API; PTX §5.5).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace handoff::async {

/// CUtensorMapDataType, with its values.
enum class TensorDataType : uint32_t {
  Uint8,
  Uint16,
  Uint32,
  Int32,
  Uint64,
  Int64,
  Float16,
  Float32,
  Float64,
  Bfloat16,
  Float32Ftz,
  Tfloat32,
  Tfloat32Ftz,
  U4Align8B,
  U4Align16B,
  U6Align16B
};
/// CUtensorMapInterleave, with its values.
enum class TensorInterleave : uint32_t { None, B16, B32 };
/// CUtensorMapSwizzle, with its values.
enum class TensorSwizzle : uint32_t { None, B32, B64, B128, B128Atom32B, B128Atom32BFlip8B, B128Atom64B };
/// CUtensorMapL2promotion, with its values.
enum class TensorL2Promotion : uint32_t { None, L2_64B, L2_128B, L2_256B };
/// CUtensorMapFloatOOBfill, with its values.
enum class TensorOobFill : uint32_t { None, NanRequestZeroFma };

/// Arguments of cuTensorMapEncodeTiled, named after them; dimensions from the innermost outwards. Values outside an
/// enumeration are allowed here and refused by the encoder.
struct TensorMapArgs {
  TensorDataType tensor_data_type = TensorDataType::Float32;  ///< of an element
  uint32_t tensor_rank = 0;                                   ///< 1–5 dimensions
  uint64_t global_address = 0;                                ///< device address of element (0, …), bytes
  std::array<uint64_t, 5> global_dim{};                       ///< extents of the tensor, elements
  std::array<uint64_t, 4> global_strides{};                   ///< [i]: of dimension i + 1, bytes
  std::array<uint32_t, 5> box_dim{};                          ///< extents of the box, elements
  std::array<uint32_t, 5> element_strides{1, 1, 1, 1, 1};     ///< steps within the box, elements
  TensorInterleave interleave = TensorInterleave::None;       ///< the emulator has None only
  TensorSwizzle swizzle = TensorSwizzle::None;                ///< arrangement in shared memory
  TensorL2Promotion l2_promotion = TensorL2Promotion::None;   ///< of no effect on results
  TensorOobFill oob_fill = TensorOobFill::None;               ///< what is loaded from outside the tensor
};

/// A CUtensorMap: opaque to kernels and harnesses. The emulator's has a layout of its own.
using TensorMapImage = std::array<std::byte, 128>;
inline constexpr uint32_t kTensorMapAlignment = 64;  ///< of a CUtensorMap, bytes

/// Checks the arguments as the driver documents them. Returns an empty string, or what is wrong: the argument by its
/// name in the API, its value, the rule.
std::string check_tiled(const TensorMapArgs& args);
/// Checks the arguments and makes the map. Returns an empty string, or what is wrong or what the emulator does not
/// support; `image` is then unchanged.
std::string encode_tiled(const TensorMapArgs& args, TensorMapImage* image);
/// The arguments that made an image. Returns an empty string, or why these bytes are no tensor map.
std::string decode_tiled(const TensorMapImage& image, TensorMapArgs* args);

/// Fields that tensormap.replace changes, in the order of PTX §9.7.9.28.
enum class TensorMapField : uint8_t {
  GlobalAddress,
  Rank,
  BoxDim,
  GlobalDim,
  GlobalStride,
  ElementStride,
  Elemtype,
  InterleaveLayout,
  SwizzleMode,
  SwizzleAtomicity,
  FillMode
};
/// tensormap.replace: sets a field of an image. `ordinal` names the dimension: 0–4 of BoxDim, GlobalDim and
/// ElementStride, 0–3 of GlobalStride (0: the stride of dimension 1), 0 of the others. `value` is in the instruction's
/// coding: Rank is the rank − 1, GlobalStride is in bytes, Elemtype and the swizzle have codes of their own (PTX
/// §9.7.9.28, Table 33). Returns an empty string, or why these bytes are no map or what the field never may hold; the
/// image is then unchanged. How fields fit together is checked by decode_tiled.
std::string replace_field(TensorMapImage* image, TensorMapField field, uint32_t ordinal, uint64_t value);

/// The API's name: "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16"; the number where there is none.
std::string to_string(TensorDataType type);
/// The API's name: "CU_TENSOR_MAP_SWIZZLE_128B"; the number where there is none.
std::string to_string(TensorSwizzle swizzle);
/// Bytes of an element; 0 for the 4- and 6-bit types.
uint32_t element_bytes(TensorDataType type);
/// Bytes of shared memory within which a swizzle moves bytes: 32, 64 or 128; 0 for None.
uint32_t swizzle_span(TensorSwizzle swizzle);
/// Where the byte of shared address `address` of an unswizzled box lies. The permutation acts on the bits of the
/// address itself, not of the distance from the box's start, and is its own inverse (PTX §5.5.7).
uint32_t swizzled(TensorSwizzle swizzle, uint32_t address);

}  // namespace handoff::async
