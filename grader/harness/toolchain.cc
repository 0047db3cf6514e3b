// Tested by toolchain_test.cc.
//
// A submission becomes PTX in a temporary folder that holds a copy of it under its own file name, so that every path
// nvcc sees is known. What nvcc writes still depends on where it ran in two ways, and both are taken out, so that the
// same source and the same toolkit give the same bytes on every machine (the PTX kept in solutions/ is compared with
// that):
//   * `.file` directives carry absolute paths. The submission's folder and the course's include folder are cut off;
//   headers of the
//     toolkit become "cuda/<path below include>", the system's "system/<path below include>".
//   * Names with internal linkage carry a hash of the path ("_INTERNAL_5bcf0ecd_9_kernel_cu_…"). Its eight digits
//   become zeros, in
//     the text and in the byte strings of .debug_str, which spell the names of inlined functions one `.b8` a line. One
//     module is loaded at a time, so the names need not differ between modules.
//
// ptxas then assembles the normalised text: what it accepted is what the emulator runs.
#include "grader/harness/toolchain.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string_view>

#include "grader/harness/compile_cache.h"
#include "grader/harness/process.h"

namespace handoff::harness {
namespace {

namespace fs = std::filesystem;

constexpr double kToolSeconds = 120;
constexpr const char* kRejectedByPtxas = "does not assemble: ptxas rejects an instruction";
constexpr size_t kMaxDetailLines = 14;  // with the verdict around it: one screen

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

bool write_file(const fs::path& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  return !out.fail();
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

bool starts_with(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool executable(const fs::path& path) { return fs::is_regular_file(path) && access(path.c_str(), X_OK) == 0; }

// A folder of its own under the system's temporary folder, removed with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code failed;
    std::string pattern = (fs::temp_directory_path(failed) / "handoff-XXXXXX").string();
    if (!failed && mkdtemp(pattern.data()) != nullptr) path_ = fs::canonical(pattern, failed);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }  // empty: could not be made

 private:
  fs::path path_;
};

// --- Normalisation ---------------------------------------------------------------------------------------------------

// Where a path of a `.file` directive belongs, see the essay above.
std::string normal_path(const std::string& written, const std::vector<std::string>& own_folders,
                        const std::string& toolkit) {
  const std::string path = fs::path(written).lexically_normal().string();
  for (const std::string& folder : own_folders) {
    if (!folder.empty() && starts_with(path, folder + "/")) return path.substr(folder.size() + 1);
  }
  static constexpr std::string_view kInclude = "/include/";
  const size_t include = path.find(kInclude);
  if (include == std::string::npos) return fs::path(path).filename().string();
  std::string below = path.substr(include + kInclude.size());
  if (starts_with(path, toolkit + "/")) {
    if (starts_with(below, "cccl/")) below.erase(0, 5);
    return starts_with(below, "cuda/") ? below : "cuda/" + below;
  }
  return "system/" + below;
}

// Zeroes the path hash wherever `text` has one of the two marks that nvcc puts before it. `position(i)` is called for
// each digit.
template <class Zero>
void find_path_hashes(const std::string& text, Zero zero) {
  constexpr size_t kDigits = 8;
  for (std::string_view mark : {"_INTERNAL_", "_GLOBAL__N__"}) {
    for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
      const size_t digits = at + mark.size();
      if (digits + kDigits >= text.size() || text[digits + kDigits] != '_') continue;
      const auto end = text.begin() + static_cast<std::ptrdiff_t>(digits + kDigits);
      if (!std::all_of(end - kDigits, end, [](unsigned char c) { return std::isxdigit(c) != 0; })) continue;
      for (size_t i = digits; i < digits + kDigits; ++i) zero(i);
    }
  }
}

std::string normalise_ptx(const std::string& ptx, const std::vector<std::string>& own_folders,
                          const std::string& toolkit) {
  std::vector<std::string> lines = split_lines(ptx);
  // A run of ".b8 <decimal>" lines is one byte string; `bytes` is its text, from line `first`.
  std::string bytes;
  size_t first = 0;
  const auto end_of_bytes = [&] {
    find_path_hashes(bytes, [&](size_t i) { lines[first + i] = ".b8 48"; });
    bytes.clear();
  };
  for (size_t i = 0; i < lines.size(); ++i) {
    std::string& line = lines[i];
    if (starts_with(line, ".b8 ") && line.find_first_not_of("0123456789", 4) == std::string::npos) {
      if (bytes.empty()) first = i;
      bytes += static_cast<char>(std::atoi(line.c_str() + 4));
      continue;
    }
    end_of_bytes();
    const size_t open = line.find('"');
    if (open != std::string::npos && line.find(".file") < open) {
      const size_t close = line.find('"', open + 1);
      if (close != std::string::npos) {
        line = line.substr(0, open + 1) + normal_path(line.substr(open + 1, close - open - 1), own_folders, toolkit) +
               "\"";
      }
    } else {
      find_path_hashes(line, [&](size_t at) { line[at] = '0'; });
    }
  }
  end_of_bytes();
  std::string text;
  text.reserve(ptx.size());
  for (const std::string& line : lines) text.append(line).append("\n");
  return text;
}

// --- Messages --------------------------------------------------------------------------------------------------------

std::string join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "\n") + line;
  return text;
}

// libcu++ puts its version into every name ("cuda::ptx::__4::mbarrier_init"), which no learner wrote.
std::string without_inline_namespaces(const std::string& line) {
  static const std::regex version("::__[0-9]+::");
  return std::regex_replace(line, version, "::");
}

struct TrimmedMessages {
  std::vector<std::string> lines;
  size_t errors = 0;
};

// The part of nvcc's messages that speaks about `file` (a bare name): whole messages with their source line and caret,
// without the notes that list every overload in the toolkit's headers, and without warnings when there are errors. An
// error inside a header stays with its first line and those lines of its trail that name `file`.
TrimmedMessages trim_messages(const std::string& raw, const std::string& file) {
  // Front end: `kernel.cu(10): error: …`; preprocessor: `kernel.cu:1:10: fatal error: …`.
  static const std::regex front_end(R"(^(.+)\(([0-9]+)\): (?:catastrophic )?(error|warning|note|remark)(.*)$)");
  static const std::regex preprocessor(R"(^(.+?):([0-9]+):([0-9]+:)? (?:fatal )?(error|warning|note)(:.*)$)");
  static const std::regex number(R"(^ #[0-9]+(-D)?)");
  TrimmedMessages trimmed;
  enum class Keep { All, TrailOnly, Nothing } keep = Keep::Nothing;
  for (const std::string& line : split_lines(raw)) {
    std::smatch match;
    const bool plain = std::regex_match(line, match, front_end);
    if (plain || std::regex_match(line, match, preprocessor)) {
      const std::string name = fs::path(match[1].str()).filename().string();
      const std::string kind = plain ? match[3].str() : match[4].str();
      const std::string rest = std::regex_replace(plain ? match[4].str() : match[5].str(), number, "");
      if (kind != "error") {
        keep = Keep::Nothing;
        continue;
      }
      ++trimmed.errors;
      keep = name == file ? Keep::All : Keep::TrailOnly;
      trimmed.lines.push_back(without_inline_namespaces(name + ":" + match[2].str() + ": error" + rest));
    } else if (line.empty() || starts_with(line, "Remark:") ||
               line.find(" detected in the compilation of ") != std::string::npos) {
      keep = Keep::Nothing;
    } else if (keep == Keep::All || (keep == Keep::TrailOnly && line.find(file) != std::string::npos)) {
      trimmed.lines.push_back(without_inline_namespaces(line));
    }
  }
  return trimmed;
}

// ptxas names lines of the PTX; a learner has lines of the source. The `.loc` above the line tells which.
std::vector<std::string> translate_ptxas(const std::string& raw, const std::string& ptx) {
  static const std::regex message(R"(^ptxas [^,]*, line ([0-9]+); (error|fatal) *: (.*)$)");
  static const std::regex location(R"(^\s*\.loc\s+([0-9]+)\s+([0-9]+)\s.*)");
  static const std::regex inlined(R"(inlined_at\s+([0-9]+)\s+([0-9]+))");
  static const std::regex file_name(R"re(^\s*\.file\s+([0-9]+)\s+"([^"]*)".*)re");
  const std::vector<std::string> ptx_lines = split_lines(ptx);
  std::vector<std::string> files;
  for (const std::string& line : ptx_lines) {
    std::smatch match;
    if (line.find(".file") == std::string::npos || !std::regex_match(line, match, file_name)) continue;
    const size_t index = std::stoul(match[1].str());
    if (index < 4096 && files.size() <= index) files.resize(index + 1);
    if (index < files.size()) files[index] = match[2].str();
  }
  std::vector<std::string> lines;
  std::set<std::string> seen;
  for (const std::string& line : split_lines(raw)) {
    std::smatch match;
    if (!std::regex_match(line, match, message)) continue;
    std::string place;
    for (size_t at = std::min<size_t>(std::stoul(match[1].str()), ptx_lines.size()); at-- > 0 && place.empty();) {
      std::smatch loc, site;
      if (!std::regex_match(ptx_lines[at], loc, location)) continue;
      // The innermost frame is a header's wrapper; the call in the learner's file is what the learner can change.
      const bool in_call = std::regex_search(ptx_lines[at], site, inlined);
      const size_t index = std::stoul(in_call ? site[1].str() : loc[1].str());
      const std::string line_number = in_call ? site[2].str() : loc[2].str();
      if (index < files.size()) place = files[index] + ":" + line_number + ": ";
    }
    std::string text = place + "ptxas: " + match[3].str();
    if (seen.insert(text).second) lines.push_back(std::move(text));
  }
  return lines;
}

// `lines` cut to one screen.
std::string as_detail(std::vector<std::string> lines) {
  if (lines.size() > kMaxDetailLines) {
    const size_t more = lines.size() - kMaxDetailLines + 1;
    lines.resize(kMaxDetailLines - 1);
    lines.push_back("… " + std::to_string(more) + " more lines");
  }
  return join(lines);
}

// Sets error and detail from what a tool said; `raw` is shown where nothing in it could be understood.
void report(const std::string& what, const std::vector<std::string>& lines, const std::string& raw,
            CompileResult* result) {
  result->ok = false;
  result->error = what;
  result->detail = as_detail(lines.empty() ? split_lines(raw) : lines);
}

// --- ptxas -v --------------------------------------------------------------------------------------------------------

uint32_t to_u32(const std::ssub_match& digits) { return static_cast<uint32_t>(std::stoul(digits.str())); }

// What ptxas -v says of `kernel`. Below the lines of an entry stand those of the functions that it calls, each with its
// own frame and spills:
//   Compiling entry function 'add' for 'sm_100a'
//   Function properties for add
//       1008 bytes stack frame, 1400 bytes spill stores, 1868 bytes spill loads
//   Used 32 registers, used 1 barriers, 1008 bytes cumulative stack size, 256 bytes smem
//   Function properties for twice
//       0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
Resources parse_resources(const std::string& log, const std::string& kernel) {
  static const std::regex compiling("Compiling entry function '([^']+)'");
  static const std::regex used("Used ([0-9]+) registers");
  static const std::regex shared("([0-9]+) bytes smem");
  static const std::regex frame("([0-9]+) bytes stack frame, ([0-9]+) bytes spill stores, ([0-9]+) bytes spill loads");
  static const std::regex cumulative("([0-9]+) bytes cumulative stack size");
  Resources resources;
  bool inside = false;
  for (const std::string& line : split_lines(log)) {
    std::smatch match;
    if (std::regex_search(line, match, compiling)) inside = match[1].str() == kernel;
    if (!inside) continue;
    if (std::regex_search(line, match, frame)) {
      resources.stack = std::max(resources.stack, to_u32(match[1]));
      resources.spill_stores += to_u32(match[2]);
      resources.spill_loads += to_u32(match[3]);
    }
    if (std::regex_search(line, match, used)) resources.registers = to_u32(match[1]);
    if (std::regex_search(line, match, shared)) resources.static_smem = to_u32(match[1]);
    if (std::regex_search(line, match, cumulative)) resources.stack = std::max(resources.stack, to_u32(match[1]));
  }
  return resources;
}

// --- Compilation -----------------------------------------------------------------------------------------------------

std::vector<std::string> nvcc_flags(const std::string& target) {
  const std::string arch = "compute_" + target;
  return {"-std=c++20", "-lineinfo", "-gencode", "arch=" + arch + ",code=" + arch, "-ptx", "-x", "cu"};
}

std::string cache_key(const Toolchain& toolchain, const std::string& file, const std::string& source,
                      const CompileOptions& options) {
  Fingerprint key;
  key.add(toolchain.nvcc.string());
  key.add(toolchain.version);
  for (const std::string& flag : nvcc_flags(options.target)) key.add(flag);
  key.add(options.want_cubin ? "cubin" : "ptx");
  key.add(file);
  key.add(source);
  std::vector<fs::path> headers;
  std::error_code ignored;
  for (const fs::directory_entry& e : fs::recursive_directory_iterator(options.include_dir, ignored)) {
    if (e.is_regular_file()) headers.push_back(e.path());
  }
  std::sort(headers.begin(), headers.end());
  for (const fs::path& header : headers) {
    key.add(header.lexically_relative(options.include_dir).string());
    key.add(read_file(header));
  }
  return key.hex();
}

// True if nvcc read only the submission, the course's headers, the toolkit and the system: all of that is in the key. A
// submission with headers of its own is compiled anew each time.
bool key_covers(const std::string& dependencies, const std::string& file,
                const std::vector<std::string>& known_folders) {
  std::istringstream in(dependencies);
  std::string path;
  in >> path;  // "out.ptx", then ":"
  while (in >> path) {
    if (path == ":" || path == "\\" || path == file) continue;
    std::error_code failed;
    const std::string real = fs::canonical(path, failed).string();
    if (failed) return false;
    if (std::none_of(known_folders.begin(), known_folders.end(),
                     [&](const std::string& folder) { return starts_with(real, folder + "/"); })) {
      return false;
    }
  }
  return true;
}

std::string canonical_or_empty(const fs::path& path) {
  std::error_code failed;
  const fs::path real = fs::canonical(path, failed);
  return failed ? "" : real.string();
}

std::string tool_problem(const char* tool, const ProcessResult& run) {
  return std::string(tool) + " " + describe_failure(run);
}

// True if the tool ran to its own end, whatever it says.
bool came_to_an_end(const ProcessResult& run) { return run.error.empty() && !run.timed_out && run.signal == 0; }

// nvcc and ptxas on `source`; sets `entry` and `cacheable`, or the error in `result`.
bool build(const Toolchain& toolchain, const fs::path& source, const std::string& file, const std::string& text,
           const CompileOptions& options, CacheEntry* entry, bool* cacheable, CompileResult* result) {
  const TemporaryFolder work;
  if (work.path().empty() || !write_file(work.path() / file, text)) {
    report("cannot write to the temporary folder; is the disk full?", {}, "", result);
    return false;
  }
  const std::string folder = canonical_or_empty(source.has_parent_path() ? source.parent_path() : fs::path("."));
  const std::string headers = canonical_or_empty(options.include_dir);
  // <toolkit>/bin/nvcc, behind any symbolic links.
  const std::string toolkit = fs::path(canonical_or_empty(toolchain.nvcc)).parent_path().parent_path().string();
  const std::vector<std::string> own_folders = {work.path().string(), headers, folder};
  ProcessOptions process;
  process.folder = work.path();
  process.timeout_s = kToolSeconds;
  process.environment = {{"TMPDIR", work.path().string()}, {"LC_ALL", "C"}};

  std::vector<std::string> argv = {toolchain.nvcc.string()};
  for (const std::string& flag : nvcc_flags(options.target)) argv.push_back(flag);
  // The course's headers come first, so that a file of the same name beside the submission cannot take their place.
  if (!headers.empty()) argv.insert(argv.end(), {"-I", headers});
  argv.insert(argv.end(), {"-I", folder, "-MD", "-MF", "out.d", "-o", "out.ptx", file});
  const ProcessResult nvcc = run_process(argv, process);
  if (!came_to_an_end(nvcc)) {
    report("does not compile: " + tool_problem("nvcc", nvcc), {}, "", result);
    return false;
  }
  const std::string said = nvcc.errors + nvcc.output;
  if (nvcc.exit_code != 0) {
    // nvcc runs ptxas over its PTX, and fails where ptxas does.
    const std::string rejected = normalise_ptx(read_file(work.path() / "out.ptx"), own_folders, toolkit);
    if (const std::vector<std::string> lines = translate_ptxas(said, rejected); !lines.empty()) {
      report(kRejectedByPtxas, lines, said, result);
      return false;
    }
    const TrimmedMessages trimmed = trim_messages(said, file);
    const std::string count = trimmed.errors == 0
                                  ? "nvcc " + describe_failure(nvcc)
                                  : std::to_string(trimmed.errors) + (trimmed.errors == 1 ? " error" : " errors");
    report("does not compile: " + count, trimmed.lines, said, result);
    return false;
  }
  entry->ptx = normalise_ptx(read_file(work.path() / "out.ptx"), own_folders, toolkit);
  *cacheable = key_covers(read_file(work.path() / "out.d"), file, {headers, toolkit, "/usr"});

  if (!write_file(work.path() / "checked.ptx", entry->ptx)) {
    report("cannot write to the temporary folder; is the disk full?", {}, "", result);
    return false;
  }
  const ProcessResult ptxas = run_process(
      {toolchain.ptxas.string(), "-arch=sm_" + options.target, "-lineinfo", "-v", "checked.ptx", "-o", "checked.cubin"},
      process);
  if (!came_to_an_end(ptxas)) {
    report("does not assemble: " + tool_problem("ptxas", ptxas), {}, "", result);
    return false;
  }
  entry->log = ptxas.errors + ptxas.output;
  if (ptxas.exit_code != 0) {
    report(kRejectedByPtxas, translate_ptxas(entry->log, entry->ptx), entry->log, result);
    return false;
  }
  if (options.want_cubin) entry->cubin = read_file(work.path() / "checked.cubin");
  return true;
}

std::string toolkit_version(const fs::path& nvcc) {
  ProcessOptions options;
  options.timeout_s = 20;
  const ProcessResult run = run_process({nvcc.string(), "--version"}, options);
  static const std::regex release("release ([0-9]+\\.[0-9]+)");
  std::smatch match;
  return std::regex_search(run.output, match, release) ? match[1].str() : "";
}

}  // namespace

Toolchain find_toolchain() {
  Toolchain toolchain;
  std::vector<fs::path> candidates;
  if (const std::string own = environment("HANDOFF_NVCC"); !own.empty()) {
    candidates.emplace_back(own);  // the user's word is final: no other nvcc takes its place
    toolchain.searched.push_back(own);
  } else {
    for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
      if (const std::string home = environment(name); !home.empty())
        candidates.push_back(fs::path(home) / "bin" / "nvcc");
    }
    for (const fs::path& p : candidates) toolchain.searched.push_back(p.string());
    toolchain.searched.emplace_back("PATH");
    std::istringstream folders(environment("PATH"));
    for (std::string folder; std::getline(folders, folder, ':');) {
      if (!folder.empty()) candidates.push_back(fs::path(folder) / "nvcc");
    }
    for (const char* usual : {"/usr/local/cuda/bin/nvcc", "/opt/cuda/bin/nvcc"}) {
      candidates.emplace_back(usual);
      toolchain.searched.emplace_back(usual);
    }
  }
  for (const fs::path& nvcc : candidates) {
    if (!executable(nvcc)) continue;
    // ptxas lies beside nvcc; behind a link to it where a distribution links nvcc alone into the PATH.
    std::error_code ignored;
    for (const fs::path& beside : {nvcc, fs::canonical(nvcc, ignored)}) {
      if (!executable(beside.parent_path() / "ptxas")) continue;
      toolchain.nvcc = nvcc;
      toolchain.ptxas = beside.parent_path() / "ptxas";
      toolchain.version = toolkit_version(nvcc);
      return toolchain;
    }
  }
  return toolchain;
}

std::string missing_toolchain_message(const Toolchain& toolchain) {
  std::string places;
  for (const std::string& place : toolchain.searched) places += (places.empty() ? "" : ", ") + place;
  return "nvcc was not found (looked in " + places +
         "). Install the CUDA Toolkit 13.0 or newer, or set HANDOFF_NVCC to its nvcc; docs/install.md says how";
}

CompileResult compile(const Toolchain& toolchain, const std::filesystem::path& source, const CompileOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  CompileResult result;
  const std::string text = read_file(source);
  // A name that begins with a dash would be an option.
  const std::string name = source.filename().string();
  const std::string file = starts_with(name, "-") ? "submission" + name : name;
  const std::string key = cache_key(toolchain, file, text, options);
  CacheEntry entry;
  if (std::optional<CacheEntry> kept = load_cached(key)) {
    entry = std::move(*kept);
    result.ok = result.from_cache = true;
  } else {
    bool cacheable = false;
    result.ok = build(toolchain, source, file, text, options, &entry, &cacheable, &result);
    if (result.ok && cacheable) store_cached(key, entry);
  }
  if (result.ok) {
    result.ptx = std::move(entry.ptx);
    result.cubin = std::move(entry.cubin);
    if (!options.kernel.empty()) result.resources = parse_resources(entry.log, options.kernel);
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace handoff::harness
