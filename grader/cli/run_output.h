// What one run of a program wrote, to be compared with what another one did.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace handoff::cli {

/// The bytes of one stream: the first ones, and of the rest their number and a hash.
class Output {
 public:
  /// Keeps the first `keep` bytes.
  explicit Output(size_t keep = size_t{4} << 20) : keep_(keep) {}
  /// More of it.
  void add(std::string_view text);
  /// Empty where `other` is the same; else one line about the first place where it is not: "line 3 of the output is
  /// '7', was '-1'", where `other` is what is, and this what was.
  std::string difference(const Output& other) const;

 private:
  std::string part(size_t begin, size_t at) const;
  size_t keep_;
  std::string kept_;
  uint64_t bytes_ = 0, hash_ = 0xcbf29ce484222325u;  // FNV-1a
};

}  // namespace handoff::cli
