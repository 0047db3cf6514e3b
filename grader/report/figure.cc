// Tested by figure_test.cc.
//
// Figures show the first block of a launch; cycles count from its start. Everything drawn is an event of the trace;
// what the rules should make of a kernel enters nowhere. (One field is not told by an event: what is pending right
// after a phase is complete. It is the count of the init.)
//
// Widths of texts are not known here, only an upper bound of them. A label that might touch another one is left out:
// the legend and the rows say what a shape is.
#include "grader/report/figure.h"

#include <fmt/format.h>

#include <algorithm>

#include "grader/report/figure_parts.h"

namespace handoff::report {
namespace figure {
namespace {

/// Do the two belong to one instruction of one warp?
bool is_same_arrive(const Event& a, const Event& b) {
  return a.kind == Kind::Arrive && b.kind == Kind::Arrive && a.warp >= 0 && a.warp == b.warp && a.cycle == b.cycle &&
         a.line == b.line && a.object == b.object && a.phase == b.phase && a.bytes == 0 && b.bytes == 0;
}

/// trace::name_of(), but shorter where a picture has little room.
const char* text_of(Kind kind) {
  switch (kind) {
    case Kind::CopyRead:
      return "copy read";
    case Kind::CopyWritten:
      return "copy written";
    case Kind::CopySignalled:
      return "copy signalled";
    case Kind::TmemLoad:
      return "tmem ld";
    case Kind::TmemStore:
      return "tmem st";
    case Kind::TcgenCommit:
      return "commit";
    default:
      return trace::name_of(kind);
  }
}

}  // namespace

std::vector<Event> events_of(const trace::Trace& trace) {
  std::vector<Event> events;
  for (const Event& e : trace.events) {
    if (e.cta == 0) events.push_back(e);
  }
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.cycle < b.cycle; });
  std::vector<Event> joined;
  for (Event& e : events) {
    e.cycle -= std::min(e.cycle, trace.first_cta.begin);
    if (!joined.empty() && is_same_arrive(joined.back(), e)) {
      e.mask |= joined.back().mask;
      joined.back() = e;
    } else {
      joined.push_back(e);
    }
  }
  return joined;
}

bool is_wait(const Event& e) { return e.kind == Kind::WaitTrue || e.kind == Kind::WaitFalse; }

std::string number(int64_t value) {
  std::string digits = std::to_string(value < 0 ? -value : value);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return (value < 0 ? "\u2212" : "") + digits;
}

std::string warp_name(const FigureSpec& spec, int32_t warp) { return spec.name_of("warp " + std::to_string(warp)); }

const char* parity_look(uint64_t phase) { return phase % 2 == 0 ? "even" : "odd"; }

std::string framed(Svg& svg, double height, const FigureSpec& spec, const FigureRun& run) {
  svg.text(kMargin, 26, "title", spec.title);
  double y = height + 6;
  for (const std::string& note : spec.notes) svg.text(kMargin, y += 16, "dim", note);
  const std::string launch = fmt::format("{}, {} thread{}, nominal schedule; PTX by {}", spec.source, spec.block,
                                         spec.block == 1 ? "" : "s", run.compiler);
  return svg.finish(kWidth, y + (spec.notes.empty() ? 6 : 14), spec.title, "Recorded: " + launch);
}

}  // namespace figure

std::string draw_figure(const FigureSpec& spec, const FigureRun& run, std::string* problem) {
  for (const std::string& barrier : spec.barriers) {
    const auto& all = run.trace->events;
    if (std::none_of(all.begin(), all.end(),
                     [&](const figure::Event& e) { return e.kind == figure::Kind::Init && e.object == barrier; })) {
      *problem = "the run has no mbarrier " + barrier;
      return "";
    }
  }
  if (spec.kind == "fields") return figure::draw_fields(spec, run, problem);
  if (spec.kind == "parity") return figure::draw_parity(spec, run, problem);
  return figure::draw_timeline(spec, run, problem);
}

std::string list_events(const FigureSpec& spec, const trace::Trace& trace) {
  std::string text;
  for (const figure::Event& e : figure::events_of(trace)) {
    text += fmt::format("{:>8}  {:<12} {:<16} {:<24} phase {:<4} pending {:<5} tx {:<8} bytes {:<8} op {:<5} line {}\n",
                        e.cycle, e.warp < 0 ? "hardware" : figure::warp_name(spec, e.warp), figure::text_of(e.kind),
                        spec.name_of(e.object), static_cast<int64_t>(e.phase), e.pending, e.tx, e.bytes, e.op, e.line);
  }
  return text;
}

}  // namespace handoff::report
