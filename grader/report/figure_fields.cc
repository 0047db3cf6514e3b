// Tested by figure_test.cc. The figure of kind "fields": a row for each event of one mbarrier.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <set>

#include "grader/report/figure_parts.h"

namespace handoff::report::figure {
namespace {

std::string threads_of(const Event& e) {
  const int count = std::popcount(e.mask);
  return count == 1 ? "1 thread" : std::to_string(count) + " threads";
}

/// One event and what the barrier's fields are after it.
struct FieldRow {
  uint64_t cycle = 0;
  std::string who, what;
  uint32_t line = 0;
  uint64_t phase = 0;
  int64_t pending = 0, tx = 0;
  bool completes = false;      ///< a phase is complete by this event
  std::vector<int32_t> warps;  ///< several where a wait had the same answer
  Kind kind = Kind::Init;
};

/// Copies that report to `barrier`, by operation.
std::set<uint64_t> copies_on(const std::vector<Event>& events, const std::string& barrier) {
  std::set<uint64_t> ops;
  for (const Event& e : events) {
    if (e.kind == Kind::Complete && e.object == barrier && e.op != 0) ops.insert(e.op);
  }
  return ops;
}

/// "warps 4–7" or "warps 0, 2".
std::string warps_of(std::vector<int32_t> warps) {
  std::sort(warps.begin(), warps.end());
  warps.erase(std::unique(warps.begin(), warps.end()), warps.end());
  if (warps.size() == 1) return fmt::format("warp {}", warps.front());
  if (warps.size() > 2 && warps.back() - warps.front() == static_cast<int32_t>(warps.size()) - 1)
    return fmt::format("warps {}\u2013{}", warps.front(), warps.back());
  return fmt::format("warps {}", fmt::join(warps, ", "));
}

std::string field_text(const FigureSpec& spec, const Event& e) {
  switch (e.kind) {
    case Kind::Init:
      return fmt::format("init, count {}", e.pending);
    case Kind::Expect:
      return fmt::format("expect_tx, {} bytes", number(e.bytes));
    case Kind::Complete:
      return fmt::format("complete_tx, {} bytes", number(e.bytes));
    case Kind::Arrive:
      if (e.warp < 0) return "arrive";
      return e.bytes > 0 ? fmt::format("arrive.expect_tx, {} bytes", number(e.bytes)) : "arrive, " + threads_of(e);
    case Kind::PhaseComplete:
      return fmt::format("phase {} is complete", e.phase);
    case Kind::CopyIssued:
      return fmt::format("issues a copy to {}, {} bytes", spec.name_of(e.object), number(e.bytes));
    case Kind::WaitTrue:
    case Kind::WaitFalse:
      return fmt::format("wait, parity {}: {}", e.phase & 1, e.kind == Kind::WaitTrue ? "true" : "not yet");
    default:
      return "";
  }
}

std::vector<FieldRow> field_rows(const FigureSpec& spec, const std::vector<Event>& events) {
  const std::string& barrier = spec.barriers.front();
  const std::set<uint64_t> copies = copies_on(events, barrier);
  std::vector<FieldRow> rows;
  int64_t count = 0;  // of the init
  for (const Event& e : events) {
    const bool copy = e.kind == Kind::CopyIssued && copies.count(e.op) != 0;
    if (!copy && (e.object != barrier || (is_wait(e) && !spec.waits))) continue;
    if (rows.empty() && e.kind != Kind::Init) continue;
    FieldRow row;
    row.cycle = e.cycle;
    row.who = e.warp < 0 ? "hardware" : warp_name(spec, e.warp);
    row.what = field_text(spec, e);
    row.line = e.line;
    row.kind = e.kind;
    if (e.warp >= 0) row.warps = {e.warp};
    if (row.what.empty()) continue;
    if (e.kind == Kind::Init) count = e.pending;
    if (copy || is_wait(e)) {  // these change nothing
      row.phase = rows.back().phase;
      row.pending = rows.back().pending;
      row.tx = rows.back().tx;
    } else {
      row.phase = e.phase + (e.kind == Kind::PhaseComplete ? 1 : 0);
      row.pending = e.kind == Kind::PhaseComplete ? count : e.pending;
      row.tx = e.tx;
      row.completes = e.kind == Kind::PhaseComplete;
    }
    if (e.kind == Kind::Complete) row.who = "copy engine";
    if (e.kind == Kind::PhaseComplete) row.who = "", row.line = 0;
    if (e.kind == Kind::Complete) row.line = 0;
    // Several warps that get the same answer from the same state are one row.
    if (is_wait(e) && rows.back().kind == e.kind && rows.back().what == row.what) {
      rows.back().warps.push_back(e.warp);
      continue;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

/// A number with a bar of its size.
void draw_amount(Svg& svg, double x, double y, int64_t value, int64_t most, const char* look) {
  constexpr double kBar = 96;
  svg.text(x + 46, y + 16, value == 0 ? "dim" : "", number(value), Anchor::End);
  if (most > 0 && value != 0)
    svg.rect(x + 54, y + 7,
             std::max(1.0, kBar * static_cast<double>(value < 0 ? -value : value) / static_cast<double>(most)), 10,
             value < 0 ? "expect" : look, 2);
}

/// Are the changes of this barrier in the order of their cycles? Warps of the emulator may be a little apart in time,
/// and then one changes the barrier before another one whose clock shows less.
bool is_in_order(const trace::Trace& trace, const std::string& barrier) {
  uint64_t last = 0;
  for (const Event& e : trace.events) {
    if (e.cta != 0 || e.object != barrier || is_wait(e)) continue;
    if (e.cycle < last) return false;
    last = e.cycle;
  }
  return true;
}

}  // namespace

std::string draw_fields(const FigureSpec& spec, const FigureRun& run, std::string* problem) {
  if (!is_in_order(*run.trace, spec.barriers.front())) {
    *problem = "the events of " + spec.barriers.front() + " are not in order of time in this launch; take another one";
    return "";
  }
  const std::vector<FieldRow> rows = field_rows(spec, events_of(*run.trace));
  if (rows.empty()) {
    *problem = "the run has no mbarrier " + spec.barriers.front();
    return "";
  }
  int64_t most_pending = 0, most_tx = 0;
  for (const FieldRow& r : rows) {
    most_pending = std::max(most_pending, r.pending);
    most_tx = std::max(most_tx, r.tx < 0 ? -r.tx : r.tx);
  }
  constexpr double kRow = 24, kCycle = kMargin + 42, kWho = kMargin + 58, kWhat = kMargin + 178, kLine = kMargin + 440;
  constexpr double kPhase = kMargin + 462, kPending = kMargin + 532, kTx = kMargin + 690;
  Svg svg;
  double y = kTop;
  svg.text(kCycle, y + 12, "head", "cycle", Anchor::End);
  svg.text(kWho, y + 12, "head", "who");
  svg.text(kWhat, y + 12, "head", "event");
  svg.text(kLine, y + 12, "head", "line", Anchor::End);
  svg.text(kPhase + 24, y + 12, "head", "phase", Anchor::Middle);
  svg.text(kPending, y + 12, "head", "pending arrivals");
  svg.text(kTx, y + 12, "head", "tx-count, bytes");
  y += 18;
  svg.line(kMargin, y, kWidth - kMargin, y, "rule");
  // The column of phases: one box for all rows of a phase.
  for (size_t first = 0; first < rows.size();) {
    size_t last = first;
    while (last + 1 < rows.size() && rows[last + 1].phase == rows[first].phase) ++last;
    const double top = y + kRow * static_cast<double>(first) + 1.5,
                 height = kRow * static_cast<double>(last - first + 1) - 3;
    svg.rect(kPhase, top, 48, height, parity_look(rows[first].phase), 3);
    for (size_t i = first; i <= last; ++i)
      svg.text(kPhase + 24, y + kRow * static_cast<double>(i) + 16, i == first ? "strong" : "",
               std::to_string(rows[i].phase), Anchor::Middle);
    first = last + 1;
  }
  for (const FieldRow& r : rows) {
    const bool still = r.kind == Kind::WaitTrue || r.kind == Kind::WaitFalse || r.kind == Kind::CopyIssued;
    const char* look = still ? "dim" : r.completes ? "strong" : "";
    svg.text(kCycle, y + 16, "dim", cycle_text(r.cycle), Anchor::End);
    svg.text(kWho, y + 16, still ? "dim" : "", r.warps.size() > 1 ? warps_of(r.warps) : r.who);
    svg.text(kWhat, y + 16, look, r.what);
    if (r.line != 0) svg.text(kLine, y + 16, "dim", std::to_string(r.line), Anchor::End);
    draw_amount(svg, kPending, y, r.pending, most_pending, "arrive");
    draw_amount(svg, kTx, y, r.tx, most_tx, "moving");
    y += kRow;
    svg.line(kMargin, y, kWidth - kMargin, y, "grid");
  }
  return framed(svg, y, spec, run);
}

}  // namespace handoff::report::figure
