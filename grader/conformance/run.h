// Runs one case on a device, and compares its answer with a recorded one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "grader/conformance/case.h"
#include "grader/conformance/compile.h"
#include "grader/conformance/record.h"
#include "grader/device/device.h"

namespace handoff::conformance {

/// What came of one case on one device.
struct Outcome {
  std::string problem;                  ///< one line; empty: it ran as it must, and `out` is its answer
  bool crashed = false;                 ///< the problem is a launch that faulted or hung
  bool faulted = false;                 ///< a launch was stopped by a fault: where no problem is told, the answer
  std::string detail;                   ///< the compiler's messages, may be several lines; usually empty
  std::vector<uint32_t> out;            ///< Case::out_words words; those the kernel did not write are 0xffffffff
  std::vector<Diagnostic> diagnostics;  ///< of all launches, each once (emulator)
};

/// Launches a compiled case on the nominal and on one random schedule (emulator), or three times (GPU). Each launch
/// gets the same input and an output full of ones. A problem is: a wrong head; a launch that fails; answers that differ
/// between launches; an error-level diagnostic that the head does not name; one that it names and that no launch
/// reported. A case that must fault is launched once on a GPU: its problem is a launch that ends otherwise, and on the
/// emulator another first diagnostic. A case that encodes asks the device's encoder once; `code` is not looked at.
Outcome run_case(device::Device& device, const Case& c, const Code& code);

/// How an answer compares with a recorded one.
struct Comparison {
  std::string problem;             ///< one line: why they cannot be compared; empty otherwise
  std::string difference;          ///< "2 of 32 words differ"; empty: they agree
  std::vector<std::string> lines;  ///< "out[5]: emulator 0x00000000, NVIDIA H200 0x00000001", at most three
};

/// Compares the answer of `outcome`, which `device` (a name for messages) gave for `c`, with what `gpu` answered. Where
/// only a hash and the first words are recorded, the words that differ further on cannot be shown.
Comparison compare_answers(const Case& c, const Outcome& outcome, const std::string& device, const Answer& recorded,
                           const std::string& gpu);

}  // namespace handoff::conformance
