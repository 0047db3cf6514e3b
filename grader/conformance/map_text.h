// A tensor map as a line of text: what a case's head and encode/cases.txt say.
#pragma once

#include <cstdint>
#include <string>

#include "grader/device/device.h"

namespace handoff::conformance {

/// Arguments of cuTensorMapEncodeTiled whose address is known only once the case's buffers are.
struct MapSpec {
  /// What the address is counted from.
  enum class Base : uint8_t { Absolute, Input, Output };
  Base base = Base::Input;     ///< of args.global_address
  device::TensorMapArgs args;  ///< global_address: bytes from the base
  std::string text;            ///< the fields as they were written, one space between two: for fingerprints
};

/// Reads fields NAME=VALUE, separated by blanks, in any order, each at most once; lists go from the innermost dimension
/// outwards and are written 64x16. Numbers are decimal, or 2^N, 2^N+K, 2^N-K; an enumeration also takes its number.
///
///     type=u8|u16|u32|s32|u64|s64|f16|f32|f64|bf16|f32.ftz|tf32|tf32.ftz|u4.align8|u4.align16|u6.align16
///     dims=N[xN…] box=N[xN…]           elements, as many as dimensions
///     strides=N[xN…]                   bytes, one fewer; left out for one dimension
///     element-strides=N[xN…]           1 each where left out
///     base=in[+N]|out[+N]|N            start of the tensor in bytes; in where left out; a bare N is an address
///     interleave=none|16B|32B          none where left out, as the next three
///     swizzle=none|32B|64B|128B|128B.atom32|128B.atom32.flip8|128B.atom64
///     promotion=none|64B|128B|256B
///     oob=none|nan                     what a load puts where the tensor is not
///     rank=N                           the length of dims where left out; for the encoder's cases
///
/// Returns an empty string, or what is wrong.
std::string parse_map(const std::string& text, MapSpec* out);

}  // namespace handoff::conformance
