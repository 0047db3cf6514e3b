// The report of `handoff certify`: what one GPU made of everything that can run on it, as one file to send back.
//
// A report is written whole or not at all. While certify works, what it has so far stands beside the report in a file
// of the same form, NAME.part, renewed after each item; `certify --resume` goes on from there.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace handoff::cli {

/// How one item of a report came out.
enum class CertifyOutcome : uint8_t {
  Passed,   ///< it ran and gave what it must
  Failed,   ///< it ran and did not, or could not run although this GPU should take it
  Skipped,  ///< this GPU or this machine cannot run it; the message says why
};

/// What came of one item.
struct CertifyResult {
  CertifyOutcome outcome = CertifyOutcome::Failed;                   ///< the verdict
  int repeats = 0;                                                   ///< launches of each of its inputs; 0: none
  double seconds = 0;                                                ///< wall time, compilation included
  std::string message;                                               ///< one line; empty: nothing to say
  nlohmann::ordered_json record = nlohmann::ordered_json::object();  ///< figures, or a GPU's answer; empty: none
};

/// Where a report comes from. Two runs belong to one report only where all of it but the date and the commit is equal.
struct CertifyAbout {
  std::string gpu;             ///< the device's own name
  int compute_capability = 0;  ///< times ten: 90 for sm_90
  std::string driver;          ///< "CUDA 13.0 (driver 580.159.04)"
  std::string toolkit;         ///< of nvcc: "13.0"
  std::string date;            ///< of the first item, UTC: "2026-11-30"
  std::string host;            ///< operating system, processor, cores; not the machine's name
  std::string commit;          ///< of the repository; "unknown" outside of one
  std::string sources;         ///< source_fingerprint() of the files that were run
  int repeats = 0;             ///< as asked for
  std::string only;            ///< the filter as given; empty: everything
};

/// A report, complete or not.
struct CertifyReport {
  CertifyAbout about;                          ///< where it comes from
  bool complete = false;                       ///< nothing is left to run
  std::map<std::string, CertifyResult> items;  ///< by name: "solution/01a", "conformance/matrix/ldmatrix"
};

/// "passed", "failed" or "skipped".
const char* to_string(CertifyOutcome outcome);

/// The part of an item's name before the first slash: "solution" of "solution/01a".
std::string certify_group(const std::string& item);

/// The report as JSON, one item a line, with a final newline: {"version": 1, "about": {…}, "complete": true, "summary":
/// {GROUP: {"passed": N, "failed": N, "skipped": N}}, "items": {NAME: {"outcome", "repeats", "seconds", "message",
/// "record"}}}. Text that is not valid UTF-8 has its bad bytes replaced by U+FFFD.
std::string to_json(const CertifyReport& report);

/// Reads what to_json wrote. Empty, or one line that says what is wrong.
std::string from_json(const std::string& text, CertifyReport* out);

/// Why what `earlier` has cannot be continued by a run described by `now`: one line that names the first difference;
/// empty: it can.
std::string why_not_resumed(const CertifyAbout& earlier, const CertifyAbout& now);

/// The summary for the screen: the GPU, a line for each group, the reasons of what was skipped, each once with how
/// often, what failed (20 lines of it at most), and the speed of the matrix products.
std::string summarize(const CertifyReport& report);

/// 32 hexadecimal digits over the paths and contents of all files below these folders of the project (those that end
/// in .cc, .h, .inc, .cu, .cuh, .toml or .txt): changes when anything that certify runs changes.
std::string source_fingerprint(const std::string& root, const std::vector<std::string>& folders);

}  // namespace handoff::cli
