// Tested by figure_test.cc. The figure of kind "parity": a column for each wait of a warp.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "grader/report/figure_parts.h"

namespace handoff::report::figure {
namespace {

/// A wait that a warp came back from.
struct ParityWait {
  size_t barrier = 0;                ///< index in FigureSpec::barriers
  uint64_t phase = 0, cycle = 0;     ///< that it was for, that it returned in
  std::optional<uint64_t> complete;  ///< when that phase was complete; none: the phase before phase 0
};

std::vector<ParityWait> waits_of(const FigureSpec& spec, const std::vector<Event>& events, int32_t warp) {
  std::vector<ParityWait> waits;
  for (const Event& e : events) {
    const auto at = std::find(spec.barriers.begin(), spec.barriers.end(), e.object);
    if (at == spec.barriers.end() || e.kind != Kind::WaitTrue || e.warp != warp) continue;
    ParityWait wait{static_cast<size_t>(at - spec.barriers.begin()), e.phase, e.cycle, {}};
    // Lanes of a warp that ask one after the other are one wait.
    if (!waits.empty() && waits.back().barrier == wait.barrier && waits.back().phase == wait.phase) continue;
    for (const Event& done : events) {
      if (done.kind == Kind::PhaseComplete && done.object == e.object && done.phase == e.phase)
        wait.complete = done.cycle;
    }
    waits.push_back(wait);
  }
  return waits;
}

class ParityFigure {
 public:
  ParityFigure(const FigureSpec& spec, const FigureRun& run) : spec_(spec), run_(run) {}

  std::string draw(std::string* problem) {
    const std::vector<Event> events = events_of(*run_.trace);
    std::vector<std::vector<ParityWait>> all;
    size_t most = 0;
    for (const int32_t warp : spec_.warps) {
      all.push_back(waits_of(spec_, events, warp));
      most = std::max(most, all.back().size());
      if (all.back().empty()) *problem = fmt::format("warp {} waits for none of these barriers", warp);
    }
    if (!problem->empty()) return "";
    column_ = std::min(118.0, (kWidth - 2 * kMargin - kLabel) / static_cast<double>(most));
    right_ = kLeft + column_ * static_cast<double>(most);
    svg_.text(kMargin, y_ + 12, "head", spec_.column);
    for (size_t i = 0; i < most; ++i) svg_.text(middle(i), y_ + 12, "head", std::to_string(i), Anchor::Middle);
    y_ += 20;
    for (size_t i = 0; i < all.size(); ++i) {
      svg_.line(kMargin, y_, right_, y_, "rule");
      if (all.size() > 1) {
        svg_.text(kMargin, y_ + 18, "strong", warp_name(spec_, spec_.warps[i]));
        y_ += 22;
      }
      draw_barriers(all[i]);
      draw_wave(all[i]);
      draw_cycles(all[i]);
    }
    return framed(svg_, y_, spec_, run_);
  }

 private:
  static constexpr double kLabel = 176, kLeft = kMargin + kLabel;

  double x_of(size_t i) const { return kLeft + column_ * static_cast<double>(i); }
  double middle(size_t i) const { return x_of(i) + column_ / 2; }

  /// One row a barrier: its phases as boxes. Each ends with the wait for it, where its name stands.
  void draw_barriers(const std::vector<ParityWait>& waits) {
    constexpr double kRow = 36;
    for (size_t b = 0; b < spec_.barriers.size(); ++b) {
      if (std::none_of(waits.begin(), waits.end(), [b](const ParityWait& w) { return w.barrier == b; })) continue;
      svg_.text(kMargin, y_ + 22, "code strong", spec_.name_of(spec_.barriers[b]));
      size_t from = 0;
      for (size_t i = 0; i < waits.size(); ++i) {
        if (waits[i].barrier != b) continue;
        const bool before = waits[i].phase == UINT64_MAX;  // the phase before phase 0
        svg_.rect(x_of(from) + 2, y_ + 5, x_of(i + 1) - x_of(from) - 4, 26, parity_look(waits[i].phase), 4);
        const std::string brief = before ? "before 0" : std::to_string(waits[i].phase);
        const std::string words = before ? brief : "phase " + brief;
        const bool fits = text_width(words, 12) + 10 <= column_;
        svg_.text(middle(i), y_ + 22, "", fits ? words : brief, Anchor::Middle);
        from = i + 1;
      }
      y_ += kRow;
      svg_.line(kMargin, y_, right_, y_, "grid");
    }
  }

  /// The parity passed, as a wave.
  void draw_wave(const std::vector<ParityWait>& waits) {
    constexpr double kHigh = 12, kLow = 40, kRow = 52;
    svg_.text(kMargin, y_ + 24, "code strong", spec_.variable);
    svg_.text(kMargin, y_ + 40, "dim", "the parity passed");
    for (size_t i = 0; i < waits.size(); ++i) {
      const uint64_t parity = waits[i].phase & 1;
      const double level = y_ + (parity == 1 ? kHigh : kLow);
      svg_.line(x_of(i), level, x_of(i + 1), level, "wave");
      if (i > 0 && (waits[i - 1].phase & 1) != parity) svg_.line(x_of(i), y_ + kHigh, x_of(i), y_ + kLow, "wave");
      svg_.text(middle(i), y_ + 30, "strong", std::to_string(parity), Anchor::Middle);
    }
    y_ += kRow;
    svg_.line(kMargin, y_, right_, y_, "grid");
  }

  void draw_cycles(const std::vector<ParityWait>& waits) {
    svg_.text(kMargin, y_ + 18, "", "phase complete, cycle");
    svg_.text(kMargin, y_ + 36, "", "wait returns, cycle");
    for (size_t i = 0; i < waits.size(); ++i) {
      const std::optional<uint64_t>& complete = waits[i].complete;
      svg_.text(middle(i), y_ + 18, "dim", complete ? cycle_text(*complete) : "\u2013", Anchor::Middle);
      svg_.text(middle(i), y_ + 36, "dim", cycle_text(waits[i].cycle), Anchor::Middle);
    }
    y_ += 46;
  }

  const FigureSpec& spec_;
  const FigureRun& run_;
  Svg svg_;
  double y_ = kTop, column_ = 0, right_ = 0;
};

}  // namespace

std::string draw_parity(const FigureSpec& spec, const FigureRun& run, std::string* problem) {
  return ParityFigure(spec, run).draw(problem);
}

}  // namespace handoff::report::figure
