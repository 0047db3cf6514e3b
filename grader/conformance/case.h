// The cases of the conformance suite: what a file's head says, and which files there are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "grader/conformance/map_text.h"
#include "grader/device/device.h"

namespace handoff::conformance {

/// What one answer is asked of. Mostly a kernel `extern "C" __global__ void conformance(const uint32_t* in, uint32_t*
/// out)` in a file grader/conformance/FAMILY/NAME.cu, and how its head wants it to be run. The head is the comment
/// lines at the top:
///
///     // what is settled: one sentence, the first line
///     // run: --out WORDS [--grid G] [--block B] [--cluster C] [--smem BYTES]
///     // tensor-map: FIELDS              optional, repeatable: a further parameter, see map_text.h
///     // source: PTX §…                  where the ISA says it
///     // undefined: …                    optional: what the ISA leaves open; GPU and emulator may differ
///     // diagnostic: ID                  optional, repeatable: the checker reports this, and it may be an error
///     // fault: ID                       optional: the launch must be stopped by a fault, on the emulator by this one
///
/// G, B and C are X, XxY or XxYxZ. For each line tensor-map the kernel has, in their order, a further parameter `const
/// __grid_constant__ CUtensorMap`. Other comment lines may stand among them; a line of another form with one of these
/// words is an error.
///
/// The cases encode/NAME have no kernel: each is a line of grader/conformance/encode/cases.txt,
///
///     NAME: FIELDS [; undefined: …]
///
/// and its answer is one word, 1 where cuTensorMapEncodeTiled accepts these arguments, 0 where it refuses them.
struct Case {
  std::string name;                      ///< "family/name"
  std::filesystem::path file;            ///< the .cu file
  std::string title;                     ///< the head's first line
  std::string source;                    ///< the section of the ISA, as written
  std::string undefined;                 ///< empty: the answer is defined, and must agree
  std::vector<std::string> diagnostics;  ///< ids that some schedule must report
  std::string fault;                     ///< empty: the launch must end by itself; else the emulator's first diagnostic
  bool encodes = false;                  ///< no kernel: maps[0] is offered to the encoder
  std::vector<MapSpec> maps;             ///< the parameters after `out`
  device::Dim3 grid;                     ///< blocks
  device::Dim3 block = {32, 1, 1};       ///< threads
  device::Dim3 cluster;                  ///< blocks
  uint32_t out_words = 0;                ///< words of 4 bytes that `out` has, at least 1
  uint32_t dynamic_smem = 0;             ///< bytes
  /// Of the code without its comments and of the launch: an answer that was recorded for another one is stale.
  std::string fingerprint;
  std::string head_problem;  ///< "name.cu:3: …": what is wrong with the head; such a case fails without being run
};

/// Reads the head of a case from the text of its file. Returns an empty string, or what is wrong, with the line.
std::string parse_case(const std::string& text, Case* out);

/// Reads the lines of encode/cases.txt; empty ones and those that begin with # say nothing. A wrong line is told in its
/// case.
std::vector<Case> parse_encode_cases(const std::filesystem::path& file, const std::string& text);

/// All cases FOLDER/FAMILY/NAME.cu and those of FOLDER/encode/cases.txt, by name; a wrong head is told in
/// the case. Returns an empty string, or one line for the first file that cannot be read.
std::string find_cases(const std::filesystem::path& folder, std::vector<Case>* out);

}  // namespace handoff::conformance
