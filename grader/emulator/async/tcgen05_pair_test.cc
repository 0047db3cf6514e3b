// tcgen05 with .cta_group::2, and tcgen05.cp, through PTX: clusters of two CTAs of four warps. What each CTA
// contributes and receives is worked out element by element on the host, from PTX §9.7.16.5.1 and §9.7.16.10.5 (layouts
// A and B).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <initializer_list>
#include <utility>

#include "grader/emulator/async/testing.h"
#include "grader/emulator/machine/timing.h"

namespace handoff::async::testing {
namespace {

using machine::LaunchStatus;
using ::testing::HasSubstr;

/// Replaces every `$name`, in this order: a name comes behind those that begin with it.
std::string fill(std::string text, std::initializer_list<std::pair<std::string, std::string>> values) {
  for (const auto& [name, value] : values) {
    const std::string key = "$" + name;
    for (size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + value.size()))
      text.replace(at, key.size(), value);
  }
  return text;
}
std::string number(uint64_t v) { return std::to_string(v); }

constexpr uint32_t kLanes = 128, kColumn = 16;  // D or the copy begins at this column of the allocation
const std::string kCluster = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";

/// A cluster of two: %r1 is the rank, %p1 thread 0 of either CTA, %p3 warp 0, %p6 thread 0 of the issuing CTA.
struct PairKernel {
  uint32_t tile_words = 4;  ///< of each CTA; they come from `in`
  uint32_t lane_words = 0;  ///< behind them: for each CTA and lane, put behind `columns` columns; a multiple of 8
  uint32_t columns = 8;     ///< that are read back; a multiple of 8
  uint32_t issuer = 0;      ///< rank
  std::string issue;        ///< by the thread of the issuer; %rd4 = address of the tile / 16, %r14 = first column
  uint32_t group = 2;       ///< .cta_group
  machine::Schedule schedule;
  machine::Observer* observer = nullptr;
  std::vector<uint32_t> in;  ///< [2][tile_words], then [2][128][lane_words]

  /// Before the operation every cell holds the float 1000·rank + lane.
  static float first(uint32_t rank, uint32_t lane) { return static_cast<float>(1000 * rank + lane); }

  Kernel kernel() const {
    Kernel k;
    k.block = {128, 1, 1};
    k.grid = k.cluster = {2, 1, 1};
    k.schedule = schedule;
    k.observer = observer;
    k.in = in;
    k.out.assign(size_t{2} * kLanes * columns, 0);
    k.dynamic_smem = tile_words * 4;
    k.shared = ".extern .shared .align 1024 .b8 tile[];\n.shared .align 8 .b64 done;\n.shared .align 4 .b32 slot[4];\n";
    const std::string lanes = lane_words == 0 ? ""
                                              : fill(R"(
      mad.lo.u32 %r2, %r1, 128, %t;
      mul.wide.u32 %rd1, %r2, $bytes;
      add.u64 %rd1, %rd1, %inp;
      add.u32 %r3, %r11, $at;
      mov.u32 %r4, 0;
      LANES:
      ld.global.v4.u32 {%v0, %v1, %v2, %v3}, [%rd1+$from];
      ld.global.v4.u32 {%v4, %v5, %v6, %v7}, [%rd1+$after];
      tcgen05.st.sync.aligned.32x32b.x8.b32 [%r3], {%v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7};
      add.u64 %rd1, %rd1, 32;
      add.u32 %r3, %r3, 8;
      add.u32 %r4, %r4, 8;
      setp.lt.u32 %p2, %r4, $words;
      @%p2 bra LANES;
    )",
                                                     {{"bytes", number(uint64_t{lane_words} * 4)},
                                                      {"at", number(kColumn + columns)},
                                                      {"from", number(uint64_t{tile_words} * 8)},
                                                      {"after", number(uint64_t{tile_words} * 8 + 16)},
                                                      {"words", number(lane_words)}});
    k.body = "\n.reg .b32 %v<8>;\n" + fill(R"(
      mov.u32 %r1, %cluster_ctarank;
      setp.eq.u32 %p1, %t, 0;
      setp.eq.u32 %p3, %w, 0;
      setp.eq.and.u32 %p6, %r1, $issuer, %p1;
      mul.wide.u32 %rd1, %r1, $tile_bytes;
      add.u64 %rd2, %inp, %rd1;
      mov.u32 %r2, %t;
      COPY:
      mul.wide.u32 %rd1, %r2, 4;
      add.u64 %rd1, %rd1, %rd2;
      ld.global.u32 %r3, [%rd1];
      shl.b32 %r4, %r2, 2;
      mov.u32 %r5, tile;
      add.u32 %r4, %r4, %r5;
      st.shared.u32 [%r4], %r3;
      add.u32 %r2, %r2, 128;
      setp.lt.u32 %p2, %r2, $tile_words;
      @%p2 bra COPY;
      fence.proxy.async.shared::cta;
      @%p1 mbarrier.init.shared::cta.b64 [done], 1;
      @%p1 fence.mbarrier_init.release.cluster;
      @!%p3 bra ALLOCATED;
      tcgen05.alloc.cta_group::$group.sync.aligned.shared::cta.b32 [slot], 512; // alloc
      ALLOCATED:
      bar.sync 0;
      ld.shared.u32 %r10, [slot];
      shl.b32 %r11, %w, 21;
      add.u32 %r11, %r10, %r11;
      mad.lo.u32 %r2, %r1, 1000, %t;
      cvt.rn.f32.u32 %f1, %r2;
      mov.b32 %r2, %f1;
      add.u32 %r3, %r11, $column;
      mov.u32 %r4, 0;
      FIRST:
      tcgen05.st.sync.aligned.32x32b.x8.b32 [%r3], {%r2, %r2, %r2, %r2, %r2, %r2, %r2, %r2};
      add.u32 %r3, %r3, 8;
      add.u32 %r4, %r4, 8;
      setp.lt.u32 %p2, %r4, $columns;
      @%p2 bra FIRST;
      $lanes
      tcgen05.wait::st.sync.aligned;
      tcgen05.fence::before_thread_sync;
      $cluster
      tcgen05.fence::after_thread_sync;
      @!%p6 bra ISSUED;
      mov.u32 %r5, tile;
      and.b32 %r5, %r5, 0x3ffff; // without the rank
      shr.u32 %r5, %r5, 4;
      cvt.u64.u32 %rd4, %r5;
      add.u32 %r14, %r10, $column;
      $issue
      mov.u16 %h1, 3;
      tcgen05.commit.cta_group::$group.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [done], %h1;
      ISSUED:
      SPIN:
      mbarrier.try_wait.parity.shared::cta.b64 %p5, [done], 0;
      @!%p5 bra SPIN;
      tcgen05.fence::after_thread_sync;
      mad.lo.u32 %r2, %r1, 128, %t;
      mul.wide.u32 %rd1, %r2, $row;
      add.u64 %rd1, %rd1, %outp;
      add.u32 %r3, %r11, $column;
      mov.u32 %r4, 0;
      READ:
      tcgen05.ld.sync.aligned.32x32b.x8.b32 {%v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7}, [%r3];
      tcgen05.wait::ld.sync.aligned;
      st.global.v4.u32 [%rd1], {%v0, %v1, %v2, %v3};
      st.global.v4.u32 [%rd1+16], {%v4, %v5, %v6, %v7};
      add.u64 %rd1, %rd1, 32;
      add.u32 %r3, %r3, 8;
      add.u32 %r4, %r4, 8;
      setp.lt.u32 %p2, %r4, $columns;
      @%p2 bra READ;
      tcgen05.fence::before_thread_sync;
      $cluster
      tcgen05.fence::after_thread_sync;
      @!%p3 bra END;
      tcgen05.dealloc.cta_group::$group.sync.aligned.b32 %r10, 512;
      END:
    )",
                                           {{"issuer", number(issuer)},
                                            {"issue", issue},
                                            {"tile_bytes", number(uint64_t{tile_words} * 4)},
                                            {"tile_words", number(tile_words)},
                                            {"group", number(group)},
                                            {"columns", number(columns)},
                                            {"column", number(kColumn)},
                                            {"lanes", lanes},
                                            {"cluster", kCluster},
                                            {"row", number(uint64_t{columns} * 4)}});
    return k;
  }
};

// --- mma -------------------------------------------------------------------------------------------------------------

/// Integers: every sum is exact.
int a_of(uint32_t row, uint32_t k) { return static_cast<int>((row * 7 + k * 5 + row * k) % 7) - 3; }
int b_of(uint32_t column, uint32_t k) { return static_cast<int>((column * 3 + k * 11 + column * k * 5) % 5) - 2; }
uint32_t float_bits(float value) { return std::bit_cast<uint32_t>(value); }

struct Product {
  bool tf32 = false;  ///< else bf16
  uint32_t m = 256, n = 64;
  uint32_t steps = 2;  ///< K = 32 bytes times this
  bool a_in_tensor_memory = false;
  bool accumulate = false;
  uint32_t issuer = 0;
  std::vector<uint32_t> disabled;  ///< disable-output-lane, 8 words or none
  machine::Schedule schedule;
  machine::Observer* observer = nullptr;

  uint32_t k() const { return steps * (tf32 ? 8 : 16); }
  uint32_t columns() const { return m == 256 ? n : n / 2; }
  uint32_t element(int value) const { return float_bits(static_cast<float>(value)) >> (tf32 ? 0 : 16); }
  uint32_t element_bytes() const { return tf32 ? 4 : 2; }
  // Shared memory, without swizzle: 8 rows of 16 bytes are 128 bytes, and all rows of 16 bytes of K lie together.
  static uint32_t lbo(uint32_t rows) { return rows * 16; }
  uint32_t bytes(uint32_t rows) const { return steps * 2 * lbo(rows); }
  uint32_t place(uint32_t rows, uint32_t row, uint32_t k_element) const {
    const uint32_t in_row = k_element * element_bytes();
    return in_row / 16 * lbo(rows) + row * 16 + in_row % 16;
  }
  static uint64_t descriptor(uint32_t rows) {
    return uint64_t{lbo(rows) / 16} << 16 | uint64_t{128 / 16} << 32 | uint64_t{1} << 46;
  }

  PairKernel kernel() const {
    const uint32_t rows = m / 2, b_columns = n / 2, b_at = a_in_tensor_memory ? 0 : bytes(rows);
    PairKernel p;
    p.tile_words = (b_at + bytes(b_columns)) / 4;
    p.lane_words = a_in_tensor_memory ? steps * 8 : 0;
    p.columns = (columns() + 7) / 8 * 8;
    p.issuer = issuer;
    p.schedule = schedule;
    p.observer = observer;
    p.in.assign(size_t{2} * p.tile_words, 0xdeadbeef);
    const auto put = [&](uint32_t rank, uint32_t at, uint32_t bits) {
      std::memcpy(reinterpret_cast<char*>(p.in.data() + size_t{rank} * p.tile_words) + at, &bits, element_bytes());
    };
    for (uint32_t rank = 0; rank < 2; rank++) {
      for (uint32_t e = 0; e < k(); e++) {
        for (uint32_t row = 0; row < rows && !a_in_tensor_memory; row++)
          put(rank, place(rows, row, e), element(a_of(rank * rows + row, e)));
        for (uint32_t column = 0; column < b_columns; column++)
          put(rank, b_at + place(b_columns, column, e), element(b_of(rank * b_columns + column, e)));
      }
    }
    for (uint32_t rank = 0; rank < 2 && a_in_tensor_memory; rank++) {
      for (uint32_t lane = 0; lane < kLanes; lane++) {
        const uint32_t row = rank * rows + lane % rows;
        for (uint32_t word = 0; word < steps * 8; word++) {
          p.in.push_back(tf32 ? element(a_of(row, word))
                              : element(a_of(row, 2 * word)) | element(a_of(row, 2 * word + 1)) << 16);
        }
      }
    }
    const uint32_t code = tf32 ? 2 : 1;
    p.issue = fill("mov.u32 %r12, $instruction;\nadd.u64 %rd5, %rd4, $a;\nadd.u64 %rd6, %rd4, $b;\n",
                   {{"instruction", number(1u << 4 | code << 7 | code << 10 | n / 8 << 17 | m / 16 << 24)},
                    {"a", number(descriptor(rows))},
                    {"b", number(descriptor(b_columns) + b_at / 16)}});
    std::string mask;
    for (uint32_t word = 0; word < disabled.size(); word++) {
      p.issue += "mov.u32 %r" + number(40 + word) + ", " + number(disabled[word]) + ";\n";
      mask += (word == 0 ? ", {%r" : ", %r") + number(40 + word) + (word == 7 ? "}" : "");
    }
    p.issue += "setp.ne.u32 %p4, " + std::string(accumulate ? "1" : "0") + ", 0;\n";
    for (uint32_t step = 0; step < steps; step++) {
      p.issue += fill("tcgen05.mma.cta_group::2.kind::$kind [%r14], $a, %rd6, %r12$mask, %p4; // mma\n",
                      {{"kind", tf32 ? "tf32" : "f16"},
                       {"a", a_in_tensor_memory ? "[%r14+" + number(p.columns + uint64_t{step} * 8) + "]" : "%rd5"},
                       {"mask", mask}});
      p.issue += "setp.eq.u32 %p4, 0, 0;\nadd.u64 %rd5, %rd5, " + number(2 * lbo(rows) / 16) +
                 ";\nadd.u64 %rd6, %rd6, " + number(2 * lbo(b_columns) / 16) + ";\n";
    }
    return p;
  }

  /// The cell of a CTA's lane.
  uint32_t expected(uint32_t rank, uint32_t lane, uint32_t column) const {
    const float old = PairKernel::first(rank, lane);
    if (!disabled.empty() && (disabled[4 * rank + lane / 32] >> lane % 32 & 1) != 0) return float_bits(old);
    const uint32_t row = m == 256 ? 128 * rank + lane : 64 * rank + lane % 64;
    const uint32_t d_column = m == 256 ? column : column + lane / 64 * (n / 2);
    int sum = 0;
    for (uint32_t e = 0; e < k(); e++) sum += a_of(row, e) * b_of(d_column, e);
    return float_bits((accumulate ? old : 0) + static_cast<float>(sum));
  }
  void expect_in(const Outcome& o) const {
    ASSERT_TRUE(clean(o));
    const uint32_t row = (columns() + 7) / 8 * 8;
    for (uint32_t rank = 0; rank < 2; rank++) {
      for (uint32_t lane = 0; lane < kLanes; lane++) {
        for (uint32_t column = 0; column < columns(); column++) {
          ASSERT_EQ(o.out[(size_t{rank} * kLanes + lane) * row + column], expected(rank, lane, column))
              << "rank " << rank << " lane " << lane << " column " << column;
        }
      }
    }
  }
};
void PrintTo(const Product& p, std::ostream* out) {
  *out << (p.tf32 ? "tf32" : "bf16") << " M " << p.m << " N " << p.n << (p.a_in_tensor_memory ? " A in TMEM" : "")
       << (p.accumulate ? " accumulating" : "") << " issued by rank " << p.issuer;
}

std::vector<Product> sweep() {
  std::vector<Product> all;
  for (const uint32_t m : {128u, 256u}) {
    for (const uint32_t n : {16u, 48u, 256u}) {
      for (uint32_t form = 0; form < 8; form++) {
        Product p;
        p.m = m;
        p.n = n;
        p.tf32 = (form & 1) != 0;
        p.a_in_tensor_memory = (form & 2) != 0;
        p.accumulate = (form & 4) != 0;
        p.issuer = form % 3 == 2 ? 1 : 0;
        all.push_back(p);
      }
    }
  }
  return all;
}
class PairProductTest : public ::testing::TestWithParam<Product> {};
TEST_P(PairProductTest, IsThatOfTheHost) { GetParam().expect_in(run(GetParam().kernel().kernel())); }
INSTANTIATE_TEST_SUITE_P(Sweep, PairProductTest, ::testing::ValuesIn(sweep()));

TEST(PairMmaTest, EveryScheduleGivesTheSameResult) {
  for (const auto& schedule : schedules(6)) {
    Product p;
    p.accumulate = true;
    p.schedule = schedule;
    p.expect_in(run(p.kernel().kernel()));
  }
}

TEST(PairMmaTest, DisabledLanesKeepWhatTheyHave) {
  for (const uint32_t m : {128u, 256u}) {
    Product p;
    p.m = m;
    p.disabled = {1, 0, 0xffff0000, 0, 0, 0x80000001, 0, 0xffffffff};
    p.expect_in(run(p.kernel().kernel()));
  }
}

TEST(PairMmaTest, TakesTheTensorCoresAsLongAsItsHalf) {
  const auto interval = [](uint32_t m, uint32_t n) {
    Product p;
    p.m = m;
    p.n = n;
    Recorder recorder;
    p.observer = &recorder;
    EXPECT_TRUE(clean(run(p.kernel().kernel())));
    const machine::AsyncOpInfo& info = recorder.copies.front().info;
    EXPECT_NE(info.peer, nullptr);
    return info.busy_until - info.busy_from;
  };
  // The arithmetic decides: N / 2 and N / 4 cycles.
  EXPECT_EQ(interval(256, 256), 128u);
  EXPECT_EQ(interval(128, 256), 64u);
  // The way of the operands from shared memory does: 32 bytes of (M + N) / 2 rows, 128 bytes a cycle.
  EXPECT_EQ(interval(256, 64), 40u);
}

TEST(PairMmaTest, TheOtherCtaMustBeThere) {
  Kernel k = Product().kernel().kernel();
  const std::string leave = "setp.eq.u32 %p7, %r1, 1;\n@%p7 bra GONE;\nnanosleep.u32 20000;\nISSUE_LATE:\n";
  const size_t at = k.body.find("@!%p6 bra ISSUED;");
  k.body.insert(at, leave);
  k.body += "GONE:\n";
  const Outcome o = run(k);
  EXPECT_EQ(o.status, LaunchStatus::Fault);
  ASSERT_FALSE(o.diagnostics.empty());
  EXPECT_EQ(o.diagnostics.back().id, "remote-cta-gone") << text_of(o);
  EXPECT_EQ(o.diagnostics.back().place.line, line_of(k.body, "// mma"));
}

// --- cp --------------------------------------------------------------------------------------------------------------

struct Copy {
  const char* shape;
  uint32_t rows, words;               ///< of the source
  uint32_t (*row_of)(uint32_t lane);  ///< that a lane receives; ~0: none
};
constexpr uint32_t kNone = ~0u;
const Copy kCopies[] = {
    {"128x256b", 128, 8, [](uint32_t lane) { return lane; }},
    {"128x128b", 128, 4, [](uint32_t lane) { return lane; }},
    {"4x256b", 4, 8, [](uint32_t lane) { return lane % 32 == 0 ? lane / 32 : kNone; }},
    {"64x128b.warpx2::02_13", 64, 4, [](uint32_t lane) { return lane % 64; }},
    {"64x128b.warpx2::01_23", 64, 4, [](uint32_t lane) { return lane / 64 * 32 + lane % 32; }},
    {"32x128b.warpx4", 32, 4, [](uint32_t lane) { return lane % 32; }},
};

/// Rows of 8 in 128 bytes, with gaps behind; the second 16 bytes of each row at LBO.
PairKernel copy_kernel(const Copy& c, uint32_t group, uint32_t issuer) {
  constexpr uint32_t kSbo = 144;
  const uint32_t lbo = (c.rows + 7) / 8 * kSbo;
  PairKernel p;
  p.group = group;
  p.issuer = issuer;
  p.columns = 8;
  p.tile_words = (2 * lbo / 4 + 127) / 128 * 128;  // each thread copies as many
  for (uint32_t rank = 0; rank < 2; rank++) {
    std::vector<uint32_t> tile(p.tile_words, 0xdeadbeef);
    for (uint32_t row = 0; row < c.rows; row++) {
      for (uint32_t word = 0; word < c.words; word++)
        tile[word / 4 * lbo / 4 + row / 8 * kSbo / 4 + row % 8 * 4 + word % 4] = rank << 24 | row << 8 | word;
    }
    p.in.insert(p.in.end(), tile.begin(), tile.end());
  }
  p.issue = fill("add.u64 %rd5, %rd4, $d;\ntcgen05.cp.cta_group::$group.$shape [%r14], %rd5; // cp\n",
                 {{"d", number(uint64_t{lbo / 16} << 16 | uint64_t{kSbo / 16} << 32 | uint64_t{1} << 46)},
                  {"group", number(group)},
                  {"shape", c.shape}});
  return p;
}

TEST(TensorCopyTest, EveryShapePutsItsRowsWhereTheyBelong) {
  for (const Copy& c : kCopies) {
    for (const uint32_t group : {1u, 2u}) {
      for (const auto& schedule : schedules(1)) {
        PairKernel p = copy_kernel(c, group, group - 1);
        p.schedule = schedule;
        SCOPED_TRACE(std::string(c.shape) + " " + number(group));
        const Outcome o = run(p.kernel());
        ASSERT_TRUE(clean(o));
        for (uint32_t rank = 0; rank < 2; rank++) {
          for (uint32_t lane = 0; lane < kLanes; lane++) {
            for (uint32_t word = 0; word < 8; word++) {
              const uint32_t row = c.row_of(lane);
              const bool copied = (group == 2 || rank == p.issuer) && row != kNone && word < c.words;
              ASSERT_EQ(o.out[(size_t{rank} * kLanes + lane) * 8 + word],
                        copied ? rank << 24 | row << 8 | word : float_bits(PairKernel::first(rank, lane)))
                  << "rank " << rank << " lane " << lane << " column " << word;
            }
          }
        }
      }
    }
  }
}

// 16 elements and padding of shared memory become 16 bytes; each shape with each format, against the bits one by one.
TEST(TensorCopyTest, NarrowElementsAreWidened) {
  for (const Copy& c : kCopies) {
    for (const uint32_t bits : {4u, 6u}) {
      const std::string shape = std::string(c.shape) + (bits == 4 ? ".b8x16.b4x16_p64" : ".b8x16.b6x16_p32");
      Copy narrow = c;
      narrow.shape = shape.c_str();
      PairKernel p = copy_kernel(narrow, 1, 0);
      const uint32_t lbo = (c.rows + 7) / 8 * 144;
      std::vector<uint32_t> expected(size_t{c.rows} * c.words, 0);
      for (uint32_t row = 0; row < c.rows; row++) {
        for (uint32_t unit = 0; unit < c.words / 4; unit++) {
          uint32_t* words = &p.in[unit * lbo / 4 + row / 8 * 36 + row % 8 * 4];
          for (uint32_t w = 0; w < 4; w++) words[w] = (row * 8 + unit * 4 + w) * 0x9e3779b9u;
          for (uint32_t e = 0; e < 16; e++) {
            for (uint32_t b = 0; b < bits; b++) {
              const uint32_t at = e * bits + b, bit = words[at / 32] >> at % 32 & 1;
              expected[row * c.words + unit * 4 + e / 4] |= bit << (e % 4 * 8 + b + (bits == 4 ? 2 : 0));
            }
          }
        }
      }
      const Outcome o = run(p.kernel());
      SCOPED_TRACE(shape);
      if (bits == 4) {
        EXPECT_TRUE(reports(o, "advisory-descriptor", "// cp", "told by a figure only"));
      } else {
        EXPECT_TRUE(clean(o));
      }
      for (uint32_t lane = 0; lane < kLanes; lane++) {
        const uint32_t row = c.row_of(lane);
        for (uint32_t word = 0; row != kNone && word < c.words; word++)
          ASSERT_EQ(o.out[size_t{lane} * 8 + word], expected[row * c.words + word]) << "lane " << lane << ' ' << word;
      }
    }
  }
}

TEST(TensorCopyTest, TheFourRowsMayStartAtAnyLaneOfAQuarter) {
  PairKernel p = copy_kernel(kCopies[2], 2, 0);
  p.issue = "add.u32 %r14, %r14, " + number(31u << 16) + ";\n" + p.issue;
  const Outcome o = run(p.kernel());
  ASSERT_TRUE(clean(o));
  for (uint32_t lane = 0; lane < kLanes; lane++) {
    EXPECT_EQ(o.out[size_t{lane} * 8 + 1],
              lane % 32 == 31 ? lane / 32 << 8 | 1 : float_bits(PairKernel::first(0, lane)));
  }
}

TEST(TensorCopyTest, OperandsAreChecked) {
  const auto with = [](const std::string& before) {
    PairKernel p = copy_kernel(kCopies[0], 2, 0);
    p.issue = before + p.issue;
    return run(p.kernel());
  };
  EXPECT_TRUE(reports(with("add.u32 %r14, %r14, 0x10000;\n"), "misaligned", "// cp",
                      "tcgen05.cp.128x256b at lane 1 ends beyond the 128 lanes"));
  EXPECT_TRUE(reports(with("add.u32 %r14, %r14, 492;\n"), "tmem-not-allocated", "// cp",
                      "the destination of tcgen05.cp is in columns 508-515; of the CTA of rank 0: allocated"));
  EXPECT_TRUE(reports(with("add.u64 %rd4, %rd4, 8192;\n"), "bad-descriptor", "// cp", "matrix S of tcgen05.cp covers"));
}

class TensorCopyRefusalTest : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};
TEST_P(TensorCopyRefusalTest, CannotBeEmulated) {
  Kernel k;
  k.body = std::string("\n") + GetParam().first + " // here\n";
  EXPECT_TRUE(reports(run(k), "unsupported-instruction", "// here", GetParam().second));
}
INSTANTIATE_TEST_SUITE_P(
    All, TensorCopyRefusalTest,
    ::testing::Values(std::pair{"tcgen05.cp.cta_group::1.128x128b.b8x16 [%r1], %rd1;",
                                "needs one of .b6x16_p32 or .b4x16_p64"},
                      std::pair{"tcgen05.cp.cta_group::1.64x128b [%r1], %rd1;", ".64x128b goes with"},
                      std::pair{"tcgen05.cp.cta_group::1.128x128b.warpx4 [%r1], %rd1;", ".32x128b with .warpx4"},
                      std::pair{"tcgen05.cp.cta_group::1.128x128b [%r1], %r2;", "descriptor is 64 bits wide"}));

// --- alloc, dealloc --------------------------------------------------------------------------------------------------

/// One warp in each of two CTAs; %r1 is the rank.
Kernel two_warps(const std::string& body) {
  Kernel k;
  k.shared = ".shared .align 4 .b32 slot[4];\n.shared .align 8 .b64 done;\n";
  k.grid = k.cluster = {2, 1, 1};
  k.body = "\nmov.u32 %r1, %cluster_ctarank;\nsetp.eq.u32 %p1, %r1, 0;\nsetp.eq.u32 %p2, %t, 0;\n" + body;
  return k;
}
const std::string kAlloc = "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 ";
const std::string kDealloc = "tcgen05.dealloc.cta_group::2.sync.aligned.b32 ";
const std::string kDelay = R"(
  mov.u32 %r30, 0;
  DELAY:
  add.u32 %r30, %r30, 1;
  setp.lt.u32 %p9, %r30, 500;
  @%p9 bra DELAY;
)";

TEST(PairAllocTest, BothCtasAreGivenTheSameColumns) {
  for (const auto& schedule : schedules(8)) {
    Kernel k = two_warps("@%p1 bra FIRST;\n" + kDelay + "FIRST:\n" + kAlloc + "[slot], 128;\n" + kAlloc +
                         "[slot+4], 64;\ntcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;\n" + R"(
      ld.shared.u32 %r2, [slot];
      ld.shared.u32 %r3, [slot+4];
      mul.wide.u32 %rd1, %r1, 8;
      add.u64 %rd1, %rd1, %outp;
      st.global.u32 [%rd1], %r2;
      st.global.u32 [%rd1+4], %r3;
    )" + kCluster + kDealloc +
                         "%r2, 128;\n" + kDealloc + "%r3, 64;\n");
    k.schedule = schedule;
    const Outcome o = run(k);
    ASSERT_TRUE(clean(o)) << machine::to_string(schedule);
    EXPECT_EQ(o.out[0], o.out[2]);
    EXPECT_EQ(o.out[1], o.out[3]);
    EXPECT_TRUE(o.out[1] + 64 <= o.out[0] || o.out[0] + 128 <= o.out[1]);
  }
}

TEST(PairAllocTest, TheFirstWaitsForTheSecond) {
  const Outcome o = run(two_warps("@!%p1 bra WAIT;\n" + kAlloc + "[slot], 64; // alone\nWAIT:\n" + kCluster));
  EXPECT_EQ(o.status, LaunchStatus::Hang);
  ASSERT_FALSE(o.diagnostics.empty());
  EXPECT_EQ(o.diagnostics[0].id, "deadlock");
  EXPECT_THAT(text_of(o),
              HasSubstr("a warp of CTA 1, the other one of its pair, to execute tcgen05.alloc.cta_group::2"));
}

TEST(PairAllocTest, PairsTakeTurnsOnTheirSms) {
  for (const auto& schedule : schedules(3)) {
    Kernel k = two_warps(kAlloc + "[slot], 512;\nld.shared.u32 %r2, [slot];\n" + kCluster + kDealloc + "%r2, 512;\n");
    k.grid = {8, 1, 1};
    k.sms = 2;
    k.schedule = schedule;
    EXPECT_TRUE(clean(run(k))) << machine::to_string(schedule);
  }
}

TEST(PairAllocTest, RulesOfTheProtocol) {
  EXPECT_TRUE(reports(run(two_warps("mov.u32 %r2, 64;\n@%p1 mov.u32 %r2, 32;\n" + kAlloc + "[slot], %r2; // here\n")),
                      "tmem-alloc-protocol", "// here", "they do it together"));
  Kernel alone = two_warps(kAlloc + "[slot], 64; // here\n");
  alone.grid = alone.cluster = {1, 1, 1};
  EXPECT_TRUE(reports(run(alone), "tmem-alloc-protocol", "// here", "there is no rank 1"));
  const Outcome mixed = run(two_warps(kAlloc + R"([slot], 64;
    ld.shared.u32 %r2, [slot];
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 64; // here
  )"));
  ASSERT_FALSE(mixed.diagnostics.empty());
  EXPECT_EQ(mixed.diagnostics[0].id, "tmem-alloc-protocol");
  EXPECT_THAT(mixed.diagnostics[0].message,
              HasSubstr("tcgen05.dealloc with .cta_group::1, after .cta_group::2 at line"));
}

// PTX Table 48: dealloc may or may not wait for the other CTA.
TEST(PairAllocTest, WhoFreesBeforeTheOtherMayCanHang) {
  const std::string free = kDealloc + "%r2, 64; // free\n";
  Kernel k = two_warps(kAlloc + "[slot], 64;\nld.shared.u32 %r2, [slot];\n@%p1 bra EVEN;\n" + free + kCluster +
                       "bra END;\nEVEN:\n" + kCluster + free + "END:\n");
  EXPECT_TRUE(clean(run(k)));
  k.schedule = kLazy;
  const Outcome o = run(k);
  EXPECT_EQ(o.status, LaunchStatus::Hang);
  EXPECT_THAT(text_of(o), HasSubstr("to execute tcgen05.dealloc.cta_group::2, too"));
}

// --- commit ----------------------------------------------------------------------------------------------------------

/// Both CTAs have a barrier `done`, thread 0 of rank 0 commits, and who is named waits.
Kernel commit_kernel(uint32_t group, const std::string& mask, const std::string& waiters) {
  return two_warps(fill(R"(
    @%p2 mbarrier.init.shared::cta.b64 [done], 1;
    @%p2 fence.mbarrier_init.release.cluster;
    $cluster
    setp.eq.and.u32 %p3, %r1, 0, %p2;
    mov.u16 %h1, $mask;
    @%p3 tcgen05.commit.cta_group::$group.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [done], %h1; // commit
    setp.eq.u32 %p4, $waiters;
    @!%p4 bra SKIP;
    SPIN:
    mbarrier.try_wait.parity.shared::cta.b64 %p5, [done], 0;
    @!%p5 bra SPIN;
    SKIP:
    $cluster
  )",
                        {{"cluster", kCluster}, {"mask", mask}, {"group", number(group)}, {"waiters", waiters}}));
}

TEST(PairCommitTest, ArrivesAtTheCtasOfTheMask) {
  for (const uint32_t group : {1u, 2u}) {
    for (const auto& schedule : schedules(2)) {
      for (const auto& [mask, waiters] : {std::pair{"3", "0, 0"}, std::pair{"1", "%r1, 0"}, std::pair{"2", "%r1, 1"}}) {
        Kernel k = commit_kernel(group, mask, waiters);
        k.schedule = schedule;
        EXPECT_TRUE(clean(run(k))) << mask;
      }
    }
  }
  EXPECT_EQ(run(commit_kernel(2, "1", "%r1, 1")).status, LaunchStatus::Hang) << "it does not go to rank 1";
}

TEST(PairCommitTest, TheMaskNamesCtasOfTheCluster) {
  EXPECT_TRUE(reports(run(commit_kernel(2, "0", "%r1, 7")), "bad-copy", "// commit", "names no CTA"));
  EXPECT_TRUE(reports(run(commit_kernel(1, "6", "%r1, 7")), "bad-copy", "// commit",
                      "bit 2 of the commit's mask 0x6 is set, but the cluster has 2 CTAs"));
}

}  // namespace
}  // namespace handoff::async::testing
