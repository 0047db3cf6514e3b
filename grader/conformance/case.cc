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
constexpr const char* kEncodeFamily = "encode";
constexpr const char* kEncodeFile = "cases.txt";

std::string trimmed(const std::string& text) {
  static constexpr const char* kBlank = " \t\r";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

/// X, XxY or XxYxZ, each at least 1, whose product is at most `high`.
bool parse_extents(const std::string& text, uint32_t high, device::Dim3* out) {
  if (text.ends_with('x')) return false;
  std::istringstream in(text);
  uint32_t* const extents[] = {&out->x, &out->y, &out->z};
  *out = device::Dim3{};
  size_t count = 0;
  for (std::string item; std::getline(in, item, 'x'); ++count) {
    if (count == std::size(extents)) return false;
    uint32_t& value = *extents[count];
    const auto [end, failed] = std::from_chars(item.data(), item.data() + item.size(), value);
    if (failed != std::errc() || end != item.data() + item.size() || value == 0 || value > high) return false;
  }
  return count > 0 && out->volume() <= high;
}

/// Reads the options of a line `// run: …`. Empty, or what is wrong.
std::string parse_run(const std::string& options, Case* out) {
  struct Option {
    const char* name;
    uint32_t low, high;
    uint32_t* number;       // either this
    device::Dim3* extents;  // or this
  };
  const Option known[] = {{"--grid", 1, kMaxGrid, nullptr, &out->grid},
                          {"--block", 1, kMaxBlock, nullptr, &out->block},
                          {"--cluster", 1, kMaxCluster, nullptr, &out->cluster},
                          {"--out", 1, kMaxOutWords, &out->out_words, nullptr},
                          {"--smem", 0, kMaxSharedMem, &out->dynamic_smem, nullptr}};
  std::istringstream in(options);
  for (std::string name, text; in >> name;) {
    const auto* option =
        std::find_if(std::begin(known), std::end(known), [&](const Option& o) { return o.name == name; });
    if (option == std::end(known)) return "run: takes --grid, --block, --cluster, --out and --smem, got '" + name + "'";
    text.clear();
    in >> text;
    if (option->extents != nullptr) {
      if (!parse_extents(text, option->high, option->extents)) {
        return fmt::format("run: {} takes X, XxY or XxYxZ, together {} to {}, got '{}'", name, option->low,
                           option->high, text);
      }
      continue;
    }
    uint32_t value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed != std::errc() || end != text.data() + text.size() || value < option->low || value > option->high) {
      return fmt::format("run: {} takes a whole number from {} to {}, got '{}'", name, option->low, option->high, text);
    }
    *option->number = value;
  }
  if (out->out_words == 0) return "run: needs --out WORDS, the words that the kernel writes";
  const device::Dim3 &g = out->grid, &c = out->cluster;
  if (g.x % c.x != 0 || g.y % c.y != 0 || g.z % c.z != 0)
    return "run: --grid is not a multiple of --cluster: a grid has whole clusters";
  return "";
}

/// One line of the head after the first, without its slashes. Empty, or what is wrong.
std::string parse_line(const std::string& line, bool* has_run, Case* out) {
  const size_t colon = line.find(':');
  const std::string key = colon == std::string::npos ? "" : line.substr(0, colon);
  const std::string value = colon == std::string::npos ? "" : trimmed(line.substr(colon + 1));
  if (key != "run" && key != "tensor-map" && key != "source" && key != "undefined" && key != "diagnostic" &&
      key != "fault")
    return "";
  if (value.empty()) return key + ": says nothing";
  if (key == "diagnostic") {
    out->diagnostics.push_back(value);
    return "";
  }
  if (key == "fault") {
    if (!out->fault.empty()) return "fault: a second time";
    out->fault = value;
    return "";
  }
  if (key == "tensor-map") {
    const std::string problem = parse_map(value, &out->maps.emplace_back());
    return problem.empty() ? "" : "tensor-map: " + problem;
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
  if (!out->fault.empty() && !out->undefined.empty()) return "1: a case must either fault or is undefined";
  for (const device::Dim3& d : {out->grid, out->block, out->cluster}) code.add(fmt::format("{} {} {}", d.x, d.y, d.z));
  for (uint32_t value : {out->out_words, out->dynamic_smem}) code.add(std::to_string(value));
  for (const MapSpec& map : out->maps) code.add(map.text);
  out->fingerprint = code.hex();
  return "";
}

std::vector<Case> parse_encode_cases(const fs::path& file, const std::string& text) {
  static constexpr std::string_view kUndefined = "; undefined:";
  std::vector<Case> cases;
  std::istringstream in(text);
  int number = 0;
  for (std::string raw; std::getline(in, raw);) {
    ++number;
    const std::string line = trimmed(raw);
    if (line.empty() || line.starts_with("#")) continue;
    Case c;
    c.file = file;
    c.encodes = true;
    c.out_words = 1;
    const size_t colon = line.find(": "), mark = line.find(kUndefined);
    std::string problem = "takes NAME: FIELDS";
    if (colon != std::string::npos && colon < mark) {
      c.title = line.substr(0, colon);
      const std::string fields = line.substr(colon + 2, mark == std::string::npos ? mark : mark - colon - 2);
      problem = parse_map(fields, &c.maps.emplace_back());
    }
    if (mark != std::string::npos) {
      c.undefined = trimmed(line.substr(mark + kUndefined.size()));
      if (c.undefined.empty() && problem.empty()) problem = "undefined: says nothing";
    }
    if (c.title.find_first_of(" /") != std::string::npos && problem.empty())
      problem = "a name has no blanks or slashes";
    c.name = fmt::format("{}/{}", kEncodeFamily, c.title.empty() ? fmt::format("line {}", number) : c.title);
    if (problem.empty() && std::any_of(cases.begin(), cases.end(), [&](const Case& k) { return k.name == c.name; }))
      problem = "the name stands here a second time";
    if (!problem.empty()) c.head_problem = fmt::format("{}:{}: {}", file.filename().string(), number, problem);
    harness::Fingerprint arguments;
    if (!c.maps.empty()) arguments.add(c.maps[0].text);
    c.fingerprint = arguments.hex();
    cases.push_back(std::move(c));
  }
  return cases;
}

std::string find_cases(const fs::path& folder, std::vector<Case>* out) {
  std::vector<fs::path> files;
  std::error_code failed;
  for (const fs::directory_entry& family : fs::directory_iterator(folder, failed)) {
    if (!family.is_directory()) continue;
    const bool encodes = family.path().filename() == kEncodeFamily;
    for (const fs::directory_entry& file : fs::directory_iterator(family.path(), failed)) {
      if (encodes ? file.path().filename() == kEncodeFile : file.path().extension() == ".cu")
        files.push_back(file.path());
    }
  }
  if (failed) return folder.string() + ": " + failed.message();
  for (const fs::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    if (!in) return file.string() + ": cannot be read";
    if (file.filename() == kEncodeFile) {
      for (Case& c : parse_encode_cases(file, text.str())) out->push_back(std::move(c));
      continue;
    }
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
