// Clusters of the core: launch, special registers, addresses of distributed shared memory, barrier.cluster, residency.
//
// All kernels that communicate run on every schedule. Mbarriers across CTAs are in async/remote_store_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
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
using machine::testing::words;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kShared = ".shared .align 128 .b8 tile[256];\n";
constexpr const char* kFile = ".file 1 \"kernel.cu\"\n";
const std::string kMeet = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";

std::vector<Schedule> all_schedules() {
  using Kind = Schedule::Kind;
  return {{Kind::Nominal, 0}, {Kind::Lazy, 0},   {Kind::Eager, 0}, {Kind::Reverse, 0},
          {Kind::Random, 1},  {Kind::Random, 2}, {Kind::Random, 3}};
}

Options clusters(Dim cluster, Dim grid, uint32_t threads = 32, Schedule schedule = {}) {
  Options o;
  o.cluster = cluster;
  o.grid = grid;
  o.block = {threads, 1, 1};
  o.schedule = schedule;
  return o;
}

/// The module with a directive of the entry, such as .reqnctapercluster.
std::string with_directive(std::string module, const std::string& directive) {
  return module.insert(module.find("\n{\n"), "\n" + directive);
}

/// As check_config() answers for `body`.
std::string refusal(const std::string& module, Dim cluster, Dim grid, Dim block = {32, 1, 1}) {
  GlobalMemory memory;
  std::string error;
  const auto loaded = LoadedModule::load(module, memory, decoders(), &error);
  EXPECT_NE(loaded, nullptr) << error;
  LaunchConfig config;
  config.cluster = cluster;
  config.grid = grid;
  config.block = block;
  return check_config(*loaded->kernel("k"), config, DeviceModel{});
}

// --- launch ----------------------------------------------------------------------------------------------------------

/// Thread 0 of each CTA writes kRegisters to `out`, from word 16 · linear index on.
constexpr const char* kRegisters[] = {"%ctaid.x",          "%ctaid.y",          "%ctaid.z",         "%clusterid.x",
                                      "%clusterid.y",      "%clusterid.z",      "%nclusterid.x",    "%nclusterid.y",
                                      "%nclusterid.z",     "%cluster_ctaid.x",  "%cluster_ctaid.y", "%cluster_ctaid.z",
                                      "%cluster_nctaid.x", "%cluster_nctaid.y", "%cluster_nctaid.z"};
std::string write_registers() {
  std::string s =
      "mov.u32 %r1, %ctaid.z;\nmov.u32 %r2, %nctaid.y;\nmov.u32 %r3, %ctaid.y;\nmad.lo.u32 %r1, %r1, %r2, %r3;\n"
      "mov.u32 %r2, %nctaid.x;\nmov.u32 %r3, %ctaid.x;\nmad.lo.u32 %r1, %r1, %r2, %r3;\nmad.wide.u32 %rd1, %r1, 80, "
      "%out;\nsetp.ne.u32 %p1, %id, 0;\n@%p1 exit;\n";
  uint32_t at = 0;
  for (const char* name : kRegisters) {
    s += std::string("mov.u32 %r4, ") + name + ";\nst.global.u32 [%rd1+" + std::to_string(at) + "], %r4;\n";
    at += 4;
  }
  return s +
         "mov.u32 %r4, %cluster_ctarank;\nst.global.u32 [%rd1+60], %r4;\nmov.u32 %r4, %cluster_nctarank;\n"
         "st.global.u32 [%rd1+64], %r4;\nmov.pred %p2, %is_explicit_cluster;\nselp.u32 %r4, 1, 0, %p2;\n"
         "st.global.u32 [%rd1+68], %r4;\n";
}

void expect_registers(const Outcome& o, Dim grid, Dim cluster, bool is_explicit) {
  const auto three = [](uint32_t x, uint32_t y, uint32_t z) { return std::vector<uint32_t>{x, y, z}; };
  for (uint32_t z = 0; z < grid.z; z++) {
    for (uint32_t y = 0; y < grid.y; y++) {
      for (uint32_t x = 0; x < grid.x; x++) {
        SCOPED_TRACE(::testing::Message() << x << " " << y << " " << z);
        std::vector<uint32_t> wanted;
        for (const auto& v :
             {three(x, y, z), three(x / cluster.x, y / cluster.y, z / cluster.z),
              three(grid.x / cluster.x, grid.y / cluster.y, grid.z / cluster.z),
              three(x % cluster.x, y % cluster.y, z % cluster.z), three(cluster.x, cluster.y, cluster.z)})
          wanted.insert(wanted.end(), v.begin(), v.end());
        wanted.push_back((z % cluster.z * cluster.y + y % cluster.y) * cluster.x + x % cluster.x);
        wanted.push_back(cluster.x * cluster.y * cluster.z);
        wanted.push_back(is_explicit ? 1 : 0);
        const auto first = o.out.begin() + static_cast<ptrdiff_t>(20 * ((z * grid.y + y) * grid.x + x));
        EXPECT_EQ(std::vector<uint32_t>(first, first + 18), wanted);
      }
    }
  }
}

TEST(ClusterLaunch, SpecialRegisters) {
  struct {
    Dim cluster, grid;
  } const kShapes[] = {{{1, 1, 1}, {3, 2, 1}},  {{2, 1, 1}, {6, 1, 1}}, {{1, 2, 1}, {3, 4, 1}},
                       {{2, 2, 1}, {4, 6, 1}},  {{2, 2, 2}, {4, 2, 4}}, {{1, 1, 3}, {2, 1, 6}},
                       {{8, 1, 1}, {16, 1, 1}}, {{4, 4, 1}, {8, 4, 1}}, {{16, 1, 1}, {32, 1, 1}}};
  for (const auto& shape : kShapes) {
    for (const Schedule& schedule : all_schedules()) {
      const Outcome o = run_body(write_registers(), clusters(shape.cluster, shape.grid, 64, schedule));
      expect_ok(o);
      expect_registers(o, shape.grid, shape.cluster, shape.cluster.volume() > 1);
    }
  }
}

TEST(ClusterLaunch, TheKernelsOwnClusterIsUsedWhereTheLaunchNamesNone) {
  const Dim grid{4, 2, 1}, none{1, 1, 1};
  for (const Dim cluster : {Dim{2, 1, 1}, Dim{2, 2, 1}, Dim{4, 1, 1}, Dim{1, 2, 1}, Dim{1, 1, 1}}) {
    const std::string directive = ".explicitcluster\n.reqnctapercluster " + std::to_string(cluster.x) + ", " +
                                  std::to_string(cluster.y) + ", " + std::to_string(cluster.z) + "\n";
    const std::string module = with_directive(module_of(write_registers()), directive);
    for (const Dim& launch : {none, cluster}) {
      const Outcome o = run_module(module, clusters(launch, grid));
      expect_ok(o);
      expect_registers(o, grid, cluster, true);
    }
  }
}

TEST(ClusterLaunch, Refusals) {
  const std::string plain = module_of(""), pair = with_directive(plain, ".reqnctapercluster 2, 1, 1\n");
  EXPECT_EQ(refusal(plain, {0, 1, 1}, {2, 1, 1}), "grid, block and cluster sizes must be positive");
  EXPECT_EQ(refusal(plain, {17, 1, 1}, {17, 1, 1}),
            "a cluster of 17 blocks; the limit is 16 (8 where the launch must be portable)");
  EXPECT_EQ(refusal(plain, {4, 4, 2}, {4, 4, 2}),
            "a cluster of 32 blocks; the limit is 16 (8 where the launch must be portable)");
  EXPECT_EQ(refusal(plain, {2, 1, 1}, {3, 1, 1}), "a grid of 3×1×1 blocks is not a multiple of the cluster, 2×1×1");
  EXPECT_EQ(refusal(plain, {1, 2, 1}, {2, 3, 1}), "a grid of 2×3×1 blocks is not a multiple of the cluster, 1×2×1");
  EXPECT_EQ(refusal(plain, {1, 1, 2}, {2, 2, 1}), "a grid of 2×2×1 blocks is not a multiple of the cluster, 1×1×2");
  EXPECT_EQ(refusal(pair, {1, 1, 1}, {3, 1, 1}), "a grid of 3×1×1 blocks is not a multiple of the cluster, 2×1×1");
  EXPECT_EQ(refusal(pair, {4, 1, 1}, {4, 1, 1}), "a cluster of 4×1×1 blocks, but k declares 2×1×1");
  EXPECT_EQ(refusal(pair, {1, 2, 1}, {2, 2, 1}), "a cluster of 1×2×1 blocks, but k declares 2×1×1");
  EXPECT_EQ(refusal(pair, {1, 1, 1}, {4, 1, 1}), "");
  EXPECT_EQ(refusal(pair, {2, 1, 1}, {4, 1, 1}), "");
  EXPECT_EQ(refusal(plain, {16, 1, 1}, {16, 1, 1}), "");
}

// --- addresses -------------------------------------------------------------------------------------------------------

/// Thread t < %cluster_nctarank of a CTA treats the CTA of rank t; %r1 = own rank, %r2 = size, %r3 = tile's own
/// address, %rd3 the same as a generic one, %rd9 = out + 64 · (rank · size + t).
const std::string kEachRank =
    "mov.u32 %r1, %cluster_ctarank;\nmov.u32 %r2, %cluster_nctarank;\nmov.u32 %r3, tile;\nmov.u64 %rd3, tile;\n"
    "cvta.shared.u64 %rd3, %rd3;\nsetp.ge.u32 %p1, %id, %r2;\n@%p1 bra DONE;\nmad.lo.u32 %r4, %r1, %r2, %id;\n"
    "mad.wide.u32 %rd9, %r4, 64, %out;\n";

TEST(ClusterAddress, MapaGetctarankAndConversions) {
  // Words of `out`: own address, mapped address, its rank, whether the generic forms agree with the shared ones,
  // whether mapping back gives the own address, isspacep of the mapped generic address for shared::cta,
  // shared::cluster, and of an address of global memory.
  const std::string body =
      kEachRank +
      "mapa.shared::cluster.u32 %r10, %r3, %id;\nmapa.u64 %rd10, %rd3, %id;\n"
      "st.global.u32 [%rd9], %r3;\nst.global.u32 [%rd9+4], %r10;\n"
      "getctarank.shared::cluster.u32 %r11, %r10;\nst.global.u32 [%rd9+8], %r11;\n"
      "cvt.u64.u32 %rd11, %r10;\ncvta.shared::cluster.u64 %rd12, %rd11;\nsetp.eq.u64 %p2, %rd12, "
      "%rd10;\ncvta.to.shared::cluster.u64 %rd13, %rd10;\nsetp.eq.and.u64 %p2, %rd13, %rd11, %p2;\n"
      "getctarank.u64 %r12, %rd10;\nsetp.eq.and.u32 %p2, %r12, %id, %p2;\n"
      "getctarank.u64 %r12, %rd3;\nsetp.eq.and.u32 %p2, %r12, %r1, %p2;\n"
      "mapa.shared::cluster.u32 %r13, tile+8, %id;\nsub.u32 %r13, %r13, 8;\n"
      "setp.eq.and.u32 %p2, %r13, %r10, %p2;\n"
      "selp.u32 %r14, 1, 0, %p2;\nst.global.u32 [%rd9+12], %r14;\n"
      "mapa.shared::cluster.u32 %r15, %r10, %r1;\nsetp.eq.u32 %p2, %r15, %r3;\n"
      "mapa.u64 %rd15, %rd10, %r1;\nsetp.eq.and.u64 %p2, %rd15, %rd3, %p2;\n"
      "selp.u32 %r14, 1, 0, %p2;\nst.global.u32 [%rd9+16], %r14;\n"
      "isspacep.shared::cta %p3, %rd10;\nselp.u32 %r14, 1, 0, %p3;\nst.global.u32 [%rd9+20], %r14;\n"
      "isspacep.shared::cluster %p3, %rd10;\nselp.u32 %r14, 1, 0, %p3;\nst.global.u32 [%rd9+24], "
      "%r14;\n"
      "isspacep.shared::cluster %p3, %out;\nselp.u32 %r14, 1, 0, %p3;\nst.global.u32 [%rd9+28], "
      "%r14;\nDONE:\n";
  for (const Dim cluster : {Dim{2, 1, 1}, Dim{2, 2, 1}, Dim{1, 1, 4}, Dim{8, 1, 1}}) {
    const auto n = static_cast<uint32_t>(cluster.volume());
    Options options = clusters(cluster, cluster);
    options.out_words = 16 * n * n;
    const Outcome o = run_body(body, options, kShared);
    expect_ok(o);
    const uint32_t offset = o.out[0];  // rank 0's own address
    EXPECT_EQ(offset >> 24, 0u);
    EXPECT_GE(offset, kSharedBase);
    for (uint32_t rank = 0; rank < n; rank++) {
      for (uint32_t t = 0; t < n; t++) {
        const auto first = o.out.begin() + 16 * (rank * n + t);
        const uint32_t own = t == rank ? 1 : 0;
        EXPECT_THAT(std::vector<uint32_t>(first, first + 8),
                    ElementsAre(rank << 24 | offset, t << 24 | offset, t, 1, 1, own, 1, 0))
            << rank << " maps to " << t;
      }
    }
  }
}

TEST(ClusterAddress, IsspacepSharedMeansTheOwnCta) {
  // PTX §9.7.9.20; ptxas makes the same code of .shared and .shared::cta.
  const std::string body = kEachRank +
                           "mapa.u64 %rd10, %rd3, %id;\nisspacep.shared %p2, %rd10;\nselp.u32 %r5, 1, 0, %p2;\n"
                           "st.global.u32 [%rd9], %r5;\nDONE:\n";
  const Outcome o = run_body(body, clusters({4, 1, 1}, {4, 1, 1}), kShared);
  expect_ok(o);
  for (uint32_t rank = 0; rank < 4; rank++) {
    for (uint32_t t = 0; t < 4; t++) EXPECT_EQ(o.out[16 * (4 * rank + t)], t == rank ? 1u : 0u);
  }
}

TEST(ClusterAddress, SharedVariablesNamedInTheCodeAreTheOwnOnes) {
  // Each way to name tile reaches the CTA's own: a register, an immediate address, an operand of an instruction.
  const std::string body =
      "mov.u32 %r1, %cluster_ctarank;\nsetp.ne.u32 %p1, %id, 0;\n@%p1 exit;\nadd.u32 %r2, %r1, 50;\nst.shared.u32 "
      "[tile+4], %r2;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nld.shared::cluster.u32 %r3, [tile+4];\n"
      "mov.u64 %rd1, tile;\nld.shared::cta.u32 %r4, [%rd1+4];\ncvta.shared.u64 %rd2, %rd1;\nld.u32 %r5, [%rd2+4];\n"
      "add.u32 %r6, %r3, %r4;\nadd.u32 %r6, %r6, %r5;\nmad.wide.u32 %rd3, %r1, 4, %out;\nst.global.u32 [%rd3], %r6;\n";
  const Outcome o = run_body(body, clusters({4, 1, 1}, {4, 1, 1}), kShared);
  expect_ok(o);
  EXPECT_THAT(words(o, 4), ElementsAre(150, 153, 156, 159));
}

// --- accesses --------------------------------------------------------------------------------------------------------

/// The right neighbour's tile: %r20 as a shared::cluster address, %rd20 as a generic one; %r1 own rank, %r2 size, %r21
/// the neighbour's rank.
const std::string kNeighbour =
    "mov.u32 %r1, %cluster_ctarank;\nmov.u32 %r2, %cluster_nctarank;\nadd.u32 %r21, %r1, 1;\nrem.u32 %r21, %r21, %r2;\n"
    "mov.u32 %r3, tile;\nmapa.shared::cluster.u32 %r20, %r3, %r21;\nmov.u64 %rd3, tile;\ncvta.shared.u64 %rd3, %rd3;\n"
    "mapa.u64 %rd20, %rd3, %r21;\nmov.u32 %r4, %ctaid.x;\n";

TEST(ClusterAccess, LoadsAndStoresOfAllWidths) {
  struct Form {
    const char* type;
    std::string value, result;
    const char* low;                ///< converts the first part of `result` to %r11
    std::vector<uint32_t> written;  ///< words of the place, as multiples of the value
  };
  const Form kForms[] = {{".b8", "%r10", "%r11", "", {1, 0, 0, 0}},
                         {".u16", "%s1", "%s2", "cvt.u32.u16 %r11, %s2;\n", {1, 0, 0, 0}},
                         {".b32", "%r10", "%r11", "", {1, 0, 0, 0}},
                         {".u64", "%rd10", "%rd11", "cvt.u32.u64 %r11, %rd11;\n", {1, 0, 0, 0}},
                         {".v2.b32", "{%r10, %r10}", "{%r11, %r12}", "", {1, 1, 0, 0}},
                         {".v2.u64", "{%rd10, %rd10}", "{%rd11, %rd12}", "cvt.u32.u64 %r11, %rd12;\n", {1, 0, 1, 0}},
                         {".v4.u32", "{%r10, %r10, %r10, %r10}", "{%r11, %r12, %r13, %r14}", "", {1, 1, 1, 1}}};
  for (const Form& f : kForms) {
    for (const bool generic : {false, true}) {
      SCOPED_TRACE(std::string(f.type) + (generic ? " generic" : " shared::cluster"));
      const std::string space = generic ? "" : ".shared::cluster", place = generic ? "[%rd21]" : "[%r22]";
      // Thread t < 8 writes 17 · rank + 17 + t to its place in the neighbour's tile, loads it back from there, and
      // reads what the other neighbour has written into its own.
      const std::string body =
          kNeighbour +
          "setp.ge.u32 %p1, %id, 8;\nmul.lo.u32 %r5, %id, 16;\nadd.u32 %r22, %r20, %r5;\ncvt.u64.u32 %rd5, %r5;\n"
          "add.u64 %rd21, %rd20, %rd5;\nadd.u32 %r23, %r3, %r5;\nmad.lo.u32 %r10, %r1, 17, 17;\n"
          "add.u32 %r10, %r10, %id;\ncvt.u16.u32 %s1, %r10;\ncvt.u64.u32 %rd10, %r10;\n"
          "mad.wide.u32 %rd30, %r4, 256, %out;\nmad.wide.u32 %rd30, %id, 32, %rd30;\n"
          "@%p1 bra FIRST;\nst.shared.v4.u32 [%r23], {0, 0, 0, 0};\nFIRST:\n" +
          kMeet + "@%p1 bra SECOND;\nst" + space + f.type + " " + place + ", " + f.value + ";\nld" + space + f.type +
          " " + f.result + ", " + place + ";\n" + f.low + "st.global.u32 [%rd30], %r11;\nSECOND:\n" + kMeet +
          "@%p1 bra DONE;\nld.shared.v4.u32 {%r11, %r12, %r13, %r14}, [%r23];\nst.global.v4.u32 [%rd30+16], {%r11, "
          "%r12, %r13, %r14};\nDONE:\n";
      for (const Schedule& schedule : all_schedules()) {
        const Outcome o = run_body(body, clusters({4, 1, 1}, {8, 1, 1}, 32, schedule), kShared);
        expect_ok(o);
        for (uint32_t cta = 0; cta < 8; cta++) {
          for (uint32_t t = 0; t < 8; t++) {
            const uint32_t mine = 17 * (cta % 4) + 17 + t, left = 17 * ((cta + 3) % 4) + 17 + t;
            const auto at = o.out.begin() + 64 * cta + 8 * t;
            EXPECT_EQ(*at, mine) << cta << " " << t;
            std::vector<uint32_t> wanted;
            for (const uint32_t w : f.written) wanted.push_back(w * left);
            EXPECT_EQ(std::vector<uint32_t>(at + 4, at + 8), wanted) << cta << " " << t;
          }
        }
      }
    }
  }
}

TEST(ClusterAccess, Atomics) {
  // Counters of rank 0: atom.add (and the old values), red.max, atom.cas as a lock-free maximum, red.add of 64 bits.
  const std::string body =
      "mov.u32 %r1, %cluster_ctarank;\nmov.u32 %r3, tile;\nmapa.shared::cluster.u32 %r20, %r3, 0;\nmov.u64 %rd3, "
      "tile;\ncvta.shared.u64 %rd3, %rd3;\nmapa.u64 %rd20, %rd3, 0;\nsetp.ne.u32 %p1, %r1, 0;\nsetp.ne.or.u32 %p1, "
      "%id, 0, %p1;\n@%p1 bra READY;\nst.shared.v4.u32 [%r3], {0, 0, 0, 0};\nst.shared.v4.u32 [%r3+16], {0, 0, 0, "
      "0};\nREADY:\n" +
      kMeet +
      "mad.lo.u32 %r5, %r1, 32, %id;\natom.relaxed.cluster.shared::cluster.add.u32 %r6, [%r20], 1;\n"
      "mad.wide.u32 %rd6, %r6, 4, %out;\nst.global.u32 [%rd6+64], %r5;\nred.shared::cluster.max.u32 [%r20+4], %r5;\n"
      "red.add.u64 [%rd20+8], 3;\nTRY:\nld.relaxed.cluster.u32 %r7, [%rd20+16];\nsetp.ge.u32 %p2, %r7, %r5;\n@%p2 bra "
      "HIGH;\natom.cas.b32 %r8, [%rd20+16], %r7, %r5;\nsetp.ne.u32 %p2, %r8, %r7;\n@%p2 bra TRY;\nHIGH:\n" +
      kMeet +
      "@%p1 bra DONE;\nld.shared.u32 %r9, [%r3];\nst.global.u32 [%out], %r9;\nld.shared.u32 %r9, [%r3+4];\n"
      "st.global.u32 [%out+4], %r9;\nld.shared.u32 %r9, [%r3+8];\nst.global.u32 [%out+8], %r9;\n"
      "ld.shared.u32 %r9, [%r3+16];\nst.global.u32 [%out+12], %r9;\nDONE:\n";
  for (const Schedule& schedule : all_schedules()) {
    const Outcome o = run_body(body, clusters({4, 1, 1}, {4, 1, 1}, 32, schedule), kShared);
    expect_ok(o);
    EXPECT_THAT(words(o, 4), ElementsAre(128, 127, 3 * 128, 127));
    const std::set<uint32_t> tickets(o.out.begin() + 16, o.out.begin() + 16 + 128);
    EXPECT_EQ(tickets.size(), 128u);  // each old value went to one thread
    EXPECT_EQ(*tickets.rbegin(), 127u);
  }
}

TEST(ClusterAccess, Faults) {
  const std::string remote = kNeighbour;
  struct {
    std::string line, problem;
  } const kFaults[] = {
      {"ld.shared.u32 %r9, [%r20+4];",
       "out-of-bounds: CTA 0 warp 0 lane 0 reads 4 bytes at tile+4 of the CTA of rank 1 in the cluster, but the "
       "instruction reaches only the executing CTA's shared memory (rank 0)"},
      {"st.shared::cta.v2.u32 [%r20], {%r9, %r9};",
       "out-of-bounds: CTA 0 warp 0 lane 0 writes 8 bytes at tile of the CTA of rank 1 in the cluster, but the "
       "instruction reaches only the executing CTA's shared memory (rank 0)"},
      {"atom.shared.add.u32 %r9, [%r20], 1;",
       "out-of-bounds: CTA 0 warp 0 lane 0 updates 4 bytes at tile of the CTA of rank 1 in the cluster, but the "
       "instruction reaches only the executing CTA's shared memory (rank 0)"},
      {"mapa.shared::cluster.u32 %r20, %r3, 5;\nld.shared::cluster.u32 %r9, [%r20];",
       "out-of-bounds: CTA 0 warp 0 lane 0 reads 4 bytes at tile of the CTA of rank 5, in a cluster of 2"},
      {"mapa.u64 %rd20, %rd3, 2;\nst.u32 [%rd20+8], %r9;",
       "out-of-bounds: CTA 0 warp 0 lane 0 writes 4 bytes at tile+8 of the CTA of rank 2, in a cluster of 2"},
      {"ld.shared::cluster.u32 %r9, [%r20+2];",
       "misaligned: CTA 0 warp 0 lane 0 reads 4 bytes at tile+2, which is not a multiple of 4"},
      {"ld.shared::cluster.u32 %r9, [%r20+256];",
       "out-of-bounds: CTA 0 warp 0 lane 0 reads 4 bytes at shared offset 0x500, 0 bytes past the end of the CTA's 256 "
       "bytes of shared memory"},
  };
  for (const auto& f : kFaults) {
    const Outcome o = run_body(remote + "setp.ne.u32 %p1, %r4, 0;\nsetp.ne.or.u32 %p1, %id, 0, %p1;\n@%p1 bra STAY;\n" +
                                   f.line + "\nSTAY:\n" + "barrier.cluster.arrive;\nbarrier.cluster.wait;\n",
                               clusters({2, 1, 1}, {2, 1, 1}), kShared);
    EXPECT_EQ(o.status, LaunchStatus::Fault) << f.line;
    EXPECT_EQ(o.problem(), f.problem);
  }
}

TEST(ClusterAccess, ACtaThatHasEndedIsGone) {
  // Rank 1 raises a flag and leaves; rank 0 goes on when it has seen it, long after.
  const std::string body = kNeighbour +
                           "setp.ne.u32 %p2, %r1, 0;\n@%p2 st.global.u32 [%out], 1;\n@%p2 exit;\nmov.u32 %r9, 0;\n"
                           "TURN:\nadd.u32 %r9, %r9, 1;\nsetp.lt.u32 %p3, %r9, 5000;\n@%p3 bra TURN;\nSPIN:\n"
                           "ld.volatile.global.u32 %r10, [%out];\nsetp.eq.u32 %p3, %r10, 0;\n@%p3 bra SPIN;\n";
  struct {
    std::string line, problem;
  } const kUses[] = {{"ld.shared::cluster.u32 %r9, [%r20+4];", "reads 4 bytes at tile+4"},
                     {"st.u32 [%rd20], %r9;", "writes 4 bytes at tile"},
                     {"red.shared::cluster.add.u32 [%r20], 1;", "updates 4 bytes at tile"}};
  for (const auto& use : kUses) {
    const Outcome o = run_body(body + use.line, clusters({2, 1, 1}, {2, 1, 1}), kShared);
    EXPECT_EQ(o.status, LaunchStatus::Fault);
    EXPECT_EQ(o.problem(),
              "remote-cta-gone: CTA 0 warp 0 lane 0 " + use.problem + " of the CTA of rank 1, which has ended");
  }
}

TEST(ClusterAccess, SpinningOnAFlagInTheSharedMemoryOfAnotherCta) {
  // Rank 0's thread 0 takes its time, then raises a flag; the other CTAs poll it where it lies. Then rank 0 polls a
  // flag of each of them. Nobody blocks the others, whoever comes first.
  const std::string body =
      kNeighbour +
      "setp.ne.u32 %p1, %id, 0;\nsetp.eq.u32 %p2, %r1, 0;\nmapa.shared::cluster.u32 %r24, %r3, 0;\n"
      "@!%p1 st.shared.u32 [%r3], 0;\n" +
      kMeet +
      "@%p1 bra LEAVE;\n@!%p2 bra WAIT;\nmov.u32 %r9, 0;\nTURN:\nadd.u32 %r9, %r9, 1;\nsetp.lt.u32 %p3, %r9, "
      "3000;\n@%p3 "
      "bra TURN;\nst.release.cluster.shared.u32 [%r3], 7;\nPOLL:\nld.acquire.cluster.shared::cluster.u32 %r10, "
      "[%r20];\n"
      "setp.ne.u32 %p3, %r10, 9;\n@%p3 bra POLL;\nst.global.u32 [%out], %r10;\nbra LEAVE;\n"
      "WAIT:\nld.acquire.cluster.shared::cluster.u32 %r10, [%r24];\nsetp.ne.u32 %p3, %r10, 7;\n@%p3 bra WAIT;\n"
      "mad.wide.u32 %rd6, %r1, 4, %out;\nst.global.u32 [%rd6], %r10;\nst.release.cluster.shared.u32 [%r3], "
      "9;\nLEAVE:\n" +
      kMeet;
  for (const Schedule& schedule : all_schedules()) {
    Options options = clusters({4, 1, 1}, {4, 1, 1}, 32, schedule);
    options.progress_budget = 200'000;
    const Outcome o = run_body(body, options, kShared);
    expect_ok(o);
    EXPECT_THAT(words(o, 4), ElementsAre(9, 7, 7, 7));
  }
}

// --- barrier.cluster -------------------------------------------------------------------------------------------------

TEST(ClusterBarrier, EveryFormHoldsEverybody) {
  // Four rounds: each thread counts up its CTA's cell, meets the others, reads the neighbour's count, meets again.
  for (const char* arrive : {"", ".release", ".relaxed", ".aligned", ".release.aligned", ".relaxed.aligned"}) {
    for (const char* wait : {"", ".acquire", ".aligned", ".acquire.aligned"}) {
      const std::string meet =
          std::string("barrier.cluster.arrive") + arrive + ";\nbarrier.cluster.wait" + wait + ";\n";
      const std::string body = kNeighbour + "setp.eq.u32 %p1, %id, 0;\n@%p1 st.shared.u32 [%r3], 0;\n" + meet +
                               "mov.u32 %r9, 1;\nROUND:\nred.shared.add.u32 [%r3], 1;\n" + meet +
                               "ld.shared::cluster.u32 %r10, [%r20];\nmad.lo.u32 %r11, %r9, 64, 0;\n"
                               "setp.ne.u32 %p2, %r10, %r11;\n@%p2 st.global.u32 [%out], 1;\n" +
                               meet + "add.u32 %r9, %r9, 1;\nsetp.le.u32 %p3, %r9, 4;\n@%p3 bra ROUND;\n" + meet +
                               "atom.global.add.u32 %r12, [%out+4], 1;\n";
      for (const Schedule& schedule : all_schedules()) {
        const Outcome o = run_body(body, clusters({4, 1, 1}, {8, 1, 1}, 64, schedule), kShared);
        SCOPED_TRACE(meet + to_string(schedule));
        expect_ok(o);
        EXPECT_THAT(words(o, 2), ElementsAre(0, 8 * 64));
      }
    }
  }
}

TEST(ClusterBarrier, ArriveDoesNotWaitAndLanesNeedNotArriveTogether) {
  // Rank 0 arrives before it raises the flag that rank 1 waits for before it arrives; half of its lanes come later.
  const std::string body =
      "mov.u32 %r1, %cluster_ctarank;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra OTHER;\nsetp.lt.u32 %p2, %id, 16;\n"
      "@%p2 bra LATER;\nbarrier.cluster.arrive;\nst.volatile.global.u32 [%out], 1;\nbra WAIT;\nLATER:\nSPIN0:\n"
      "ld.volatile.global.u32 %r5, [%out];\nsetp.eq.u32 %p3, %r5, 0;\n@%p3 bra SPIN0;\nbarrier.cluster.arrive;\nWAIT:\n"
      "barrier.cluster.wait;\nbra DONE;\nOTHER:\nSPIN1:\nld.volatile.global.u32 %r5, [%out];\nsetp.eq.u32 %p3, %r5, "
      "0;\n@%p3 bra SPIN1;\nst.volatile.global.u32 [%out+4], "
      "2;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nDONE:\n"
      "ld.volatile.global.u32 %r6, [%out+4];\nmul.wide.u32 %rd1, %r1, 4;\nadd.u64 %rd1, %out, %rd1;\nst.global.u32 "
      "[%rd1+8], %r6;\n";
  for (const Schedule& schedule : all_schedules()) {
    const Outcome o = run_body(body, clusters({2, 1, 1}, {2, 1, 1}, 32, schedule));
    expect_ok(o);
    EXPECT_THAT(words(o, 4), ElementsAre(1, 2, 2, 2));
  }
}

TEST(ClusterBarrier, ThreadsThatHaveLeftCountAsArrived) {
  // Rank 1 leaves at once, of rank 0 warp 1 and half of warp 0; who is left meets twice. A thread that has arrived may
  // leave without waiting.
  const std::string body =
      "mov.u32 %r1, %cluster_ctarank;\nsetp.eq.u32 %p1, %r1, 1;\n@%p1 exit;\nsetp.ge.u32 %p2, %id, "
      "32;\nsetp.eq.and.u32 "
      "%p2, %r1, 0, %p2;\n@%p2 exit;\nsetp.lt.u32 %p3, %id, 16;\nsetp.eq.and.u32 %p3, %r1, 0, %p3;\n@%p3 exit;\n"
      "barrier.cluster.arrive;\nbarrier.cluster.wait;\nbarrier.cluster.arrive;\nsetp.eq.u32 %p4, %r1, 2;\n@%p4 exit;\n"
      "barrier.cluster.wait;\natom.global.add.u32 %r2, [%out], 1;\n";
  for (const Schedule& schedule : all_schedules()) {
    const Outcome o = run_body(body, clusters({4, 1, 1}, {4, 1, 1}, 64, schedule));
    expect_ok(o);
    EXPECT_EQ(o.out[0], 16u + 64u);
  }
}

TEST(ClusterBarrier, AFullGridOfClustersKeepsThemApart) {
  // Clusters meet different numbers of times.
  const std::string body =
      "mov.u32 %r1, %clusterid.x;\nmov.u32 %r2, 0;\nROUND:\nbarrier.cluster.arrive.aligned;\n"
      "barrier.cluster.wait.aligned;\nadd.u32 %r2, %r2, 1;\nsetp.le.u32 %p1, %r2, %r1;\n@%p1 bra ROUND;\n"
      "atom.global.add.u32 %r3, [%out], %r2;\n";
  for (const Schedule& schedule : all_schedules()) {
    const Outcome o = run_body(body, clusters({2, 1, 1}, {12, 1, 1}, 32, schedule));
    expect_ok(o);
    EXPECT_EQ(o.out[0], 64u * (1 + 2 + 3 + 4 + 5 + 6));
  }
}

TEST(ClusterBarrier, Misuse) {
  const std::string alone =
      "setp.ne.u32 %p1, %id, 3;\nmov.u32 %r1, %cluster_ctarank;\nsetp.ne.or.u32 %p1, %r1, 1, %p1;\n";
  const Outcome twice = run_body(
      alone + "@%p1 bra MEET;\nbarrier.cluster.arrive;\nMEET:\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n",
      clusters({2, 1, 1}, {2, 1, 1}));
  EXPECT_EQ(twice.status, LaunchStatus::Fault);
  EXPECT_EQ(twice.problem(),
            "arrival-count-mismatch: CTA 1 warp 0 lane 3 arrives at the cluster barrier again without having waited");
  const Outcome next_phase = run_body(
      "barrier.cluster.arrive;\nmov.u32 %r9, 0;\nTURN:\nadd.u32 %r9, %r9, 1;\nsetp.lt.u32 %p3, %r9, 3000;\n@%p3 bra "
      "TURN;\n"
      "barrier.cluster.arrive;\nbarrier.cluster.wait;\n",
      clusters({2, 1, 1}, {2, 1, 1}));
  EXPECT_EQ(next_phase.status, LaunchStatus::Fault);
  EXPECT_THAT(next_phase.problem(), HasSubstr("arrives at the cluster barrier again without having waited"));
  const Outcome early = run_body(alone +
                                     "@%p1 bra MEET;\nbarrier.cluster.wait;\nMEET:\nbarrier.cluster.arrive;\n"
                                     "barrier.cluster.wait;\n",
                                 clusters({2, 1, 1}, {2, 1, 1}));
  EXPECT_EQ(early.status, LaunchStatus::Fault);
  EXPECT_EQ(early.problem(), "bad-barrier: CTA 1 warp 0 lane 3 waits at the cluster barrier without having arrived");
}

TEST(ClusterBarrier, AWarpThatNeverArrivesIsADeadlock) {
  // Warp 1 of rank 1 waits at a barrier of 64 threads to which nobody else comes.
  const std::string body =
      std::string(".loc 1 10 0\n") +
      "mov.u32 %r1, %cluster_ctarank;\nsetp.ge.u32 %p1, %id, 32;\nsetp.eq.and.u32 %p1, %r1, 1, %p1;\n@!%p1 bra MEET;\n"
      ".loc 1 11 0\nbar.sync 1, 64;\nMEET:\n.loc 1 12 0\nbarrier.cluster.arrive.aligned;\n.loc 1 13 0\n"
      "barrier.cluster.wait.aligned;\n";
  for (const Schedule& schedule : all_schedules()) {
    const Outcome o = run_body(body, clusters({2, 1, 1}, {2, 1, 1}, 64, schedule), kFile);
    EXPECT_EQ(o.status, LaunchStatus::Hang);
    ASSERT_EQ(o.diagnostics.size(), 1u);
    EXPECT_EQ(o.diagnostics[0].id, "deadlock");
    EXPECT_EQ(o.diagnostics[0].place.line, 13u);
    EXPECT_THAT(o.diagnostics[0].message,
                HasSubstr("96 threads of CTAs 0-1 at kernel.cu:13 for CTA 1 warp 1 lanes 0-31 at barrier.cluster"));
    ASSERT_EQ(o.diagnostics[0].related.size(), 1u);
    EXPECT_EQ(o.diagnostics[0].related[0].place.line, 11u);
    EXPECT_EQ(o.diagnostics[0].related[0].role, "32 threads of CTA 1 wait here for barrier 1");
  }
}

// --- residency -------------------------------------------------------------------------------------------------------

TEST(ClusterResidency, CtasOfAClusterResideOnDifferentSms) {
  const std::string body =
      "setp.ne.u32 %p1, %id, 0;\n@%p1 exit;\nmov.u32 %r1, %smid;\nmov.u32 %r2, %ctaid.x;\n"
      "mad.wide.u32 %rd1, %r2, 4, %out;\nst.global.u32 [%rd1], %r1;\n";
  for (const uint32_t size : {2u, 4u, 8u, 16u}) {
    Options options = clusters({size, 1, 1}, {96, 1, 1});
    options.sms = 16;
    const Outcome o = run_body(body, options);
    expect_ok(o);
    for (uint32_t c = 0; c < 96 / size; c++) {
      const std::set<uint32_t> sms(o.out.begin() + c * size, o.out.begin() + (c + 1) * size);
      EXPECT_EQ(sms.size(), size) << "cluster " << c << " of " << size;
      EXPECT_LT(*sms.rbegin(), 16u);
    }
  }
}

TEST(ClusterResidency, MoreClustersThanFitRunOneAfterTheOther) {
  // Shared memory for one CTA an SM, 4 SMs: two clusters of two at a time. Each counts itself in and out.
  const std::string body =
      "mov.u32 %r1, 0;\nTURN:\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 2000;\n@%p1 bra TURN;\n" + kMeet +
      "setp.eq.u32 %p2, %id, 0;\n@%p2 red.global.add.u32 [%out], 1;\n";
  for (const Schedule& schedule : all_schedules()) {
    uint64_t cycles_of_a_wave = 0;
    for (const uint32_t n : {2u, 4u, 10u}) {
      Options options = clusters({2, 1, 1}, {2 * n, 1, 1}, 32, schedule);
      options.sms = 4;
      options.dynamic_smem = 150'000;
      const Outcome o = run_body(body, options, ".extern .shared .align 16 .b8 more[];\n");
      expect_ok(o);
      EXPECT_EQ(o.out[0], 2 * n);
      if (n == 2) cycles_of_a_wave = o.cycles;
      if (schedule.kind == Schedule::Kind::Nominal) {
        EXPECT_EQ(o.cycles, cycles_of_a_wave * ((n + 1) / 2));
      }
    }
  }
}

TEST(ClusterResidency, AClusterThatWaitsForOneThatCannotStartIsADeadlock) {
  // Every cluster but the last waits for a flag that the last one raises; two clusters fit.
  const std::string body =
      "mov.u32 %r1, %clusterid.x;\nmov.u32 %r2, %nclusterid.x;\nadd.u32 %r1, %r1, 1;\nsetp.ne.u32 %p1, %r1, %r2;\n"
      "@!%p1 st.volatile.global.u32 [%out], 1;\nSPIN:\nld.volatile.global.u32 %r3, [%out];\nsetp.eq.u32 %p2, %r3, 0;\n"
      "@%p2 bra SPIN;\n";
  for (const uint32_t n : {2u, 3u}) {
    Options options = clusters({2, 1, 1}, {2 * n, 1, 1});
    options.sms = 4;
    options.dynamic_smem = 150'000;
    const Outcome o = run_body(body, options, ".extern .shared .align 16 .b8 more[];\n");
    if (n == 2) {
      expect_ok(o);
    } else {
      EXPECT_EQ(o.status, LaunchStatus::Hang);
      ASSERT_EQ(o.diagnostics.size(), 1u);
      EXPECT_THAT(o.diagnostics[0].message,
                  HasSubstr("2 of 6 CTAs have not started because the resident ones do not end"));
    }
  }
}

}  // namespace
}  // namespace handoff::machine
