// Tested by terminal_test.cc, which holds whole screens.
//
// The order of a screen is the order of a learner's questions: the head line says whether it passed and for how many
// points; the tests say what broke; the state of a deadlock and the first diagnostic say where and why, with the
// learner's own lines; the last line says what to type next. The first diagnostic is the cause, so it alone gets source
// lines; a second one is told in a sentence, the rest are counted. Everything is bounded (kMax… below), so that the
// head line is still on a screen of 24 to 30 lines.
#include "grader/report/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "grader/report/diagnostic_json.h"

namespace handoff::report {
namespace {

using harness::FoundDiagnostic;
using harness::TestOutcome;
using harness::Verdict;

constexpr size_t kMaxStateLines = 6;
constexpr size_t kMaxSourceLines = 5;
constexpr const char* kHere = "here";                     // where the diagnostic gives its own line no role
constexpr size_t kMaxCodeWidth = 66, kMinCodeWidth = 36;  // columns of a source line
constexpr size_t kMaxOutputLines = 5;
constexpr size_t kMaxDiagnostics = 2;
constexpr size_t kMaxNotes = 3;
constexpr size_t kMaxConflicts = 3;
constexpr uint64_t kMinShareOfBound = 20;  // percent
constexpr uint64_t kMinOperations = 4;     // of a block: with fewer there is no pipeline to look at
constexpr char kTied = '\x01';             // a space at which no line ends; harmless() leaves none in a text

enum class Ink { Plain, Good, Bad, Caution, Dim, Strong };

const char* code(Ink ink) {
  switch (ink) {
    case Ink::Plain:
      return "";
    case Ink::Good:
      return "\x1b[32m";
    case Ink::Bad:
      return "\x1b[31m";
    case Ink::Caution:
      return "\x1b[33m";
    case Ink::Dim:
      return "\x1b[2m";
    case Ink::Strong:
      return "\x1b[1m";
  }
  return "";
}

// Removes what could move the cursor or colour the screen: C0 controls (tabs become spaces), DEL and C1 controls
// (U+0080 to U+009F, in UTF-8 0xC2 0x80 to 0xC2 0x9F).
std::string harmless(const std::string& text) {
  std::string clean;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == '\t') {
      clean += "  ";
    } else if (c == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0) {
      ++i;
    } else if (c >= 0x20 && c != 0x7F) {
      clean += text[i];
    }
  }
  return clean;
}

// The first `width` columns of `text`, with an ellipsis in place of the rest.
std::string cut(const std::string& text, size_t width) {
  if (display_width(text) <= width) return text;
  size_t columns = 0, end = 0;
  while (end < text.size() && columns + 1 < width) {
    ++end;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    ++columns;
  }
  return text.substr(0, end) + "…";
}

std::string pad(const std::string& text, size_t width) {
  const size_t have = display_width(text);
  return have < width ? text + std::string(width - have, ' ') : text;
}

std::string number(double value, int digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*f", digits, value);
  return buffer;
}

std::string grouped(uint64_t value) {
  std::string text = std::to_string(value);
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

std::string count(int n, const std::string& noun) { return std::to_string(n) + " " + noun + (n == 1 ? "" : "s"); }

std::string base_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

std::string place_text(const SourcePlace& place) {
  return place.line == 0 ? base_name(place.file) : base_name(place.file) + ":" + std::to_string(place.line);
}

class Screen {
 public:
  Screen(const Verdict& verdict, const RenderOptions& options) : v_(verdict), o_(options) {}

  std::string render() {
    head();
    if (!v_.problem.empty()) {
      problem();
    } else if (v_.passed()) {
      facts(true);
      bank_conflicts();
    } else {
      line("");
      tests();
    }
    units();
    deadlock();
    diagnostics();
    output();
    notes();
    if (v_.problem.empty() && !v_.passed()) facts(false);
    next();
    return text_;
  }

 private:
  std::string ink(Ink which, const std::string& text) const {
    return o_.color && which != Ink::Plain ? code(which) + text + "\x1b[0m" : text;
  }

  void line(const std::string& text) {
    text_ += text;
    text_ += '\n';
  }

  // "03a one-slot · emulator · 3 of 10 points        1.9 s (nvcc 1.5)": the second text at the right edge where there
  // is room.
  void head() {
    std::string left = v_.exercise + " " + v_.title;
    std::string rest;
    if (!v_.devices.empty()) rest += " · " + v_.devices;
    rest += " · ";
    const std::string points = std::to_string(v_.score) + " of " + count(v_.max_score, "point");
    std::string after;
    if (v_.passed()) {
      if (v_.runs > 0) after += " · " + count(v_.runs, "run");
      if (v_.cases > 0) after += " of " + count(v_.cases, "case");
      if (v_.diagnostics.empty()) after += ", no hazards";
    }
    std::string time = number(v_.seconds, 1) + " s";
    if (v_.nvcc_seconds >= 0.05) time += " (nvcc " + number(v_.nvcc_seconds, 1) + ")";
    const size_t used = display_width(left + rest + points + after) + (v_.passed() ? 2 : 0);
    if (used + 2 + display_width(time) > o_.width) time = number(v_.seconds, 1) + " s";
    const bool fits = used + 2 + display_width(time) <= o_.width;
    const std::string gap(fits ? o_.width - used - display_width(time) : 0, ' ');
    line((v_.passed() ? ink(Ink::Good, "✓ ") : "") + ink(Ink::Strong, left) + rest +
         ink(v_.passed() ? Ink::Good : Ink::Bad, points) + after + gap + (fits ? ink(Ink::Dim, time) : ""));
  }

  void problem() {
    line("");
    line("  " + ink(Ink::Bad, "✗ ") + ink(Ink::Strong, wrap(harmless(v_.problem), o_.width, 4, 4)));
    std::istringstream detail(v_.problem_detail);
    for (std::string text; std::getline(detail, text);) {
      // Messages are sentences and wrap; lines of code, with the caret below, keep their shape.
      const std::string clean = harmless(text);
      line("     " + (clean.rfind(' ', 0) == 0 ? cut(clean, o_.width - 5) : wrap(clean, o_.width, 7, 5)));
    }
  }

  // What the kernel took of the chip. Cycles are told of a right kernel only: a wrong one's are of no use.
  void facts(bool cycles) {
    std::vector<std::string> facts;
    const harness::Resources& r = v_.resources;
    if (cycles && v_.modeled_cycles > 0) facts.push_back(grouped(v_.modeled_cycles) + " modeled cycles");
    if (r.registers > 0) {
      facts.push_back("registers " + std::to_string(r.registers));
      std::string shared = r.static_smem > 0 ? memory(r.static_smem) : "";
      if (r.dynamic_smem > 0) shared += (shared.empty() ? "" : " + ") + memory(r.dynamic_smem) + " dynamic";
      if (!shared.empty()) facts.push_back("shared memory " + shared);
      if (r.spill_stores > 0 || r.spill_loads > 0) {
        facts.push_back("spills " + grouped(r.spill_stores) + " bytes stored, " + grouped(r.spill_loads) + " loaded");
      }
      if (r.stack > 0) facts.push_back("stack " + grouped(r.stack) + " bytes");
    }
    std::string text;
    for (const std::string& fact : facts) text += (text.empty() ? "" : " · ") + fact;
    if (!text.empty()) line("  " + ink(Ink::Dim, wrap(text, o_.width, 4, 2)));
  }

  // "shared memory: 4,096 wavefronts, 3,072 above the minimum: kernel.cu:31 (8-way), kernel.cu:40 (2-way)"; nothing
  // where there are no conflicts.
  void bank_conflicts() {
    const harness::SharedMemoryUse& use = v_.shared_memory;
    if (use.above() == 0) return;
    std::string text =
        "shared memory: " + grouped(use.wavefronts) + " wavefronts, " + grouped(use.above()) + " above the minimum";
    const size_t shown = o_.verbose ? use.conflicts.size() : std::min(use.conflicts.size(), kMaxConflicts);
    for (size_t i = 0; i < shown; ++i) {
      const trace::SharedLine& line = use.conflicts[i];
      text +=
          (i == 0 ? ": " : ", ") + harmless(place_text(line.place)) + kTied + "(" + std::to_string(line.ways) + "-way)";
    }
    if (shown < use.conflicts.size()) text += ", " + more(use.conflicts.size() - shown, "line");
    text = wrap(text, o_.width, 4, 2);
    std::replace(text.begin(), text.end(), kTied, ' ');
    line("  " + ink(Ink::Dim, text));
  }

  // How busy the copy engine and the tensor core were, and when; of a kernel whose result is right, and that gave them
  // more than a few things to do.
  void units() {
    const bool wrong = std::any_of(v_.tests.begin(), v_.tests.end(), [](const TestOutcome& t) {
      return t.state == TestOutcome::State::Failed && (t.name == "result" || t.name == "no-hazards");
    });
    const harness::UnitUse& use = v_.units;
    if (wrong || !v_.problem.empty() || use.cta_cycles == 0 || v_.timeline.operations < kMinOperations) return;
    struct Unit {
      const char *name, *bound;
      uint64_t busy;
      const std::vector<uint8_t>& row;
    };
    const Unit units[] = {{"loads", "the loads", use.load_busy, v_.timeline.loads},
                          {"tensor core", "the tensor core", use.mma_busy, v_.timeline.mmas},
                          {"stores", "the stores", use.store_busy, v_.timeline.stores}};
    const auto share = [&](uint64_t cycles) {
      return number(100.0 * double(cycles) / double(use.cta_cycles), 0) + " %";
    };
    const Unit& busiest =
        *std::max_element(std::begin(units), std::end(units), [](auto& a, auto& b) { return a.busy < b.busy; });
    const std::string which = busiest.busy < use.bound() ? "the loads and stores together" : busiest.bound;
    std::string busy;
    for (const Unit& u : units) {
      if (u.busy > 0) busy += (busy.empty() ? "" : ", ") + std::string(u.name) + " " + share(u.busy);
    }
    // Far from it, the bound says little: the threads have something better to do.
    const bool near = 100 * use.bound() >= kMinShareOfBound * use.cta_cycles;
    const std::string bound = share(use.bound()) + " of the bound, which is " + which;
    line("  " +
         ink(Ink::Dim, wrap("modeled: " + (near ? bound + " (busy: " + busy + ")" : "busy: " + busy), o_.width, 4, 2)));
    constexpr size_t kNames = 13;  // columns of a unit's name
    const size_t columns = v_.timeline.threads.size();
    const std::string length = grouped(v_.timeline.end - v_.timeline.begin) + " cycles";
    if (4 + kNames + columns > o_.width || display_width(length) + 12 > columns) return;
    line("    " + ink(Ink::Dim,
                      pad("block 0", kNames) + "0 " + repeat("─", columns - 3 - display_width(length)) + " " + length));
    for (const Unit& u : units) {
      if (u.busy > 0) line("    " + ink(Ink::Dim, pad(u.name, kNames)) + bars(u.row));
    }
    line("    " + ink(Ink::Dim, pad("threads", kNames)) + bars(v_.timeline.threads));
    if (!v_.passed()) line("");
  }

  static std::string repeat(const char* text, size_t times) {
    std::string all;
    for (size_t i = 0; i < times; ++i) all += text;
    return all;
  }

  // One of nine heights for each value from 0 to 100; what is not 0 is seen.
  static std::string bars(const std::vector<uint8_t>& row) {
    static constexpr const char* kHeights[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    std::string text;
    for (const uint8_t percent : row) text += kHeights[(std::min<unsigned>(percent, 100) * 8 + 99) / 100];
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  }

  static std::string memory(uint32_t bytes) {
    return bytes % 1024 == 0 ? std::to_string(bytes / 1024) + " KiB" : grouped(bytes) + " bytes";
  }

  static std::string mark(TestOutcome::State state) {
    return state == TestOutcome::State::Passed ? "✓" : state == TestOutcome::State::Failed ? "✗" : "–";
  }
  static Ink ink_of(TestOutcome::State state) {
    return state == TestOutcome::State::Passed ? Ink::Good : state == TestOutcome::State::Failed ? Ink::Bad : Ink::Dim;
  }

  // Failed tests with something to say get a line each; all others share lines. With two devices each has its block,
  // side by side in the order in which they ran.
  void tests() {
    std::vector<std::string> devices;
    size_t name_width = 0;
    for (const TestOutcome& t : v_.tests) {
      if (std::find(devices.begin(), devices.end(), t.device) == devices.end()) devices.push_back(t.device);
      if (speaks(t)) name_width = std::max(name_width, display_width(t.name));
    }
    name_width = std::min<size_t>(std::max<size_t>(name_width, 8), 28);
    for (const std::string& device : devices) {
      const std::string label = devices.size() > 1 ? pad(device == "cuda" ? "GPU" : device, 10) : "";
      device_tests(device, label, name_width);
    }
    if (!devices.empty()) line("");
  }

  static bool speaks(const TestOutcome& t) { return t.state == TestOutcome::State::Failed && !t.message.empty(); }

  void device_tests(const std::string& device, std::string label, size_t name_width) {
    const size_t indent = 2 + display_width(label);
    const auto begin = [&] {
      std::string text = "  " + ink(Ink::Strong, label);
      label = std::string(indent - 2, ' ');
      return text;
    };
    for (const TestOutcome& t : v_.tests) {
      if (t.device != device || !speaks(t)) continue;
      const size_t column = indent + 2 + name_width + 2;
      line(begin() + ink(Ink::Bad, "✗ ") + ink(Ink::Strong, pad(t.name, name_width)) + "  " +
           wrap(harmless(t.message), o_.width, column, column));
    }
    std::string shared;
    size_t used = 0;
    const auto flush = [&] {
      if (!shared.empty()) line(begin() + shared);
      shared.clear();
      used = 0;
    };
    // Failed ones first. The reason why several were not run is given once, after the last of them.
    std::vector<const TestOutcome*> rest;
    for (const TestOutcome& t : v_.tests) {
      if (t.device == device && !speaks(t)) rest.push_back(&t);
    }
    std::stable_sort(rest.begin(), rest.end(),
                     [](const TestOutcome* a, const TestOutcome* b) { return rank(a->state) < rank(b->state); });
    for (size_t i = 0; i < rest.size(); ++i) {
      const TestOutcome& t = *rest[i];
      std::string text = t.name;
      const bool last_of_reason =
          i + 1 == rest.size() || rest[i + 1]->state != t.state || rest[i + 1]->message != t.message;
      if (t.state == TestOutcome::State::NotRun && !t.message.empty() && last_of_reason) {
        text += " (not run: " + harmless(t.message) + ")";
      }
      const size_t width = display_width(text) + 2;
      if (used > 0 && indent + used + 3 + width > o_.width) flush();
      shared += (used > 0 ? "   " : "") + ink(ink_of(t.state), mark(t.state)) + " " + text;
      used += width + (used > 0 ? 3 : 0);
    }
    flush();
  }

  static int rank(TestOutcome::State state) {
    return state == TestOutcome::State::Failed ? 0 : state == TestOutcome::State::Passed ? 1 : 2;
  }

  void deadlock() {
    if (v_.state.empty()) return;
    line("  " + ink(Ink::Bad, "✗ ") + ink(Ink::Strong, "deadlock") +
         (v_.deadlock_schedule.empty() ? "" : " · schedule " + v_.deadlock_schedule));
    const size_t shown = o_.verbose ? v_.state.size() : std::min(v_.state.size(), kMaxStateLines);
    for (size_t i = 0; i < shown; ++i) line("     " + wrap(harmless(v_.state[i]), o_.width, 13, 5));
    if (shown < v_.state.size()) line("     " + ink(Ink::Dim, more(v_.state.size() - shown, "line")));
  }

  static std::string more(size_t n, const std::string& noun) {
    return "… " + std::to_string(n) + " more " + noun + (n == 1 ? "" : "s") + " (--verbose shows all)";
  }

  void diagnostics() {
    const size_t shown = o_.verbose ? v_.diagnostics.size() : std::min(v_.diagnostics.size(), kMaxDiagnostics);
    for (size_t i = 0; i < shown; ++i) diagnostic(v_.diagnostics[i], i == 0 || o_.verbose);
    if (shown < v_.diagnostics.size()) line("  " + ink(Ink::Dim, more(v_.diagnostics.size() - shown, "diagnostic")));
  }

  void diagnostic(const FoundDiagnostic& found, bool in_full) {
    const Diagnostic& d = found.diagnostic;
    const Ink which = d.severity == Severity::Error     ? Ink::Bad
                      : d.severity == Severity::Warning ? Ink::Caution
                                                        : Ink::Dim;
    const std::string tag = std::string(to_text(d.severity)) + "[" + d.id + "]";
    const std::string place = place_text(d.place);
    std::string message = harmless(d.message);
    // The message may already say where.
    if (!place.empty() && message.find(place) == std::string::npos) message += ", at " + place;
    const std::string text = wrap(tag + "  " + message, o_.width, 6, 2);
    line("  " + ink(which, tag) + text.substr(tag.size()));
    if (!in_full) return;
    source(d);
    const std::string explain = "./handoff explain " + d.id;
    if (d.hint.empty()) {
      line("     " + ink(Ink::Dim, explain));
      return;
    }
    const std::string hint = wrap(harmless(d.hint), o_.width, 5, 5);
    const size_t last = display_width(hint.substr(hint.rfind('\n') == std::string::npos ? 0 : hint.rfind('\n') + 1)) +
                        (hint.find('\n') == std::string::npos ? 5 : 0);
    if (last + 3 + explain.size() <= o_.width) {
      line("     " + hint + std::string(o_.width - last - explain.size(), ' ') + ink(Ink::Dim, explain));
    } else {
      line("     " + hint);
      line("     " + ink(Ink::Dim, explain));
    }
  }

  // The learner's lines that the diagnostic names, in the order of the file, each with its role.
  void source(const Diagnostic& d) {
    struct Shown {
      std::string text, role;
    };
    std::map<std::pair<std::string, uint32_t>, Shown> lines;
    const auto add = [&](const SourcePlace& place, const std::string& role) {
      if (place.line == 0 || !o_.source_line) return;
      const auto key = std::make_pair(place.file == d.place.file ? std::string() : place.file, place.line);
      const auto known = lines.find(key);
      if (known != lines.end()) {
        if (known->second.role == kHere) {
          known->second.role = role;
        } else if (known->second.role.find(role) == std::string::npos) {
          known->second.role += "; " + role;
        }
        return;
      }
      if (lines.size() >= kMaxSourceLines && !o_.verbose) return;
      if (auto text = o_.source_line(place.file, place.line)) lines.emplace(key, Shown{harmless(*text), role});
    };
    add(d.place, kHere);
    for (const RelatedPlace& r : d.related) add(r.place, harmless(r.role));
    if (lines.empty()) return;
    // Common indentation goes, so that deep loops leave room for the code.
    size_t margin = std::string::npos, label_width = 0, code_width = 0;
    for (const auto& [key, shown] : lines) {
      const size_t first = shown.text.find_first_not_of(' ');
      if (first != std::string::npos) margin = std::min(margin, first);
      label_width = std::max(label_width, label(key).size());
    }
    if (margin == std::string::npos) margin = 0;
    const size_t start = 3 + label_width + 3;
    // The roles come first: a line of code that is cut can be read in the file.
    size_t room = std::min<size_t>(o_.width - start, kMaxCodeWidth);
    for (const auto& [key, shown] : lines) {
      const size_t beside = start + 3 + 2 + display_width(shown.role);
      if (beside + kMinCodeWidth <= o_.width) room = std::min(room, o_.width - beside);
    }
    for (auto& [key, shown] : lines) {
      shown.text = cut(shown.text.size() > margin ? shown.text.substr(margin) : "", room);
      code_width = std::max(code_width, display_width(shown.text));
    }
    for (const auto& [key, shown] : lines) {
      const std::string at = label(key);
      const std::string role = "← " + shown.role;
      const std::string head = "   " + std::string(label_width - at.size(), ' ') + ink(Ink::Dim, at + " | ");
      const Ink arrow = key == std::make_pair(std::string(), d.place.line) ? Ink::Bad : Ink::Caution;
      if (start + code_width + 3 + display_width(role) <= o_.width) {
        line(head + pad(shown.text, code_width + 3) + ink(arrow, role));
      } else {
        line(head + shown.text);
        line(std::string(start + 2, ' ') + ink(arrow, wrap("↑ " + shown.role, o_.width, start + 4, start + 2)));
      }
    }
  }

  static std::string label(const std::pair<std::string, uint32_t>& key) {
    const std::string line = std::to_string(key.second);
    return key.first.empty() ? line : base_name(key.first) + ":" + line;
  }

  void output() {
    if (v_.output.empty() || (v_.passed() && !o_.verbose)) return;
    std::vector<std::string> lines;
    std::istringstream in(v_.output);
    for (std::string text; std::getline(in, text);) lines.push_back(text);
    line("  " + ink(Ink::Dim, "printed by the kernel:"));
    const size_t shown = o_.verbose ? lines.size() : std::min(lines.size(), kMaxOutputLines);
    for (size_t i = 0; i < shown; ++i) line("     " + ink(Ink::Dim, "│ ") + cut(harmless(lines[i]), o_.width - 7));
    if (shown < lines.size()) line("     " + ink(Ink::Dim, more(lines.size() - shown, "line")));
  }

  void notes() {
    const size_t shown = o_.verbose ? v_.notes.size() : std::min(v_.notes.size(), kMaxNotes);
    for (size_t i = 0; i < shown; ++i) line("  " + ink(Ink::Dim, wrap(harmless(v_.notes[i]), o_.width, 4, 2)));
    if (passed_on_gpu_only()) line("  The GPU got away with it this time. Full marks need both.");
  }

  bool passed_on_gpu_only() const {
    bool gpu = false, gpu_failed = false, emulator_failed = false;
    for (const TestOutcome& t : v_.tests) {
      const bool failed = t.state == TestOutcome::State::Failed;
      if (t.device == "cuda") {
        gpu = gpu || t.state == TestOutcome::State::Passed;
        gpu_failed = gpu_failed || failed;
      } else {
        emulator_failed = emulator_failed || failed;
      }
    }
    return gpu && !gpu_failed && emulator_failed;
  }

  void next() {
    const std::string command = "./handoff check " + v_.exercise + (o_.arguments.empty() ? "" : " " + o_.arguments);
    std::vector<std::string> steps;
    if (v_.passed() && o_.one_schedule) {
      steps.push_back("next: " + command + "   runs all schedules");
    } else if (v_.passed()) {
      if (!o_.next.empty())
        steps.push_back("next: " + o_.next + "   ./handoff check " + o_.next.substr(0, o_.next.find(' ')));
    } else {
      if (!v_.reproduce.empty()) steps.push_back("reproduce: " + command + " " + v_.reproduce);
      if (!o_.colleague) steps.push_back("next: ./handoff hint " + v_.exercise);
    }
    if (steps.empty()) return;
    std::string text;
    for (const std::string& step : steps) text += (text.empty() ? "" : "        ") + step;
    if (display_width(text) + 2 <= o_.width) {
      line("  " + text);
    } else {
      for (const std::string& step : steps) line("  " + step);
    }
  }

  const Verdict& v_;
  const RenderOptions& o_;
  std::string text_;
};

}  // namespace

std::string render(const Verdict& verdict, const RenderOptions& options) { return Screen(verdict, options).render(); }

std::string render_line(const Verdict& verdict, const RenderOptions& options) {
  const auto ink = [&](Ink which, const std::string& text) {
    return options.color ? code(which) + text + "\x1b[0m" : text;
  };
  const std::string mark = verdict.passed()      ? ink(Ink::Good, "✓")
                           : verdict.could_grade ? ink(Ink::Bad, "✗")
                                                 : ink(Ink::Caution, "–");
  std::string points = std::to_string(verdict.score) + "/" + std::to_string(verdict.max_score);
  points = std::string(points.size() < 7 ? 7 - points.size() : 0, ' ') + points;
  std::string time = number(verdict.seconds, 1);
  time = std::string(time.size() < 5 ? 5 - time.size() : 0, ' ') + time + " s";
  std::string cause;
  if (!verdict.problem.empty()) {
    cause = verdict.problem;
  } else if (!verdict.passed()) {
    if (!verdict.diagnostics.empty()) {
      const Diagnostic& d = verdict.diagnostics.front().diagnostic;
      cause = d.id + (d.place.line > 0 ? "  " + place_text(d.place) : "");
    } else {
      for (const TestOutcome& t : verdict.tests) {
        if (t.state != TestOutcome::State::Failed || !cause.empty()) continue;
        cause = t.name + (t.message.empty() ? "" : ": " + t.message);
      }
    }
  }
  const std::string left = verdict.exercise + " " + pad(verdict.title, 26) + points + "  " + time;
  if (cause.empty()) return mark + " " + left;
  return mark + " " + left + "  " +
         cut(harmless(cause), std::max<size_t>(options.width, display_width(left) + 24) - display_width(left) - 4);
}

std::vector<std::string> shared_notes(const std::vector<Verdict>& verdicts) {
  std::vector<std::pair<std::string, std::string>> ids_of;  // by note, in order of appearance
  for (const Verdict& verdict : verdicts) {
    for (const std::string& note : verdict.notes) {
      const auto known = std::find_if(ids_of.begin(), ids_of.end(), [&](const auto& n) { return n.first == note; });
      if (known == ids_of.end()) {
        ids_of.emplace_back(note, verdict.exercise);
      } else {
        known->second += ", " + verdict.exercise;
      }
    }
  }
  std::vector<std::string> lines;
  for (const auto& [note, ids] : ids_of) lines.push_back(harmless(ids + ": " + note));
  return lines;
}

bool wants_color(int fd) {
  const char* refused = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  if (refused != nullptr && *refused != '\0') return false;
  return isatty(fd) == 1 && terminal != nullptr && std::string(terminal) != "dumb";
}

size_t terminal_width(int fd) {
  winsize size = {};
  if (isatty(fd) != 1 || ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 100;
  return std::clamp<size_t>(size.ws_col, 60, 120);
}

size_t display_width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string wrap(const std::string& text, size_t width, size_t indent, size_t start) {
  std::string out;
  size_t column = start;
  bool line_is_empty = true;
  for (size_t at = 0; at < text.size();) {
    // Runs of spaces inside a line are kept ("error[id]  message"); at a break they go.
    const size_t word = text.find_first_not_of(' ', at);
    if (word == std::string::npos) break;
    const size_t end = std::min(text.find(' ', word), text.size());
    const std::string piece = text.substr(word, end - word);
    if (!line_is_empty && column + (word - at) + display_width(piece) > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else {
      out.append(word - at, ' ');
      column += word - at;
    }
    out += piece;
    column += display_width(piece);
    line_is_empty = false;
    at = end;
  }
  return out;
}

}  // namespace handoff::report
