#include "grader/emulator/emulator.h"

#include <fmt/format.h>

#include <cstring>

#include "grader/emulator/async/async_state.h"
#include "grader/emulator/check/checker.h"
#include "grader/emulator/machine/fault.h"

namespace handoff {

namespace {

/// Passes every event on to two observers.
class Both : public machine::Observer {
 public:
  Both(machine::Observer& first, machine::Observer& second) : first_(first), second_(second) {}
  void launch_begin(machine::Launch& l) override {
    each([&](auto& o) { o.launch_begin(l); });
  }
  void launch_end(machine::Launch& l) override {
    each([&](auto& o) { o.launch_end(l); });
  }
  void cta_begin(machine::Cta& c) override {
    each([&](auto& o) { o.cta_begin(c); });
  }
  void cta_end(machine::Cta& c) override {
    each([&](auto& o) { o.cta_end(c); });
  }
  void slice(machine::Warp& w, uint64_t begin, uint64_t end) override {
    each([&](auto& o) { o.slice(w, begin, end); });
  }
  void access(const machine::Access& a) override {
    if (first_.wants_accesses()) first_.access(a);
    if (second_.wants_accesses()) second_.access(a);
  }
  void fence(machine::Warp& w, const machine::Inst& i, machine::LaneMask m, const machine::FenceInfo& f) override {
    each([&](auto& o) { o.fence(w, i, m, f); });
  }
  void barrier(const machine::BarrierEvent& e) override {
    each([&](auto& o) { o.barrier(e); });
  }
  void mbarrier(const machine::MbarrierEvent& e) override {
    each([&](auto& o) { o.mbarrier(e); });
  }
  void async_op(const machine::AsyncOpInfo& i, machine::AsyncOpInfo::Milestone m) override {
    each([&](auto& o) { o.async_op(i, m); });
  }
  void tensor(const machine::TensorEvent& e) override {
    each([&](auto& o) { o.tensor(e); });
  }
  void group(const machine::GroupEvent& e) override {
    each([&](auto& o) { o.group(e); });
  }
  bool wants_accesses() const override { return first_.wants_accesses() || second_.wants_accesses(); }

 private:
  template <class F>
  void each(F&& f) {
    f(first_);
    f(second_);
  }
  machine::Observer& first_;
  machine::Observer& second_;
};

constexpr const char* kInterrupted = "interrupted";  // of the fault that ends the launch; nobody is shown it

/// An observer that ends the launch once the flag is set. Between two slices nothing is half done.
template <class Watch>
class Interruptible : public Watch {
 public:
  template <class... Arguments>
  explicit Interruptible(const std::atomic<bool>* interrupt, Arguments... arguments)
      : Watch(arguments...), interrupt_(interrupt) {}
  void slice(machine::Warp& w, uint64_t begin, uint64_t end) override {
    Watch::slice(w, begin, end);
    if (interrupt_ == nullptr || !interrupt_->load(std::memory_order_relaxed)) return;
    machine::Fault fault;
    fault.diagnostic.id = kInterrupted;
    fault.diagnostic.message = "interrupted";
    throw fault;
  }

 private:
  const std::atomic<bool>* interrupt_;
};

}  // namespace

const machine::DecoderTable& all_decoders() {
  static const machine::DecoderTable kTable = [] {
    machine::DecoderTable t;
    machine::register_machine_decoders(t);
    async::register_async_decoders(t);
    return t;
  }();
  return kTable;
}

EmulatedRun run_program(const machine::Program& program, machine::GlobalMemory& memory,
                        const machine::DeviceModel& model, const machine::LaunchConfig& config,
                        const EmulatorOptions& options) {
  machine::Launch launch;
  launch.program = &program;
  launch.config = config;
  launch.memory = &memory;
  launch.model = model;
  launch.async = &async::hooks();
  Interruptible<trace::Recorder> recorder(options.interrupt, options.trace_accesses);
  Interruptible<check::Checker> checker(options.interrupt);
  Both both(checker, recorder);
  launch.observer = options.check && options.trace ? &both
                    : options.check                ? static_cast<machine::Observer*>(&checker)
                    : options.trace                ? &recorder
                                                   : nullptr;
  EmulatedRun run;
  run.status = machine::run(launch);
  run.diagnostics = std::move(launch.diagnostics);
  run.state = std::move(launch.state);
  run.failure = std::move(launch.failure);
  run.output = std::move(launch.output);
  run.modeled_cycles = launch.modeled_cycles;
  run.warp_instructions = launch.warp_instructions;
  run.lane_instructions = launch.lane_instructions;
  run.shadow_bytes = checker.shadow_bytes();
  run.interrupted = std::erase_if(run.diagnostics, [](const Diagnostic& d) { return d.id == kInterrupted; }) > 0;
  if (options.trace) run.trace = recorder.take();
  return run;
}

std::string Emulator::load(const std::string& ptx) {
  module_.reset();
  std::string error;
  module_ = machine::LoadedModule::load(ptx, memory_, all_decoders(), &error, *model_.timing);
  return error;
}

EmulatedRun Emulator::launch(std::string_view kernel, const machine::LaunchConfig& config,
                             std::span<const std::vector<std::byte>> arguments, const EmulatorOptions& options) {
  EmulatedRun run;
  const machine::Program* program = module_->kernel(kernel);
  if (program == nullptr) {
    run.config_error = fmt::format("no kernel named {}", kernel);
    return run;
  }
  run.config_error = machine::check_config(*program, config, model_);
  if (run.config_error.empty() && arguments.size() != program->parameters.size()) {
    run.config_error =
        fmt::format("{} takes {} arguments, got {}", kernel, program->parameters.size(), arguments.size());
  }
  for (size_t k = 0; run.config_error.empty() && k < arguments.size(); k++) {
    const machine::Parameter& p = program->parameters[k];
    if (arguments[k].size() != p.size) {
      run.config_error =
          fmt::format("argument {} of {} has {} bytes, got {}", k + 1, kernel, p.size, arguments[k].size());
    } else if (p.size != 0) {
      std::memcpy(memory_.find(program->param_address, 1)->host + p.offset, arguments[k].data(), p.size);
    }
  }
  return run.config_error.empty() ? run_program(*program, memory_, model_, config, options) : run;
}

}  // namespace handoff
