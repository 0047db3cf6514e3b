#include "grader/emulator/machine/schedule.h"

#include <array>

namespace handoff::machine {
namespace {
constexpr std::array<std::string_view, 5> kNames = {"nominal", "lazy", "eager", "reverse", "random"};
}

std::string_view to_string(Schedule::Kind kind) { return kNames[static_cast<size_t>(kind)]; }

std::string to_string(const Schedule& schedule) {
  std::string s(to_string(schedule.kind));
  if (schedule.kind == Schedule::Kind::Random) s += " (seed " + std::to_string(schedule.seed) + ")";
  return s;
}

std::optional<Schedule::Kind> schedule_from_string(std::string_view text) {
  for (size_t i = 0; i < kNames.size(); i++) {
    if (kNames[i] == text) return static_cast<Schedule::Kind>(i);
  }
  return std::nullopt;
}

}  // namespace handoff::machine
