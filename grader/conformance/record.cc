// Tested by conformance_test.cc.
#include "grader/conformance/record.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <sstream>

#include "grader/harness/compile_cache.h"

namespace handoff::conformance {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxWords = 1 << 16;  // a case: find_cases lets none have more
constexpr size_t kDigits = 8;          // of a word

/// All of `text` as a number. False where it is none.
template <class T>
bool parse_number(std::string_view text, int base, T* out) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), *out, base);
  return failed == std::errc() && end == text.data() + text.size();
}

std::string read_answer(const Json& json, Answer* out) {
  out->fingerprint = json.at("kernel").get<std::string>();
  if (json.contains("fault")) {
    out->fault = json.at("fault").get<bool>();
    return out->fault ? "" : "\"fault\" is false";
  }
  const auto words = json.at("words").get<uint64_t>();
  if (words > kMaxWords || !decode_words(json.at("out").get<std::string>(), kMaxWords, &out->out))
    return "\"out\" is no list of words";
  if (json.contains("hash")) {
    out->hash = json.at("hash").get<std::string>();
    out->words = words;
    if (out->out.size() == kFirstWords && words > kMaxWholeWords) return "";
    return fmt::format("has a hash, and {} of {} words", out->out.size(), words);
  }
  if (out->out.size() != words) return fmt::format("\"out\" has {} words, \"words\" says {}", out->out.size(), words);
  return "";
}

Json answer_json(const Answer& answer) {
  if (answer.fault) return {{"kernel", answer.fingerprint}, {"fault", true}};
  if (!answer.hash.empty()) {
    return {{"kernel", answer.fingerprint},
            {"words", answer.words},
            {"out", encode_words(answer.out)},
            {"hash", answer.hash}};
  }
  if (answer.out.size() <= kMaxWholeWords)
    return {{"kernel", answer.fingerprint}, {"words", answer.out.size()}, {"out", encode_words(answer.out)}};
  Answer shortened = answer;
  shortened.hash = hash_words(answer.out);
  shortened.words = answer.out.size();
  shortened.out.resize(kFirstWords);
  return answer_json(shortened);
}

}  // namespace

std::string hash_words(const std::vector<uint32_t>& words) {
  std::string bytes;
  bytes.reserve(words.size() * sizeof(uint32_t));
  for (uint32_t word : words) {
    for (int shift : {0, 8, 16, 24}) bytes += static_cast<char>(word >> shift & 0xff);
  }
  harness::Fingerprint hash;
  hash.add(bytes);
  return hash.hex();
}

std::string encode_words(const std::vector<uint32_t>& words) {
  std::string text;
  for (size_t i = 0; i < words.size();) {
    size_t end = i + 1;
    while (end < words.size() && words[end] == words[i]) ++end;
    text += fmt::format("{}{:08x}", text.empty() ? "" : " ", words[i]);
    if (end - i > 1) text += fmt::format("*{}", end - i);
    i = end;
  }
  return text;
}

bool decode_words(const std::string& text, size_t limit, std::vector<uint32_t>* words) {
  words->clear();
  std::istringstream in(text);
  for (std::string item; in >> item;) {
    const size_t star = item.find('*');
    uint32_t word = 0;
    size_t count = 1;
    if (star != std::string::npos && !parse_number(std::string_view(item).substr(star + 1), 10, &count)) return false;
    const std::string_view digits = std::string_view(item).substr(0, star);
    if (digits.size() != kDigits || !parse_number(digits, 16, &word)) return false;
    if (count == 0 || count > limit - words->size()) return false;
    words->insert(words->end(), count, word);
  }
  return true;
}

std::string to_json(const Record& record) {
  const Json about = {{"date", record.date},
                      {"driver", record.driver},
                      {"gpu", record.gpu},
                      {"toolkit", record.toolkit},
                      {"inputs", record.inputs}};
  // nlohmann's indentation would spread a case over five lines; one line each makes a readable difference of two
  // records.
  std::string text = "{\n\"about\": " + about.dump() + ",\n\"cases\": {";
  const char* separator = "\n";
  for (const auto& [name, answer] : record.cases) {
    text += separator + Json(name).dump() + ": " + answer_json(answer).dump();
    separator = ",\n";
  }
  return text + "\n}\n}\n";
}

std::string from_json(const std::string& text, Record* out) {
  *out = Record{};
  try {
    const Json json = Json::parse(text);
    const Json& about = json.at("about");
    out->gpu = about.at("gpu").get<std::string>();
    out->driver = about.at("driver").get<std::string>();
    out->date = about.at("date").get<std::string>();
    out->toolkit = about.at("toolkit").get<std::string>();
    out->inputs = about.at("inputs").get<std::string>();
    for (const auto& [name, entry] : json.at("cases").items()) {
      if (const std::string problem = read_answer(entry, &out->cases[name]); !problem.empty())
        return name + ": " + problem;
    }
  } catch (const nlohmann::json::exception& e) {
    return fmt::format("is no record of answers: {}", e.what());
  }
  return "";
}

}  // namespace handoff::conformance
