// Harness of 07b: tiles of 4096 floats pass through a ring of 1 to 4 stages, in by bulk copies and out by bulk stores.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "grader/emulator/machine/memory.h"
#include "grader/harness/exercise.h"

namespace {

using namespace handoff::harness;
using handoff::trace::Event;
using handoff::trace::Trace;

constexpr uint32_t kTile = 4096;  // floats
constexpr uint32_t kTileBytes = kTile * sizeof(float);
constexpr uint32_t kThreads = 288;
constexpr uint32_t kBytesAStage = kTileBytes + 2 * 8;  // a tile, full, empty

// What a case asks for. Block b has the tiles b, b + blocks, b + 2 * blocks, …
struct Shape {
  uint32_t tiles, stages, blocks;
  uint32_t of(uint32_t block) const { return block < tiles ? (tiles - block - 1) / blocks + 1 : 0; }
  // Tiles that meet a used stage.
  uint32_t refills() const {
    uint32_t sum = 0;
    for (uint32_t b = 0; b < blocks; b++) sum += of(b) - std::min(of(b), stages);
    return sum;
  }
};

class Specialised : public ExerciseTest {
 public:
  std::vector<Case> cases(uint64_t seed) const override {
    std::vector<Case> list;
    for (uint32_t stages = 1; stages <= 4; stages++) {
      for (const uint32_t tiles : std::set<uint32_t>{0, 1, stages - 1, stages, stages + 1, 2 * stages + 3}) {
        list.push_back(one({tiles, stages, 1}, seed + list.size()));
      }
    }
    // Several blocks, not all with as many tiles, and with fewer tiles than blocks.
    for (const Shape s : {Shape{7, 1, 3}, Shape{2, 2, 3}, Shape{11, 2, 4}, Shape{13, 3, 2}, Shape{17, 4, 3}}) {
      list.push_back(one(s, seed + list.size()));
    }
    return list;
  }

 protected:
  static Shape shape(const KernelRun& run) {
    const auto& parameters = run.test_case->parameters();
    Shape s{0, 0, run.test_case->config().grid.x};
    std::memcpy(&s.tiles, parameters[2].value.data(), sizeof s.tiles);
    std::memcpy(&s.stages, parameters[3].value.data(), sizeof s.stages);
    return s;
  }

 private:
  static Case one(const Shape& s, uint64_t seed) {
    Case c(fmt::format("{} tile{}, {} stage{}, {} block{}", s.tiles, s.tiles == 1 ? "" : "s", s.stages,
                       s.stages == 1 ? "" : "s", s.blocks, s.blocks == 1 ? "" : "s"));
    c.grid(s.blocks).block(kThreads).dynamic_smem(s.stages * kBytesAStage);
    if (s.tiles == 0) {
      // There is one tile of memory, and it must stay as it was.
      c.in("in", random_floats(kTile, seed)).out("out", std::vector<uint8_t>(kTileBytes, handoff::machine::kPoison));
    } else {
      const std::vector<float> in = random_floats(size_t{s.tiles} * kTile, seed);
      std::vector<float> out;
      for (const float x : in) out.push_back(1.0f - 0.875f * x);
      c.in("in", in).out("out", out);
    }
    return c.value("tiles", static_cast<int32_t>(s.tiles)).value("stages", static_cast<int32_t>(s.stages));
  }
};

// The copies of one block, in order of issue. Loads write shared memory, stores do not.
struct Copies {
  struct Copy {
    const Event* issued;
    const Event* read = nullptr;  // its source: what a store held of shared memory is free
  };
  Copies(const Trace& t, uint32_t block) {
    std::map<uint64_t, Copy*> store_of;
    for (const Event& e : t.events) {
      if (e.cta != block || e.kind != Event::Kind::CopyIssued) continue;
      (e.object.empty() ? stores : loads).push_back({&e});
    }
    for (Copy& s : stores) store_of[s.issued->op] = &s;
    for (const Event& e : t.events) {
      const auto store = store_of.find(e.op);
      if (e.cta == block && e.kind == Event::Kind::CopyRead && store != store_of.end()) store->second->read = &e;
    }
  }
  // The copy with which the `k`-th tile's load begins; nullptr: there is none.
  const Event* load(uint32_t k) const {
    int64_t before = 0;
    for (const Copy& c : loads) {
      if (before >= int64_t{k} * kTileBytes) return c.issued;
      before += c.issued->bytes;
    }
    return nullptr;
  }
  // Bytes that had left shared memory for good when `e` happened.
  int64_t left(const Event& e) const {
    int64_t sum = 0;
    for (const Copy& c : stores) sum += c.read != nullptr && c.read->cycle <= e.cycle ? c.issued->bytes : 0;
    return sum;
  }
  std::vector<Copy> loads, stores;
};

// Does each block fill its whole ring before it stores anything, and never empty the ring before it loads again? Empty,
// or what is missing.
std::string not_ahead(const Trace& t, const Shape& s) {
  for (uint32_t b = 0; b < s.blocks; b++) {
    const Copies copies(t, b);
    if (s.of(b) > 0 && copies.stores.empty()) return fmt::format("block {} issued no bulk store", b);
    for (uint32_t k = 1; k < s.of(b); k++) {
      const Event* load = copies.load(k);
      if (load == nullptr) return fmt::format("block {} issued no bulk load for its tile {}", b, k);
      if (k < s.stages && load->cycle >= copies.stores.front().issued->cycle)
        return fmt::format("block {} loaded its tile {} after its first store, though {} stages were free", b, k,
                           s.stages);
      if (copies.left(*load) >= int64_t{k} * kTileBytes)
        return fmt::format("block {} loaded its tile {} after all tiles before it had been stored", b, k);
    }
  }
  return "";
}

// Are there, in each block that has tiles, warps that issue loads, and other warps that wait for these? Empty, or what
// is missing.
std::string not_specialised(const Trace& t, const Shape& s) {
  for (uint32_t b = 0; b < s.blocks; b++) {
    if (s.of(b) == 0) continue;
    const Copies copies(t, b);
    std::set<uint64_t> loads;
    std::set<int32_t> producers;
    for (const Copies::Copy& c : copies.loads) {
      loads.insert(c.issued->op);
      producers.insert(c.issued->warp);
    }
    std::set<std::string> full;  // barriers on which loads complete
    std::set<int32_t> consumers;
    for (const Event& e : t.events) {
      if (e.cta == b && e.kind == Event::Kind::Complete && loads.count(e.op) > 0) full.insert(e.object);
    }
    for (const Event& e : t.events) {
      if (e.cta == b && e.kind == Event::Kind::WaitTrue && full.count(e.object) > 0) consumers.insert(e.warp);
    }
    if (consumers.empty()) return fmt::format("in block {} no warp waited on an mbarrier for a bulk load", b);
    for (const int32_t w : producers) {
      if (consumers.count(w) > 0) return fmt::format("warp {} of block {} issued loads and waited for them", w, b);
    }
  }
  return "";
}

HANDOFF_STANDARD_TESTS("07b", Specialised)

// Everything that comes in comes by bulk copy, and everything that goes out goes by bulk store.
HANDOFF_TEST("07b", Specialised, uses_bulk_copies, "uses-bulk-copies") {
  if (!on_emulator()) {
    EXPECT_TRUE(ptx().find("cp.async.bulk.shared::cta.global") != std::string::npos ||
                ptx().find("cp.async.bulk.shared::cluster.global") != std::string::npos)
        << "the kernel has no bulk copy to shared memory";
    EXPECT_NE(ptx().find("cp.async.bulk.global.shared::cta"), std::string::npos)
        << "the kernel has no bulk copy to global memory";
    return;
  }
  for (const KernelRun& run : traced_runs()) {
    const uint64_t bytes = uint64_t{shape(run).tiles} * kTileBytes;
    EXPECT_THAT(run, LoadsByBulkCopy(bytes));
    EXPECT_THAT(run, Traced(
                         fmt::format("all {} bytes of the output by bulk store", bytes),
                         [=](const Trace& t) {
                           return t.totals.bulk_bytes_to_global >= bytes && t.totals.global_store_bytes == 0 &&
                                  t.totals.global_atomics == 0;
                         },
                         [](const Trace& t) {
                           return fmt::format("{} bytes went out by bulk store, {} by ordinary stores",
                                              t.totals.bulk_bytes_to_global, t.totals.global_store_bytes);
                         }));
  }
}

// Roles: who loads does not wait for the loads, and the roles meet through mbarriers only. Barriers of the block stand
// at the beginning and the end at most, however many tiles there are.
HANDOFF_TEST("07b", Specialised, specialised, "specialised") {
  if (!on_emulator()) {
    EXPECT_NE(ptx().find("mbarrier.arrive"), std::string::npos) << "the kernel never arrives on an mbarrier";
    EXPECT_TRUE(ptx().find("mbarrier.try_wait") != std::string::npos ||
                ptx().find("mbarrier.test_wait") != std::string::npos)
        << "the kernel never waits on an mbarrier";
    return;
  }
  for (const KernelRun& run : traced_runs()) {
    const Shape s = shape(run);
    if (s.tiles == 0) continue;
    const uint64_t handoffs = uint64_t{s.tiles} + s.refills();
    EXPECT_THAT(run, HandsOffByMbarrier(handoffs, handoffs, 2, s.blocks));
    EXPECT_THAT(run, Traced(
                         "warps that load and do not wait for the loads, and warps that wait for them",
                         [=](const Trace& t) { return not_specialised(t, s).empty(); },
                         [=](const Trace& t) { return not_specialised(t, s); }));
  }
}

// A ring of S stages has S loads on the way at first, and later as many as there are stages that nobody uses.
HANDOFF_TEST("07b", Specialised, runs_ahead, "runs-ahead") {
  if (!on_emulator()) GTEST_SKIP() << "copies in flight are observed on the emulator only";
  for (const KernelRun& run : traced_runs()) {
    if (run.schedule.kind != handoff::machine::Schedule::Kind::Nominal)
      GTEST_SKIP() << "decided on the nominal schedule";
    const Shape s = shape(run);
    if (s.stages == 1 || s.tiles == 0) continue;  // one stage: loads and stores take turns
    EXPECT_THAT(
        run,
        Traced(
            fmt::format("{} loads before the first store, and each later one before all tiles are stored", s.stages),
            [=](const Trace& t) { return not_ahead(t, s).empty(); }, [=](const Trace& t) { return not_ahead(t, s); }));
  }
}

}  // namespace
