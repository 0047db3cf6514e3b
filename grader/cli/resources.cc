// handoff resources: what ptxas makes of one kernel for another GPU than the emulated one. For developers: the content
// tests ask it whether the solutions fit every GPU that they are meant for.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "grader/cli/commands.h"
#include "grader/cli/exercises.h"
#include "grader/cli/submission.h"
#include "grader/harness/toolchain.h"

namespace handoff::cli {
namespace {

// "100a", "90", "120f": the part of a target after "sm_".
bool is_target(const std::string& text) {
  const size_t digits = text.find_first_not_of("0123456789");
  const std::string suffix = digits == std::string::npos ? "" : text.substr(digits);
  const size_t count = text.size() - suffix.size();
  return count >= 2 && count <= 3 && (suffix.empty() || suffix == "a" || suffix == "f");
}

// What ptxas makes of the solutions that no other GPU than these can run. Shared memory that a launch adds is not
// ptxas's to know.
int print_table() {
  const harness::Toolchain toolchain = harness::find_toolchain();
  if (!toolchain.found()) return refuse(harness::missing_toolchain_message(toolchain));
  std::string rows;
  for (const harness::ExerciseInfo& exercise : exercises()) {
    if (exercise.needs != "tcgen05") continue;
    for (const char* target : {"100a", "103a"}) {
      harness::CompileOptions options;
      options.target = target;
      options.kernel = exercise.kernel;
      options.include_dir = include_folder();
      const harness::CompileResult compiled = harness::compile(toolchain, exercise.solution, options);
      if (!compiled.ok) return refuse(exercise.solution.string() + " for sm_" + target + ": " + compiled.error);
      const harness::Resources& r = compiled.resources;
      rows += fmt::format("| {} {} | sm_{} | {} | {} | {} | {} |\n", exercise.id, exercise.name, target, r.registers,
                          r.static_smem, r.spill_stores + r.spill_loads, r.stack);
    }
  }
  std::printf(
      "ptxas of CUDA %s:\n\n| solution | target | registers a thread | static shared memory, bytes | spilled, bytes | "
      "stack, bytes |\n|---|---|---|---|---|---|\n%s",
      toolchain.version.c_str(), rows.c_str());
  return kFullMarks;
}

}  // namespace

int run_resources(const ResourcesArguments& a) {
  if (a.table) {
    if (!a.file.empty() || !a.kernel.empty()) return refuse("--table is of all solutions: leave FILE and --kernel out");
    return print_table();
  }
  if (a.file.empty() || a.kernel.empty()) return refuse("resources takes a FILE and its --kernel, or --table");
  if (!is_target(a.target)) return refuse("--target takes 90a, 100a, 103a or the like, got '" + a.target + "'");
  if (const std::string problem = why_not_a_submission(a.file); !problem.empty()) return refuse(problem);
  const harness::Toolchain toolchain = harness::find_toolchain();
  if (!toolchain.found()) return refuse(harness::missing_toolchain_message(toolchain));
  harness::CompileOptions options;
  options.target = a.target;
  options.kernel = a.kernel;
  options.include_dir = include_folder();
  const harness::CompileResult compiled = harness::compile(toolchain, a.file, options);
  if (!compiled.ok) {
    std::fprintf(stderr, "%s\n", compiled.detail.c_str());
    return refuse(a.file + ": " + compiled.error);
  }
  if (const std::string problem = why_no_kernel(compiled.ptx, a.kernel, a.file); !problem.empty())
    return refuse(problem);
  const harness::Resources& r = compiled.resources;
  if (a.json) {
    const nlohmann::ordered_json report = {{"version", 1},
                                           {"file", a.file},
                                           {"kernel", a.kernel},
                                           {"target", "sm_" + a.target},
                                           {"registers", r.registers},
                                           {"static_smem", r.static_smem},
                                           {"spill_stores", r.spill_stores},
                                           {"spill_loads", r.spill_loads},
                                           {"stack", r.stack}};
    std::printf("%s\n", report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  } else {
    std::printf(
        "%s for sm_%s: registers %u · shared memory %u bytes · spills %u bytes stored, %u loaded · stack %u bytes\n",
        a.kernel.c_str(), a.target.c_str(), r.registers, r.static_smem, r.spill_stores, r.spill_loads, r.stack);
  }
  return kFullMarks;
}

}  // namespace handoff::cli
