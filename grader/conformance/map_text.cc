// Tested by conformance_test.cc.
#include "grader/conformance/map_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <sstream>
#include <string_view>
#include <vector>

namespace handoff::conformance {
namespace {

using device::TensorMapArgs;

constexpr const char* kTypes[] = {"u8",       "u16",       "u32",        "s32",       "u64",     "s64",
                                  "f16",      "f32",       "f64",        "bf16",      "f32.ftz", "tf32",
                                  "tf32.ftz", "u4.align8", "u4.align16", "u6.align16"};
constexpr const char* kInterleaves[] = {"none", "16B", "32B"};
constexpr const char* kSwizzles[] = {"none", "32B", "64B", "128B", "128B.atom32", "128B.atom32.flip8", "128B.atom64"};
constexpr const char* kPromotions[] = {"none", "64B", "128B", "256B"};
constexpr const char* kFills[] = {"none", "nan"};

bool parse_digits(std::string_view text, uint64_t* out) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return failed == std::errc() && end == text.data() + text.size();
}

/// N, 2^N, 2^N+K or 2^N-K, modulo 2^64.
bool parse_number(std::string_view text, uint64_t* out) {
  if (!text.starts_with("2^")) return parse_digits(text, out);
  const size_t sign = text.find_first_of("+-");
  uint64_t exponent = 0, rest = 0;
  if (!parse_digits(text.substr(2, sign == std::string_view::npos ? sign : sign - 2), &exponent) || exponent > 63)
    return false;
  if (sign != std::string_view::npos && !parse_digits(text.substr(sign + 1), &rest)) return false;
  *out = uint64_t{1} << exponent;
  *out = sign != std::string_view::npos && text[sign] == '-' ? *out - rest : *out + rest;
  return true;
}

/// A list 64x16 into at most N elements; how many it has is returned. 0: it is no such list.
template <class T, size_t N>
uint32_t parse_list(const std::string& text, std::array<T, N>* out) {
  if (text.ends_with('x')) return 0;
  std::istringstream in(text);
  uint32_t count = 0;
  for (std::string item; std::getline(in, item, 'x'); ++count) {
    uint64_t value = 0;
    if (count == N || !parse_number(item, &value) || value > std::numeric_limits<T>::max()) return 0;
    (*out)[count] = static_cast<T>(value);
  }
  return count;
}

template <class E, size_t N>
bool parse_name(const std::string& text, const char* const (&names)[N], E* out) {
  const auto* found = std::find(std::begin(names), std::end(names), text);
  uint64_t value = static_cast<uint64_t>(found - std::begin(names));
  if (found == std::end(names) && (!parse_digits(text, &value) || value > UINT32_MAX)) return false;
  *out = static_cast<E>(value);
  return true;
}

bool parse_base(const std::string& text, MapSpec* out) {
  out->base = MapSpec::Base::Absolute;
  std::string_view offset = text;
  for (const auto& [name, base] : {std::pair{std::string_view("in"), MapSpec::Base::Input},
                                   std::pair{std::string_view("out"), MapSpec::Base::Output}}) {
    if (!text.starts_with(name)) continue;
    out->base = base;
    if (text.size() == name.size()) return true;
    if (text[name.size()] != '+') return false;
    offset = std::string_view(text).substr(name.size() + 1);
  }
  return parse_number(offset, &out->args.global_address);
}

/// How many entries the lists had; 0: there was none.
struct Lengths {
  uint32_t dims = 0, strides = 0, box = 0, element_strides = 0;
};

/// One field. False: the value is not of its kind.
bool parse_field(const std::string& name, const std::string& value, Lengths* lengths, MapSpec* out) {
  TensorMapArgs& a = out->args;
  if (name == "type") return parse_name(value, kTypes, &a.tensor_data_type);
  if (name == "interleave") return parse_name(value, kInterleaves, &a.interleave);
  if (name == "swizzle") return parse_name(value, kSwizzles, &a.swizzle);
  if (name == "promotion") return parse_name(value, kPromotions, &a.l2_promotion);
  if (name == "oob") return parse_name(value, kFills, &a.oob_fill);
  if (name == "dims") return (lengths->dims = parse_list(value, &a.global_dim)) != 0;
  if (name == "strides") return (lengths->strides = parse_list(value, &a.global_strides)) != 0;
  if (name == "box") return (lengths->box = parse_list(value, &a.box_dim)) != 0;
  if (name == "element-strides") return (lengths->element_strides = parse_list(value, &a.element_strides)) != 0;
  if (name == "base") return parse_base(value, out);
  uint64_t rank = 0;
  if (!parse_digits(value, &rank) || rank > UINT32_MAX) return false;
  a.tensor_rank = static_cast<uint32_t>(rank);
  return true;
}

}  // namespace

std::string parse_map(const std::string& text, MapSpec* out) {
  static constexpr const char* kFields[] = {
      "type", "dims", "strides", "box", "element-strides", "base", "interleave", "swizzle", "promotion", "oob", "rank"};
  std::istringstream in(text);
  std::map<std::string, std::string> fields;
  for (std::string field; in >> field;) {
    const size_t equals = field.find('=');
    const std::string name = field.substr(0, equals);
    if (equals == std::string::npos || std::find(std::begin(kFields), std::end(kFields), name) == std::end(kFields)) {
      return fmt::format("takes fields NAME=VALUE, got '{}'; there are {}", field, fmt::join(kFields, ", "));
    }
    if (!fields.emplace(name, field.substr(equals + 1)).second) return name + ": a second time";
    out->text += (out->text.empty() ? "" : " ") + field;
  }
  for (const char* needed : {"type", "dims", "box"}) {
    if (!fields.contains(needed)) return fmt::format("needs {}=", needed);
  }
  Lengths lengths;
  for (const auto& [name, value] : fields) {
    if (!parse_field(name, value, &lengths, out))
      return fmt::format("{}={}: is not what this field takes", name, value);
  }
  if (!fields.contains("rank")) out->args.tensor_rank = lengths.dims;
  if (lengths.box != lengths.dims) return fmt::format("box has {} dimensions, dims {}", lengths.box, lengths.dims);
  if (lengths.strides + 1 != lengths.dims)
    return fmt::format("strides has {} entries: {} dimensions need {}", lengths.strides, lengths.dims,
                       lengths.dims - 1);
  if (lengths.element_strides != 0 && lengths.element_strides != lengths.dims)
    return fmt::format("element-strides has {} entries, dims {}", lengths.element_strides, lengths.dims);
  return "";
}

}  // namespace handoff::conformance
