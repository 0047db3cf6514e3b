// Turns a submission (CUDA C++ device code) into PTX and cubin with the CUDA toolkit, outside the grader's process.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "grader/harness/resources.h"

namespace handoff::harness {

/// Where the toolkit is. Looked for in: $HANDOFF_NVCC, $CUDA_HOME/bin, $CUDA_PATH/bin, PATH, /usr/local/cuda/bin,
/// /opt/cuda/bin.
struct Toolchain {
  /// Empty where not found.
  ///@{
  std::filesystem::path nvcc, ptxas;
  ///@}
  std::string version;                ///< "13.0"
  std::vector<std::string> searched;  ///< for the message when nvcc is missing
  /// Can a submission be compiled?
  bool found() const { return !nvcc.empty() && !ptxas.empty(); }
};
/// Looks in the places above, in that order.
Toolchain find_toolchain();

/// One line: where nvcc was looked for and what to install.
std::string missing_toolchain_message(const Toolchain& toolchain);

/// What nvcc and ptxas made of a submission.
struct CompileResult {
  bool ok = false;          ///< both accepted it
  std::string error;        ///< one line; empty when ok
  std::string detail;       ///< compiler messages trimmed to lines about the learner's file
  std::string ptx;          ///< paths normalised: the submission's is its file name, the toolkit's are "cuda/…"
  std::string cubin;        ///< only where asked for
  Resources resources;      ///< of CompileOptions::kernel
  double seconds = 0;       ///< wall time of both tools
  bool from_cache = false;  ///< nothing was run
};

/// How to compile.
struct CompileOptions {
  std::string target = "100a";        ///< "100a", "103a", "90a"
  bool want_cubin = false;            ///< also assemble for a GPU of `target`
  std::string kernel;                 ///< entry whose resources are reported; may be empty
  std::filesystem::path include_dir;  ///< exercises/include
};

/// nvcc -ptx, then ptxas on the result (which must accept it). Results are cached by content under $HANDOFF_CACHE or
/// ~/.cache/handoff (toolkit version, flags, source, every file of include_dir); a cache that cannot be written is
/// skipped silently. Never runs the code. Time limit 120 s for each tool.
CompileResult compile(const Toolchain& toolchain, const std::filesystem::path& source, const CompileOptions& options);

}  // namespace handoff::harness
