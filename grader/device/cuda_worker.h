// The GPU worker: a child process that owns the CUDA context, so that a kernel which never ends can be ended.
//
// Nothing in the CUDA API stops a running kernel; ending the process that launched it does. So everything that touches
// the driver happens in a child, and the parent (the grader) never calls cuInit: a process that has, cannot fork a
// child that uses CUDA. The child is this same program, started again with a hidden first argument; main() gives it
// away before anything else:
//
//   int main(int argc, char** argv) {
//     if (int status = handoff::device::run_cuda_worker_if_asked(argc, argv); status >= 0) return status;
//
// Parent and child speak over a socket pair: one request, one answer, each a frame of a magic word, a length and the
// bytes. A reader takes nothing on trust: a frame of another form, a length beyond what was asked for or a field past
// the end is an error, never a wait or an overrun. The worker's standard output and error are one memory file that the
// parent made, so what a kernel printed can be read even after the worker is gone.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grader/emulator/async/tensor_map.h"

namespace handoff::device {

/// Serves as the GPU worker where this process was started as one; call it first in main(). Returns -1 where it was
/// not, else the exit status for main(). Programs that never call it have no GPU: make_cuda_device says so.
int run_cuda_worker_if_asked(int argc, char** argv);

/// The same for a program whose main() belongs to somebody else (gtest_main): call it from a static initialiser. Reads
/// the arguments from /proc/self/cmdline and ends the process where it was started as a worker. Always true.
bool serve_as_cuda_worker_before_main();

namespace worker {

/// The hidden first argument; the second is the number of the socket.
inline constexpr std::string_view kWorkerFlag = "--handoff-cuda-worker";

/// True once run_cuda_worker_if_asked was called: this program can be started again as a worker.
bool can_serve();

/// What a request asks for. The fields that follow are listed in order; `bytes` and text carry their length.
enum class Op : uint8_t {
  Hello = 1,   ///< i32 ordinal → text name, i32 compute capability × 10, i32 driver API version
  Load,        ///< text name, text ptx, text cubin → nothing
  FindKernel,  ///< text name → u32 registers, u32 static shared bytes, u32 parameter bytes, u32 count, count × u32
               ///< sizes
  Allocate,    ///< u64 bytes → u64 address
  Free,        ///< u64 address → nothing
  Write,       ///< u64 address, bytes → nothing
  Read,        ///< u64 address, u64 count → bytes
  ReadSymbol,  ///< text name, u64 count → bytes
  Launch,      ///< text kernel, 9 × u32 extents, u32 dynamic shared bytes, u32 count, count × bytes → f64 seconds
  EncodeTensorMap,  ///< the arguments as write_tensor_map_args() appends them → bytes (128)
  Occupancy,        ///< text kernel, u32 threads a block, u32 dynamic shared bytes → u32 multiprocessors, u32 blocks
  CopyOnDevice,     ///< u64 destination, u64 source, u64 count → f64 seconds
};

/// How a request ended; every answer starts with it (u8) and a message (text, one line, empty when Ok).
enum class Answer : uint8_t {
  Ok = 1,  ///< done
  Error,   ///< refused, nothing changed
  Fault,   ///< the kernel broke the context: the worker is of no more use
};

/// Appends fields to a message.
class MessageWriter {
 public:
  /// Appends the number's bytes as they lie in memory; parent and worker are one program on one machine.
  ///@{
  MessageWriter& u8(uint8_t v) { return raw(&v, sizeof v); }
  MessageWriter& u32(uint32_t v) { return raw(&v, sizeof v); }
  MessageWriter& i32(int32_t v) { return raw(&v, sizeof v); }
  MessageWriter& u64(uint64_t v) { return raw(&v, sizeof v); }
  MessageWriter& f64(double v) { return raw(&v, sizeof v); }
  ///@}
  /// Appends the length as u64, then the bytes.
  ///@{
  MessageWriter& bytes(std::span<const std::byte> v) { return u64(v.size()).raw(v.data(), v.size()); }
  MessageWriter& text(std::string_view v) { return u64(v.size()).raw(v.data(), v.size()); }
  ///@}
  /// The message so far.
  std::span<const std::byte> message() const { return message_; }

 private:
  MessageWriter& raw(const void* data, size_t size);
  std::vector<std::byte> message_;
};

/// Takes fields off a message. After the first field that is not there, ok() is false and every field reads as zero or
/// empty.
class MessageReader {
 public:
  /// Reads `message`, which must outlive the reader and the spans that it gives out.
  explicit MessageReader(std::span<const std::byte> message) : rest_(message) {}
  /// The next field, as the writer's function of this name appended it.
  ///@{
  uint8_t u8() { return number<uint8_t>(); }
  uint32_t u32() { return number<uint32_t>(); }
  int32_t i32() { return number<int32_t>(); }
  uint64_t u64() { return number<uint64_t>(); }
  double f64() { return number<double>(); }
  std::span<const std::byte> bytes();
  std::string text();
  ///@}
  /// Has every field read so far been there?
  bool ok() const { return ok_; }

 private:
  template <class T>
  T number() {
    T value{};
    if (std::span<const std::byte> from = take(sizeof(T)); !from.empty())
      __builtin_memcpy(&value, from.data(), sizeof(T));
    return value;
  }
  std::span<const std::byte> take(uint64_t size);
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

/// Appends the arguments of a tensor map, or takes them off.
///@{
void write_tensor_map_args(MessageWriter& writer, const async::TensorMapArgs& args);
async::TensorMapArgs read_tensor_map_args(MessageReader& reader);
///@}

/// How a transfer over the socket ended.
enum class Transfer : uint8_t {
  Done,      ///< the whole frame
  TimedOut,  ///< part of it or nothing
  Closed,    ///< the other side is gone
  Garbage,   ///< not a frame, or longer than `max_bytes`
};

/// Sends one frame. `timeout_s` < 0 waits for ever.
Transfer send_frame(int socket, std::span<const std::byte> message, double timeout_s);
/// Receives one frame of at most `max_bytes`. `timeout_s` < 0 waits for ever; else it covers the whole frame.
Transfer receive_frame(int socket, std::vector<std::byte>* message, uint64_t max_bytes, double timeout_s);

/// Answers one request.
using Handler = std::function<MessageWriter(MessageReader request)>;
/// The worker's loop: answers until the parent closes the socket; returns main()'s exit status.
int serve(int socket, const Handler& handler);
/// An answer's beginning.
MessageWriter answer(Answer kind, std::string_view message = "");

/// The parent's end of one worker process.
class WorkerProcess {
 public:
  /// Starts this program (/proc/self/exe) with `arguments` and the socket's number after them. nullptr and `why` if it
  /// cannot.
  static std::unique_ptr<WorkerProcess> start(const std::vector<std::string>& arguments, std::string* why);
  WorkerProcess(const WorkerProcess&) = delete;             ///< owns a process
  WorkerProcess& operator=(const WorkerProcess&) = delete;  ///< owns a process
  /// Kills the process.
  ~WorkerProcess();

  /// Sends a request and waits for its answer, of at most `max_bytes`, for at most `timeout_s`. The process keeps
  /// running.
  Transfer call(const MessageWriter& request, std::vector<std::byte>* reply, uint64_t max_bytes, double timeout_s);
  /// SIGKILL, then waits up to 1.5 s for the end. A process that the GPU driver holds longer is reaped at a later
  /// start.
  void kill();
  /// How a process that went away by itself ended: "was ended by signal 11 (Segmentation fault)". Waits up to 1 s for
  /// the end.
  std::string how_it_ended();
  /// What was printed since the last call, cut off at 1 MiB with a note.
  std::string take_output();
  /// The process's id, for messages and tests.
  pid_t pid() const { return pid_; }

 private:
  WorkerProcess(pid_t pid, int socket, int output) : pid_(pid), socket_(socket), output_(output) {}
  bool reap(double timeout_s);
  pid_t pid_;
  int socket_;
  int output_;
  bool ended_ = false;
  int status_ = 0;
};

}  // namespace worker
}  // namespace handoff::device
