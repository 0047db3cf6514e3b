// The words that every conformance case reads its operands from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace handoff::conformance {

/// Where the parts of the input begin, in words.
///@{
constexpr size_t kFloatWords = 0;      ///< 128 binary32 patterns, x and −x in turn
constexpr size_t kIntegerWords = 128;  ///< 64 integers
constexpr size_t kHalfWords = 192;     ///< 32 pairs of binary16 (f16x2), the lower one in bits 0–15
constexpr size_t kBfloatWords = 224;   ///< 32 pairs of bfloat16 (bf16x2)
constexpr size_t kRandomWords = 256;   ///< splitmix64 from seed 1, the low 32 bits of each number, to the end
constexpr size_t kInputWords = 4096;   ///< all
///@}

/// The input: kInputWords words, always the same. An answer that is recorded belongs to exactly these.
std::vector<uint32_t> input_words();

/// Of input_words(): a record belongs to one input.
std::string inputs_fingerprint();

}  // namespace handoff::conformance
