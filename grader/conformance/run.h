// Compiles and runs one case on a device, and compares its answer with a recorded one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "grader/conformance/case.h"
#include "grader/conformance/record.h"
#include "grader/device/device.h"
#include "grader/harness/toolchain.h"

namespace handoff::conformance {

/// What came of one case on one device.
struct Outcome {
  std::string problem;                  ///< one line; empty: it ran as it must, and `out` is its answer
  std::string detail;                   ///< the compiler's messages, may be several lines; usually empty
  std::vector<uint32_t> out;            ///< Case::out_words words; those the kernel did not write are 0xffffffff
  std::vector<Diagnostic> diagnostics;  ///< of all launches, each once (emulator)
};

/// The toolkit's name of the architecture that `device` runs: "100a" for the emulator, "90a" for an H200.
std::string target_of(const device::Device& device);

/// Compiles a case for `target`, with a cubin where `want_cubin`.
harness::CompileResult compile_case(const harness::Toolchain& toolchain, const Case& c, const std::string& target,
                                    bool want_cubin);

/// compile_case for all cases, in as many processes as there are cores, for what it leaves in the compile cache; what
/// cannot be kept there is simply compiled again later.
void warm_compile_cache(const harness::Toolchain& toolchain, const std::vector<Case>& cases, const std::string& target,
                        bool want_cubin);

/// Launches a compiled case on the nominal and on one random schedule (emulator), or three times (GPU). Each launch
/// gets the same input and an output full of ones. A problem is: a wrong head; a launch that fails; answers that differ
/// between launches; an error-level diagnostic that the head does not name; one that it names and that no launch
/// reported.
Outcome run_case(device::Device& device, const Case& c, const harness::CompileResult& compiled);

/// How an answer compares with a recorded one.
struct Comparison {
  std::string problem;             ///< one line: why they cannot be compared; empty otherwise
  size_t wrong = 0;                ///< words that differ
  std::vector<std::string> lines;  ///< "out[5]: emulator 0x00000000, NVIDIA H200 0x00000001", at most three
};

/// Compares `out`, which `device` (a name for messages) gave for `c`, with what `gpu` answered.
Comparison compare_answers(const Case& c, const std::vector<uint32_t>& out, const std::string& device,
                           const Answer& recorded, const std::string& gpu);

}  // namespace handoff::conformance
