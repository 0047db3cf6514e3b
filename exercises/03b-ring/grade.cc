// Harness of 03b: chunks of 256 elements pass through a ring of 1 to 4 stages in dynamic shared memory.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "grader/harness/exercise.h"

namespace {

using namespace handoff::harness;
using handoff::trace::Event;
using handoff::trace::Trace;

constexpr uint32_t kChunk = 256;                          // floats
constexpr uint32_t kBytesAStage = kChunk * 4 + 2 * 8;     // a slot, full, empty
constexpr uint32_t kShort[] = {0, 100, 255, 1, 37, 128};  // elements that the last chunk lacks

// What a case asks for.
struct Shape {
  uint32_t n, stages, block;
  uint32_t chunks() const { return (n + kChunk - 1) / kChunk; }
  uint32_t refills() const { return chunks() - std::min(chunks(), stages); }  // chunks that meet a used slot
};

class Ring : public ExerciseTest {
 public:
  std::vector<Case> cases(uint64_t seed) const override {
    std::vector<Case> list;
    uint32_t number = 0;
    for (uint32_t stages = 1; stages <= 4; stages++) {
      for (const uint32_t chunks : std::set<uint32_t>{0, 1, stages - 1, stages, stages + 1, 2 * stages + 3}) {
        for (const uint32_t block : {64u, 256u}) {
          const uint32_t missing = chunks == 0 ? 0 : kShort[number++ % std::size(kShort)];
          list.push_back(one({chunks * kChunk - missing, stages, block}, seed + list.size()));
        }
      }
    }
    return list;
  }

 protected:
  static Shape shape(const KernelRun& run) {
    const auto& parameters = run.test_case->parameters();
    Shape s{0, 0, run.test_case->config().block.x};
    std::memcpy(&s.n, parameters[2].value.data(), sizeof s.n);
    std::memcpy(&s.stages, parameters[3].value.data(), sizeof s.stages);
    return s;
  }

 private:
  static Case one(const Shape& s, uint64_t seed) {
    const std::vector<float> in = random_floats(s.n, seed);
    std::vector<float> out(s.n);
    for (uint32_t i = 0; i < s.n; i++) {
      const uint32_t opposite = i / kChunk * kChunk + (kChunk - 1 - i % kChunk);
      out[i] = 2.0f * in[i] - (opposite < s.n ? 2.0f * in[opposite] : 0.0f);
    }
    return Case(fmt::format("n = {}, {} stage{}, {} threads", s.n, s.stages, s.stages == 1 ? "" : "s", s.block))
        .block(s.block)
        .dynamic_smem(s.stages * kBytesAStage)
        .in("in", in)
        .out("out", out)
        .value("n", static_cast<int32_t>(s.n))
        .value("stages", static_cast<int32_t>(s.stages));
  }
};

// How the phases are spread over the barriers.
struct Phases {
  explicit Phases(const Trace& t) {
    std::map<std::string, uint64_t> of;
    for (const Event& e : t.events) {
      if (e.kind == Event::Kind::Init) barriers.insert(e.object);
      if (e.kind == Event::Kind::PhaseComplete) most = std::max(most, ++of[e.object]);
    }
  }
  std::set<std::string> barriers;
  uint64_t most = 0;  // phases that the busiest barrier completed
};

// How far behind the consumers the producers keep.
//
// For each phase of a barrier on which consumer warps arrive: the last chunk that such a warp had seen full when it
// arrived. For each chunk that a producer warp announces: the last such chunk that the warp had waited for. The
// difference is the number of chunks in which the producers may run ahead; at the least one over all chunks, the ring
// is as deep as that. Where no wait held a producer up, nothing is said.
//
// Chunks are told by barrier and phase: barriers on which producers arrive, in order of their first arrival, are those
// of the stages 0, 1, ...
class RunAhead {
 public:
  RunAhead(const Trace& t, const Shape& shape) : stages_(shape.stages), first_consumer_(shape.block / 64) {
    for (const Event& e : t.events) {
      if (e.warp < 0) continue;
      const bool producer = static_cast<uint32_t>(e.warp) < first_consumer_;
      if (e.kind == Event::Kind::Arrive) producer ? announce(e) : release(e);
      if (e.kind == Event::Kind::WaitTrue) producer ? wait_for_slot(e) : wait_for_chunk(e);
    }
  }
  // The least distance, in chunks, between a chunk that is announced and the chunk whose release was waited for.
  int64_t least() const { return least_; }
  // Whether a producer arrived on an mbarrier at all.
  bool announced() const { return !stage_of_.empty(); }

 private:
  using Phase = std::pair<std::string, uint64_t>;  // barrier, phase

  int64_t chunk(const Event& e) const {
    const auto at = stage_of_.find(e.object);
    return at == stage_of_.end() ? -1 : static_cast<int64_t>(e.phase * stages_ + at->second);
  }
  void announce(const Event& e) {
    stage_of_.try_emplace(e.object, static_cast<uint32_t>(stage_of_.size()));
    const auto waited = released_to_.find(e.warp);
    if (waited != released_to_.end()) least_ = std::min(least_, chunk(e) - waited->second);
  }
  void wait_for_chunk(const Event& e) {
    int64_t& seen = seen_by_.try_emplace(e.warp, -1).first->second;
    seen = std::max(seen, chunk(e));
  }
  void release(const Event& e) {
    const auto seen = seen_by_.find(e.warp);
    if (seen == seen_by_.end() || seen->second < 0) return;  // an arrival ahead of all chunks
    int64_t& last = released_in_.try_emplace({e.object, e.phase}, -1).first->second;
    last = std::max(last, seen->second);
  }
  void wait_for_slot(const Event& e) {
    const auto released = released_in_.find({e.object, e.phase});
    if (released == released_in_.end()) return;  // the phase before phase 0
    int64_t& last = released_to_.try_emplace(e.warp, released->second).first->second;
    last = std::max(last, released->second);
  }

  uint64_t stages_;
  uint32_t first_consumer_;                   // warp
  std::map<std::string, uint32_t> stage_of_;  // full barriers
  std::map<int32_t, int64_t> seen_by_;        // consumer warp: its last chunk
  std::map<Phase, int64_t> released_in_;      // empty barrier's phase: the last chunk of its arrivals
  std::map<int32_t, int64_t> released_to_;    // producer warp: the last chunk whose release it has observed
  int64_t least_ = INT64_MAX;
};

// The ring is there and turns: two barriers a stage, and each completes a phase a round (one more where all slots are
// released in advance). The last release of a slot may be left out, since nobody waits for it.
::testing::Matcher<const KernelRun&> TurnsAllStages(const Shape& s) {
  const uint64_t chunks = s.chunks(), rounds = (chunks + s.stages - 1) / s.stages;
  const uint64_t phases = chunks + s.refills(), barriers = 2 * (chunks - s.refills());
  return Traced(
      fmt::format("at least {} phases on {} barriers, two for each stage in use, and at most {} on any of them", phases,
                  barriers, rounds + 1),
      [=](const Trace& t) {
        const Phases p(t);
        return p.barriers.size() >= barriers && t.totals.phases >= phases && p.most <= rounds + 1;
      },
      [](const Trace& t) {
        const Phases p(t);
        return fmt::format("{} phases on {} barriers, at most {} on one of them", t.totals.phases, p.barriers.size(),
                           p.most);
      });
}

// The data takes the way through the ring.
::testing::Matcher<const KernelRun&> PassesThroughSharedMemory(uint64_t bytes) {
  return Traced(
      fmt::format("{} bytes through shared memory, each loaded from global memory once", bytes),
      [=](const Trace& t) {
        return t.totals.shared_store_bytes >= bytes && t.totals.shared_load_bytes >= bytes &&
               t.totals.global_load_bytes <= bytes;
      },
      [](const Trace& t) {
        return fmt::format("{} bytes loaded from global memory, {} stored to shared memory, {} loaded from it",
                           t.totals.global_load_bytes, t.totals.shared_store_bytes, t.totals.shared_load_bytes);
      });
}

// Producers announce chunks, and wait for no younger chunk than they must. One chunk of the depth may be lost, to
// consumers who release a slot after they have looked at the next one.
::testing::Matcher<const KernelRun&> RunsAhead(const Shape& s) {
  const int64_t depth = s.stages > 1 ? s.stages - 1 : 1;
  return Traced(
      fmt::format("producers on an mbarrier that wait for no chunk younger than {} before their own", depth),
      [=](const Trace& t) {
        const RunAhead r(t, s);
        return r.announced() && r.least() >= depth;
      },
      [=](const Trace& t) {
        const RunAhead r(t, s);
        if (!r.announced()) return std::string("no producer arrived on an mbarrier");
        return fmt::format("a producer that waited for the release of chunk k - {} before it announced chunk k",
                           r.least());
      });
}

HANDOFF_STANDARD_TESTS("03b", Ring)

// Every element passes through shared memory, from one role to the other, by way of two barriers a stage; block-wide
// barriers stand at the beginning and the end at most. An elected arrival or wait for each warp is as good as one for
// each thread.
HANDOFF_TEST("03b", Ring, ring_of_stages, "ring-of-stages") {
  if (!on_emulator()) {
    EXPECT_NE(ptx().find("mbarrier.arrive"), std::string::npos) << "the kernel never arrives on an mbarrier";
    EXPECT_TRUE(ptx().find("mbarrier.try_wait") != std::string::npos ||
                ptx().find("mbarrier.test_wait") != std::string::npos)
        << "the kernel never waits on an mbarrier";
    return;
  }
  for (const KernelRun& run : traced_runs()) {
    const Shape s = shape(run);
    if (s.chunks() == 0) continue;
    const uint64_t handoffs = s.block / 64 * uint64_t{s.chunks() + s.refills()};  // warps of each role
    EXPECT_THAT(run, HandsOffByMbarrier(handoffs, handoffs, 2, 1));
    EXPECT_THAT(run, TurnsAllStages(s));
    EXPECT_THAT(run, PassesThroughSharedMemory(uint64_t{s.n} * sizeof(float)));
  }
}

// A ring is deeper than a single buffer only if the producers make use of it.
HANDOFF_TEST("03b", Ring, runs_ahead, "runs-ahead") {
  if (!on_emulator()) GTEST_SKIP() << "who waited for what is recorded on the emulator only";
  for (const KernelRun& run : traced_runs()) {
    const Shape s = shape(run);
    if (s.chunks() == 0) continue;
    EXPECT_THAT(run, RunsAhead(s));
  }
}

}  // namespace
