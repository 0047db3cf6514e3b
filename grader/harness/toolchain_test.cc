// These tests run nvcc; where there is none they are skipped, except those of finding it.
#include "grader/harness/toolchain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace handoff::harness {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kKernel = R"(#include "course_part.cuh"
namespace { __device__ int counter; }
static __device__ __noinline__ int twice(int x) { return x + atomicAdd(&counter, x); }
extern "C" __global__ void add(int* out) {
  __shared__ int tile[64];
  tile[threadIdx.x] = course_part(out[threadIdx.x]);
  __syncthreads();
  out[threadIdx.x] = twice(tile[63 - threadIdx.x]);
}
)";

class Compile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "handoff-compile-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    setenv("HANDOFF_CACHE", (folder_ / "cache").c_str(), 1);
    options_.include_dir = folder_ / "include";
    options_.kernel = "add";
    write("include/course_part.cuh",
          "#pragma once\n__device__ __forceinline__ int course_part(int x) { return x * 3; }\n");
    if (!toolchain().found()) GTEST_SKIP() << missing_toolchain_message(toolchain());
  }
  void TearDown() override {
    unsetenv("HANDOFF_CACHE");
    fs::remove_all(folder_);
  }
  static const Toolchain& toolchain() {
    static const Toolchain found = find_toolchain();
    return found;
  }
  fs::path write(const std::string& name, const std::string& text) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  CompileResult compiled(const fs::path& source) const { return compile(toolchain(), source, options_); }

  fs::path folder_;
  CompileOptions options_;
};

TEST_F(Compile, GivesPtxAndResources) {
  const CompileResult result = compiled(write("a/kernel.cu", kKernel));
  ASSERT_TRUE(result.ok) << result.error << result.detail;
  EXPECT_THAT(result.ptx, HasSubstr(".entry add("));
  EXPECT_THAT(result.ptx, HasSubstr(".target sm_100a"));
  EXPECT_GT(result.resources.registers, 0U);
  EXPECT_EQ(result.resources.static_smem, 256U);
  EXPECT_EQ(result.resources.spill_stores, 0U);
  EXPECT_EQ(result.resources.spill_loads, 0U);
  EXPECT_EQ(result.resources.stack, 0U);
  EXPECT_TRUE(result.cubin.empty());
}

// 64 values live at once and 32 registers a thread; a called function with a frame of its own follows in ptxas's log.
constexpr const char* kSpilling = R"(
static __device__ __noinline__ int looked_up(const int* p, int x) {
  volatile int a[20];
  for (int i = 0; i < 20; i++) a[i] = p[i] * x;
  return a[x % 20];
}
extern "C" __global__ void __launch_bounds__(1024, 2) add(int* out, int n) {
  int v[64];
  for (int i = 0; i < 64; i++) v[i] = out[i * n + threadIdx.x];
  for (int k = 0; k < n; k++) {
#pragma unroll
    for (int i = 0; i < 64; i++) v[i] = v[i] * v[(i * 7 + 3) % 64] + k;
  }
  for (int i = 0; i < 64; i++) out[i * n + threadIdx.x] = v[i];
  out[threadIdx.x] += looked_up(out, n);
}
extern "C" __global__ void frame_only(int* out) { out[0] += looked_up(out, 3); }
extern "C" __global__ void plain(int* out) { out[0] += 3; }
)";

TEST_F(Compile, TellsSpillsAndStackOfTheKernelAskedFor) {
  const fs::path file = write("kernel.cu", kSpilling);
  const Resources spilling = compiled(file).resources;
  EXPECT_EQ(spilling.registers, 32U);
  EXPECT_GT(spilling.spill_stores, 0U);
  EXPECT_GT(spilling.spill_loads, 0U);
  EXPECT_GE(spilling.stack, 80U);
  options_.kernel = "frame_only";
  const Resources frame = compiled(file).resources;
  EXPECT_EQ(frame.spill_stores, 0U);
  EXPECT_GE(frame.stack, 80U);  // the array of 20 ints
  options_.kernel = "plain";
  const Resources plain = compiled(file).resources;
  EXPECT_GT(plain.registers, 0U);
  EXPECT_EQ(plain.spill_stores, 0U);
  EXPECT_EQ(plain.stack, 0U);
  options_.kernel = "absent";
  EXPECT_EQ(compiled(file).resources.registers, 0U);
}

TEST_F(Compile, GivesTheSameBytesInAnyFolder) {
  const CompileResult a = compiled(write("a/kernel.cu", kKernel));
  setenv("HANDOFF_CACHE", (folder_ / "another").c_str(), 1);
  const CompileResult b = compiled(write("b/c/kernel.cu", kKernel));
  ASSERT_TRUE(a.ok && b.ok);
  EXPECT_FALSE(b.from_cache);
  EXPECT_EQ(a.ptx, b.ptx);
  EXPECT_THAT(a.ptx, HasSubstr("\"kernel.cu\""));
  EXPECT_THAT(a.ptx, HasSubstr("\"course_part.cuh\""));
  EXPECT_THAT(a.ptx, HasSubstr("_INTERNAL_00000000_"));
  EXPECT_THAT(a.ptx, Not(HasSubstr(folder_.string())));
  EXPECT_THAT(a.ptx, Not(HasSubstr("\"/")));
}

TEST_F(Compile, NamesHeadersOfTheToolkitBelowCuda) {
  const CompileResult result = compiled(write("kernel.cu",
                                              "#include <cuda/ptx>\n"
                                              "extern \"C\" __global__ void add(int* out) {\n"
                                              "  __shared__ uint64_t bar;\n"
                                              "  cuda::ptx::mbarrier_init(&bar, out[0]);\n"
                                              "}\n"));
  ASSERT_TRUE(result.ok) << result.detail;
  EXPECT_THAT(result.ptx, HasSubstr("\"cuda/__ptx/instructions/"));
}

TEST_F(Compile, UsesTheCacheAndSeesChanges) {
  const fs::path file = write("a/kernel.cu", kKernel);
  const CompileResult first = compiled(file);
  const CompileResult second = compiled(file);
  EXPECT_FALSE(first.from_cache);
  EXPECT_TRUE(second.from_cache);
  EXPECT_EQ(first.ptx, second.ptx);
  EXPECT_EQ(first.resources.registers, second.resources.registers);
  write("include/course_part.cuh",
        "#pragma once\n__device__ __forceinline__ int course_part(int x) { return x * 7; }\n");
  const CompileResult third = compiled(file);
  EXPECT_FALSE(third.from_cache);
  EXPECT_NE(first.ptx, third.ptx);
}

TEST_F(Compile, FindsHeadersBesideTheSubmissionAndDoesNotCacheThem) {
  write("a/own.h", "#define FACTOR 2\n");
  const fs::path file =
      write("a/kernel.cu", "#include \"own.h\"\nextern \"C\" __global__ void add(int* p) { p[0] *= FACTOR; }\n");
  const CompileResult first = compiled(file);
  ASSERT_TRUE(first.ok) << first.detail;
  write("a/own.h", "#define FACTOR 24\n");
  const CompileResult second = compiled(file);
  EXPECT_FALSE(second.from_cache);
  EXPECT_NE(first.ptx, second.ptx);
}

TEST_F(Compile, KeepsTheCubinWhereAsked) {
  options_.want_cubin = true;
  const CompileResult result = compiled(write("kernel.cu", kKernel));
  ASSERT_TRUE(result.ok);
  EXPECT_EQ(result.cubin.substr(1, 3), "ELF");
}

TEST_F(Compile, TakesAnyFileName) { EXPECT_TRUE(compiled(write("-x my kernel.txt", kKernel)).ok); }

TEST_F(Compile, TrimsMessagesToTheSubmission) {
  const CompileResult result = compiled(write("kernel.cu",
                                              "#include <cuda/ptx>\n"
                                              "extern \"C\" __global__ void add(float* out) {\n"
                                              "  int unused;\n"
                                              "  cuda::ptx::mbarrier_try_wait(out, 1);\n"
                                              "  undeclared = 1;\n"
                                              "}\n"));
  EXPECT_FALSE(result.ok);
  EXPECT_EQ(result.error, "does not compile: 2 errors");
  EXPECT_EQ(result.detail,
            "kernel.cu:4: error: no instance of overloaded function \"cuda::ptx::mbarrier_try_wait\" matches the "
            "argument list\n"
            "            argument types are: (float *, int)\n"
            "    cuda::ptx::mbarrier_try_wait(out, 1);\n"
            "    ^\n"
            "kernel.cu:5: error: identifier \"undeclared\" is undefined\n"
            "    undeclared = 1;\n"
            "    ^");
}

TEST_F(Compile, NamesAMissingHeader) {
  const CompileResult result = compiled(write("kernel.cu", "#include \"nowhere.h\"\n"));
  EXPECT_FALSE(result.ok);
  EXPECT_THAT(result.detail, HasSubstr("kernel.cu:1: error: nowhere.h: No such file or directory"));
}

TEST_F(Compile, ShowsPtxasErrorsAtTheLineOfTheSource) {
  const CompileResult result = compiled(write("kernel.cu",
                                              "extern \"C\" __global__ void add(int* out) {\n"
                                              "  out[0] = 1;\n"
                                              "  asm volatile(\"mbarrier.bogus [%0];\" ::\"r\"(1));\n"
                                              "}\n"));
  EXPECT_FALSE(result.ok);
  EXPECT_THAT(result.error, HasSubstr("ptxas"));
  EXPECT_THAT(result.detail, HasSubstr("kernel.cu:3: ptxas: Unknown modifier '.bogus'"));
}

TEST_F(Compile, RefusesTextThatIsNoCuda) {
  const CompileResult result = compiled(write("kernel.cu", "Dear teacher, the dog ate my kernel.\n"));
  EXPECT_FALSE(result.ok);
  EXPECT_THAT(result.detail, HasSubstr("kernel.cu:1: error: "));
}

TEST(FindToolchain, TakesTheUsersWordAsFinal) {
  setenv("HANDOFF_NVCC", "/nonexistent/nvcc", 1);
  const Toolchain toolchain = find_toolchain();
  unsetenv("HANDOFF_NVCC");
  EXPECT_FALSE(toolchain.found());
  const std::string message = missing_toolchain_message(toolchain);
  EXPECT_THAT(message, HasSubstr("/nonexistent/nvcc"));
  EXPECT_THAT(message, HasSubstr("CUDA Toolkit 13.0"));
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace handoff::harness
