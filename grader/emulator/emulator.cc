#include "grader/emulator/emulator.h"

#include <cstring>

#include <fmt/format.h>

#include "grader/emulator/async/async_state.h"

namespace handoff {

const machine::DecoderTable& all_decoders() {
  static const machine::DecoderTable kTable = [] {
    machine::DecoderTable t;
    machine::register_machine_decoders(t);
    async::register_async_decoders(t);
    return t;
  }();
  return kTable;
}

std::string Emulator::load(std::string ptx) {
  module_.reset();
  std::string error;
  module_ = machine::LoadedModule::load(std::move(ptx), memory_, all_decoders(), &error);
  return error;
}

EmulatedRun Emulator::launch(std::string_view kernel, const machine::LaunchConfig& config, std::span<const std::vector<std::byte>> arguments, const EmulatorOptions& options) {
  EmulatedRun run;
  const machine::Program* program = module_->kernel(kernel);
  if (program == nullptr) {
    run.config_error = fmt::format("no kernel named {}", kernel);
    return run;
  }
  machine::Launch launch;
  launch.program = program;
  launch.config = config;
  launch.memory = &memory_;
  launch.async = &async::hooks();
  run.config_error = machine::check_config(*program, config, launch.model);
  if (run.config_error.empty() && arguments.size() != program->parameters.size()) {
    run.config_error = fmt::format("{} takes {} arguments, got {}", kernel, program->parameters.size(), arguments.size());
  }
  for (size_t k = 0; run.config_error.empty() && k < arguments.size(); k++) {
    const machine::Parameter& p = program->parameters[k];
    if (arguments[k].size() != p.size) {
      run.config_error = fmt::format("argument {} of {} has {} bytes, got {}", k + 1, kernel, p.size, arguments[k].size());
    } else if (p.size != 0) {
      std::memcpy(memory_.find(program->param_address, 1)->host + p.offset, arguments[k].data(), p.size);
    }
  }
  if (!run.config_error.empty()) return run;

  trace::Recorder recorder(options.trace_accesses);
  if (options.trace) launch.observer = &recorder;
  run.status = machine::run(launch);
  run.diagnostics = std::move(launch.diagnostics);
  run.state = std::move(launch.state);
  run.output = std::move(launch.output);
  run.modeled_cycles = launch.modeled_cycles;
  run.warp_instructions = launch.warp_instructions;
  run.lane_instructions = launch.lane_instructions;
  if (options.trace) run.trace = recorder.take();
  return run;
}

}  // namespace handoff
