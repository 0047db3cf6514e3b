#include "grader/emulator/check/shadow.h"

namespace handoff::check {

void Shadow::clear() {
  pages_.clear();
  last_ = nullptr;
  count(size_t{0} - bytes_);
}

}  // namespace handoff::check
