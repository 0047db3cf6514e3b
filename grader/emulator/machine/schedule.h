// The order in which asynchronous work completes and warps run. Same schedule and seed: same run, bit for bit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace handoff::machine {

/// See docs/architecture.md, "Schedules".
struct Schedule {
  /// When asynchronous work completes.
  enum class Kind : uint8_t {
    Nominal,  ///< the timing model
    Lazy,     ///< asynchronous work completes only when every fragment is parked or spinning
    Eager,    ///< asynchronous work completes at issue
    Reverse,  ///< copies in flight complete in the opposite order of issue
    Random,   ///< delays and warp order drawn from `seed`
  };
  Kind kind = Kind::Nominal;  ///< which order
  uint64_t seed = 0;          ///< of Random; ignored by the others
};

/// "nominal", "lazy", "eager", "reverse", "random" ("random" without its seed).
std::string_view to_string(Schedule::Kind kind);
/// "nominal" or "random (seed 3)".
std::string to_string(const Schedule& schedule);
/// Inverse of to_string(Kind); nullopt for anything else.
std::optional<Schedule::Kind> schedule_from_string(std::string_view text);

}  // namespace handoff::machine
