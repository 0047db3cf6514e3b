#include <cstdio>

#include "grader/cli/commands.h"

namespace handoff::cli {

int refuse(const std::string& message) {
  std::fflush(stdout);
  std::fprintf(stderr, "handoff: %s\n", message.c_str());
  return kCouldNot;
}

}  // namespace handoff::cli
