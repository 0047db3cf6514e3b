// For tests: runs kernels written as a few lines of PTX.
//
// A body is PTX of one kernel with the parameters `out` and `in`, in these registers: %outp and %inp hold the two
// addresses, %t is %tid.x, %w the warp, %c is %ctaid.x; free for use are %r<64> (32 bits), %rd<32> (64), %h<8> (16),
// %f<8>, %p<16>. Two abbreviations, on a line of their own: `out N REG` stores a 32-bit register to word N of `out`,
// `outp N PRED` a predicate as 0 or 1. The body's line n (the text behind R"( being line 0) is line n of kernel.cu for
// the emulator.
#pragma once

#include <cstring>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "grader/emulator/async/async_state.h"

namespace handoff::async::testing {

/// What to run.
struct Kernel {
  std::string shared;  ///< declarations of shared memory
  std::string body;    ///< see the top of the file
  /// Block in threads, grid and cluster in CTAs.
  ///@{
  machine::Dim block{32, 1, 1}, grid{1, 1, 1}, cluster{1, 1, 1};
  ///@}
  uint32_t dynamic_smem = 0;                                 ///< bytes
  std::vector<uint32_t> in{0};                               ///< contents of `in`
  std::vector<uint32_t> out = std::vector<uint32_t>(64, 0);  ///< first contents of `out`
  machine::Schedule schedule;                                ///< order of warps and completions
  machine::Observer* observer = nullptr;                     ///< nullptr: nobody watches
  uint32_t sms = 148;                                        ///< of the device model
  uint64_t progress_budget = 10'000'000;                     ///< warp-instructions
};

/// What happened.
struct Outcome {
  machine::LaunchStatus status = machine::LaunchStatus::Ok;  ///< how it ended
  std::vector<Diagnostic> diagnostics;                       ///< in order of the run
  std::vector<std::string> state;                            ///< deadlock report
  std::vector<uint32_t> out;                                 ///< contents of `out` afterwards
  std::string output;                                        ///< of vprintf
  std::string body;                                          ///< Kernel::body
  /// Virtual time at the end, and warp-instructions executed.
  ///@{
  uint64_t cycles = 0, instructions = 0;
  ///@}
  /// It ended well and without a word.
  bool ok() const { return status == machine::LaunchStatus::Ok && diagnostics.empty(); }
};

/// Line of the first line of `body` that contains `text`; 0 if none does.
inline uint32_t line_of(std::string_view body, std::string_view text) {
  uint32_t n = 0;
  std::istringstream lines{std::string(body)};
  for (std::string line; std::getline(lines, line); n++) {
    if (line.find(text) != std::string::npos) return n;
  }
  return 0;
}

inline std::string kernel_text(const std::string& shared, const std::string& body) {
  std::string s = ".version 9.0\n.target sm_100a\n.address_size 64\n.file 1 \"kernel.cu\"\n" + shared +
                  ".visible .entry k(.param .u64 out, .param .u64 in) {\n"
                  ".reg .b64 %outp, %inp; .reg .b32 %t, %w, %c, %last;\n"
                  ".reg .b32 %r<64>; .reg .b64 %rd<32>; .reg .b16 %h<8>; .reg .f32 %f<8>; .reg .pred %p<16>;\n"
                  ".loc 1 1 0\n"
                  "ld.param.u64 %outp, [out]; ld.param.u64 %inp, [in]; mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; mov.u32 "
                  "%c, %ctaid.x;\n";
  std::istringstream lines(body);
  uint32_t n = 0;
  for (std::string line; std::getline(lines, line); n++) {
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    if (n > 0) s += ".loc 1 " + std::to_string(n) + " 0\n";
    std::istringstream words(line);
    std::string first, index, reg;
    words >> first >> index >> reg;
    if (first == "out") {
      s += "st.global.u32 [%outp+" + std::to_string(4 * std::stoi(index)) + "], " + reg + ";\n";
    } else if (first == "outp") {
      s += "selp.u32 %last, 1, 0, " + reg + "; st.global.u32 [%outp+" + std::to_string(4 * std::stoi(index)) +
           "], %last;\n";
    } else {
      s += line + "\n";
    }
  }
  return s + "ret;\n}\n";
}

inline const machine::DecoderTable& decoders() {
  static const machine::DecoderTable kTable = [] {
    machine::DecoderTable t;
    machine::register_machine_decoders(t);
    register_async_decoders(t);
    return t;
  }();
  return kTable;
}

/// Runs a body. A module that does not load or a refused configuration fails the test.
inline Outcome run(const Kernel& s) {
  Outcome o;
  o.body = s.body;
  machine::GlobalMemory memory;
  std::string error;
  const auto module = machine::LoadedModule::load(kernel_text(s.shared, s.body), memory, decoders(), &error);
  if (module == nullptr) {
    ADD_FAILURE() << error << "\n" << kernel_text(s.shared, s.body);
    return o;
  }
  machine::Launch launch;
  launch.program = module->kernel("k");
  launch.config.grid = s.grid;
  launch.config.block = s.block;
  launch.config.cluster = s.cluster;
  launch.config.dynamic_smem = s.dynamic_smem;
  launch.config.schedule = s.schedule;
  launch.config.progress_budget = s.progress_budget;
  launch.memory = &memory;
  launch.async = &hooks();
  launch.observer = s.observer;
  launch.model.sms = s.sms;
  const std::string refused = machine::check_config(*launch.program, launch.config, launch.model);
  if (!refused.empty()) {
    ADD_FAILURE() << refused;
    return o;
  }
  const machine::Allocation* out = memory.allocate(s.out.size() * 4, "out");
  const machine::Allocation* in = memory.allocate(s.in.size() * 4, "in");
  std::memcpy(out->host, s.out.data(), s.out.size() * 4);
  std::memcpy(in->host, s.in.data(), s.in.size() * 4);
  const uint64_t arguments[2] = {out->base, in->base};
  std::memcpy(memory.find(launch.program->param_address, 1)->host, arguments, sizeof arguments);
  o.status = machine::run(launch);
  o.diagnostics = std::move(launch.diagnostics);
  o.state = std::move(launch.state);
  o.output = std::move(launch.output);
  o.cycles = launch.modeled_cycles;
  o.instructions = launch.warp_instructions;
  o.out.resize(s.out.size());
  std::memcpy(o.out.data(), out->host, s.out.size() * 4);
  return o;
}

inline std::string text_of(const Outcome& o) {
  std::string s = "status " + std::to_string(static_cast<int>(o.status)) + "\n";
  for (const Diagnostic& d : o.diagnostics)
    s += d.place.file + ":" + std::to_string(d.place.line) + " [" + d.id + "] " + d.message + " | " + d.hint + "\n";
  for (const std::string& line : o.state) s += "  " + line + "\n";
  return s;
}

/// The run ended without any diagnosis.
inline ::testing::AssertionResult clean(const Outcome& o) {
  if (o.ok()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << text_of(o);
}

/// Exactly one diagnosis with this id, at the body's line that contains `at`, whose message contains `says`.
inline ::testing::AssertionResult reports(const Outcome& o, std::string_view id, std::string_view at,
                                          std::string_view says = "") {
  const uint32_t line = line_of(o.body, at);
  if (line == 0) return ::testing::AssertionFailure() << "no line of the body contains \"" << at << "\"";
  if (o.diagnostics.size() != 1)
    return ::testing::AssertionFailure() << o.diagnostics.size() << " diagnoses\n" << text_of(o);
  const Diagnostic& d = o.diagnostics[0];
  if (d.id != id || d.place.file != "kernel.cu" || d.place.line != line || d.message.find(says) == std::string::npos) {
    return ::testing::AssertionFailure() << "wanted " << id << " at line " << line << " saying \"" << says << "\"\n"
                                         << text_of(o);
  }
  return ::testing::AssertionSuccess();
}

inline constexpr machine::Schedule kNominal{machine::Schedule::Kind::Nominal, 0};
inline constexpr machine::Schedule kLazy{machine::Schedule::Kind::Lazy, 0};
inline constexpr machine::Schedule kEager{machine::Schedule::Kind::Eager, 0};
inline constexpr machine::Schedule kReverse{machine::Schedule::Kind::Reverse, 0};
inline machine::Schedule random_schedule(uint64_t seed) { return {machine::Schedule::Kind::Random, seed}; }

/// All five kinds, random with `seeds` seeds.
inline std::vector<machine::Schedule> schedules(uint64_t seeds = 3) {
  std::vector<machine::Schedule> s{kNominal, kLazy, kEager, kReverse};
  for (uint64_t k = 1; k <= seeds; k++) s.push_back(random_schedule(k));
  return s;
}

/// Keeps what the async layer tells its observer.
struct Recorder : machine::Observer {
  std::vector<machine::MbarrierEvent> barriers;  ///< in order
  /// A stage of an operation's life.
  struct Milestone {
    machine::AsyncOpInfo info;                  ///< the operation
    machine::AsyncOpInfo::Milestone milestone;  ///< the stage
  };
  std::vector<Milestone> copies;  ///< in order
  /// A commit of a group or a wait for groups.
  struct GroupWait {
    machine::GroupEvent::Kind kind;  ///< which of them
    uint32_t allowed;                ///< groups that may stay pending
    size_t copies_before;            ///< milestones seen before it
  };
  std::vector<GroupWait> groups;  ///< in order
  void mbarrier(const machine::MbarrierEvent& e) override { barriers.push_back(e); }
  void async_op(const machine::AsyncOpInfo& i, machine::AsyncOpInfo::Milestone m) override { copies.push_back({i, m}); }
  void group(const machine::GroupEvent& g) override { groups.push_back({g.kind, g.allowed, copies.size()}); }
  bool wants_accesses() const override { return false; }

  /// How many events of this kind there were.
  size_t count(machine::MbarrierEvent::Kind kind) const {
    size_t n = 0;
    for (const auto& e : barriers) n += e.kind == kind ? 1 : 0;
    return n;
  }
  /// Ids of operations in the order in which they reached `milestone`, of the first `limit` records.
  std::vector<uint64_t> order(machine::AsyncOpInfo::Milestone milestone, size_t limit = ~size_t{0}) const {
    std::vector<uint64_t> ids;
    for (size_t k = 0; k < copies.size() && k < limit; k++) {
      if (copies[k].milestone == milestone) ids.push_back(copies[k].info.id);
    }
    return ids;
  }
};

}  // namespace handoff::async::testing
