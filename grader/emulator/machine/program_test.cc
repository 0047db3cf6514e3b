// Layout of shared, local and parameter memory, symbols and relocations, places, and what the driver would refuse.
#include "grader/emulator/machine/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "grader/emulator/machine/testing.h"

namespace handoff::machine {
namespace {

using machine::testing::decoders;
using machine::testing::expect_ok;
using machine::testing::module_of;
using machine::testing::Options;
using machine::testing::Outcome;
using machine::testing::run_body;
using machine::testing::run_module;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kHeader = ".version 9.0\n.target sm_100a\n.address_size 64\n";

/// A module in its own memory.
struct Loaded {
  explicit Loaded(const std::string& ptx) { module = LoadedModule::load(ptx, memory, decoders(), &error); }
  const Program& kernel(const std::string& name = "k") {
    const Program* p = module->kernel(name);
    EXPECT_NE(p, nullptr);
    return *p;
  }
  template <class T>
  T global(const std::string& name, uint64_t offset = 0) {
    const auto symbol = module->symbol(name);
    T value{};
    if (!symbol) {
      ADD_FAILURE() << "no symbol " << name;
      return value;
    }
    std::memcpy(&value, memory.find(symbol->address, symbol->size)->host + offset, sizeof value);
    return value;
  }
  GlobalMemory memory;
  std::string error;
  std::unique_ptr<LoadedModule> module;
};

// --- modules ---------------------------------------------------------------------------------------------------------

TEST(LoadedModules, TextThatIsNotPtx) {
  Loaded loaded("this is no PTX");
  EXPECT_EQ(loaded.module, nullptr);
  EXPECT_THAT(loaded.error, HasSubstr("PTX line 1, column "));
}

TEST(LoadedModules, EntriesAndKernels) {
  Loaded loaded(
      std::string(kHeader) +
      ".visible .entry one() { ret; }\n.func helper() { ret; }\n.visible .entry two(.param .u32 n) { ret; }\n");
  ASSERT_NE(loaded.module, nullptr) << loaded.error;
  EXPECT_THAT(loaded.module->entries(), ElementsAre("one", "two"));
  EXPECT_EQ(loaded.module->kernel("three"), nullptr);
  EXPECT_EQ(loaded.module->kernel("helper"), nullptr);
  EXPECT_EQ(loaded.module->kernel("one"), loaded.module->kernel("one"));
}

TEST(LoadedModules, VariablesAreInitialised) {
  Loaded loaded(std::string(kHeader) +
                ".global .align 4 .u32 numbers[4] = {1, 2, 3};\n.const .align 8 .f64 half = "
                "0d3FE0000000000000;\n.global .align 4 .u32 zeros[8];\n");
  ASSERT_NE(loaded.module, nullptr) << loaded.error;
  EXPECT_EQ(loaded.global<uint32_t>("numbers", 8), 3u);
  EXPECT_EQ(loaded.global<uint32_t>("numbers", 12), 0u);
  EXPECT_EQ(loaded.global<double>("half"), 0.5);
  EXPECT_EQ(loaded.global<uint32_t>("zeros", 28), 0u);
  EXPECT_EQ(loaded.module->symbol("numbers")->size, 16u);
  EXPECT_EQ(loaded.module->symbol("nothing"), std::nullopt);
  EXPECT_FALSE(loaded.memory.find(loaded.module->symbol("half")->address, 8)->writable);
  EXPECT_TRUE(loaded.memory.find(loaded.module->symbol("zeros")->address, 32)->writable);
}

TEST(LoadedModules, AddressesInInitialisers) {
  Loaded loaded(std::string(kHeader) +
                ".global .align 8 .u32 target[4] = {10, 20, 30, 40};\n.global .align 8 .u64 pointers[3] = "
                "{generic(target), target+8, 7};\n"
                ".global .align 8 .b8 bytes[12] = {1, 2, 3, 4, 0xFF(target), 0xFF00(target), 0xFF0000(target), "
                "0xFF000000(target), 5, 6, 7, 8};\n");
  ASSERT_NE(loaded.module, nullptr) << loaded.error;
  const uint64_t target = loaded.module->symbol("target")->address;
  EXPECT_EQ(loaded.global<uint64_t>("pointers"), target);
  EXPECT_EQ(loaded.global<uint64_t>("pointers", 8), target + 8);
  EXPECT_EQ(loaded.global<uint64_t>("pointers", 16), 7u);
  // Four bytes of the address and not one more, up to the end of the variable.
  EXPECT_EQ(loaded.global<uint32_t>("bytes"), 0x04030201u);
  EXPECT_EQ(loaded.global<uint32_t>("bytes", 4), static_cast<uint32_t>(target));
  EXPECT_EQ(loaded.global<uint32_t>("bytes", 8), 0x08070605u);
}

TEST(LoadedModules, ShortAddressAtTheEndOfAVariable) {
  Loaded loaded(std::string(kHeader) +
                ".global .align 8 .u32 target;\n.global .align 4 .b8 bytes[4] = {0xFF(target), 0xFF00(target), "
                "0xFF0000(target), 0xFF000000(target)};\n");
  ASSERT_NE(loaded.module, nullptr) << loaded.error;
  EXPECT_EQ(loaded.global<uint32_t>("bytes"), static_cast<uint32_t>(loaded.module->symbol("target")->address));
}

TEST(LoadedModules, MemoryIsGivenBack) {
  GlobalMemory memory;
  std::string error;
  auto module = LoadedModule::load(module_of("", ".global .align 4 .u32 x[100];\n"), memory, decoders(), &error);
  ASSERT_NE(module, nullptr) << error;
  ASSERT_NE(module->kernel("k"), nullptr);
  EXPECT_GT(memory.bytes_in_use(), 0u);
  module.reset();
  EXPECT_EQ(memory.bytes_in_use(), 0u);
}

// --- parameters ------------------------------------------------------------------------------------------------------

TEST(Parameters, NaturalAndDeclaredAlignment) {
  Loaded loaded(std::string(kHeader) +
                ".visible .entry k(.param .u8 a, .param .u32 b, .param .u8 c, .param .u64 d, .param .align 64 .b8 "
                "e[128], .param .u16 f) { ret; }\n");
  ASSERT_NE(loaded.module, nullptr) << loaded.error;
  const Program& p = loaded.kernel();
  std::vector<std::pair<uint32_t, uint32_t>> layout;
  for (const Parameter& v : p.parameters) layout.emplace_back(v.offset, v.size);
  EXPECT_THAT(layout, ElementsAre(std::pair(0u, 1u), std::pair(4u, 4u), std::pair(8u, 1u), std::pair(16u, 8u),
                                  std::pair(64u, 128u), std::pair(192u, 2u)));
  EXPECT_EQ(p.param_bytes, 194u);
  EXPECT_EQ(p.param_address % 64, 0u);
  EXPECT_NE(loaded.memory.find(p.param_address, p.param_bytes), nullptr);
}

// --- shared memory ---------------------------------------------------------------------------------------------------

TEST(SharedLayout, StaticThenDynamic) {
  Loaded loaded(
      module_of("mov.u32 %r1, first;\nmov.u32 %r2, second;\nmov.u32 %r3, buffer;\n.shared .align 256 .b8 "
                "inner[8];\nmov.u32 %r4, inner;\n",
                ".shared .align 4 .b8 first[6];\n.shared .align 64 .b8 second[64];\n.shared .align 64 .b8 "
                "unused[4096];\n.extern .shared .align 1024 .b8 buffer[];\n"));
  ASSERT_NE(loaded.module, nullptr) << loaded.error;
  const Program& p = loaded.kernel();
  ASSERT_EQ(p.shared_symbols.size(), 4u);
  EXPECT_EQ(p.shared_symbols[0].name, "first");
  EXPECT_EQ(p.shared_symbols[0].offset, kSharedBase);
  EXPECT_EQ(p.shared_symbols[1].name, "second");
  EXPECT_EQ(p.shared_symbols[1].offset, kSharedBase + 64);
  EXPECT_EQ(p.shared_symbols[2].name, "inner");
  EXPECT_EQ(p.shared_symbols[2].offset, kSharedBase + 256);
  EXPECT_EQ(p.static_smem, 264u);
  EXPECT_TRUE(p.shared_symbols[3].dynamic);
  EXPECT_EQ(p.shared_symbols[3].offset, 2048u);
  EXPECT_EQ(p.dynamic_smem_offset, 2048u);
}

TEST(SharedLayout, ExternArraysAllStartAtTheSamePlace) {
  Loaded loaded(module_of("mov.u32 %r1, a;\nmov.u32 %r2, b;\n",
                          ".extern .shared .align 16 .b8 a[];\n.extern .shared .align 128 .b8 b[];\n"));
  ASSERT_NE(loaded.module, nullptr) << loaded.error;
  const Program& p = loaded.kernel();
  ASSERT_EQ(p.shared_symbols.size(), 2u);
  EXPECT_EQ(p.shared_symbols[0].offset, p.shared_symbols[1].offset);
}

TEST(SharedLayout, SizesAreVisibleToTheKernel) {
  Options options;
  options.dynamic_smem = 512;
  const Outcome outcome = run_body(
      "mov.u32 %r1, %dynamic_smem_size;\nmov.u32 %r2, %total_smem_size;\nst.global.v2.u32 [%out], {%r1, %r2};\nmov.u32 "
      "%r3, buffer;\nst.shared.u32 [%r3+508], 1;\n",
      options, ".extern .shared .align 16 .b8 buffer[];\n");
  expect_ok(outcome);
  EXPECT_EQ(outcome.out[0], 512u);
  EXPECT_GE(outcome.out[1], 512u);
}

TEST(SpecialRegisters, TheEnvironmentHasTheWorkspaceOfACooperativeLaunch) {
  const char* body =
      "mov.u32 %r0, %envreg0;\nmov.u32 %r1, %envreg1;\nmov.u32 %r2, %envreg2;\nst.global.v2.u32 [%out], {%r1, %r2};\n"
      "st.global.u32 [%out+8], %r0;\n";
  Options options;
  EXPECT_EQ(run_body(body, options).out[0] | run_body(body, options).out[1], 0u);
  options.grid_workspace = 0x7f12'3456'789a'bcd0;
  const Outcome outcome = run_body(body, options);
  expect_ok(outcome);
  EXPECT_EQ(outcome.out[0], 0x7f123456u);
  EXPECT_EQ(outcome.out[1], 0x789abcd0u);
  EXPECT_EQ(outcome.out[2], 0u);
}

TEST(SharedLayout, DescribeShared) {
  Loaded loaded(module_of("mov.u32 %r1, full;\nmov.u32 %r2, _ZZ6kernelPfE4tile;\nmov.u32 %r3, s;\n",
                          ".shared .align 8 .b8 full[8];\n.shared .align 16 .b8 _ZZ6kernelPfE4tile[64];\n.extern "
                          ".shared .align 16 .b8 s[];\n"));
  ASSERT_NE(loaded.module, nullptr) << loaded.error;
  const Program& p = loaded.kernel();
  EXPECT_EQ(p.describe_shared(kSharedBase), "full");
  EXPECT_EQ(p.describe_shared(kSharedBase + 4), "full+4");
  EXPECT_EQ(p.describe_shared(kSharedBase + 8), "shared offset 0x408");  // padding
  EXPECT_EQ(p.describe_shared(kSharedBase + 16), "tile");
  EXPECT_EQ(p.describe_shared(kSharedBase + 64), "tile+48");
  EXPECT_EQ(p.describe_shared(p.dynamic_smem_offset), "s");  // not "short", the type that `s` demangles to
  EXPECT_EQ(p.describe_shared(p.dynamic_smem_offset + 1000), "s+1000");
  EXPECT_EQ(p.describe_shared(0), "shared offset 0x0");
}

// --- local memory and functions --------------------------------------------------------------------------------------

TEST(LocalLayout, FunctionsDoNotShareLocalMemory) {
  // The callee writes all of its array; the caller's must survive, and the two addresses differ.
  const Outcome outcome = run_module(
      module_of(".local .align 16 .b8 mine[32];\nmov.u64 %rd1, mine;\nst.local.u32 [%rd1+28], %id;\n{\n.param .b64 "
                "q;\ncall.uni (q), other, ();\nld.param.b64 %rd2, [q];\n}\nld.local.u32 %r1, [%rd1+28];\nsetp.eq.u64 "
                "%p1, %rd1, %rd2;\nselp.u32 %r2, 1000, 0, %p1;\nadd.u32 %r1, %r1, %r2;\nst.global.u32 [%mine], %r1;\n",
                ".func (.param .b64 r) other()\n{\n.local .align 16 .b8 mine[32];\n.reg .b64 %rd<4>;\nmov.u64 %rd1, "
                "mine;\nst.local.v4.u32 [%rd1], {7, 7, 7, 7};\nst.local.v4.u32 [%rd1+16], {7, 7, 7, 7};\nst.param.b64 "
                "[r], %rd1;\nret;\n}\n"));
  expect_ok(outcome);
  for (uint32_t t = 0; t < 32; t++) EXPECT_EQ(outcome.out[t], t);
}

TEST(LocalLayout, ArraysAreAlignedAsDeclared) {
  const Outcome outcome = run_body(
      ".local .align 1 .b8 a[3];\n.local .align 64 .b8 b[64];\nmov.u64 %rd1, b;\ncvt.u32.u64 %r1, %rd1;\nst.global.u32 "
      "[%out], %r1;\nmov.u64 %rd2, a;\nst.local.u8 [%rd2], %r1;\n");
  expect_ok(outcome);
  EXPECT_EQ(outcome.out[0] % 64, 0u);
}

TEST(Symbols, AddressesWithOffsets) {
  const Outcome outcome = run_body(
      "mov.u64 %rd1, numbers+4;\nld.global.u32 %r1, [%rd1];\nld.global.u32 %r2, [numbers+8];\nld.u32 %r3, "
      "[numbers];\nmov.u32 %r4, tile+12;\nst.global.v4.u32 [%out], {%r1, %r2, %r3, %r4};\n",
      {}, ".global .align 4 .u32 numbers[3] = {5, 6, 7};\n.shared .align 16 .b8 tile[16];\n");
  expect_ok(outcome);
  EXPECT_EQ(std::vector<uint32_t>(outcome.out.begin(), outcome.out.begin() + 4),
            (std::vector<uint32_t>{6, 7, 5, kSharedBase + 12}));
}

TEST(Immediates, FollowTheTypeOfTheInstruction) {
  const Outcome outcome = run_body(
      "mov.f32 %f1, 0f3FC00000;\nadd.f64 %fd1, 0d3FF8000000000000, 0d4000000000000000;\nmov.u64 %rd1, -2;\nmov.u32 "
      "%r1, -2;\nst.global.f32 [%out], %f1;\nst.global.f64 [%out+8], %fd1;\nst.global.u64 [%out+16], "
      "%rd1;\nst.global.u32 [%out+24], %r1;\nadd.f32 %f2, %f1, 1.0;\nst.global.f32 [%out+28], %f2;\n");
  expect_ok(outcome);
  EXPECT_EQ(outcome.out[0], 0x3fc00000u);
  EXPECT_EQ(outcome.out64(1), 0x400c000000000000u);
  EXPECT_EQ(outcome.out64(2), ~uint64_t{1});
  EXPECT_EQ(outcome.out[6], ~1u);
  EXPECT_EQ(outcome.out[7], 0x40200000u);
}

TEST(Specials, UnknownSpecialRegisterFaultsWhenRead) {
  const Outcome outcome = run_body("mov.u32 %r1, %pm0;\n");
  EXPECT_EQ(outcome.status, LaunchStatus::Fault);
  EXPECT_THAT(
      outcome.problem(),
      HasSubstr(
          "unsupported-instruction: `mov.u32 %r1, %pm0;` cannot be emulated: special register %pm0 is not supported"));
}

// --- configurations --------------------------------------------------------------------------------------------------

std::string refused(const std::string& ptx, const LaunchConfig& config) {
  Loaded loaded(ptx);
  if (loaded.module == nullptr) return "does not load: " + loaded.error;
  return check_config(loaded.kernel(), config, DeviceModel{});
}

LaunchConfig config_of(Dim grid, Dim block, uint32_t dynamic_smem = 0) {
  LaunchConfig config;
  config.grid = grid;
  config.block = block;
  config.dynamic_smem = dynamic_smem;
  return config;
}

TEST(CheckConfig, WhatIsRight) {
  EXPECT_EQ(refused(module_of(""), config_of({1, 1, 1}, {1, 1, 1})), "");
  EXPECT_EQ(refused(module_of(""), config_of({0x7fffffffu, 65535, 65535}, {16, 1, 64}, kSharedMax)), "");
}

TEST(CheckConfig, WhatTheDriverRefuses) {
  const std::string plain = module_of("");
  EXPECT_EQ(refused(plain, config_of({0, 1, 1}, {32, 1, 1})), "grid, block and cluster sizes must be positive");
  EXPECT_EQ(refused(plain, config_of({1, 1, 1}, {32, 0, 1})), "grid, block and cluster sizes must be positive");
  EXPECT_EQ(refused(plain, config_of({1, 1, 1}, {1025, 1, 1})), "a block of 1025 threads; the limit is 1024");
  EXPECT_EQ(refused(plain, config_of({1, 1, 1}, {1, 1, 65})), "block size 1×1×65; the limits are 1024×1024×64");
  EXPECT_THAT(refused(plain, config_of({1, 65536, 1}, {1, 1, 1})), HasSubstr("the grid is too large"));
  EXPECT_EQ(refused(plain, config_of({1, 1, 1}, {32, 1, 1}, kSharedMax + 1)),
            "k needs 232449 bytes of shared memory (0 static, 232449 dynamic); a block can have 232448");
}

TEST(CheckConfig, StaticSharedMemoryHasItsOwnLimit) {
  const std::string body = "mov.u32 %r1, tile;\n";
  EXPECT_EQ(refused(module_of(body, ".shared .align 16 .b8 tile[49152];\n"), config_of({1, 1, 1}, {32, 1, 1})), "");
  EXPECT_THAT(refused(module_of(body, ".shared .align 16 .b8 tile[49168];\n"), config_of({1, 1, 1}, {32, 1, 1})),
              HasSubstr("k has 49168 bytes of static shared memory; the limit is 49152"));
}

TEST(CheckConfig, DeclaredBlockSizes) {
  const std::string most = std::string(kHeader) + ".visible .entry k() .maxntid 128 { ret; }\n";
  EXPECT_EQ(refused(most, config_of({1, 1, 1}, {64, 2, 1})), "");
  EXPECT_EQ(refused(most, config_of({1, 1, 1}, {129, 1, 1})), "a block of 129 threads, but k declares at most 128");
  const std::string exact = std::string(kHeader) + ".visible .entry k() .reqntid 64, 2 { ret; }\n";
  EXPECT_EQ(refused(exact, config_of({1, 1, 1}, {64, 2, 1})), "");
  EXPECT_EQ(refused(exact, config_of({1, 1, 1}, {128, 1, 1})), "a block of 128×1×1 threads, but k requires 64×2×1");
}

}  // namespace
}  // namespace handoff::machine
