// The outcome of grading one submission of one exercise: plain data that the report layer prints and writes as JSON.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "grader/emulator/machine/diagnostic.h"
#include "grader/emulator/trace/timeline.h"
#include "grader/emulator/trace/trace.h"
#include "grader/harness/resources.h"

namespace handoff::harness {

/// One graded test of an exercise ("no-hazards") on one device.
struct TestOutcome {
  /// NotRun: an earlier failure made it pointless, or the device cannot run it.
  enum class State : uint8_t { Passed, Failed, NotRun };
  std::string name;             ///< as in [points] of exercise.toml
  std::string device;           ///< "emulator" or "cuda"
  State state = State::NotRun;  ///< outcome
  /// Points got, and points to be had.
  ///@{
  int score = 0, max_score = 0;
  ///@}
  std::string message;  ///< first line: what failed; empty when passed. For NotRun: why
};

/// A diagnostic with the run it came from.
struct FoundDiagnostic {
  Diagnostic diagnostic;  ///< what was found
  std::string device;     ///< "emulator" or "cuda"
  std::string schedule;   ///< "nominal", "random"…; empty on a GPU
  uint64_t seed = 0;      ///< of a random schedule
  std::string input;      ///< which of the harness's cases: "128 threads, n = 1000"
};

/// What the kernel's own accesses of shared memory took of its banks. See trace/bank_conflicts.h for the counts.
struct SharedMemoryUse {
  uint64_t accesses = 0;                     ///< warps' loads, stores and atomics of their own CTA's shared memory
  uint64_t wavefronts = 0;                   ///< passes through the banks that these took
  uint64_t minimum = 0;                      ///< passes that they would have taken without bank conflicts
  uint64_t distributed_accesses = 0;         ///< of other CTAs' shared memory; these have no part in the others
  std::vector<trace::SharedLine> conflicts;  ///< lines with wavefronts above the minimum, the dearest first
  /// Wavefronts above the minimum.
  uint64_t above() const { return wavefronts - minimum; }
};

/// How busy the kernel kept the chip's units, in modeled time: cycles added up over the CTAs.
struct UnitUse {
  uint64_t cta_cycles = 0;  ///< lives of the CTAs
  uint64_t load_busy = 0;   ///< their copy engines moved bytes into shared memory
  uint64_t store_busy = 0;  ///< their copy engines moved bytes out of it
  uint64_t mma_busy = 0;    ///< their tensor cores multiplied
  uint64_t port_busy = 0;   ///< loads or stores held the way that they share
  /// The unit that works longest: no order of the same work is faster than it.
  uint64_t bound() const { return std::max({load_busy, store_busy, mma_busy, port_busy}); }
};

/// The result of one exercise.
struct Verdict {
  std::string exercise;    ///< "04a"
  std::string title;       ///< "two-copies-one-barrier"
  std::string submission;  ///< path of the file graded
  /// Sums over `tests`.
  ///@{
  int score = 0, max_score = 0;
  ///@}
  /// Full marks?
  bool passed() const { return could_grade && score == max_score; }
  bool could_grade = true;                   ///< false: `problem` says why (exit status 2)
  std::string problem;                       ///< does not compile (could_grade stays true), no such kernel…: one line
  std::string problem_detail;                ///< nvcc's message trimmed to the learner's lines, may be several lines
  std::vector<TestOutcome> tests;            ///< in the order of [points], a device after the other
  std::vector<FoundDiagnostic> diagnostics;  ///< first is the cause; one for each (id, line)
  std::vector<std::string> state;            ///< deadlock report lines of the first deadlock
  std::string deadlock_schedule;             ///< of that deadlock; empty: none
  std::string reproduce;                     ///< "--schedule random --seed 3", empty if all passed
  std::string output;                        ///< kernel printf of the nominal run
  uint64_t modeled_cycles = 0;               ///< of the nominal run of the last case
  SharedMemoryUse shared_memory;             ///< of the same run as `modeled_cycles`
  UnitUse units;                             ///< of the same run as `modeled_cycles`
  trace::Timeline timeline;                  ///< of the first CTA in that run
  Resources resources;                       ///< of the kernel, compiled for sm_100a
  /// Launches, and the harness's distinct inputs among them.
  ///@{
  int runs = 0, cases = 0;
  ///@}
  std::string devices;             ///< "emulator" or "emulator + NVIDIA H200"
  std::vector<std::string> notes;  ///< "cuda: skipped: no GPU", …
  /// Wall time of the whole, and the part of nvcc and ptxas.
  ///@{
  double seconds = 0, nvcc_seconds = 0;
  ///@}
};

}  // namespace handoff::harness
