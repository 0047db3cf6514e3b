// handoff explain: the catalogue's page of a diagnostic as plain text, or one line about each.
//
// The pages are Markdown of a few forms only, which tools/lint/diagnostics.py holds them to: headings, paragraphs, code
// blocks, inline code, emphasis and links. So a line is enough context, and no Markdown library is needed.
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <fstream>

#include "grader/cli/commands.h"
#include "grader/cli/exercises.h"
#include "grader/cli/suppressions.h"
#include "grader/report/terminal.h"

namespace handoff::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kProseIndent = 2, kCodeIndent = 6;  // columns
constexpr size_t kMaxWidth = 100;                    // columns; longer lines are hard to read

std::vector<std::string> lines_of(const fs::path& file) {
  std::ifstream in(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Where emphasis that begins with the asterisk at `at` ends; npos where it is a plain asterisk.
size_t emphasis_end(const std::string& text, size_t at) {
  const size_t end = text.find('*', at + 1);
  if (end == std::string::npos || end == at + 1 || text[at + 1] == ' ' || text[end - 1] == ' ') {
    return std::string::npos;
  }
  return end;
}

/// A paragraph without its marks. A link to another page of the catalogue is its id; any other link names its file from
/// the project's root.
std::string plain(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '`') {
      const size_t end = text.find('`', i + 1);
      if (end != std::string::npos) {
        out += text.substr(i + 1, end - i - 1);
        i = end;
        continue;
      }
    }
    if (text[i] == '*') {
      if (const size_t end = emphasis_end(text, i); end != std::string::npos) {
        out += text.substr(i + 1, end - i - 1);
        i = end;
        continue;
      }
    }
    const size_t middle = text[i] == '[' ? text.find("](", i) : std::string::npos;
    const size_t end = middle == std::string::npos ? std::string::npos : text.find(')', middle);
    if (end != std::string::npos) {
      std::string target = text.substr(middle + 2, end - middle - 2);
      out += text.substr(i + 1, middle - i - 1);
      if (target.find('/') != std::string::npos) {
        target = (fs::path("docs/diagnostics") / target).lexically_normal().string();
        out += " (" + target + ")";
      }
      i = end;
      continue;
    }
    out += text[i];
  }
  return out;
}

/// The page as it is shown: headings at the margin, prose wrapped and indented, code indented further.
std::string page_text(const std::vector<std::string>& lines, size_t width, bool color) {
  const std::string bold = color ? "\033[1m" : "", normal = color ? "\033[0m" : "";
  std::string out, paragraph;
  const auto flush = [&] {
    if (paragraph.empty()) return;
    out += std::string(kProseIndent, ' ') + report::wrap(plain(paragraph), width, kProseIndent, kProseIndent) + "\n";
    paragraph.clear();
  };
  bool code = false, text = false;
  for (const std::string& line : lines) {
    if (line.rfind("```", 0) == 0) {
      flush();
      code = !code;
      text = line == "```text";  // a diagnostic: as long as it is, and the only block that is wrapped
      if (code) out += "\n";
      continue;
    }
    if (code) {
      const std::string shown = text ? report::wrap(line, width, kCodeIndent, kCodeIndent) : line;
      out += line.empty() ? "\n" : std::string(kCodeIndent, ' ') + shown + "\n";
    } else if (line.empty()) {
      flush();
    } else if (line[0] == '#') {
      flush();
      out += (out.empty() ? "" : "\n") + bold + line.substr(line.find_first_not_of("# ")) + normal + "\n";
    } else {
      paragraph += (paragraph.empty() ? "" : " ") + line;
    }
  }
  flush();
  return out;
}

int list_all(const fs::path& folder, const std::vector<std::string>& ids, size_t width) {
  size_t longest = 0;
  for (const std::string& id : ids) longest = std::max(longest, id.size());
  for (const std::string& id : ids) {
    const std::vector<std::string> lines = lines_of(folder / (id + ".md"));
    const std::string summary = lines.size() > 2 ? plain(lines[2]) : "";
    std::printf("%-*s  %s\n", static_cast<int>(longest), id.c_str(),
                report::wrap(summary, width, longest + 2, longest + 2).c_str());
  }
  std::puts("\n./handoff explain ID shows one with a wrong and a right kernel.");
  return kFullMarks;
}

}  // namespace

int run_explain(const std::string& id) {
  const fs::path folder = harness::project_root() / "docs" / "diagnostics";
  const std::vector<std::string> ids = catalogue_ids();
  if (ids.empty()) return refuse("no diagnostics catalogue was found in " + folder.string());
  const size_t width = std::min(report::terminal_width(STDOUT_FILENO), kMaxWidth);
  if (id.empty()) return list_all(folder, ids, width);
  // As a verdict shows it, brackets and severity included: error[stale-parity].
  std::string wanted = id;
  if (const size_t open = id.find('['); open != std::string::npos && id.back() == ']') {
    wanted = id.substr(open + 1, id.size() - open - 2);
  }
  std::transform(wanted.begin(), wanted.end(), wanted.begin(), [](unsigned char c) { return std::tolower(c); });
  std::replace(wanted.begin(), wanted.end(), '_', '-');
  if (!std::binary_search(ids.begin(), ids.end(), wanted)) {
    return refuse("no diagnostic '" + id + "'" + suggestion(wanted, ids, "; ./handoff explain lists them"));
  }
  const std::vector<std::string> lines = lines_of(folder / (wanted + ".md"));
  if (lines.empty()) return refuse("cannot read " + (folder / (wanted + ".md")).string());
  std::fputs(page_text(lines, width, report::wants_color(STDOUT_FILENO)).c_str(), stdout);
  return kFullMarks;
}

}  // namespace handoff::cli
