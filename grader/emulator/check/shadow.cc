#include "grader/emulator/check/shadow.h"

namespace handoff::check {

void Shadow::split(Row& row, uint32_t planes) {
  const bool halved = row.rest != nullptr;
  if (!halved) {
    row.rest = std::make_unique<Rest>();
    count(sizeof(Rest));
  }
  Rest& rest = *row.rest;
  const auto copy = [this](Plane& to, const Plane& from) {
    const size_t before = to.host_bytes() + LaneMasks::host_bytes();
    to = from;
    count(to.host_bytes() + LaneMasks::host_bytes() - before);
  };
  rest.planes = planes;
  if (planes == 4) {
    const Plane& upper_half = halved ? rest.plane[0] : row.first;
    copy(rest.plane[1], upper_half);
    copy(rest.plane[2], upper_half);
  }
  copy(rest.plane[0], row.first);
}

void Shadow::unite(Row& row) {
  const Plane& first = row.first;
  if (!first.reads.empty()) return;
  for (uint32_t i = 1; i < row.rest->planes; i++) {
    const Plane& other = row.plane(i);
    if (!other.reads.empty() ||
        !std::equal(first.writes.begin(), first.writes.end(), other.writes.begin(), other.writes.end(),
                    [](const WriteRecord& a, const WriteRecord& b) { return a.same(b); }))
      return;
  }
  for (const Plane& p : row.rest->plane) count(size_t{0} - p.host_bytes());
  count(size_t{0} - sizeof(Rest));
  row.rest = nullptr;
}

void Shadow::clear() {
  pages_.clear();
  recent_.fill({});
  count(size_t{0} - bytes_);
}

}  // namespace handoff::check
