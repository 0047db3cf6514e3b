// For the tests of this folder: PTX text in, what a launch did out. No asynchronous layer.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "grader/emulator/machine/observer.h"
#include "grader/emulator/machine/program.h"
#include "grader/emulator/machine/warp.h"

namespace handoff::machine::testing {

/// The decoders of machine/ alone.
inline const DecoderTable& decoders() {
  static const DecoderTable kTable = [] {
    DecoderTable table;
    register_machine_decoders(table);
    return table;
  }();
  return kTable;
}

/// How to launch.
struct Options {
  Dim grid{1, 1, 1};                     ///< CTAs
  Dim block{32, 1, 1};                   ///< threads
  Dim cluster{1, 1, 1};                  ///< CTAs
  uint32_t dynamic_smem = 0;             ///< bytes
  uint64_t grid_workspace = 0;           ///< LaunchConfig::grid_workspace
  Schedule schedule{};                   ///< order of warps
  uint64_t progress_budget = 2'000'000;  ///< warp-instructions: small, so that a hang ends a test soon
  uint32_t out_words = 1024;             ///< size of `out`, zeroed before the launch
  std::vector<uint32_t> in{};            ///< contents of `in`
  Observer* observer = nullptr;          ///< nullptr: nobody watches
  const AsyncHooks* async = nullptr;     ///< nullptr: no asynchronous layer
  uint32_t sms = 148;                    ///< of the device model
};

/// What a launch did.
struct Outcome {
  LaunchStatus status = LaunchStatus::Ok;  ///< how it ended
  std::vector<Diagnostic> diagnostics;     ///< in order of the run
  std::vector<std::string> state;          ///< deadlock report
  std::string output;                      ///< of vprintf
  std::vector<uint32_t> out;               ///< contents of `out` afterwards
  uint64_t cycles = 0;                     ///< virtual time at the end
  uint64_t warp_instructions = 0;          ///< executed
  /// Device addresses of `out` and `in`.
  ///@{
  uint64_t out_address = 0, in_address = 0;
  ///@}

  /// The only diagnostic, as "id: message"; "" if there is none.
  std::string problem() const {
    if (diagnostics.empty()) return {};
    EXPECT_EQ(diagnostics.size(), 1u);
    return diagnostics[0].id + ": " + diagnostics[0].message;
  }
  /// Words 2·i and 2·i + 1 of `out` as one number.
  uint64_t out64(size_t i) const { return out[2 * i] | uint64_t{out[2 * i + 1]} << 32; }
};

/// Loads a module and runs entry `k`, whose parameters are the address of `out` and, if it has a second, of `in`.
inline Outcome run_module(const std::string& ptx, const Options& options = {}) {
  Outcome outcome;
  GlobalMemory memory;
  std::string error;
  const auto module = LoadedModule::load(ptx, memory, decoders(), &error);
  if (module == nullptr) {
    ADD_FAILURE() << error << "\n" << ptx;
    return outcome;
  }
  const Program* program = module->kernel("k");
  if (program == nullptr) {
    ADD_FAILURE() << "no entry k";
    return outcome;
  }
  const Allocation* out = memory.allocate(options.out_words * uint64_t{4}, "out");
  std::memset(out->host, 0, out->size);
  const Allocation* in = memory.allocate(options.in.size() * 4, "in");
  if (!options.in.empty()) std::memcpy(in->host, options.in.data(), options.in.size() * 4);
  outcome.out_address = out->base;
  outcome.in_address = in->base;
  const uint64_t arguments[] = {out->base, in->base};
  std::memcpy(memory.find(program->param_address, 1)->host, arguments, std::min<size_t>(program->param_bytes, 16));

  Launch launch;
  launch.program = program;
  launch.memory = &memory;
  launch.config.grid = options.grid;
  launch.config.block = options.block;
  launch.config.cluster = options.cluster;
  launch.config.dynamic_smem = options.dynamic_smem;
  launch.config.grid_workspace = options.grid_workspace;
  launch.config.schedule = options.schedule;
  launch.config.progress_budget = options.progress_budget;
  launch.observer = options.observer;
  launch.async = options.async;
  launch.model.sms = options.sms;
  EXPECT_EQ(check_config(*program, launch.config, launch.model), "");
  outcome.status = machine::run(launch);
  outcome.diagnostics = std::move(launch.diagnostics);
  outcome.state = std::move(launch.state);
  outcome.output = std::move(launch.output);
  outcome.cycles = launch.modeled_cycles;
  outcome.warp_instructions = launch.warp_instructions;
  outcome.out.resize(options.out_words);
  std::memcpy(outcome.out.data(), out->host, out->size);
  return outcome;
}

/// A module whose entry `k` has the given body, around these registers: %out and %in addresses, %id = %tid.x, %lane,
/// %mine = out + 4·%id, %mine8 = out + 8·%id. Free for use: %r0… %rd0… %p0… %s0… (16 bits) %f0… %fd0… %q0… (128 bits).
/// `globals` stands at module scope. The body's end returns.
inline std::string module_of(const std::string& body, const std::string& globals = {}) {
  return ".version 9.0\n.target sm_100a\n.address_size 64\n" + globals +
         "\n.visible .entry k(.param .u64 k_out, .param .u64 k_in)\n{\n"
         ".reg .b64 %out, %in, %mine, %mine8, %rd<40>;\n.reg .b32 %id, %lane, %r<80>;\n.reg .pred %p<24>;\n"
         ".reg .b16 %s<24>;\n.reg .f32 %f<16>;\n.reg .f64 %fd<8>;\n.reg .b128 %q<8>;\n"
         "ld.param.u64 %out, [k_out];\nld.param.u64 %in, [k_in];\nmov.u32 %id, %tid.x;\nmov.u32 %lane, %laneid;\n"
         "mad.wide.u32 %mine, %id, 4, %out;\nmad.wide.u32 %mine8, %id, 8, %out;\n" +
         body + "\nret;\n}\n";
}

/// run_module(module_of(body, globals), options).
inline Outcome run_body(const std::string& body, const Options& options = {}, const std::string& globals = {}) {
  return run_module(module_of(body, globals), options);
}

/// Expects that the launch ended well and without a word.
inline void expect_ok(const Outcome& outcome) {
  EXPECT_EQ(outcome.status, LaunchStatus::Ok);
  EXPECT_EQ(outcome.problem(), "");
}

/// The first `n` words of `out`.
inline std::vector<uint32_t> words(const Outcome& outcome, size_t n) {
  return {outcome.out.begin(), outcome.out.begin() + static_cast<ptrdiff_t>(n)};
}

}  // namespace handoff::machine::testing
