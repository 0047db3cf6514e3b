// The trace of a whole program in the Trace Event format, which Perfetto and chrome://tracing show: `run --trace`.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "grader/emulator/trace/trace.h"
#include "grader/runtime/launch_report.h"

namespace handoff::runtime {

/// Bytes that one process writes at most: what viewers still open.
inline constexpr uint64_t kMaxTraceBytes = uint64_t{128} << 20;

/// Appends launches to a file, one behind the other in modeled time; a cycle is a nanosecond of the viewer. Each line
/// is one event with a comma behind it: `handoff run` writes the brackets around them. Nothing is kept in memory.
class TraceFile {
 public:
  /// Appends to `path`, at most `limit` bytes. Empty path: nothing is wanted.
  explicit TraceFile(std::string path, uint64_t limit = kMaxTraceBytes) : path_(std::move(path)), limit_(limit) {}
  /// Is there still room for a launch?
  bool wants_more() const { return !path_.empty() && !full_; }
  /// Appends a launch; `begin` is the modeled time of its start in cycles. Returns one line for the user where
  /// something was left out for the first time, or the file cannot be written; else empty.
  std::string add(const RunRecord& launch, const trace::Trace& trace, uint64_t begin);

 private:
  class Writer;
  std::string path_;
  uint64_t limit_, written_ = 0;
  bool full_ = false, told_truncated_ = false;
  std::set<std::pair<uint64_t, uint64_t>> named_;  // rows of the viewer that have their names
};

}  // namespace handoff::runtime
