// Tested by conformance_test.cc and by the ctest test conformance.agrees.
//
// nvcc spends most of a second of a core before it looks at a kernel: it reads cuda_runtime.h twice, preprocessed and
// parsed. The suite has hundreds of small kernels, so they are compiled together. Their files were written to be read
// alone: they repeat the same helpers and all call their kernel `conformance`. Therefore each is put into a namespace
// and the name of its kernel is replaced by a macro; #include lines move to the front, macros end with their file, and
// #line keeps the file and the lines that diagnostics name.
//
// The processes only fill the compile cache (harness/compile_cache.h), from which this one then reads: run_process of
// the harness runs one child at a time. Where nothing can be kept, everything is compiled again, one after the other.
#include "grader/conformance/compile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "grader/harness/catalog.h"

namespace handoff::conformance {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKernel = "conformance";
constexpr size_t kBatch = 16;  // cases a call of nvcc: its fixed cost is spread, and one changed case costs little

/// Cases that are compiled together.
struct Batch {
  std::vector<size_t> cases;  // places in the list
  std::string name;           // of the file: "family-0.cu"
  fs::path file;              // with the combined text
};

/// A folder of its own under the system's temporary folder, removed with all that is in it.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::error_code failed;
    std::string pattern = (fs::temp_directory_path(failed) / "handoff-conformance-XXXXXX").string();
    if (!failed && mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }  // empty: could not be made

 private:
  fs::path path_;
};

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<Batch> make_batches(const std::vector<Case>& cases) {
  std::vector<Batch> batches;
  std::string last_family;
  size_t number = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (cases[i].encodes || !cases[i].head_problem.empty()) continue;
    const std::string family = cases[i].name.substr(0, cases[i].name.find('/'));
    if (batches.empty() || family != last_family || batches.back().cases.size() == kBatch) {
      number = family == last_family ? number + 1 : 0;
      batches.push_back({{}, fmt::format("{}-{}.cu", family, number), {}});
      last_family = family;
    }
    batches.back().cases.push_back(i);
  }
  return batches;
}

std::shared_ptr<const harness::CompileResult> compile_file(const harness::Toolchain& toolchain, const fs::path& file,
                                                           const std::string& target, bool want_cubin) {
  harness::CompileOptions options;
  options.target = target;
  options.want_cubin = want_cubin;
  options.include_dir = harness::project_root() / "exercises" / "include";
  return std::make_shared<const harness::CompileResult>(harness::compile(toolchain, file, options));
}

/// Compiles one batch and says where each of its cases is.
void compile_batch(const harness::Toolchain& toolchain, const std::vector<Case>& cases, const Batch& batch,
                   const std::string& target, bool want_cubin, std::vector<Code>* codes) {
  const bool together = batch.cases.size() > 1 && !batch.file.empty();
  const auto all = together ? compile_file(toolchain, batch.file, target, want_cubin) : nullptr;
  for (size_t k = 0; k < batch.cases.size(); ++k) {
    Code& code = (*codes)[batch.cases[k]];
    if (all != nullptr && all->ok) {
      code = {all, fmt::format("{}_{}", kKernel, k)};
    } else {
      code = {compile_file(toolchain, cases[batch.cases[k]].file, target, want_cubin), kKernel};
    }
  }
}

/// Compiles the batches in several processes, for what they leave in the compile cache.
void warm_compile_cache(const harness::Toolchain& toolchain, const std::vector<Case>& cases,
                        const std::vector<Batch>& batches, const std::string& target, bool want_cubin) {
  const size_t jobs = std::min<size_t>(std::max(1U, std::thread::hardware_concurrency()), batches.size());
  if (jobs < 2) return;
  std::fflush(nullptr);
  std::vector<pid_t> children;
  for (size_t job = 0; job < jobs; ++job) {
    const pid_t child = fork();
    if (child < 0) break;
    if (child > 0) {
      children.push_back(child);
      continue;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::vector<Code> codes(cases.size());
    for (size_t i = job; i < batches.size(); i += jobs)
      compile_batch(toolchain, cases, batches[i], target, want_cubin, &codes);
    _exit(0);
  }
  for (pid_t child : children) {
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

}  // namespace

std::string target_of(const device::Device& device) { return fmt::format("{}a", device.compute_capability()); }

std::string combined_source(const std::vector<std::pair<std::string, std::string>>& names_and_texts) {
  std::set<std::string> includes;
  std::string bodies;
  size_t number = 0;
  for (const auto& [name, text] : names_and_texts) {
    bodies += fmt::format("namespace case_{0} {{\n#define {1} {1}_{0}\n#line 1 \"{2}\"\n", number++, kKernel, name);
    std::set<std::string> macros = {kKernel};
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
      std::istringstream words(line);
      std::string directive, macro;
      words >> directive >> macro;
      if (directive == "#include") {
        includes.insert(line);
        line.clear();
      } else if (directive == "#define") {
        macros.insert(macro.substr(0, macro.find('(')));
      }
      bodies += line + "\n";
    }
    for (const std::string& macro : macros) bodies += "#undef " + macro + "\n";
    bodies += "}\n";
  }
  return fmt::format("{}\n{}", fmt::join(includes, "\n"), bodies);
}

std::vector<Code> compile_cases(const harness::Toolchain& toolchain, const std::vector<Case>& cases,
                                const std::string& target, bool want_cubin) {
  std::vector<Batch> batches = make_batches(cases);
  const ScratchFolder scratch;
  for (Batch& batch : batches) {
    if (scratch.path().empty()) break;
    std::vector<std::pair<std::string, std::string>> texts;
    for (size_t i : batch.cases) texts.emplace_back(cases[i].file.filename().string(), read_file(cases[i].file));
    std::ofstream out(scratch.path() / batch.name, std::ios::binary);
    out << combined_source(texts);
    out.close();
    if (out) batch.file = scratch.path() / batch.name;
  }
  warm_compile_cache(toolchain, cases, batches, target, want_cubin);
  std::vector<Code> codes(cases.size());
  for (const Batch& batch : batches) compile_batch(toolchain, cases, batch, target, want_cubin, &codes);
  return codes;
}

}  // namespace handoff::conformance
