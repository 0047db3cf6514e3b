// Tested by cuda_device_test.cc.
//
// Two halves. The first is the protocol and the parent's end of it: frames, fields, starting and ending the process.
// The second, GpuWorker, runs in the child and is the only code that calls the driver.
//
// What ends when. A kernel that hangs blocks the worker in cuCtxSynchronize; the parent, whose wait has a limit, kills
// it. Should the parent die first, nobody would: so a thread of the worker watches the socket and ends the process when
// its other side closes. A kernel that faults leaves the context unusable ("sticky" error, CUDA Driver API,
// CUDA_ERROR_ILLEGAL_ADDRESS and its neighbours: the process must be terminated and relaunched), which the worker tells
// as Answer::Fault. Whether an error is sticky is not looked up in a list: after any failure the worker synchronises
// the context, which gives a sticky error again.
#include "grader/device/cuda_worker.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "grader/device/cuda_driver.h"

namespace handoff::device {
namespace worker {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kMagic = 0x48464457;       // "WDFH": guards against a process that prints into the socket
constexpr uint64_t kMaxRequest = 1ULL << 36;  // more than any GPU's memory holds of one copy that a grader makes
constexpr double kKillWait = 1.5;             // seconds that kill() waits for the end of the process
constexpr double kEndWait = 1.0;              // seconds that how_it_ended() waits
constexpr size_t kOutputLimit = size_t{1} << 20;
constexpr int kWorkerSocket = 3;  // the socket's number in the worker: the first after the standard three

// Set by run_cuda_worker_if_asked; constant-initialised, since that may run before other static initialisers.
constinit bool g_can_serve = false;

std::optional<Clock::time_point> deadline_after(double timeout_s) {
  if (timeout_s < 0) return std::nullopt;
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout_s));
}

// Waits until the socket is ready for `events`; false when the deadline passed.
bool wait_ready(int socket, short events, const std::optional<Clock::time_point>& deadline) {
  while (true) {
    int wait_ms = -1;
    if (deadline) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now()).count();
      if (left <= 0) return false;
      wait_ms = static_cast<int>(std::min<int64_t>(left, 60'000));
    }
    pollfd entry{socket, events, 0};
    const int ready = ::poll(&entry, 1, wait_ms);
    if (ready > 0) return true;  // ready, or in error: the next send or recv says which
    if (ready < 0 && errno != EINTR) return true;
  }
}

Transfer send_all(int socket, std::span<const std::byte> data, const std::optional<Clock::time_point>& deadline) {
  while (!data.empty()) {
    const ssize_t sent = ::send(socket, data.data(), data.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) {
      data = data.subspan(static_cast<size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_ready(socket, POLLOUT, deadline)) return Transfer::TimedOut;
    } else if (errno != EINTR) {
      return Transfer::Closed;
    }
  }
  return Transfer::Done;
}

Transfer receive_all(int socket, std::span<std::byte> data, const std::optional<Clock::time_point>& deadline) {
  while (!data.empty()) {
    const ssize_t received = ::recv(socket, data.data(), data.size(), MSG_DONTWAIT);
    if (received > 0) {
      data = data.subspan(static_cast<size_t>(received));
    } else if (received == 0) {
      return Transfer::Closed;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_ready(socket, POLLIN, deadline)) return Transfer::TimedOut;
    } else if (errno != EINTR) {
      return Transfer::Closed;
    }
  }
  return Transfer::Done;
}

struct FrameHeader {
  uint32_t magic;
  uint32_t reserved;
  uint64_t length;
};

// Processes that were killed and had not gone when kill() stopped waiting: the GPU driver can hold one while it takes
// its work off the GPU. Each later start looks whether they have.
struct Unreaped {
  std::mutex mutex;
  std::vector<pid_t> pids;
  void add(pid_t pid) {
    const std::lock_guard lock(mutex);
    pids.push_back(pid);
  }
  void look() {
    const std::lock_guard lock(mutex);
    std::erase_if(pids, [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; });
  }
};

Unreaped& unreaped() {
  static Unreaped registry;
  return registry;
}

// A copy of the descriptor with a number above those that the worker uses, closed on exec.
int above_worker_descriptors(int descriptor) {
  const int copy = ::fcntl(descriptor, F_DUPFD_CLOEXEC, kWorkerSocket + 1);
  ::close(descriptor);
  return copy;
}

}  // namespace

bool can_serve() { return g_can_serve; }

MessageWriter& MessageWriter::raw(const void* data, size_t size) {
  const auto* first = static_cast<const std::byte*>(data);
  message_.insert(message_.end(), first, first + size);
  return *this;
}

std::span<const std::byte> MessageReader::take(uint64_t size) {
  if (!ok_ || size > rest_.size()) {
    ok_ = false;
    return {};
  }
  const std::span<const std::byte> taken = rest_.first(size);
  rest_ = rest_.subspan(size);
  return taken;
}

std::span<const std::byte> MessageReader::bytes() { return take(u64()); }

std::string MessageReader::text() {
  const std::span<const std::byte> from = bytes();
  return {reinterpret_cast<const char*>(from.data()), from.size()};
}

void write_tensor_map_args(MessageWriter& writer, const async::TensorMapArgs& a) {
  writer.u32(static_cast<uint32_t>(a.tensor_data_type)).u32(a.tensor_rank).u64(a.global_address);
  for (uint64_t dim : a.global_dim) writer.u64(dim);
  for (uint64_t stride : a.global_strides) writer.u64(stride);
  for (uint32_t dim : a.box_dim) writer.u32(dim);
  for (uint32_t stride : a.element_strides) writer.u32(stride);
  writer.u32(static_cast<uint32_t>(a.interleave)).u32(static_cast<uint32_t>(a.swizzle));
  writer.u32(static_cast<uint32_t>(a.l2_promotion)).u32(static_cast<uint32_t>(a.oob_fill));
}

async::TensorMapArgs read_tensor_map_args(MessageReader& reader) {
  async::TensorMapArgs a;
  a.tensor_data_type = static_cast<async::TensorDataType>(reader.u32());
  a.tensor_rank = reader.u32();
  a.global_address = reader.u64();
  for (uint64_t& dim : a.global_dim) dim = reader.u64();
  for (uint64_t& stride : a.global_strides) stride = reader.u64();
  for (uint32_t& dim : a.box_dim) dim = reader.u32();
  for (uint32_t& stride : a.element_strides) stride = reader.u32();
  a.interleave = static_cast<async::TensorInterleave>(reader.u32());
  a.swizzle = static_cast<async::TensorSwizzle>(reader.u32());
  a.l2_promotion = static_cast<async::TensorL2Promotion>(reader.u32());
  a.oob_fill = static_cast<async::TensorOobFill>(reader.u32());
  return a;
}

Transfer send_frame(int socket, std::span<const std::byte> message, double timeout_s) {
  const auto deadline = deadline_after(timeout_s);
  const FrameHeader header{kMagic, 0, message.size()};
  const Transfer sent = send_all(socket, std::as_bytes(std::span(&header, 1)), deadline);
  return sent == Transfer::Done ? send_all(socket, message, deadline) : sent;
}

Transfer receive_frame(int socket, std::vector<std::byte>* message, uint64_t max_bytes, double timeout_s) {
  const auto deadline = deadline_after(timeout_s);
  FrameHeader header{};
  const Transfer received = receive_all(socket, std::as_writable_bytes(std::span(&header, 1)), deadline);
  if (received != Transfer::Done) return received;
  if (header.magic != kMagic || header.reserved != 0 || header.length > max_bytes) return Transfer::Garbage;
  message->resize(header.length);
  return receive_all(socket, *message, deadline);
}

MessageWriter answer(Answer kind, std::string_view message) {
  MessageWriter writer;
  writer.u8(static_cast<uint8_t>(kind)).text(message);
  return writer;
}

int serve(int socket, const Handler& handler) {
  std::thread([socket] {
    pollfd entry{socket, POLLRDHUP, 0};
    while (::poll(&entry, 1, -1) <= 0) {
    }
    ::_exit(0);
  }).detach();
  std::vector<std::byte> request;
  while (receive_frame(socket, &request, kMaxRequest, -1) == Transfer::Done) {
    const MessageWriter reply = handler(MessageReader(request));
    // What a kernel printed lies in stdout's buffer; the parent reads it once it has the answer.
    std::fflush(stdout);
    if (send_frame(socket, reply.message(), -1) != Transfer::Done) break;
  }
  return 0;
}

std::unique_ptr<WorkerProcess> WorkerProcess::start(const std::vector<std::string>& arguments, std::string* why) {
  unreaped().look();
  const auto failed = [&](const char* call) {
    *why = "the GPU worker could not be started: " + std::string(call) + ": " + std::strerror(errno);
  };
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    failed("socketpair");
    return nullptr;
  }
  const int socket = above_worker_descriptors(ends[0]);
  const int worker_socket = above_worker_descriptors(ends[1]);
  const int output = above_worker_descriptors(::memfd_create("handoff-worker-output", MFD_CLOEXEC));
  std::unique_ptr<WorkerProcess> process(new WorkerProcess(-1, socket, output));
  process->ended_ = true;  // until there is a process, the destructor only closes the descriptors
  if (socket < 0 || worker_socket < 0 || output < 0) {
    failed("its descriptors");
    if (worker_socket >= 0) ::close(worker_socket);
    return nullptr;
  }

  std::vector<std::string> words = {"handoff-gpu-worker"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  words.push_back(std::to_string(kWorkerSocket));
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions, worker_socket, kWorkerSocket);
  posix_spawn_file_actions_addclosefrom_np(&actions, kWorkerSocket + 1);
  pid_t pid = -1;
  errno = ::posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  const bool spawned = errno == 0;
  posix_spawn_file_actions_destroy(&actions);
  ::close(worker_socket);
  if (!spawned) {
    failed("posix_spawn");
    return nullptr;
  }
  process->pid_ = pid;
  process->ended_ = false;
  return process;
}

WorkerProcess::~WorkerProcess() {
  kill();
  if (socket_ >= 0) ::close(socket_);
  if (output_ >= 0) ::close(output_);
}

Transfer WorkerProcess::call(const MessageWriter& request, std::vector<std::byte>* reply, uint64_t max_bytes,
                             double timeout_s) {
  const auto start = Clock::now();
  const Transfer sent = send_frame(socket_, request.message(), timeout_s);
  if (sent != Transfer::Done) return sent;
  const double spent = std::chrono::duration<double>(Clock::now() - start).count();
  return receive_frame(socket_, reply, max_bytes, std::max(0.0, timeout_s - spent));
}

bool WorkerProcess::reap(double timeout_s) {
  const auto deadline = deadline_after(timeout_s);
  while (!ended_) {
    const pid_t reaped = ::waitpid(pid_, &status_, WNOHANG);
    // An error means that somebody else reaped it (a program that ignores SIGCHLD).
    if (reaped == pid_ || (reaped < 0 && errno != EINTR)) {
      ended_ = true;
    } else if (Clock::now() >= *deadline) {
      break;
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  return ended_;
}

void WorkerProcess::kill() {
  if (ended_) return;
  ::kill(pid_, SIGKILL);
  if (reap(kKillWait)) return;
  unreaped().add(pid_);
  ended_ = true;
}

std::string WorkerProcess::how_it_ended() {
  if (!reap(kEndWait)) return "closed its connection";
  if (WIFSIGNALED(status_)) {
    const int signal = WTERMSIG(status_);
    const char* text = ::sigdescr_np(signal);
    return "was ended by signal " + std::to_string(signal) + (text == nullptr ? "" : " (" + std::string(text) + ")");
  }
  return "ended with status " + std::to_string(WEXITSTATUS(status_));
}

std::string WorkerProcess::take_output() {
  struct stat status {};
  if (::fstat(output_, &status) != 0 || status.st_size == 0) return {};
  const auto size = static_cast<size_t>(status.st_size);
  std::string output(std::min(size, kOutputLimit), '\0');
  const ssize_t count = ::pread(output_, output.data(), output.size(), 0);
  output.resize(count < 0 ? 0 : static_cast<size_t>(count));
  if (size > kOutputLimit) output += "\n[output cut off: " + std::to_string(size) + " bytes were printed]\n";
  // The worker's descriptors are copies of this one and share its offset, so that its next line starts the file anew.
  if (::ftruncate(output_, 0) == 0) ::lseek(output_, 0, SEEK_SET);
  return output;
}

namespace {

std::string extents(const uint32_t (&e)[3]) {
  return std::to_string(e[0]) + "x" + std::to_string(e[1]) + "x" + std::to_string(e[2]);
}

uint64_t volume(const uint32_t (&e)[3]) { return uint64_t{e[0]} * e[1] * e[2]; }

// The compiler's messages on one line, at most 600 characters.
std::string one_line(std::string_view log) {
  std::string line;
  while (!log.empty()) {
    const size_t end = std::min(log.find('\n'), log.size());
    const std::string_view part = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    if (part.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    line += (line.empty() ? "" : "; ") + std::string(part);
  }
  if (line.size() > 600) line = line.substr(0, 600) + "…";
  return line;
}

// The child's half: one context on one GPU, one module, its allocations.
class GpuWorker {
 public:
  MessageWriter handle(MessageReader request) {
    const auto op = static_cast<Op>(request.u8());
    if (op == Op::Hello) return hello(request);
    if (context_ == nullptr) return answer(Answer::Error, "the GPU was not opened");
    switch (op) {
      case Op::Load:
        return load(request);
      case Op::FindKernel:
        return find_kernel(request);
      case Op::Allocate:
        return allocate(request);
      case Op::Free:
        return free(request);
      case Op::Write:
        return write(request);
      case Op::Read:
        return read(request);
      case Op::ReadSymbol:
        return read_symbol(request);
      case Op::EncodeTensorMap:
        return encode_tensor_map(request);
      case Op::Launch:
        return launch(request);
      case Op::Occupancy:
        return occupancy(request);
      case Op::CopyOnDevice:
        return copy_on_device(request);
      default:
        return answer(Answer::Error, "unknown request");
    }
  }

 private:
  using Result = driver::Result;
  struct Allocation {
    driver::DevicePointer base;
    uint64_t bytes;
  };

  // The answer to a driver call that failed; a Fault where the context is lost with it.
  MessageWriter failed(const std::string& what, Result error) {
    const Result health = api_.CtxSynchronize();
    return answer(health == driver::kSuccess ? Answer::Error : Answer::Fault, what + ": " + api_.describe(error));
  }

  int attribute(driver::DeviceAttribute which) const {
    int value = 0;
    api_.DeviceGetAttribute(&value, which, device_);
    return value;
  }

  int attribute(driver::FunctionAttribute which, driver::Function function) const {
    int value = 0;
    api_.FuncGetAttribute(&value, which, function);
    return value;
  }

  MessageWriter hello(MessageReader& request) {
    const int ordinal = request.i32();
    std::string why;
    // Kernels are loaded with their module, so that what is wrong with one is said by load() and no launch pays for it.
    ::setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    if (!driver::open("libcuda.so.1", &api_, &why)) return answer(Answer::Error, why);
    const auto no_gpu = [&](const char* call, Result error) {
      return answer(Answer::Error, "no GPU: " + std::string(call) + " failed: " + api_.describe(error));
    };
    int count = 0;
    if (Result r = api_.Init(0); r != driver::kSuccess) return no_gpu("cuInit", r);
    if (Result r = api_.DeviceGetCount(&count); r != driver::kSuccess) return no_gpu("cuDeviceGetCount", r);
    if (ordinal < 0 || ordinal >= count) {
      return answer(Answer::Error, "no GPU " + std::to_string(ordinal) + ": this machine has " + std::to_string(count));
    }
    if (Result r = api_.DeviceGet(&device_, ordinal); r != driver::kSuccess) return no_gpu("cuDeviceGet", r);
    char name[256] = {};
    if (Result r = api_.DeviceGetName(name, sizeof name - 1, device_); r != driver::kSuccess) {
      return no_gpu("cuDeviceGetName", r);
    }
    // Waiting for a kernel by sleeping leaves the processor to the emulator. Refused where the context exists already.
    api_.DevicePrimaryCtxSetFlags(device_, driver::kContextBlockingSync);
    driver::Context context = nullptr;
    if (Result r = api_.DevicePrimaryCtxRetain(&context, device_); r != driver::kSuccess) {
      return no_gpu("cuDevicePrimaryCtxRetain", r);
    }
    if (Result r = api_.CtxSetCurrent(context); r != driver::kSuccess) return no_gpu("cuCtxSetCurrent", r);
    context_ = context;
    capability_ = attribute(driver::DeviceAttribute::ComputeCapabilityMajor) * 10 +
                  attribute(driver::DeviceAttribute::ComputeCapabilityMinor);
    int version = 0;
    api_.DriverGetVersion(&version);
    return answer(Answer::Ok).text(name).i32(capability_).i32(version);
  }

  MessageWriter load(MessageReader& request) {
    name_ = request.text();
    const std::string ptx = request.text();
    const std::string cubin = request.text();
    if (!request.ok() || (ptx.empty() && cubin.empty())) {
      return answer(Answer::Error, name_ + ": there is no device code to load");
    }
    for (const auto& [address, allocation] : allocations_) {
      if (Result r = api_.MemFree(allocation.base); r != driver::kSuccess) return failed("cuMemFree", r);
    }
    allocations_.clear();
    if (module_ != nullptr) {
      if (Result r = api_.ModuleUnload(module_); r != driver::kSuccess) return failed("cuModuleUnload", r);
      module_ = nullptr;
    }
    std::vector<char> log(8192, '\0');
    driver::JitOption options[] = {driver::JitOption::ErrorLogBuffer, driver::JitOption::ErrorLogBufferSizeBytes};
    // The size travels in the pointer's place; the last byte stays zero.
    void* values[] = {log.data(), reinterpret_cast<void*>(static_cast<uintptr_t>(log.size() - 1))};
    const std::string& image = cubin.empty() ? ptx : cubin;
    const Result r = api_.ModuleLoadDataEx(&module_, image.c_str(), 2, options, values);
    if (r == driver::kSuccess) return answer(Answer::Ok);
    module_ = nullptr;
    std::string what = name_ + " cannot be loaded";
    if (r == driver::kNoBinaryForGpu) what += " on this sm_" + std::to_string(capability_) + " GPU";
    if (r == driver::kUnsupportedPtx) what += " by this driver, which is older than the toolkit (update the driver)";
    if (const std::string text = one_line(log.data()); !text.empty()) what += ": " + text;
    return failed(what, r);
  }

  std::string kernel_names() const {
    unsigned count = 0;
    if (api_.ModuleGetFunctionCount == nullptr || api_.ModuleEnumerateFunctions == nullptr ||
        api_.FuncGetName == nullptr || api_.ModuleGetFunctionCount(&count, module_) != driver::kSuccess) {
      return {};
    }
    std::vector<driver::Function> functions(count);
    if (count == 0) return "; it has no kernels";
    if (api_.ModuleEnumerateFunctions(functions.data(), count, module_) != driver::kSuccess) return {};
    std::string names;
    for (driver::Function function : functions) {
      const char* name = nullptr;
      if (api_.FuncGetName(&name, function) == driver::kSuccess)
        names += (names.empty() ? "" : ", ") + std::string(name);
    }
    return "; it has: " + names;
  }

  // The kernel `name`, or an answer that says why there is none.
  std::optional<MessageWriter> find(const std::string& name, driver::Function* function) {
    if (module_ == nullptr) return answer(Answer::Error, "no module is loaded");
    const Result r = api_.ModuleGetFunction(function, module_, name.c_str());
    if (r == driver::kSuccess) return std::nullopt;
    if (r == driver::kNotFound) {
      return answer(Answer::Error, "no kernel `" + name + "` in " + name_ + kernel_names());
    }
    return failed("kernel `" + name + "`", r);
  }

  // Bytes of each parameter; nullopt with a driver that cannot tell. The end of the list is CUDA_ERROR_INVALID_VALUE.
  std::optional<std::vector<uint32_t>> parameter_sizes(driver::Function function, uint32_t* total) const {
    if (api_.FuncGetParamInfo == nullptr) return std::nullopt;
    std::vector<uint32_t> sizes;
    size_t offset = 0;
    size_t size = 0;
    *total = 0;
    while (api_.FuncGetParamInfo(function, sizes.size(), &offset, &size) == driver::kSuccess) {
      sizes.push_back(static_cast<uint32_t>(size));
      *total = static_cast<uint32_t>(offset + size);
    }
    return sizes;
  }

  MessageWriter find_kernel(MessageReader& request) {
    driver::Function function = nullptr;
    if (auto problem = find(request.text(), &function)) return std::move(*problem);
    uint32_t total = 0;
    const std::vector<uint32_t> sizes = parameter_sizes(function, &total).value_or(std::vector<uint32_t>());
    MessageWriter reply = answer(Answer::Ok);
    reply.u32(static_cast<uint32_t>(attribute(driver::FunctionAttribute::NumRegs, function)))
        .u32(static_cast<uint32_t>(attribute(driver::FunctionAttribute::SharedSizeBytes, function)))
        .u32(total)
        .u32(static_cast<uint32_t>(sizes.size()));
    for (uint32_t size : sizes) reply.u32(size);
    return reply;
  }

  MessageWriter allocate(MessageReader& request) {
    const uint64_t bytes = request.u64();
    // The driver promises 256-byte alignment (CUDA C++ Programming Guide, "Device Memory Accesses"), Device promises
    // 512.
    constexpr uint64_t kAlignment = 512;
    driver::DevicePointer base = 0;
    if (bytes > UINT64_MAX - kAlignment)
      return answer(Answer::Error, "allocation of " + std::to_string(bytes) + " bytes");
    if (Result r = api_.MemAlloc(&base, bytes + kAlignment); r != driver::kSuccess) {
      return failed("allocation of " + std::to_string(bytes) + " bytes", r);
    }
    // Memory keeps what an earlier run left, which may be the right result: a kernel that writes nothing must not find
    // it. All ones is a NaN in every floating-point format and no small integer.
    if (Result r = api_.MemsetD8(base, 0xff, bytes + kAlignment); r != driver::kSuccess) return failed("cuMemsetD8", r);
    const uint64_t address = (base + kAlignment - 1) / kAlignment * kAlignment;
    allocations_[address] = {base, bytes};
    return answer(Answer::Ok).u64(address);
  }

  MessageWriter free(MessageReader& request) {
    const auto found = allocations_.find(request.u64());
    if (found == allocations_.end()) return answer(Answer::Error, "free of an address that was not allocated");
    const Result r = api_.MemFree(found->second.base);
    allocations_.erase(found);
    return r == driver::kSuccess ? answer(Answer::Ok) : failed("cuMemFree", r);
  }

  // Empty when [address, address + count) lies in one allocation, else what is wrong.
  std::string outside(uint64_t address, uint64_t count) const {
    auto after = allocations_.upper_bound(address);
    if (after == allocations_.begin()) return "the address was not allocated";
    const auto& [start, allocation] = *std::prev(after);
    const uint64_t offset = address - start;
    if (offset <= allocation.bytes && count <= allocation.bytes - offset) return {};
    return std::to_string(count) + " bytes at offset " + std::to_string(offset) + " reach past the allocation of " +
           std::to_string(allocation.bytes) + " bytes";
  }

  MessageWriter write(MessageReader& request) {
    const uint64_t address = request.u64();
    const std::span<const std::byte> bytes = request.bytes();
    if (const std::string wrong = outside(address, bytes.size()); !wrong.empty()) {
      return answer(Answer::Error, "write: " + wrong);
    }
    const Result r = bytes.empty() ? driver::kSuccess : api_.MemcpyHtoD(address, bytes.data(), bytes.size());
    return r == driver::kSuccess ? answer(Answer::Ok) : failed("cuMemcpyHtoD", r);
  }

  MessageWriter read(MessageReader& request) {
    const uint64_t address = request.u64();
    const uint64_t count = request.u64();
    if (const std::string wrong = outside(address, count); !wrong.empty()) {
      return answer(Answer::Error, "read: " + wrong);
    }
    return copy_out(address, count);
  }

  MessageWriter read_symbol(MessageReader& request) {
    const std::string name = request.text();
    const uint64_t count = request.u64();
    if (module_ == nullptr) return answer(Answer::Error, "no module is loaded");
    driver::DevicePointer address = 0;
    size_t size = 0;
    const Result r = api_.ModuleGetGlobal(&address, &size, module_, name.c_str());
    if (r == driver::kNotFound) return answer(Answer::Error, "no variable `" + name + "` in " + name_);
    if (r != driver::kSuccess) return failed("variable `" + name + "`", r);
    if (size != count) {
      return answer(Answer::Error,
                    "variable `" + name + "` has " + std::to_string(size) + " bytes, not " + std::to_string(count));
    }
    return copy_out(address, count);
  }

  MessageWriter copy_out(driver::DevicePointer address, uint64_t count) {
    std::vector<std::byte> bytes(count);
    const Result r = count == 0 ? driver::kSuccess : api_.MemcpyDtoH(bytes.data(), address, count);
    if (r != driver::kSuccess) return failed("cuMemcpyDtoH", r);
    return answer(Answer::Ok).bytes(bytes);
  }

  // The driver answers CUDA_ERROR_INVALID_VALUE whatever is wrong; which of its documented rules was broken is looked
  // up here.
  MessageWriter encode_tensor_map(MessageReader& request) {
    const async::TensorMapArgs a = read_tensor_map_args(request);
    if (!request.ok()) return answer(Answer::Error, "a tensor map request that ends early");
    if (capability_ < 90)
      return answer(Answer::Error,
                    "tensor maps need an sm_90 GPU or newer; this one is sm_" + std::to_string(capability_));
    // The driver reads as many entries of the arrays as the rank says.
    if (a.tensor_rank > a.box_dim.size())
      return answer(Answer::Error, "cuTensorMapEncodeTiled: " + async::check_tiled(a));
    if (api_.TensorMapEncodeTiled == nullptr)
      return answer(Answer::Error, "this driver has no cuTensorMapEncodeTiled (update the NVIDIA driver)");
    alignas(128) std::array<std::byte, 128> map{};
    const Result r = api_.TensorMapEncodeTiled(map.data(), static_cast<int>(a.tensor_data_type), a.tensor_rank,
                                               reinterpret_cast<void*>(a.global_address), a.global_dim.data(),
                                               a.global_strides.data(), a.box_dim.data(), a.element_strides.data(),
                                               static_cast<int>(a.interleave), static_cast<int>(a.swizzle),
                                               static_cast<int>(a.l2_promotion), static_cast<int>(a.oob_fill));
    if (r == driver::kSuccess) return answer(Answer::Ok).bytes(map);
    if (const std::string rule = async::check_tiled(a); !rule.empty())
      return answer(Answer::Error, "cuTensorMapEncodeTiled: " + rule);
    return failed("cuTensorMapEncodeTiled", r);
  }

  // What forbids this launch, as one line with the numbers; empty when the GPU should take it.
  std::string refusal(driver::Function function, const uint32_t (&grid)[3], const uint32_t (&block)[3],
                      const uint32_t (&cluster)[3], uint32_t dynamic_shared) const {
    using Device = driver::DeviceAttribute;
    using Kernel = driver::FunctionAttribute;
    constexpr Device kMaxGrid[] = {Device::MaxGridDimX, Device::MaxGridDimY, Device::MaxGridDimZ};
    constexpr Device kMaxBlock[] = {Device::MaxBlockDimX, Device::MaxBlockDimY, Device::MaxBlockDimZ};
    if (volume(grid) == 0) return "the grid " + extents(grid) + " is empty";
    if (volume(block) == 0) return "the block " + extents(block) + " is empty";
    if (volume(cluster) == 0) return "the cluster " + extents(cluster) + " is empty";
    for (int axis = 0; axis < 3; ++axis) {
      const auto max_grid = static_cast<uint32_t>(attribute(kMaxGrid[axis]));
      const auto max_block = static_cast<uint32_t>(attribute(kMaxBlock[axis]));
      const std::string letter(1, "xyz"[axis]);
      if (grid[axis] > max_grid) {
        return "the grid " + extents(grid) + " is too large: at most " + std::to_string(max_grid) + " blocks in " +
               letter;
      }
      if (block[axis] > max_block) {
        return "the block " + extents(block) + " is too large: at most " + std::to_string(max_block) + " threads in " +
               letter;
      }
    }
    const auto gpu_threads = static_cast<uint64_t>(attribute(Device::MaxThreadsPerBlock));
    const auto kernel_threads = static_cast<uint64_t>(attribute(Kernel::MaxThreadsPerBlock, function));
    if (volume(block) > std::min(gpu_threads, kernel_threads)) {
      return "the block " + extents(block) + " has " + std::to_string(volume(block)) + " threads: at most " +
             std::to_string(std::min(gpu_threads, kernel_threads)) +
             (kernel_threads < gpu_threads ? " with this kernel's registers or launch bounds" : " are allowed");
    }
    const auto fixed = static_cast<uint64_t>(attribute(Kernel::SharedSizeBytes, function));
    const auto most = static_cast<uint64_t>(attribute(Device::MaxSharedMemoryPerBlockOptin));
    if (fixed + dynamic_shared > most) {
      return "too much shared memory: " + std::to_string(fixed) + " static + " + std::to_string(dynamic_shared) +
             " dynamic = " + std::to_string(fixed + dynamic_shared) + " bytes a block, the GPU has " +
             std::to_string(most);
    }
    if (volume(cluster) > 1) {
      if (capability_ < 90) return "clusters need an sm_90 GPU or newer; this one is sm_" + std::to_string(capability_);
      if (volume(cluster) > 16) {
        return "the cluster " + extents(cluster) + " has " + std::to_string(volume(cluster)) + " blocks: at most 16";
      }
      for (int axis = 0; axis < 3; ++axis) {
        if (grid[axis] % cluster[axis] != 0) {
          return "the grid " + extents(grid) + " is not a multiple of the cluster " + extents(cluster);
        }
      }
    }
    return {};
  }

  // What is wrong with the arguments, as one line; empty when they match the kernel's parameters.
  std::string mismatch(driver::Function function, const std::vector<std::span<const std::byte>>& arguments) const {
    uint32_t total = 0;
    const auto sizes = parameter_sizes(function, &total);
    if (!sizes) return {};
    if (sizes->size() != arguments.size()) {
      return "the kernel has " + std::to_string(sizes->size()) + " parameters (" + std::to_string(total) + " bytes), " +
             std::to_string(arguments.size()) + " arguments were given";
    }
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].size() == (*sizes)[i]) continue;
      return "parameter " + std::to_string(i + 1) + " has " + std::to_string((*sizes)[i]) +
             " bytes, its argument has " + std::to_string(arguments[i].size());
    }
    return {};
  }

  MessageWriter launch(MessageReader& request) {
    const std::string name = request.text();
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t cluster[3];
    for (auto* extent : {&grid, &block, &cluster}) {
      for (uint32_t& e : *extent) e = request.u32();
    }
    const uint32_t dynamic_shared = request.u32();
    const uint32_t count = request.u32();
    std::vector<std::span<const std::byte>> arguments;
    for (uint32_t i = 0; i < count && request.ok(); ++i) arguments.push_back(request.bytes());
    if (!request.ok()) return answer(Answer::Error, "a launch request that ends early");

    driver::Function function = nullptr;
    if (auto problem = find(name, &function)) return std::move(*problem);
    const std::string what = "kernel `" + name + "`: ";
    if (std::string no = refusal(function, grid, block, cluster, dynamic_shared); !no.empty()) {
      return answer(Answer::Error, what + no);
    }
    if (std::string no = mismatch(function, arguments); !no.empty()) return answer(Answer::Error, what + no);

    if (const Result r = allow_dynamic_shared(function, dynamic_shared); r != driver::kSuccess)
      return failed(what + "dynamic shared memory", r);
    driver::LaunchAttribute cluster_attribute{};
    driver::LaunchConfig config{grid[0],  grid[1],        grid[2], block[0],           block[1],
                                block[2], dynamic_shared, nullptr, &cluster_attribute, 0};
    if (volume(cluster) > 1) {
      // More than 8 blocks is not portable (CUDA C++ Programming Guide, "Thread Block Clusters") and must be asked for.
      if (volume(cluster) > 8) {
        const Result r = api_.FuncSetAttribute(function, driver::FunctionAttribute::NonPortableClusterSizeAllowed, 1);
        if (r != driver::kSuccess) return failed(what + "a cluster of more than 8 blocks", r);
      }
      cluster_attribute.id = driver::kLaunchAttributeClusterDimension;
      cluster_attribute.value.cluster_dim = {cluster[0], cluster[1], cluster[2]};
      config.attribute_count = 1;
    }
    // A driver that cannot tell the parameters would read as many pointers as the kernel has: those beyond the
    // arguments point at zeros (parameters are at most 32764 bytes, PTX ISA 7.1, so no more than that many).
    static const std::vector<std::byte> kZeros(32768);
    std::vector<void*> parameters(32768, const_cast<std::byte*>(kZeros.data()));
    for (size_t i = 0; i < arguments.size(); ++i) parameters[i] = const_cast<std::byte*>(arguments[i].data());

    return timed(what + "the launch was refused", "the kernel was stopped by an error",
                 [&] { return api_.LaunchKernelEx(&config, function, parameters.data(), nullptr); });
  }

  // Lets `function` be launched with so much dynamic shared memory.
  Result allow_dynamic_shared(driver::Function function, uint32_t bytes) const {
    using driver::FunctionAttribute;
    if (bytes <= static_cast<uint32_t>(attribute(FunctionAttribute::MaxDynamicSharedSizeBytes, function)))
      return driver::kSuccess;
    return api_.FuncSetAttribute(function, FunctionAttribute::MaxDynamicSharedSizeBytes, static_cast<int>(bytes));
  }

  // Puts work into the null stream by `start_work`, waits for it, and answers with the seconds between two events
  // around it. `refused` and `stopped` say what a failure of the one and of the other means.
  template <class StartWork>
  MessageWriter timed(const std::string& refused, const std::string& stopped, const StartWork& start_work) {
    driver::Event start = nullptr;
    driver::Event end = nullptr;
    if (Result r = api_.EventCreate(&start, driver::kEventBlockingSync); r != driver::kSuccess) {
      return failed("cuEventCreate", r);
    }
    if (Result r = api_.EventCreate(&end, driver::kEventBlockingSync); r != driver::kSuccess) {
      return failed("cuEventCreate", r);
    }
    Result r = api_.EventRecord(start, nullptr);
    if (r == driver::kSuccess) r = start_work();
    if (r != driver::kSuccess) {
      api_.EventDestroy(start);
      api_.EventDestroy(end);
      return failed(refused, r);
    }
    api_.EventRecord(end, nullptr);
    // Also writes out what the kernel printed (CUDA C++ Programming Guide, "Formatted Output").
    r = api_.CtxSynchronize();
    if (r != driver::kSuccess) return failed(stopped, r);
    float milliseconds = 0;
    r = api_.EventElapsedTime(&milliseconds, start, end);
    api_.EventDestroy(start);
    api_.EventDestroy(end);
    if (r != driver::kSuccess) return failed("cuEventElapsedTime", r);
    return answer(Answer::Ok).f64(milliseconds * 1e-3);
  }

  MessageWriter occupancy(MessageReader& request) {
    const std::string name = request.text();
    const uint32_t threads = request.u32();
    const uint32_t dynamic_shared = request.u32();
    driver::Function function = nullptr;
    if (auto problem = find(name, &function)) return std::move(*problem);
    // Without this a driver answers that no block fits.
    if (const Result r = allow_dynamic_shared(function, dynamic_shared); r != driver::kSuccess)
      return failed("kernel `" + name + "`: dynamic shared memory", r);
    int blocks = 0;
    const Result r =
        api_.OccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, static_cast<int>(threads), dynamic_shared);
    if (r != driver::kSuccess) return failed("cuOccupancyMaxActiveBlocksPerMultiprocessor", r);
    const int multiprocessors = attribute(driver::DeviceAttribute::MultiprocessorCount);
    return answer(Answer::Ok).u32(static_cast<uint32_t>(multiprocessors)).u32(static_cast<uint32_t>(blocks));
  }

  MessageWriter copy_on_device(MessageReader& request) {
    const uint64_t destination = request.u64();
    const uint64_t source = request.u64();
    const uint64_t count = request.u64();
    for (const uint64_t address : {destination, source}) {
      if (const std::string wrong = outside(address, count); !wrong.empty())
        return answer(Answer::Error, "copy on the device: " + wrong);
    }
    return timed("cuMemcpyDtoDAsync", "the copy on the device was stopped by an error",
                 [&] { return api_.MemcpyDtoDAsync(destination, source, count, nullptr); });
  }

  driver::Api api_;
  driver::DeviceHandle device_ = 0;
  driver::Context context_ = nullptr;
  driver::Module module_ = nullptr;
  std::string name_;  // of the module
  int capability_ = 0;
  std::map<uint64_t, Allocation> allocations_;  // by the address given out
};

}  // namespace
}  // namespace worker

int run_cuda_worker_if_asked(int argc, char** argv) {
  worker::g_can_serve = true;
  if (argc != 3 || argv[1] != worker::kWorkerFlag) return -1;
  const std::string_view text = argv[2];
  int socket = -1;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), socket);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || socket < 0) return 2;
  worker::GpuWorker gpu;
  return worker::serve(socket, [&](worker::MessageReader request) { return gpu.handle(request); });
}

bool serve_as_cuda_worker_before_main() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string all{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::vector<char*> argv;
  for (size_t at = 0; at < all.size(); at += std::strlen(all.data() + at) + 1) argv.push_back(all.data() + at);
  const int argc = static_cast<int>(argv.size());
  argv.push_back(nullptr);
  if (const int status = run_cuda_worker_if_asked(argc, argv.data()); status >= 0) ::_exit(status);
  return true;
}

}  // namespace handoff::device
