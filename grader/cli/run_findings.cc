#include "grader/cli/run_findings.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>

#include "grader/harness/process.h"
#include "grader/report/diagnostic_json.h"
#include "grader/report/terminal.h"

namespace handoff::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using runtime::RunRecord;

/// Lines of the user's files, which diagnostics name by the paths that nvcc wrote.
std::optional<std::string> line_of_file(const std::string& path, size_t line) {
  std::error_code failed;
  if (!fs::is_regular_file(path, failed)) return std::nullopt;
  std::ifstream file(path);
  std::string text;
  for (size_t i = 0; i < line; ++i) {
    if (!std::getline(file, text)) return std::nullopt;
  }
  return text;
}

/// The beginning of a name that templates made longer than anybody reads; demangled names are ASCII.
std::string shortened(const std::string& name) {
  constexpr size_t kMost = 120;
  return name.size() <= kMost ? name : name.substr(0, kMost) + "…";
}

std::string count(size_t n, const char* one, const char* more) { return fmt::format("{} {}", n, n == 1 ? one : more); }

Json as_json(const RunRecord& record, const Diagnostic& d) {
  Json json = report::diagnostic_json(d);
  json.update({{"launch", record.number}, {"kernel", record.kernel}, {"schedule", record.schedule}});
  return json;
}

}  // namespace

SourcePlace HostLines::find(const runtime::HostFrames& frames) {
  for (const std::string& frame : frames) {
    const size_t plus = frame.rfind('+');
    if (plus == std::string::npos) continue;
    for (const SourcePlace& place : lines_of(frame.substr(0, plus), frame.substr(plus + 1))) {
      const std::string name = fs::path(place.file).filename().string();
      if (place.line != 0 && name.rfind("cuda_runtime", 0) != 0) return place;
    }
  }
  return {};
}

const std::vector<SourcePlace>& HostLines::lines_of(const std::string& file, const std::string& address) {
  const auto known = known_.find({file, address});
  if (known != known_.end()) return known->second;
  std::vector<SourcePlace>& places = known_[{file, address}];
  harness::ProcessOptions options;
  options.timeout_s = 20;
  const harness::ProcessResult run = harness::run_process({"addr2line", "-i", "-e", file, address}, options);
  if (!run.ok()) return places;
  size_t at = 0;
  while (at < run.output.size()) {
    const size_t end = std::min(run.output.find('\n', at), run.output.size());
    const std::string text = run.output.substr(at, end - at);  // "/home/me/add.cu:41 (discriminator 3)"
    at = end + 1;
    const size_t colon = text.rfind(':');
    uint32_t line = 0;
    if (colon == std::string::npos || text.rfind("??", 0) == 0) continue;
    std::from_chars(text.data() + colon + 1, text.data() + text.size(), line);
    places.push_back({text.substr(0, colon), line});
  }
  return places;
}

void Findings::begin_run(std::string schedule) {
  runs_.push_back({std::move(schedule), 0, {}});
  started_ = false;
}

void Findings::end_run(int exit_status, const std::string& difference) {
  runs_.back().exit_status = exit_status;
  runs_.back().difference = difference;
  if (!difference.empty()) {
    std::fprintf(stderr, "handoff: schedule %s differs from %s: %s\n", runs_.back().schedule.c_str(),
                 runs_.front().schedule.c_str(), difference.c_str());
  }
}

void Findings::add(RunRecord record) {
  switch (record.kind) {
    case RunRecord::Kind::Start:
      started_ = true;
      return;
    case RunRecord::Kind::Message:
      fatal_ = fatal_ || record.fatal;
      if (!told_.insert(record.text).second) return;
      std::fprintf(stderr, "handoff: %s\n", record.text.c_str());
      messages_.push_back(record.text);
      return;
    case RunRecord::Kind::Launch:
      launch(std::move(record));
      return;
  }
}

void Findings::launch(RunRecord record) {
  if (record.status != "refused") ++ran_;
  interrupted_ = interrupted_ || record.status == "interrupted";
  untold_ += record.untold;
  if (options_.keep_launches) {
    launches_.push_back({{"number", record.number},
                         {"kernel", record.kernel},
                         {"shape", record.shape},
                         {"status", record.status},
                         {"failure", record.failure},
                         {"schedule", record.schedule},
                         {"modeled_cycles", record.modeled_cycles}});
  }
  std::vector<Diagnostic> shown;
  for (runtime::ReportedDiagnostic& reported : record.diagnostics) {
    if (is_new(record, reported.diagnostic, reported.places)) shown.push_back(reported.diagnostic);
  }
  if (!shown.empty()) show(record, shown);
}

bool Findings::is_new(const RunRecord& record, Diagnostic& d, const std::vector<runtime::HostPlace>& places) {
  const bool suppressed = options_.suppressions.covers(d, record.kernel);
  // What is suppressed in one kernel may be told in another.
  Found*& known = by_key_[{d.id, d.place.file, d.place.line,
                           suppressed          ? "\n"
                           : d.place.line == 0 ? d.message
                                               : std::string()}];
  if (known == nullptr && !suppressed && !d.related.empty()) {
    // Elsewhere, or on another schedule, the other party may come second: it is the same pair.
    const SourcePlace& other = d.related.front().place;
    const auto mirror = by_key_.find({d.id, other.file, other.line, std::string()});
    if (mirror != by_key_.end() && mirror->second != nullptr && mirrors(mirror->second->first, d))
      known = mirror->second;
  }
  if (known != nullptr) {
    const bool same_run = known->schedules.back() == record.schedule;
    if (!same_run) known->schedules.push_back(record.schedule);
    if (same_run && !suppressed && known->launch != record.number) ++repeated_;
    known->launch = record.number;
    return false;
  }
  known = found_.emplace_back(std::make_unique<Found>()).get();
  known->schedules.push_back(record.schedule);
  known->launch = record.number;
  known->first = d;
  if (suppressed) {
    ++suppressed_;
    return false;
  }
  for (const runtime::HostPlace& p : places) {
    const SourcePlace place = lines_.find(p.frames);
    if (place.line != 0) d.related.push_back({place, p.role});
  }
  ++(d.severity == Severity::Error ? errors_ : warnings_);
  known->json = as_json(record, d);
  known->title =
      fmt::format("{}[{}] {}", report::to_text(d.severity), d.id,
                  d.place.line == 0 ? "in " + shortened(record.kernel)
                                    : fmt::format("{}:{}", fs::path(d.place.file).filename().string(), d.place.line));
  return true;
}

void Findings::show(const RunRecord& record, const std::vector<Diagnostic>& diagnostics) const {
  harness::Verdict shown;
  for (const Diagnostic& d : diagnostics) shown.diagnostics.push_back({d, "emulator", record.schedule, 0, ""});
  shown.state = record.state;
  shown.deadlock_schedule = record.schedule;
  shown.max_score = 1;  // without full marks the screen tells what was found
  report::RenderOptions options;
  options.color = report::wants_color(STDERR_FILENO);
  options.width = report::terminal_width(STDERR_FILENO);
  options.verbose = options_.verbose;
  options.colleague = true;
  options.source_line = line_of_file;
  // The screen's head speaks of an exercise and its points; here a launch is in its place.
  const std::string screen = report::render(shown, options);
  std::fprintf(stderr, "\n%s\n%s\n",
               report::wrap(fmt::format("handoff: launch {} · {} · {} · schedule {}", record.number,
                                        shortened(record.kernel), record.shape, record.schedule),
                            options.width, 2, 0)
                   .c_str(),
               screen.substr(std::min(screen.find('\n'), screen.size() - 1) + 1).c_str());
}

void Findings::summary() const {
  if (options_.verbose) {
    for (const Suppression& s : options_.suppressions.lines()) {
      if (s.matched == 0) {
        std::fprintf(stderr, "handoff: %s:%zu: '%s' suppressed nothing\n", options_.suppressions_file.c_str(), s.line,
                     s.text.c_str());
      }
    }
  }
  if (ran_ == 0) return;
  std::string text = runs_.size() > 1 ? count(runs_.size(), "run", "runs") + ", " : "";
  text += count(ran_, "launch", "launches");
  if (errors_ > 0) {
    text += ", " + count(errors_, "error", "errors");
  } else {
    text += !options_.checked ? ", not checked"
            : untold_ > 0     ? ", no errors, but warnings or notes (--check all)"
            : suppressed_ > 0 ? ", no other hazards"
                              : ", no hazards";
    if (options_.checked && interrupted_) text += " until it was interrupted";
  }
  if (warnings_ > 0) text += ", " + count(warnings_, "warning or note", "warnings and notes");
  if (suppressed_ > 0) text += fmt::format(", {} suppressed", suppressed_);
  if (repeated_ > 0) text += fmt::format(" ({} more of the same in later launches)", repeated_);
  std::fprintf(stderr, "handoff: %s\n", text.c_str());
  if (runs_.size() < options_.schedules)
    std::fprintf(stderr, "handoff: %zu of %zu schedules were not run\n", options_.schedules - runs_.size(),
                 options_.schedules);
  if (runs_.size() == 1) return;
  for (const std::unique_ptr<Found>& f : found_) {
    if (f->json.is_null()) continue;
    std::string schedules;
    for (const std::string& s : f->schedules) schedules += (schedules.empty() ? "" : ", ") + s;
    std::fprintf(stderr, "  %s: %s\n", f->title.c_str(),
                 f->schedules.size() == options_.schedules ? "on every schedule" : ("on " + schedules).c_str());
  }
}

std::string Findings::json(const std::vector<std::string>& program, int exit_status) const {
  Json runs = Json::array(), diagnostics = Json::array(), suppressions = Json::array();
  for (const Run& r : runs_) {
    runs.push_back({{"schedule", r.schedule}, {"exit_status", r.exit_status}, {"difference", r.difference}});
  }
  for (const std::unique_ptr<Found>& f : found_) {
    if (f->json.is_null()) continue;
    Json entry = f->json;
    entry["schedules"] = f->schedules;
    diagnostics.push_back(std::move(entry));
  }
  for (const Suppression& s : options_.suppressions.lines()) {
    suppressions.push_back({{"line", s.line}, {"text", s.text}, {"matched", s.matched}});
  }
  return Json{{"version", 1},
              {"program", program},
              {"exit_status", exit_status},
              {"runs", std::move(runs)},
              {"launches", launches_},
              {"diagnostics", std::move(diagnostics)},
              {"suppressed", suppressed_},
              {"suppressions", std::move(suppressions)},
              {"messages", messages_}}
             .dump(2, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

}  // namespace handoff::cli
