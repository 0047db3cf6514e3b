// Loads, stores, atomics and address conversions, one lane's own words at a time, with faults and their words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "grader/emulator/machine/memory_access.h"
#include "grader/emulator/machine/testing.h"

namespace handoff::machine {
namespace {

using machine::testing::expect_ok;
using machine::testing::Options;
using machine::testing::Outcome;
using machine::testing::run_body;
using machine::testing::words;
using ::testing::HasSubstr;

constexpr const char* kShared = ".shared .align 128 .b8 tile[4096];\n";
constexpr const char* kFile = ".file 1 \"kernel.cu\"\n";

// --- loads and stores ------------------------------------------------------------------------------------------------

/// Where the bytes under test live: set-up leaves this thread's 64 bytes at [%rd0] in the space.
struct Place {
  const char* space;
  std::string setup;
};
std::vector<Place> places() {
  const std::string offset = "mul.wide.u32 %rd1, %id, 64;\n";
  return {
      {".global", offset + "add.u64 %rd0, %in, %rd1;\n"},
      {".shared", offset + "mov.u64 %rd0, tile;\nadd.u64 %rd0, %rd0, %rd1;\n"},
      {".shared::cta", offset + "mov.u64 %rd0, tile;\nadd.u64 %rd0, %rd0, %rd1;\n"},
      {".local", ".local .align 64 .b8 mine[64];\nmov.u64 %rd0, mine;\n"},
      {"", offset + "add.u64 %rd0, %in, %rd1;\n"},
      {"", offset + "mov.u64 %rd2, tile;\ncvta.shared.u64 %rd2, %rd2;\nadd.u64 %rd0, %rd2, %rd1;\n"},
      {"", ".local .align 64 .b8 mine[64];\nmov.u64 %rd0, mine;\ncvta.local.u64 %rd0, %rd0;\n"},
  };
}

struct Scalar {
  const char* type;
  const char* reg;  // class of the register
  uint32_t bytes;   // in memory
  bool is_signed;
  uint32_t reg_bytes;
};
constexpr Scalar kScalars[] = {
    {"u8", "%s", 1, false, 2},   {"s8", "%s", 1, true, 2},    {"b8", "%s", 1, false, 2},   {"u8", "%r", 1, false, 4},
    {"s8", "%r", 1, true, 4},    {"u8", "%rd", 1, false, 8},  {"s8", "%rd", 1, true, 8},   {"u16", "%s", 2, false, 2},
    {"s16", "%s", 2, true, 2},   {"b16", "%s", 2, false, 2},  {"u16", "%r", 2, false, 4},  {"s16", "%r", 2, true, 4},
    {"s16", "%rd", 2, true, 8},  {"u32", "%r", 4, false, 4},  {"s32", "%r", 4, true, 4},   {"b32", "%r", 4, false, 4},
    {"u32", "%rd", 4, false, 8}, {"s32", "%rd", 4, true, 8},  {"f32", "%f", 4, false, 4},  {"u64", "%rd", 8, false, 8},
    {"s64", "%rd", 8, true, 8},  {"b64", "%rd", 8, false, 8}, {"f64", "%fd", 8, false, 8},
};

/// PTX that writes the 64-bit pattern of register `r` of class `reg` to [%mine8].
std::string show(const std::string& reg, const std::string& r) {
  if (reg == "%s") return "cvt.u32.u16 %r70, " + r + ";\ncvt.u64.u32 %rd30, %r70;\nst.global.u64 [%mine8], %rd30;\n";
  if (reg == "%r") return "cvt.u64.u32 %rd30, " + r + ";\nst.global.u64 [%mine8], %rd30;\n";
  if (reg == "%f") return "mov.b32 %r70, " + r + ";\ncvt.u64.u32 %rd30, %r70;\nst.global.u64 [%mine8], %rd30;\n";
  if (reg == "%fd") return "mov.b64 %rd30, " + r + ";\nst.global.u64 [%mine8], %rd30;\n";
  return "st.global.u64 [%mine8], " + r + ";\n";
}

TEST(SharedMemory, TheSystemsPartIsForThoseWhoAskWhereItIs) {
  const Outcome outcome = run_body(
      "mov.u32 %r1, %reserved_smem_offset_1;\nmov.u32 %r2, %reserved_smem_offset_end;\nshl.b32 %r3, %lane, 2;\n"
      "add.u32 %r1, %r1, %r3;\nst.shared.u32 [%r1], %lane;\nld.shared.u32 %r4, [%r1+-4];\n"
      "st.global.u32 [%mine], %r4;\nsub.u32 %r2, %r2, %r1;\nst.global.u32 [%mine+128], %r2;\n");
  expect_ok(outcome);
  EXPECT_EQ(outcome.out[5], 4u);
  EXPECT_GE(outcome.out[32], 288u) << "what cooperative_groups counts on";
  EXPECT_THAT(run_body("mov.u32 %r1, 512;\nst.shared.u32 [%r1], 1;\n").problem(),
              HasSubstr("below the CTA's shared memory"));
}

TEST(MemoryOps, EveryScalarWidthInEverySpace) {
  for (const Place& place : places()) {
    for (const Scalar& t : kScalars) {
      const std::string r = std::string(t.reg) + "5", u = std::string(t.reg) + "6";
      // Fill the 8 bytes at +8 with a pattern of this lane, load an element, store it again at +32, show both.
      const std::string body = place.setup +
                               "cvt.u64.u32 %rd3, %id;\nmul.lo.u64 %rd3, %rd3, 0x0101010101010101;\n"
                               "add.u64 %rd3, %rd3, 0x7f828384f5868788;\n"
                               "st" +
                               place.space + ".u64 [%rd0+8], %rd3;\nmov.u64 %rd4, -1;\nst" + place.space +
                               ".u64 [%rd0+32], %rd4;\n"
                               "ld" +
                               place.space + "." + t.type + " " + r + ", [%rd0+8];\n" + show(t.reg, r) + "st" +
                               place.space + "." + t.type + " [%rd0+32], " + r + ";\nld" + place.space +
                               ".u64 %rd7, [%rd0+32];\nst.global.u64 [%mine8+512], %rd7;\n";
      Options options;
      options.in.assign(1024, 0);
      SCOPED_TRACE(body);
      const Outcome outcome = run_body(body, options, kShared);
      expect_ok(outcome);
      for (uint64_t lane = 0; lane < 32; lane++) {
        const uint64_t pattern = 0x7f828384f5868788u + lane * 0x0101010101010101u;
        const uint32_t bits = t.bytes * 8;
        const uint64_t low = bits == 64 ? pattern : pattern & ((uint64_t{1} << bits) - 1);
        uint64_t expected = low;
        if (t.is_signed && bits < 64 && (low >> (bits - 1) & 1) != 0) expected |= ~uint64_t{0} << bits;
        if (t.reg_bytes < 8) expected &= (uint64_t{1} << (t.reg_bytes * 8)) - 1;
        ASSERT_EQ(outcome.out64(lane), expected) << "lane " << lane;
        const uint64_t kept = bits == 64 ? 0 : ~uint64_t{0} << bits;
        ASSERT_EQ(outcome.out64(64 + lane), kept | low) << "lane " << lane;
      }
    }
  }
}

TEST(MemoryOps, VectorsInEverySpace) {
  struct Shape {
    const char* type;
    uint32_t count, bytes;
    const char* reg;
  };
  constexpr Shape kShapes[] = {{"b8", 2, 1, "%s"},  {"b8", 4, 1, "%s"},   {"u16", 2, 2, "%s"},
                               {"u16", 4, 2, "%s"}, {"b32", 2, 4, "%r"},  {"b32", 4, 4, "%r"},
                               {"b32", 8, 4, "%r"}, {"b64", 2, 8, "%rd"}, {"b64", 4, 8, "%rd"}};
  for (const Place& place : places()) {
    for (const Shape& shape : kShapes) {
      const bool global = std::string(place.space) == ".global";
      if (shape.count * shape.bytes == 32 && !global) continue;  // 256-bit accesses exist for .global alone
      const uint32_t bytes = shape.count * shape.bytes;
      std::string list, body = place.setup;
      // Byte k of the source is 3k + lane.
      for (uint32_t k = 0; k < bytes; k++) {
        body += "add.u32 %r1, %id, " + std::to_string(3 * k) + ";\nst" + place.space + ".u8 [%rd0+" +
                std::to_string(k) + "], %r1;\n";
      }
      for (uint32_t e = 0; e < shape.count; e++) list += (e == 0 ? "" : ", ") + (shape.reg + std::to_string(10 + e));
      const std::string v = ".v" + std::to_string(shape.count) + ".";
      body += std::string("ld") + place.space + v + shape.type + " {" + list + "}, [%rd0];\nst" + place.space + v +
              shape.type + " [%rd0+32], {" + list + "};\n";
      body += "mul.wide.u32 %rd20, %id, 64;\nadd.u64 %rd20, %out, %rd20;\n";
      for (uint32_t k = 0; k < bytes; k++) {
        const std::string at = std::to_string(k);
        body += std::string("ld") + place.space + ".u8 %r1, [%rd0+" + std::to_string(32 + k) +
                "];\nst.global.u8 [%rd20+" + at + "], %r1;\n";
      }
      Options options;
      options.in.assign(1024, 0);
      SCOPED_TRACE(body);
      const Outcome outcome = run_body(body, options, kShared);
      expect_ok(outcome);
      const auto* out = reinterpret_cast<const uint8_t*>(outcome.out.data());
      for (uint32_t lane = 0; lane < 32; lane++) {
        for (uint32_t k = 0; k < bytes; k++) ASSERT_EQ(out[lane * 64 + k], (3 * k + lane) & 0xff) << lane << " " << k;
      }
    }
  }
}

TEST(MemoryOps, B128) {
  const Outcome outcome = run_body(
      "mul.wide.u32 %rd1, %id, 16;\nmov.u64 %rd0, tile;\nadd.u64 %rd0, %rd0, %rd1;\n"
      "cvt.u64.u32 %rd2, %id;\nadd.u64 %rd3, %rd2, 1000;\n"
      "mov.b128 %q1, {%rd2, %rd3};\nst.shared.b128 [%rd0], %q1;\nld.shared.b128 %q2, [%rd0];\n"
      "add.u64 %rd5, %out, %rd1;\nst.global.b128 [%rd5], %q2;\n",
      {}, kShared);
  expect_ok(outcome);
  for (uint32_t lane = 0; lane < 32; lane++) {
    EXPECT_EQ(outcome.out64(2 * lane), lane);
    EXPECT_EQ(outcome.out64(2 * lane + 1), 1000u + lane);
  }
}

TEST(MemoryOps, VectorLoadMayOverwriteItsBase) {
  const Outcome outcome = run_body(
      "mul.wide.u32 %rd1, %id, 16;\nadd.u64 %rd0, %out, %rd1;\nmov.u32 %r1, tile;\nshl.b32 %r2, %id, 4;\nadd.u32 %r1, "
      "%r1, %r2;\n"
      "add.u32 %r3, %id, 100;\nst.shared.v4.u32 [%r1], {%id, %r3, 7, 8};\n"
      "ld.shared.v4.u32 {%r1, %r4, %r5, %r6}, [%r1];\nst.global.v4.u32 [%rd0], {%r1, %r4, %r5, %r6};\n"
      "ld.global.v2.u64 {%rd0, %rd9}, [%rd0];\nst.global.u64 [%mine8+1024], %rd0;\n",
      {}, kShared);
  expect_ok(outcome);
  for (uint32_t lane = 0; lane < 32; lane++) {
    EXPECT_EQ(outcome.out[4 * lane], lane);
    EXPECT_EQ(outcome.out[4 * lane + 1], lane + 100);
    EXPECT_EQ(outcome.out[4 * lane + 3], 8u);
    EXPECT_EQ(outcome.out64(128 + lane), lane | uint64_t{lane + 100} << 32);
  }
}

TEST(MemoryOps, VectorLoadWithSinkAndStoreWithImmediates) {
  const Outcome outcome = run_body(
      "mul.wide.u32 %rd1, %id, 16;\nadd.u64 %rd0, %out, %rd1;\nst.global.v4.u32 [%rd0], {1, %id, 3, 4};\n"
      "ld.global.v4.u32 {_, %r1, _, %r2}, [%rd0];\nadd.u32 %r1, %r1, %r2;\nst.global.u32 [%rd0], %r1;\n");
  expect_ok(outcome);
  for (uint32_t lane = 0; lane < 32; lane++) EXPECT_EQ(outcome.out[4 * lane], lane + 4);
}

TEST(MemoryOps, PredicatedLoadLeavesOtherLanesAlone) {
  // The lanes that do not load have addresses that fault.
  const Outcome outcome = run_body(
      "mov.u32 %r1, 77;\nsetp.lt.u32 %p1, %id, 5;\nmov.u64 %rd0, 0;\n@%p1 mov.u64 %rd0, %mine;\n"
      "st.global.u32 [%mine], %id;\n@%p1 ld.global.u32 %r1, [%rd0];\n@!%p1 add.u32 %r1, %r1, 1;\nst.global.u32 "
      "[%mine], %r1;\n");
  expect_ok(outcome);
  for (uint32_t lane = 0; lane < 32; lane++) EXPECT_EQ(outcome.out[lane], lane < 5 ? lane : 78);
}

TEST(MemoryOps, SixteenBitRegistersKeepTheirUpperBitsZero) {
  // A sign-extended byte in a 16-bit register has 16 bits, whatever reads it afterwards.
  const Outcome outcome = run_body(
      "mov.u32 %r1, 0x80;\nst.global.u8 [%mine], %r1;\nld.global.s8 %s1, [%mine];\ncvt.u32.u16 %r2, %s1;\n"
      "mov.b32 %r3, {%s1, %s1};\nst.global.u32 [%mine], %r2;\nst.global.u32 [%mine+128], %r3;\n");
  expect_ok(outcome);
  EXPECT_EQ(outcome.out[3], 0xff80u);
  EXPECT_EQ(outcome.out[35], 0xff80ff80u);
}

TEST(MemoryOps, UnwrittenMemoryIsPoison) {
  Options options;
  options.dynamic_smem = 256;
  const Outcome outcome = run_body(
      ".local .align 8 .b8 mine[8];\nld.shared.u32 %r1, [buffer];\nld.local.u32 %r2, [mine];\n"
      "st.global.u32 [%mine], %r1;\nst.global.u32 [%mine+128], %r2;\n",
      options, ".extern .shared .align 16 .b8 buffer[];\n");
  expect_ok(outcome);
  EXPECT_EQ(outcome.out[0], 0xffffffffu);
  EXPECT_EQ(outcome.out[32], 0xffffffffu);
}

TEST(MemoryOps, LocalMemoryIsPerThread) {
  Options options;
  options.block = {64, 1, 1};
  const Outcome outcome = run_body(
      ".local .align 8 .b8 mine[64];\nmov.u64 %rd1, mine;\nand.b32 %r1, %id, 7;\nmul.wide.u32 %rd2, %r1, 8;\nadd.u64 "
      "%rd1, %rd1, %rd2;\n"
      "st.local.u32 [%rd1], %id;\nbar.sync 0;\nld.local.u32 %r2, [%rd1];\nst.global.u32 [%mine], %r2;\n",
      options);
  expect_ok(outcome);
  for (uint32_t t = 0; t < 64; t++) EXPECT_EQ(outcome.out[t], t);
}

// --- faults ----------------------------------------------------------------------------------------------------------

/// The one diagnostic of a body whose line 42 is bad.
Diagnostic fault_of(const std::string& before, const std::string& bad, const std::string& globals = {},
                    const Options& options = {}) {
  const Outcome outcome =
      run_body(".loc 1 41 3\n" + before + ".loc 1 42 3\n" + bad + "\n.loc 1 43 3\n", options, kFile + globals);
  EXPECT_EQ(outcome.status, LaunchStatus::Fault);
  if (outcome.diagnostics.size() != 1) {
    ADD_FAILURE() << outcome.diagnostics.size() << " diagnostics for " << bad;
    return {};
  }
  EXPECT_EQ(outcome.diagnostics[0].place.file, "kernel.cu");
  EXPECT_EQ(outcome.diagnostics[0].place.line, 42u);
  return outcome.diagnostics[0];
}

TEST(MemoryFaults, GlobalPastTheEnd) {
  const Diagnostic d = fault_of("", "st.global.u32 [%mine+4092], %id;");
  EXPECT_EQ(d.id, "out-of-bounds");
  EXPECT_THAT(d.message, HasSubstr("warp 0 lane 1 writes 4 bytes at global address 0x"));
  EXPECT_THAT(d.message, HasSubstr("0 bytes past the end of `out` (4096 bytes)"));
}

TEST(MemoryFaults, GlobalPartlyPastTheEnd) {
  const Diagnostic d = fault_of("", "ld.global.u64 %rd0, [%out+4092];");
  EXPECT_EQ(d.id, "out-of-bounds");
  EXPECT_THAT(d.message, HasSubstr("warp 0 lane 0 reads 8 bytes at"));
  EXPECT_THAT(d.message, HasSubstr("byte 4092 of `out`"));
}

TEST(MemoryFaults, NullPointer) {
  const Diagnostic d = fault_of("mov.u64 %rd0, 0;\n", "ld.u32 %r0, [%rd0+8];");
  EXPECT_EQ(d.id, "out-of-bounds");
  EXPECT_THAT(d.message, HasSubstr("a null pointer or an offset from one"));
}

TEST(MemoryFaults, GlobalMisaligned) {
  const Diagnostic d = fault_of("", "st.global.u32 [%mine+2], %id;");
  EXPECT_EQ(d.id, "misaligned");
  EXPECT_THAT(d.message, HasSubstr("lane 0 writes 4 bytes at global address 0x"));
  EXPECT_THAT(d.message, HasSubstr("not a multiple of 4"));
}

TEST(MemoryFaults, VectorsAreAlignedToTheirWholeSize) {
  const Diagnostic d = fault_of("", "ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%out+8];");
  EXPECT_EQ(d.id, "misaligned");
  EXPECT_THAT(d.message, HasSubstr("reads 16 bytes"));
}

TEST(MemoryFaults, SharedPastTheEnd) {
  const Diagnostic d = fault_of("mov.u32 %r1, tile;\n", "st.shared.u32 [%r1+4096], %id;", kShared);
  EXPECT_EQ(d.id, "out-of-bounds");
  EXPECT_THAT(d.message, HasSubstr("0 bytes past the end of the CTA's 4096 bytes of shared memory"));
}

TEST(MemoryFaults, SharedPartlyPastTheEnd) {
  // An odd amount of dynamic memory: the last word is only half there.
  Options options;
  options.dynamic_smem = 6;
  const Diagnostic d = fault_of("mov.u32 %r1, buffer;\n", "ld.shared.u32 %r0, [%r1+4];",
                                ".extern .shared .align 16 .b8 buffer[];\n", options);
  EXPECT_EQ(d.id, "out-of-bounds");
  EXPECT_THAT(d.message, HasSubstr("whose last byte lies past the end of the CTA's 6 bytes"));
}

TEST(MemoryFaults, SharedBelowTheStart) {
  const Diagnostic d = fault_of("mov.u32 %r1, tile;\n", "ld.shared.u32 %r0, [%r1-4];", kShared);
  EXPECT_EQ(d.id, "out-of-bounds");
  EXPECT_THAT(d.message, HasSubstr("below the CTA's shared memory, which starts at 0x400"));
}

TEST(MemoryFaults, SharedFarBelowTheStart) {
  EXPECT_EQ(fault_of("mov.u32 %r1, tile;\n", "ld.shared.u32 %r0, [%r1-4096];", kShared).id, "out-of-bounds");
}

TEST(MemoryFaults, SharedAtTheTopOfTheAddressSpace) {
  EXPECT_EQ(fault_of("mov.u64 %rd0, -4;\n", "ld.shared.u32 %r0, [%rd0];", kShared).id, "out-of-bounds");
}

TEST(MemoryFaults, SharedMisalignedNamesTheVariable) {
  const Diagnostic d = fault_of("mov.u32 %r1, tile;\n", "ld.shared.u32 %r0, [%r1+6];", kShared);
  EXPECT_EQ(d.id, "misaligned");
  EXPECT_THAT(d.message, HasSubstr("at tile+6, which is not a multiple of 4"));
}

TEST(MemoryFaults, GenericSharedPastTheEnd) {
  const Diagnostic d =
      fault_of("mov.u64 %rd0, tile;\ncvta.shared.u64 %rd0, %rd0;\n", "st.u32 [%rd0+4100], %id;", kShared);
  EXPECT_EQ(d.id, "out-of-bounds");
  EXPECT_THAT(d.message, HasSubstr("4 bytes past the end of the CTA's 4096 bytes of shared memory"));
}

TEST(MemoryFaults, LocalPastTheEnd) {
  const Diagnostic d =
      fault_of(".local .align 16 .b8 mine[16];\nmov.u64 %rd0, mine;\n", "st.local.u32 [%rd0+16], %id;");
  EXPECT_EQ(d.id, "out-of-bounds");
  EXPECT_THAT(d.message, HasSubstr("outside the thread's 16 bytes of local memory"));
}

TEST(MemoryFaults, ConstantMemoryIsNotWritable) {
  const Diagnostic d = fault_of("mov.u64 %rd0, table;\ncvta.const.u64 %rd0, %rd0;\n", "st.u32 [%rd0], %id;",
                                ".const .align 4 .u32 table[4] = {1, 2, 3, 4};\n");
  EXPECT_EQ(d.id, "out-of-bounds");
  EXPECT_THAT(d.message, HasSubstr("byte 0 of `table` (16 bytes), which is constant memory"));
}

TEST(MemoryFaults, FirstBadLaneIsNamed) {
  const Diagnostic d = fault_of("mov.u64 %rd0, %mine;\nsetp.eq.u32 %p1, %id, 19;\n@%p1 mov.u64 %rd0, 4;\n",
                                "ld.global.u32 %r0, [%rd0];");
  EXPECT_THAT(d.message, HasSubstr("warp 0 lane 19 reads"));
}

TEST(MemoryFaults, AtomicsAreChecked) {
  EXPECT_EQ(fault_of("", "atom.global.add.u32 %r0, [%mine+2], 1;").id, "misaligned");
  const Diagnostic d = fault_of("", "red.global.add.u32 [%mine+4096], 1;");
  EXPECT_EQ(d.id, "out-of-bounds");
  EXPECT_THAT(d.message, HasSubstr("updates 4 bytes"));
}

TEST(MemoryFaults, OrdinaryAccessOfALiveBarrierNamesItsThread) {
  // An asynchronous layer that holds one barrier, 8 bytes at the start of `tile`.
  AsyncHooks hooks;
  hooks.make_state = [](Cta& cta) -> std::unique_ptr<AsyncCtaState> {
    cta.guarded_lo = kSharedBase;
    cta.guarded_hi = kSharedBase + 8;
    return nullptr;
  };
  hooks.hits_barrier = [](Cta&, uint32_t offset, uint32_t) { return offset < kSharedBase + 8; };
  Options options;
  options.async = &hooks;
  const std::string store = "mov.u32 %r1, tile;\nmad.lo.u32 %r1, %id, 4, %r1;\nsetp.ge.u32 %p1, %id, ";
  const Outcome hit = run_body(store + "1;\n@%p1 st.shared.u32 [%r1], 0;\n", options, kShared);
  EXPECT_EQ(hit.status, LaunchStatus::Ok);
  EXPECT_EQ(hit.problem(), "barrier-overwritten: thread 1 writes 4 bytes of the live mbarrier `tile`");
  EXPECT_EQ(run_body(store + "1;\n@%p1 ld.shared.u32 %r2, [%r1];\n", options, kShared).problem(),
            "barrier-overwritten: thread 1 reads 4 bytes of the live mbarrier `tile`");
  // The whole warp, which takes the fast path.
  EXPECT_EQ(run_body(store + "2;\nld.shared.u32 %r2, [%r1];\n", options, kShared).problem(),
            "barrier-overwritten: thread 0 reads 4 bytes of the live mbarrier `tile`");
  expect_ok(run_body(store + "2;\n@%p1 ld.shared.u32 %r2, [%r1];\n", options, kShared));
  expect_ok(run_body(store + "2;\n@%p1 st.shared.u32 [%r1], 0;\n", options, kShared));
}

// --- atomics ---------------------------------------------------------------------------------------------------------

/// One lane runs `op` of `type` on memory that holds `old`, with operands b and c; returns {memory afterwards,
/// register}.
struct AtomResult {
  uint64_t memory, returned;
};
AtomResult atom_once(const std::string& op, const std::string& type, uint32_t bytes, uint64_t old, uint64_t b,
                     uint64_t c, const std::string& space, bool red) {
  const std::string reg = bytes == 2 ? "%s" : bytes == 4 ? "%r" : "%rd";
  const std::string bits = bytes == 2 ? "b16" : bytes == 4 ? "b32" : "b64";
  const std::string address = space == ".shared" ? "mov.u64 %rd0, tile;\n" : "mov.u64 %rd0, %in;\n";
  std::string body = address + "setp.ne.u32 %p1, %id, 0;\n@%p1 ret;\n";
  const auto set = [&](const std::string& n, uint64_t v) {
    body += "mov." + bits + " " + reg + n + ", " + std::to_string(static_cast<int64_t>(v)) + ";\n";
  };
  set("1", old);
  set("2", b);
  set("3", c);
  set("4", 0);
  body += "st" + space + "." + bits + " [%rd0], " + reg + "1;\n";
  body += (red ? "red" : "atom") + space + "." + op + "." + type + " " + (red ? "" : reg + "4, ") + "[%rd0], " + reg +
          "2" + (op == "cas" ? ", " + reg + "3" : "") + ";\n";
  body += "ld" + space + "." + bits + " " + reg + "5, [%rd0];\n";
  if (bytes == 2) {
    body += "cvt.u64.u16 %rd20, %s5;\ncvt.u64.u16 %rd21, %s4;\n";
  } else if (bytes == 4) {
    body += "cvt.u64.u32 %rd20, %r5;\ncvt.u64.u32 %rd21, %r4;\n";
  } else {
    body += "mov.u64 %rd20, %rd5;\nmov.u64 %rd21, %rd4;\n";
  }
  body += "st.global.u64 [%out], %rd20;\nst.global.u64 [%out+8], %rd21;\n";
  Options options;
  options.in.assign(4, 0);
  const Outcome outcome = run_body(body, options, kShared);
  if (outcome.status != LaunchStatus::Ok) ADD_FAILURE() << outcome.problem() << "\n" << body;
  return {outcome.out64(0), outcome.out64(1)};
}

void expect_atom(const std::string& op, const std::string& type, uint32_t bytes, uint64_t old, uint64_t b,
                 uint64_t expected, uint64_t c = 0, const std::string& modifier = {}) {
  const uint64_t mask = bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << (bytes * 8)) - 1;
  for (const std::string space : {".global", ".shared", ""}) {
    const AtomResult r = atom_once(op + modifier, type, bytes, old, b, c, space, false);
    EXPECT_EQ(r.memory, expected & mask) << std::hex << op << "." << type << space << " of " << old << " and " << b;
    EXPECT_EQ(r.returned, old & mask) << op << "." << type << space;
    if (op == "cas" || op == "exch") continue;
    EXPECT_EQ(atom_once(op + modifier, type, bytes, old, b, c, space, true).memory, expected & mask)
        << "red." << op << "." << type << space;
  }
}

TEST(Atomics, IntegersOf32Bits) {
  expect_atom("and", "b32", 4, 0xff00ff00u, 0x0ff00ff0u, 0x0f000f00u);
  expect_atom("or", "b32", 4, 0xff00ff00u, 0x0ff00ff0u, 0xfff0fff0u);
  expect_atom("xor", "b32", 4, 0xff00ff00u, 0x0ff00ff0u, 0xf0f0f0f0u);
  expect_atom("exch", "b32", 4, 1, 0xdeadbeefu, 0xdeadbeefu);
  expect_atom("add", "u32", 4, 0xffffffffu, 3, 2);
  expect_atom("add", "s32", 4, 0x7fffffffu, 1, 0x80000000u);
  expect_atom("min", "u32", 4, 0xfffffff0u, 5, 5);
  expect_atom("max", "u32", 4, 0xfffffff0u, 5, 0xfffffff0u);
  expect_atom("min", "s32", 4, 0xfffffff0u, 5, 0xfffffff0u);
  expect_atom("max", "s32", 4, 0xfffffff0u, 5, 5);
}

TEST(Atomics, IncrementAndDecrementWrap) {
  expect_atom("inc", "u32", 4, 4, 5, 5);
  expect_atom("inc", "u32", 4, 5, 5, 0);
  expect_atom("inc", "u32", 4, 6, 5, 0);
  expect_atom("inc", "u32", 4, 0xfffffffeu, 0xffffffffu, 0xffffffffu);
  expect_atom("dec", "u32", 4, 3, 5, 2);
  expect_atom("dec", "u32", 4, 0, 5, 5);
  expect_atom("dec", "u32", 4, 6, 5, 5);
  expect_atom("dec", "u32", 4, 5, 5, 4);
}

TEST(Atomics, IntegersOf64Bits) {
  expect_atom("and", "b64", 8, 0xff00ff00ff00ff00u, 0x0ff00ff00ff00ff0u, 0x0f000f000f000f00u);
  expect_atom("or", "b64", 8, 1, uint64_t{1} << 63, (uint64_t{1} << 63) | 1);
  expect_atom("xor", "b64", 8, ~uint64_t{0}, 0xff, ~uint64_t{0xff});
  expect_atom("exch", "b64", 8, 1, ~uint64_t{1}, ~uint64_t{1});
  expect_atom("add", "u64", 8, 0xffffffffu, 1, uint64_t{1} << 32);
  expect_atom("min", "u64", 8, ~uint64_t{0}, 7, 7);
  expect_atom("min", "s64", 8, ~uint64_t{0}, 7, ~uint64_t{0});
  expect_atom("max", "s64", 8, ~uint64_t{0}, 7, 7);
  expect_atom("max", "u64", 8, ~uint64_t{0}, 7, ~uint64_t{0});
}

TEST(Atomics, CompareAndSwap) {
  for (const auto& [type, bytes] : {std::pair<const char*, uint32_t>{"b16", 2}, {"b32", 4}, {"b64", 8}}) {
    expect_atom("cas", type, bytes, 5, 5, 9, 9);
    expect_atom("cas", type, bytes, 5, 6, 5, 9);
  }
  // All bits count, also those above 32.
  expect_atom("cas", "b64", 8, (uint64_t{1} << 40) | 5, 5, (uint64_t{1} << 40) | 5, 9);
}

TEST(Atomics, Exchange128) {
  const Outcome outcome = run_body(
      "setp.ne.u32 %p1, %id, 0;\n@%p1 ret;\nmov.b128 %q1, {11, 22};\nst.global.b128 [%in], %q1;\nmov.b128 %q2, {33, "
      "44};\n"
      "atom.global.exch.b128 %q3, [%in], %q2;\nst.global.b128 [%out], %q3;\n"
      "atom.global.cas.b128 %q4, [%in], %q1, %q1;\natom.global.cas.b128 %q5, [%in], %q2, %q1;\n"
      "st.global.b128 [%out+16], %q5;\nld.global.b128 %q6, [%in];\nst.global.b128 [%out+32], %q6;\n",
      {.in = std::vector<uint32_t>(4)});
  expect_ok(outcome);
  EXPECT_EQ((std::vector<uint64_t>{outcome.out64(0), outcome.out64(1), outcome.out64(2), outcome.out64(3),
                                   outcome.out64(4), outcome.out64(5)}),
            (std::vector<uint64_t>{11, 22, 33, 44, 11, 22}));
}

uint32_t bits(float f) { return std::bit_cast<uint32_t>(f); }

TEST(Atomics, FloatAdd) {
  expect_atom("add", "f32", 4, bits(1.5f), bits(2.25f), bits(3.75f));
  expect_atom("add", "f32", 4, bits(1.0f), bits(0x1p-24f), bits(1.0f));  // ties to even
  expect_atom("add", "f32", 4, bits(1.0f + 0x1p-23f), bits(0x1p-24f), bits(1.0f + 0x1p-22f));
  expect_atom("add", "f64", 8, std::bit_cast<uint64_t>(0.1), std::bit_cast<uint64_t>(0.2),
              std::bit_cast<uint64_t>(0.1 + 0.2));
}

TEST(Atomics, FloatAddNanIsCanonical) {
  const float infinity = std::numeric_limits<float>::infinity();
  expect_atom("add", "f32", 4, bits(infinity), bits(-infinity), 0x7fffffffu);
  expect_atom("add", "f32", 4, 0xffc12345u, bits(1.0f), 0x7fffffffu);
}

TEST(Atomics, FloatAddFlushesSubnormalsInGlobalMemoryOnly) {
  // PTX §9.7.13.5: atom.add.f32 on global memory flushes subnormal inputs and results to sign-preserving zero, on
  // shared memory it does not.
  const uint32_t tiny = 3;
  EXPECT_EQ(atom_once("add", "f32", 4, tiny, tiny, 0, ".global", false).memory, 0u);
  EXPECT_EQ(atom_once("add", "f32", 4, 0x80000000u | tiny, 0x80000000u | tiny, 0, ".global", true).memory, 0x80000000u);
  EXPECT_EQ(atom_once("add", "f32", 4, tiny, tiny, 0, ".shared", false).memory, 2 * tiny);
}

TEST(Atomics, HalfAndBfloat) {
  const uint32_t one = 0x3c00, two = 0x4000, three = 0x4200;
  expect_atom("add", "f16x2", 4, two << 16 | one, one << 16 | two, three << 16 | three, 0, ".noftz");
  expect_atom("add", "f16", 2, one, two, three, 0, ".noftz");
  const uint32_t bone = 0x3f80, btwo = 0x4000, bthree = 0x4040;
  expect_atom("add", "bf16x2", 4, btwo << 16 | bone, bone << 16 | btwo, bthree << 16 | bthree, 0, ".noftz");
  expect_atom("add", "bf16", 2, bone, btwo, bthree, 0, ".noftz");
  expect_atom("add", "f16", 2, 0x0001, 0x0001, 0x0002, 0, ".noftz");  // subnormals stay
  expect_atom("add", "f16", 2, 0x7bff, 0x7bff, 0x7c00, 0, ".noftz");  // overflow
}

TEST(Atomics, ReturnsTheOldValueToEachLaneInTurn) {
  const Outcome outcome = run_body(
      "atom.global.add.u32 %r1, [%in], 3;\nst.global.u32 [%mine], %r1;\nld.global.u32 %r2, [%in];\nst.global.u32 "
      "[%mine+128], %r2;\n",
      {.in = {100}});
  expect_ok(outcome);
  std::vector<uint32_t> seen = words(outcome, 32);
  std::sort(seen.begin(), seen.end());
  for (uint32_t k = 0; k < 32; k++) EXPECT_EQ(seen[k], 100 + 3 * k);
  EXPECT_EQ(outcome.out[32], 196u);
}

TEST(Atomics, VectorOfFloats) {
  const Outcome outcome = run_body(
      "setp.ne.u32 %p1, %id, 0;\n@%p1 ret;\nmov.f32 %f1, 0f3F800000;\nmov.f32 %f2, 0f40000000;\n"
      "red.global.add.v2.f32 [%in], {%f1, %f2};\natom.global.add.v2.f32 {%f3, %f4}, [%in], {%f1, %f1};\n"
      "st.global.v2.f32 [%out], {%f3, %f4};\nld.global.v2.f32 {%f5, %f6}, [%in];\nst.global.v2.f32 [%out+8], {%f5, "
      "%f6};\n",
      {.in = {bits(10.0f), bits(20.0f)}});
  expect_ok(outcome);
  EXPECT_EQ(words(outcome, 4), (std::vector<uint32_t>{bits(11.0f), bits(22.0f), bits(12.0f), bits(23.0f)}));
}

TEST(Atomics, HandleOverlappingDestination) {
  // The destination is the address register itself.
  const Outcome outcome = run_body(
      "setp.ne.u32 %p1, %id, 0;\n@%p1 ret;\nmov.u64 %rd0, %in;\natom.global.add.u64 %rd0, [%rd0], %rd0;\nst.global.u64 "
      "[%out], %rd0;\n",
      {.in = {7, 0}});
  expect_ok(outcome);
  EXPECT_EQ(outcome.out64(0), 7u);
}

// --- addresses -------------------------------------------------------------------------------------------------------

TEST(Addresses, CvtaRoundTrips) {
  const Outcome outcome = run_body(
      ".local .align 8 .b8 mine[8];\nmov.u64 %rd1, tile;\ncvta.shared.u64 %rd2, %rd1;\ncvta.to.shared.u64 %rd3, "
      "%rd2;\nst.global.u64 [%out], %rd1;\nst.global.u64 [%out+8], %rd2;\nst.global.u64 [%out+16], %rd3;\n"
      "mov.u64 %rd4, mine;\ncvta.local.u64 %rd5, %rd4;\ncvta.to.local.u64 %rd6, %rd5;\nst.global.u64 [%out+24], "
      "%rd4;\nst.global.u64 [%out+32], %rd5;\nst.global.u64 [%out+40], %rd6;\n"
      "cvta.to.global.u64 %rd7, %out;\nst.global.u64 [%out+48], %rd7;\ncvt.u32.u64 %r1, %rd2;\nst.global.u32 "
      "[%out+56], %r1;\n",
      {}, kShared);
  expect_ok(outcome);
  EXPECT_EQ(outcome.out64(0), kSharedBase);
  EXPECT_EQ(outcome.out64(1), kSharedWindow + kSharedBase);
  EXPECT_EQ(outcome.out64(2), kSharedBase);
  EXPECT_EQ(outcome.out64(4), kLocalWindow + outcome.out64(3));
  EXPECT_EQ(outcome.out64(5), outcome.out64(3));
  EXPECT_EQ(outcome.out64(6), outcome.out_address);
  EXPECT_EQ(outcome.out[14], kSharedBase);  // the low half of a generic shared address is its shared address
}

TEST(Addresses, Isspacep) {
  std::string body =
      ".local .align 8 .b8 mine[8];\nmov.u64 %rd0, tile;\ncvta.shared.u64 %rd0, %rd0;\nmov.u64 %rd1, "
      "mine;\ncvta.local.u64 %rd1, %rd1;\nmov.u64 %rd3, table;\ncvta.const.u64 %rd3, %rd3;\n";
  const std::string pointers[] = {"%rd0", "%rd1", "%out", "%rd3"};
  const char* spaces[] = {"shared", "shared::cta", "shared::cluster", "local", "global", "const"};
  uint32_t at = 0;
  for (const std::string& p : pointers) {
    for (const char* s : spaces) {
      body += std::string("isspacep.") + s + " %p1, " + p + ";\nselp.u32 %r1, 1, 0, %p1;\nst.global.u32 [%out+" +
              std::to_string(4 * at++) + "], %r1;\n";
    }
  }
  const Outcome outcome = run_body(body, {}, std::string(kShared) + ".const .align 4 .u32 table = 5;\n");
  expect_ok(outcome);
  EXPECT_EQ(words(outcome, 18), (std::vector<uint32_t>{1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0}));
  EXPECT_THAT((std::vector<uint32_t>{outcome.out.begin() + 18, outcome.out.begin() + 24}),
              ::testing::ElementsAre(0, 0, 0, 0, 0, 1));  // a constant is in .const alone
}

TEST(Addresses, StBulkZerosItsRange) {
  const Outcome outcome = run_body(
      "mov.u32 %r1, tile;\nshl.b32 %r2, %id, 2;\nadd.u32 %r1, %r1, %r2;\nst.shared.u32 [%r1], 5;\nbar.sync "
      "0;\nsetp.eq.u32 %p1, %id, 0;\n"
      "@%p1 st.bulk.weak.shared::cta [tile+16], 32, 0;\nbar.sync 0;\nld.shared.u32 %r3, [%r1];\nst.global.u32 [%mine], "
      "%r3;\n",
      {}, kShared);
  expect_ok(outcome);
  for (uint32_t k = 0; k < 32; k++) EXPECT_EQ(outcome.out[k], k >= 4 && k < 12 ? 0u : 5u) << k;
}

TEST(Addresses, StBulkIsChecked) {
  EXPECT_EQ(fault_of("", "st.bulk.weak.shared::cta [tile+4], 32, 0;", kShared).id, "misaligned");
  EXPECT_EQ(fault_of("", "st.bulk.weak.shared::cta [tile+8], 4096, 0;", kShared).id, "out-of-bounds");
}

TEST(Addresses, ConstantAndParameterMemory) {
  const Outcome outcome = run_body(
      "shl.b32 %r1, %id, 2;\nand.b32 %r1, %r1, 12;\nmov.u64 %rd0, table;\ncvt.u64.u32 %rd1, %r1;\nadd.u64 %rd0, %rd0, "
      "%rd1;\nld.const.u32 %r2, [%rd0];\n"
      "ld.const.u32 %r3, [table+8];\nmov.b64 %rd3, k_out;\nld.param.u64 %rd4, [%rd3];\nsetp.eq.u64 %p1, %rd4, "
      "%out;\nselp.u32 %r4, 100, 0, %p1;\n"
      "add.u32 %r2, %r2, %r3;\nadd.u32 %r2, %r2, %r4;\nst.global.u32 [%mine], %r2;\n",
      {}, ".const .align 4 .u32 table[4] = {1, 2, 3, 4};\n");
  expect_ok(outcome);
  for (uint32_t k = 0; k < 32; k++) EXPECT_EQ(outcome.out[k], 1 + k % 4 + 3 + 100);
}

// --- what observers see ----------------------------------------------------------------------------------------------

class AccessLog : public Observer {
 public:
  void access(const Access& a) override {
    std::string line = a.kind == Access::Kind::Read     ? "read"
                       : a.kind == Access::Kind::Write  ? "write"
                       : a.kind == Access::Kind::Atomic ? "atomic"
                                                        : "reduction";
    line += a.region == Region::Global ? " global" : a.region == Region::Shared ? " shared" : " local";
    lines.push_back(line + " " + std::to_string(a.bytes) + " x" + std::to_string(__builtin_popcount(a.mask)));
  }
  std::vector<std::string> lines;
};

TEST(Addresses, ObserverSeesEveryAccessOncePerRegion) {
  AccessLog log;
  Options options;
  options.observer = &log;
  // Lanes below 8 point into shared memory, the others into global memory.
  const Outcome outcome = run_body(
      "mov.u32 %r1, tile;\nsetp.lt.u32 %p1, %id, 8;\nst.shared.u32 [%r1], 0;\nmov.u64 %rd0, %mine;\n@%p1 cvt.u64.u32 "
      "%rd0, %r1;\n@%p1 cvta.shared.u64 %rd0, %rd0;\n"
      "ld.u32 %r2, [%rd0];\natom.shared.add.u32 %r3, [%r1], 1;\nred.global.add.u32 [%out], 1;\n@%p1 st.global.v2.u32 "
      "[%mine8], {%r2, %r3};\n",
      options, kShared);
  expect_ok(outcome);
  EXPECT_EQ(log.lines,
            (std::vector<std::string>{"write shared 4 x32", "read shared 4 x8", "read global 4 x24",
                                      "atomic shared 4 x32", "reduction global 4 x32", "write global 8 x8"}));
}

// --- a whole warp at once --------------------------------------------------------------------------------------------

/// Keeps where the lanes of the first write go, and of the last read.
class FirstWriteAndLastRead : public Observer {
 public:
  void access(const Access& a) override {
    if (a.kind == Access::Kind::Read) read.assign(a.address, a.address + kWarpSize);
    if (a.kind == Access::Kind::Write && write.empty()) write.assign(a.address, a.address + kWarpSize);
  }
  std::vector<uint64_t> write, read;
};

/// Distances in bytes from a common base, one a lane: a row and what only looks like one.
std::vector<std::vector<uint32_t>> lane_patterns() {
  std::vector<uint32_t> row(kWarpSize);
  for (uint32_t l = 0; l < kWarpSize; l++) row[l] = 4 * l;
  std::vector<std::vector<uint32_t>> all = {row, {row.rbegin(), row.rend()}, std::vector<uint32_t>(kWarpSize, 8)};
  for (size_t l = 0; l < kWarpSize; l++) {
    all.push_back(row);  // one lane astray, alone
    all.back()[l] = 256;
  }
  for (size_t l = 1; l + 2 < kWarpSize; l++) {
    all.push_back(row);  // the lowest first, the highest last, two between them changed over
    std::swap(all.back()[l], all.back()[l + 1]);
  }
  all.push_back(row);
  for (uint32_t& distance : all.back()) distance *= 2;
  return all;
}

TEST(WholeWarp, EveryLaneGoesToItsOwnAddress) {
  const std::string take = "mad.wide.u32 %rd0, %lane, 4, %in;\nld.global.u32 %r0, [%rd0];\nadd.u32 %r2, %lane, 100;\n";
  const std::string spaces[] = {
      "mov.u32 %r1, tile;\nadd.u32 %r1, %r1, %r0;\nst.shared.u32 [%r1+64], %r2;\nld.shared.u32 %r3, [%r1+64];\n",
      "cvt.u64.u32 %rd1, %r0;\nadd.u64 %rd1, %in, %rd1;\nst.global.u32 [%rd1+256], %r2;\n"
      "ld.global.u32 %r3, [%rd1+256];\n"};
  for (const std::string& space : spaces) {
    for (const std::vector<uint32_t>& distance : lane_patterns()) {
      SCOPED_TRACE(space + ::testing::PrintToString(distance));
      FirstWriteAndLastRead log;
      Options o;
      o.in = distance;
      o.in.resize(256);
      o.observer = &log;
      const Outcome watched = run_body(take + space + "st.global.u32 [%mine], %r3;\n", o, kShared);
      o.observer = nullptr;
      const Outcome alone = run_body(take + space + "st.global.u32 [%mine], %r3;\n", o, kShared);
      expect_ok(watched);
      expect_ok(alone);
      std::vector<uint32_t> expected(kWarpSize);
      for (size_t l = 0; l < kWarpSize; l++) {
        for (uint32_t other = 0; other < kWarpSize; other++) {
          if (distance[other] == distance[l]) expected[l] = 100 + other;  // the last of several that write one place
        }
      }
      EXPECT_EQ(words(watched, kWarpSize), expected);
      EXPECT_EQ(words(alone, kWarpSize), expected);
      ASSERT_EQ(log.write.size(), kWarpSize);
      EXPECT_EQ(log.write, log.read);
      for (size_t l = 0; l < kWarpSize; l++) EXPECT_EQ(log.write[l] - distance[l], log.write[0] - distance[0]) << l;
    }
  }
}

}  // namespace
}  // namespace handoff::machine
