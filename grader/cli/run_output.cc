// Tested by run_output_test.cc.
#include "grader/cli/run_output.h"

#include <fmt/format.h>

#include <algorithm>

namespace handoff::cli {

void Output::add(std::string_view text) {
  for (const char c : text) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  bytes_ += text.size();
  kept_.append(text.substr(0, std::min(text.size(), keep_ - kept_.size())));
}

std::string Output::difference(const Output& other) const {
  if (bytes_ == other.bytes_ && hash_ == other.hash_) return {};
  size_t at = 0, line = 1, begin = 0;
  for (; at < std::min(kept_.size(), other.kept_.size()) && kept_[at] == other.kept_[at]; ++at) {
    if (kept_[at] != '\n') continue;
    ++line;
    begin = at + 1;
  }
  if (at == keep_) return fmt::format("the output is another after its first {} bytes", keep_);
  return fmt::format("line {} of the output is {}, was {}", line, other.part(begin, at), part(begin, at));
}

/// Of the line that begins at `begin`, what people need to see a difference at `at`.
std::string Output::part(size_t begin, size_t at) const {
  constexpr size_t kMost = 60, kBefore = 30;  // bytes: in all, and before the difference in a line that is longer
  if (begin >= kept_.size()) return "missing";
  const size_t end = std::min(kept_.find('\n', begin), kept_.size());
  const size_t from = end - begin > kMost && at - begin > kBefore ? at - kBefore : begin;
  std::string text = kept_.substr(from, std::min(end - from, kMost));
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c >= 0x7f; }, '?');
  return fmt::format("{}'{}'{}{}", from > begin ? "…" : "", text, from + text.size() < end ? "…" : "",
                     end == kept_.size() && at == end ? " without an end" : "");
}

}  // namespace handoff::cli
