// Tested by conformance_test.cc.
#include "grader/conformance/case.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#include "grader/harness/compile_cache.h"

namespace handoff::conformance {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kMaxOutWords = 1 << 16;      // recorded answers live in the repository
constexpr uint32_t kMaxGrid = 1024;             // blocks; a case is small
constexpr uint32_t kMaxBlock = 1024;            // threads
constexpr uint32_t kMaxCluster = 8;             // blocks, the portable size
constexpr uint32_t kMaxSharedMem = 227 * 1024;  // bytes a block may have

std::string trimmed(const std::string& text) {
  static constexpr const char* kBlank = " \t\r";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

/// Reads the options of a line `// run: …`. Empty, or what is wrong.
std::string parse_run(const std::string& options, Case* out) {
  struct Option {
    const char* name;
    uint32_t low, high;
    uint32_t* value;
  };
  const Option known[] = {{"--grid", 1, kMaxGrid, &out->grid},
                          {"--block", 1, kMaxBlock, &out->block},
                          {"--cluster", 1, kMaxCluster, &out->cluster},
                          {"--out", 1, kMaxOutWords, &out->out_words},
                          {"--smem", 0, kMaxSharedMem, &out->dynamic_smem}};
  std::istringstream in(options);
  for (std::string name, text; in >> name;) {
    const auto* option =
        std::find_if(std::begin(known), std::end(known), [&](const Option& o) { return o.name == name; });
    if (option == std::end(known)) return "run: takes --grid, --block, --cluster, --out and --smem, got '" + name + "'";
    text.clear();
    in >> text;
    uint32_t value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed != std::errc() || end != text.data() + text.size() || value < option->low || value > option->high) {
      return fmt::format("run: {} takes a whole number from {} to {}, got '{}'", name, option->low, option->high, text);
    }
    *option->value = value;
  }
  if (out->out_words == 0) return "run: needs --out WORDS, the words that the kernel writes";
  if (out->grid % out->cluster != 0) return "run: --grid is not a multiple of --cluster: a grid has whole clusters";
  return "";
}

/// One line of the head after the first, without its slashes. Empty, or what is wrong.
std::string parse_line(const std::string& line, bool* has_run, Case* out) {
  const size_t colon = line.find(':');
  const std::string key = colon == std::string::npos ? "" : line.substr(0, colon);
  const std::string value = colon == std::string::npos ? "" : trimmed(line.substr(colon + 1));
  if (key != "run" && key != "source" && key != "undefined" && key != "diagnostic") return "";
  if (value.empty()) return key + ": says nothing";
  if (key == "diagnostic") {
    out->diagnostics.push_back(value);
    return "";
  }
  if (key == "run") {
    if (*has_run) return "run: a second time";
    *has_run = true;
    return parse_run(value, out);
  }
  std::string& text = key == "source" ? out->source : out->undefined;
  text += (text.empty() ? "" : " ") + value;
  return "";
}

}  // namespace

std::string parse_case(const std::string& text, Case* out) {
  std::istringstream in(text);
  bool in_head = true, has_run = false;
  int number = 0;
  harness::Fingerprint code;
  for (std::string raw; std::getline(in, raw);) {
    ++number;
    const std::string line = trimmed(raw);
    if (!line.starts_with("//")) {
      in_head = false;
      if (!line.empty()) code.add(line);
      continue;
    }
    if (!in_head) continue;
    const std::string comment = trimmed(line.substr(2));
    if (number == 1) {
      out->title = comment;
      continue;
    }
    if (const std::string problem = parse_line(comment, &has_run, out); !problem.empty())
      return fmt::format("{}: {}", number, problem);
  }
  if (out->title.empty()) return "1: the first line must say in a comment what the case settles";
  if (!has_run) return "1: the head has no line '// run: --out WORDS'";
  if (out->source.empty()) return "1: the head has no line '// source: …' with the section of the PTX manual";
  for (uint32_t value : {out->grid, out->block, out->cluster, out->out_words, out->dynamic_smem})
    code.add(std::to_string(value));
  out->fingerprint = code.hex();
  return "";
}

std::string find_cases(const fs::path& folder, std::vector<Case>* out) {
  std::vector<fs::path> files;
  std::error_code failed;
  for (const fs::directory_entry& family : fs::directory_iterator(folder, failed)) {
    if (!family.is_directory()) continue;
    for (const fs::directory_entry& file : fs::directory_iterator(family.path(), failed)) {
      if (file.path().extension() == ".cu") files.push_back(file.path());
    }
  }
  if (failed) return folder.string() + ": " + failed.message();
  for (const fs::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    if (!in) return file.string() + ": cannot be read";
    Case c;
    c.file = file;
    c.name = file.parent_path().filename().string() + "/" + file.stem().string();
    if (const std::string problem = parse_case(text.str(), &c); !problem.empty())
      c.head_problem = file.filename().string() + ":" + problem;
    out->push_back(std::move(c));
  }
  std::sort(out->begin(), out->end(), [](const Case& a, const Case& b) { return a.name < b.name; });
  return "";
}

}  // namespace handoff::conformance
