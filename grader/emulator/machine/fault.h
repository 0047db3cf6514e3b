// A fault stops the launch. Handlers throw it; machine/launch.cc catches it, completes its place and reports it.
#pragma once

#include <string>
#include <utility>

#include "grader/emulator/machine/diagnostic.h"

namespace handoff::machine {

/// Thrown by handlers and async units. `diagnostic.place` may be empty: the interpreter fills in the current
/// instruction's.
struct Fault {
  Diagnostic diagnostic;  ///< what is reported
  bool hang = false;      ///< deadlock or stall rather than a broken rule
};

/// A fault with this id, message and hint, and without a place.
inline Fault make_fault(std::string id, std::string message, std::string hint = {}) {
  Fault f;
  f.diagnostic.id = std::move(id);
  f.diagnostic.message = std::move(message);
  f.diagnostic.hint = std::move(hint);
  return f;
}

}  // namespace handoff::machine
