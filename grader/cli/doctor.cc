// handoff doctor: one line for each thing the course uses: found and which, or the cure.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <regex>
#include <string>
#include <thread>
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "grader/cli/commands.h"
#include "grader/cli/state.h"
#include "grader/harness/compile_cache.h"
#include "grader/harness/process.h"
#include "grader/harness/toolchain.h"
#include "grader/report/terminal.h"

namespace handoff::cli {
namespace {

namespace fs = std::filesystem;

class Table {
 public:
  void good(const std::string& what, const std::string& text) const { row("✓", "32", what, text); }
  void missing(const std::string& what, const std::string& text) const { row("✗", "31", what, text); }
  void optional(const std::string& what, const std::string& text) const { row("–", "33", what, text); }

 private:
  void row(const char* mark, const char* code, const std::string& what, const std::string& text) const {
    const std::string start = color_ ? "\x1b[" + std::string(code) + "m" : "";
    std::printf("  %s%s%s %-12s %s\n", start.c_str(), mark, color_ ? "\x1b[0m" : "", what.c_str(), text.c_str());
  }
  bool color_ = report::wants_color(STDOUT_FILENO);
};

// The first version number in what `program --version` says; empty if it cannot be run.
std::string version_of(const std::string& program) {
  const harness::ProcessResult run = harness::run_process({program, "--version"});
  static const std::regex number("[0-9]+\\.[0-9]+(\\.[0-9]+)*");
  std::smatch match;
  if (!run.ok()) return "";
  return std::regex_search(run.output, match, number) ? match[0].str() : "version unknown";
}

std::string vector_unit() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") != 0) return "x86-64 with AVX-512";
  if (__builtin_cpu_supports("avx2") != 0) return "x86-64 with AVX2";
  return "x86-64 with SSE2";
#elif defined(__aarch64__)
  return (getauxval(AT_HWCAP) & HWCAP_SVE) != 0 ? "aarch64 with SVE" : "aarch64 with NEON";
#else
  return "no vector unit known";
#endif
}

// What the first call would meet: the nearest folder that exists must take files.
bool can_be_written(fs::path folder) {
  std::error_code ignored;
  while (!folder.empty() && !fs::exists(folder, ignored) && folder.has_relative_path()) folder = folder.parent_path();
  return !folder.empty() && access(folder.c_str(), W_OK) == 0;
}

void folder_row(const Table& table, const std::string& what, const fs::path& folder, const char* variable) {
  if (folder.empty()) {
    table.optional(what, std::string("none: HOME is not set; set ") + variable);
  } else if (can_be_written(folder)) {
    table.good(what, folder.string());
  } else {
    table.optional(what, folder.string() + " cannot be written; set " + variable + " to a folder that can");
  }
}

void gpu_row(const Table& table) {
  const harness::ProcessResult run =
      harness::run_process({"nvidia-smi", "--query-gpu=name,compute_cap,driver_version", "--format=csv,noheader"});
  const std::string first = run.output.substr(0, run.output.find('\n'));
  static const std::regex fields("(.*), ([0-9]+)\\.([0-9]+), (.*)");
  std::smatch match;
  if (!run.ok() || !std::regex_match(first, match, fields)) {
    table.optional("GPU", "none; the emulator grades everything");
    return;
  }
  const int major = std::stoi(match[2].str());
  const std::string text = match[1].str() + ", sm_" + match[2].str() + match[3].str() + ", driver " + match[4].str();
  // tcgen05 is a feature of the 10.x family; sm_120 has TMA but no tensor memory.
  if (major == 10) {
    table.good("GPU", text + ": all parts");
  } else if (major == 9 || major > 10) {
    table.good("GPU", text + ": parts I and II; tcgen05 runs on the emulator");
  } else {
    table.optional("GPU", text + ": no TMA; the emulator grades everything");
  }
}

}  // namespace

int run_doctor() {
  const Table table;
  int status = kFullMarks;
  const harness::Toolchain toolchain = harness::find_toolchain();
  if (!toolchain.found()) {
    table.missing("nvcc", harness::missing_toolchain_message(toolchain));
    status = kNotFullMarks;
  } else if (std::atoi(toolchain.version.c_str()) < 13) {
    table.missing("nvcc", toolchain.version + " at " + toolchain.nvcc.string() +
                              " is too old; install the CUDA Toolkit 13.0 or newer");
    status = kNotFullMarks;
  } else {
    table.good("nvcc", toolchain.version + " at " + toolchain.nvcc.string());
    table.good("ptxas", toolchain.ptxas.string());
  }
  struct Tool {
    const char *name, *debian, *purpose;
    bool needed;
  };
  static constexpr Tool kTools[] = {
      {"g++", "g++", "builds the grader", true},
      {"cmake", "cmake", "builds the grader", true},
      {"ninja", "ninja-build", "builds faster than make", false},
      {"doxygen", "doxygen", "builds the documentation site", false},
      {"dot", "graphviz", "draws its graphs", false},
      {"clang-tidy", "clang-tidy", "checks the grader's own code", false},
  };
  for (const Tool& tool : kTools) {
    // graphviz's dot answers to -V only.
    const std::string version = std::string(tool.name) == "dot"
                                    ? (harness::run_process({"dot", "-V"}).ok() ? "found" : "")
                                    : version_of(tool.name);
    if (!version.empty()) {
      table.good(tool.name, version);
    } else if (tool.needed) {
      table.missing(tool.name, std::string("missing (") + tool.purpose + "): apt install " + tool.debian);
      status = kNotFullMarks;
    } else {
      table.optional(tool.name, std::string("not installed (") + tool.purpose + "): apt install " + tool.debian);
    }
  }
  gpu_row(table);
  table.good("CPU", vector_unit() + ", " + std::to_string(std::thread::hardware_concurrency()) + " threads");
  folder_row(table, "cache", harness::cache_folder(), "HANDOFF_CACHE");
  folder_row(table, "progress", state_folder(), "XDG_STATE_HOME");
  return status;
}

}  // namespace handoff::cli
