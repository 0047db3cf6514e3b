// A verdict as JSON, and back. The form is a contract with scripts: docs/verdict.schema.json describes it.
#pragma once

#include <string>
#include <vector>

#include "grader/harness/verdict.h"

namespace handoff::report {

/// The report of one `check`: totals and one entry an exercise, indented, with a final newline. Text that is not valid
/// UTF-8 (a kernel may print any bytes) has its bad bytes replaced by U+FFFD.
std::string to_json(const std::vector<harness::Verdict>& verdicts);

/// The verdicts of a report that to_json wrote. False, and `error` says why, where `text` is no such report.
bool from_json(const std::string& text, std::vector<harness::Verdict>* verdicts, std::string* error);

/// Writes `text` to `path` whole or not at all: to a temporary file in the same folder, flushed to disk, then renamed.
/// A path that exists and is no regular file (a device, a pipe) is written directly. Returns an empty string, or one
/// line that says what failed.
std::string write_whole(const std::string& path, const std::string& text);

/// Tells without changing `path` whether write_whole could create a file there. Empty, or one line that says why not.
std::string why_not_writable(const std::string& path);

}  // namespace handoff::report
