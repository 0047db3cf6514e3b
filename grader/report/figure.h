// A recorded run as a picture: SVG for the chapters.
#pragma once

#include <cstdint>
#include <string>

#include "grader/emulator/trace/trace.h"
#include "grader/report/figure_spec.h"

namespace handoff::report {

/// What a figure is drawn from.
struct FigureRun {
  const trace::Trace* trace = nullptr;  ///< of the launch
  std::string compiler;                 ///< that made the PTX: "Cuda compilation tools, release 13.0, V13.0.88"
};

/// The figure as SVG, the same bytes for the same run: at most 900 px wide, text as text, light or dark as the reader's
/// browser is. Kinds:
///   fields    a row for each event of one mbarrier: its phase, pending arrivals and tx-count afterwards
///   parity    a column for each wait of a warp: barrier, phase, parity; several warps below each other
///   timeline  rows of barriers, warps, copy engine and tensor core over modeled cycles
/// `problem` is one line where the run holds nothing to draw; empty otherwise.
std::string draw_figure(const FigureSpec& spec, const FigureRun& run, std::string* problem);

/// The events of the first block as text, one a line, for whoever writes a figure's file.
std::string list_events(const FigureSpec& spec, const trace::Trace& trace);

}  // namespace handoff::report
