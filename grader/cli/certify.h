// handoff certify: runs everything that can run on the GPU at hand, and writes one report to send back.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "grader/cli/certify_report.h"
#include "grader/device/device.h"
#include "grader/harness/catalog.h"
#include "grader/harness/toolchain.h"

namespace handoff::cli {

/// What `certify` was asked, as typed: run_certify judges the values.
struct CertifyArguments {
  std::string out = "certify.json";  ///< file for the report; what is unfinished stands in OUT.part
  std::string repeats = "3";         ///< launches of each input, at least 3
  bool resume = false;               ///< go on with OUT.part
  std::string time_limit;            ///< seconds after which no further item is begun; empty: none
  std::string only;                  ///< a regular expression, searched in the items' names; empty: all
};

/// One thing to run.
struct CertifyItem {
  std::string name;                    ///< GROUP/…
  std::string skip;                    ///< why this GPU cannot run it; empty: it can
  std::function<CertifyResult()> run;  ///< ends whatever the GPU does; not called where `skip` says something
  /// What running it will compile, so that it can be compiled ahead: a file and its kernel. Empty: nothing.
  ///@{
  std::filesystem::path file;
  std::string kernel;
  ///@}
};

/// How far to go, and where the report goes.
struct CertifyLimits {
  std::string out;                  ///< the report's file
  double seconds = 0;               ///< from `elapsed`'s beginning; 0: no limit
  std::function<double()> elapsed;  ///< seconds since certify began
};

/// The solutions of `exercises`, then their variants, each with `repeats` launches of every case of its harness. `gpu`
/// tells what can run; the grading itself opens the GPU in a process of its own.
std::vector<CertifyItem> submission_items(const device::Device& gpu, const harness::Toolchain& toolchain,
                                          const std::vector<harness::ExerciseInfo>& exercises, int repeats);

/// Runs the items that `report` does not have yet, in order, and writes the file OUT.part after each. When nothing is
/// left, the report becomes complete, OUT is written and OUT.part removed. Returns an empty string, or one line that
/// says why a file could not be written; `report->complete` tells whether the time was enough.
std::string run_certify_items(const std::vector<CertifyItem>& items, const CertifyLimits& limits,
                              CertifyReport* report);

/// Prepares `report`, whose `about` is set: takes over what OUT.part has where `resume` is set. One line that says why
/// that cannot be done, or that there is an OUT.part which would be lost; empty otherwise.
std::string take_up_certify(const std::string& out, bool resume, CertifyReport* report);

/// Runs solutions, variants, conformance kernels, timing probes, GEMMs beside cuBLASLt and the benchmarks on GPU 0.
/// kFullMarks: the report is complete and nothing failed; kNotFullMarks: something failed, or the time limit left items
/// undone; kCouldNot: no GPU, no nvcc, bad usage.
int run_certify(const CertifyArguments& arguments);

}  // namespace handoff::cli
