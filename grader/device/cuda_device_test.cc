// Tests of the GPU worker and of CudaDevice. Those of the protocol need no GPU: this program starts itself as a worker
// that misbehaves. Those of the GPU itself are skipped, with the reason, where there is none.
#include "grader/device/cuda_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "grader/device/cuda_driver.h"
#include "grader/device/cuda_worker.h"
#include "grader/device/device.h"

namespace handoff::device {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using worker::Answer;
using worker::MessageReader;
using worker::MessageWriter;
using worker::Op;
using worker::Transfer;
using Status = LaunchResult::Status;
using namespace std::chrono_literals;

constexpr std::string_view kFakeWorker = "--fake-worker";

// A worker without a GPU: obliging, except at the one thing that `mode` names.
MessageWriter fake_answer(const std::string& mode, int socket, MessageReader request) {
  const auto op = static_cast<Op>(request.u8());
  if (mode == "exits at hello") ::_exit(3);
  if (mode == "refuses hello") return worker::answer(Answer::Error, "no GPU: it is elsewhere");
  if (op == Op::Hello) {
    if (mode == "short hello") return worker::answer(Answer::Ok).text("Fake GPU");
    return worker::answer(Answer::Ok).text("Fake GPU").i32(90).i32(13000);
  }
  if (op == Op::Allocate && mode == "says ok with a message") return worker::answer(Answer::Ok, "well").u64(512);
  if (op == Op::Allocate) return worker::answer(Answer::Ok).u64(512);
  if (op == Op::Read) {
    request.u64();
    const uint64_t count = request.u64();
    return worker::answer(Answer::Ok).bytes(std::vector<std::byte>(mode == "reads less" ? count / 2 : count));
  }
  if (op == Op::EncodeTensorMap) {
    async::TensorMapImage image{};
    const std::string problem = async::encode_tiled(worker::read_tensor_map_args(request), &image);
    if (!problem.empty() || !request.ok()) return worker::answer(Answer::Error, "refused: " + problem);
    return worker::answer(Answer::Ok).bytes(std::span(image).first(mode == "reads less" ? 64 : 128));
  }
  if (op == Op::Occupancy && mode == "obliging") {
    const auto name = static_cast<uint32_t>(request.text().size());
    const uint32_t threads = request.u32(), dynamic_smem = request.u32();
    return worker::answer(Answer::Ok).u32(100 * name + threads).u32(dynamic_smem);
  }
  if (op == Op::CopyOnDevice && mode == "obliging") {
    const uint64_t destination = request.u64(), source = request.u64(), count = request.u64();
    return worker::answer(Answer::Ok).f64(static_cast<double>(destination - source) + static_cast<double>(count) / 64);
  }
  if (op != Op::Launch) return worker::answer(Answer::Ok);
  if (mode == "hangs") {
    std::puts("about to hang");
    std::fflush(stdout);
    while (true) ::pause();
  }
  if (mode == "dies") ::kill(::getpid(), SIGKILL);
  if (mode == "faults") return worker::answer(Answer::Fault, "stopped by an error: CUDA_ERROR_MADE_UP (text)");
  if (mode == "answers nothing") return {};
  if (mode == "answers early end") return worker::answer(Answer::Ok);
  if (mode == "sends garbage") {
    const std::string noise(64, 'x');
    if (::send(socket, noise.data(), noise.size(), 0) != 64) ::_exit(4);
  }
  if (mode == "sends too much") return worker::answer(Answer::Ok).bytes(std::vector<std::byte>(2 << 20));
  if (mode == "prints 3 MiB") std::fputs(std::string(3 << 20, 'a').c_str(), stdout);
  if (mode == "prints") std::puts("hello from the device");
  return worker::answer(Answer::Ok).f64(0.25);
}

// gtest_main owns main(), so a process that was started as a worker is turned into one before it. See cuda_worker.h.
[[maybe_unused]] const bool kWorkerBeforeMain = [] {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string word; std::getline(file, word, '\0');) arguments.push_back(word);
  if (arguments.size() == 4 && arguments[1] == kFakeWorker) {
    const std::string mode = arguments[2];
    const int socket = std::stoi(arguments[3]);
    ::_exit(worker::serve(socket, [&](MessageReader request) { return fake_answer(mode, socket, request); }));
  }
  return serve_as_cuda_worker_before_main();
}();

std::unique_ptr<GpuDevice> fake_device(const std::string& mode, std::string* why) {
  return make_cuda_device_with_worker({std::string(kFakeWorker), mode}, 0, why);
}

// A device on a fake worker, with a module loaded.
std::unique_ptr<GpuDevice> loaded_fake(const std::string& mode) {
  std::string why;
  std::unique_ptr<GpuDevice> device = fake_device(mode, &why);
  EXPECT_NE(device, nullptr) << why;
  if (device != nullptr) {
    EXPECT_EQ(device->load({"k.cu", "ptx", ""}).message, "");
  }
  return device;
}

LaunchResult launch_within(Device& device, double timeout_s) {
  LaunchConfig config;
  config.timeout_s = timeout_s;
  return device.launch("k", config, {});
}

TEST(Message, FieldsComeBackInOrder) {
  MessageWriter writer;
  const std::vector<std::byte> bytes = {std::byte{1}, std::byte{2}};
  writer.u8(7).u32(0xdeadbeef).i32(-5).u64(1ULL << 40).f64(0.125).bytes(bytes).text("text");
  MessageReader reader(writer.message());
  EXPECT_EQ(reader.u8(), 7);
  EXPECT_EQ(reader.u32(), 0xdeadbeef);
  EXPECT_EQ(reader.i32(), -5);
  EXPECT_EQ(reader.u64(), 1ULL << 40);
  EXPECT_EQ(reader.f64(), 0.125);
  const std::span<const std::byte> read = reader.bytes();
  EXPECT_EQ(std::vector<std::byte>(read.begin(), read.end()), bytes);
  EXPECT_EQ(reader.text(), "text");
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(reader.u8(), 0);
  EXPECT_FALSE(reader.ok());
}

TEST(Message, ALengthBeyondTheEndIsNoField) {
  MessageWriter writer;
  writer.u64(UINT64_MAX).u32(1);
  MessageReader reader(writer.message());
  EXPECT_EQ(reader.text(), "");
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.u32(), 0u) << "fields after a missing one must be empty too";
}

class FrameTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0); }
  void TearDown() override {
    for (int end : ends_) {
      if (end >= 0) ::close(end);
    }
  }
  int ends_[2] = {-1, -1};
};

TEST_F(FrameTest, LargeFramesPassWhole) {
  std::vector<std::byte> sent(8 << 20);
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 7);
  Transfer sending = Transfer::Garbage;
  std::thread sender([&] { sending = worker::send_frame(ends_[0], sent, 10); });
  std::vector<std::byte> received;
  EXPECT_EQ(worker::receive_frame(ends_[1], &received, sent.size(), 10), Transfer::Done);
  sender.join();
  EXPECT_EQ(sending, Transfer::Done);
  EXPECT_TRUE(received == sent);
}

TEST_F(FrameTest, WaitsEndInTime) {
  std::vector<std::byte> message;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(worker::receive_frame(ends_[1], &message, 100, 0.1), Transfer::TimedOut);
  EXPECT_EQ(::send(ends_[0], "WDF", 3, 0), 3) << "part of a header";
  EXPECT_EQ(worker::receive_frame(ends_[1], &message, 100, 0.1), Transfer::TimedOut);
  EXPECT_EQ(worker::send_frame(ends_[0], std::vector<std::byte>(8 << 20), 0.1), Transfer::TimedOut) << "nobody reads";
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

TEST_F(FrameTest, OtherBytesAreGarbageAndALostPeerIsClosed) {
  std::vector<std::byte> message;
  EXPECT_EQ(::send(ends_[0], "0123456789abcdef", 16, 0), 16);
  EXPECT_EQ(worker::receive_frame(ends_[1], &message, 100, 1), Transfer::Garbage);
  EXPECT_EQ(worker::send_frame(ends_[0], std::vector<std::byte>(101), 1), Transfer::Done);
  EXPECT_EQ(worker::receive_frame(ends_[1], &message, 100, 1), Transfer::Garbage) << "longer than allowed";
  ::close(ends_[0]);
  ends_[0] = -1;
  std::vector<std::byte> rest(101);
  EXPECT_EQ(::recv(ends_[1], rest.data(), rest.size(), 0), 101);
  EXPECT_EQ(worker::receive_frame(ends_[1], &message, 100, 1), Transfer::Closed);
  EXPECT_EQ(worker::send_frame(ends_[1], {}, 1), Transfer::Closed);
}

TEST(Driver, AMissingLibraryIsNamed) {
  driver::Api api;
  std::string why;
  EXPECT_FALSE(driver::open("libcuda-of-no-machine.so.1", &api, &why));
  EXPECT_EQ(why, "no GPU: libcuda-of-no-machine.so.1 was not found (the NVIDIA driver provides it)");
}

TEST(Driver, ALibraryThatIsNoDriverIsNamedWithWhatItLacks) {
  driver::Api api;
  std::string why;
  EXPECT_FALSE(driver::open("libc.so.6", &api, &why));
  EXPECT_THAT(why, AllOf(StartsWith("no GPU: libc.so.6 is too old: it lacks cuInit, "), HasSubstr("cuLaunchKernelEx")));
}

TEST(MakeCudaDevice, SaysWhyThereIsNoGpu) {
  std::string why;
  EXPECT_EQ(make_cuda_device(9999, &why), nullptr);
  EXPECT_THAT(why, AllOf(StartsWith("no GPU"), Not(HasSubstr("\n"))));
}

TEST(MakeCudaDevice, AWorkerThatEndsOrRefusesIsNoDevice) {
  std::string why;
  EXPECT_EQ(fake_device("exits at hello", &why), nullptr);
  EXPECT_THAT(why, HasSubstr("ended with status 3"));
  EXPECT_EQ(fake_device("refuses hello", &why), nullptr);
  EXPECT_EQ(why, "no GPU: it is elsewhere");
  EXPECT_EQ(fake_device("short hello", &why), nullptr);
  EXPECT_THAT(why, HasSubstr("ends early"));
}

TEST(CudaDevice, TellsWhatTheWorkerTold) {
  const auto device = loaded_fake("obliging");
  EXPECT_EQ(device->kind(), "cuda");
  EXPECT_EQ(device->name(), "Fake GPU");
  EXPECT_EQ(device->compute_capability(), 90);
  EXPECT_FALSE(device->has_tcgen05());
  const LaunchResult result = launch_within(*device, 5);
  EXPECT_EQ(result.status, Status::Ok) << result.message;
  EXPECT_EQ(result.seconds, 0.25);
  EXPECT_EQ(result.output, "");
}

TEST(CudaDevice, AModuleForAnotherGpuIsRefusedWithBothNames) {
  const auto device = loaded_fake("obliging");
  const auto message = [&](const std::string& target, const std::string& cubin = "") {
    return device->load({"k.cu", "//\n.version 9.0\n.target " + target + "\n.address_size 64\n", cubin}).message;
  };
  EXPECT_EQ(message("sm_100a"), "this GPU is sm_90; the module is for sm_100a");
  EXPECT_EQ(message("sm_100f"), "this GPU is sm_90; the module is for sm_100f");
  EXPECT_EQ(message("sm_80a"), "this GPU is sm_90; the module is for sm_80a");
  EXPECT_EQ(message("sm_80", "cubin"), "this GPU is sm_90; the module is for sm_80");
  EXPECT_EQ(message("sm_90a"), "");
  EXPECT_EQ(message("sm_90"), "");
  EXPECT_EQ(message("sm_80, debug"), "") << "plain PTX is compiled for any later GPU";
}

TEST(CudaDevice, AHangIsKilledInTimeAndTheNextLoadWorks) {
  const auto device = loaded_fake("hangs");
  const auto start = std::chrono::steady_clock::now();
  const LaunchResult result = launch_within(*device, 0.3);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 2500ms);
  EXPECT_EQ(result.status, Status::Hang);
  EXPECT_EQ(result.message, "the kernel did not finish within 0.3 s and was killed");
  EXPECT_EQ(result.output, "about to hang\n");
  DevicePtr p = 0;
  EXPECT_EQ(device->allocate(16, &p).message, "the GPU was restarted after a hang: load the module again");
  EXPECT_EQ(launch_within(*device, 1).status, Status::Error);
  EXPECT_EQ(device->load({"k.cu", "ptx", ""}).message, "");
  EXPECT_EQ(device->allocate(16, &p).message, "");
  EXPECT_EQ(p, 512u);
}

TEST(CudaDevice, AFaultRestartsTheWorker) {
  const auto device = loaded_fake("faults");
  const LaunchResult result = launch_within(*device, 5);
  EXPECT_EQ(result.status, Status::Fault);
  EXPECT_THAT(result.message, HasSubstr("CUDA_ERROR_MADE_UP"));
  DevicePtr p = 0;
  EXPECT_THAT(device->allocate(16, &p).message, HasSubstr("after a fault"));
  EXPECT_EQ(device->load({"k.cu", "ptx", ""}).message, "");
}

TEST(CudaDevice, AWorkerThatDiesOrTalksNonsenseIsAnErrorAndReplaced) {
  const std::pair<const char*, const char*> cases[] = {
      {"dies", "the GPU worker was ended by signal 9 (Killed) during `launch`"},
      {"answers nothing", "makes no sense"},
      {"answers early end", "ends early"},
      {"sends garbage", "something else than an answer"},
      {"sends too much", "something else than an answer"},
  };
  for (const auto& [mode, expected] : cases) {
    SCOPED_TRACE(mode);
    const auto device = loaded_fake(mode);
    const LaunchResult result = launch_within(*device, 5);
    EXPECT_EQ(result.status, Status::Error);
    EXPECT_THAT(result.message, HasSubstr(expected));
    EXPECT_EQ(device->load({"k.cu", "ptx", ""}).message, "");
  }
}

TEST(CudaDevice, WrongAnswersToOtherCallsAreErrors) {
  std::byte out[8];
  EXPECT_THAT(loaded_fake("reads less")->read(out, 512).message, HasSubstr("4 of 8 bytes"));
  EXPECT_EQ(loaded_fake("obliging")->read(out, 512).message, "");
  DevicePtr p = 0;
  EXPECT_THAT(loaded_fake("says ok with a message")->allocate(8, &p).message, HasSubstr("makes no sense"));
}

TEST(GpuDevice, ArgumentsReachTheWorkerAndAnswersComeBack) {
  const auto device = loaded_fake("obliging");
  GpuDevice::Occupancy occupancy;
  EXPECT_EQ(device->occupancy("kernel", 32, 4096, &occupancy).message, "");
  EXPECT_EQ(occupancy.multiprocessors, 632U);
  EXPECT_EQ(occupancy.blocks, 4096U);
  double seconds = 0;
  EXPECT_EQ(device->copy(4096, 1024, 16, &seconds).message, "");
  EXPECT_EQ(seconds, 3072.25);
}

TEST(GpuDevice, WrongAnswersAreErrors) {
  GpuDevice::Occupancy occupancy;
  EXPECT_THAT(loaded_fake("reads less")->occupancy("kernel", 32, 0, &occupancy).message, HasSubstr("ends early"));
  double seconds = 0;
  EXPECT_THAT(loaded_fake("reads less")->copy(512, 512, 8, &seconds).message, HasSubstr("ends early"));
}

// Every argument differs from every other, so that none can change places on the way.
TEST(CudaDevice, TensorMapArgumentsReachTheWorker) {
  TensorMapArgs args;
  args.tensor_data_type = TensorDataType::Bfloat16;
  args.tensor_rank = 5;
  args.global_address = 0x7f0000000110;
  args.global_dim = {101, 102, 103, 104, 105};
  args.global_strides = {16, 32, 48, 64};
  args.box_dim = {8, 9, 10, 11, 12};
  args.element_strides = {1, 2, 3, 4, 5};
  args.swizzle = TensorSwizzle::B64;
  args.l2_promotion = TensorL2Promotion::L2_256B;
  args.oob_fill = TensorOobFill::NanRequestZeroFma;
  std::array<std::byte, 128> expected{}, got{};
  ASSERT_EQ(async::encode_tiled(args, &expected), "");
  const auto device = loaded_fake("obliging");
  EXPECT_EQ(device->encode_tensor_map(args, &got).message, "");
  EXPECT_EQ(got, expected);
  args.box_dim[1] = 300;
  EXPECT_THAT(device->encode_tensor_map(args, &got).message, HasSubstr("boxDim[1] is 300"));
  EXPECT_EQ(got, expected) << "unchanged on an error";
  args.box_dim[1] = 9;
  EXPECT_THAT(loaded_fake("reads less")->encode_tensor_map(args, &got).message, HasSubstr("64 of 128 bytes"));
}

TEST(CudaDevice, OutputIsOfOneLaunchAndBounded) {
  const auto device = loaded_fake("prints");
  EXPECT_EQ(launch_within(*device, 5).output, "hello from the device\n");
  EXPECT_EQ(launch_within(*device, 5).output, "hello from the device\n");
  const LaunchResult flood = launch_within(*loaded_fake("prints 3 MiB"), 5);
  EXPECT_LT(flood.output.size(), (1u << 20) + 100);
  EXPECT_THAT(flood.output.substr(1 << 20), HasSubstr("3145728 bytes were printed"));
}

TEST(WorkerProcess, KillEndsTheProcess) {
  std::string why;
  pid_t pid = 0;
  {
    const auto process = worker::WorkerProcess::start({std::string(kFakeWorker), "obliging"}, &why);
    ASSERT_NE(process, nullptr) << why;
    pid = process->pid();
    EXPECT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_EQ(::kill(pid, 0), -1) << "the destructor ends and reaps it";
}

// Checked with ptxas for sm_90.
constexpr const char* kPtx = R"ptx(
.version 8.0
.target sm_90
.address_size 64

.extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 arguments);
.global .align 8 .f64 scale = 0d4004000000000000;
.const .align 4 .u32 limit = 42;
.global .align 1 .b8 hello[10] = {104, 101, 108, 108, 111, 32, 37, 100, 10, 0};
.extern .shared .align 16 .b8 dynamic[];

.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
  .reg .pred %p;
  .reg .f32 %f<3>;
  .reg .b32 %r<5>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  ld.param.u64 %rd3, [c];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r2, %r2, %r3, %r4;
  setp.ge.u32 %p, %r2, %r1;
  @%p bra done;
  mul.wide.u32 %rd4, %r2, 4;
  add.s64 %rd1, %rd1, %rd4;
  add.s64 %rd2, %rd2, %rd4;
  add.s64 %rd3, %rd3, %rd4;
  ld.global.f32 %f1, [%rd1];
  ld.global.f32 %f2, [%rd2];
  add.f32 %f1, %f1, %f2;
  st.global.f32 [%rd3], %f1;
done:
  ret;
}

.visible .entry forever(.param .u64 flag)
{
  .reg .pred %p;
  .reg .b32 %r;
  .reg .b64 %rd;
  ld.param.u64 %rd, [flag];
again:
  ld.volatile.global.u32 %r, [%rd];
  setp.ne.u32 %p, %r, 1;
  @%p bra again;
  ret;
}

.visible .entry traps()
{
  trap;
  ret;
}

.visible .entry stores_to(.param .u64 address)
{
  .reg .b64 %rd;
  ld.param.u64 %rd, [address];
  st.global.u32 [%rd], 1;
  ret;
}

.visible .entry says(.param .u32 value)
{
  .local .align 8 .b8 arguments[8];
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  ld.param.u32 %r1, [value];
  st.local.u32 [arguments], %r1;
  mov.u64 %rd1, hello;
  cvta.global.u64 %rd1, %rd1;
  mov.u64 %rd2, arguments;
  cvta.local.u64 %rd2, %rd2;
  {
    .param .b64 format_slot;
    .param .b64 arguments_slot;
    .param .b32 result_slot;
    st.param.b64 [format_slot], %rd1;
    st.param.b64 [arguments_slot], %rd2;
    call.uni (result_slot), vprintf, (format_slot, arguments_slot);
    ld.param.b32 %r2, [result_slot];
  }
  ret;
}

.visible .entry swaps_neighbours(.param .u64 out)
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  shl.b32 %r2, %r1, 2;
  mov.u32 %r3, dynamic;
  add.u32 %r4, %r3, %r2;
  st.shared.u32 [%r4+102272], %r1;
  bar.sync 0;
  xor.b32 %r2, %r2, 4;
  add.u32 %r4, %r3, %r2;
  ld.shared.u32 %r5, [%r4+102272];
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], %r5;
  ret;
}

.visible .entry ranks(.param .u64 out)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %cluster_ctarank;
  mov.u32 %r2, %ctaid.x;
  mul.wide.u32 %rd2, %r2, 4;
  add.s64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], %r1;
  ret;
}
)ptx";

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    gpu_ = make_gpu_device(0, &why);
    if (gpu_ == nullptr) GTEST_SKIP() << why;
    if (gpu_->compute_capability() < 90) GTEST_SKIP() << gpu_->name() << " is older than sm_90";
    load();
  }

  void load() { ASSERT_EQ(gpu_->load({"kernels.ptx", kPtx, ""}).message, ""); }

  template <class T>
  DevicePtr allocate(size_t count) {
    DevicePtr p = 0;
    EXPECT_EQ(gpu_->allocate(count * sizeof(T), &p).message, "");
    EXPECT_EQ(p % 512, 0u);
    return p;
  }

  template <class T>
  std::vector<T> read(DevicePtr p, size_t count) {
    std::vector<T> values(count);
    EXPECT_EQ(gpu_->read(std::as_writable_bytes(std::span(values)), p).message, "");
    return values;
  }

  static LaunchConfig shape(uint32_t grid, uint32_t block, uint32_t cluster = 1, uint32_t dynamic_smem = 0) {
    LaunchConfig config;
    config.grid.x = grid;
    config.block.x = block;
    config.cluster.x = cluster;
    config.dynamic_smem = dynamic_smem;
    return config;
  }

  // Loads, adds two vectors and checks the sum: what must work after whatever came before.
  void expect_addition_works() {
    constexpr uint32_t kCount = 1000;
    ASSERT_NO_FATAL_FAILURE(load());
    std::vector<float> a(kCount);
    std::vector<float> b(kCount);
    std::iota(a.begin(), a.end(), 0.0F);
    std::iota(b.begin(), b.end(), 0.5F);
    const DevicePtr pa = allocate<float>(kCount);
    const DevicePtr pb = allocate<float>(kCount);
    const DevicePtr pc = allocate<float>(kCount);
    ASSERT_EQ(gpu_->write(pa, std::as_bytes(std::span(a))).message, "");
    ASSERT_EQ(gpu_->write(pb, std::as_bytes(std::span(b))).message, "");
    const Argument arguments[] = {Argument::pointer(pa), Argument::pointer(pb), Argument::pointer(pc),
                                  Argument::value(kCount)};
    const LaunchResult result = gpu_->launch("add", shape(8, 128), arguments);
    ASSERT_EQ(result.status, Status::Ok) << result.message;
    EXPECT_GT(result.seconds, 0);
    EXPECT_LT(result.seconds, 1);
    const std::vector<float> c = read<float>(pc, kCount);
    for (uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(c[i], a[i] + b[i]) << i;
    EXPECT_EQ(gpu_->free(pb).message, "");
    EXPECT_THAT(gpu_->free(pb).message, HasSubstr("not allocated"));
  }

  std::unique_ptr<GpuDevice> gpu_;
};

TEST_F(GpuTest, AddsVectors) {
  expect_addition_works();
  EXPECT_THAT(cuda_driver_version(), StartsWith("CUDA "));
}

TEST_F(GpuTest, AKernelThatNeverEndsIsKilledAndTheNextOneRuns) {
  const DevicePtr flag = allocate<uint32_t>(1);
  LaunchConfig config = shape(1, 32);
  config.timeout_s = 2;
  const Argument arguments[] = {Argument::pointer(flag)};
  const auto start = std::chrono::steady_clock::now();
  const LaunchResult result = gpu_->launch("forever", config, arguments);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 4s);
  EXPECT_EQ(result.status, Status::Hang);
  EXPECT_EQ(result.message, "the kernel did not finish within 2.0 s and was killed");
  expect_addition_works();
}

TEST_F(GpuTest, FaultsAreNamedAndTheNextKernelRuns) {
  LaunchResult result = gpu_->launch("traps", shape(1, 1), {});
  EXPECT_EQ(result.status, Status::Fault);
  EXPECT_THAT(result.message, HasSubstr("CUDA_ERROR_"));
  expect_addition_works();

  const Argument nowhere[] = {Argument::pointer(16)};
  result = gpu_->launch("stores_to", shape(1, 1), nowhere);
  EXPECT_EQ(result.status, Status::Fault);
  EXPECT_THAT(result.message, HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  expect_addition_works();

  const Argument odd[] = {Argument::pointer(allocate<uint32_t>(4) + 1)};
  result = gpu_->launch("stores_to", shape(1, 1), odd);
  EXPECT_EQ(result.status, Status::Fault);
  EXPECT_THAT(result.message, HasSubstr("CUDA_ERROR_MISALIGNED_ADDRESS"));
  expect_addition_works();
}

TEST_F(GpuTest, KernelOutputIsCaptured) {
  for (const int value : {5, 6}) {
    const Argument arguments[] = {Argument::value(value)};
    const LaunchResult result = gpu_->launch("says", shape(2, 1), arguments);
    EXPECT_EQ(result.status, Status::Ok) << result.message;
    const std::string line = "hello " + std::to_string(value) + "\n";
    EXPECT_EQ(result.output, line + line);
  }
}

TEST_F(GpuTest, ReadsModuleVariables) {
  double scale = 0;
  uint32_t limit = 0;
  EXPECT_EQ(gpu_->read_symbol("scale", std::as_writable_bytes(std::span(&scale, 1))).message, "");
  EXPECT_EQ(gpu_->read_symbol("limit", std::as_writable_bytes(std::span(&limit, 1))).message, "");
  EXPECT_EQ(scale, 2.5);
  EXPECT_EQ(limit, 42u);
  EXPECT_EQ(gpu_->read_symbol("scale", std::as_writable_bytes(std::span(&limit, 1))).message,
            "variable `scale` has 8 bytes, not 4");
  EXPECT_EQ(gpu_->read_symbol("absent", std::as_writable_bytes(std::span(&limit, 1))).message,
            "no variable `absent` in kernels.ptx");
}

TEST_F(GpuTest, DynamicSharedMemoryOf100KiB) {
  const DevicePtr out = allocate<uint32_t>(32);
  const Argument arguments[] = {Argument::pointer(out)};
  LaunchResult result = gpu_->launch("swaps_neighbours", shape(1, 32, 1, 100 << 10), arguments);
  ASSERT_EQ(result.status, Status::Ok) << result.message;
  const std::vector<uint32_t> values = read<uint32_t>(out, 32);
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(values[i], i ^ 1);

  result = gpu_->launch("swaps_neighbours", shape(1, 32, 1, 4 << 20), arguments);
  EXPECT_EQ(result.status, Status::Error);
  EXPECT_THAT(result.message, AllOf(HasSubstr("too much shared memory"), HasSubstr("4194304 dynamic")));
}

TEST_F(GpuTest, ClustersHaveTheShapeAskedFor) {
  const DevicePtr out = allocate<uint32_t>(8);
  const Argument arguments[] = {Argument::pointer(out)};
  const LaunchResult result = gpu_->launch("ranks", shape(8, 1, 4), arguments);
  ASSERT_EQ(result.status, Status::Ok) << result.message;
  EXPECT_THAT(read<uint32_t>(out, 8), testing::ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
  EXPECT_EQ(gpu_->launch("ranks", shape(6, 1, 4), arguments).message,
            "kernel `ranks`: the grid 6x1x1 is not a multiple of the cluster 4x1x1");
}

TEST_F(GpuTest, ALaunchThatCannotBeIsRefusedWithTheNumbers) {
  const Argument one[] = {Argument::value(1)};
  EXPECT_EQ(gpu_->launch("says", shape(1, 2048), one).message,
            "kernel `says`: the block 2048x1x1 is too large: at most 1024 threads in x");
  EXPECT_EQ(gpu_->launch("says", shape(0, 32), one).message, "kernel `says`: the grid 0x1x1 is empty");
  EXPECT_THAT(gpu_->launch("absent", shape(1, 1), one).message, StartsWith("no kernel `absent` in kernels.ptx"));
  EXPECT_EQ(gpu_->launch("says", shape(1, 1), one).status, Status::Ok) << "a refusal changes nothing";

  KernelInfo info;
  ASSERT_EQ(gpu_->find_kernel("add", &info).message, "");
  EXPECT_GT(info.registers, 0u);
  EXPECT_EQ(info.static_smem, 0u);
  if (info.param_sizes.empty()) GTEST_SKIP() << "this driver does not tell a kernel's parameters";
  EXPECT_THAT(info.param_sizes, testing::ElementsAre(8, 8, 8, 4));
  EXPECT_EQ(info.param_bytes, 28u);
  EXPECT_EQ(gpu_->launch("says", shape(1, 1), {}).message,
            "kernel `says`: the kernel has 1 parameters (4 bytes), 0 arguments were given");
  const Argument wide[] = {Argument::value(1.0)};
  EXPECT_EQ(gpu_->launch("says", shape(1, 1), wide).message,
            "kernel `says`: parameter 1 has 4 bytes, its argument has 8");
}

TEST_F(GpuTest, TensorMapsAreEncodedByTheDriver) {
  DevicePtr p = 0;
  ASSERT_EQ(gpu_->allocate(4096, &p).message, "");
  TensorMapArgs args;
  args.tensor_data_type = TensorDataType::Float32;
  args.tensor_rank = 2;
  args.global_address = p;
  args.global_dim = {32, 32};
  args.global_strides = {128};
  args.box_dim = {32, 8};
  args.swizzle = TensorSwizzle::B128;
  std::array<std::byte, 128> map{};
  EXPECT_EQ(gpu_->encode_tensor_map(args, &map).message, "");
  const std::array<std::byte, 128> nothing{};
  EXPECT_NE(map, nothing);
  args.box_dim[0] = 64;
  EXPECT_THAT(gpu_->encode_tensor_map(args, &map).message, HasSubstr("boxDim[0] is 64"));
  args.box_dim[0] = 32;
  args.global_strides[0] = 120;
  EXPECT_THAT(gpu_->encode_tensor_map(args, &map).message, HasSubstr("globalStrides[0] is 120"));
}

TEST_F(GpuTest, CopiesStayInsideTheirAllocation) {
  const DevicePtr p = allocate<uint32_t>(4);
  EXPECT_THAT(read<uint32_t>(p, 4), testing::Each(0xffffffffU)) << "what an earlier run left must not be found";
  std::byte out[17];
  EXPECT_EQ(gpu_->read(out, p).message, "read: 17 bytes at offset 0 reach past the allocation of 16 bytes");
  EXPECT_EQ(gpu_->write(p + 8, std::span(out, 9)).message,
            "write: 9 bytes at offset 8 reach past the allocation of 16 bytes");
  ASSERT_NO_FATAL_FAILURE(load());
  EXPECT_THAT(gpu_->read(std::span(out, 1), p).message, StartsWith("read: ")) << "load frees what was allocated";
}

TEST_F(GpuTest, CopiesOnTheDevice) {
  const DevicePtr from = allocate<uint32_t>(1000), to = allocate<uint32_t>(1000);
  std::vector<uint32_t> values(1000);
  std::iota(values.begin(), values.end(), 7U);
  ASSERT_EQ(gpu_->write(from, std::as_bytes(std::span(values))).message, "");
  double seconds = 0;
  ASSERT_EQ(gpu_->copy(to, from, 3996, &seconds).message, "");
  EXPECT_GT(seconds, 0);
  values.back() = 0xffffffffU;
  EXPECT_EQ(read<uint32_t>(to, 1000), values);
  EXPECT_EQ(gpu_->copy(to, from + 8, 4000, &seconds).message,
            "copy on the device: 4000 bytes at offset 8 reach past the allocation of 4000 bytes");
}

TEST_F(GpuTest, TellsHowManyBlocksAreResident) {
  GpuDevice::Occupancy few, many;
  ASSERT_EQ(gpu_->occupancy("add", 1024, 0, &many).message, "");
  EXPECT_GE(many.multiprocessors, 1U);
  EXPECT_GE(many.blocks, 1U);
  ASSERT_EQ(gpu_->occupancy("add", 32, 200 * 1024, &few).message, "");
  EXPECT_EQ(few.multiprocessors, many.multiprocessors);
  EXPECT_EQ(few.blocks, 1U) << "two would need 400 KiB of shared memory";
  EXPECT_THAT(gpu_->occupancy("absent", 32, 0, &few).message, StartsWith("no kernel `absent`"));
}

TEST_F(GpuTest, PtxThatDoesNotCompileShowsTheCompilersMessage) {
  const std::string ptx =
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n  no.such.thing;\n}\n";
  EXPECT_THAT(gpu_->load({"bad.ptx", ptx, ""}).message,
              AllOf(StartsWith("bad.ptx cannot be loaded: "), HasSubstr("line 6"), Not(HasSubstr("\n"))));
  expect_addition_works();
}

}  // namespace
}  // namespace handoff::device
