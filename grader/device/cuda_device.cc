// Tested by cuda_device_test.cc.
//
// CudaDevice is the parent's half of a GPU: it turns each call of Device into one request to the worker process
// (cuda_worker.h), waits a limited time, and decides what to do about a worker that is late, gone or wrong. It never
// calls the driver.
//
// After a hang or a fault there is no worker; the next load() starts one. Calls in between are answered with an error
// that says so.
#include "grader/device/cuda_device.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "grader/device/cuda_worker.h"
#include "grader/device/device.h"

namespace handoff::device {
namespace {

using worker::Answer;
using worker::MessageReader;
using worker::MessageWriter;
using worker::Op;
using worker::Transfer;

// Seconds. Opening a GPU that no process holds initialises it; a large module is compiled by the driver.
constexpr double kHelloPatience = 30;
constexpr double kLoadPatience = 120;
constexpr double kPatience = 30;
constexpr uint64_t kSmallReply = uint64_t{1} << 20;  // no answer without bulk data is as long

// "8.0 s"
std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", seconds);
  return text;
}

std::string sm(int capability) { return "sm_" + std::to_string(capability); }

// Why code for the PTX's .target cannot run on a GPU of this capability, as one line; empty where it can or says no
// target. PTX ISA, ".target": sm_NNa runs on that architecture alone, sm_NNf on later ones of its family (the same
// major number), plain PTX on any later one, a plain cubin on later ones of the same major number.
std::string wrong_target(const ModuleImage& image, int capability) {
  size_t at = image.ptx.find("\n.target");
  if (at == std::string::npos) return {};
  at = image.ptx.find("sm_", at);
  if (at == std::string::npos) return {};
  size_t end = at + 3;
  int needs = 0;
  for (; end < image.ptx.size() && std::isdigit(static_cast<unsigned char>(image.ptx[end])) != 0 && end < at + 7;
       ++end) {
    needs = needs * 10 + (image.ptx[end] - '0');
  }
  const char suffix = end < image.ptx.size() ? image.ptx[end] : ' ';
  const bool same_major = needs / 10 == capability / 10;
  bool runs = capability >= needs;
  if (suffix == 'a') {
    runs = capability == needs;
  } else if (suffix == 'f' || !image.cubin.empty()) {
    runs = runs && same_major;
  }
  if (runs) return {};
  const std::string target = sm(needs) + (suffix == 'a' || suffix == 'f' ? std::string(1, suffix) : "");
  return "this GPU is " + sm(capability) + "; the module is for " + target;
}

class CudaDevice final : public GpuDevice {
 public:
  CudaDevice(std::vector<std::string> worker_arguments, int ordinal)
      : worker_arguments_(std::move(worker_arguments)), ordinal_(ordinal) {}

  // Starts a worker and opens the GPU. On an error there is no worker.
  Error connect() {
    std::string why;
    worker_ = worker::WorkerProcess::start(worker_arguments_, &why);
    if (worker_ == nullptr) return {why};
    MessageWriter request = begin(Op::Hello);
    request.i32(ordinal_);
    Exchange opened = exchange("opening", request, kHelloPatience, kSmallReply);
    if (opened.ending != Ending::Ok) {
      worker_.reset();
      return {opened.message};
    }
    MessageReader fields = opened.fields();
    name_ = fields.text();
    capability_ = fields.i32();
    driver_version_ = fields.i32();
    return complete(fields);
  }

  int driver_version() const { return driver_version_; }

  std::string_view kind() const override { return "cuda"; }
  std::string name() const override { return name_; }
  int compute_capability() const override { return capability_; }

  // tcgen05 is in the data-centre Blackwells (sm_100, sm_103) and Thor (sm_101, renamed sm_110), not in sm_120: PTX
  // ISA, tcgen05, "Target ISA Notes".
  bool has_tcgen05() const override {
    return capability_ == 100 || capability_ == 101 || capability_ == 103 || capability_ == 110;
  }

  Error load(const ModuleImage& image) override {
    if (std::string wrong = wrong_target(image, capability_); !wrong.empty()) return {wrong};
    MessageWriter request = begin(Op::Load);
    request.text(image.name).text(image.ptx).text(image.cubin);
    // A worker that died since its last answer is replaced once.
    for (int attempt = 0; attempt < 2; ++attempt) {
      if (worker_ == nullptr) {
        if (Error error = connect()) return error;
      }
      const Exchange loaded = exchange("load", request, kLoadPatience, kSmallReply);
      if (loaded.ending == Ending::Ok) return {};
      if (loaded.ending != Ending::Lost || attempt == 1) return {loaded.message};
    }
    return {};
  }

  Error find_kernel(std::string_view name, KernelInfo* info) override {
    MessageWriter request = begin(Op::FindKernel);
    request.text(name);
    Exchange found = exchange("find_kernel", request, kPatience, kSmallReply);
    if (found.ending != Ending::Ok) return {found.message};
    MessageReader fields = found.fields();
    info->registers = fields.u32();
    info->static_smem = fields.u32();
    info->param_bytes = fields.u32();
    info->param_sizes.clear();
    for (uint32_t left = fields.u32(); left > 0 && fields.ok(); --left) info->param_sizes.push_back(fields.u32());
    return complete(fields);
  }

  Error allocate(size_t bytes, DevicePtr* out) override {
    MessageWriter request = begin(Op::Allocate);
    request.u64(bytes);
    Exchange done = exchange("allocate", request, kPatience, kSmallReply);
    if (done.ending != Ending::Ok) return {done.message};
    MessageReader fields = done.fields();
    *out = fields.u64();
    return complete(fields);
  }

  Error free(DevicePtr p) override {
    MessageWriter request = begin(Op::Free);
    request.u64(p);
    return {exchange("free", request, kPatience, kSmallReply).message};
  }

  Error write(DevicePtr dst, std::span<const std::byte> bytes) override {
    MessageWriter request = begin(Op::Write);
    request.u64(dst).bytes(bytes);
    return {exchange("write", request, kPatience, kSmallReply).message};
  }

  Error read(std::span<std::byte> out, DevicePtr src) override {
    MessageWriter request = begin(Op::Read);
    request.u64(src).u64(out.size());
    return copy_in("read", request, out);
  }

  Error read_symbol(std::string_view name, std::span<std::byte> out) override {
    MessageWriter request = begin(Op::ReadSymbol);
    request.text(name).u64(out.size());
    return copy_in("read_symbol", request, out);
  }

  Error encode_tensor_map(const TensorMapArgs& args, std::array<std::byte, 128>* out) override {
    MessageWriter request = begin(Op::EncodeTensorMap);
    worker::write_tensor_map_args(request, args);
    return copy_in("encode_tensor_map", request, *out);
  }

  Error occupancy(std::string_view kernel, uint32_t threads, uint32_t dynamic_smem, Occupancy* out) override {
    MessageWriter request = begin(Op::Occupancy);
    request.text(kernel).u32(threads).u32(dynamic_smem);
    Exchange done = exchange("occupancy", request, kPatience, kSmallReply);
    if (done.ending != Ending::Ok) return {done.message};
    MessageReader fields = done.fields();
    out->multiprocessors = fields.u32();
    out->blocks = fields.u32();
    return complete(fields);
  }

  Error copy(DevicePtr dst, DevicePtr src, size_t bytes, double* seconds) override {
    MessageWriter request = begin(Op::CopyOnDevice);
    request.u64(dst).u64(src).u64(bytes);
    Exchange done = exchange("copy", request, kPatience, kSmallReply);
    if (done.ending != Ending::Ok) return {done.message};
    MessageReader fields = done.fields();
    *seconds = fields.f64();
    return complete(fields);
  }

  LaunchResult launch(std::string_view kernel, const LaunchConfig& config, std::span<const Argument> args) override {
    MessageWriter request = begin(Op::Launch);
    request.text(kernel);
    for (const Dim3* extent : {&config.grid, &config.block, &config.cluster}) {
      request.u32(extent->x).u32(extent->y).u32(extent->z);
    }
    request.u32(config.dynamic_smem).u32(static_cast<uint32_t>(args.size()));
    for (const Argument& argument : args) request.bytes(argument.bytes());

    Exchange ran = exchange("launch", request, config.timeout_s, kSmallReply);
    LaunchResult result;
    result.message = std::move(ran.message);
    result.output = std::move(ran.output);
    switch (ran.ending) {
      case Ending::Ok: {
        result.output = worker_->take_output();
        MessageReader fields = ran.fields();
        result.seconds = fields.f64();
        result.message = complete(fields).message;
        result.status = result.message.empty() ? LaunchResult::Status::Ok : LaunchResult::Status::Error;
        break;
      }
      case Ending::Refused:
      case Ending::Lost:
        result.status = LaunchResult::Status::Error;
        break;
      case Ending::Fault:
        result.status = LaunchResult::Status::Fault;
        break;
      case Ending::Late:
        result.status = LaunchResult::Status::Hang;
        result.message = "the kernel did not finish within " + seconds_text(config.timeout_s) + " and was killed";
        break;
    }
    return result;
  }

 private:
  enum class Ending : uint8_t {
    Ok,
    Refused,  // the worker said no and lives
    Fault,    // the context is lost
    Late,     // no answer in time
    Lost,     // the worker is gone or does not speak the protocol
  };

  struct Exchange {
    Ending ending = Ending::Lost;
    std::string message;  // empty when Ok
    std::string output;   // what a worker that is no more had printed
    std::vector<std::byte> reply;

    // The fields after the answer's beginning.
    MessageReader fields() const {
      MessageReader reader(reply);
      reader.u8();
      reader.text();
      return reader;
    }
  };

  static MessageWriter begin(Op op) {
    MessageWriter writer;
    writer.u8(static_cast<uint8_t>(op));
    return writer;
  }

  // One request and its answer. Whatever way it ends, a worker that cannot be used again is gone afterwards.
  Exchange exchange(const std::string& verb, const MessageWriter& request, double patience_s, uint64_t max_reply) {
    Exchange result;
    if (worker_ == nullptr) {
      result.ending = Ending::Refused;
      result.message = "the GPU was restarted after " + why_restarted_ + ": load the module again";
      return result;
    }
    switch (worker_->call(request, &result.reply, max_reply, patience_s)) {
      case Transfer::Done: {
        MessageReader reader(result.reply);
        const auto kind = static_cast<Answer>(reader.u8());
        result.message = reader.text();
        if (!reader.ok() || kind < Answer::Ok || kind > Answer::Fault ||
            (kind == Answer::Ok) != result.message.empty()) {
          return drop(Ending::Lost, "the GPU worker gave an answer that makes no sense to `" + verb + "` and was ended",
                      "a wrong answer", &result);
        }
        if (kind == Answer::Fault) return drop(Ending::Fault, result.message, "a fault", &result);
        result.ending = kind == Answer::Ok ? Ending::Ok : Ending::Refused;
        return result;
      }
      case Transfer::TimedOut:
        return drop(Ending::Late, "the GPU did not answer `" + verb + "` within " + seconds_text(patience_s), "a hang",
                    &result);
      case Transfer::Closed:
        return drop(Ending::Lost, "the GPU worker " + worker_->how_it_ended() + " during `" + verb + "`",
                    "its worker's end", &result);
      case Transfer::Garbage:
        return drop(Ending::Lost, "the GPU worker sent something else than an answer to `" + verb + "` and was ended",
                    "a wrong answer", &result);
    }
    return result;
  }

  // Ends the worker, keeping what it had printed.
  Exchange drop(Ending ending, std::string message, const char* restarted_after, Exchange* result) {
    result->ending = ending;
    result->message = std::move(message);
    worker_->kill();
    result->output = worker_->take_output();
    worker_.reset();
    why_restarted_ = restarted_after;
    return std::move(*result);
  }

  // No error when every field of an answer was there; else the worker is ended.
  Error complete(const MessageReader& fields) {
    if (fields.ok()) return {};
    Exchange ended;
    return {drop(Ending::Lost, "the GPU worker gave an answer that ends early and was ended", "a wrong answer", &ended)
                .message};
  }

  Error copy_in(const char* verb, const MessageWriter& request, std::span<std::byte> out) {
    Exchange done = exchange(verb, request, kPatience, kSmallReply + out.size());
    if (done.ending != Ending::Ok) return {done.message};
    MessageReader fields = done.fields();
    const std::span<const std::byte> bytes = fields.bytes();
    if (bytes.size() == out.size()) {
      std::copy(bytes.begin(), bytes.end(), out.begin());
      return complete(fields);
    }
    return {drop(Ending::Lost,
                 "the GPU worker answered `" + std::string(verb) + "` with " + std::to_string(bytes.size()) + " of " +
                     std::to_string(out.size()) + " bytes and was ended",
                 "a wrong answer", &done)
                .message};
  }

  std::vector<std::string> worker_arguments_;
  int ordinal_;
  std::unique_ptr<worker::WorkerProcess> worker_;
  std::string why_restarted_;
  std::string name_;
  int capability_ = 0;
  int driver_version_ = 0;
};

std::unique_ptr<CudaDevice> connect(const std::vector<std::string>& worker_arguments, int ordinal, std::string* why) {
  if (!worker::can_serve()) {
    *why = "no GPU: this program cannot run the GPU worker (its main does not call run_cuda_worker_if_asked)";
    return nullptr;
  }
  auto device = std::make_unique<CudaDevice>(worker_arguments, ordinal);
  if (Error error = device->connect()) {
    *why = error.message;
    return nullptr;
  }
  why->clear();
  return device;
}

// "580.65.06" of "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  …"; empty where the file is missing.
std::string kernel_driver_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    const bool number = word.find_first_not_of("0123456789.") == std::string::npos;
    if (number && word.find('.') != std::string::npos) return word;
  }
  return {};
}

}  // namespace

std::string cuda_driver_version() {
  std::string why;
  const auto device = connect({std::string(worker::kWorkerFlag)}, 0, &why);
  if (device == nullptr) return {};
  // 13000 is CUDA 13.0, 12080 is CUDA 12.8 (cuDriverGetVersion).
  const int version = device->driver_version();
  std::string text = "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  if (const std::string kernel = kernel_driver_version(); !kernel.empty()) text += " (driver " + kernel + ")";
  return text;
}

std::unique_ptr<GpuDevice> make_cuda_device_with_worker(const std::vector<std::string>& worker_arguments, int ordinal,
                                                        std::string* why) {
  return connect(worker_arguments, ordinal, why);
}

std::unique_ptr<GpuDevice> make_gpu_device(int ordinal, std::string* why) {
  return connect({std::string(worker::kWorkerFlag)}, ordinal, why);
}

std::unique_ptr<Device> make_cuda_device(int ordinal, std::string* why) { return make_gpu_device(ordinal, why); }

}  // namespace handoff::device
