// The runtime's state: code, kernels, launches, errors.
//
// Everything is done when it is asked for: a launch returns when the kernel has ended, so that streams are in order by
// construction and a copy never overtakes a kernel. What a program could tell from the API stays as it is: a fault
// shows in the calls that follow the launch, cudaGetLastError is a thread's own, and code is placed in memory at its
// first use.
#include "grader/runtime/runtime.h"

#include <cxxabi.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace handoff::runtime {
namespace {

constexpr uint32_t kWrapperMagic = 0x466243b1u;
constexpr uint32_t kDefaultDynamicSmem = 48 * 1024;         // bytes a block may have without an attribute
constexpr uint64_t kPortableCluster = 8, kMaxCluster = 16;  // blocks
constexpr double kCyclesPerMs = 1.96e6;                     // timing.h: cycles of an SM at about 1.96 GHz

/// What nvcc puts into .nvFatBinSegment.
struct Wrapper {
  uint32_t magic, version;
  const void* data;
  const void* more;
};

std::string demangled(const std::string& name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 && text != nullptr ? text : name;
  std::free(text);  // NOLINT: __cxa_demangle allocates with malloc
  return result;
}

std::string dims(const machine::Dim& d) { return fmt::format("{}×{}×{}", d.x, d.y, d.z); }

std::string describe(const LaunchShape& s) {
  std::string text = fmt::format("grid {}, block {}", dims(s.grid), dims(s.block));
  if (s.cluster.volume() > 1) text += ", cluster " + dims(s.cluster);
  if (s.dynamic_smem > 0) text += fmt::format(", {} bytes of dynamic shared memory", s.dynamic_smem);
  return text;
}

/// The error that a fault with this diagnostic shows as, by the texts of the API.
Error error_of(const std::string& id, bool hang) {
  if (hang) return kLaunchTimeout;
  if (id == "out-of-bounds") return kIllegalAddress;
  if (id == "misaligned") return kMisalignedAddress;
  if (id == "assertion-failed") return kAssert;
  if (id == "unsupported-instruction") return kNotSupported;
  return kLaunchFailure;
}

std::atomic<bool> interrupted = false;

/// While one lives, a signal that would end the program ends the launch first, so that what was found in it until then
/// is told; then it ends the program. Signals that the program handles, or ignores, stay with it.
class SignalsEndLaunch {
 public:
  /// Without `wanted`: nothing is changed.
  explicit SignalsEndLaunch(bool wanted) {
    struct sigaction ours {};
    ours.sa_handler = [](int signal) {
      number_ = signal;
      interrupted = true;
    };
    for (size_t i = 0; wanted && i < kSignals.size(); ++i) {
      struct sigaction theirs {};
      sigaction(kSignals[i], nullptr, &theirs);
      changed_[i] = theirs.sa_handler == SIG_DFL && (theirs.sa_flags & SA_SIGINFO) == 0;
      if (changed_[i]) sigaction(kSignals[i], &ours, nullptr);
    }
  }
  ~SignalsEndLaunch() {
    for (size_t i = 0; i < kSignals.size(); ++i) {
      if (changed_[i]) std::signal(kSignals[i], SIG_DFL);
    }
    if (interrupted) std::raise(number_);
  }
  SignalsEndLaunch(const SignalsEndLaunch&) = delete;
  SignalsEndLaunch& operator=(const SignalsEndLaunch&) = delete;

 private:
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
  static inline volatile std::sig_atomic_t number_ = 0;
  std::array<bool, kSignals.size()> changed_{};
};

std::string variable_or(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

}  // namespace

const char* error_name(Error code) {
  switch (code) {
#define X(value, name, text) \
  case value:                \
    return #name;
#include "grader/runtime/error_table.inc"
#undef X
    default:
      return "unrecognized error code";
  }
}

const char* error_text(Error code) {
  switch (code) {
#define X(value, name, text) \
  case value:                \
    return text;
#include "grader/runtime/error_table.inc"
#undef X
    default:
      return "unrecognized error code";
  }
}

Runtime& Runtime::get() {
  static Runtime* const kRuntime = new Runtime;
  return *kRuntime;
}

Error& Runtime::last_error() {
  thread_local Error last = kSuccess;
  return last;
}

Runtime::Runtime() : report_path_(variable_or(kReportVariable, "")), trace_(variable_or(kTraceVariable, "")) {
  const std::string check = variable_or(kCheckVariable, "errors");
  check_ = check != "off";
  warnings_ = check == "all";
  schedule_.kind = machine::schedule_from_string(variable_or(kScheduleVariable, "nominal"))
                       .value_or(machine::Schedule::Kind::Nominal);
  const std::string seed = variable_or(kSeedVariable, "0");
  std::from_chars(seed.data(), seed.data() + seed.size(), schedule_.seed);
  RunRecord start;
  start.kind = RunRecord::Kind::Start;
  report(start);
}

void Runtime::report(const RunRecord& record) {
  const auto error = Severity::Error;
  if (!report_path_.empty()) {
    const std::string line = to_line(record);
    const int file = open(report_path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file >= 0) {
      // One write, so that lines of several processes do not mix.
      const bool written = write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size());
      close(file);
      if (written) return;
    }
  }
  if (record.kind == RunRecord::Kind::Message) std::fprintf(stderr, "handoff: %s\n", record.text.c_str());
  for (const ReportedDiagnostic& r : record.diagnostics) {
    const Diagnostic& d = r.diagnostic;
    std::fprintf(stderr, "handoff: %s[%s] %s:%u: %s\n", d.severity == error ? "error" : "warning", d.id.c_str(),
                 d.place.file.c_str(), d.place.line, d.message.c_str());
  }
}

void Runtime::tell(const std::string& text, bool fatal) {
  if (!told_.insert(text).second) return;
  told_fatal_ = told_fatal_ || fatal;
  RunRecord record;
  record.text = text;
  record.fatal = fatal;
  report(record);
}

void Runtime::tell_failed(const char* name, const Outcome& outcome) {
  if (told_fatal_) return;  // the rest follows from it
  std::string text = fmt::format("{} failed: {} ({})", name, error_name(outcome.code), error_text(outcome.code));
  if (!outcome.why.empty()) text += ": " + outcome.why;
  tell(text);
}

double Runtime::modeled_ms() const { return static_cast<double>(modeled_cycles_) / kCyclesPerMs; }

const machine::DeviceModel& Runtime::model() {
  if (model_chosen_) return model_;
  model_chosen_ = true;
  const auto runs_on = [&](const machine::DeviceModel& model) {
    return std::any_of(codes_.begin(), codes_.end(), [&](const Code* code) {
      return code->ptx.empty() ? !choose_ptx(code->entries, model.compute_capability).ptx.empty()
                               : suitability(ptx_target(code->ptx), model.compute_capability) > 0;
    });
  };
  if (!runs_on(machine::kB200) && runs_on(machine::kH200)) model_ = machine::kH200;
  return model_;
}

Code* Runtime::add_fat_binary(const void* wrapper) {
  owned_.push_back(std::make_unique<Code>());
  Code* const code = owned_.back().get();
  codes_.insert(code);
  const auto* w = static_cast<const Wrapper*>(wrapper);
  if (w->magic != kWrapperMagic) {
    code->problem = fmt::format("a fat binary with a wrapper that is not known ({:#x})", w->magic);
  } else {
    code->entries = read_fatbin(w->data, &code->problem);
  }
  return code;
}

Outcome Runtime::load_code(const void* image, size_t bytes, bool lazy, Code** out) {
  auto code = std::make_unique<Code>();
  const auto* data = static_cast<const std::byte*>(image);
  constexpr uint32_t kFatbin = 0xba55ed50u;
  uint32_t magic = 0;
  if (bytes == 0 || bytes >= sizeof magic) std::memcpy(&magic, data, sizeof magic);
  if (magic == kFatbin) {
    code->entries =
        bytes == 0 ? read_fatbin(image, &code->problem) : read_fatbin(std::span(data, bytes), &code->problem);
    if (code->entries.empty()) return {kInvalidKernelImage, code->problem};
  } else if (magic == kWrapperMagic) {
    code->entries = read_fatbin(static_cast<const Wrapper*>(image)->data, &code->problem);
  } else if (magic == 0x464c457fu) {  // ELF
    return {kNoKernelImageForDevice, "it is machine code (a cubin); the emulator runs PTX"};
  } else {
    const auto* text = reinterpret_cast<const char*>(data);
    code->ptx = bytes == 0 ? std::string(text) : std::string(text, strnlen(text, bytes));
  }
  Code* const raw = code.get();
  owned_.push_back(std::move(code));
  codes_.insert(raw);
  Outcome placed = lazy ? Outcome{} : place(*raw);
  if (placed.code != kSuccess) {
    codes_.erase(raw);
    return placed;
  }
  *out = raw;
  return {};
}

void Runtime::remove_code(Code* code) {
  codes_.erase(code);
  for (auto& [name, kernel] : code->kernels) kernels_.erase(kernel.get());
  std::erase_if(functions_, [&](const auto& f) { return f.second->code == code; });
  std::erase_if(variables_, [&](const auto& v) { return v.second.code == code; });
}

Outcome Runtime::place(Code& code) {
  if (code.load_tried) return code.load_outcome;
  code.load_tried = true;
  const int cc = model().compute_capability;
  std::string ptx = code.ptx;
  if (ptx.empty()) {
    PtxChoice choice = choose_ptx(code.entries, cc);
    ptx = std::move(choice.ptx);
    if (ptx.empty()) {
      const std::string why = code.problem.empty() ? choice.why : code.problem;
      tell(fmt::format("this program has no PTX for the emulator: {}; build it with nvcc -cudart shared -lineinfo "
                       "-gencode arch=compute_100a,code=compute_100a",
                       why),
           true);
      return code.load_outcome = {kNoKernelImageForDevice, why};
    }
    // What nvcc puts in unasked. It runs, without what the source keeps for later devices.
    constexpr uint32_t kHopper = 90;
    const std::string target = ptx_target(ptx);
    if (uint32_t of_target = 0; std::sscanf(target.c_str(), "sm_%u", &of_target) == 1 && of_target < kHopper) {
      tell(
          fmt::format("the kernels were compiled for {}: what `#if __CUDA_ARCH__` keeps for later devices is not in "
                      "them; build with nvcc -gencode arch=compute_100a,code=compute_100a",
                      target));
    }
  } else if (ptx_target(ptx).empty()) {
    return code.load_outcome = {kInvalidKernelImage, "it is neither PTX nor a fat binary"};
  } else if (suitability(ptx_target(ptx), cc) == 0) {
    return code.load_outcome = {kNoKernelImageForDevice,
                                fmt::format("PTX for '{}', which a device of sm_{} does not run", ptx_target(ptx), cc)};
  }
  std::string error;
  code.module = machine::LoadedModule::load(ptx, memory_.global(), all_decoders(), &error, *model_.timing);
  code.load_outcome = code.module == nullptr ? Outcome{kInvalidPtx, error} : share_managed(code);
  return code.load_outcome;
}

Outcome Runtime::share_managed(Code& code) {
  for (const auto& [name, host] : code.managed) {
    const auto symbol = code.module->symbol(name);
    if (!symbol) continue;  // the compiler left it out: no kernel uses it
    if (!memory_.share_variable(symbol->address, demangled(name))) {
      return {kMemoryAllocation, fmt::format("the host has something else where the managed variable {} lies", name)};
    }
    *host = reinterpret_cast<void*>(symbol->address);
    // cudaMemcpyToSymbol and its kin get the variable's own address.
    register_variable(*host, code, name.c_str(), symbol->size);
  }
  return {};
}

Kernel* Runtime::kernel_of(Code& code, const std::string& name) {
  std::unique_ptr<Kernel>& kernel = code.kernels[name];
  if (kernel == nullptr) {
    kernel = std::make_unique<Kernel>();
    kernel->code = &code;
    kernel->name = name;
    kernels_.insert(kernel.get());
  }
  return kernel.get();
}

void Runtime::register_function(const void* host, Code& code, const char* name) {
  functions_[host] = kernel_of(code, name);
}

void Runtime::register_variable(const void* host, Code& code, const char* name, uint64_t bytes) {
  variables_[host] = {&code, name, bytes};
}

void Runtime::reset() {
  memory_.free_all();
  for (Stream* stream : streams) delete stream;
  streams.clear();
  for (Event* event : events) delete event;
  events.clear();
  device_error_ = kSuccess;
  for (Code* code : codes_) {
    // The host keeps the addresses of managed variables.
    if (!code->managed.empty()) continue;
    for (const auto& [name, kernel] : code->kernels) kernel->program = nullptr;
    code->module.reset();
    code->load_tried = false;
  }
}

void Runtime::register_managed(void** host, Code& code, const char* name) { code.managed[name] = host; }

Kernel* Runtime::find_kernel(const void* function) {
  const auto known = functions_.find(function);
  if (known != functions_.end()) return known->second;
  auto* const kernel = static_cast<Kernel*>(const_cast<void*>(function));
  return kernels_.count(kernel) != 0 ? kernel : nullptr;
}

Outcome Runtime::decode(Kernel& kernel) {
  if (kernel.program != nullptr) return {};
  Outcome placed = place(*kernel.code);
  if (placed.code != kSuccess) return placed;
  kernel.program = kernel.code->module->kernel(kernel.name);
  if (kernel.program == nullptr) return {kInvalidDeviceFunction, "the PTX has no kernel " + demangled(kernel.name)};
  kernel.max_dynamic_smem = kDefaultDynamicSmem - std::min(kDefaultDynamicSmem, kernel.program->static_smem);
  return {};
}

Outcome Runtime::find_variable(const void* host, machine::LoadedModule::Symbol* out) {
  const auto known = variables_.find(host);
  if (known == variables_.end()) return {kInvalidSymbol, "it is not a variable of the device"};
  Outcome placed = place(*known->second.code);
  if (placed.code != kSuccess) return placed;
  const auto symbol = known->second.code->module->symbol(known->second.name);
  if (!symbol) return {kInvalidSymbol, "the PTX has no variable " + known->second.name};
  *out = *symbol;
  return {};
}

uint32_t Runtime::resident_blocks(const Kernel& kernel, uint64_t threads, uint64_t dynamic_smem) {
  const machine::DeviceModel& m = model();
  constexpr uint32_t kReserved = 1024;  // bytes of shared memory that the system takes of each block
  const uint64_t smem = uint64_t{kernel.program->dynamic_smem_offset} - machine::kSharedBase + dynamic_smem;
  if (threads == 0 || threads > 1024 || smem > m.smem_per_cta) return 0;
  const uint64_t rounded = (threads + 31) / 32 * 32;
  return static_cast<uint32_t>(std::min<uint64_t>(
      {m.max_threads_per_sm / rounded, uint64_t{m.max_ctas_per_sm}, m.smem_per_sm / (smem + kReserved)}));
}

Outcome Runtime::check_shape(Kernel& kernel, const LaunchShape& shape) {
  const machine::Program& program = *kernel.program;
  machine::LaunchConfig config;
  config.grid = shape.grid;
  config.block = shape.block;
  config.cluster = shape.cluster;
  config.dynamic_smem = static_cast<uint32_t>(std::min<uint64_t>(shape.dynamic_smem, UINT32_MAX / 2));
  if (shape.dynamic_smem > kernel.max_dynamic_smem) {
    return {kInvalidValue,
            fmt::format("{} bytes of dynamic shared memory; the kernel may have {} (cudaFuncSetAttribute with "
                        "cudaFuncAttributeMaxDynamicSharedMemorySize allows more)",
                        shape.dynamic_smem, kernel.max_dynamic_smem)};
  }
  const auto in_clusters = [](uint32_t blocks, uint32_t size) { return size != 0 && blocks % size == 0; };
  const machine::Dim cluster =
      shape.cluster.volume() == 0 ? shape.cluster : machine::effective_cluster(program, config);
  if (!in_clusters(shape.grid.x, cluster.x) || !in_clusters(shape.grid.y, cluster.y) ||
      !in_clusters(shape.grid.z, cluster.z)) {
    return {kInvalidClusterSize,
            fmt::format("a grid of {} blocks is not a multiple of the cluster, {}", dims(shape.grid), dims(cluster))};
  }
  if (cluster.volume() > kMaxCluster || (cluster.volume() > kPortableCluster && !kernel.non_portable_cluster)) {
    return {kInvalidClusterSize,
            fmt::format("a cluster of {} blocks; 8 are allowed, 16 with cudaFuncAttributeNonPortableClusterSizeAllowed",
                        cluster.volume())};
  }
  // An H200 with driver 580 answers so to whatever else is wrong with a grid or a block.
  const std::string refused = machine::check_config(program, config, model());
  if (!refused.empty()) return {kInvalidValue, refused};
  const uint64_t room = uint64_t{resident_blocks(kernel, shape.block.volume(), shape.dynamic_smem)} * model().sms;
  if (shape.cooperative && shape.grid.volume() > room) {
    return {kCooperativeLaunchTooLarge,
            fmt::format("a grid of {} blocks; {} can be resident together", shape.grid.volume(), room)};
  }
  return {};
}

uint64_t Runtime::grid_workspace() {
  const std::array<uint32_t, 2> fresh = {8, 0};  // its own bytes, then the barrier of grid.sync()
  if (grid_workspace_ == nullptr) {
    grid_workspace_ = memory_.global().allocate(sizeof fresh, "the barrier of a cooperative launch");
  }
  if (grid_workspace_ == nullptr) return 0;
  std::memcpy(grid_workspace_->host, fresh.data(), sizeof fresh);
  return grid_workspace_->base;
}

Outcome Runtime::launch(Kernel& kernel, const LaunchShape& shape, void** args, const std::vector<std::byte>* packed) {
  RunRecord record;
  record.kind = RunRecord::Kind::Launch;
  record.number = ++launches_;
  record.kernel = demangled(kernel.name);
  record.shape = describe(shape);
  record.schedule = machine::to_string(schedule_);
  Outcome outcome = decode(kernel);
  if (outcome.code == kSuccess) outcome = check_shape(kernel, shape);
  if (outcome.code != kSuccess) {
    record.status = "refused";
    record.failure = outcome.why;
    report(record);
    outcome.why = fmt::format("{} ({}): {}", record.kernel, record.shape, outcome.why);
    return outcome;
  }
  const machine::Program& program = *kernel.program;
  std::byte* const block = memory_.host(program.param_address, program.param_bytes);
  if (packed != nullptr && packed->size() < program.param_bytes) {
    return {kInvalidValue,
            fmt::format("{} takes {} bytes of parameters, got {}", record.kernel, program.param_bytes, packed->size())};
  }
  for (size_t i = 0; i < program.parameters.size(); ++i) {
    const machine::Parameter& p = program.parameters[i];
    const void* const from = packed != nullptr ? packed->data() + p.offset : args[i];
    if (p.size != 0) std::memcpy(block + p.offset, from, p.size);
  }

  machine::LaunchConfig config;
  config.grid = shape.grid;
  config.block = shape.block;
  config.cluster = shape.cluster;
  config.dynamic_smem = static_cast<uint32_t>(shape.dynamic_smem);
  config.schedule = schedule_;
  if (shape.cooperative && (config.grid_workspace = grid_workspace()) == 0) {
    return {kMemoryAllocation, "there is no memory for the barrier of a cooperative launch"};
  }
  EmulatorOptions options;
  options.check = check_;
  options.trace = trace_.wants_more();
  options.interrupt = &interrupted;
  const SignalsEndLaunch signals(options.check || options.trace);
  const EmulatedRun run = run_program(program, memory_.global(), model(), config, options);

  std::fputs(run.output.c_str(), stdout);
  record.status = run.interrupted                             ? "interrupted"
                  : run.status == machine::LaunchStatus::Ok   ? "ok"
                  : run.status == machine::LaunchStatus::Hang ? "hang"
                                                              : "fault";
  record.failure = run.failure;
  record.modeled_cycles = run.modeled_cycles;
  record.state = run.state;
  for (const Diagnostic& d : run.diagnostics) {
    if (d.severity == Severity::Error || warnings_) {
      record.diagnostics.push_back(memory_.explain(d));
    } else {
      record.untold++;
    }
  }
  if (run.status != machine::LaunchStatus::Ok) {
    const auto cause = std::find_if(run.diagnostics.begin(), run.diagnostics.end(),
                                    [&](const Diagnostic& d) { return d.message == run.failure; });
    device_error_ =
        error_of(cause == run.diagnostics.end() ? std::string() : cause->id, run.status == machine::LaunchStatus::Hang);
  }
  if (options.trace) {
    if (const std::string cut = trace_.add(record, run.trace, modeled_cycles_); !cut.empty()) tell(cut);
  }
  modeled_cycles_ += run.modeled_cycles;
  report(record);
  if (!record.diagnostics.empty() && program.module->locations.empty())
    tell("the kernels have no line information; nvcc -lineinfo puts it in, and the source lines are shown");
  return {};
}

}  // namespace handoff::runtime
