// What `run` tells of a program: findings on standard error as they come, totals at the end, all of it as JSON.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "grader/cli/suppressions.h"
#include "grader/runtime/launch_report.h"

namespace handoff::cli {

/// Makes lines of source of addresses in a program, by addr2line (binutils), which comes with every compiler.
class HostLines {
 public:
  /// The innermost frame that lies in source which is not the toolkit's own; line 0: none is known.
  SourcePlace find(const runtime::HostFrames& frames);

 private:
  const std::vector<SourcePlace>& lines_of(const std::string& file, const std::string& address);
  std::map<std::pair<std::string, std::string>, std::vector<SourcePlace>> known_;  // innermost first
};

/// How findings are told.
struct FindingOptions {
  size_t schedules = 1;           ///< on which the program is to run
  bool verbose = false;           ///< every diagnostic of a launch in full, and suppressions that matched nothing
  bool checked = true;            ///< the checker was on
  bool keep_launches = false;     ///< for the JSON report
  Suppressions suppressions;      ///< what is not told
  std::string suppressions_file;  ///< where they come from, for messages; empty: nowhere
};

/// What all runs of one program came to. A finding is one however many launches, and runs on other schedules, show it:
/// the same id at the same line.
class Findings {
 public:
  /// `options`: what is told and kept.
  explicit Findings(FindingOptions options) : options_(std::move(options)) {}
  /// The next records are of a run on this schedule.
  void begin_run(std::string schedule);
  /// Takes what the library reported; prints it where it is new.
  void add(runtime::RunRecord record);
  /// The run ended so; `difference` is one line on what it did otherwise than the first, which is told, or empty.
  void end_run(int exit_status, const std::string& difference);

  /// Did the program load the library, in this run?
  bool started() const { return started_; }
  /// Did the library say that nothing can run?
  bool fatal() const { return fatal_; }
  /// Errors that no suppression covers.
  size_t errors() const { return errors_; }

  /// Prints "handoff: 3 launches, 1 error", where there is something to say; after several runs, also which schedules
  /// show what.
  void summary() const;
  /// The report, as docs/run.md describes it.
  std::string json(const std::vector<std::string>& program, int exit_status) const;

 private:
  struct Found {
    nlohmann::ordered_json json;         // null: it is suppressed
    std::string title;                   // "error[data-race] race.cu:5"
    std::vector<std::string> schedules;  // that show it
    Diagnostic first;                    // as it was told
    uint64_t launch = 0;                 // that showed it last
  };
  struct Run {
    std::string schedule;
    int exit_status = 0;
    std::string difference;
  };
  void launch(runtime::RunRecord record);
  bool is_new(const runtime::RunRecord& record, Diagnostic& diagnostic, const std::vector<runtime::HostPlace>& places);
  void show(const runtime::RunRecord& record, const std::vector<Diagnostic>& diagnostics) const;
  FindingOptions options_;
  bool started_ = false, fatal_ = false, interrupted_ = false;
  uint64_t untold_ = 0;
  size_t ran_ = 0, errors_ = 0, warnings_ = 0, suppressed_ = 0, repeated_ = 0;
  std::vector<Run> runs_;
  std::map<std::tuple<std::string, std::string, uint32_t, std::string>, Found*> by_key_;
  std::vector<std::unique_ptr<Found>> found_;
  std::set<std::string> told_;  // messages
  nlohmann::ordered_json launches_ = nlohmann::ordered_json::array(), messages_ = nlohmann::ordered_json::array();
  HostLines lines_;
};

}  // namespace handoff::cli
