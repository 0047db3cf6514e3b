// Rows, pieces and planes of shadow memory: an access must reach exactly its bytes, and splitting a row must lose
// nothing.
#include "grader/emulator/check/shadow.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace handoff::check {
namespace {

/// The addresses that a piece stands for.
std::set<uint64_t> bytes_of(const RowPiece& p) {
  std::set<uint64_t> bytes;
  for (uint64_t w = 0; w < 32; w++) {
    for (uint64_t b = 0; b < 4; b++) {
      if ((p.words >> w & 1) != 0 && (p.bytes >> b & 1) != 0) bytes.insert(p.row + 4 * w + b);
    }
  }
  return bytes;
}

TEST(ShadowTest, PiecesCoverARangeExactly) {
  for (uint64_t address = 1000; address < 1200; address++) {
    for (const uint64_t size : {1u, 2u, 3u, 4u, 7u, 8u, 16u, 127u, 128u, 129u, 300u}) {
      std::set<uint64_t> covered;
      Shadow::pieces(address, size, [&](const RowPiece& p) {
        EXPECT_EQ(p.row % Shadow::kRowBytes, 0u);
        for (const uint64_t b : bytes_of(p)) EXPECT_TRUE(covered.insert(b).second) << "byte " << b << " twice";
      });
      ASSERT_EQ(covered.size(), size);
      ASSERT_EQ(*covered.begin(), address);
      ASSERT_EQ(*covered.rbegin(), address + size - 1);
    }
  }
}

TEST(ShadowTest, WholeWordsShareAPlane) {
  Shadow shadow;
  int planes = 0;
  Shadow::pieces(256, 128, [&](const RowPiece& p) {
    shadow.visit(p, [&](Plane&, uint32_t byte) {
      planes++;
      EXPECT_EQ(byte, 0u);
    });
  });
  EXPECT_EQ(planes, 1);
}

TEST(ShadowTest, SplittingARowKeepsWhatItHolds) {
  Shadow shadow;
  RowPiece words{512, 0xff, 0xf};
  shadow.visit(words, [](Plane& p, uint32_t) {
    WriteRecord w;
    w.words = 0xff;
    w.n = 7;
    p.writes.push_back(w);
  });
  RowPiece byte{512, 1, 0x4};
  shadow.visit(byte, [](Plane& p, uint32_t b) {
    EXPECT_EQ(b, 2u);
    ASSERT_EQ(p.writes.size(), 1u);
    EXPECT_EQ(p.writes[0].n, 7u);
    p.writes[0].n = 8;
  });
  std::map<uint32_t, uint32_t> seen;
  shadow.visit(words, [&](Plane& p, uint32_t b) { seen[b] = p.writes[0].n; });
  EXPECT_EQ(seen, (std::map<uint32_t, uint32_t>{{0, 7}, {1, 7}, {2, 8}, {3, 7}}));
}

/// The planes that an access of `bytes` of the first word of the row at 512 is handed, by their first byte, with the n
/// of their only write; each is given `n`, if it is not 0.
std::map<uint32_t, uint32_t> write_at(Shadow& shadow, uint8_t bytes, uint32_t n) {
  std::map<uint32_t, uint32_t> seen;
  shadow.visit({512, 1, bytes}, [&](Plane& p, uint32_t byte) {
    if (p.writes.empty()) p.writes.push_back({}).words = 1;
    seen[byte] = p.writes[0].n;
    if (n != 0) p.writes[0].n = n;
  });
  return seen;
}

TEST(ShadowTest, HalvesOfWordsNeedTwoPlanes) {
  using Seen = std::map<uint32_t, uint32_t>;
  Shadow shadow;
  write_at(shadow, 0xf, 1);
  EXPECT_EQ(write_at(shadow, 0xc, 2), (Seen{{2, 1}}));
  EXPECT_EQ(write_at(shadow, 0x3, 3), (Seen{{0, 1}}));
  EXPECT_EQ(write_at(shadow, 0xf, 0), (Seen{{0, 3}, {2, 2}}));
  EXPECT_EQ(shadow.whole(512), nullptr);
  // A byte splits them again.
  EXPECT_EQ(write_at(shadow, 0x2, 4), (Seen{{1, 3}}));
  EXPECT_EQ(write_at(shadow, 0x8, 5), (Seen{{3, 2}}));
  EXPECT_EQ(write_at(shadow, 0xc, 0), (Seen{{2, 2}, {3, 5}}));
  EXPECT_EQ(write_at(shadow, 0xf, 0), (Seen{{0, 3}, {1, 4}, {2, 2}, {3, 5}}));
}

TEST(ShadowTest, PlanesThatSayTheSameBecomeOne) {
  for (const uint8_t part : {0x3, 0x4}) {
    ShadowBytes total;
    Shadow shadow(&total);
    write_at(shadow, 0xf, 1);
    const size_t one = shadow.host_bytes();
    write_at(shadow, part, 2);
    shadow.visit({512, 1, part}, [](Plane& p, uint32_t) { p.reads.push_back({}).words = 1; });
    EXPECT_GT(shadow.host_bytes(), one);
    write_at(shadow, 0xf, 3);
    EXPECT_EQ(shadow.whole(512), nullptr) << "one of them remembers a read";
    shadow.visit({512, 1, 0xf}, [](Plane& p, uint32_t byte) {
      p.reads = {};
      p.writes[0].lane[0] = static_cast<uint8_t>(byte);
    });
    EXPECT_EQ(shadow.whole(512), nullptr) << "different lanes wrote";
    shadow.visit({512, 1, 0xf}, [](Plane& p, uint32_t) { p.writes[0].lane[0] = 7; });
    ASSERT_NE(shadow.whole(512), nullptr);
    EXPECT_EQ(shadow.whole(512)->writes[0].n, 3u);
    EXPECT_EQ(shadow.host_bytes(), one);
    EXPECT_EQ(total.now, one);
  }
}

TEST(ShadowTest, RemembersTheLastWriterOfEachByte) {
  Shadow shadow;
  std::map<uint64_t, uint32_t> model;
  std::mt19937 random(2);
  for (uint32_t n = 1; n <= 2000; n++) {
    const uint64_t size = uint64_t{1} << random() % 6, address = 4096 * (random() % 3) + random() % 512 / size * size;
    Shadow::pieces(address, size, [&](const RowPiece& piece) {
      shadow.visit(piece, [&](Plane& p, uint32_t) {
        for (WriteRecord& w : p.writes) w.words &= ~piece.words;
        p.writes.erase_if([](const WriteRecord& w) { return w.words == 0; });
        WriteRecord w;
        w.words = piece.words;
        w.n = n;
        p.writes.push_back(w);
      });
    });
    for (uint64_t b = address; b < address + size; b++) model[b] = n;
  }
  for (const auto& [address, n] : model) {
    Shadow::pieces(address, 1, [&, want = n, at = address](const RowPiece& piece) {
      shadow.visit(piece, [&](Plane& p, uint32_t) {
        uint32_t found = 0, hits = 0;
        for (const WriteRecord& w : p.writes) {
          if ((w.words & piece.words) == 0) continue;
          found = w.n;
          hits++;
        }
        EXPECT_EQ(hits, 1u) << "byte " << at;
        EXPECT_EQ(found, want) << "byte " << at;
      });
    });
  }
}

template <class R>
void add(Records<R>& records, int count) {
  for (int i = 0; i < count; i++) records.push_back({});
}

TEST(ShadowTest, RecordsKeepTheirOrderAndWhatIsNotErased) {
  for (uint32_t count = 0; count < 5; count++) {
    Records<ReadRecord> records;
    for (uint32_t n = 0; n < count; n++) records.push_back({}).n = n;
    if (count > 0) records[0].lanes.set(3, 5);
    Records<ReadRecord> copy = records;
    records.erase_if([](const ReadRecord& r) { return r.n != 1; });
    EXPECT_EQ(records.size(), count > 1 ? 1u : 0u);
    if (!records.empty()) {
      EXPECT_EQ(records[0].n, 1u);
    }
    records.push_back({}).n = 9;
    EXPECT_EQ(records[records.size() - 1].n, 9u);
    ASSERT_EQ(copy.size(), count) << "a copy shares nothing";
    uint32_t n = 0;
    for (const ReadRecord& r : copy) EXPECT_EQ(r.n, n++);
    if (count > 0) {
      EXPECT_EQ(copy[0].lanes[3], 5u);
    }
  }
}

TEST(ShadowTest, LanesOfWords) {
  const WordLanes ordered(nullptr, 3);
  EXPECT_EQ(ordered.order(), 3);
  EXPECT_EQ(ordered[3], 1u) << "lane 0 touched word 3";
  EXPECT_EQ(ordered[2], 1u << 31);
  EXPECT_TRUE(ordered.same(nullptr, 3));
  const WordLanes down(nullptr, kDownwards + 5);
  EXPECT_EQ(down[5], 1u) << "lane 0 touched word 5";
  EXPECT_EQ(down[4], 2u);
  EXPECT_EQ(down[6], 1u << 31);
  EXPECT_FALSE(ordered.same(nullptr, 2));
  WordLanes::Each each = {};
  each[7] = 0xff;
  EXPECT_FALSE(ordered.same(&each, kMixed));
  const WordLanes mixed(&each);
  EXPECT_TRUE(mixed.same(&each, kMixed));
  EXPECT_EQ(mixed.order(), kMixed);
  EXPECT_EQ(mixed[7], 0xffu);
  EXPECT_EQ(mixed[8], 0u);
  WordLanes other = ordered;
  other.set(8, 3);
  EXPECT_EQ(other.order(), kMixed);
  EXPECT_EQ(other[8], 3u);
  EXPECT_EQ(other[3], 1u) << "what is not set stays";
  EXPECT_EQ(ordered[8], 1u << 5) << "a copy shares nothing";
}

TEST(ShadowTest, CountsWhatItHolds) {
  ShadowBytes total;
  Shadow shadow(&total);
  EXPECT_EQ(shadow.host_bytes(), 0u);
  shadow.visit({0, 1, 0xf}, [](Plane& p, uint32_t) { add(p.writes, 3); });
  const size_t one = shadow.host_bytes();
  EXPECT_GE(one, 3 * sizeof(WriteRecord));
  EXPECT_EQ(total.now, one);
  // Splitting a row copies its records to the planes of the other bytes.
  shadow.visit({0, 1, 0x1}, [](Plane& p, uint32_t) { add(p.reads, 2); });
  EXPECT_GE(shadow.host_bytes(), one + 9 * sizeof(WriteRecord) + 2 * sizeof(ReadRecord));
  const size_t split = shadow.host_bytes();
  shadow.visit({0, 1, 0x1}, [](Plane& p, uint32_t) { p.reads = {}; });
  EXPECT_LE(shadow.host_bytes(), split - 2 * sizeof(ReadRecord));
  {
    Shadow other(&total);
    other.visit({512, 1, 0xf}, [](Plane& p, uint32_t) { add(p.reads, 100); });
    EXPECT_EQ(total.now, shadow.host_bytes() + other.host_bytes());
  }
  EXPECT_EQ(total.now, shadow.host_bytes()) << "a shadow gives its share back when it dies";
  EXPECT_GT(total.most, total.now);
  shadow.clear();
  EXPECT_EQ(shadow.host_bytes(), 0u);
  EXPECT_EQ(total.now, 0u);
}

}  // namespace
}  // namespace handoff::check
