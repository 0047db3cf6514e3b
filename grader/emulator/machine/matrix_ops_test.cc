// ldmatrix, stmatrix and movmatrix. The expected layouts are written down a second time, in another form: as the
// thread-value layouts (shapes and strides over bit positions) with which CuTe describes its copy atoms.
#include "grader/emulator/machine/matrix_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "grader/emulator/machine/testing.h"

namespace handoff::machine {
namespace {

using machine::testing::expect_ok;
using machine::testing::Options;
using machine::testing::Outcome;
using machine::testing::run_body;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kShared = ".shared .align 128 .b8 tile[512];\n";

/// Modes (shape, stride), the first one fastest: a coordinate becomes a bit position.
using Layout = std::vector<std::pair<uint32_t, uint32_t>>;
uint32_t position(const Layout& layout, uint32_t coordinate) {
  uint32_t p = 0;
  for (const auto& [shape, stride] : layout) {
    p += coordinate % shape * stride;
    coordinate /= shape;
  }
  return p;
}

/// A form of ldmatrix or stmatrix. A position that memory and registers share is where the bit is in the matrix as
/// CuTe counts it.
struct Form {
  const char* opcode;
  uint32_t registers;
  uint32_t lanes;          // that supply addresses
  Layout rows;             // lane → position of the first bit of its row
  Layout threads;          // lane → position of its first bit
  Layout units;            // n-th unit of its registers → position, added to that
  uint32_t unit;           // bytes that stay together
  bool exchanged = false;  // units 1 and 2 of every four bytes pairs trade places: CuTe's atom permutes the registers
  uint32_t narrow = 0;     // bits of an element in memory
};

const Layout kLow8{{8, 128}, {4, 0}}, kLow16{{16, 128}, {2, 0}}, kAll{{32, 128}};
const Layout kRowThreads{{32, 32}}, kPairThreads{{4, 256}, {8, 16}}, kByteThreads{{4, 256}, {8, 8}};

std::vector<Form> loads() {
  const Layout quads{{1, 0}, {4, 1024}}, pairs{{2, 128}, {4, 1024}}, bytes{{2, 128}, {2, 64}, {4, 1024}};
  const Layout low_square{{2, 128}, {2, 1024}, {4, 256}, {2, 0}}, square{{2, 128}, {2, 1024}, {4, 256}, {2, 2048}};
  return {
      {"m8n8.x1.shared.b16", 1, 8, kLow8, kRowThreads, quads, 4},
      {"m8n8.x2.shared::cta.b16", 2, 16, kLow16, kRowThreads, quads, 4},
      {"x4.m8n8.shared.b16", 4, 32, kAll, kRowThreads, quads, 4},
      {"m8n8.x1.trans.shared.b16", 1, 8, kLow8, kPairThreads, pairs, 2},
      {"m8n8.x2.trans.shared.b16", 2, 16, kLow16, kPairThreads, pairs, 2},
      {"m8n8.x4.shared.b16.trans", 4, 32, kAll, kPairThreads, pairs, 2},
      {"m16n16.x1.trans.shared.b8", 2, 16, low_square, kByteThreads, bytes, 1, true},
      {"m16n16.x2.trans.shared.b8", 4, 32, square, kByteThreads, bytes, 1, true},
      {"m16n16.x1.trans.shared.b8x16.b4x16_p64", 2, 16, low_square, kByteThreads, bytes, 1, true, 4},
      {"m16n16.x2.trans.shared::cta.b8x16.b6x16_p32", 4, 32, square, kByteThreads, bytes, 1, true, 6},
      {"m8n16.x1.shared.b8x16.b6x16_p32", 1, 8, kLow8, kRowThreads, quads, 4, false, 6},
      {"m8n16.x2.shared.b8x16.b4x16_p64", 2, 16, kLow16, kRowThreads, quads, 4, false, 4},
      {"m8n16.x4.shared.b8x16.b6x16_p32", 4, 32, kAll, kRowThreads, quads, 4, false, 6},
  };
}
std::vector<Form> stores() {
  const Layout quads{{1, 0}, {4, 1024}}, pairs{{2, 128}, {4, 1024}}, bytes{{2, 128}, {2, 64}, {4, 1024}};
  return {
      {"m8n8.x1.shared.b16", 1, 8, kLow8, kRowThreads, quads, 4},
      {"m8n8.x2.shared.b16", 2, 16, kLow16, kRowThreads, quads, 4},
      {"m8n8.x4.shared::cta.b16", 4, 32, kAll, kRowThreads, quads, 4},
      {"m8n8.x1.trans.shared.b16", 1, 8, kLow8, kPairThreads, pairs, 2},
      {"m8n8.x2.trans.shared.b16", 2, 16, kLow16, kPairThreads, pairs, 2},
      {"x4.m8n8.shared.b16.trans", 4, 32, kAll, kPairThreads, pairs, 2},
      {"m16n8.x1.trans.shared.b8", 1, 8, kLow8, kByteThreads, bytes, 1},
      {"m16n8.x2.trans.shared.b8", 2, 16, kLow16, kByteThreads, bytes, 1},
      {"m16n8.x4.trans.shared.b8", 4, 32, kAll, kByteThreads, bytes, 1},
  };
}

/// Byte `byte` of the registers of lane t, register after register, lies in which byte of which lane's row?
std::pair<uint32_t, uint32_t> home(const Form& form, uint32_t t, uint32_t byte) {
  if (form.exchanged) {
    // Registers hold bytes 0 1 4 5 | 2 3 6 7 of what CuTe's atom makes of them.
    const uint32_t group = byte % 8;
    byte = byte - group + (group / 4 * 2 + group % 4 / 2 * 4 + group % 2);
  }
  const uint32_t bit = position(form.threads, t) + position(form.units, byte / form.unit) + byte % form.unit * 8;
  for (uint32_t lane = 0; lane < form.lanes; lane++) {
    const uint32_t row = position(form.rows, lane);
    if (bit >= row && bit < row + 128) return {lane, (bit - row) / 8};
  }
  ADD_FAILURE() << form.opcode << ": no row holds bit " << bit;
  return {};
}

uint8_t pattern(uint32_t i) { return static_cast<uint8_t>((i * 2654435761u) >> 13); }

/// Register `%r1`: where this lane's row lies, rows out of order; lanes that supply none have an address of nowhere.
std::string addresses(uint32_t lanes) {
  return "mul.lo.u32 %r0, %lane, 5;\nadd.u32 %r0, %r0, 3;\nand.b32 %r0, %r0, 31;\nshl.b32 %r0, %r0, 4;\nmov.u32 %r1, "
         "tile;\nadd.u32 %r2, %r1, %r0;\nmov.u32 %r1, %r2;\nsetp.ge.u32 %p0, %lane, " +
         std::to_string(lanes) + ";\n@%p0 mov.u32 %r1, 0x00fffff3;\n";
}
std::string registers(uint32_t first, uint32_t count) {
  std::string list;
  for (uint32_t j = 0; j < count; j++) list += (j > 0 ? ", %r" : "%r") + std::to_string(first + j);
  return "{" + list + "}";
}

TEST(MatrixOps, LdmatrixSpreadsRowsOverTheWarp) {
  Options options;
  for (uint32_t i = 0; i < 128; i++) {
    options.in.push_back(pattern(4 * i) | pattern(4 * i + 1) << 8 | pattern(4 * i + 2) << 16 |
                         static_cast<uint32_t>(pattern(4 * i + 3)) << 24);
  }
  for (const Form& form : loads()) {
    SCOPED_TRACE(form.opcode);
    std::string body =
        addresses(form.lanes) +
        "mul.wide.u32 %rd0, %lane, 16;\nadd.u64 %rd0, %in, %rd0;\nld.global.v4.u32 {%r4, %r5, %r6, %r7}, "
        "[%rd0];\nst.shared.v4.u32 [%r2], {%r4, %r5, %r6, %r7};\nbar.warp.sync -1;\nldmatrix.sync.aligned." +
        std::string(form.opcode) + " " + registers(10, form.registers) + ", [%r1];\n";
    for (uint32_t j = 0; j < form.registers; j++)
      body += "st.global.u32 [%mine+" + std::to_string(128 * j) + "], %r" + std::to_string(10 + j) + ";\n";
    const Outcome outcome = run_body(body, options, kShared);
    expect_ok(outcome);
    for (uint32_t t = 0; t < 32; t++) {
      for (uint32_t byte = 0; byte < 4 * form.registers; byte++) {
        const auto [lane, at] = home(form, t, byte);
        uint32_t want = pattern(16 * lane + at);
        if (form.narrow != 0) {  // element `at` of the row's packed bits
          unsigned __int128 row = 0;
          for (uint32_t b = 0; b < 16; b++) row |= static_cast<unsigned __int128>(pattern(16 * lane + b)) << (8 * b);
          want = static_cast<uint32_t>(row >> (form.narrow * at)) & ((1u << form.narrow) - 1);
        }
        ASSERT_EQ(outcome.out[byte / 4 * 32 + t] >> (byte % 4 * 8) & 0xff, want) << "lane " << t << " byte " << byte;
      }
    }
  }
}

TEST(MatrixOps, StmatrixGathersRowsFromTheWarp) {
  for (const Form& form : stores()) {
    SCOPED_TRACE(form.opcode);
    // Register j of lane t holds the bytes 16t + 4j … 16t + 4j + 3 of the pattern.
    Options options;
    for (uint32_t i = 0; i < 128; i++) {
      options.in.push_back(pattern(4 * i) | pattern(4 * i + 1) << 8 | pattern(4 * i + 2) << 16 |
                           static_cast<uint32_t>(pattern(4 * i + 3)) << 24);
    }
    const std::string body =
        addresses(form.lanes) +
        "mul.wide.u32 %rd0, %lane, 16;\nadd.u64 %rd1, %in, %rd0;\nld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd1];\n"
        "stmatrix.sync.aligned." +
        form.opcode + " [%r1], " + registers(10, form.registers) +
        ";\nbar.warp.sync -1;\nadd.u64 %rd2, %out, %rd0;\n@%p0 ret;\nld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r2];\n"
        "st.global.v4.u32 [%rd2], {%r4, %r5, %r6, %r7};\n";
    const Outcome outcome = run_body(body, options, kShared);
    expect_ok(outcome);
    for (uint32_t t = 0; t < 32; t++) {
      for (uint32_t byte = 0; byte < 4 * form.registers; byte++) {
        const auto [lane, at] = home(form, t, byte);
        ASSERT_EQ(outcome.out[4 * lane + at / 4] >> (at % 4 * 8) & 0xff, pattern(16 * t + byte))
            << "lane " << t << " byte " << byte;
      }
    }
    for (uint32_t k = 4 * form.lanes; k < 128; k++) ASSERT_EQ(outcome.out[k], 0u);
  }
}

TEST(MatrixOps, GenericAddressesPointIntoSharedMemory) {
  const Outcome outcome = run_body(
      "mov.u32 %r1, tile;\nshl.b32 %r0, %lane, 4;\nadd.u32 %r1, %r1, %r0;\ncvt.u64.u32 %rd0, %r1;\ncvta.shared.u64 "
      "%rd0, "
      "%rd0;\nadd.u32 %r2, %lane, 100;\nstmatrix.sync.aligned.m8n8.x1.b16 [%rd0], {%r2};\nbar.warp.sync -1;\n"
      "ldmatrix.sync.aligned.m8n8.x1.b16 {%r3}, [%rd0];\nst.global.u32 [%mine], %r3;\n",
      {}, kShared);
  expect_ok(outcome);
  for (uint32_t t = 0; t < 32; t++) EXPECT_EQ(outcome.out[t], 100 + t);
}

TEST(MatrixOps, MovmatrixTransposes) {
  // Element (r, c) is 8r + c.
  const Outcome outcome = run_body(
      "shl.b32 %r0, %lane, 1;\nadd.u32 %r1, %r0, 1;\nshl.b32 %r1, %r1, 16;\nor.b32 %r1, %r1, %r0;\n"
      "movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1;\nmovmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;\n"
      "st.global.u32 [%mine], %r2;\nst.global.u32 [%mine+128], %r1;\n");
  expect_ok(outcome);
  for (uint32_t row = 0; row < 8; row++) {
    for (uint32_t column = 0; column < 8; column++) {
      const auto element = [&](uint32_t first) {
        return outcome.out[first + 4 * row + column / 2] >> (column % 2 * 16) & 0xffff;
      };
      EXPECT_EQ(element(0), 8 * column + row);
      EXPECT_EQ(element(32), 8 * row + column);
    }
  }
}

class AccessLog : public Observer {
 public:
  void access(const Access& a) override {
    if (a.region != Region::Shared) return;
    lines.push_back(std::string(a.kind == Access::Kind::Write ? "write " : "read ") + std::to_string(a.bytes) + " " +
                    lane_ranges(a.mask) + " at " + std::to_string(a.address[3] - kSharedBase));
  }
  std::vector<std::string> lines;
};

TEST(MatrixOps, ObserversSeeRowsAtTheLanesThatNamedThem) {
  AccessLog log;
  Options options;
  options.observer = &log;
  const Outcome outcome = run_body(
      "mov.u32 %r1, tile;\nshl.b32 %r0, %lane, 4;\nadd.u32 %r1, %r1, %r0;\nmov.u32 %r2, 0;\n"
      "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r1], {%r2, %r2, %r2, %r2};\nbar.warp.sync -1;\n"
      "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r3, %r4}, [%r1];\n"
      "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [%r1+32];\n",
      options, kShared);
  expect_ok(outcome);
  EXPECT_THAT(log.lines, ElementsAre("write 16 0-31 at 48", "read 16 0-15 at 48", "read 16 0-7 at 80"));
}

TEST(MatrixOps, RowsAreChecked) {
  const auto problem = [](const std::string& body, const Options& options = {}) {
    const Outcome outcome =
        run_body("mov.u32 %r1, tile;\nshl.b32 %r0, %lane, 4;\nadd.u32 %r1, %r1, %r0;\nmov.u32 %r2, 0;\n" + body,
                 options, kShared);
    return outcome.problem();
  };
  EXPECT_THAT(problem("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [%r1+8];"),
              StartsWith("misaligned: warp 0 lane 0 reads 16 bytes at tile+8, which is not a multiple of 16"));
  EXPECT_THAT(problem("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r1+16], {%r2, %r2, %r2, %r2};"),
              StartsWith("out-of-bounds: warp 0 lane 31 writes 16 bytes at shared offset"));
  // Rows beyond the end that no matrix needs are not touched.
  EXPECT_EQ(problem("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r3, %r4}, [%r1+256];"), "");
  EXPECT_THAT(problem("ldmatrix.sync.aligned.m8n8.x1.b16 {%r3}, [%out];"),
              HasSubstr("lane 0 reads a row of a matrix at address 0x7f"));
}

TEST(MatrixOps, TheWholeWarpTakesPart) {
  Options half;
  half.block = {48, 1, 1};
  const auto problem = [](const std::string& body, const Options& options) {
    return run_body("mov.u32 %r1, tile;\nmov.u32 %r2, 0;\n" + body, options, kShared).problem();
  };
  EXPECT_THAT(problem("movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r2;", half),
              StartsWith("diverged-collective: warp 1 lanes 0-15 executes movmatrix without lanes 16-31 of the warp"));
  EXPECT_THAT(
      problem("setp.eq.u32 %p0, %lane, 7;\n@%p0 ret;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [%r1];", {}),
      StartsWith("diverged-collective: warp 0 lanes 0-6,8-31 executes ldmatrix without lanes 7 of the warp"));
  EXPECT_THAT(problem("setp.eq.u32 %p0, %lane, 7;\n@%p0 stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r2};", {}),
              StartsWith("diverged-collective"));
}

}  // namespace
}  // namespace handoff::machine
