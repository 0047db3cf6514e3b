// A diagnostic as every report of it has it: in the JSON of `check`, of `run` and of `run-kernel`.
#pragma once

#include <nlohmann/json.hpp>

#include "grader/emulator/machine/diagnostic.h"

namespace handoff::report {

/// "error", "warning" or "note".
const char* to_text(Severity severity);

/// id, severity, message, hint, file, line, and related as a list of file, line and role: in this order, which is that
/// of the text. What a report adds follows.
nlohmann::ordered_json diagnostic_json(const Diagnostic& diagnostic);

}  // namespace handoff::report
