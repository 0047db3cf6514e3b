// A benchmark that measures a failed run measures nothing: it says so, and the program ends with status 1.
#pragma once

#include <benchmark/benchmark.h>

#include <string>

namespace handoff::bench {

/// Ends this benchmark with `why`, one line.
void fail(benchmark::State& state, const std::string& why);

/// Whether any benchmark failed so far.
bool any_failed();

}  // namespace handoff::bench
