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

/// Of longer outputs the record keeps the first kFirstWords words and a hash of all: the repository holds the records.
///@{
constexpr size_t kMaxWholeWords = 512;
constexpr size_t kFirstWords = 16;
///@}

/// 32 hexadecimal digits: FNV-1a of 128 bits over the words, least significant byte first.
std::string hash_words(const std::vector<uint32_t>& words);

/// One answer.
struct Answer {
  std::vector<uint32_t> out;  ///< all words of the output, or, where there is a hash, the first kFirstWords
  std::string fingerprint;    ///< Case::fingerprint of the kernel that gave it
  bool fault = false;         ///< the launch was stopped by a fault: there are no words
  std::string hash = {};      ///< hash_words of all words where `out` has only the first
  size_t words = 0;           ///< with a hash: how many there are
};

/// The answers of one GPU on one day.
struct Record {
  /// Where and when: the GPU's name, the driver's version, YYYY-MM-DD (UTC), the CUDA toolkit's version.
  ///@{
  std::string gpu, driver, date, toolkit;
  ///@}
  std::string inputs;                   ///< inputs_fingerprint() of the words that the cases were given
  std::map<std::string, Answer> cases;  ///< by Case::name
};

/// The record as JSON, one case a line, with a final newline:
/// {"about": {"date", "driver", "gpu", "toolkit", "inputs"}, "cases": {"family/name": ANSWER}}, and ANSWER one of
/// {"kernel": FINGERPRINT, "words": N, "out": WORDS}                up to kMaxWholeWords words
/// {"kernel": FINGERPRINT, "words": N, "out": WORDS, "hash": HASH}  more: the first kFirstWords, and a hash of all N
/// {"kernel": FINGERPRINT, "fault": true}
std::string to_json(const Record& record);

/// Reads what to_json wrote. Empty, or one line that says what is wrong.
std::string from_json(const std::string& text, Record* out);

}  // namespace handoff::conformance
