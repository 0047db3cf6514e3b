// Wavefronts of single accesses, counted by hand and by a GPU.
#include "grader/emulator/trace/bank_conflicts.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>

namespace handoff::trace {
namespace {

using machine::kFullMask;
using machine::LaneMask;

struct Count {
  uint32_t taken, minimum, ways;
  bool operator==(const Count&) const = default;
};

void PrintTo(const Count& c, std::ostream* os) {
  *os << "taken " << c.taken << ", minimum " << c.minimum << ", ways " << c.ways;
}

// An access whose lane l lies at offset(l). Lanes that take no part get an address that would not go unnoticed.
Count count(SharedOp op, uint32_t bytes, const std::function<uint64_t(uint32_t)>& offset, LaneMask mask = kFullMask) {
  std::array<uint64_t, 32> address;
  for (uint32_t l = 0; l < 32; l++) address[l] = (mask >> l & 1) != 0 ? offset(l) : 128 * l;
  const Wavefronts w = count_wavefronts(op, bytes, mask, address.data());
  return {w.taken, w.minimum, w.ways};
}

// Lane l takes element l·stride.
Count strided(SharedOp op, uint32_t bytes, uint32_t stride, LaneMask mask = kFullMask) {
  return count(
      op, bytes, [=](uint32_t l) { return 1024 + uint64_t{bytes} * stride * l; }, mask);
}

// gcd(stride, 32) lanes meet in each bank that is used.
TEST(BankConflictsTest, WordsAtAStride) {
  for (const SharedOp op : {SharedOp::Load, SharedOp::Store}) {
    EXPECT_EQ(strided(op, 4, 1), (Count{1, 1, 1}));
    EXPECT_EQ(strided(op, 4, 2), (Count{2, 1, 2}));
    EXPECT_EQ(strided(op, 4, 3), (Count{1, 1, 1}));
    EXPECT_EQ(strided(op, 4, 4), (Count{4, 1, 4}));
    EXPECT_EQ(strided(op, 4, 8), (Count{8, 1, 8}));
    EXPECT_EQ(strided(op, 4, 12), (Count{4, 1, 4}));
    EXPECT_EQ(strided(op, 4, 16), (Count{16, 1, 16}));
    EXPECT_EQ(strided(op, 4, 31), (Count{1, 1, 1}));
    EXPECT_EQ(strided(op, 4, 32), (Count{32, 1, 32}));
    EXPECT_EQ(strided(op, 4, 33), (Count{1, 1, 1}));
    EXPECT_EQ(strided(op, 4, 64), (Count{32, 1, 32}));
  }
}

// A row that does not begin at bank 0, and one that runs backwards, use each bank once.
TEST(BankConflictsTest, RowsAnywhere) {
  EXPECT_EQ(count(SharedOp::Load, 4, [](uint32_t l) { return 1024 + 20 + 4 * l; }), (Count{1, 1, 1}));
  EXPECT_EQ(count(SharedOp::Load, 4, [](uint32_t l) { return 1024 - 4 * l; }), (Count{1, 1, 1}));
  // The first two lanes are neighbours, the others lie in bank 2.
  EXPECT_EQ(count(SharedOp::Load, 4, [](uint32_t l) { return l < 2 ? 4 * l : 8 + 128 * l; }), (Count{30, 1, 30}));
}

TEST(BankConflictsTest, LanesThatMeetInAWordShareIt) {
  for (const SharedOp op : {SharedOp::Load, SharedOp::Store}) {
    EXPECT_EQ(strided(op, 4, 0), (Count{1, 1, 1})) << "one word";
    EXPECT_EQ(count(op, 4, [](uint32_t l) { return l / 8 * 4; }), (Count{1, 1, 1})) << "four words";
    EXPECT_EQ(count(op, 4, [](uint32_t l) { return l % 2 * 128; }), (Count{2, 1, 2})) << "two words of a bank";
    EXPECT_EQ(count(op, 4, [](uint32_t l) { return l % 4 * 128 + l / 4 % 2 * 4; }), (Count{4, 1, 4}));
  }
}

TEST(BankConflictsTest, BytesAndHalvesOfAWordAreOneWord) {
  for (const SharedOp op : {SharedOp::Load, SharedOp::Store}) {
    EXPECT_EQ(strided(op, 1, 1), (Count{1, 1, 1})) << "8 words";
    EXPECT_EQ(strided(op, 2, 1), (Count{1, 1, 1})) << "16 words";
    EXPECT_EQ(strided(op, 1, 4), (Count{1, 1, 1})) << "a byte of each of 32 words";
    EXPECT_EQ(strided(op, 1, 5), (Count{2, 1, 2})) << "160 bytes: words 0 to 38";
    EXPECT_EQ(strided(op, 2, 4), (Count{2, 1, 2})) << "every other word of 64";
    EXPECT_EQ(strided(op, 1, 128), (Count{32, 1, 32}));
    EXPECT_EQ(count(op, 1, [](uint32_t l) { return l % 4; }), (Count{1, 1, 1}));
  }
}

// 16 lanes of 8 bytes fill the 32 banks, so a warp takes two turns. At stride s, lanes l and l + 16/s meet.
TEST(BankConflictsTest, EightBytesGoByHalfWarps) {
  for (const SharedOp op : {SharedOp::Load, SharedOp::Store}) {
    EXPECT_EQ(strided(op, 8, 1), (Count{2, 2, 1}));
    EXPECT_EQ(strided(op, 8, 2), (Count{4, 2, 2}));
    EXPECT_EQ(strided(op, 8, 3), (Count{2, 2, 1}));
    EXPECT_EQ(strided(op, 8, 4), (Count{8, 2, 4}));
    EXPECT_EQ(strided(op, 8, 16), (Count{32, 2, 16}));
    EXPECT_EQ(strided(op, 8, 17), (Count{2, 2, 1}));
    // Lanes l and l + 16 are in different turns and do not meet.
    EXPECT_EQ(count(op, 8, [](uint32_t l) { return l % 16 * 8 + l / 16 * 1024; }), (Count{2, 2, 1}));
  }
}

// 8 lanes of 16 bytes fill the banks.
TEST(BankConflictsTest, SixteenBytesGoByQuarterWarps) {
  for (const SharedOp op : {SharedOp::Load, SharedOp::Store}) {
    EXPECT_EQ(strided(op, 16, 1), (Count{4, 4, 1}));
    EXPECT_EQ(strided(op, 16, 2), (Count{8, 4, 2}));
    EXPECT_EQ(strided(op, 16, 3), (Count{4, 4, 1}));
    EXPECT_EQ(strided(op, 16, 4), (Count{16, 4, 4}));
    EXPECT_EQ(strided(op, 16, 8), (Count{32, 4, 8}));
    EXPECT_EQ(strided(op, 16, 9), (Count{4, 4, 1}));
    // Rows of 128 bytes whose 16-byte units are permuted by the row, as the 128-byte swizzle of TMA does: a column.
    EXPECT_EQ(count(op, 16, [](uint32_t l) { return 128 * l + 16 * (5 ^ l % 8); }), (Count{4, 4, 1}));
    // The same column without the permutation.
    EXPECT_EQ(count(op, 16, [](uint32_t l) { return 128 * l + 16 * 5; }), (Count{32, 4, 8}));
  }
}

// Where pairs of lanes read the same address, two turns of a load fill only as many registers as one otherwise does.
TEST(BankConflictsTest, TwoTurnsOfALoadMerge) {
  const auto pairs_of = [](uint32_t bit, uint32_t bytes) {
    return [=](uint32_t l) { return uint64_t{bytes} * (l & ~bit); };
  };
  EXPECT_EQ(strided(SharedOp::Load, 8, 0), (Count{1, 1, 1}));
  EXPECT_EQ(strided(SharedOp::Load, 16, 0), (Count{2, 2, 1}));
  // Lanes 0, 2, 4, … of 8 bytes: words 0, 1, 4, 5, …, 60, 61: banks 0, 1, 4, 5, …, 28, 29, each twice.
  EXPECT_EQ(count(SharedOp::Load, 8, pairs_of(1, 8)), (Count{2, 1, 2}));
  EXPECT_EQ(count(SharedOp::Load, 8, [](uint32_t l) { return l / 2 * 8; }), (Count{1, 1, 1}));
  // Lanes 0, 1, 4, 5, …: words 0 to 3, 8 to 11, …, 56 to 59.
  EXPECT_EQ(count(SharedOp::Load, 8, pairs_of(2, 8)), (Count{2, 1, 2}));
  // Lanes four apart do not make a pair: two turns, each of words 0 to 7 and 16 to 23, or 32 to 39 and 48 to 55.
  EXPECT_EQ(count(SharedOp::Load, 8, pairs_of(4, 8)), (Count{2, 2, 1}));
  EXPECT_EQ(count(SharedOp::Load, 16, [](uint32_t l) { return l / 2 * 16; }), (Count{2, 2, 1}));
  EXPECT_EQ(count(SharedOp::Load, 16, pairs_of(1, 16)), (Count{4, 2, 2}));
  // Only the lower half-warp has pairs: its two turns merge, those of the upper one do not.
  EXPECT_EQ(count(SharedOp::Load, 16, [](uint32_t l) { return l < 16 ? l / 2 * 16 : l * 16; }), (Count{3, 3, 1}));
  // One pair of l ^ 1 and one of l ^ 2 that differ.
  EXPECT_EQ(count(SharedOp::Load, 8, [](uint32_t l) { return l == 3 ? 8u : 0u; }), (Count{2, 2, 1}));
  // Stores never do.
  EXPECT_EQ(strided(SharedOp::Store, 8, 0), (Count{2, 2, 1}));
  EXPECT_EQ(strided(SharedOp::Store, 16, 0), (Count{4, 4, 1}));
  EXPECT_EQ(count(SharedOp::Store, 8, [](uint32_t l) { return l / 2 * 8; }), (Count{2, 2, 1}));
}

TEST(BankConflictsTest, LanesThatTakeNoPartCostNothing) {
  for (const SharedOp op : {SharedOp::Load, SharedOp::Store}) {
    EXPECT_EQ(strided(op, 4, 32, 1u << 7), (Count{1, 1, 1}));
    EXPECT_EQ(strided(op, 4, 32, 0x80000001), (Count{2, 1, 2}));
    EXPECT_EQ(strided(op, 4, 2, 0x0000ffff), (Count{1, 1, 1})) << "16 even banks";
    EXPECT_EQ(strided(op, 4, 2, 0x55555555), (Count{2, 1, 2})) << "lanes l and l + 16 meet";
    EXPECT_EQ(strided(op, 8, 1, 0x0000ffff), (Count{1, 1, 1})) << "one turn";
    EXPECT_EQ(strided(op, 8, 2, 0xffff0000), (Count{2, 1, 2}));
    EXPECT_EQ(strided(op, 8, 1, 0x00010001), op == SharedOp::Load ? (Count{2, 1, 2}) : (Count{2, 2, 1}))
        << "no active lane of the load has an active partner that differs: one turn, in which words 0 and 32 meet";
    EXPECT_EQ(strided(op, 16, 1, 0x000000ff), (Count{1, 1, 1}));
    EXPECT_EQ(strided(op, 16, 1, 0xff0000ff), (Count{2, 2, 1}));
    EXPECT_EQ(strided(op, 16, 8, 0x00000003), (Count{2, 1, 2}));
  }
}

TEST(BankConflictsTest, AtomicsDoNotShareAWord) {
  constexpr SharedOp kOp = SharedOp::Atomic;
  EXPECT_EQ(strided(kOp, 4, 1), (Count{1, 1, 1}));
  EXPECT_EQ(strided(kOp, 4, 0), (Count{32, 1, 32}));
  EXPECT_EQ(strided(kOp, 4, 4), (Count{4, 1, 4}));
  EXPECT_EQ(count(kOp, 4, [](uint32_t l) { return l / 4 * 4; }), (Count{4, 1, 4}));
  EXPECT_EQ(strided(kOp, 4, 0, 1), (Count{1, 1, 1}));
  EXPECT_EQ(strided(kOp, 8, 1), (Count{2, 2, 1}));
  EXPECT_EQ(strided(kOp, 8, 0), (Count{32, 2, 16}));
}

// Eight rows a turn, whatever their addresses.
TEST(BankConflictsTest, TurnsOfLdmatrixDoNotMerge) {
  constexpr SharedOp kOp = SharedOp::LoadMatrix;
  EXPECT_EQ(strided(kOp, 16, 0), (Count{4, 4, 1}));
  EXPECT_EQ(strided(kOp, 16, 1), (Count{4, 4, 1}));
  EXPECT_EQ(strided(kOp, 16, 8), (Count{32, 4, 8}));
  EXPECT_EQ(strided(kOp, 16, 9), (Count{4, 4, 1}));
  EXPECT_EQ(strided(kOp, 16, 8, 0x000000ff), (Count{8, 1, 8})) << "x1";
  EXPECT_EQ(strided(kOp, 16, 0, 0x0000ffff), (Count{2, 2, 1})) << "x2";
}

struct Operation {
  SharedOp op;
  uint32_t bytes;
};

// The operations of bank_conflicts_probe.cu. ldmatrix and stmatrix are reads and writes of rows of 16 bytes.
const std::map<std::string, Operation> kOperations = {{"ld8", {SharedOp::Load, 1}},
                                                      {"ld16", {SharedOp::Load, 2}},
                                                      {"ld32", {SharedOp::Load, 4}},
                                                      {"ld64", {SharedOp::Load, 8}},
                                                      {"ld128", {SharedOp::Load, 16}},
                                                      {"st8", {SharedOp::Store, 1}},
                                                      {"st32", {SharedOp::Store, 4}},
                                                      {"st64", {SharedOp::Store, 8}},
                                                      {"st128", {SharedOp::Store, 16}},
                                                      {"atom32", {SharedOp::Atomic, 4}},
                                                      {"red32", {SharedOp::Atomic, 4}},
                                                      {"exch64", {SharedOp::Atomic, 8}},
                                                      {"ldmatrix1", {SharedOp::LoadMatrix, 16}},
                                                      {"ldmatrix2", {SharedOp::LoadMatrix, 16}},
                                                      {"ldmatrix4", {SharedOp::LoadMatrix, 16}},
                                                      {"stmatrix4", {SharedOp::Store, 16}}};

// What bank_conflicts_record.py wrote on an H200.
TEST(BankConflictsTest, AgreesWithAnH200) {
  std::ifstream record(HANDOFF_SOURCE_DIR "/grader/emulator/trace/bank_conflicts_h200.txt");
  std::map<std::string, int> launches;
  for (std::string line; std::getline(record, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    std::string name;
    LaneMask mask = 0;
    uint32_t wavefronts = 0, conflicts = 0;
    std::array<uint64_t, 32> address;
    fields >> name >> std::hex >> mask >> std::dec >> wavefronts >> conflicts;
    for (uint64_t& a : address) fields >> a;
    ASSERT_TRUE(fields) << line;
    const Operation& op = kOperations.at(name);
    const Wavefronts w = count_wavefronts(op.op, op.bytes, mask, address.data());
    EXPECT_EQ(w.taken, wavefronts) << line;
    EXPECT_EQ(w.taken - w.minimum, conflicts) << line;
    launches[name]++;
  }
  for (const auto& [name, op] : kOperations) EXPECT_GE(launches[name], 20) << name;
}

}  // namespace
}  // namespace handoff::trace
