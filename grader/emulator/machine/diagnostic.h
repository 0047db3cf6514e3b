// What went wrong, as a value: the one form in which the emulator, the checker, the harness and the
// command line speak about a fault in the kernel under test.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace handoff {

enum class Severity : uint8_t { Error, Warning, Note };

/// A place in the learner's source (already resolved through inlining), line 1-based, 0 if unknown.
struct SourcePlace {
  std::string file;
  uint32_t line = 0;
};

/// Another place that belongs to the story, with its role: "copy issued here", "init here".
struct RelatedPlace {
  SourcePlace place;
  std::string role;
};

/// One diagnosis. `id` is one of the catalogue (docs/diagnostics/); ids are stable.
struct Diagnostic {
  std::string id;
  Severity severity = Severity::Error;
  std::string message;  ///< one sentence: what happened, to which thread, barrier, bytes
  std::string hint;     ///< one sentence: what would order it or put it right; may be empty
  SourcePlace place;
  std::vector<RelatedPlace> related;
};

}  // namespace handoff
