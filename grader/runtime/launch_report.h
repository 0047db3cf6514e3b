// What the drop-in library tells `handoff run`: one line of JSON for each thing that happened, appended to a file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "grader/emulator/machine/diagnostic.h"

namespace handoff::runtime {

/// Environment of the program: the file to append to (unset: one-line diagnostics go to standard error), and how to run
/// its launches: "errors", "all" or "off"; a schedule's name; a seed; the file for a trace (unset: none; trace_file.h).
///@{
inline constexpr const char* kReportVariable = "HANDOFF_RUN_REPORT";
inline constexpr const char* kCheckVariable = "HANDOFF_RUN_CHECK";
inline constexpr const char* kScheduleVariable = "HANDOFF_RUN_SCHEDULE";
inline constexpr const char* kSeedVariable = "HANDOFF_RUN_SEED";
inline constexpr const char* kTraceVariable = "HANDOFF_RUN_TRACE";
///@}

/// A place in the host program, outermost call last: "/path/program+0x1234" for each frame. `handoff run` makes lines
/// of source of them.
using HostFrames = std::vector<std::string>;

/// A related place of a diagnostic that lies in the host program.
struct HostPlace {
  HostFrames frames;  ///< where
  std::string role;   ///< what happened there: "allocated here"
};

/// A diagnostic and the host program's part in it.
struct ReportedDiagnostic {
  Diagnostic diagnostic;          ///< as the emulator made it
  std::vector<HostPlace> places;  ///< of allocations that it speaks of
};

/// One record.
struct RunRecord {
  /// Start: the library was loaded by a program. Launch: a kernel ran, or was refused. Message: something that the user
  /// should know: a call that is missing, a call that failed, no PTX.
  enum class Kind : uint8_t { Start, Launch, Message };
  Kind kind = Kind::Message;                    ///< which members hold
  std::string text;                             ///< of a message: one line; Start: the device's name
  bool fatal = false;                           ///< of a message: nothing can run
  uint64_t number = 0;                          ///< of a launch, from 1
  std::string kernel;                           ///< demangled
  std::string shape;                            ///< "grid 4×1×1, block 128×1×1"
  std::string status;                           ///< "ok", "fault", "hang", "interrupted" or "refused"
  std::string failure;                          ///< one line; empty: it ended well
  std::string schedule;                         ///< "nominal"
  uint64_t modeled_cycles = 0;                  ///< virtual time
  std::vector<std::string> state;               ///< lines of a deadlock report
  std::vector<ReportedDiagnostic> diagnostics;  ///< in order of cause
  uint64_t untold = 0;                          ///< warnings and notes that nobody asked for (--check errors)
};

/// One line, with its end. Text that is not UTF-8 has its bad bytes replaced.
std::string to_line(const RunRecord& record);
/// Reads what to_line wrote; false where `line` is no record.
bool from_line(const std::string& line, RunRecord* record);

}  // namespace handoff::runtime
