#include "grader/emulator/trace/timeline.h"

#include <algorithm>

namespace handoff::trace {
namespace {

/// Adds to each column the cycles of `spans` that lie in it.
void add_cycles(const std::vector<Span>& spans, const Activity& a, std::vector<double>& cycles) {
  const double length = static_cast<double>(a.end - a.begin) / static_cast<double>(cycles.size());
  for (const Span& s : spans) {
    const auto from = static_cast<double>(std::max(s.begin, a.begin) - a.begin);
    const auto to = static_cast<double>(std::min(s.end, a.end) - std::min(a.begin, s.end));
    for (auto k = static_cast<size_t>(from / length); k < cycles.size(); k++) {
      const double first = std::max(from, static_cast<double>(k) * length);
      const double last = std::min(to, static_cast<double>(k + 1) * length);
      if (last <= first) break;
      cycles[k] += last - first;
    }
  }
}

std::vector<uint8_t> percent(const std::vector<double>& cycles, const Activity& a, size_t units) {
  std::vector<uint8_t> row;
  const double all = static_cast<double>((a.end - a.begin) * units) / static_cast<double>(cycles.size());
  for (const double c : cycles) row.push_back(static_cast<uint8_t>(std::min(100.0, 100.0 * c / all + 0.5)));
  return row;
}

}  // namespace

Timeline timeline_of(const Activity& activity, size_t columns) {
  Timeline t{activity.begin, activity.end, {}, {}, {}, {}, activity.operations};
  if (activity.end <= activity.begin) return t;
  const auto row = [&](const std::vector<std::vector<Span>>& units) {
    std::vector<double> cycles(columns);
    for (const std::vector<Span>& spans : units) add_cycles(spans, activity, cycles);
    return percent(cycles, activity, std::max<size_t>(1, units.size()));
  };
  t.loads = row({activity.loads});
  t.mmas = row({activity.mmas});
  t.stores = row({activity.stores});
  t.threads = row(activity.warps);
  return t;
}

}  // namespace handoff::trace
