// The emulator as one object: memory, a module, launches. The device layer and the drop-in runtime stand on this.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grader/emulator/machine/warp.h"
#include "grader/emulator/trace/trace.h"

namespace handoff {

/// All decoders of all layers.
const machine::DecoderTable& all_decoders();

/// What a launch did.
struct EmulatedRun {
  machine::LaunchStatus status = machine::LaunchStatus::Ok;  ///< how it ended
  std::string config_error;                                  ///< the launch was refused: one line
  std::vector<Diagnostic> diagnostics;                       ///< in order of cause
  std::vector<std::string> state;                            ///< deadlock report
  std::string failure;             ///< message of the fault or hang that ended it; empty: none
  std::string output;              ///< of printf
  uint64_t modeled_cycles = 0;     ///< virtual time at the end
  uint64_t warp_instructions = 0;  ///< executed
  uint64_t lane_instructions = 0;  ///< executed, a lane
  trace::Trace trace;              ///< empty unless asked for
  size_t shadow_bytes = 0;         ///< of host memory in the checker's shadow, at its largest
  bool interrupted = false;        ///< EmulatorOptions::interrupt ended it; what was found until then is here
};

/// How to run.
struct EmulatorOptions {
  bool check = false;           ///< watch with the happens-before checker
  bool trace = false;           ///< record events
  bool trace_accesses = false;  ///< and count ordinary loads and stores
  /// Where it becomes true (a signal handler may set it), a launch that is checked or traced ends soon.
  const std::atomic<bool>* interrupt = nullptr;
};

/// Runs `program`, whose parameters are in memory, as the emulator and the drop-in runtime both do. `model`'s timing
/// must outlive the call. REQUIRES: machine::check_config accepts the configuration.
EmulatedRun run_program(const machine::Program& program, machine::GlobalMemory& memory,
                        const machine::DeviceModel& model, const machine::LaunchConfig& config,
                        const EmulatorOptions& options);

/// One emulated device. Not thread-safe; several may live side by side.
class Emulator {
 public:
  /// A device of this model; its timing must outlive the emulator.
  explicit Emulator(const machine::DeviceModel& model = machine::kB200) : model_(model) {}
  /// Device memory.
  machine::GlobalMemory& memory() { return memory_; }
  /// Loads PTX text, replacing the module loaded before. Returns an error line, empty on success.
  std::string load(const std::string& ptx);
  /// The loaded module, or nullptr.
  machine::LoadedModule* module() { return module_.get(); }
  /// Launches entry `kernel` with its parameters' bytes in order. REQUIRES: a module is loaded.
  EmulatedRun launch(std::string_view kernel, const machine::LaunchConfig& config,
                     std::span<const std::vector<std::byte>> arguments, const EmulatorOptions& options);

 private:
  machine::DeviceModel model_;
  machine::GlobalMemory memory_;  // outlives the module
  std::unique_ptr<machine::LoadedModule> module_;
};

}  // namespace handoff
