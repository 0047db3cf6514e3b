// What a GPU answered, kept in the repository: docs/results/conformance-GPU-DATE.json.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace handoff::conformance {

/// Words as text: eight hexadecimal digits each, separated by spaces; a run of n equal words is WORD*n, n decimal.
std::string encode_words(const std::vector<uint32_t>& words);

/// The words of a text that encode_words wrote. False where it is no such text or has more than `limit` words.
bool decode_words(const std::string& text, size_t limit, std::vector<uint32_t>* words);

/// One answer.
struct Answer {
  std::vector<uint32_t> out;  ///< all words of the output
  std::string fingerprint;    ///< Case::fingerprint of the kernel that gave it
};

/// The answers of one GPU on one day.
struct Record {
  /// Where and when: the GPU's name, the driver's version, YYYY-MM-DD (UTC), the CUDA toolkit's version.
  ///@{
  std::string gpu, driver, date, toolkit;
  ///@}
  std::map<std::string, Answer> cases;  ///< by Case::name
};

/// The record as JSON, one case a line, with a final newline:
/// {"about": {"date", "driver", "gpu", "toolkit"}, "cases": {"family/name": {"words": N, "kernel": FINGERPRINT, "out":
/// WORDS}}}
std::string to_json(const Record& record);

/// Reads what to_json wrote. Empty, or one line that says what is wrong.
std::string from_json(const std::string& text, Record* out);

}  // namespace handoff::conformance
