// Tested by figure_test.cc. The figure of kind "timeline": rows of barriers, warps and units over modeled cycles.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "grader/report/figure_parts.h"

namespace handoff::report::figure {
namespace {

/// A bar in a row of copies or MMAs.
struct Bar {
  uint64_t begin = 0, end = 0;                      ///< issued, over
  std::vector<std::pair<uint64_t, uint64_t>> busy;  ///< the unit works on it
  std::optional<uint64_t> read;                     ///< of a store: its source has been read
  std::string label, brief;                         ///< inside, the longest that there is room for
};

/// A mark in the row of a warp.
struct Mark {
  uint64_t cycle = 0;
  const char* shape = "";
  const char* look = "";
  std::string label;
};

/// One blocked wait.
struct Blocked {
  uint64_t begin = 0, end = 0;
  std::string barrier;
};

class Timeline {
 public:
  Timeline(const FigureSpec& spec, const FigureRun& run)
      : spec_(spec), run_(run), events_(events_of(*run.trace)), begin_(spec.from) {
    const trace::Activity& block = run.trace->first_cta;
    end_ = block.end - block.begin;
    for (const Event& e : events_) end_ = std::max(end_, e.cycle);  // bulk stores may be written after the block's end
    last_ = end_;
    if (spec.to != 0) end_ = std::min(spec.to, end_);
  }

  std::string draw(std::string* problem) {
    if (end_ <= begin_ || events_.empty()) {
      *problem = "nothing happens between the cycles shown";
      return "";
    }
    draw_barriers();
    draw_warps();
    const std::vector<Bar> loads = copies(true), stores = copies(false);
    const bool both = !loads.empty() && !stores.empty();
    draw_bars(both ? "copies in" : "copy engine", loads, "flight", "moving");
    draw_bars(both ? "copies out" : "copy engine", stores, "flight", "moving");
    draw_bars("tensor core", mmas(), "queued", "multiply");
    draw_axis();
    draw_legend();
    if (begin_ > 0 || end_ < last_)
      svg_.text(kMargin, y_ += 18, "dim",
                fmt::format("Cycles {} to {} of {}.", cycle_text(begin_), cycle_text(end_), cycle_text(last_)));
    return framed(svg_, y_, spec_, run_);
  }

 private:
  static constexpr double kLabel = 118, kLeft = kMargin + kLabel, kRight = kWidth - kMargin;

  double x_of(uint64_t cycle) const {
    const auto clamped = static_cast<double>(std::clamp(cycle, begin_, end_) - begin_);
    return kLeft + (kRight - kLeft) * clamped / static_cast<double>(end_ - begin_);
  }
  bool shown(uint64_t begin, uint64_t end) const { return end >= begin_ && begin <= end_; }
  bool shows_barrier(const std::string& object) const {
    return std::find(spec_.barriers.begin(), spec_.barriers.end(), object) != spec_.barriers.end();
  }

  void separate() {
    svg_.line(kMargin, y_, kRight, y_, "grid");
    y_ += 4;
  }

  /// Each barrier is a band of its phases.
  void draw_barriers() {
    for (const std::string& barrier : spec_.barriers) {
      std::optional<uint64_t> since;
      uint64_t phase = 0;
      svg_.text(kMargin, y_ + 16, "code strong", spec_.name_of(barrier));
      const auto box = [&](uint64_t until) {
        if (!shown(*since, until)) return;
        const double left = x_of(*since), width = x_of(until) - left;
        svg_.rect(left, y_ + 2, width, 20, parity_look(phase), 3);
        const std::string full = "phase " + std::to_string(phase), brief = std::to_string(phase);
        const std::string& words = text_width(full, 12) + 8 <= width ? full : brief;
        if (text_width(words, 12) + 4 <= width) svg_.text(left + width / 2, y_ + 16, "", words, Anchor::Middle);
      };
      for (const Event& e : events_) {
        if (e.object != barrier) continue;
        if (e.kind == Kind::Init) since = e.cycle;
        if (e.kind != Kind::PhaseComplete || !since) continue;
        box(e.cycle);
        completions_.insert(e.cycle);
        since = e.cycle;
        phase = e.phase + 1;
      }
      if (since) box(end_);
      y_ += 26;
    }
    if (!spec_.barriers.empty()) separate();
    below_barriers_ = y_;
  }

  std::vector<int32_t> warp_rows() const {
    if (!spec_.warps.empty()) return spec_.warps;
    std::set<int32_t> seen;
    for (const Event& e : events_) {
      if (e.warp >= 0) seen.insert(e.warp);
    }
    return {seen.begin(), seen.end()};
  }

  std::vector<Blocked> blocked(int32_t warp) const {
    std::vector<Blocked> list;
    std::map<std::pair<std::string, uint64_t>, uint64_t> asked;
    for (const Event& e : events_) {
      if (e.warp != warp || !is_wait(e)) continue;
      const std::pair<std::string, uint64_t> key{e.object, e.phase};
      if (e.kind == Kind::WaitFalse) {
        asked.insert({key, e.cycle});
      } else {
        const auto first = asked.find(key);
        if (first != asked.end()) list.push_back({first->second, e.cycle, spec_.name_of(e.object)});
        asked.erase(key);
      }
    }
    return list;
  }

  /// What a warp gives is marked above its bar, what an mbarrier gave it below, the rest on it.
  ///@{
  static bool is_below(Kind kind) { return kind == Kind::WaitTrue; }
  static bool is_on(Kind kind) { return kind == Kind::GroupWait || kind == Kind::TmemLoad || kind == Kind::TmemStore; }
  ///@}

  bool was_blocked(const Event& returned) const {
    return std::any_of(events_.begin(), events_.end(), [&](const Event& e) {
      return e.kind == Kind::WaitFalse && e.warp == returned.warp && e.object == returned.object &&
             e.phase == returned.phase && e.cycle <= returned.cycle;
    });
  }

  std::optional<Mark> mark_of(const Event& e) const {
    // Where there is only one barrier, its name says nothing.
    const bool many = spec_.barriers.size() != 1;
    const std::string object = many ? spec_.name_of(e.object) : "", given = many ? object : "+" + number(e.bytes);
    switch (e.kind) {
      case Kind::Arrive:
        if (e.bytes > 0) return Mark{e.cycle, "diamond", "expect", given};
        return Mark{e.cycle, "triangle", "arrive", object};
      case Kind::Expect:
        return Mark{e.cycle, "diamond", "expect", given};
      case Kind::WaitTrue:
        return Mark{e.cycle, "down", "wait", object};
      case Kind::TcgenCommit:
        return Mark{e.cycle, "square", "commit", object};
      case Kind::Commit:
        return Mark{e.cycle, "square", "commit", ""};
      case Kind::GroupWait:
        return Mark{e.cycle, "circle", "other", ""};
      case Kind::TmemLoad:
        return Mark{e.cycle, "square", "load", ""};
      case Kind::TmemStore:
        return Mark{e.cycle, "square", "store", ""};
      case Kind::TmemAlloc:
        return Mark{e.cycle, "circle", "alloc", "alloc"};
      case Kind::TmemDealloc:
        return Mark{e.cycle, "circle", "alloc", "dealloc"};
      default:
        return std::nullopt;
    }
  }

  /// A bar for each warp: what it executes, where it is blocked; and its marks.
  void draw_warps() {
    constexpr double kAbove = 19, kThick = 16, kBelow = 15;
    for (const int32_t warp : warp_rows()) {
      std::vector<Mark> above, on, below;
      for (const Event& e : events_) {
        if (e.warp != warp || !shown(e.cycle, e.cycle)) continue;
        if (e.kind == Kind::WaitTrue && was_blocked(e)) continue;  // a bar, whose end is the return
        if (const std::optional<Mark> m = mark_of(e))
          (is_below(e.kind) ? below : is_on(e.kind) ? on : above).push_back(*m);
      }
      y_ += above.empty() ? 4 : kAbove;
      svg_.text(kMargin, y_ + 12, "", warp_name(spec_, warp));
      draw_spans(warp, y_ + 4, kThick - 8);
      const size_t lanes = draw_blocked(blocked(warp), kThick);
      draw_marks(on, y_ + kThick / 2);
      draw_marks(above, y_ - 9);
      y_ += static_cast<double>(std::max<size_t>(lanes, 1)) * (kThick + 2) - 2;
      draw_marks(below, y_ + 6);
      y_ += below.empty() ? 4 : kBelow;
    }
    separate();
  }

  /// Lanes of a warp may wait for different barriers at once; then their bars stand below each other. How many do.
  size_t draw_blocked(const std::vector<Blocked>& all, double height) {
    std::vector<double> ends;
    for (const Blocked& b : all) {
      if (!shown(b.begin, b.end)) continue;
      has_waits_ = true;
      const double left = x_of(b.begin), width = std::max(1.0, x_of(b.end) - left);
      size_t lane = 0;
      while (lane < ends.size() && left < ends[lane]) ++lane;
      if (lane == ends.size()) ends.push_back(0);
      ends[lane] = left + width;
      const double y = y_ + static_cast<double>(lane) * (height + 2);
      svg_.rect(left, y, width, height, "waiting", 2);
      const double words = text_width(b.barrier, 11);
      if (words + 14 > width) continue;
      svg_.rect(left + width / 2 - words / 2 - 3, y + 1, words + 6, height - 2, "plate", 2);
      svg_.text(left + width / 2, y + 12, "small", b.barrier, Anchor::Middle);
    }
    return ends.size();
  }

  void draw_spans(int32_t warp, double y, double height) {
    const std::vector<std::vector<trace::Span>>& spans = run_.trace->first_cta.warps;
    const uint64_t start = run_.trace->first_cta.begin;
    if (static_cast<size_t>(warp) >= spans.size()) return;
    for (const trace::Span& s : spans[static_cast<size_t>(warp)]) {
      const uint64_t begin = s.begin - start, end = s.end - start;
      if (shown(begin, end)) svg_.rect(x_of(begin), y, std::max(0.8, x_of(end) - x_of(begin)), height, "running");
    }
  }

  void draw_marks(const std::vector<Mark>& marks, double y) {
    for (size_t i = 0; i < marks.size(); ++i) {
      const Mark& m = marks[i];
      const double x = x_of(m.cycle);
      looks_.insert(m.look);
      svg_.mark(x, y, m.shape, m.look);
      if (m.label.empty()) continue;
      // Right of the mark if there is room, else left of it if there is: behind the label of the mark before.
      const double room = text_width(m.label, 11) + 8,
                   next = i + 1 < marks.size() ? x_of(marks[i + 1].cycle) - 6 : kRight;
      const double before = i == 0 ? kLeft : x_of(marks[i - 1].cycle) + text_width(marks[i - 1].label, 11) + 14;
      if (x + room <= next) {
        svg_.text(x + 8, y + 4, "small", m.label);
      } else if (i + 1 == marks.size() && x - room >= before) {
        svg_.text(x - 8, y + 4, "small", m.label, Anchor::End);
      }
    }
  }

  /// A bar's name, numbered if there are several.
  static void number_bars(std::vector<Bar>& bars, const std::string& name) {
    for (size_t i = 0; i < bars.size(); ++i) {
      bars[i].label = bars.size() < 2 ? name : fmt::format("{} {}", name, i);
      bars[i].brief = bars.size() < 2 ? "" : std::to_string(i);
    }
  }

  std::pair<uint64_t, uint64_t> busy_of(const Event& issued) const {
    const uint64_t start = run_.trace->first_cta.begin;
    return {issued.busy_from - start, issued.busy_until - start};
  }

  /// Copies that the warps shown have issued: those that report to an mbarrier, or the others.
  std::vector<Bar> copies(bool loads) const {
    std::map<uint64_t, std::pair<std::string, uint64_t>> phase_of;  // by operation: barrier and phase
    std::map<uint64_t, uint64_t> read, written;
    for (const Event& e : events_) {
      if (e.kind == Kind::Complete && e.op != 0) phase_of[e.op] = {e.object, e.phase};
      if (e.kind == Kind::CopyRead) read[e.op] = e.cycle;
      if (e.kind == Kind::CopyWritten) written[e.op] = e.cycle;
    }
    const std::vector<int32_t> rows = warp_rows();
    const std::string& name = loads ? spec_.loads : spec_.stores;
    std::vector<Bar> bars;
    std::map<std::pair<std::string, uint64_t>, size_t> groups;
    for (const Event& e : events_) {
      if (e.kind != Kind::CopyIssued || written.count(e.op) == 0) continue;
      if (std::find(rows.begin(), rows.end(), e.warp) == rows.end()) continue;
      const auto phase = phase_of.find(e.op);
      if (loads != (phase != phase_of.end())) continue;
      if (loads && !name.empty()) {
        const auto [group, fresh] = groups.insert({phase->second, bars.size()});
        if (!fresh) {
          Bar& bar = bars[group->second];
          bar.end = std::max(bar.end, written[e.op]);
          bar.busy.push_back(busy_of(e));
          continue;
        }
      }
      Bar& bar = bars.emplace_back();
      bar.begin = e.cycle;
      bar.end = written[e.op];
      bar.busy = {busy_of(e)};
      if (!loads) bar.read = read[e.op];
      bar.label = fmt::format("{}, {} bytes", loads ? spec_.name_of(e.object) : "store", number(e.bytes));
    }
    if (!name.empty()) number_bars(bars, name);
    return bars;
  }

  std::vector<Bar> mmas() const {
    std::map<uint64_t, uint64_t> done;
    for (const Event& e : events_) {
      if (e.kind == Kind::MmaDone) done[e.op] = e.cycle;
    }
    std::vector<Bar> bars;
    bool open = false;  // the last bar takes more MMAs
    for (const Event& e : events_) {
      if (e.kind == Kind::TcgenCommit) open = false;
      if (e.kind != Kind::MmaIssued) continue;
      if (!open || spec_.mmas.empty()) bars.push_back({e.cycle, e.cycle, {}, {}, "", ""});
      open = true;
      bars.back().busy.push_back(busy_of(e));
      bars.back().end = std::max(bars.back().end, done[e.op]);
    }
    if (!spec_.mmas.empty()) number_bars(bars, spec_.mmas);
    return bars;
  }

  /// Stretches that touch are one.
  static std::vector<std::pair<uint64_t, uint64_t>> joined(const std::vector<std::pair<uint64_t, uint64_t>>& parts) {
    std::vector<std::pair<uint64_t, uint64_t>> whole;
    for (const auto& part : parts) {
      if (!whole.empty() && part.first <= whole.back().second)
        whole.back().second = std::max(whole.back().second, part.second);
      else
        whole.push_back(part);
    }
    return whole;
  }

  /// Bars that overlap stand in lanes below each other.
  void draw_bars(const char* unit, const std::vector<Bar>& bars, const char* look, const char* busy) {
    constexpr double kHeight = 20;
    std::vector<double> ends;
    bool any = false;
    for (const Bar& bar : bars) {
      if (!shown(bar.begin, bar.end)) continue;
      any = true;
      const double left = x_of(bar.begin), width = std::max(1.5, x_of(bar.end) - left);
      size_t lane = 0;
      while (lane < ends.size() && left < ends[lane] + 2) ++lane;
      if (lane == ends.size()) ends.push_back(0);
      ends[lane] = left + width;
      const double y = y_ + static_cast<double>(lane) * (kHeight + 2);
      svg_.rect(left, y + 1, width, kHeight - 2, look, 2);
      for (const auto& [from, until] : joined(bar.busy)) {
        if (until > from && shown(from, until))
          svg_.rect(x_of(from), y + kHeight - 5, std::max(1.0, x_of(until) - x_of(from)), 4, busy);
      }
      if (bar.read && shown(*bar.read, *bar.read)) {
        svg_.line(x_of(*bar.read), y + 1, x_of(*bar.read), y + kHeight - 1, "read");
        looks_.insert("read");
      }
      // Before the line of a read, behind it, or in the middle where there is none.
      const double line = bar.read ? std::clamp(x_of(*bar.read), left, left + width) : left + width;
      for (const std::string& words : {bar.label, bar.brief}) {
        const double room = text_width(words, 11) + 4;
        if (words.empty() || room > std::max(line - left, left + width - line)) continue;
        const bool before = room <= line - left;
        svg_.text(before ? (left + line) / 2 : (line + left + width) / 2, y + 12.5, "small", words, Anchor::Middle);
        break;
      }
    }
    if (!any) return;
    svg_.text(kMargin, y_ + 14, "", unit);
    looks_.insert(look);
    y_ += static_cast<double>(ends.size()) * (kHeight + 2) + 4;
    separate();
  }

  void draw_axis() {
    // A step of 1, 2 or 5 times a power of ten, for at most ten ticks.
    uint64_t step = 1;
    const uint64_t span = end_ - begin_;
    for (uint64_t power = 1; span / step > 9; power *= 10) {
      for (const uint64_t factor : {1, 2, 5}) {
        if (span / step > 9) step = factor * power;
      }
    }
    for (uint64_t t = (begin_ + step - 1) / step * step; t <= end_; t += step) {
      svg_.line(x_of(t), y_ - 4, x_of(t), y_ + 2, "rule");
      svg_.text(x_of(t), y_ + 14, "dim", cycle_text(t), Anchor::Middle);
    }
    svg_.text(kMargin, y_ + 14, "head", "cycle");
    // With one barrier, a line through all rows shows what a phase sets free; with more, nobody could follow them.
    has_lines_ = spec_.barriers.size() == 1 && !completions_.empty();
    for (const uint64_t cycle : completions_) {
      if (has_lines_ && shown(cycle, cycle)) svg_.line(x_of(cycle), below_barriers_ - 6, x_of(cycle), y_ - 4, "done");
    }
    y_ += 24;
  }

  void draw_legend() {
    double x = kMargin;
    const double first = x;
    y_ += 6;
    const auto room_for = [&](const std::string& words) {
      const double width = text_width(words, 11) + 34;
      if (x > first && x + width > kRight) {
        x = first;
        y_ += 18;
      }
      const double at = x;
      x += width;
      return at;
    };
    const auto words_at = [&](double at, const std::string& words) { svg_.text(at + 24, y_ + 10, "small", words); };
    const auto box = [&](const char* look, const std::string& words) {
      const double at = room_for(words);
      svg_.rect(at, y_ + 1, 18, 10, look, 2);
      words_at(at, words);
    };
    const auto mark = [&](const char* shape, const char* look, const std::string& words) {
      if (looks_.count(look) == 0) return;
      const double at = room_for(words);
      svg_.mark(at + 9, y_ + 6, shape, look);
      words_at(at, words);
    };
    if (!spec_.barriers.empty()) {
      box("even", "phase with parity 0");
      box("odd", "phase with parity 1");
    }
    {
      const char* words = "executes; blank: waits for threads of its block, or has ended";
      const double at = room_for(words);
      svg_.rect(at, y_ + 2, 18, 8, "running");
      words_at(at, words);
    }
    if (has_waits_) box("waiting", "waits for an mbarrier");
    mark("triangle", "arrive", "arrive");
    mark("diamond", "expect", "arrive.expect_tx, bytes");
    mark("down", "wait", "a wait that returns at once");
    mark("square", "commit", "commit");
    mark("circle", "other", "wait_group returns");
    mark("circle", "alloc", "tcgen05.alloc, dealloc");
    mark("square", "store", "tcgen05.st");
    mark("square", "load", "tcgen05.ld");
    const auto working = [&](const char* look, const char* busy, const std::string& words) {
      if (looks_.count(look) == 0) return;
      const double at = room_for(words);
      svg_.rect(at, y_, 18, 12, look, 2);
      svg_.rect(at, y_ + 8, 12, 4, busy);
      words_at(at, words);
    };
    working("flight", "moving", "copy: issued to written; strip: bytes move");
    if (looks_.count("read") != 0) {
      const double at = room_for("its source has been read");
      svg_.line(at + 9, y_ - 1, at + 9, y_ + 13, "read");
      words_at(at, "its source has been read");
    }
    working("queued", "multiply", "MMA: issued to done; strip: multiplies");
    if (has_lines_) {
      const double at = room_for("a phase is complete");
      svg_.line(at + 9, y_ - 1, at + 9, y_ + 13, "done");
      words_at(at, "a phase is complete");
    }
    y_ += 12;
  }

  const FigureSpec& spec_;
  const FigureRun& run_;
  std::vector<Event> events_;
  uint64_t begin_ = 0, end_ = 0, last_ = 0;  // shown, and the last that there is
  Svg svg_;
  double y_ = kTop, below_barriers_ = kTop;
  std::set<uint64_t> completions_;
  std::set<std::string> looks_;  // of what was drawn, for the legend
  bool has_waits_ = false, has_lines_ = false;
};

}  // namespace

std::string draw_timeline(const FigureSpec& spec, const FigureRun& run, std::string* problem) {
  return Timeline(spec, run).draw(problem);
}

}  // namespace handoff::report::figure
