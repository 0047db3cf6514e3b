// What went wrong, as a value: the one form in which the emulator, the checker, the harness and the
// command line speak about a fault in the kernel under test.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace handoff {

/// Error costs full marks; Warning: works in published code, though the ISA does not promise it; Note: for information.
enum class Severity : uint8_t { Error, Warning, Note };

/// A place in the learner's source (already resolved through inlining), line 1-based, 0 if unknown.
struct SourcePlace {
  std::string file;   ///< as nvcc wrote it; the submission's is its file name
  uint32_t line = 0;  ///< 1-based; 0: unknown

  /// The same line of the same file.
  bool operator==(const SourcePlace&) const = default;
};

/// Another place that belongs to the story, with its role: "copy issued here", "init here".
struct RelatedPlace {
  SourcePlace place;  ///< where
  std::string role;   ///< what happened there, a short phrase
};

/// One diagnosis. `id` is one of the catalogue (docs/diagnostics/); ids are stable.
struct Diagnostic {
  std::string id;                       ///< "stale-parity"
  Severity severity = Severity::Error;  ///< of this occurrence; some ids occur with two
  std::string message;                  ///< one sentence: what happened, to which thread, barrier, bytes
  std::string hint;                     ///< one sentence: what would order it or put it right; may be empty
  SourcePlace place;  ///< the later access of an ordering fault, the first waiter of a deadlock, else the instruction
  std::vector<RelatedPlace> related;  ///< the other party; where a fence, wait or arrive belongs
};

/// Do both tell of one pair of places, each from the other side? Which party of a race comes second depends on the
/// schedule, and on the lanes.
inline bool mirrors(const Diagnostic& a, const Diagnostic& b) {
  return a.id == b.id && !a.related.empty() && !b.related.empty() && a.place.line != 0 && b.place.line != 0 &&
         a.place == b.related.front().place && b.place == a.related.front().place;
}

}  // namespace handoff
