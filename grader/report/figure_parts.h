// What the kinds of figures share: the recording as they see it, and the frame around a picture. For figure*.cc only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "grader/report/figure.h"
#include "grader/report/svg.h"

namespace handoff::report::figure {

using trace::Event;
using Kind = trace::Event::Kind;
using Anchor = Svg::Anchor;

/// Width of all figures, what stays free at their sides, and where the picture begins below the title; px.
///@{
inline constexpr double kWidth = 880, kMargin = 18, kTop = 44;
///@}

/// The events of the first block in order of time, cycles from the block's start. The lanes of a warp arrive one after
/// the other in a recording; where they do so by one instruction, they are one event here.
std::vector<Event> events_of(const trace::Trace& trace);

/// Is it an answer of test_wait or try_wait?
bool is_wait(const Event& event);

/// "1,234", with a minus sign where it is negative.
std::string number(int64_t value);
/// As above, of a cycle.
inline std::string cycle_text(uint64_t cycle) { return number(static_cast<int64_t>(cycle)); }

/// "warp 3", or what the figure calls it.
std::string warp_name(const FigureSpec& spec, int32_t warp);

/// Class of a phase's box, by its parity.
const char* parity_look(uint64_t phase);

/// The finished figure: the picture, which ends at `height`, between its title and its notes.
std::string framed(Svg& svg, double height, const FigureSpec& spec, const FigureRun& run);

/// The three kinds. `problem` as in draw_figure.
///@{
std::string draw_fields(const FigureSpec& spec, const FigureRun& run, std::string* problem);
std::string draw_parity(const FigureSpec& spec, const FigureRun& run, std::string* problem);
std::string draw_timeline(const FigureSpec& spec, const FigureRun& run, std::string* problem);
///@}

}  // namespace handoff::report::figure
