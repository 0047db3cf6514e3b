// Findings that the user knows of: the file that `run --suppress` takes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "grader/emulator/machine/diagnostic.h"

namespace handoff::cli {

/// Does all of `text` match `pattern`, in which `*` stands for any characters and `?` for one?
bool matches_glob(std::string_view pattern, std::string_view text);

/// Ids of all diagnostics: the pages of the catalogue, sorted; none where it is not there.
std::vector<std::string> catalogue_ids();

/// One line of the file. What is not given matches everything.
struct Suppression {
  size_t line = 0;       ///< in the file, from 1
  std::string text;      ///< as it stands there, without its comment
  std::string id;        ///< of the diagnostic; may have wildcards
  std::string file;      ///< where the diagnostic is: the whole path, or its last parts
  uint32_t place = 0;    ///< line in that file; 0: any
  std::string kernel;    ///< demangled name of the kernel; may have wildcards
  uint64_t matched = 0;  ///< findings that it suppressed
  /// Is it meant for this one?
  bool matches(const Diagnostic& diagnostic, const std::string& kernel_name) const;
};

/// The lines of one file, which are of this form; `#` at the beginning of a line or after a space begins a comment:
///   ID [@ FILE[:LINE]] [in KERNEL]
class Suppressions {
 public:
  /// Reads the whole text of a file; `name` is what messages call it, and `ids` (where there are any) are those that an
  /// ID must be, or match. Empty, or one line: "known.txt:3: expected …".
  std::string read(const std::string& text, const std::string& name, const std::vector<std::string>& ids);
  /// Is this finding suppressed? Counts it for the first line that says so.
  bool covers(const Diagnostic& diagnostic, const std::string& kernel);
  /// In the order of the file.
  const std::vector<Suppression>& lines() const { return lines_; }

 private:
  std::vector<Suppression> lines_;
};

}  // namespace handoff::cli
