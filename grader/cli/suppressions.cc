// Tested by suppressions_test.cc.
#include "grader/cli/suppressions.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "grader/cli/exercises.h"

namespace handoff::cli {
namespace {

constexpr std::string_view kSpace = " \t\r";
constexpr const char* kForm = "ID, ID @ FILE:LINE, ID in KERNEL or ID @ FILE:LINE in KERNEL";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

/// Names of kernels may have a '#' in them, but no space before it: "{lambda(int)#1}".
std::string_view without_comment(std::string_view line) {
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '#' && (i == 0 || kSpace.find(line[i - 1]) != std::string_view::npos)) return line.substr(0, i);
  }
  return line;
}

/// The path `file` ends with `part`, which begins where a folder or file does.
bool ends_with_path(std::string_view file, std::string_view part) {
  if (part.size() > file.size() || file.substr(file.size() - part.size()) != part) return false;
  return part.size() == file.size() || part.front() == '/' || file[file.size() - part.size() - 1] == '/';
}

/// Reads "FILE" or "FILE:LINE"; empty, or what is wrong.
std::string read_place(std::string_view text, Suppression* s) {
  const size_t colon = text.rfind(':');
  s->file = std::string(text.substr(0, colon));
  if (s->file.empty()) return fmt::format("expected FILE:LINE after '@', got '{}'", text);
  if (colon == std::string_view::npos) return {};
  const std::string_view digits = text.substr(colon + 1);
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), s->place);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size() || s->place == 0) {
    return fmt::format("expected the number of a line after '{}:', got '{}'", s->file, digits);
  }
  return {};
}

/// Reads a line without its comment; empty, or what is wrong.
std::string read_line(std::string_view text, const std::vector<std::string>& ids, Suppression* s) {
  s->text = std::string(text);
  const std::string_view id = text.substr(0, text.find_first_of(kSpace));
  s->id = std::string(id);
  const bool known =
      ids.empty() || std::any_of(ids.begin(), ids.end(), [&](const std::string& i) { return matches_glob(id, i); });
  if (!known) return fmt::format("no diagnostic '{}'{}", id, suggestion(s->id, ids, "; ./handoff explain lists them"));
  std::string_view rest = trimmed(text.substr(id.size()));
  const auto begins_with = [&](std::string_view word) {  // takes it, and the space behind it
    if (rest.substr(0, word.size()) != word) return false;
    if (rest.size() > word.size() && kSpace.find(rest[word.size()]) == std::string_view::npos) return false;
    rest = trimmed(rest.substr(word.size()));
    return true;
  };
  if (begins_with("@")) {
    const size_t in = std::min(rest.find(" in "), rest.size());  // a path may have spaces
    if (std::string wrong = read_place(trimmed(rest.substr(0, in)), s); !wrong.empty()) return wrong;
    rest = trimmed(rest.substr(in));
  }
  if (begins_with("in")) {
    s->kernel = std::string(rest);
    return rest.empty() ? "expected the name of a kernel after 'in'" : "";
  }
  return rest.empty() ? "" : fmt::format("expected '@ FILE:LINE' or 'in KERNEL' after '{}', got '{}'", id, rest);
}

}  // namespace

bool matches_glob(std::string_view pattern, std::string_view text) {
  // Where a character does not fit, the last star takes one more.
  size_t p = 0, t = 0, star = std::string_view::npos, taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::vector<std::string> catalogue_ids() {
  std::vector<std::string> ids;
  std::error_code failed;
  const std::filesystem::path folder = harness::project_root() / "docs" / "diagnostics";
  for (const auto& page : std::filesystem::directory_iterator(folder, failed)) {
    const std::string name = page.path().stem().string();
    if (page.path().extension() == ".md" && name != "README" && name != "index") ids.push_back(name);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

bool Suppression::matches(const Diagnostic& diagnostic, const std::string& kernel_name) const {
  return matches_glob(id, diagnostic.id) && (file.empty() || ends_with_path(diagnostic.place.file, file)) &&
         (place == 0 || place == diagnostic.place.line) && (kernel.empty() || matches_glob(kernel, kernel_name));
}

std::string Suppressions::read(const std::string& text, const std::string& name, const std::vector<std::string>& ids) {
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = trimmed(without_comment(std::string_view(text).substr(at, end - at)));
    at = end + 1;
    ++number;
    if (line.empty()) continue;
    Suppression s;
    s.line = number;
    if (const std::string wrong = read_line(line, ids, &s); !wrong.empty()) {
      return fmt::format("{}:{}: {} (a line is {})", name, number, wrong, kForm);
    }
    lines_.push_back(std::move(s));
  }
  return {};
}

bool Suppressions::covers(const Diagnostic& diagnostic, const std::string& kernel) {
  const auto found =
      std::find_if(lines_.begin(), lines_.end(), [&](const Suppression& s) { return s.matches(diagnostic, kernel); });
  if (found == lines_.end()) return false;
  ++found->matched;
  return true;
}

}  // namespace handoff::cli
