#include "grader/emulator/check/shadow.h"

namespace handoff::check {
namespace {
size_t bytes_of(const Plane& p) {
  return p.writes.capacity() * sizeof(WriteRecord) + p.reads.capacity() * sizeof(ReadRecord);
}
}  // namespace

size_t Shadow::host_bytes() const {
  size_t total = 0;
  for (const auto& [address, page] : pages_) {
    total += sizeof(Page);
    for (const Row& row : *page) {
      total += bytes_of(row.whole);
      if (!row.bytes) continue;
      total += sizeof(*row.bytes);
      for (const Plane& p : *row.bytes) total += bytes_of(p);
    }
  }
  return total;
}

}  // namespace handoff::check
