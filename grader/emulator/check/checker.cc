// Tested by checker_test.cc, by the diagnostics catalogue's examples and by every exercise's mutants, variants and
// bypasses.
//
// What is ordered. A thread's accesses are ordered by program order. Between threads there is an edge where one
// releases and another acquires (PTX §8.9.4): arriving at and leaving a barrier of the block or of a warp; an mbarrier
// arrive with .release and a wait with .acquire that saw its phase complete; a release pattern and an acquire pattern
// on the same location. Relaxed operations and fences combine as §8.8 says. Scopes must cover both threads. Each edge
// carries everything its source knows, so order is transitive.
//
// Asynchronous operations are actors of their own. They start after what their issuer did before (§8.9.1.1) and are
// ordered with nothing that comes later, until their completion is observed: for a load, a wait on the mbarrier that
// saw the phase in which its last bytes were counted; for a store, wait_group by the issuing thread, .read for the
// source only; for cp.async, its own wait_group or an mbarrier that it arrives on. Observing carries the operation's
// own effects and nothing of its issuer's.
//
// Proxies. Bulk copies access memory through the async proxy. Order alone does not make a generic write visible to it:
// the writing thread must execute a proxy fence after the write and before the release that leads to the issue
// (§9.7.13.4). So knowledge comes in shades: ordered; ordered and fenced by the thread that wrote; ordered with a fence
// by anybody on the path. A fence in the wrong thread is a warning, none an error. Generic reads that are merely
// ordered before an async write are silent: every published ring relies on that.
//
// Tensor maps. The copy engine reads a map through the tensormap proxy. One in memory that kernels may write must be
// acquired by fence.proxy.tensormap in each block that uses it, after the last change; a change by the kernel itself is
// released by a fence of the thread that made it (§9.7.13.4; CUDA C++ Programming Guide, "Encoding a Tensor Map on
// Device"). Parameters and constants need neither.
//
// How it is kept. Every warp counts synchronisation steps; a clock says up to which step of which lane a thread knows
// (clock.h). Shadow cells remember the step of the last write and of the reads since (shadow.h). An access is checked
// against what the cell remembers the moment it happens, and an asynchronous operation at its issue: since it may do
// its work any time from then on, later accesses are checked against it.
//
// Tensor memory. tcgen05.ld, st and mma are actors, too. A ld or st is done when its warp waits for it, an MMA when a
// tcgen05.commit of its thread is observed. Of a later tcgen05 operation in another thread, and of any after a commit,
// the ISA asks more than order: fence::before_thread_sync in the first thread behind its wait, and
// fence::after_thread_sync in the second behind what it waited for (§9.7.16.6.3). The before half is knowledge that
// travels like that of proxy fences; the after half is a snapshot of what the thread knew when it executed the fence.
// Both make up for a relaxed signal. MMAs of one thread into one accumulator are ordered by themselves (§9.7.16.6.2).
// A register may be used before wait::ld; that the ld is over before the columns are written again or freed must be
// waited for. tcgen05.cp is tracked like an MMA; an MMA of its thread comes after it (§9.7.16.6.2), and one of another
// thread behind the two fences, as does one into the same accumulator behind an MMA. Such a pair is over when the later
// one is. With .cta_group::2 an operation is asked about the memory of both CTAs, a commit may signal barriers in
// several, and nobody of the pair may be at the columns when one of the two frees them (§9.7.16.7.1).
//
// Causes. A race may be the shadow of another mistake: a wait that answered false and was not repeated, or one that was
// satisfied by an older phase. Findings are kept until the launch ends; then each is asked whether a wait of one party
// on a barrier that the other party signals later explains it. The cause is reported first, at the wait.
//
// Clusters. A scope reaches the own block, the cluster or the whole GPU, and a signal counts for whoever is within the
// reach of both of its ends. barrier.cluster orders all threads of a cluster. A barrier in another block may be used
// when its init was fenced and a barrier of the cluster came between. A block's shared memory lives until its last
// thread has left: each use of it from outside must come before some thread of it leaves, which is asked when it does.
// Of a copy or a commit that is its end: some thread must know it complete.
// A release of block scope that reaches another block carries no data; that it lets a stage be refilled over there is
// what public rings rely on, and a warning.
//
// Deliberately not modelled: values (a data-dependent order through plain loads is a race even if it happens to work),
// and lanes ordered by shuffles (they exchange registers, not memory).
#include "grader/emulator/check/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>
#include <string_view>
#include <tuple>

#include "grader/emulator/async/async_state.h"
#include "grader/emulator/async/tensor_map.h"
#include "grader/emulator/machine/reachability.h"

namespace handoff::check {

using machine::Access;
using machine::AsyncOpInfo;
using machine::BarrierEvent;
using machine::Cta;
using machine::FenceInfo;
using machine::for_lanes;
using machine::GroupEvent;
using machine::Inst;
using machine::kFullMask;
using machine::LaneMask;
using machine::Launch;
using machine::MbarrierEvent;
using machine::Region;
using machine::Scope;
using machine::Sem;
using machine::Warp;

namespace {

constexpr const char* kBytesHint =
    "The bytes announced by expect_tx are the sum of the bytes of the copies that signal the barrier in that phase.";

/// MMAs and tcgen05.cp: what a tcgen05.commit tracks.
bool by_tensor_core(const AsyncOpInfo& o) {
  return o.kind == AsyncOpInfo::Kind::Mma || o.kind == AsyncOpInfo::Kind::TensorMemoryCopy;
}

bool reduces(const AsyncOpInfo& o) {
  return o.kind == AsyncOpInfo::Kind::BulkReduce || o.kind == AsyncOpInfo::Kind::TensorReduce ||
         o.kind == AsyncOpInfo::Kind::RemoteReduce;
}

/// cp.async, st.async and red.async access memory through the generic proxy; all other operations through the async
/// one.
bool generic_proxy(const AsyncOpInfo& o) {
  return o.kind == AsyncOpInfo::Kind::CpAsync || o.kind == AsyncOpInfo::Kind::RemoteStore ||
         o.kind == AsyncOpInfo::Kind::RemoteReduce;
}

/// How far a scope reaches, and how far apart two blocks are: the same one, one cluster, farther.
enum Distance : uint8_t { kSameBlock, kSameCluster, kElsewhere };
constexpr size_t kDistances = 3;
Distance reach_of(Scope s) { return s == Scope::Cta ? kSameBlock : s == Scope::Cluster ? kSameCluster : kElsewhere; }

constexpr const char* kRelaxed = ": the signal between them is relaxed, which orders nothing";
constexpr const char* kUnordered = ": nothing orders them";

/// "reads" of one lane, "read" of several.
std::string does(LaneMask lanes, const char* verb) {
  const std::string one = verb;
  return (lanes & (lanes - 1)) == 0 ? one : one.substr(0, one.size() - 1);
}

constexpr uint32_t kTensorMapBytes = sizeof(async::TensorMapImage);

constexpr const char* kScopeHint =
    "Release and acquire semantics with a scope that covers both threads are needed: .cluster between blocks of a "
    "cluster, .gpu between others.";
constexpr const char* kStayHint =
    "A block must not end while others still use its shared memory: a barrier of the whole cluster before the end "
    "(barrier.cluster.arrive and wait by all threads) would keep it.";
constexpr const char* kClusterInitHint =
    "fence.mbarrier_init.release.cluster by the initialising thread after the init, then a barrier of the whole "
    "cluster "
    "(barrier.cluster.arrive and wait by all threads) before the first use from another block.";

constexpr const char* kPairFreeHint =
    "Both CTAs of the pair meet (a barrier of the cluster) after their last accesses and before "
    "tcgen05.dealloc.cta_group::2.";

constexpr const char* kParityHint =
    "The parity to wait for is the phase's number modulo 2: 0 for the first phase, and it flips with each.";

constexpr const char* kOvertakenHint =
    "Let these threads arrive where the next phase is waited for, or meet its producer at a barrier of the block; "
    "those who only want the last phase can wait on a barrier of its own.";

bool releases(Sem s) { return s == Sem::Release || s == Sem::AcqRel || s == Sem::Sc; }
bool acquires(Sem s) { return s == Sem::Acquire || s == Sem::AcqRel || s == Sem::Sc; }
bool strong(Sem s) { return s != Sem::Weak; }

// Keys of Clock::other.
constexpr uint64_t kBarrierKey = uint64_t{1} << 60, kBulkReadKey = uint64_t{2} << 60, kBulkWriteKey = uint64_t{3} << 60,
                   kCpAsyncKey = uint64_t{4} << 60, kMmaKey = uint64_t{5} << 60;

/// What a release fence published, for relaxed signals after it. The lanes of a group execute a fence together, but
/// none publishes what another did: what the fence covers of a lane's own accesses is added when that lane signals.
struct ReleaseFence {
  Knowledge known;
  uint32_t n = 0;                       ///< step of the fence; 0: none
  uint32_t shared_n = 0, global_n = 0;  ///< of the proxy fence before it
  bool operator==(const ReleaseFence&) const = default;
};

/// What fences and relaxed operations left for one another.
struct Fences {
  std::array<ReleaseFence, kDistances> release;  ///< the last fence whose scope reaches at least so far
  /// Seen by relaxed reads and waits, from so far: taken over by the next acquire fence whose scope reaches there.
  std::array<Knowledge, kDistances> to_acquire;
  std::array<bool, kDistances> pending = {};  ///< whether there is any
  ClockPtr to_acquire_wide;                   ///< Knowledge::wide of all of that, wherever it came from
  bool operator==(const Fences&) const = default;
};

/// Lanes of a warp that know the same.
struct LaneGroup {
  LaneMask mask = 0;
  Knowledge now;
  std::shared_ptr<const Fences> rare;   ///< nullptr: none; most threads execute no fence and no relaxed operation
  uint32_t shared_n = 0, global_n = 0;  ///< steps of these lanes' last proxy fences
  uint32_t tensor_n = 0;                ///< step of their last tcgen05.fence::before_thread_sync
  ClockPtr after_any, after_tensor;     ///< now.any and now.fenced_tensor at their last fence::after_thread_sync

  const Fences& fences() const {
    static const Fences kNone;
    return rare ? *rare : kNone;
  }
  /// To be changed: nobody else sees it.
  Fences& own_fences() {
    auto mine = std::make_shared<Fences>(fences());
    rare = mine;
    return *mine;
  }
  bool same(const LaneGroup& g) const {
    return now == g.now && shared_n == g.shared_n && global_n == g.global_n && tensor_n == g.tensor_n &&
           after_any == g.after_any && after_tensor == g.after_tensor && (rare == g.rare || fences() == g.fences());
  }
};

/// An answer that lanes got from an mbarrier.
struct WaitRecord {
  uint64_t barrier;  ///< clock key
  LaneMask mask;
  uint32_t n;      ///< step of the warp
  uint64_t phase;  ///< asked for; −1 wraps
  bool complete;
  bool stale;  ///< complete, and these lanes knew already that this phase is: by a wait of their own, or from others
  const Inst* inst;
  bool fresh() const { return phase + 1 == 0; }  ///< a fresh barrier's "phase −1"
};

/// The last arrival of each lane on one barrier.
struct LastArrival {
  std::array<uint64_t, 32> phase_plus_one = {};  ///< 0: none
  std::array<uint32_t, 32> n = {};
};

/// A wait that looks wrong by itself, and is the cause if anything else is found.
struct Suspect {
  const Inst* wait;
  bool stale;  ///< else: not repeated
  uint64_t phase;
  const Inst* arrive;  ///< what the thread went on to do
};

/// A fence.proxy.tensormap::generic.acquire by lanes of a warp, of one map.
struct MapAcquire {
  uint32_t key, n;  ///< warp and its step
  LaneMask mask;
  uint32_t own_n;  ///< what these lanes did themselves up to this step comes before it
  ClockPtr order;  ///< what they knew of others
};

/// A fence.proxy.tensormap::generic.release, or a tensormap.cp_fenceproxy, by lanes of a warp.
struct MapRelease {
  uint32_t n;       ///< step; what these lanes wrote up to it is released
  uint32_t seen_n;  ///< who knows this step knows of it
  LaneMask mask;
};

/// Acquires of one map by the same lanes, and releases of one warp, that are told apart. Of more, the oldest two become
/// one that is as early as the one and says as much as the other: that can only silence.
///@{
constexpr size_t kMapAcquiresKept = 8, kMapReleasesKept = 256;
///@}

struct WarpState {
  uint32_t key = 0;
  uint32_t n = 1;  ///< the current step; accesses are stamped with it
  Warp* warp = nullptr;
  std::vector<LaneGroup> groups;
  std::vector<uint32_t> tensor_loads_waited, tensor_stores_waited;  ///< steps of tcgen05.wait::ld, ::st
  std::vector<WaitRecord> waits;                                    ///< the latest ones, in order
  std::unordered_map<uint64_t, LastArrival> last_arrivals;          ///< by barrier
  std::map<uint32_t, std::pair<LaneMask, Knowledge>> warp_sync;     ///< bar.warp.sync in progress, by member mask
};

/// A signal that a thread or an operation gave to a barrier.
struct ArrivalRecord {
  uint32_t key, n;
  LaneMask mask;
  uint64_t phase;
};

/// Lanes whose wait has seen a phase complete.
struct Waiter {
  uint32_t key, n;
  LaneMask mask;
  uint64_t phase;  ///< −1 wraps
  const Inst* inst;
};

struct BarrierState {
  uint64_t key = 0;                                               ///< of Clock::other
  Knowledge arrived;                                              ///< of all arrivals of its own block so far
  Knowledge arrived_remote;                                       ///< of those of other blocks of the cluster
  Knowledge completed, completed_remote;                          ///< both at the last completion
  uint64_t observed = 0;                                          ///< phases that some wait has seen complete
  std::shared_ptr<bool> awaited = std::make_shared<bool>(false);  ///< some thread has asked for a phase
  uint32_t init_key = 0, init_n = 0;
  int init_lane = 0;
  const Inst* init = nullptr;
  /// Steps of the initialising thread's first fence after the init, fence.mbarrier_init or a proxy fence, and of its
  /// first fence.mbarrier_init; 0: none yet.
  ///@{
  uint32_t fence_n = 0, init_fence_n = 0;
  ///@}
  std::vector<ArrivalRecord> arrivals;
  /// Who comes in time: see overtake().
  ///@{
  bool all_arrivals_known = true;    ///< false: an arrive of cp.async, of whose thread nothing is kept
  std::vector<Waiter> waiters;       ///< of the latest complete phase
  std::vector<Waiter> overtaken;     ///< of the one before it: nothing held the latest completion back for them
  const Inst* completing = nullptr;  ///< the latest completion
  ///@}
  const Inst* first_copy = nullptr;
  int64_t in_flight = 0;  ///< bytes of copies issued and not yet counted
};

struct NamedState {
  Knowledge arrived;
  std::vector<std::pair<WarpState*, LaneMask>> waiting;
};

/// barrier.cluster of one cluster.
struct ClusterState {
  Knowledge arrived;    ///< of this phase
  Knowledge completed;  ///< of the last complete phase
};

/// The last use of a block's shared memory by lanes of another block, of one instruction.
struct RemoteUse {
  const Inst* inst;
  uint32_t key, n;  ///< warp and its step
  LaneMask mask;
  const char* verb;
  uint32_t offset;
  bool barrier;         ///< of an mbarrier
  uint64_t commit = 0;  ///< of a tcgen05.commit: the last operation before it, AsyncOpInfo::id
};

struct Operation {
  AsyncOpInfo info;
  uint32_t key = 0, n = 0;  ///< issuer's warp and step
  uint64_t barrier = 0;     ///< clock key of the barrier that it signals, 0: none
  uint64_t phase = 0;       ///< in which its bytes were counted last
  bool signalled = false;
  uint64_t bytes_counted = 0;
  uint64_t thread_key = 0;                  ///< group component of the issuing thread
  uint64_t sequence = 0;                    ///< among that thread's operations of this kind
  uint64_t own_waits = 0, stray_waits = 0;  ///< ThreadState::own_waits, CtaState::stray_waits before the issue
  uint32_t successor = 0;  ///< of an MMA or tcgen05.cp: the first MMA that another thread ordered behind it; 0: none
};

/// Groups of one thread.
struct ThreadState {
  uint64_t bulk_issued = 0, copy_issued = 0, mma_issued = 0;
  uint64_t own_waits = 0;                          ///< waits for groups, once it had issued what goes into them
  ClockPtr mma_order, mma_any;                     ///< what it knew when it issued its last MMA
  ClockPtr copy_in_time;                           ///< what had happened when it issued its last cp.async
  std::vector<uint32_t> uncommitted;               ///< MMAs that no commit tracks yet, as operation numbers
  std::vector<uint32_t> committed;                 ///< those that the last commit tracks
  std::vector<uint64_t> bulk_groups, copy_groups;  ///< operations issued when each was committed
};

/// An access of tensor memory that is remembered.
struct TensorRecord {
  machine::TensorEvent::Kind kind;  ///< Load, Store, Mma or Copy; Dealloc: of the pair, by the other CTA
  bool writes = false;
  const Inst* inst = nullptr;
  uint32_t key = 0, n = 0;  ///< warp and its step
  LaneMask mask = 0;
  uint32_t operation = 0;   ///< of an MMA or a copy
  uint64_t shape = 0;       ///< of an MMA
  bool of_nothing = false;  ///< a Load of columns that nobody had written
};

/// Columns of one half-quarter of the lanes that were touched alike.
struct TensorColumns {
  uint16_t begin, end;
  std::vector<TensorRecord> records;  ///< at most one that writes, the first; then reads since
};

/// EmptyCommit::phase of one that has not arrived yet.
constexpr uint64_t kNotArrived = ~uint64_t{0};

/// A commit that has not arrived yet.
struct PendingCommit {
  const Inst* inst = nullptr;
  uint64_t op = 0;                   ///< TensorEvent::op
  std::vector<uint32_t> operations;  ///< MMAs that no commit before it tracked
  /// What its thread knew when it issued its last MMA. Who sees the MMA complete comes after the copies that had to be
  /// complete before it was issued: that is what lets a stage be filled again.
  ///@{
  ClockPtr order, any;
  ///@}
  struct CtaState* issuer = nullptr;  ///< the CTA of its thread
};

/// A commit that tracked nothing.
struct EmptyCommit {
  uint64_t barrier;  ///< clock key
  uint64_t phase;    ///< in which it arrived
  const Inst* inst;
  uint32_t key, n;  ///< warp and its step
  LaneMask mask;
};

struct CtaState {
  explicit CtaState(ShadowBytes* shadow_bytes) : shared(shadow_bytes) {}
  uint32_t base = 0;  ///< key of warp 0
  Shadow shared;
  std::unordered_map<uint32_t, BarrierState> barriers;  ///< by offset
  std::array<NamedState, 16> named;
  std::unordered_map<uint32_t, ThreadState> threads;  ///< by thread index
  std::vector<std::unique_ptr<WarpState>> warps;
  uint64_t stray_waits = 0;                          ///< waits for groups by threads that have none of that kind
  std::array<std::vector<TensorColumns>, 8> tensor;  ///< of each 16 lanes, by column, disjoint
  std::vector<EmptyCommit> empty_commits;
  /// Commits on their way to each barrier, in order: what they track; no operation: nothing.
  std::unordered_map<uint64_t, std::deque<PendingCommit>> commits;
  std::vector<RemoteUse> remote_uses;  ///< of its shared memory
  /// Copies, issued by other blocks, that write its shared memory or signal a barrier there, as operation numbers.
  std::vector<uint32_t> remote_operations;
  std::unordered_map<uint64_t, std::vector<MapAcquire>> map_acquires;  ///< by its threads, in order, by map
  const Cta* cta = nullptr;
};

/// Releases that a location keeps: a thread's is missed only where it stores again, relaxed, after so many others.
constexpr size_t kReleasesKept = 256;

/// A location used for synchronisation.
struct Location {
  Knowledge wide;  ///< released at gpu or sys scope
  /// Released by threads of one block.
  struct OfBlock {
    uint32_t cta;              ///< linear
    Knowledge block, cluster;  ///< to their own block, and at cluster scope or wider
  };
  std::vector<OfBlock> blocks;
  struct Release {
    uint32_t key;
    int lane;
    std::array<Knowledge, kDistances> known;  ///< to threads so far away
  };
  std::vector<Release> releases;  ///< the last release operation of a thread; of the last kReleasesKept threads
};

/// A party of a finding, for the search of causes.
struct PartyOf {
  Party party = Party::None;
  uint32_t key = 0;
  uint32_t n = 0;  ///< step or operation index
  LaneMask mask = 0;
  bool reads = false;
};

struct Finding {
  Diagnostic diagnostic;
  PartyOf later, earlier;
  std::vector<WaitRecord> later_waits, earlier_waits;
  std::shared_ptr<const bool> awaited;  ///< phase-overrun: does anybody ever wait for that barrier?
  bool latent = false;                  ///< did no harm in this run, and would in one where a thread is slow
};

/// Causes come before what follows from them.
int rank_of(const Diagnostic& d) {
  if (d.severity == Severity::Warning) return 8;
  if (d.severity == Severity::Note) return 9;
  static const std::map<std::string, int> kRanks = {{"missing-retry-loop", 1},
                                                    {"stale-parity", 1},
                                                    {"tx-bytes-mismatch", 2},
                                                    {"arrival-count-mismatch", 2},
                                                    {"phase-overrun", 3},
                                                    {"remote-cta-gone", 3},  // of who did not wait as it should
                                                    {"many-lanes-issue", 1},
                                                    {"commit-tracks-nothing", 2},
                                                    // what mostly follows from one of the others
                                                    {"accumulator-overwritten", 5},
                                                    {"tmem-freed-early", 5},
                                                    {"tmem-leak", 7},
                                                    {"copy-in-flight-at-exit", 5},
                                                    {"deadlock", 6},
                                                    {"stalled", 6}};
  static const std::vector<std::string> kAccess = {"data-race",
                                                   "scope-too-narrow",
                                                   "async-read-before-complete",
                                                   "refill-before-release",
                                                   "source-overwritten",
                                                   "missing-proxy-fence",
                                                   "group-not-awaited",
                                                   "mma-result-unobserved",
                                                   "missing-tcgen05-fence",
                                                   "missing-tcgen05-wait"};
  if (const auto found = kRanks.find(d.id); found != kRanks.end()) return found->second;
  return std::find(kAccess.begin(), kAccess.end(), d.id) != kAccess.end() ? 4 : 0;
}

/// Changes k.any; where `in_time` is the same clock it stays the same, as one object is joined faster than two.
void set_any(Knowledge& k, ClockPtr any) {
  if (k.in_time == k.any) k.in_time = any;
  k.any = std::move(any);
}

}  // namespace

struct Checker::State {
  Launch* launch = nullptr;
  ShadowBytes shadow_bytes;  ///< of `global` and of all `ctas`, which it must outlive
  std::unordered_map<const Cta*, std::unique_ptr<CtaState>> ctas;
  std::vector<const Cta*> cta_of_key;  ///< linear CTA → Cta while it lives
  Shadow global{&shadow_bytes};
  std::unordered_map<const machine::Domain*, ClusterState> clusters;
  /// By warp, in order: whoever acquires may know of a release and not of the next, and what was written between the
  /// two must not count for the first.
  std::unordered_map<uint32_t, std::vector<MapRelease>> map_releases;
  std::unordered_map<uint64_t, Location> global_locations;
  std::map<std::pair<const Cta*, uint32_t>, Location> shared_locations;
  std::vector<Operation> operations;  ///< index = Operation number; id − 1
  uint64_t next_barrier = 1;
  std::unordered_map<uint64_t, std::vector<ArrivalRecord>> arrivals;  ///< of barriers, by key, outliving their CTA
  std::vector<Finding> findings;
  std::vector<Suspect> suspects;
  /// Severity of what was found for an id, a later and an earlier instruction.
  std::map<std::tuple<std::string_view, const Inst*, const Inst*>, Severity> known_findings;
  std::unordered_map<const Inst*, const Inst*> early_uses;  ///< used_before_wait() of each ld
  uint32_t warps_per_cta = 0;
  bool clusters_exist = false;  ///< of more than one CTA
  /// What of() found last.
  ///@{
  const Cta* last_cta = nullptr;
  CtaState* last_cta_state = nullptr;
  ///@}

  // --- lookups ---
  CtaState& of(const Cta& cta) {
    if (&cta != last_cta) {
      last_cta_state = ctas.at(&cta).get();
      last_cta = &cta;
    }
    return *last_cta_state;
  }
  WarpState& of(const Warp& w) { return *of(*w.cta).warps[w.index]; }
  const machine::Program& program() const { return *launch->program; }
  SourcePlace place(const Inst* i) const { return i == nullptr ? SourcePlace{} : program().place(*i); }
  Operation& op(uint64_t id) { return operations[id - 1]; }

  std::string who(uint32_t key, LaneMask mask) const {
    std::string s;
    if (launch->config.grid.volume() > 1) s = fmt::format("CTA {} ", key / warps_per_cta);
    const uint32_t warp = key % warps_per_cta;
    return s + (__builtin_popcount(mask) == 1 ? fmt::format("warp {} lane {}", warp, machine::lane_ranges(mask))
                                              : fmt::format("warp {} lanes {}", warp, machine::lane_ranges(mask)));
  }
  std::string bytes_name(Region region, uint64_t address, uint32_t bytes) const {
    if (region == Region::Shared)
      return fmt::format("{} ({} bytes)", program().describe_shared(static_cast<uint32_t>(address)), bytes);
    return fmt::format("{}", launch->memory->describe(address));
  }
  static std::string at(const SourcePlace& p) {
    if (p.line == 0) return "an unknown line";
    return fmt::format("{}:{}", p.file.substr(p.file.rfind('/') + 1), p.line);
  }

  // --- clusters ---
  /// The cluster of a CTA, both by linear index.
  uint32_t cluster_of(uint32_t cta) const {
    const machine::Dim &grid = launch->config.grid, &c = launch->config.cluster;
    const uint32_t x = cta % grid.x / c.x, y = cta / grid.x % grid.y / c.y, z = cta / (grid.x * grid.y) / c.z;
    return (z * (grid.y / c.y) + y) * (grid.x / c.x) + x;
  }
  /// Of two CTAs by linear index.
  Distance distance(uint32_t a, uint32_t b) const {
    if (a == b) return kSameBlock;
    return clusters_exist && cluster_of(a) == cluster_of(b) ? kSameCluster : kElsewhere;
  }
  /// Lanes of another block use shared memory of `owner`.
  void used_from_outside(const Cta& owner, const WarpState& w, LaneMask mask, const Inst* inst, const char* verb,
                         uint32_t offset, bool barrier, uint64_t commit = 0) {
    if (w.warp->cta == &owner) return;
    std::vector<RemoteUse>& uses = of(owner).remote_uses;
    for (RemoteUse& u : uses) {
      if (u.inst != inst || u.key != w.key || u.mask != mask) continue;
      u.n = w.n;  // whoever knows this one knows the earlier ones
      u.offset = offset;
      u.commit = commit;
      return;
    }
    uses.push_back({inst, w.key, w.n, mask, verb, offset, barrier, commit});
  }
  void check_remote_uses(const Cta& cta);

  // --- lane groups ---
  /// Splits groups so that `mask` is a union of whole groups, and calls f for each of them.
  template <class F>
  void each_group(WarpState& w, LaneMask mask, F&& f) {
    for (size_t g = 0; g < w.groups.size(); g++) {
      const LaneMask in = w.groups[g].mask & mask;
      if (in == 0) continue;
      if (in != w.groups[g].mask) {
        LaneGroup rest = w.groups[g];
        rest.mask &= ~in;
        w.groups[g].mask = in;
        w.groups.push_back(std::move(rest));
      }
      f(w.groups[g]);
    }
  }
  /// Calls f(group, lanes) for each group that has some of the lanes of `mask`. It splits none, so f must change none.
  template <class F>
  static void each_group_in(const WarpState& w, LaneMask mask, F&& f) {
    for (const LaneGroup& g : w.groups) {
      if (const LaneMask in = g.mask & mask; in != 0) f(g, in);
    }
  }
  /// Joins groups that know the same again.
  static void merge_groups(WarpState& w) {
    for (size_t a = 0; a < w.groups.size(); a++) {
      for (size_t b = a + 1; b < w.groups.size();) {
        LaneGroup &x = w.groups[a], &y = w.groups[b];
        if (x.same(y)) {
          x.mask |= y.mask;
          w.groups.erase(w.groups.begin() + static_cast<std::ptrdiff_t>(b));
        } else {
          b++;
        }
      }
    }
  }
  /// Adds to `k` what the lanes of `mask`, of `g`, publish when they release now.
  static void publish(Knowledge& k, const WarpState& w, const LaneGroup& g, LaneMask mask) {
    k.join(g.now);
    k = with_proxy_fences(w, mask, std::move(k), g.shared_n, g.global_n);
    if (g.tensor_n != 0) k.fenced_tensor = Clock::with_warp(std::move(k.fenced_tensor), w.key, mask, g.tensor_n);
    const bool same = k.order == k.any, same_wide = k.order == k.wide, same_time = k.in_time == k.any;
    // Where shades are one object it is changed once, in place if no one else holds it.
    if (same_time) k.in_time = nullptr;
    if (same_wide) k.wide = nullptr;
    if (same) k.any = nullptr;
    const auto with_step = [&](ClockPtr& c) { return Clock::with_warp(std::move(c), w.key, mask, w.n); };
    k.order = with_step(k.order);
    k.any = same ? k.order : with_step(k.any);
    k.in_time = same_time ? k.any : with_step(k.in_time);
    k.wide = same_wide ? k.order : with_step(k.wide);
  }
  /// That alone.
  static Knowledge published(const WarpState& w, const LaneGroup& g, LaneMask mask) {
    Knowledge k;
    publish(k, w, g, mask);
    return k;
  }
  /// `k` and what the lanes' own proxy fences cover.
  static Knowledge with_proxy_fences(const WarpState& w, LaneMask mask, Knowledge k, uint32_t shared_n,
                                     uint32_t global_n) {
    if (shared_n != 0) {
      k.fenced_shared = Clock::with_warp(std::move(k.fenced_shared), w.key, mask, shared_n);
      k.path_shared = Clock::with_warp(std::move(k.path_shared), w.key, mask, shared_n);
    }
    if (global_n != 0) {
      k.fenced_global = Clock::with_warp(std::move(k.fenced_global), w.key, mask, global_n);
      k.path_global = Clock::with_warp(std::move(k.path_global), w.key, mask, global_n);
    }
    return k;
  }
  /// What a signal of lanes carries: everything if it releases, what the last release fence published if it is relaxed.
  /// `to`: how far away the thread is that sees it, so that the fence must reach there.
  static Knowledge signal(const WarpState& w, const LaneGroup& g, LaneMask mask, bool release, Distance to) {
    Knowledge k = published(w, g, mask);
    if (release) return k;
    const ReleaseFence& fence = g.fences().release[to];
    Knowledge r;
    if (fence.n != 0) {
      r = with_proxy_fences(w, mask, fence.known, fence.shared_n, fence.global_n);
      r.order = Clock::with_warp(r.order, w.key, mask, fence.n);
    }
    const ReleaseFence& any_fence = g.fences().release[kSameBlock];
    if (any_fence.n != 0) r.wide = Clock::with_warp(any_fence.known.wide, w.key, mask, any_fence.n);
    r.any = k.any;
    r.in_time = k.in_time;
    r.fenced_tensor = k.fenced_tensor;
    return r;
  }
  /// A thread sees `k`, from so far away, by an operation of scope `reach`: takes it over if it acquires, else keeps it
  /// for an acquire fence; nothing of it where the scope does not reach there.
  static void see(LaneGroup& g, const Knowledge& k, bool acquire, Distance reach, Distance from) {
    if (acquire && reach >= from) {
      g.now.join(k);
      return;
    }
    see_from_afar(g, k, acquire);
    if (acquire || reach < from) return;
    Fences& f = g.own_fences();
    f.to_acquire[from].join(k);
    f.pending[from] = true;
  }
  /// What a thread learns of `k` where a scope does not reach.
  static void see_from_afar(LaneGroup& g, const Knowledge& k, bool acquire) {
    g.now.join_any(k);
    if (acquire) {
      g.now.wide = Clock::join(g.now.wide, k.wide);
    } else if (ClockPtr wide = Clock::join(g.fences().to_acquire_wide, k.wide); wide != g.fences().to_acquire_wide) {
      g.own_fences().to_acquire_wide = std::move(wide);
    }
  }

  // --- order ---
  static bool knows(const ClockPtr& c, uint32_t key, int lane, uint32_t n) { return c && c->warp(key, lane) >= n; }
  static uint64_t known(const ClockPtr& c, uint64_t key) { return c ? c->other(key) : 0; }
  /// Is the init of a barrier ordered before what knows `k`? Either as anything is, or because its fence.mbarrier_init
  /// is, which makes up for a relaxed signal behind it (§9.7.13.4): published code follows it with a relaxed
  /// barrier.cluster.
  static bool init_known(const BarrierState& b, const Knowledge& k) {
    return knows(k.order, b.init_key, b.init_lane, b.init_n) ||
           (b.init_fence_n != 0 && knows(k.any, b.init_key, b.init_lane, b.init_fence_n));
  }
  /// Is it known to have happened, though by signals that order nothing?
  static bool met_since_init(const BarrierState& b, const Knowledge& k) {
    return knows(k.any, b.init_key, b.init_lane, b.init_n);
  }
  /// And is it visible to others than the threads of its block?
  static bool init_visible(const BarrierState& b, const Knowledge& k) {
    return (b.init_fence_n != 0 && knows(k.any, b.init_key, b.init_lane, b.init_fence_n)) ||
           (b.fence_n != 0 && knows(k.order, b.init_key, b.init_lane, b.fence_n));
  }
  /// Does a clock cover the end of the operation's writing (or only its reading)?
  bool complete(const Operation& o, const ClockPtr& c, bool reading_only) const {
    switch (o.info.kind) {
      case AsyncOpInfo::Kind::CpAsync:
        return known(c, kCpAsyncKey | o.thread_key) > o.sequence;
      case AsyncOpInfo::Kind::Mma:
      case AsyncOpInfo::Kind::TensorMemoryCopy:
        // §9.7.16.6.2: of a pipeline the second is over when the first is, whoever issued and committed it.
        for (const Operation* p = &o;; p = &operations[p->successor]) {
          if (known(c, kMmaKey | p->thread_key) > p->sequence) return true;
          if (p->successor == 0) return false;
        }
      case AsyncOpInfo::Kind::BulkPrefetch:
        return true;
      default:
        break;
    }
    if (o.barrier != 0) return o.signalled && known(c, o.barrier) > o.phase;
    return known(c, (reading_only ? kBulkReadKey : kBulkWriteKey) | o.thread_key) > o.sequence;
  }

  /// MMAs and tcgen05.cp of one thread finish in order: that the later one is over says the same of the earlier one.
  static bool same_mma_thread(const Operation& a, const Operation& b) {
    return by_tensor_core(a.info) && by_tensor_core(b.info) && a.thread_key == b.thread_key;
  }

  /// The id for an access that meets an unfinished operation: if its thread waited for groups since its issue, that
  /// wait did not cover it (depth or kind), or the operation was never committed; so if a thread waited that has no
  /// groups (the wrong one). A wait that covers it, not passed on, is no fault of the group.
  const char* unfinished_id(const Operation& o, bool reading_only, const char* otherwise) {
    if (o.barrier != 0 || by_tensor_core(o.info)) return otherwise;
    const Cta* cta = cta_of_key[o.key / warps_per_cta];
    if (cta == nullptr) return otherwise;
    CtaState& c = of(*cta);
    WarpState& w = *c.warps[o.key % warps_per_cta];
    for (const LaneGroup& g : w.groups) {
      if ((g.mask >> o.info.lane & 1) != 0 && complete(o, g.now.order, reading_only)) return otherwise;
    }
    const ThreadState& issuer = c.threads[static_cast<uint32_t>(o.thread_key & 0xfff)];
    return issuer.own_waits > o.own_waits || c.stray_waits > o.stray_waits ? "group-not-awaited" : otherwise;
  }

  /// The id for a write over what an unfinished operation writes. Who does not even know of its issue could not have
  /// relied on any wait: then nothing orders the two. `own`: the writer issued it, which its clock need not say.
  const char* overwriting_id(const Operation& o, const ClockPtr& writer, bool own) {
    return own || knows(writer, o.key, o.info.lane, o.n) ? unfinished_id(o, false, "data-race") : "data-race";
  }

  static const char* noun(const Operation& o) {
    return o.info.kind == AsyncOpInfo::Kind::Mma            ? "MMA"
           : o.info.kind == AsyncOpInfo::Kind::LaunchCancel ? "try_cancel"
                                                            : "copy";
  }
  /// "the copy at kernel.cu:22", "the copy issued at kernel.cu:22".
  ///@{
  std::string named(const Operation& o) const { return fmt::format("the {} at {}", noun(o), at(place(o.info.inst))); }
  std::string issued(const Operation& o) const {
    return fmt::format("the {} issued at {}", noun(o), at(place(o.info.inst)));
  }
  ///@}
  std::string may_still(const Operation& o, const char* what) const {
    return fmt::format("this {} may still be {} those bytes", noun(o), what);
  }

  /// The end of a message about an unfinished operation.
  std::string not_covered(const Operation& o, bool reading_only) {
    return std::string_view(unfinished_id(o, reading_only, "")) == "group-not-awaited"
               ? ": the wait for groups between them does not cover that copy"
               : kUnordered;
  }

  // --- findings ---
  /// Records a finding once for each (id, later instruction, earlier instruction); `fill` writes message, hint and
  /// related places.
  template <class F>
  void find(const char* id, Severity severity, const Inst* later, const Inst* earlier, F&& fill,
            PartyOf later_party = {}, PartyOf earlier_party = {}) {
    const auto known = known_findings.try_emplace({id, later, earlier}, severity);
    Severity& before = known.first->second;
    const bool is_new = known.second;
    if (!is_new && before <= severity) return;
    Finding f;
    f.diagnostic.id = id;
    f.diagnostic.severity = severity;
    f.diagnostic.place = place(later);
    if (!is_new) {  // of the deliveries of one multicast the first may break a rule in the milder form
      std::erase_if(findings, [&](const Finding& x) {
        return x.diagnostic.id == id && x.diagnostic.severity == before && x.diagnostic.place == f.diagnostic.place;
      });
      before = severity;
    }
    fill(f.diagnostic);
    f.later = later_party;
    f.earlier = earlier_party;
    f.later_waits = waits_of(later_party);
    f.earlier_waits = waits_of(earlier_party);
    findings.push_back(std::move(f));
  }
  std::vector<WaitRecord> waits_of(const PartyOf& p) {
    std::vector<WaitRecord> list;
    uint32_t key = p.key;
    LaneMask mask = p.mask;
    if (p.party == Party::None) return list;
    if (p.party == Party::Async) {
      const Operation& o = operations[p.n];
      key = o.key;
      mask = LaneMask{1} << o.info.lane;
    }
    const uint32_t cta = key / warps_per_cta;
    if (cta >= cta_of_key.size() || cta_of_key[cta] == nullptr) return list;
    // For each barrier the last answer before the access.
    const uint32_t n = p.party == Party::Async ? operations[p.n].n : p.n;
    for (const WaitRecord& r : of(*cta_of_key[cta]).warps[key % warps_per_cta]->waits) {
      if ((r.mask & mask) == 0 || r.n >= n) continue;  // an answer ends its step
      const auto older =
          std::find_if(list.begin(), list.end(), [&](const WaitRecord& o) { return o.barrier == r.barrier; });
      if (older != list.end()) {
        *older = r;
      } else {
        list.push_back(r);
      }
    }
    return list;
  }

  // --- accesses ---
  /// Lanes of one group making one access.
  struct Accessor {
    uint32_t key, n;
    const Inst* inst;
    const Knowledge* k;
    Scope strong;
    uint32_t cta;
    Region region;
    uint32_t bytes;  ///< a lane
    const char* verb;
    const Access* access;
    PartyOf party(LaneMask lanes) const { return {Party::Thread, key, n, lanes, verb[0] == 'r'}; }
    /// Does a store of one value to one place stand for what each of these lanes does?
    bool as_one(LaneMask lanes) const {
      if ((lanes & ~access->mask) != 0) return false;
      const uint64_t place = access->address[__builtin_ctz(lanes)];
      bool same = true;
      for_lanes(lanes, [&](int l) { same = same && access->address[l] == place; });
      return same && machine::stores_alike(*access, lanes);
    }
  };
  /// Those of `lanes` whose step `n` is not known.
  static LaneMask not_known(const ClockPtr& c, uint32_t key, LaneMask lanes, uint32_t n) {
    LaneMask late = 0;
    for_lanes(lanes, [&](int l) {
      if (!knows(c, key, l, n)) late |= LaneMask{1} << l;
    });
    return late;
  }
  /// Is what the lanes of another block did at step `n` ordered before, but for scopes that are too narrow?
  bool narrow_only(uint32_t cta, const Knowledge& k, uint32_t key, LaneMask lanes, uint32_t n) const {
    bool all = key / warps_per_cta != cta;
    for_lanes(lanes, [&](int l) { all = all && knows(k.wide, key, l, n); });
    return all;
  }
  /// Two strong accesses whose scopes cover each other's threads do not race.
  bool morally_strong(const Accessor& a, Scope other, uint32_t other_key) const {
    if (a.strong == Scope::None || other == Scope::None) return false;
    return std::min(reach_of(a.strong), reach_of(other)) >= distance(a.cta, other_key / warps_per_cta);
  }
  static bool knows_all(const ClockPtr& c, uint32_t key, uint32_t n) { return c && c->all_lanes(key, n); }
  /// Drops `words` from a record list.
  template <class R>
  static void drop(Records<R>& list, uint32_t words) {
    if (list.empty()) return;
    for (R& r : list) r.words &= ~words;
    list.erase_if([](const R& r) { return r.words == 0; });
  }

  const char* region_fence(Region r) const {
    return r == Region::Global ? "fence.proxy.async.global" : "fence.proxy.async.shared::cta";
  }

  uint32_t used_up(const Plane& plane, const ClockPtr& known_to) const;
  void thread_reads(Plane& plane, const RowPiece& piece, const Accessor& a);
  /// Compares a write with what came before.
  void thread_writes(Plane& plane, const RowPiece& piece, const Accessor& a);
  /// Records it in the place of what it covers, and compares its lanes with each other.
  void remember_write(Plane& plane, const RowPiece& piece, const Accessor& a);
  void async_reads(Plane& plane, const RowPiece& piece, const Operation& o, const Knowledge& k, uint32_t index,
                   Region region);
  void async_writes(Plane& plane, const RowPiece& piece, const Operation& o, const Knowledge& k, uint32_t index,
                    Region region, bool reduction);
  void race_with_write(const WriteRecord& w, const RowPiece& piece, const Accessor& a);
  void report_thread_race(const Accessor& a, LaneMask lanes, uint32_t key, LaneMask other_lanes, uint32_t n,
                          const Inst* other, const char* other_verb, uint64_t address);
  void report_lanes_meet(const Accessor& a, LaneMask lanes, uint64_t address);
  void meets_thread_write(const WriteRecord& w, uint32_t words, uint64_t row, const Operation& o, const Knowledge& k,
                          uint32_t index, Region region, const char* verb, const char* other_verb);
  void fence_missing(const Operation& o, const Knowledge& k, const WriteRecord& w, uint32_t words, uint64_t row,
                     uint32_t index, Region region, const char* verb);
  std::string barrier_hint(const Operation& o) const;
  /// Where other lanes of the warp know what those of `a` should: how it would reach these. `sees(clock)` tells
  /// whether somebody knows; `otherwise` is the hint where nobody does.
  template <class F>
  std::string pass_on_hint(const Accessor& a, F&& sees, std::string otherwise) {
    for (const LaneGroup& g : of(*a.access->warp).groups) {
      if (!sees(g.now.order)) continue;
      return fmt::format(
          "What {} can rely on does not reach the other lanes of the warp: __syncwarp(), or a barrier of the block, "
          "would "
          "pass it on. Shuffles and votes order nothing.",
          who(a.key, g.mask));
    }
    return otherwise;
  }

  /// What would order an access behind an operation that is not known complete.
  std::string wait_hint(const Accessor& a, const Operation& o) {
    if (complete(o, a.k->any, false)) return barrier_hint(o);  // there is a wait, and it is relaxed
    return pass_on_hint(
        a, [&](const ClockPtr& c) { return complete(o, c, false); }, barrier_hint(o));
  }

  /// Lanes of one group, or the thread of an MMA, at tensor memory.
  struct TensorAccessor {
    machine::TensorEvent::Kind kind;
    const Inst* inst;
    uint32_t key, n;
    LaneMask mask;
    bool writes;
    uint64_t shape;       ///< of an MMA
    uint32_t operation;   ///< of an MMA
    uint16_t begin, end;  ///< columns
    const LaneGroup* group;
  };
  void map_read(const AsyncOpInfo& info, const Operation& o, uint32_t index, const Knowledge& k, CtaState& cta);
  void remember_map_read(const Operation& o, uint32_t index);
  /// Is what record `r` says read by an operation as its tensor map?
  bool reads_map(const ReadRecord& r, uint64_t row) const {
    const uint64_t map = operations[r.n].info.tensor_map;
    const uint64_t address = row + 4 * static_cast<uint64_t>(__builtin_ctz(r.words));
    return map != 0 && map <= address && address < map + kTensorMapBytes;
  }
  bool read_over(const ReadRecord& r, uint64_t row, const ClockPtr& c) const;
  void init_fenced(const Cta& owner, uint32_t offset, const BarrierState& b, const Knowledge& k, const Inst* inst,
                   const std::string& user);
  void signals(const Cta& owner, uint32_t offset, const BarrierState& b, const WarpState& w, int lane,
               const Knowledge& k, const Inst* inst, bool copy, const char* does);
  void commit_arrives(CtaState& cta, BarrierState& b, const MbarrierEvent& e);
  static void overtake(BarrierState& b, const MbarrierEvent& e);
  void report_overtaken(Cta& cta);
  void mma_reads(const AsyncOpInfo& info, const Cta& owner, uint32_t index, const Knowledge& k);
  void unwritten_operand(const AsyncOpInfo& info, const Cta& owner, const machine::MatrixRead& matrix,
                         const std::vector<uint32_t>& unwritten);
  const Inst* used_before_wait(const Inst& load) const;
  CtaState& issuing_cta(const Operation& o, CtaState& other);
  /// A warp does its tcgen05 operations as one: some of these lanes' step `n` is known.
  static bool warp_knows(const ClockPtr& c, uint32_t key, LaneMask mask, uint32_t n) {
    bool some = false;
    for_lanes(mask, [&](int l) { some = some || knows(c, key, l, n); });
    return some;
  }
  void tensor_meets(CtaState& cta, const TensorRecord& a, const TensorAccessor& b);
  void tensor_access(CtaState& cta, WarpState& w, const machine::TensorEvent& e);
  void unwritten_columns(const Inst* inst, const std::string& reader, const TensorColumns& c);
  static void split_columns(std::vector<TensorColumns>& list, uint16_t begin, uint16_t end);

  /// An arrival after a wait on the same barrier that was not what the thread needs.
  void suspect_waits(WarpState& w, uint64_t barrier, const MbarrierEvent& e);
  void explain_deadlock();
  /// Who could bring the arrivals that a barrier misses: nobody; nobody, as some are held in a barrier; somebody.
  enum class Arrivers : uint8_t { None, Held, Possible };
  Arrivers find_arrivers(const machine::WaitTarget& t, const async::Mbarrier& b, machine::Reachability& reach);
  std::string sibling_hint(const machine::WaitTarget& t, const async::Mbarrier& b);
  std::string first_wait_hint(const machine::Fragment& f, const machine::WaitTarget& t, const async::Mbarrier& b,
                              machine::Reachability& reach);
  void blame_missing_commit();
  void print_cycle();
  void check_bytes_at_exit(Cta& cta);
  Finding wait_at_fault(const Inst* wait, bool stale, uint64_t phase, const SourcePlace& next,
                        const std::string& what_follows) const;
  void add_causes(bool deadlock);
  void drop_consequences();
};

// --- the rules: threads ---

std::string Checker::State::barrier_hint(const Operation& o) const {
  if (by_tensor_core(o.info)) {
    return fmt::format("A tcgen05.commit behind the {}, by its thread, and a wait on that barrier would order them.",
                       noun(o));
  }
  if (o.info.mbarrier_owner == nullptr && o.info.kind == AsyncOpInfo::Kind::CpAsync)
    return "cp.async.wait_group (__pipeline_wait_prior) by the issuing thread, then a barrier, would order them.";
  if (o.info.mbarrier_owner == nullptr)
    return "cp.async.bulk.wait_group by the issuing thread, then a barrier, would order them.";
  return fmt::format("A wait on `{}` for the phase that counts these bytes would order them.",
                     async::barrier_name(program(), o.info.mbarrier));
}

void Checker::State::report_thread_race(const Accessor& a, LaneMask lanes, uint32_t key, LaneMask other_lanes,
                                        uint32_t n, const Inst* other, const char* other_verb, uint64_t address) {
  bool order_exists = true;
  for_lanes(other_lanes, [&](int l) { order_exists = order_exists && knows(a.k->any, key, l, n); });
  const bool wide_enough = narrow_only(a.cta, *a.k, key, other_lanes, n);
  find(wide_enough ? "scope-too-narrow" : "data-race", Severity::Error, a.inst, other,
       [&](Diagnostic& d) {
         d.message = fmt::format("{} {} {} ({}); {} {} it at {}, and {}", who(a.key, lanes), does(lanes, a.verb),
                                 bytes_name(a.region, address, a.bytes), at(place(a.inst)), who(key, other_lanes),
                                 does(other_lanes, other_verb), at(place(other)),
                                 !order_exists ? "nothing orders the two"
                                 : wide_enough ? "they are ordered only at a scope that leaves out the other block"
                                               : "the signal between them is relaxed, which orders nothing");
         const auto sees = [&](const ClockPtr& c) { return not_known(c, key, other_lanes, n) == 0; };
         d.hint =
             order_exists && key / warps_per_cta == a.cta
                 ? "Release semantics of the one's signal and acquire semantics of the other's wait are needed, or a "
                   "fence on that side; within a block the scope .cta is enough."
             : order_exists ? kScopeHint
             : key == a.key ? "__syncwarp() between the two would order them. Shuffles and votes order nothing."
                            : pass_on_hint(a, sees,
                                           "An arrive after the one, by its own thread, and a wait before the other, "
                                           "by its own thread, would order them; so would a barrier between them.");
         d.related = {
             {place(other), fmt::format("{} {} it here", who(key, other_lanes), does(other_lanes, other_verb))}};
       },
       a.party(lanes), {Party::Thread, key, n, other_lanes, other_verb[0] == 'r'});
}

/// Lanes of one instruction write to one place, and not the same value.
void Checker::State::report_lanes_meet(const Accessor& a, LaneMask lanes, uint64_t address) {
  const LaneMask last = LaneMask{1} << (31 - __builtin_clz(lanes));
  find("data-race", Severity::Error, a.inst, nullptr,
       [&](Diagnostic& d) {
         d.message = fmt::format("{} write {} with one instruction ({}){}: whose bytes stay is undefined",
                                 who(a.key, lanes), bytes_name(a.region, address, a.bytes), at(place(a.inst)),
                                 a.access->stored != nullptr ? ", and not the same value" : "");
         d.hint = "Let one lane write, or give each lane a place of its own.";
       },
       a.party(lanes & ~last), {Party::Thread, a.key, a.n, last, false});
}

/// A thread's access of words whose last write is `w`, by another thread.
void Checker::State::race_with_write(const WriteRecord& w, const RowPiece& piece, const Accessor& a) {
  const uint32_t common = w.words & piece.words;
  if (common == 0 || (w.key == a.key && w.order == piece.order && w.order != kMixed))
    return;  // each lane its own word again
  if (knows_all(a.k->order, w.key, w.n) || morally_strong(a, w.strong, w.key)) return;
  const bool reads = a.verb[0] == 'r';
  // A word without any order says more than one with a scope that is too narrow.
  uint32_t found = 32;
  LaneMask accessing = 0, unordered = 0;
  for (uint32_t rest = common; rest != 0; rest &= rest - 1) {
    const auto word = static_cast<uint32_t>(__builtin_ctz(rest));
    const LaneMask writers = w.writers(word);
    LaneMask lanes = piece.lanes_of(word), before = writers;
    if (w.key == a.key) {
      // Who reads what it wrote itself reads that value, even if others wrote the same. Its own write comes before.
      if (reads) lanes &= ~writers;
      if ((lanes & (lanes - 1)) == 0) before &= ~lanes;
    }
    if (lanes == 0) continue;
    const LaneMask late = not_known(a.k->order, w.key, before, w.n);
    if (late == 0) continue;
    // The lanes of one instruction, in a loop perhaps: whichever comes last, the same value stays.
    if (w.key == a.key && w.inst == a.inst && a.as_one(lanes | writers)) continue;
    const bool narrow = narrow_only(a.cta, *a.k, w.key, late, w.n);
    if (found < 32 && narrow) continue;
    found = word;
    accessing = lanes;
    unordered = late;
    if (!narrow) break;
  }
  if (found < 32) report_thread_race(a, accessing, w.key, unordered, w.n, w.inst, "writes", piece.row + 4 * found);
}

void Checker::State::thread_reads(Plane& plane, const RowPiece& piece, const Accessor& a) {
  for (const WriteRecord& w : plane.writes) {
    const uint32_t common = w.words & piece.words;
    if (common == 0) continue;
    if (w.party == Party::Thread) {
      race_with_write(w, piece, a);
      continue;
    }
    const Operation& o = operations[w.n];
    if (complete(o, a.k->order, false)) continue;
    const auto word = static_cast<uint32_t>(__builtin_ctz(common));
    find(unfinished_id(o, false, "async-read-before-complete"), Severity::Error, a.inst, o.info.inst,
         [&](Diagnostic& d) {
           d.message =
               fmt::format("{} reads {} ({}) while {} may still be writing it: {}", who(a.key, piece.lanes_of(word)),
                           bytes_name(a.region, piece.row + 4 * word, a.bytes), at(place(a.inst)), issued(o),
                           complete(o, a.k->any, false) ? "the wait between them is relaxed, which orders nothing"
                                                        : not_covered(o, false).substr(2));
           d.hint = wait_hint(a, o);
           d.related = {{place(o.info.inst), may_still(o, "writing")}};
         },
         a.party(piece.lanes_of(word)), {Party::Async, o.key, w.n, 0});
  }
  // The usual case in a loop: the same lanes read the same words again, later.
  for (ReadRecord& r : plane.reads) {
    if (r.key == a.key && r.party == Party::Thread && r.words == piece.words && r.strong == a.strong &&
        r.lanes.same(piece.lanes, piece.order)) {
      r.inst = a.inst;
      r.n = a.n;
      return;
    }
  }
  // Reads that come before this one for certain need not be remembered: whoever is ordered after this read is ordered
  // after them.
  ReadRecord* same = nullptr;
  for (ReadRecord& r : plane.reads) {
    if ((r.words & piece.words) == 0 && !(r.inst == a.inst && r.key == a.key && r.n == a.n)) continue;
    if (r.party == Party::Thread && r.key == a.key && r.n == a.n && r.inst == a.inst) {
      same = &r;
    } else if (r.party == Party::Thread && r.strong == a.strong) {
      // (Of strong reads only where the newer one is strong to the same threads.)
      const bool same_reach =
          r.strong == Scope::None || reach_of(r.strong) != kSameBlock || r.key / warps_per_cta == a.cta;
      if (same_reach && knows_all(a.k->order, r.key, r.n)) {
        r.words &= ~piece.words;
      } else if (r.key == a.key) {
        for (uint32_t rest = r.words & piece.words; rest != 0; rest &= rest - 1) {
          const auto word = static_cast<uint32_t>(__builtin_ctz(rest));
          // Each lane's newer read stands for its older one.
          const LaneMask left = r.lanes[word] & ~piece.lanes_of(word);
          if (left == 0) {
            r.words &= ~(1u << word);
          } else if (left != r.lanes[word]) {
            r.lanes.set(word, left);
          }
        }
      }
    }
  }
  if (same != nullptr) {
    const uint32_t had = same->words;
    same->words |= piece.words;
    // Of words that it did not have, a record may hold anything.
    for (uint32_t rest = piece.words; rest != 0; rest &= rest - 1) {
      const auto word = static_cast<uint32_t>(__builtin_ctz(rest));
      const LaneMask before = (had >> word & 1) != 0 ? same->lanes[word] : 0;
      if (const LaneMask all = before | piece.lanes_of(word); all != same->lanes[word]) same->lanes.set(word, all);
    }
  }
  plane.reads.erase_if([](const ReadRecord& r) { return r.words == 0; });
  if (same == nullptr)
    plane.reads.push_back(
        {a.inst, a.key, a.n, piece.words, Party::Thread, a.strong, WordLanes(piece.lanes, piece.order)});
}

/// Words of a row that an MMA has read which is known to be over: it came after their last write, so whoever knows it
/// over comes after that write, too.
uint32_t Checker::State::used_up(const Plane& plane, const ClockPtr& known_to) const {
  uint32_t words = 0;
  for (const ReadRecord& r : plane.reads) {
    if (r.party == Party::Async && by_tensor_core(operations[r.n].info) && complete(operations[r.n], known_to, true))
      words |= r.words;
  }
  return words;
}

void Checker::State::thread_writes(Plane& plane, const RowPiece& piece, const Accessor& a) {
  const uint32_t passed = used_up(plane, a.k->order);
  RowPiece rest_of_piece;
  if (passed != 0) {
    rest_of_piece = piece;
    rest_of_piece.words &= ~passed;
  }
  const RowPiece& unpassed = passed != 0 ? rest_of_piece : piece;
  for (const WriteRecord& w : plane.writes) {
    const uint32_t common = w.words & unpassed.words;
    if (common == 0) continue;
    if (w.party == Party::Thread) {
      race_with_write(w, unpassed, a);
      continue;
    }
    const Operation& o = operations[w.n];
    if (complete(o, a.k->order, false)) continue;
    auto word = static_cast<uint32_t>(__builtin_ctz(common));
    // Of its issuer and others, one of the others: they know less.
    const auto own = [&](uint32_t x) { return a.key == o.key && piece.lanes_of(x) == LaneMask{1} << o.info.lane; };
    for (uint32_t rest = common; rest != 0 && own(word); rest &= rest - 1)
      word = static_cast<uint32_t>(__builtin_ctz(rest));
    const char* id = overwriting_id(o, a.k->order, own(word));
    find(id, Severity::Error, a.inst, o.info.inst,
         [&](Diagnostic& d) {
           d.message = fmt::format("{} {} {} ({}) while {} may still be writing it{}", who(a.key, piece.lanes_of(word)),
                                   a.verb, bytes_name(a.region, piece.row + 4 * word, a.bytes), at(place(a.inst)),
                                   issued(o), std::string_view(id) == "data-race" ? kUnordered : not_covered(o, false));
           d.hint = wait_hint(a, o);
           d.related = {{place(o.info.inst), may_still(o, "writing")}};
         },
         a.party(piece.lanes_of(word)), {Party::Async, o.key, w.n, 0});
  }
  for (const ReadRecord& r : plane.reads) {
    const uint32_t common = r.words & piece.words;
    if (common == 0) continue;
    if (r.party == Party::Async) {
      const Operation& o = operations[r.n];
      if (read_over(r, piece.row, a.k->order)) continue;
      const bool map = reads_map(r, piece.row);
      // tensormap.cp_fenceproxy.sync.aligned writes one map for its warp, when all of its lanes are there (§9.7.13.16).
      const std::vector<LaneGroup>& groups = of(*a.access->warp).groups;
      if (map && a.inst->sync == machine::kSyncAligned &&
          std::any_of(groups.begin(), groups.end(),
                      [&](const LaneGroup& g) { return read_over(r, piece.row, g.now.order); }))
        continue;
      const auto word = static_cast<uint32_t>(__builtin_ctz(common));
      find(unfinished_id(o, true, "source-overwritten"), Severity::Error, a.inst, o.info.inst,
           [&](Diagnostic& d) {
             d.message =
                 fmt::format("{} {} {} ({}) while {} may still be reading {}{}", who(a.key, piece.lanes_of(word)),
                             a.verb, bytes_name(a.region, piece.row + 4 * word, a.bytes), at(place(a.inst)), issued(o),
                             map ? "the tensor map there" : "it",
                             complete(o, a.k->any, true) ? ": the signal between them is relaxed, which orders nothing"
                                                         : not_covered(o, true));
             d.hint =
                 o.info.mbarrier_owner == nullptr && !by_tensor_core(o.info) &&
                         o.info.kind != AsyncOpInfo::Kind::CpAsync
                     ? "cp.async.bulk.wait_group.read by the thread that issued it, then a barrier, would order them."
                     : barrier_hint(o);
             d.related = {
                 {place(o.info.inst), map ? "this copy may still be reading its tensor map" : may_still(o, "reading")}};
           },
           a.party(piece.lanes_of(word)), {Party::Async, o.key, r.n, 0});
      continue;
    }
    if (r.key == a.key && r.lanes.order() == piece.order && piece.order != kMixed) continue;  // each lane its own word
    if (knows_all(a.k->order, r.key, r.n) || morally_strong(a, r.strong, r.key)) continue;
    uint32_t found = 32;
    LaneMask readers = 0;
    for (uint32_t rest = common; rest != 0; rest &= rest - 1) {
      const auto word = static_cast<uint32_t>(__builtin_ctz(rest));
      const LaneMask writers = piece.lanes_of(word);
      if (r.key == a.key && r.lanes[word] == writers && (writers & (writers - 1)) == 0) continue;  // its own read
      LaneMask unordered = not_known(a.k->order, r.key, r.lanes[word], r.n);
      // A lane's own earlier read is ordered before its write; with several writers of one word some other lane did not
      // read it.
      if (r.key == a.key && __builtin_popcount(writers) == 1) unordered &= ~writers;
      if (unordered == 0) continue;
      const bool narrow = narrow_only(a.cta, *a.k, r.key, unordered, r.n);
      if (found < 32 && narrow) continue;
      found = word;
      readers = unordered;
      if (!narrow) break;
    }
    if (found < 32)
      report_thread_race(a, piece.lanes_of(found), r.key, readers, r.n, r.inst, "reads", piece.row + 4 * found);
  }
}

void Checker::State::remember_write(Plane& plane, const RowPiece& piece, const Accessor& a) {
  drop(plane.reads, piece.words);
  const bool alone = plane.writes.size() == 1 && plane.writes[0].words == piece.words;
  if (!alone) drop(plane.writes, piece.words);
  WriteRecord& record = alone ? plane.writes[0] : plane.writes.push_back({});
  record.inst = a.inst;
  record.key = a.key;
  record.n = a.n;
  record.words = piece.words;
  record.party = Party::Thread;
  record.strong = a.strong;
  record.order = piece.order;
  record.several = LaneMasks();
  if (piece.order != kMixed) {
    for (uint32_t w = 0; w < 32; w++)
      record.lane[w] = static_cast<uint8_t>((piece.order < kDownwards ? w - piece.order : piece.order - w) % 32);
    return;
  }
  bool together = false;
  for (uint32_t rest = piece.words; rest != 0; rest &= rest - 1) {
    const auto word = static_cast<size_t>(__builtin_ctz(rest));
    const LaneMask writers = piece.lanes_of(word);
    record.lane[word] = static_cast<uint8_t>(31 - __builtin_clz(writers));
    if ((writers & (writers - 1)) == 0 || a.strong != Scope::None) continue;
    // Whichever of several lanes comes last, the same value stays if all write the same: the CUDA C++ Programming Guide
    // has one write of one instruction take place, without saying whose.
    if (a.as_one(writers)) {
      together = true;
    } else {
      report_lanes_meet(a, writers, piece.row + 4 * word);
    }
  }
  if (together) record.several = LaneMasks(*piece.lanes);
}

// --- the rules: asynchronous operations ---

/// Are the generic writes `w` of these words fenced by their writers? If not, reports it.
void Checker::State::fence_missing(const Operation& o, const Knowledge& k, const WriteRecord& w, uint32_t words,
                                   uint64_t row, uint32_t index, Region region, const char* verb) {
  const bool global = region == Region::Global;
  const ClockPtr& fenced = global ? k.fenced_global : k.fenced_shared;
  if (knows_all(fenced, w.key, w.n)) return;
  // A word without any fence on the path says more than one whose fence is in the wrong place.
  int word = -1;
  bool misplaced = false;
  LaneMask writer = 0;
  for (uint32_t rest = words; rest != 0 && (word < 0 || misplaced); rest &= rest - 1) {
    const int candidate = __builtin_ctz(rest);
    const LaneMask without = not_known(fenced, w.key, w.writers(static_cast<uint32_t>(candidate)), w.n);
    if (without == 0) continue;
    const LaneMask nowhere = not_known(global ? k.path_global : k.path_shared, w.key, without, w.n);
    if (word >= 0 && nowhere == 0) continue;
    word = candidate;
    misplaced = nowhere == 0;
    writer = misplaced ? without : nowhere;
  }
  if (word < 0) return;
  const std::string fence = global ? "fence.proxy.async.global" : "fence.proxy.async.shared::cta";
  find(misplaced ? "proxy-fence-misplaced" : "missing-proxy-fence", misplaced ? Severity::Warning : Severity::Error,
       o.info.inst, w.inst,
       [&](Diagnostic& d) {
         d.message = fmt::format(
             "{} {} {}, which {} wrote through the generic proxy at {}; {}", named(o), verb,
             bytes_name(region, row + 4 * static_cast<uint64_t>(word), 4), who(w.key, writer), at(place(w.inst)),
             misplaced ? "the proxy fence between them is executed by another thread than the one that wrote"
                       : "no proxy fence of the writer comes between");
         d.hint =
             fmt::format("{} by each writing thread, after its writes and before the barrier that leads to the {}.",
                         fence, noun(o));
         d.related = {{place(w.inst), "written here; the fence belongs after this line"}};
       },
       {Party::Async, o.key, index, 0}, {Party::Thread, w.key, w.n, writer});
}

/// An operation meets words that a thread wrote last: is the write ordered before its issue, and visible to its proxy?
void Checker::State::meets_thread_write(const WriteRecord& w, uint32_t words, uint64_t row, const Operation& o,
                                        const Knowledge& k, uint32_t index, Region region, const char* verb,
                                        const char* other_verb) {
  uint32_t unordered = 0;
  if (!knows_all(k.order, w.key, w.n)) {
    for (uint32_t rest = words; rest != 0; rest &= rest - 1) {
      const auto word = static_cast<uint32_t>(__builtin_ctz(rest));
      if (not_known(k.order, w.key, w.writers(word), w.n) != 0) unordered |= 1u << word;
    }
  }
  if (unordered != 0) {
    const auto late_at = [&](uint32_t word) { return not_known(k.order, w.key, w.writers(word), w.n); };
    const auto narrow_at = [&](uint32_t word) {
      return narrow_only(o.key / warps_per_cta, k, w.key, late_at(word), w.n);
    };
    auto word = static_cast<uint32_t>(__builtin_ctz(unordered));
    for (uint32_t rest = unordered; rest != 0 && narrow_at(word); rest &= rest - 1)
      word = static_cast<uint32_t>(__builtin_ctz(rest));
    const LaneMask writer = late_at(word);
    const bool narrow = narrow_at(word);
    find(narrow ? "scope-too-narrow" : "data-race", Severity::Error, o.info.inst, w.inst,
         [&](Diagnostic& d) {
           d.message = fmt::format(
               "{} {} {}, which {} {} at {}: {}", named(o), verb, bytes_name(region, row + 4 * word, 4),
               who(w.key, writer), other_verb, at(place(w.inst)),
               narrow ? "they are ordered only at a scope that leaves out the other block" : "nothing orders them");
           d.hint = narrow
                        ? kScopeHint
                        : fmt::format("A barrier between the write and the issue of the {} would order them.", noun(o));
           d.related = {{place(w.inst), "written here"}};
         },
         {Party::Async, o.key, index, 0}, {Party::Thread, w.key, w.n, writer});
  }
  const uint32_t ordered = words & ~unordered;
  if (!generic_proxy(o.info) && ordered != 0) fence_missing(o, k, w, ordered, row, index, region, verb);
}

void Checker::State::async_reads(Plane& plane, const RowPiece& piece, const Operation& o, const Knowledge& k,
                                 uint32_t index, Region region) {
  const PartyOf me{Party::Async, o.key, index, 0};
  for (const WriteRecord& w : plane.writes) {
    const uint32_t common = w.words & piece.words;
    if (common == 0) continue;
    if (w.party == Party::Thread) {
      meets_thread_write(w, common, piece.row, o, k, index, region, "reads", "writes");
    } else if (w.n != index && !complete(operations[w.n], k.order, false)) {
      const Operation& p = operations[w.n];
      find(unfinished_id(p, false, "async-read-before-complete"), Severity::Error, o.info.inst, p.info.inst,
           [&](Diagnostic& d) {
             d.message =
                 fmt::format("{} reads {} while {} may still be writing it{}", named(o),
                             bytes_name(region, piece.row + 4 * static_cast<uint64_t>(__builtin_ctz(common)), 4),
                             issued(p), complete(p, k.any, false) ? std::string(kRelaxed) : not_covered(p, false));
             d.hint = barrier_hint(p);
             d.related = {{place(p.info.inst), may_still(p, "writing")}};
           },
           me, {Party::Async, p.key, w.n, 0});
    }
  }
  ReadRecord* record = nullptr;
  for (ReadRecord& r : plane.reads) {
    if (r.party != Party::Async || !(same_mma_thread(operations[r.n], o) || complete(operations[r.n], k.order, true)))
      continue;
    if (record == nullptr && r.words == piece.words) {
      record = &r;
    } else {
      r.words &= ~piece.words;  // over before this one begins
    }
  }
  if (record != nullptr) {  // an operation in a loop: in place
    record->inst = o.info.inst;
    record->key = o.key;
    record->n = index;
  }
  plane.reads.erase_if([](const ReadRecord& r) { return r.words == 0; });
  if (record == nullptr) plane.reads.push_back({o.info.inst, o.key, index, piece.words, Party::Async, Scope::None, {}});
}

void Checker::State::async_writes(Plane& plane, const RowPiece& piece, const Operation& o, const Knowledge& k,
                                  uint32_t index, Region region, bool reduction) {
  const PartyOf me{Party::Async, o.key, index, 0};
  const uint32_t passed = used_up(plane, k.order);
  for (const WriteRecord& w : plane.writes) {
    const uint32_t common = w.words & piece.words & ~passed;
    if (common == 0) continue;
    if (w.party == Party::Thread) {
      meets_thread_write(w, common, piece.row, o, k, index, region, "overwrites", "writes too");
      continue;
    }
    if (w.n == index || complete(operations[w.n], k.order, false)) continue;
    const Operation& p = operations[w.n];
    const bool both_reduce = reduction && reduces(p.info);
    const bool same_instruction = p.info.inst == o.info.inst && p.key == o.key && p.n == o.n;
    const uint64_t address = piece.row + 4 * static_cast<uint64_t>(__builtin_ctz(common));
    if (both_reduce) continue;
    if (same_instruction) {
      find("many-lanes-issue", Severity::Error, o.info.inst, nullptr, [&](Diagnostic& d) {
        d.message = fmt::format(
            "{}, and perhaps more lanes, issue this copy to the same bytes, from {} on; one thread issues it",
            who(o.key, (LaneMask{1} << o.info.lane) | (LaneMask{1} << p.info.lane)), bytes_name(region, address, 4));
        d.hint = "Elect one lane: elect.sync, or threadIdx.x == 0.";
      });
    } else {
      const char* id = overwriting_id(p, k.order, false);
      find(id, Severity::Error, o.info.inst, p.info.inst,
           [&](Diagnostic& d) {
             d.message = fmt::format("{} writes {} while {} may still be writing it{}", named(o),
                                     bytes_name(region, address, 4), issued(p),
                                     std::string_view(id) == "data-race" ? kUnordered : not_covered(p, false));
             d.hint = barrier_hint(p);
             d.related = {{place(p.info.inst), may_still(p, "writing")}};
           },
           me, {Party::Async, p.key, w.n, 0});
    }
  }
  for (const ReadRecord& r : plane.reads) {
    const uint32_t common = r.words & piece.words;
    if (common == 0) continue;
    const uint64_t address = piece.row + 4 * static_cast<uint64_t>(__builtin_ctz(common));
    if (r.party == Party::Async) {
      if (r.n == index || read_over(r, piece.row, k.order)) continue;
      const Operation& p = operations[r.n];
      const bool mma = by_tensor_core(p.info);
      find(unfinished_id(p, true, "refill-before-release"), Severity::Error, o.info.inst, p.info.inst,
           [&](Diagnostic& d) {
             d.message = fmt::format("{} overwrites {} while {} may still be reading it{}", named(o),
                                     bytes_name(region, address, 4), issued(p),
                                     complete(p, k.any, true) ? std::string(kRelaxed) : not_covered(p, true));
             d.hint = mma ? barrier_hint(p)
                          : "Wait for the first copy (wait_group.read, or its mbarrier) before the second is issued.";
             d.related = {{place(p.info.inst), may_still(p, "reading")}};
           },
           me, {Party::Async, p.key, r.n, 0});
      continue;
    }
    if (knows_all(k.order, r.key, r.n)) continue;
    uint32_t word = 32;
    LaneMask readers = 0;
    bool narrow = false;
    for (uint32_t rest = common; rest != 0; rest &= rest - 1) {
      const auto candidate = static_cast<uint32_t>(__builtin_ctz(rest));
      LaneMask unordered = 0;
      for_lanes(r.lanes[candidate], [&](int l) {
        if (!knows(k.order, r.key, l, r.n)) unordered |= LaneMask{1} << l;
      });
      if (unordered == 0) continue;
      const bool seen = narrow_only(o.key / warps_per_cta, k, r.key, unordered, r.n);
      if (word < 32 && seen) continue;
      word = candidate;
      readers = unordered;
      narrow = seen;
      if (!seen) break;
    }
    if (word == 32) continue;
    find(narrow ? "scope-too-narrow" : "refill-before-release", narrow ? Severity::Warning : Severity::Error,
         o.info.inst, r.inst,
         [&](Diagnostic& d) {
           d.message =
               fmt::format("{} overwrites {}, which {} may still be reading at {}: {}", named(o),
                           bytes_name(region, piece.row + 4 * word, 4), who(r.key, readers), at(place(r.inst)),
                           narrow ? "the signal between them has a scope that leaves out the other block, which public "
                                    "rings get away "
                                    "with"
                                  : "nothing orders them");
           d.hint = narrow
                        ? kScopeHint
                        : "The readers arrive on an `empty` barrier after their last read; the producer waits for it "
                          "before it refills.";
           d.related = {{place(r.inst), "read here"}};
         },
         me, {Party::Thread, r.key, r.n, readers});
  }
  drop(plane.reads, piece.words);
  const bool alone = plane.writes.size() == 1 && plane.writes[0].words == piece.words;
  if (!alone) drop(plane.writes, piece.words);
  WriteRecord& record = alone ? plane.writes[0] : plane.writes.push_back({});
  record.inst = o.info.inst;
  record.key = o.key;
  record.n = index;
  record.words = piece.words;
  record.party = Party::Async;
  record.strong = Scope::None;
  record.order = kMixed;
  record.several = LaneMasks();
}

// --- events ---

Checker::Checker() : s_(std::make_unique<State>()) {}
Checker::~Checker() = default;

void Checker::launch_begin(Launch& launch) {
  s_ = std::make_unique<State>();
  s_->launch = &launch;
  s_->clusters_exist = launch.config.cluster.volume() > 1;
  s_->warps_per_cta = static_cast<uint32_t>((launch.config.block.volume() + 31) / 32);
}

void Checker::cta_begin(Cta& cta) {
  State& s = *s_;
  auto c = std::make_unique<CtaState>(&s.shadow_bytes);
  c->cta = &cta;
  c->base = cta.linear * s.warps_per_cta;
  for (Warp& w : cta.warps) {
    auto ws = std::make_unique<WarpState>();
    ws->key = c->base + w.index;
    ws->warp = &w;
    ws->groups.emplace_back().mask = kFullMask;
    c->warps.push_back(std::move(ws));
  }
  // A finished block's storage, used again.
  if (cta.rank == 0) s.clusters.erase(cta.domain);
  if (const auto old = s.ctas.find(&cta); old != s.ctas.end())
    s.cta_of_key[old->second->base / s.warps_per_cta] = nullptr;
  if (s.cta_of_key.size() <= cta.linear) s.cta_of_key.resize(cta.linear + 1, nullptr);
  s.cta_of_key[cta.linear] = &cta;
  s.ctas[&cta] = std::move(c);
  s.last_cta = nullptr;
}

void Checker::cta_end(Cta& cta) {
  State& s = *s_;
  s.check_bytes_at_exit(cta);
  s.check_remote_uses(cta);
  s.report_overtaken(cta);
  s.of(cta).shared.clear();
  for (auto& [offset, b] : s.of(cta).barriers) s.arrivals[b.key] = std::move(b.arrivals);
  std::erase_if(s.shared_locations, [&](const auto& l) { return l.first.first == &cta; });
}

namespace {

/// Calls f(piece) for each row that the lanes of `mask` touch.
template <class F>
void each_piece(const Access& a, LaneMask mask, F&& f) {
  if (a.bytes == 4 && mask == kFullMask) {  // 128 bytes, lane after lane: a whole row, or the ends of two
    const uint64_t step = a.address[1] - a.address[0];
    uint64_t off = 0;
    for (uint64_t l = 0; l < 32; l++) off |= a.address[l] ^ (a.address[0] + step * l);
    const bool up = step == 4, down = step == ~uint64_t{3};
    if (off == 0 && (up || down)) {
      const uint64_t lowest = a.address[up ? 0 : 31], row = lowest & ~(Shadow::kRowBytes - 1);
      const auto at = static_cast<uint32_t>(a.address[0] / 4 % 32), first = static_cast<uint32_t>(lowest / 4 % 32);
      const auto order = static_cast<LaneOrder>(up ? at : kDownwards + at);
      f(RowPiece{row, ~0u << first, 0xf, nullptr, order});
      if (first != 0) f(RowPiece{row + Shadow::kRowBytes, (1u << first) - 1, 0xf, nullptr, order});
      return;
    }
  }
  // An access of a lane is aligned to its size, so it never crosses a row, nor a word if it is smaller than one. Lanes
  // make up a piece where they are in one row and, of parts of words, where they touch the same bytes of each.
  const uint64_t part = a.bytes < 4 ? 3 : 0;  // the bits of an address that tell which bytes of a word
  const uint64_t place_bits = ~(Shadow::kRowBytes - 1) | part;
  std::array<uint64_t, 32> places;
  std::array<LaneMask, 32> lanes_at;
  size_t count = 0, at = 0;
  for_lanes(mask, [&](int l) {
    const uint64_t place = a.address[l] & place_bits;
    // Neighbours are mostly in one row, or go through the same rows again: the search goes round from the last one.
    size_t tried = 0;
    for (; tried < count && places[at] != place; tried++) at = at + 1 < count ? at + 1 : 0;
    if (tried == count) {
      at = count++;
      places[at] = place;
      lanes_at[at] = 0;
    }
    lanes_at[at] |= LaneMask{1} << l;
  });
  const uint32_t words = std::max(a.bytes / 4, 1u);  // of a lane
  const uint32_t lane_words = (words == 32 ? ~0u : (1u << words) - 1);
  WordLanes::Each lanes = {};
  RowPiece piece;
  piece.lanes = &lanes;
  piece.order = kMixed;
  for (size_t p = 0; p < count; p++) {
    piece.row = places[p] & ~(Shadow::kRowBytes - 1);
    piece.words = 0;
    if (part != 0) piece.bytes = static_cast<uint8_t>(((1u << a.bytes) - 1) << (places[p] & part));
    for_lanes(lanes_at[p], [&](int l) {
      const auto first = static_cast<uint32_t>(a.address[l] / 4 % 32);
      piece.words |= lane_words << first;
      for (uint32_t k = 0; k < words; k++) lanes[first + k] |= LaneMask{1} << l;
    });
    f(piece);
    for (uint32_t rest = piece.words; rest != 0; rest &= rest - 1) lanes[static_cast<size_t>(__builtin_ctz(rest))] = 0;
  }
}

}  // namespace

void Checker::access(const Access& a) {
  State& s = *s_;
  if (a.region == Region::Local) return;
  WarpState& w = s.of(*a.warp);
  Shadow& shadow = a.region == Region::Global ? s.global : s.of(*a.owner).shared;
  const bool is_strong = strong(a.sem);
  const Scope scope = !is_strong                                         ? Scope::None
                      : a.sem == Sem::Volatile || a.scope == Scope::None ? Scope::Sys
                                                                         : a.scope;
  const bool reads = a.kind == Access::Kind::Read,
             atomic = a.kind == Access::Kind::Atomic || a.kind == Access::Kind::Reduction;
  const char* verb = reads ? "reads" : atomic ? "updates" : "writes";
  if (a.region == Region::Shared)
    s.used_from_outside(*a.owner, w, a.mask, a.inst, verb, static_cast<uint32_t>(a.address[__builtin_ctz(a.mask)]),
                        false);
  const auto accessor = [&](const LaneGroup& g) {
    return State::Accessor{w.key, w.n, a.inst, &g.now, scope, a.warp->cta->linear, a.region, a.bytes, verb, &a};
  };
  const auto check_lanes = [&](const LaneGroup& g, LaneMask mask, bool remember) {
    const State::Accessor who = accessor(g);
    each_piece(a, mask, [&](const RowPiece& piece) {
      shadow.visit(piece, [&](Plane& plane, uint32_t) {
        if (reads) {
          s.thread_reads(plane, piece, who);
        } else {
          s.thread_writes(plane, piece, who);
          if (remember) s.remember_write(plane, piece, who);
        }
      });
    });
  };
  if (!is_strong) {
    bool several = false;
    for (const LaneGroup& g : w.groups) {
      const LaneMask mask = g.mask & a.mask;
      if (mask == 0) continue;
      several = mask != a.mask;
      check_lanes(g, mask, !several);
    }
    if (reads || !several) return;
    // What lanes of several groups wrote becomes one record, once all have been compared with what came before.
    const State::Accessor all = accessor(w.groups.front());
    each_piece(a, a.mask, [&](const RowPiece& piece) {
      shadow.visit(piece, [&](Plane& plane, uint32_t) { s.remember_write(plane, piece, all); });
    });
    return;
  }
  // A strong access is also a signal: lane by lane, since lanes may meet at one location.
  for_lanes(a.mask, [&](int l) {
    const LaneMask bit = LaneMask{1} << l;
    Location& location = a.region == Region::Global
                             ? s.global_locations[a.address[l]]
                             : s.shared_locations[{a.owner, static_cast<uint32_t>(a.address[l])}];
    const Distance reach = reach_of(scope);
    const uint32_t cta = a.warp->cta->linear;
    s.each_group(w, bit, [&](LaneGroup& g) {
      if (a.kind != Access::Kind::Write && a.kind != Access::Kind::Reduction) {
        const bool acquire = acquires(a.sem);
        State::see(g, location.wide, acquire, reach, kElsewhere);
        for (const Location::OfBlock& b : location.blocks) {
          switch (s.distance(b.cta, cta)) {
            case kSameBlock:
              State::see(g, b.block, acquire, reach, kSameBlock);
              break;
            case kSameCluster:
              State::see(g, b.cluster, acquire, reach, kSameCluster);
              State::see_from_afar(g, b.block, acquire);
              break;
            default:
              State::see_from_afar(g, b.block, acquire);
          }
        }
      }
      check_lanes(g, bit, true);
      if (reads) return;
      const bool release = releases(a.sem);
      std::array<Knowledge, kDistances> known;
      for (uint8_t d = 0; d <= reach; d++) known[d] = State::signal(w, g, bit, release, static_cast<Distance>(d));
      auto mine = std::find_if(location.releases.begin(), location.releases.end(),
                               [&](const Location::Release& r) { return r.key == w.key && r.lane == l; });
      if (!release &&
          mine != location.releases.end()) {  // §8.8: a release operation followed by a strong write of the same thread
        for (uint8_t d = 0; d <= reach; d++) known[d].join(mine->known[d]);
      }
      if (!atomic) {  // a plain store starts a new release sequence
        location.wide = {};
        location.blocks.clear();
      }
      if (release) {
        if (mine == location.releases.end()) {
          if (location.releases.size() == kReleasesKept) location.releases.erase(location.releases.begin());
          mine = location.releases.insert(location.releases.end(), {w.key, l, {}});
        }
        for (uint8_t d = 0; d <= reach; d++) mine->known[d] = known[d];
      }
      // A wide signal reaches the own block as well.
      if (reach == kElsewhere) location.wide.join(known[kElsewhere]);
      auto own = std::find_if(location.blocks.begin(), location.blocks.end(),
                              [&](const Location::OfBlock& b) { return b.cta == cta; });
      if (own == location.blocks.end()) own = location.blocks.insert(location.blocks.end(), {cta, {}, {}});
      own->block.join(known[kSameBlock]);
      if (reach >= kSameCluster) own->cluster.join(known[kSameCluster]);
    });
  });
  State::merge_groups(w);
  if (!reads) w.n++;
}

void Checker::fence(Warp& warp, const Inst&, LaneMask mask, const FenceInfo& info) {
  using Kind = FenceInfo::Kind;
  State& s = *s_;
  WarpState& w = s.of(warp);
  const bool shared = info.kind == Kind::ProxyAsync || info.kind == Kind::ProxyAsyncSharedCta ||
                      info.kind == Kind::ProxyAsyncSharedCluster || info.kind == Kind::ProxyGenericReleaseSharedCta ||
                      info.kind == Kind::ProxyGenericAcquireSharedCluster;
  const bool global = info.kind == Kind::ProxyAsync || info.kind == Kind::ProxyAsyncGlobal;
  s.each_group(w, mask, [&](LaneGroup& g) {
    if (shared) {
      g.shared_n = w.n;
      g.now.path_shared = Clock::join(g.now.path_shared, g.now.order);
    }
    if (global) {
      g.global_n = w.n;
      g.now.path_global = Clock::join(g.now.path_global, g.now.order);
    }
    // fence.proxy.async::generic with .sync_restrict releases and acquires, too (§9.7.13.4): around a relaxed
    // barrier.cluster it lets the next clusterlaunchcontrol.try_cancel overwrite what was read (§9.7.13.17).
    if (info.kind == Kind::Thread || info.kind == Kind::SyncRestrictAcquire || info.kind == Kind::SyncRestrictRelease ||
        info.kind == Kind::ProxyGenericReleaseSharedCta || info.kind == Kind::ProxyGenericAcquireSharedCluster) {
      const Distance reach = reach_of(info.scope);
      for (uint8_t d = 0; acquires(info.sem) && d <= reach; d++) {
        if (!g.fences().pending[d]) continue;
        Fences& f = g.own_fences();
        g.now.join(f.to_acquire[d]);
        f.to_acquire[d] = {};
        f.pending[d] = false;
      }
      if (acquires(info.sem)) {
        g.now.wide = Clock::join(g.now.wide, g.fences().to_acquire_wide);
        if (g.fences().to_acquire_wide) g.own_fences().to_acquire_wide = nullptr;
      }
      if (releases(info.sem)) {
        Fences& f = g.own_fences();
        for (uint8_t d = 0; d <= reach; d++) f.release[d] = {g.now, w.n, g.shared_n, g.global_n};
      }
    }
  });
  if (info.kind == Kind::ProxyTensormapRelease) {
    std::vector<MapRelease>& releases = s.map_releases[w.key];
    if (releases.size() >= kMapReleasesKept) {
      const auto next = std::find_if(releases.begin() + 1, releases.end(),
                                     [&](const MapRelease& r) { return r.mask == releases[0].mask; });
      if (next != releases.end()) {
        next->seen_n = releases[0].seen_n;
        releases.erase(releases.begin());
      }
    }
    releases.push_back({w.n, w.n, mask});
  }
  if (info.kind == Kind::ProxyTensormapAcquire) {
    std::vector<MapAcquire>& acquires = s.of(*warp.cta).map_acquires[info.address];
    s.each_group(w, mask, [&](LaneGroup& g) {
      const auto same_lanes = [&](const MapAcquire& f) { return f.key == w.key && f.mask == g.mask; };
      // A copy may know of an older acquire and not of the newest.
      if (static_cast<size_t>(std::count_if(acquires.begin(), acquires.end(), same_lanes)) >= kMapAcquiresKept) {
        const auto oldest = std::find_if(acquires.begin(), acquires.end(), same_lanes);
        const auto next = std::find_if(oldest + 1, acquires.end(), same_lanes);
        oldest->own_n = next->own_n;
        oldest->order = next->order;
        acquires.erase(next);
      }
      acquires.push_back({w.key, w.n, g.mask, w.n, g.now.order});
    });
  }
  if (shared || info.kind == Kind::MbarrierInit) {
    for (auto& [offset, b] : s.of(*warp.cta).barriers) {
      if (b.init_key != w.key || (mask >> b.init_lane & 1) == 0) continue;
      if (b.fence_n == 0) b.fence_n = w.n;
      if (info.kind == Kind::MbarrierInit && b.init_fence_n == 0) b.init_fence_n = w.n;
    }
  }
  w.n++;
}

void Checker::barrier(const BarrierEvent& e) {
  State& s = *s_;
  if (e.kind == BarrierEvent::Kind::Complete) {
    NamedState& b = s.of(*e.warp->cta).named[e.id];
    for (auto& [w, mask] : b.waiting) {
      s.each_group(*w, mask, [&](LaneGroup& g) { g.now.join(b.arrived); });
      State::merge_groups(*w);
    }
    b = NamedState{};
    return;
  }
  if (e.kind == BarrierEvent::Kind::ClusterComplete) {
    ClusterState& c = s.clusters[e.warp->cta->domain];
    c.completed = std::move(c.arrived);
    c.arrived = {};
    return;
  }
  WarpState& w = s.of(*e.warp);
  if (e.kind == BarrierEvent::Kind::ClusterArrive || e.kind == BarrierEvent::Kind::ClusterWait) {
    ClusterState& c = s.clusters[e.warp->cta->domain];
    s.each_group(w, e.mask, [&](LaneGroup& g) {
      if (e.kind == BarrierEvent::Kind::ClusterArrive) {
        c.arrived.join(State::signal(w, g, g.mask, !e.relaxed, kSameCluster));
      } else {
        g.now.join(c.completed);
      }
    });
    State::merge_groups(w);
    w.n++;
    return;
  }
  if (e.kind == BarrierEvent::Kind::WarpSync) {
    auto& [arrived, knowledge] = w.warp_sync[e.id];
    s.each_group(w, e.mask, [&, &k = knowledge](LaneGroup& g) { State::publish(k, w, g, g.mask); });
    arrived |= e.mask;
    w.n++;
    if ((e.id & e.warp->live & ~arrived) == 0) {
      s.each_group(w, arrived, [&, &k = knowledge](LaneGroup& g) { g.now.join(k); });
      State::merge_groups(w);
      w.warp_sync.erase(e.id);
    }
    return;
  }
  NamedState& b = s.of(*e.warp->cta).named[e.id];
  s.each_group(w, e.mask, [&](LaneGroup& g) { State::publish(b.arrived, w, g, g.mask); });
  if (e.kind == BarrierEvent::Kind::Sync) b.waiting.emplace_back(&w, e.mask);
  w.n++;
}

void Checker::mbarrier(const MbarrierEvent& e) {
  using Kind = MbarrierEvent::Kind;
  State& s = *s_;
  CtaState& cta = s.of(*e.owner);
  BarrierState& b = cta.barriers[e.offset];
  const auto name = [&e] { return async::barrier_name(*e.owner, e.offset); };
  if (e.kind == Kind::Init) {
    if (b.key != 0) s.arrivals[b.key] = std::move(b.arrivals);
    WarpState& w = s.of(*e.warp);
    b = BarrierState{};
    b.key = kBarrierKey | s.next_barrier++;
    b.init_key = w.key;
    b.init_n = w.n;
    b.init_lane = __builtin_ctz(e.mask);
    b.init = e.inst;
    w.n++;
    return;
  }
  if (e.warp != nullptr) {
    WarpState& w = s.of(*e.warp);
    const bool remote = e.warp->cta != e.owner;
    s.used_from_outside(*e.owner, w, e.mask, e.inst, "signals", e.offset, true);
    State::each_group_in(w, e.mask, [&](const LaneGroup& g, LaneMask lanes) {
      const bool own = w.key == b.init_key && lanes == LaneMask{1} << b.init_lane;
      LaneMask others = lanes;
      if (w.key == b.init_key) others &= ~(LaneMask{1} << b.init_lane);
      if (own || others == 0) return;
      if (State::init_known(b, g.now) || (remote && State::met_since_init(b, g.now))) {
        if (remote) s.init_fenced(*e.owner, e.offset, b, g.now, e.inst, s.who(w.key, others) + " uses");
        return;
      }
      s.find("barrier-not-initialized", Severity::Error, e.inst, b.init, [&](Diagnostic& d) {
        d.message = fmt::format("{} uses `{}`, but nothing orders that after its initialisation at {}",
                                s.who(w.key, others), name(), State::at(s.place(b.init)));
        d.hint =
            remote ? kClusterInitHint : "A barrier of the block between the init and the first use would order them.";
        d.related = {{s.place(b.init), "initialised here"}};
      });
    });
  }
  switch (e.kind) {
    case Kind::Arrive:
    case Kind::ArriveDrop:
    case Kind::ArriveExpectTx: {
      WarpState& w = s.of(*e.warp);
      State::each_group_in(w, e.mask, [&](const LaneGroup& g, LaneMask lanes) {
        if (e.phase > 0 && b.observed < e.phase) {
          s.find("phase-overrun", Severity::Error, e.inst, b.init, [&](Diagnostic& d) {
            d.message =
                fmt::format("{} arrives in phase {} of `{}`, although no thread's wait has seen phase {} complete",
                            s.who(w.key, lanes), e.phase, name(), e.phase - 1);
            d.hint =
                "Somebody waits for each phase before the arrivals of the next one. Is the count right, does each "
                "thread arrive once, and does the wait for that phase ask for its parity?";
            d.related = {{s.place(b.init), "its count is set here"}};
          });
          if (s.findings.back().diagnostic.id == "phase-overrun") s.findings.back().awaited = b.awaited;
        }
        const Distance to = s.distance(w.warp->cta->linear, e.owner->linear);
        Knowledge& arrived = to == kSameBlock ? b.arrived : b.arrived_remote;
        if (releases(e.sem) && reach_of(e.scope) >= to) {
          State::publish(arrived, w, g, lanes);
          return;
        }
        const Knowledge k = State::signal(w, g, lanes, releases(e.sem), to);
        if (reach_of(e.scope) >= to) {
          arrived.join(k);
        } else {
          arrived.join_any(k);
          arrived.wide = Clock::join(arrived.wide, k.wide);
        }
      });
      s.suspect_waits(w, b.key, e);
      if (b.arrivals.size() >= 8192) b.arrivals.erase(b.arrivals.begin(), b.arrivals.begin() + 4096);
      b.arrivals.push_back({w.key, w.n, e.mask, e.phase});
      w.n++;
      break;
    }
    case Kind::CompleteTx: {
      if (b.first_copy == nullptr) b.first_copy = e.inst;
      if (e.op != 0) {
        Operation& o = s.op(e.op);
        o.phase = e.phase;
        o.bytes_counted += static_cast<uint64_t>(e.bytes);
        b.in_flight -= e.bytes;
        o.signalled = o.bytes_counted >= o.info.bytes;
      }
      break;
    }
    case Kind::CopyArrive:
      s.commit_arrives(cta, b, e);
      if (e.op != 0) {  // whoever sees the phase complete knows this thread's cp.async or MMAs up to that one complete,
                        // and nothing else of it
        const Operation& o = s.op(e.op);
        const uint64_t component = (by_tensor_core(o.info) ? kMmaKey : kCpAsyncKey) | o.thread_key;
        b.arrived.order = Clock::with(b.arrived.order, component, o.sequence + 1);
        b.arrived.any = Clock::with(b.arrived.any, component, o.sequence + 1);
      }
      break;
    case Kind::PhaseComplete:
      b.completed = b.arrived;
      b.completed_remote = b.arrived_remote;
      State::overtake(b, e);
      break;
    case Kind::TestTrue:
    case Kind::TestFalse: {
      WarpState& w = s.of(*e.warp);
      const bool yes = e.kind == Kind::TestTrue;
      *b.awaited = true;
      const uint64_t seen = e.phase + 1;  // phase −1 of a fresh barrier gives 0: nothing was observed
      const WaitRecord* last = w.waits.empty() ? nullptr : &w.waits.back();
      const bool repeated = !yes && last != nullptr && !last->complete && last->inst == e.inst &&
                            last->mask == e.mask && last->phase == e.phase && last->barrier == b.key;
      if (!repeated) {
        if (w.waits.size() >= 64) w.waits.erase(w.waits.begin(), w.waits.begin() + 32);
        s.each_group(w, e.mask, [&](LaneGroup& g) {
          const bool again = std::any_of(w.waits.begin(), w.waits.end(), [&](const WaitRecord& r) {
            return r.barrier == b.key && r.complete && r.phase == e.phase && (r.mask & g.mask) != 0;
          });
          w.waits.push_back({b.key, g.mask, w.n, e.phase, yes,
                             yes && (again || (seen != 0 && State::known(g.now.order, b.key) >= seen)), e.inst});
        });
        w.n++;
      }
      if (!yes) break;
      b.observed = std::max(b.observed, seen);
      // A thread that waits twice for a phase is taken at its first wait.
      const bool known_waiter = std::any_of(b.waiters.begin(), b.waiters.end(), [&](const Waiter& x) {
        return x.key == w.key && x.phase == e.phase && (e.mask & ~x.mask) == 0;
      });
      if (!known_waiter) b.waiters.push_back({w.key, w.n - 1, e.mask, e.phase, e.inst});
      Knowledge k = b.completed;
      k.order = Clock::with(k.order, b.key, seen);
      set_any(k, Clock::with(k.any, b.key, seen));
      if (seen == 0) k = {};
      s.each_group(w, e.mask, [&](LaneGroup& g) {
        State::see(g, k, acquires(e.sem), reach_of(e.scope), kSameBlock);
        if (seen != 0) State::see(g, b.completed_remote, acquires(e.sem), reach_of(e.scope), kSameCluster);
      });
      State::merge_groups(w);
      break;
    }
    default:
      break;
  }
}

void Checker::async_op(const AsyncOpInfo& info, AsyncOpInfo::Milestone milestone) {
  using Kind = AsyncOpInfo::Kind;
  State& s = *s_;
  if (milestone != AsyncOpInfo::Milestone::Issued) return;
  WarpState& w = s.of(*info.warp);
  const LaneMask bit = LaneMask{1} << info.lane;
  const auto index = static_cast<uint32_t>(info.id - 1);
  s.operations.resize(info.id);
  Operation& o = s.operations[index];
  o.info = info;
  o.key = w.key;
  o.n = w.n;
  o.stray_waits = s.of(*info.warp->cta).stray_waits;
  const uint32_t thread = info.warp->first_thread() + static_cast<uint32_t>(info.lane);
  o.thread_key = uint64_t{info.warp->cta->linear} << 12 | thread;
  ThreadState& t = s.of(*info.warp->cta).threads[thread];
  o.own_waits = t.own_waits;
  Knowledge k;
  s.each_group(w, bit, [&](LaneGroup& g) { k = State::with_proxy_fences(w, bit, g.now, g.shared_n, g.global_n); });
  State::merge_groups(w);
  k.order = Clock::with_warp(k.order, w.key, bit, w.n);
  o.info.global_runs = nullptr;  // valid during the call only
  o.info.matrices = nullptr;
  if (info.kind == Kind::CpAsync) {
    o.sequence = t.copy_issued++;
    t.copy_in_time = k.in_time;
  } else if (by_tensor_core(info)) {
    o.sequence = t.mma_issued++;
    t.mma_order = k.order;
    t.mma_any = k.any;
    t.uncommitted.push_back(index);
  } else if (info.mbarrier_owner == nullptr) {
    o.sequence = t.bulk_issued++;
  }
  if (info.mbarrier_owner != nullptr) {
    BarrierState& b = s.of(*info.mbarrier_owner).barriers[info.mbarrier];
    o.barrier = b.key;
    b.arrived.in_time = Clock::with_warp(Clock::join(b.arrived.in_time, k.in_time), w.key, bit, w.n);
    b.in_flight += info.bytes;
    if (b.first_copy == nullptr) b.first_copy = info.inst;
    s.signals(*info.mbarrier_owner, info.mbarrier, b, w, info.lane, k, info.inst, true, "issues a copy that signals");
    // Both are in the issuer's block, in another one, or, with .cta_group::2, one of them here and one there.
    const Cta *to = info.destination_owner, *told = info.mbarrier_owner;
    if (to != nullptr && to != info.warp->cta) s.of(*to).remote_operations.push_back(index);
    if (told != info.warp->cta && told != to) s.of(*told).remote_operations.push_back(index);
  }
  if (by_tensor_core(info)) {
    s.mma_reads(info, *info.source_owner, index, k);
    if (info.peer != nullptr) s.mma_reads(info, *info.peer, index, k);
    return;
  }
  if (info.tensor_map != 0) s.map_read(info, s.operations[index], index, k, s.of(*info.warp->cta));
  if (info.kind == Kind::BulkPrefetch || info.kind == Kind::TensorPrefetch || info.bytes == 0) return;
  // Global memory: the bytes inside the tensor. Shared memory: the whole box.
  const auto each_piece_of = [&](Region region, uint64_t address, auto&& f) {
    if (region == Region::Global && info.global_runs != nullptr) {
      for (const machine::ByteRun& r : *info.global_runs) Shadow::pieces(r.address, r.bytes, f);
    } else {
      Shadow::pieces(address, region == Region::Shared && info.shared_bytes != 0 ? info.shared_bytes : info.bytes, f);
    }
  };
  Shadow& to = info.destination_region == Region::Global ? s.global : s.of(*info.destination_owner).shared;
  if (info.source_region != Region::Local) {
    Shadow& from = info.source_region == Region::Global ? s.global : s.of(*info.source_owner).shared;
    each_piece_of(info.source_region, info.source, [&](const RowPiece& piece) {
      from.visit(piece, [&](Plane& plane, uint32_t) {
        s.async_reads(plane, piece, s.operations[index], k, index, info.source_region);
      });
    });
  }
  const auto write = [&](const RowPiece& piece) {
    to.visit(piece, [&](Plane& plane, uint32_t) {
      s.async_writes(plane, piece, s.operations[index], k, index, info.destination_region, reduces(info));
    });
  };
  each_piece_of(info.destination_region, info.destination, [&](const RowPiece& piece) {
    if (info.byte_mask == 0xffff) {
      write(piece);
      return;
    }
    // Bytes whose bit of .cp_mask is clear are not copied (§9.7.9.25.4.1). Chunks of 16 bytes are aligned: word w of a
    // row is word w % 4 of its chunk. Words with the same bytes go together.
    for (uint8_t bytes = 1; bytes <= 0xf; bytes++) {
      RowPiece part = piece;
      part.words = 0;
      part.bytes = bytes;
      for (uint32_t word = 0; word < 4; word++) {
        if ((info.byte_mask >> 4 * word & 0xf) == bytes) part.words |= piece.words & 0x11111111u << word;
      }
      if (part.words != 0) write(part);
    }
  });
}

/// A copy reads its map: was a map that kernels may write acquired by this block, and released by whoever wrote it?
void Checker::State::map_read(const AsyncOpInfo& info, const Operation& o, uint32_t index, const Knowledge& k,
                              CtaState& cta) {
  const machine::Allocation* memory = launch->memory->find(info.tensor_map, kTensorMapBytes);
  if (memory == nullptr || !memory->writable) return;
  const PartyOf me{Party::Async, o.key, index, 0};
  std::vector<const MapAcquire*> acquires;
  for (const MapAcquire& f : cta.map_acquires[info.tensor_map]) {
    if (warp_knows(k.order, f.key, f.mask, f.n)) acquires.push_back(&f);
  }
  const auto says = [&](const Inst* earlier, const std::string& message, const std::string& hint,
                        std::vector<RelatedPlace> related, const PartyOf& other) {
    find(
        "missing-proxy-fence", Severity::Error, info.inst, earlier,
        [&](Diagnostic& d) {
          d.message = message;
          d.hint = hint;
          d.related = std::move(related);
        },
        me, other);
  };
  const std::string acquire =
      "fence.proxy.tensormap::generic.acquire with the scope of the writer (.gpu for another thread of the device, "
      ".sys for "
      "the host) and the map's address, by a thread of the block, before the copy.";
  if (acquires.empty()) {
    says(nullptr,
         fmt::format(
             "{} uses the tensor map {}, in memory that may be written, and no thread of this block has acquired it "
             "before",
             named(o), launch->memory->describe(info.tensor_map)),
         acquire + " A map that is a `const __grid_constant__` parameter or lies in constant memory needs no fence.",
         {}, {});
    return;
  }
  // What a copy wrote needs no release, as its completion is what its thread waits for.
  const auto written_by_copy = [&](uint32_t writing) {
    const Operation& p = operations[writing];
    if (std::any_of(acquires.begin(), acquires.end(),
                    [&](const MapAcquire* f) { return complete(p, f->order, false); }))
      return;
    const bool awaited = complete(p, k.order, false);
    const char* id = awaited ? "missing-proxy-fence" : unfinished_id(p, false, "async-read-before-complete");
    find(
        id, Severity::Error, info.inst, p.info.inst,
        [&](Diagnostic& d) {
          d.message = fmt::format("{} uses the tensor map {}", named(o), launch->memory->describe(info.tensor_map));
          d.message +=
              awaited
                  ? fmt::format(
                        ", which {} wrote; no thread of this block has acquired it since that was known to be complete",
                        named(p))
                  : fmt::format(" while {} may still be writing it{}", issued(p),
                                complete(p, k.any, false) ? std::string(kRelaxed) : not_covered(p, false));
          d.hint = awaited ? acquire : barrier_hint(p);
          d.related = {{place(p.info.inst), awaited ? "the map is written here" : may_still(p, "writing")}};
        },
        me, {Party::Async, p.key, writing, 0});
  };
  // Whether what `lane` wrote is released and acquired; if it is not, that is reported.
  const auto handed_over = [&](const WriteRecord& w, int lane) {
    const LaneMask writer = LaneMask{1} << lane;
    const auto lacks = [&](const std::string& what, const std::string& hint) {
      says(w.inst,
           fmt::format("{} uses the tensor map {}, which {} wrote at {}{}", named(o),
                       launch->memory->describe(info.tensor_map), who(w.key, writer), at(place(w.inst)), what),
           hint, {{place(w.inst), "the map is written here"}}, {Party::Thread, w.key, w.n, writer});
      return false;
    };
    // tensormap.cp_fenceproxy.sync.aligned is told as a write of one lane, and every lane of its warp executes it.
    const LaneMask writers = w.inst->sync == machine::kSyncAligned ? ~LaneMask{0} : writer;
    // Does one of the acquires come after what the writer did in step `n`?
    const auto acquired_after = [&](uint32_t n) {
      return std::any_of(acquires.begin(), acquires.end(), [&](const MapAcquire* f) {
        return warp_knows(f->order, w.key, writers, n) ||
               (f->key == w.key && (f->mask & writers) != 0 && f->own_n >= n);
      });
    };
    if (!acquired_after(w.n)) return lacks("; no thread of this block has acquired it since", acquire);
    const std::vector<MapRelease>& releases = map_releases[w.key];
    auto release = std::lower_bound(releases.begin(), releases.end(), w.n,
                                    [](const MapRelease& r, uint32_t n) { return r.n < n; });
    while (release != releases.end() && (release->mask & writer) == 0) ++release;
    return (release != releases.end() && acquired_after(release->seen_n)) ||
           lacks(
               " without a release fence of the tensormap proxy behind it",
               "fence.proxy.tensormap::generic.release, or tensormap.cp_fenceproxy, by the writing thread between the "
               "write and the signal that leads to the acquire.");
  };
  Shadow::pieces(info.tensor_map, kTensorMapBytes, [&](const RowPiece& piece) {
    global.visit(piece, [&](Plane& plane, uint32_t) {
      for (const WriteRecord& w : plane.writes) {
        if (w.party == Party::Async) {
          if ((w.words & piece.words) != 0) written_by_copy(w.n);
          continue;
        }
        LaneMask asked = 0;
        for (uint32_t rest = w.words & piece.words; rest != 0; rest &= rest - 1) {
          LaneMask ask = w.writers(static_cast<uint32_t>(__builtin_ctz(rest))) & ~asked;
          asked |= ask;
          for (; ask != 0; ask &= ask - 1) {
            if (!handed_over(w, __builtin_ctz(ask))) return;
          }
        }
      }
    });
  });
  if (info.kind != AsyncOpInfo::Kind::TensorPrefetch) remember_map_read(o, index);  // whose end nobody is told
}

/// To modify the map before the copy is over is undefined (§9.7.9.25.1), so it is remembered as a read of the copy. Of
/// the copies of one thread the last stands for those before it that end in the same way: published kernels edit a map
/// once they have waited for the last of the loads that use it.
void Checker::State::remember_map_read(const Operation& o, uint32_t index) {
  Shadow::pieces(o.info.tensor_map, kTensorMapBytes, [&](const RowPiece& piece) {
    global.visit(piece, [&](Plane& plane, uint32_t) {
      for (ReadRecord& r : plane.reads) {
        if (r.party != Party::Async || r.words != piece.words) continue;
        const Operation& p = operations[r.n];
        if (p.thread_key != o.thread_key || p.info.tensor_map != o.info.tensor_map ||
            (p.barrier != 0) != (o.barrier != 0))
          continue;
        r.inst = o.info.inst;
        r.n = index;
        return;
      }
      plane.reads.push_back({o.info.inst, o.key, index, piece.words, Party::Async, Scope::None, {}});
    });
  });
}

/// Is what an operation read, as record `r` of this row says, known to be over? A multicast reads its map once, however
/// many blocks it delivers to, and each delivery that is complete tells so.
bool Checker::State::read_over(const ReadRecord& r, uint64_t row, const ClockPtr& c) const {
  const Operation& o = operations[r.n];
  if (complete(o, c, true)) return true;
  if (!reads_map(r, row)) return false;
  for (uint32_t before = r.n; before-- > 0;) {
    const Operation& p = operations[before];
    if (p.info.inst != o.info.inst || p.key != o.key || p.n != o.n || p.info.lane != o.info.lane ||
        p.info.destination != o.info.destination)
      return false;
    if (complete(p, c, true)) return true;
  }
  return false;
}

/// Another block uses a barrier: was its init fenced before the cluster's barrier that came between? A meeting that
/// releases and acquires orders the init like any access (§9.7.13.3), and published code relies on that; without the
/// fence it is a warning. A relaxed meeting orders nothing but what the fence covers.
void Checker::State::init_fenced(const Cta& owner, uint32_t offset, const BarrierState& b, const Knowledge& k,
                                 const Inst* inst, const std::string& user) {
  if (init_visible(b, k)) return;
  const bool ordered = knows(k.order, b.init_key, b.init_lane, b.init_n);
  find("barrier-init-not-visible", ordered ? Severity::Warning : Severity::Error, inst, b.init, [&](Diagnostic& d) {
    d.message = fmt::format("{} `{}` of CTA {}, whose init at {} was not made visible to other blocks{}", user,
                            async::barrier_name(owner, offset), owner.linear, at(place(b.init)),
                            ordered ? "" : ": no fence follows it, and where the blocks met they were relaxed");
    d.hint = kClusterInitHint;
    d.related = {{place(b.init), "the fence belongs after this line"}};
  });
}

/// A block has ended: each use of its shared memory from outside must come before some thread of it left.
void Checker::State::check_remote_uses(const Cta& cta) {
  const CtaState& c = of(cta);
  if (c.remote_uses.empty() && c.remote_operations.empty()) return;
  ClockPtr some_thread;  // what some thread of the block knows
  for (const auto& w : c.warps) {
    for (const LaneGroup& g : w->groups) some_thread = Clock::join(some_thread, g.now.any);
  }
  for (const RemoteUse& u : c.remote_uses) {
    const LaneMask awaited = u.mask & ~not_known(some_thread, u.key, u.mask, u.n);
    if (awaited == u.mask) continue;
    // §9.7.16.12.1: a commit arrives when what it tracks is over.
    if (u.commit != 0 && complete(op(u.commit), some_thread, false)) continue;
    find("remote-cta-gone", Severity::Error, u.inst, nullptr, [&](Diagnostic& d) {
      d.message = fmt::format(
          "{} {} {} of CTA {}, which may have ended by then: no thread of that block waits for it before it leaves",
          who(u.key, u.mask & ~awaited), u.verb,
          u.barrier ? "`" + async::barrier_name(program(), u.offset) + "`" : program().describe_shared(u.offset),
          cta.linear);
      d.hint = kStayHint;
    });
  }
  for (const uint32_t index : c.remote_operations) {
    const Operation& o = operations[index];
    // (One that is under way is reported as such: copy-in-flight-at-exit.)
    if (!o.signalled || complete(o, some_thread, false)) continue;
    find("remote-cta-gone", Severity::Error, o.info.inst, nullptr, [&](Diagnostic& d) {
      d.message = fmt::format(
          "the {} issued by {} {} of CTA {}, which may have ended by then: no thread of that block waits for it before "
          "it leaves",
          noun(o), who(o.key, LaneMask{1} << o.info.lane),
          o.info.destination_owner == &cta
              ? "writes " + program().describe_shared(static_cast<uint32_t>(o.info.destination))
              : "signals `" + async::barrier_name(program(), o.info.mbarrier) + "`",
          cta.linear);
      d.hint = kStayHint;
    });
  }
}

/// An operation will signal a barrier: is that ordered after the init, and, of a copy, is the init visible to the copy
/// engine? (Of a commit the ISA does not ask that, and public kernels do without.)
void Checker::State::signals(const Cta& owner, uint32_t offset, const BarrierState& b, const WarpState& w, int lane,
                             const Knowledge& k, const Inst* inst, bool copy, const char* does) {
  const LaneMask bit = LaneMask{1} << lane;
  const bool own = b.init_key == w.key && b.init_lane == lane;
  const bool remote = &owner != w.warp->cta;
  if (!own && !init_known(b, k) && !(remote && met_since_init(b, k))) {
    find("barrier-not-initialized", Severity::Error, inst, b.init, [&](Diagnostic& d) {
      d.message = fmt::format("{} {} `{}`, but nothing orders that after its initialisation at {}", who(w.key, bit),
                              does, async::barrier_name(owner, offset), at(place(b.init)));
      d.hint =
          remote ? kClusterInitHint : "A barrier of the block between the init and the first use would order them.";
      d.related = {{place(b.init), "initialised here"}};
    });
  } else if (remote) {
    init_fenced(owner, offset, b, k, inst, fmt::format("{} {}", who(w.key, bit), does));
  } else if (copy && !(own && b.fence_n != 0) && !init_visible(b, k)) {
    find("barrier-init-not-visible", Severity::Warning, inst, b.init, [&](Diagnostic& d) {
      d.message =
          fmt::format("the copy issued by {} signals `{}`, whose init at {} was not made visible to the copy engine",
                      who(w.key, bit), async::barrier_name(owner, offset), at(place(b.init)));
      d.hint = "fence.mbarrier_init.release.cluster by the initialising thread, after the init.";
      d.related = {{place(b.init), "the fence belongs after this line"}};
    });
  }
}

/// Phase p of `b` is complete. A wait for phase p − 1 that nothing orders before that may come after it: then its
/// parity is that of phase p + 1, for which it waits. Of the lanes of one wait one speaks for all, as with an elected
/// arrive.
void Checker::State::overtake(BarrierState& b, const MbarrierEvent& e) {
  b.overtaken.clear();
  b.completing = e.inst;
  for (const Waiter& x : b.waiters) {
    if (x.phase + 1 != e.phase || !b.all_arrivals_known) continue;
    bool in_time = false;
    for_lanes(x.mask, [&](int l) {
      in_time = in_time || knows(b.arrived.in_time, x.key, l, x.n) || knows(b.arrived_remote.in_time, x.key, l, x.n);
    });
    if (!in_time) b.overtaken.push_back(x);
  }
  b.waiters.clear();
}

/// A block is over. Where phase p was the last of a barrier, phase p + 1 never comes, and a wait for phase p − 1 that
/// phase p overtakes hangs. Where there were more phases, such a wait ends late, and that is all.
void Checker::State::report_overtaken(Cta& cta) {
  std::vector<uint32_t> offsets;
  for (const auto& [offset, b] : of(cta).barriers) {
    if (!b.overtaken.empty()) offsets.push_back(offset);
  }
  std::sort(offsets.begin(), offsets.end());
  for (const uint32_t offset : offsets) {
    const BarrierState& b = of(cta).barriers[offset];
    for (const Waiter& x : b.overtaken) {
      const size_t before = findings.size();
      find("phase-overrun", Severity::Warning, x.inst, b.completing, [&](Diagnostic& d) {
        d.message = fmt::format(
            "nothing keeps phase {} of `{}` from completing before this wait, by {}, has seen {}: a thread that is "
            "late then waits for phase {}, which has the same parity and never completes",
            x.phase + 1, async::barrier_name(cta, offset), who(x.key, x.mask),
            x.phase + 1 == 0 ? std::string("the barrier fresh") : fmt::format("phase {}", x.phase), x.phase + 2);
        d.hint = kOvertakenHint;
        if (b.completing != nullptr) d.related = {{place(b.completing), "the next phase is completed from here"}};
      });
      for (size_t k = before; k < findings.size(); k++) findings[k].latent = true;
    }
  }
}

// --- tensor memory ---

/// A commit that this barrier waited for arrives: what it tracked belongs to this phase.
void Checker::State::commit_arrives(CtaState& cta, BarrierState& b, const MbarrierEvent& e) {
  std::deque<PendingCommit>& pending = cta.commits[b.key];
  const auto found = std::find_if(pending.begin(), pending.end(),
                                  [&e](const PendingCommit& c) { return c.inst == e.inst && c.op == e.op; });
  if (found == pending.end()) {  // an arrive of cp.async
    b.all_arrivals_known = false;
    if (e.op == 0) return;
    // What its thread knew when it issued the copies came before the arrive in time.
    const Operation& o = op(e.op);
    const uint32_t thread = o.info.warp->first_thread() + static_cast<uint32_t>(o.info.lane);
    const ClockPtr known = Clock::join(b.arrived.in_time, of(*o.info.warp->cta).threads[thread].copy_in_time);
    b.arrived.in_time = Clock::with_warp(known, o.key, LaneMask{1} << o.info.lane, o.n);
    return;
  }
  const PendingCommit commit = std::move(*found);
  pending.erase(found);
  b.arrived.order = Clock::with_others(b.arrived.order, commit.order);
  b.arrived.any = Clock::with_others(b.arrived.any, commit.any);
  for (const uint32_t index : commit.operations) {
    operations[index].phase = e.phase;
    operations[index].signalled = true;
  }
  if (!commit.operations.empty()) return;
  for (EmptyCommit& x : commit.issuer->empty_commits) {
    if (x.barrier == b.key && x.inst == e.inst && x.phase == kNotArrived) x.phase = e.phase;
  }
}

/// The operands of an MMA or the source of a tcgen05.cp in the shared memory of `owner`: read through the async proxy
/// from its issue on, and all of their bytes should have been written by somebody.
void Checker::State::mma_reads(const AsyncOpInfo& info, const Cta& owner, uint32_t index, const Knowledge& k) {
  CtaState& cta = of(owner);
  const Operation& me = operations[index];
  // Rows of a matrix are mostly alike: written by one copy, read by one MMA before. What was found out for one of them
  // is kept for the next.
  uint32_t over = ~0u;     // a copy that is complete
  uint32_t earlier = ~0u;  // an earlier MMA of this thread, which is over when this one is
  for (const machine::MatrixRead& matrix : *info.matrices) {
    std::vector<uint32_t> unwritten;  // 16-byte units, by offset
    const auto same_as_before = [&](uint64_t row, uint32_t words) {
      Plane* plane = cta.shared.whole(row);
      if (plane == nullptr || plane->writes.size() != 1) return false;
      const WriteRecord& w = plane->writes[0];
      if (w.party != Party::Async || w.n != over || (words & ~w.words) != 0) return false;
      for (ReadRecord& r : plane->reads) {
        if (r.party != Party::Async || r.n != earlier || r.words != words) continue;
        r.n = index;
        r.inst = info.inst;
        return true;
      }
      return false;
    };
    const auto read = [&](uint64_t row, uint32_t words) {
      if (same_as_before(row, words)) return;
      RowPiece piece;
      piece.row = row;
      piece.words = words;
      uint32_t missing = 0;
      cta.shared.visit(piece, [&](Plane& plane, uint32_t) {
        uint32_t written = 0;
        for (const WriteRecord& w : plane.writes) {
          written |= w.words;
          if (w.party == Party::Async && complete(operations[w.n], k.order, false)) over = w.n;
        }
        for (const ReadRecord& r : plane.reads) {
          if (r.party == Party::Async && r.words == words && same_mma_thread(operations[r.n], me)) earlier = r.n;
        }
        missing |= words & ~written;
        async_reads(plane, piece, me, k, index, Region::Shared);
      });
      for (uint32_t unit = 0; missing != 0 && unit < 8; unit++) {
        if ((missing >> 4 * unit & 0xf) != 0) unwritten.push_back(static_cast<uint32_t>(row) + 16 * unit);
      }
    };
    for (const machine::ByteRun& run : *matrix.runs) {  // multiples of 16 bytes
      for (uint64_t at = run.address, end = run.address + run.bytes; at < end;) {
        const uint64_t row = at & ~(Shadow::kRowBytes - 1), stop = std::min(end, row + Shadow::kRowBytes);
        const auto first = static_cast<uint32_t>((at - row) / 4), count = static_cast<uint32_t>((stop - at) / 4);
        read(row, (count == 32 ? ~0u : (1u << count) - 1) << first);
        at = stop;
      }
    }
    if (!unwritten.empty()) unwritten_operand(info, owner, matrix, unwritten);
  }
}

/// Rows of which nobody wrote anything may be meant: what comes of them is in rows or columns of D that nobody looks
/// at. A row that is there in part spoils what is made of it.
void Checker::State::unwritten_operand(const AsyncOpInfo& info, const Cta& owner, const machine::MatrixRead& matrix,
                                       const std::vector<uint32_t>& unwritten) {
  const std::set<uint32_t> missing(unwritten.begin(), unwritten.end());
  const size_t lines = matrix.units->size() / matrix.units_per_row;
  // K-major: a line is a row, its units go along K. MN-major: a line is a k; unit u of each line is the same rows.
  const size_t rows = matrix.mn_major ? matrix.units_per_row : lines;
  const size_t along_k = matrix.mn_major ? lines : matrix.units_per_row;
  size_t none = 0, part = 0;
  for (size_t r = 0; r < rows; r++) {
    size_t lacking = 0;
    for (size_t u = 0; u < along_k; u++) {
      const size_t unit = matrix.mn_major ? u * matrix.units_per_row + r : r * matrix.units_per_row + u;
      lacking += missing.count((*matrix.units)[unit]);
    }
    none += lacking == along_k ? 1 : 0;
    part += lacking != 0 && lacking != along_k ? 1 : 0;
  }
  const bool error = part != 0 || none == rows;
  find("bad-descriptor", error ? Severity::Error : Severity::Warning, info.inst, nullptr, [&](Diagnostic& d) {
    d.message =
        fmt::format("{} covers bytes{} that nobody has written: {} of its {} units of 16 bytes, the first at {}",
                    info.kind == AsyncOpInfo::Kind::Mma ? fmt::format("matrix {} of the MMA", matrix.name)
                                                        : "the source of the copy",
                    info.peer == nullptr ? "" : fmt::format(" of CTA {}", owner.linear), unwritten.size(),
                    matrix.units->size(), program().describe_shared(unwritten.front()));
    d.hint =
        "Start address, LBO, SBO and swizzle of the descriptor and M, N of the instruction decide which bytes are "
        "read.";
  });
}

/// The first instruction behind a tcgen05.ld that uses one of its registers before any wait::ld, in the order of the
/// code; nullptr if a wait comes first. Copies of registers are followed.
const Inst* Checker::State::used_before_wait(const Inst& load) const {
  const machine::Program& p = program();
  std::set<uint32_t> registers;
  const auto add = [&](const ptx::Operand& o) {
    for (const ptx::Operand& e : o.elements) {
      if (e.kind == ptx::Operand::Kind::Register) registers.insert(e.reg);
    }
    if (o.kind == ptx::Operand::Kind::Register) registers.insert(o.reg);
  };
  const auto uses = [&](const ptx::Operand& o) {
    const auto hit = [&](const ptx::Operand& x) {
      return x.kind == ptx::Operand::Kind::Register && registers.count(x.reg) != 0;
    };
    return hit(o) || std::any_of(o.elements.begin(), o.elements.end(), hit);
  };
  add(p.statement(load).operands[0]);
  for (const Inst* i = &load + 1; i != p.code.data() + p.code.size() && i->function == load.function; i++) {
    const ptx::Statement& s = p.statement(*i);
    if (s.opcode.size() > 1 && s.opcode[0] == "tcgen05" && s.opcode[1] == "wait::ld") return nullptr;
    const bool moves = s.opcode[0] == "mov";
    const bool writes_first = s.opcode[0] != "st" && s.opcode[0] != "red";
    for (size_t k = writes_first ? 1 : 0; k < s.operands.size(); k++) {
      if (!uses(s.operands[k])) continue;
      if (!moves) return i;
      add(s.operands[0]);
    }
  }
  return nullptr;
}

/// The CTA of the thread that issued `o`, or `other` where that one is over.
CtaState& Checker::State::issuing_cta(const Operation& o, CtaState& other) {
  const Cta* cta = cta_of_key[o.key / warps_per_cta];
  return cta != nullptr ? of(*cta) : other;
}

/// A later tcgen05 access of columns that `a` touched.
void Checker::State::tensor_meets(CtaState& cta, const TensorRecord& a, const TensorAccessor& b) {
  using Kind = machine::TensorEvent::Kind;
  const LaneGroup& g = *b.group;
  const PartyOf me{Party::Thread, b.key, b.n, b.mask, !b.writes};
  const auto columns = [&b] { return fmt::format("columns {}-{} of tensor memory", b.begin, b.end - 1); };
  const auto doer = [&] {
    return (b.kind == Kind::Mma    ? "the MMA issued by "
            : b.kind == Kind::Copy ? "the copy issued by "
                                   : "") +
           who(b.key, b.mask);
  };
  const char* verb = b.kind == Kind::Dealloc ? "frees" : b.writes ? "writes" : "reads";
  const auto report = [&](const char* id, const Inst* where, const std::string& rest, const std::string& hint,
                          const PartyOf& other, const std::string& role) {
    find(
        id, Severity::Error, where, a.inst,
        [&](Diagnostic& d) {
          d.message = fmt::format("{} {} {} ({}) {}", doer(), verb, columns(), at(place(b.inst)), rest);
          d.hint = hint;
          d.related = {{place(a.inst), role}};
          if (where != b.inst) d.related.push_back({place(b.inst), fmt::format("{} them here", verb)});
        },
        me, other);
  };

  if (a.kind == Kind::Dealloc) {
    if (b.kind == Kind::Dealloc) return;
    report(
        "tmem-freed-early", a.inst,
        fmt::format("after {}, the other CTA of the pair, has begun to free them for both: the accesses of both CTAs "
                    "come before either frees",
                    who(a.key, a.mask)),
        kPairFreeHint, {Party::Thread, a.key, a.n, a.mask, false}, "freed here");
    return;
  }
  const bool of_mma = a.kind == Kind::Mma;
  if (of_mma || a.kind == Kind::Copy) {
    const Operation& o = operations[a.operation];
    const bool same_thread = a.key == b.key && a.mask == b.mask && (b.kind == Kind::Mma || b.kind == Kind::Copy);
    // §9.7.16.6.2: MMAs of one accumulator and shape are pipelined, and an MMA behind a copy; where an operand
    // in tensor memory is or becomes the accumulator or is copied anew, public kernels rely on the order of issue, too.
    const bool both_mmas = of_mma && b.kind == Kind::Mma;
    if (same_thread && (!both_mmas || a.shape == b.shape || !a.writes || !b.writes)) return;
    // §9.7.16.6.3, §9.7.16.6.4.3: such pairs form a pipeline across threads, too, behind fences in both: the MMA comes
    // after the first operation, whether that is over or not, and is not over before it.
    const bool pipeline = b.kind == Kind::Mma && (a.kind == Kind::Copy || (a.shape == b.shape && a.writes && b.writes));
    const auto follow = [&] {
      if (uint32_t& successor = operations[a.operation].successor; successor == 0) successor = b.operation;
    };
    if (pipeline && warp_knows(g.after_tensor, a.key, a.mask, a.n)) return follow();
    if (complete(o, g.after_any, false) || (b.kind == Kind::Dealloc && complete(o, g.now.any, false))) return;
    const PartyOf other{Party::Async, o.key, a.operation, 0};
    const std::string role =
        fmt::format("this {} may still be {} them", of_mma ? "MMA" : "copy", a.writes ? "writing" : "reading");
    if (complete(o, g.now.any, false)) {
      report(
          "missing-tcgen05-fence", b.inst,
          fmt::format("after a wait that saw the {} at {} complete, but without tcgen05.fence::after_thread_sync "
                      "behind that wait",
                      of_mma ? "MMA" : "copy", at(place(a.inst))),
          "Each thread that goes on to use tensor memory executes tcgen05.fence::after_thread_sync after the wait, or "
          "after the barrier that tells it of the wait.",
          other, of_mma ? "the MMA" : "the copy");
      return;
    }
    for (const EmptyCommit& x : issuing_cta(o, cta).empty_commits) {
      const bool same = x.key == a.key && (x.mask & a.mask) != 0;
      if (same || x.phase == kNotArrived || known(g.now.any, x.barrier) <= x.phase) continue;
      find("commit-tracks-nothing", Severity::Error, x.inst, a.inst, [&](Diagnostic& d) {
        d.message = fmt::format(
            "{} commits, but the {} at {} was issued by {}: a commit tracks its own thread's only, "
            "and this one arrives at once",
            who(x.key, x.mask), of_mma ? "MMA" : "copy", at(place(a.inst)), who(a.key, a.mask));
        d.hint = fmt::format("The thread that issued the {} issues the commit.", of_mma ? "MMAs" : "copies");
        d.related = {{place(a.inst), of_mma ? "the MMA" : "the copy"},
                     {place(b.inst), fmt::format("{} {} {} here", doer(), verb, columns())}};
      });
      return;
    }
    // Ordered, and a fence is missing. Of two MMAs without either fence it is the commit that is likelier forgotten.
    const bool before = warp_knows(g.now.fenced_tensor, a.key, a.mask, a.n);
    const bool after = warp_knows(g.after_any, a.key, a.mask, a.n);
    if (pipeline && warp_knows(g.now.any, a.key, a.mask, a.n) && (!of_mma || before || after)) {
      report("missing-tcgen05-fence", b.inst,
             fmt::format("after {} issued the {} at {}, without tcgen05.fence::{}", who(a.key, a.mask),
                         of_mma ? "MMA" : "copy", at(place(a.inst)),
                         before ? "after_thread_sync behind the wait or barrier in between"
                                : "before_thread_sync by that thread behind it"),
             "fence::before_thread_sync by the first thread before it arrives; fence::after_thread_sync by the second "
             "after it waited. Then no commit is needed in between.",
             other, of_mma ? "the MMA" : "the copy");
      return follow();  // as if the fence were there: what comes later is judged for itself
    }
    report(b.kind == Kind::Dealloc ? "tmem-freed-early"
           : a.writes              ? "mma-result-unobserved"
                                   : "source-overwritten",
           b.inst,
           fmt::format("while the {} issued at {} may still be {} them: no wait has seen a commit that covers it",
                       of_mma ? "MMA" : "copy", at(place(a.inst)), a.writes ? "writing" : "reading"),
           fmt::format(
               "tcgen05.commit by the thread of the {}, a wait on its barrier, then tcgen05.fence::after_thread_sync.",
               of_mma ? "MMA" : "copy"),
           other, role);
    return;
  }

  const bool loads = a.kind == Kind::Load;
  const char* access = loads ? "tcgen05.ld" : "tcgen05.st";
  const char* wait = loads ? "tcgen05.wait::ld" : "tcgen05.wait::st";
  const PartyOf other{Party::Thread, a.key, a.n, a.mask, loads};
  // ld, st and their waits are done by the warp as one, so that one lane may speak for it (an elected arrive).
  const auto warp_known = [&](const ClockPtr& c, uint32_t n) {
    bool some = false;
    for_lanes(a.mask, [&](int l) { some = some || knows(c, a.key, l, n); });
    return some;
  };
  const bool own = a.key == b.key;
  if (!own && !warp_known(g.now.any, a.n)) {
    if (a.of_nothing && b.kind == Kind::Mma) {  // the ld is the one that is too early
      find("mma-result-unobserved", Severity::Error, a.inst, b.inst,
           [&](Diagnostic& d) {
             d.message = fmt::format(
                 "{} reads {} ({}), which nobody has written yet: nothing orders the MMA issued at {} "
                 "before it",
                 who(a.key, a.mask), columns(), at(place(a.inst)), at(place(b.inst)));
             d.hint = "A wait on the barrier to which the MMA is committed, then tcgen05.fence::after_thread_sync.";
             d.related = {{place(b.inst), "the MMA"}};
           },
           other, {Party::Async, b.key, b.operation, 0});
      return;
    }
    report(b.kind == Kind::Dealloc ? "tmem-freed-early"
           : loads                 ? "accumulator-overwritten"
                                   : "data-race",
           b.inst,
           fmt::format("while {} may still be {} them ({}): nothing orders them", who(a.key, a.mask),
                       loads ? "reading" : "writing", at(place(a.inst))),
           b.kind == Kind::Dealloc && a.key / warps_per_cta != b.key / warps_per_cta
               ? std::string(kPairFreeHint)
               : fmt::format("{}, tcgen05.fence::before_thread_sync and an arrive by the one; a wait and "
                             "tcgen05.fence::after_thread_sync by the other.",
                             wait),
           other, fmt::format("{} here", access));
    return;
  }
  const WarpState& warp = *cta.warps[a.key - cta.base];
  const std::vector<uint32_t>& waits = loads ? warp.tensor_loads_waited : warp.tensor_stores_waited;
  const auto waited = std::upper_bound(waits.begin(), waits.end(), a.n);
  if (waited == waits.end() || (!own && !warp_known(g.now.any, *waited))) {
    const Inst* use = nullptr;
    if (loads) {
      const auto [entry, is_new] = early_uses.try_emplace(a.inst);
      if (is_new) entry->second = used_before_wait(*a.inst);
      use = entry->second;
    }
    report("missing-tcgen05-wait", use != nullptr ? use : b.inst,
           fmt::format("that the {} at {} may still be {}: no {} comes between", access, at(place(a.inst)),
                       loads ? "reading" : "writing", wait),
           loads ? "tcgen05.wait::ld by the warp, before the columns are written again, handed on or freed."
                 : "tcgen05.wait::st by the warp, between the store and this access.",
           other, fmt::format("{} here", access));
    return;
  }
  if (own || b.kind == Kind::Dealloc || warp_known(g.after_tensor, *waited)) return;
  const bool before = warp_known(g.now.fenced_tensor, *waited);
  report(
      "missing-tcgen05-fence", b.inst,
      fmt::format("after {} {} them ({}), without tcgen05.fence::{} {}", who(a.key, a.mask), loads ? "read" : "wrote",
                  at(place(a.inst)), before ? "after_thread_sync" : "before_thread_sync",
                  before ? "behind the wait or barrier in between" : "by that warp behind its wait"),
      "fence::before_thread_sync by the first thread before it arrives; fence::after_thread_sync by the second after "
      "it waited.",
      other, fmt::format("{} here", access));
}

/// An MMA, as A or as the old D, or a ld reads columns of which it can know nothing.
void Checker::State::unwritten_columns(const Inst* inst, const std::string& reader, const TensorColumns& c) {
  find("tmem-uninitialized", Severity::Error, inst, nullptr, [&](Diagnostic& d) {
    d.message = fmt::format("{} reads columns {}-{} of tensor memory, which nobody has written since their allocation",
                            reader, c.begin, c.end - 1);
    d.hint =
        "enable-input-d is false for the first MMA of an accumulator, or tcgen05.st clears it before; a ld reads the "
        "columns that D has.";
  });
}

void Checker::State::tensor_access(CtaState& cta, WarpState& w, const machine::TensorEvent& e) {
  using Kind = machine::TensorEvent::Kind;
  std::vector<const LaneGroup*> groups;
  for (const LaneGroup& g : w.groups) {
    if ((g.mask & e.mask) != 0) groups.push_back(&g);
  }
  TensorRecord mine;
  mine.kind = e.kind;
  mine.inst = e.inst;
  mine.key = w.key;
  mine.n = w.n;
  mine.mask = e.mask;
  mine.operation = e.op != 0 ? static_cast<uint32_t>(e.op - 1) : 0;
  mine.shape = e.shape;
  // Lanes that no MMA writes (M = 64) may be loaded with the others: a ld of nothing finds nothing anywhere.
  bool nothing_there = e.kind == Kind::Load;
  for (const machine::TensorRegion& region : *e.regions) {
    for (uint32_t h = 0; h < 8 && nothing_there; h++) {
      if ((region.halves >> h & 1) == 0) continue;
      nothing_there = std::none_of(cta.tensor[h].begin(), cta.tensor[h].end(), [&](const TensorColumns& c) {
        return c.end > region.column && c.begin < region.column + region.columns && !c.records.empty() &&
               c.records.front().writes;
      });
    }
  }
  for (const machine::TensorRegion& region : *e.regions) {
    mine.writes = region.write;
    const auto begin = region.column, end = static_cast<uint16_t>(region.column + region.columns);
    for (uint32_t h = 0; h < 8; h++) {
      if ((region.halves >> h & 1) == 0) continue;
      std::vector<TensorColumns>& list = cta.tensor[h];
      split_columns(list, begin, end);
      for (TensorColumns& c : list) {
        if (c.end <= begin || c.begin >= end) continue;
        for (const TensorRecord& a : c.records) {
          if (!a.writes && !region.write) continue;
          for (const LaneGroup* g : groups) {
            // An MMA that read what a st wrote, and is over, came after that st.
            const bool passed =
                a.kind == Kind::Store && std::any_of(c.records.begin(), c.records.end(), [&](const TensorRecord& r) {
                  return r.kind == Kind::Mma && complete(operations[r.operation], g->after_any, true);
                });
            if (passed) continue;
            tensor_meets(
                cta, a, {e.kind, e.inst, w.key, w.n, e.mask, region.write, e.shape, mine.operation, c.begin, c.end, g});
          }
        }
        const bool reads = !region.write || (e.kind == Kind::Mma && e.reads_d);
        if (e.kind == Kind::Mma && reads && (c.records.empty() || !c.records.front().writes))
          unwritten_columns(e.inst, "the MMA", c);
        if (region.write) continue;  // below
        mine.of_nothing = nothing_there;
        // A newer read by the same warp stands for an older one: both are over when the newer one is.
        const auto same = std::find_if(c.records.begin(), c.records.end(), [&](const TensorRecord& r) {
          return !r.writes && r.kind == mine.kind && r.key == mine.key && r.mask == mine.mask;
        });
        if (same != c.records.end()) {
          *same = mine;
        } else {
          c.records.push_back(mine);
        }
      }
      if (!region.write) continue;
      // One entry for all that was written.
      const auto first =
          std::find_if(list.begin(), list.end(), [&](const TensorColumns& c) { return c.begin >= begin; });
      const auto last = std::find_if(first, list.end(), [&](const TensorColumns& c) { return c.begin >= end; });
      first->end = end;
      first->records.assign(1, mine);
      list.erase(first + 1, last);
    }
  }
}

/// Makes [begin, end) a union of whole entries.
void Checker::State::split_columns(std::vector<TensorColumns>& list, uint16_t begin, uint16_t end) {
  const auto cut = [&list](uint16_t at) {
    for (size_t k = 0; k < list.size(); k++) {
      if (list[k].begin >= at || list[k].end <= at) continue;
      TensorColumns rest = list[k];
      rest.begin = at;
      list[k].end = at;
      list.insert(list.begin() + static_cast<std::ptrdiff_t>(k) + 1, std::move(rest));
      return;
    }
  };
  cut(begin);
  cut(end);
  uint16_t at = begin;
  for (size_t k = 0; at < end; k++) {
    if (k < list.size() && list[k].end <= at) continue;
    if (k < list.size() && list[k].begin == at) {
      at = list[k].end;
      continue;
    }
    const uint16_t stop = k < list.size() ? std::min(end, list[k].begin) : end;
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(k), {at, stop, {}});
    at = stop;
  }
}

void Checker::tensor(const machine::TensorEvent& e) {
  using Kind = machine::TensorEvent::Kind;
  if (e.kind == Kind::MmaDone || e.kind == Kind::CopyDone) return;
  State& s = *s_;
  CtaState& cta = s.of(*e.warp->cta);
  WarpState& w = s.of(*e.warp);
  switch (e.kind) {
    case Kind::Mma:
      // A commit that this thread comes after was not meant for this MMA.
      for (const LaneGroup& g : w.groups) {
        if ((g.mask & e.mask) == 0) continue;
        std::erase_if(cta.empty_commits, [&](const EmptyCommit& x) {
          return x.phase != kNotArrived && (State::knows(g.now.any, x.key, __builtin_ctz(x.mask), x.n) ||
                                            State::known(g.now.any, x.barrier) > x.phase);
        });
      }
      [[fallthrough]];
    case Kind::Copy:
    case Kind::Load:
    case Kind::Store:
      s.tensor_access(cta, w, e);
      if (e.peer != nullptr) s.tensor_access(s.of(*e.peer), w, e);
      break;
    case Kind::Alloc:
    case Kind::Dealloc: {
      const machine::TensorRegion& r = e.regions->front();
      const auto begin = r.column, end = static_cast<uint16_t>(r.column + r.columns);
      // The warp does it as one: what one of its lanes knows is enough.
      LaneGroup whole;
      for (const LaneGroup& g : w.groups) whole.now.join(g.now);
      if (e.kind == Kind::Alloc) {  // all lanes have written the address
        s.each_group(w, e.mask, [&](LaneGroup& g) {
          g.now.order = Clock::with_warp(g.now.order, w.key, e.mask, w.n);
          set_any(g.now, Clock::with_warp(g.now.any, w.key, e.mask, w.n));
        });
        State::merge_groups(w);
      }
      const auto each_entry = [&](CtaState& of, const auto& f) {
        for (std::vector<TensorColumns>& list : of.tensor) {
          State::split_columns(list, begin, end);
          for (TensorColumns& c : list) {
            if (c.end > begin && c.begin < end) f(c);
          }
        }
      };
      const auto ask = [&](CtaState& of, const TensorColumns& c) {
        for (const TensorRecord& a : c.records) {
          if (a.of_nothing) s.unwritten_columns(a.inst, s.who(a.key, a.mask), c);
          s.tensor_meets(of, a, {e.kind, e.inst, w.key, w.n, e.mask, true, 0, 0, c.begin, c.end, &whole});
        }
      };
      if (e.kind == Kind::Alloc) break;  // what was freed has no records
      each_entry(cta, [&](TensorColumns& c) {
        ask(cta, c);
        c.records.clear();
      });
      if (e.peer == nullptr) break;
      // Nor may the other CTA be at its columns any more (§9.7.16.7.1).
      TensorRecord freed;
      freed.kind = Kind::Dealloc;
      freed.writes = true;
      freed.inst = e.inst;
      freed.key = w.key;
      freed.n = w.n;
      freed.mask = e.mask;
      CtaState& peer = s.of(*e.peer);
      each_entry(peer, [&](TensorColumns& c) {
        ask(peer, c);
        c.records.assign(1, freed);
      });
      break;
    }
    case Kind::WaitLoad:
      w.tensor_loads_waited.push_back(w.n);
      break;
    case Kind::WaitStore:
      w.tensor_stores_waited.push_back(w.n);
      break;
    case Kind::FenceBefore:
      s.each_group(w, e.mask, [&](LaneGroup& g) { g.tensor_n = w.n; });
      State::merge_groups(w);
      break;
    case Kind::FenceAfter:
      s.each_group(w, e.mask, [&](LaneGroup& g) {
        g.after_any = g.now.any;
        g.after_tensor = g.now.fenced_tensor;
      });
      State::merge_groups(w);
      break;
    case Kind::Commit: {
      BarrierState& state = s.of(*e.barrier_owner).barriers[e.barrier];
      const uint64_t barrier = state.key;
      const int lane = __builtin_ctz(e.mask);
      const uint32_t thread = e.warp->first_thread() + static_cast<uint32_t>(lane);
      for (const LaneGroup& g : w.groups) {
        if ((g.mask & e.mask) == 0) continue;
        s.signals(*e.barrier_owner, e.barrier, state, w, lane, g.now, e.inst, false, "commits to");
        state.arrived.in_time = Clock::with_warp(Clock::join(state.arrived.in_time, g.now.in_time), w.key, e.mask, w.n);
      }
      // One of no operation arrives at once.
      if (e.op != 0) s.used_from_outside(*e.barrier_owner, w, e.mask, e.inst, "commits to", e.barrier, true, e.op);
      ThreadState& t = cta.threads[thread];
      if (!e.further) t.committed = std::exchange(t.uncommitted, {});
      for (const uint32_t index : t.committed) s.operations[index].barrier = barrier;
      const bool nothing = t.committed.empty();
      s.of(*e.barrier_owner).commits[barrier].push_back({e.inst, e.op, t.committed, t.mma_order, t.mma_any, &cta});
      if (!nothing) break;
      const auto same = std::find_if(cta.empty_commits.begin(), cta.empty_commits.end(), [&](const EmptyCommit& x) {
        return x.barrier == barrier && x.inst == e.inst && x.key == w.key && x.mask == e.mask && x.phase != kNotArrived;
      });
      if (same == cta.empty_commits.end())
        cta.empty_commits.push_back({barrier, kNotArrived, e.inst, w.key, w.n, e.mask});
      break;
    }
    default:
      break;
  }
  w.n++;
}

void Checker::group(const GroupEvent& e) {
  using Kind = GroupEvent::Kind;
  State& s = *s_;
  WarpState& w = s.of(*e.warp);
  CtaState& cta = s.of(*e.warp->cta);
  for_lanes(e.mask, [&](int l) {
    const uint32_t thread = e.warp->first_thread() + static_cast<uint32_t>(l);
    ThreadState& t = cta.threads[thread];
    const uint64_t key = uint64_t{e.warp->cta->linear} << 12 | thread;
    const auto learn = [&](uint64_t component, uint64_t count) {
      if (count == 0) return;
      s.each_group(w, LaneMask{1} << l, [&](LaneGroup& g) {
        g.now.order = Clock::with(g.now.order, component, count);
        set_any(g.now, Clock::with(g.now.any, component, count));
      });
    };
    const auto done = [&](const std::vector<uint64_t>& groups) {
      return groups.size() > e.allowed ? groups[groups.size() - 1 - e.allowed] : 0;
    };
    const bool waits_for_copies = e.kind == Kind::CpAsyncWait;
    if (waits_for_copies || e.kind == Kind::BulkWait || e.kind == Kind::BulkWaitRead)
      ((waits_for_copies ? t.copy_issued : t.bulk_issued) > 0 ? t.own_waits : cta.stray_waits)++;
    switch (e.kind) {
      case Kind::BulkCommit:
        t.bulk_groups.push_back(t.bulk_issued);
        break;
      case Kind::CpAsyncCommit:
        t.copy_groups.push_back(t.copy_issued);
        break;
      case Kind::BulkWait:
        learn(kBulkWriteKey | key, done(t.bulk_groups));
        [[fallthrough]];
      case Kind::BulkWaitRead:
        learn(kBulkReadKey | key, done(t.bulk_groups));
        break;
      case Kind::CpAsyncWait:
        learn(kCpAsyncKey | key, e.inst->sub != 0 ? t.copy_issued : done(t.copy_groups));
        break;
      case Kind::CpAsyncMbarrierArrive:
        break;
    }
  });
  State::merge_groups(w);
  w.n++;
}

// --- the end ---

void Checker::State::check_bytes_at_exit(Cta& cta) {
  for (const async::Mbarrier& b : async::state(cta).barriers) {
    const BarrierState& known_barrier = of(cta).barriers[b.offset];
    // Bytes still in flight will be counted; that they are in flight is a finding of its own.
    const int64_t tx = b.tx - known_barrier.in_flight;
    if (tx == 0) continue;
    const Inst* where = b.last_expect != nullptr ? b.last_expect : known_barrier.first_copy;
    find("tx-bytes-mismatch", Severity::Error, where, known_barrier.first_copy, [&](Diagnostic& d) {
      d.message = tx < 0
                      ? fmt::format("the block ended with {} bytes more counted by `{}` than were announced", -tx,
                                    async::barrier_name(cta, b.offset))
                      : fmt::format("the block ended while `{}` still expected {} bytes for which no copy was issued",
                                    async::barrier_name(cta, b.offset), tx);
      d.hint = kBytesHint;
      if (known_barrier.first_copy != nullptr)
        d.related = {{place(known_barrier.first_copy), "a copy that signals it"}};
    });
  }
}

/// Barriers that wait for each other: who signalled one in earlier phases, and not in this one, waits for the next.
void Checker::State::print_cycle() {
  struct Edge {
    uint32_t to;       ///< barrier, as an index into `nodes`
    std::string text;  ///< "warp 0, which waits for `empty[0]` (kernel.cu:34)"
  };
  struct Node {
    Cta* owner;
    uint32_t offset;
    std::vector<Edge> edges;
  };
  std::vector<Node> nodes;
  const auto node_of = [&nodes](Cta* owner, uint32_t offset) {
    for (uint32_t k = 0; k < nodes.size(); k++) {
      if (nodes[k].owner == owner && nodes[k].offset == offset) return k;
    }
    nodes.push_back({owner, offset, {}});
    return static_cast<uint32_t>(nodes.size() - 1);
  };
  const auto each_wait = [&](auto&& f) {
    for (auto& d : launch->resident) {
      for (auto& cta : d->ctas) {
        for (Warp& w : cta->warps) {
          for (const machine::Fragment& x : w.fragments) {
            const bool blocked = x.state == machine::Fragment::State::Blocked;
            if (!x.waiting()) continue;
            for (const machine::WaitTarget& t : x.targets()) {
              if (t.kind == machine::WaitTarget::Kind::Mbarrier) f(w, t, blocked ? x.wait_pc : x.test_pc);
            }
          }
        }
      }
    }
  };
  each_wait([&](Warp&, const machine::WaitTarget& t, uint32_t) { node_of(t.owner, t.offset); });
  for (Node& n : nodes) {
    const async::Mbarrier* b = async::state(*n.owner).find(n.offset);
    if (b == nullptr) continue;
    const std::vector<ArrivalRecord>& history = of(*n.owner).barriers[n.offset].arrivals;
    each_wait([&](Warp& w, const machine::WaitTarget& t, uint32_t pc) {
      const uint32_t key = of(*w.cta).warps[w.index]->key;
      LaneMask before = 0, now = 0;
      for (const ArrivalRecord& a : history) {
        if (a.key == key) (a.phase == b->phase ? now : before) |= a.mask;
      }
      const LaneMask owing = before & ~now & t.mask;
      if (owing == 0) return;
      n.edges.push_back({node_of(t.owner, t.offset), fmt::format("{}, who wait for `{}` ({})", who(key, owing),
                                                                 async::barrier_name(*t.owner, t.offset),
                                                                 at(program().place(program().code[pc])))});
    });
  }
  // Walk from each node along first edges not yet walked; a node met again closes the cycle.
  for (uint32_t start = 0; start < nodes.size(); start++) {
    std::vector<std::pair<uint32_t, const Edge*>> path;
    std::vector<bool> seen(nodes.size(), false);
    for (uint32_t at_node = start; !seen[at_node];) {
      seen[at_node] = true;
      if (nodes[at_node].edges.empty()) break;
      const Edge& e = nodes[at_node].edges.front();
      path.emplace_back(at_node, &e);
      at_node = e.to;
      if (at_node != start) continue;
      std::string text = "cycle: ";
      for (const auto& [from, edge] : path) {
        text += fmt::format("`{}` misses an arrival of {}; ",
                            async::barrier_name(*nodes[from].owner, nodes[from].offset), edge->text);
      }
      text.resize(text.size() - 2);
      launch->state.push_back(std::move(text));
      return;
    }
  }
}

/// Who waits for a barrier while MMAs were never committed may well wait for that commit.
void Checker::State::blame_missing_commit() {
  for (const auto& [cta, c] : ctas) {
    for (const auto& [thread, t] : c->threads) {
      if (t.uncommitted.empty()) continue;
      for (Diagnostic& d : launch->diagnostics) {
        if (d.id != "deadlock" || !d.hint.empty()) continue;
        const SourcePlace mma = place(operations[t.uncommitted.back()].info.inst);
        d.hint =
            "No tcgen05.commit follows the MMA; one behind it, by the same thread, makes the tensor core arrive on the "
            "barrier.";
        d.related.push_back({mma, "an MMA that nobody commits"});
      }
      return;
    }
  }
}

void Checker::State::explain_deadlock() {
  print_cycle();
  blame_missing_commit();
  machine::Reachability reach(*launch);
  std::map<std::pair<const Cta*, uint32_t>, Arrivers> arrivers;  // by barrier
  for (auto& d : launch->resident) {
    for (auto& cta : d->ctas) {
      for (Warp& w : cta->warps) {
        for (const machine::Fragment& f : w.fragments) {
          if (!f.waiting()) continue;
          for (const machine::WaitTarget& t : f.targets()) {
            if (t.kind != machine::WaitTarget::Kind::Mbarrier) continue;
            const async::Mbarrier* b = async::state(*t.owner).find(t.offset);
            if (b == nullptr) continue;
            const std::string name = async::barrier_name(*t.owner, t.offset);
            const BarrierState& known_barrier = of(*t.owner).barriers[t.offset];
            const Inst* wait = &program().code[f.state == machine::Fragment::State::Blocked ? f.wait_pc : f.test_pc];
            if (b->tx != 0 && (b->pending == 0 || (b->announced == 0 && b->tx < 0))) {
              const Inst* where = b->last_expect != nullptr ? b->last_expect : known_barrier.first_copy;
              find("tx-bytes-mismatch", Severity::Error, where, wait, [&](Diagnostic& d) {
                d.message =
                    b->announced == 0
                        ? fmt::format("{} bytes were counted by `{}` in phase {}, and none were announced", b->arrived,
                                      name, b->phase)
                        : fmt::format(
                              "{} bytes are announced for phase {} of `{}`, but copies of {} bytes in all signalled it",
                              b->announced, b->phase, name, b->arrived);
                d.hint = kBytesHint;
                d.related = {{place(wait), "waits for it"}};
                if (known_barrier.first_copy != nullptr)
                  d.related.push_back({place(known_barrier.first_copy), "a copy that signals it"});
              });
              continue;
            }
            // A parity that cannot come: the phase before is complete, and this thread, which has not seen it, asks for
            // the next one.
            const WarpState& waiter = *of(*cta).warps[w.index];
            const bool skipped = t.by_parity && b->phase > 0 && [&] {
              bool all = true;
              for (const LaneGroup& g : waiter.groups) {
                // Even distance: the parity is right, and the barrier has lapped the thread.
                const uint64_t seen = known(g.now.order, known_barrier.key);
                if ((g.mask & t.mask) != 0) all = all && seen < b->phase && (b->phase - seen) % 2 == 1;
              }
              return all;
            }();
            if (skipped) {
              find("stale-parity", Severity::Error, wait, nullptr, [&](Diagnostic& d) {
                d.message = fmt::format(
                    "{} wait for parity {} of `{}`, which is that of phase {}; phase {} is complete and they have not "
                    "seen it, and the next one cannot complete without them",
                    who(waiter.key, t.mask), b->phase & 1, name, b->phase, b->phase - 1);
                d.hint = kParityHint;
              });
              continue;
            }
            // Overtaken: the phase that this thread needs, and the one behind it, are complete.
            const auto seen_by_all = [&] {
              uint64_t seen = b->phase;
              for (const LaneGroup& g : waiter.groups) {
                if ((g.mask & t.mask) != 0) seen = std::min(seen, known(g.now.order, known_barrier.key));
              }
              return seen;
            }();
            if (t.by_parity && b->phase >= seen_by_all + 2 && (b->phase - seen_by_all) % 2 == 0) {
              find("phase-overrun", Severity::Error, wait, known_barrier.completing, [&](Diagnostic& d) {
                d.message = fmt::format(
                    "phases {} and {} of `{}` completed before this wait, by {}, had seen the first of them: it waits "
                    "for "
                    "phase {}, which has the same parity and never completes",
                    seen_by_all, seen_by_all + 1, name, who(waiter.key, t.mask), b->phase);
                d.hint = kOvertakenHint;
                if (known_barrier.completing != nullptr)
                  d.related = {{place(known_barrier.completing), "the latest phase was completed from here"}};
              });
              continue;
            }
            // Can the missing arrivals still come?
            const bool some = b->pending < b->expected || b->announced != 0 || b->arrived != 0;
            if (some) {
              const auto asked = arrivers.try_emplace({t.owner, t.offset});
              if (asked.second) asked.first->second = find_arrivers(t, *b, reach);
              const Arrivers others = asked.first->second;
              if (others == Arrivers::Possible) continue;
              find("arrival-count-mismatch", Severity::Error, wait, b->init, [&](Diagnostic& d) {
                d.message = fmt::format(
                    "phase {} of `{}` misses {} of its {} arrivals, and no thread is left that could arrive{}",
                    b->phase, name, b->pending, b->expected,
                    others == Arrivers::Held ? ": the others wait, at a barrier, for those that wait here" : "");
                d.hint = sibling_hint(t, *b);
                if (d.hint.empty()) d.hint = "The count given to init is the number of arrivals of a phase.";
                d.related = {{place(b->init), fmt::format("the count {} is set here", b->expected)}};
              });
              continue;
            }
            for (Diagnostic& d : launch->diagnostics) {
              if (d.id == "deadlock" && d.hint.empty() && at(d.place) == at(place(wait))) {
                d.hint = fmt::format("Nobody has arrived on `{}` in phase {}. Who should have, and what keeps them?",
                                     name, b->phase) +
                         first_wait_hint(f, t, *b, reach);
              }
            }
          }
        }
      }
    }
  }
}

/// Not from threads that have left, have arrived in this phase, wait for it or for the same barrier of another CTA of
/// the cluster (where they are in the same position), or are held in a barrier by somebody who does. The last kind
/// counts nevertheless if it would arrive behind the barrier, before the next turn of a loop: then the barrier stands
/// in the wrong place, not the count.
Checker::State::Arrivers Checker::State::find_arrivers(const machine::WaitTarget& t, const async::Mbarrier& b,
                                                       machine::Reachability& reach) {
  struct Lanes {
    const Warp* warp;
    const machine::Fragment* fragment;
  };
  const auto arrived_at = [this](Cta& owner, uint32_t offset, uint64_t phase, uint32_t key) {
    const auto& barriers = of(owner).barriers;
    const auto found = barriers.find(offset);
    LaneMask mask = 0;
    if (found == barriers.end()) return mask;
    for (const ArrivalRecord& a : found->second.arrivals) {
      if (a.key == key && a.phase == phase) mask |= a.mask;
    }
    return mask;
  };
  std::vector<Lanes> waiters, free;
  for (const auto& cta : t.owner->domain->ctas) {
    const async::Mbarrier* own = cta->done ? nullptr : async::state(*cta).find(t.offset);
    for (const Warp& x : cta->warps) {
      if (x.fragments.empty()) continue;
      const uint32_t key = of(*cta).warps[x.index]->key;
      const LaneMask arrived = arrived_at(*t.owner, t.offset, b.phase, key);
      const LaneMask arrived_own =
          own != nullptr && cta.get() != t.owner ? arrived_at(*cta, t.offset, own->phase, key) : 0;
      for (const machine::Fragment& o : x.fragments) {
        const bool here = std::any_of(o.targets().begin(), o.targets().end(), [&](const machine::WaitTarget& y) {
          return y.kind == t.kind && y.offset == t.offset && y.owner->domain == t.owner->domain;
        });
        if (here) {
          waiters.push_back({&x, &o});
        } else if ((o.mask & arrived) == 0) {
          if (cta.get() != t.owner && !reach.reaches(o, machine::Reachability::Goal::Signal)) continue;
          // Who arrived at its own block's barrier instead went past the arrive.
          if ((o.mask & arrived_own) == 0 && reach.reaches(o, machine::Reachability::Goal::Signal, 0, true))
            return Arrivers::Possible;
          free.push_back({&x, &o});
        }
      }
    }
  }
  if (free.empty()) return Arrivers::None;
  for (bool changed = true; changed && !free.empty();) {
    changed = std::erase_if(free, [&](const Lanes& l) {
                const bool held = std::any_of(waiters.begin(), waiters.end(), [&](const Lanes& y) {
                  return reach.waits_for(*l.warp, *l.fragment, *y.warp, *y.fragment);
                });
                if (held) waiters.push_back(l);
                return held;
              }) != 0;
  }
  return free.empty() ? Arrivers::Held : Arrivers::Possible;
}

/// Where threads of other CTAs of the cluster have arrived at their own block's barrier of the same place, which nobody
/// completes either: an address without mapa (PTX §9.7.9.23) names the own block's.
std::string Checker::State::sibling_hint(const machine::WaitTarget& t, const async::Mbarrier& b) {
  uint32_t there = 0;
  std::string names;
  for (const auto& cta : t.owner->domain->ctas) {
    if (cta.get() == t.owner || cta->done) continue;
    const async::Mbarrier* own = async::state(*cta).find(t.offset);
    if (own == nullptr || own->pending == own->expected) continue;
    const auto& barriers = of(*cta).barriers;
    const auto found = barriers.find(t.offset);
    if (found == barriers.end() ||
        std::none_of(found->second.arrivals.begin(), found->second.arrivals.end(), [&](const ArrivalRecord& a) {
          return a.phase == own->phase && a.key / warps_per_cta == cta->linear;
        }))
      continue;
    there += own->expected - own->pending;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", cta->linear);
  }
  if (there < b.pending) return {};
  return fmt::format(
      "`{}` of CTA {}, of the same cluster, has arrivals of its own threads, which this one misses: without mapa an "
      "address names the own CTA's barrier.",
      async::barrier_name(*t.owner, t.offset), names);
}

/// What to add where nobody has arrived in the phase that is waited for.
std::string Checker::State::first_wait_hint(const machine::Fragment& f, const machine::WaitTarget& t,
                                            const async::Mbarrier& b, machine::Reachability& reach) {
  for (const auto& cta : t.owner->domain->ctas) {
    const async::Mbarrier* own = cta->done ? nullptr : async::state(*cta).find(t.offset);
    if (cta.get() == t.owner || own == nullptr || own->phase <= b.phase) continue;
    return fmt::format(
        " That of CTA {} has completed phase {}: do the arrive, and the mask of a multicast, name this CTA, too?",
        cta->linear, b.phase);
  }
  // PTX §9.7.13.15.16: the phase before the first one counts as complete.
  const auto first = [](const machine::WaitTarget& y) {
    if (y.kind != machine::WaitTarget::Kind::Mbarrier || !y.by_parity || (y.phase & 1) != 0) return false;
    const async::Mbarrier* m = async::state(*y.owner).find(y.offset);
    return m != nullptr && m->phase == 0 && m->pending == m->expected;
  };
  if (!first(t) || !reach.reaches(f, machine::Reachability::Goal::Signal, 0, true)) return {};
  std::string other;
  for (const Warp& w : t.owner->warps) {
    for (const machine::Fragment& o : w.fragments) {
      const bool blocked = o.state == machine::Fragment::State::Blocked;
      if (!o.waiting()) continue;
      for (const machine::WaitTarget& y : o.targets()) {
        if (!other.empty() || !first(y) || y.offset == t.offset) continue;
        other = fmt::format(" Nobody on `{}` either, for which {} waits.", async::barrier_name(*y.owner, y.offset),
                            at(place(&program().code[blocked ? o.wait_pc : o.test_pc])));
      }
    }
  }
  return other +
         " A wait for parity 1 of a fresh barrier returns at once: the first wait for a slot to become free is of that "
         "parity.";
}

void Checker::State::suspect_waits(WarpState& w, uint64_t barrier, const MbarrierEvent& e) {
  LastArrival& last = w.last_arrivals[barrier];
  for (auto r = w.waits.rbegin(); r != w.waits.rend(); ++r) {
    if (r->barrier != barrier || (r->mask & e.mask) == 0) continue;
    for_lanes(r->mask & e.mask, [&](int l) {
      const auto lane = static_cast<size_t>(l);
      const bool newest = std::none_of(
          w.waits.rbegin(), r, [&](const WaitRecord& x) { return x.barrier == barrier && (x.mask >> l & 1) != 0; });
      if (!newest || last.phase_plus_one[lane] == 0 || r->n <= last.n[lane]) return;
      // The wait came after this lane's last arrival, and did not see the phase in which that arrival was.
      const bool stale = r->complete && r->stale && r->phase + 1 < last.phase_plus_one[lane];
      if (stale || !r->complete) suspects.push_back({r->inst, stale, r->phase, e.inst});
    });
    if (suspects.size() > 64) break;
  }
  for_lanes(e.mask, [&](int l) {
    last.phase_plus_one[static_cast<size_t>(l)] = e.phase + 1;
    last.n[static_cast<size_t>(l)] = w.n;
  });
}

/// The diagnosis of a wait that was satisfied too early (`stale`) or whose false answer was ignored.
Finding Checker::State::wait_at_fault(const Inst* wait, bool stale, uint64_t phase, const SourcePlace& next,
                                      const std::string& what_follows) const {
  Finding c;
  c.diagnostic.id = stale ? "stale-parity" : "missing-retry-loop";
  c.diagnostic.place = place(wait);
  if (stale) {
    c.diagnostic.message = fmt::format(
        "this wait was satisfied by {}, not by the phase that the thread needs before it goes on at {}",
        phase + 1 == 0 ? std::string("the barrier's initial state (a fresh barrier answers true for parity 1)")
                       : fmt::format("phase {}, which it had seen before", phase),
        at(next));
    c.diagnostic.hint = kParityHint;
  } else {
    c.diagnostic.message =
        fmt::format("this wait answered false, and the thread went on to {} without asking again", at(next));
    c.diagnostic.hint = "try_wait and test_wait may answer false before the phase completes: ask in a loop.";
  }
  c.diagnostic.related.push_back({next, what_follows});
  return c;
}

void Checker::State::add_causes(bool deadlock) {
  // The barriers' arrivals, those of living CTAs included.
  for (auto& [cta, c] : ctas) {
    for (auto& [offset, b] : c->barriers) {
      if (!b.arrivals.empty()) arrivals[b.key] = b.arrivals;
    }
  }
  // Where the order is there and only a fence or a wait of another kind is missing, no wait came too early.
  const auto in_order = [](const Finding& f) {
    const std::string& id = f.diagnostic.id;
    return id == "missing-proxy-fence" || id == "proxy-fence-misplaced" || id == "missing-tcgen05-fence" ||
           id == "missing-tcgen05-wait" || id == "scope-too-narrow";
  };
  std::vector<Finding> causes;
  for (const Finding& f : findings) {
    if (in_order(f)) continue;
    const auto signals_later = [&](const PartyOf& me, const PartyOf& p, const WaitRecord& r) {
      if (p.party == Party::Async) {
        const Operation& o = operations[p.n];
        // Who waited first and issued then did not mean the end of what it issued.
        const bool own = o.key == me.key && (r.mask >> o.info.lane & 1) != 0 && r.n < o.n;
        return !own && o.barrier == r.barrier && (!o.signalled || r.phase + 1 <= o.phase || !r.complete);
      }
      auto found = arrivals.find(r.barrier);
      if (p.party != Party::Thread || found == arrivals.end()) return false;
      return std::any_of(found->second.begin(), found->second.end(), [&](const ArrivalRecord& a) {
        return a.key == p.key && (a.mask & p.mask) != 0 && a.n >= p.n &&
               (r.complete ? a.phase + 1 > r.phase + 1 : a.phase + 1 >= r.phase + 1);
      });
    };
    const auto blame = [&](const PartyOf& me, const std::vector<WaitRecord>& waits, const PartyOf& other,
                           const SourcePlace& mine) {
      for (const WaitRecord& r : waits) {
        // The fresh barrier's answer is wrong for one who reads: nothing can have been written yet. For one who writes
        // it is the usual start.
        const bool stale = r.complete && (r.stale || (r.fresh() && me.reads));
        if ((r.complete && !stale) || !signals_later(me, other, r)) continue;
        causes.push_back(wait_at_fault(r.inst, r.complete, r.phase, mine, f.diagnostic.id));
        return;
      }
    };
    blame(f.later, f.later_waits, f.earlier, f.diagnostic.place);
    blame(f.earlier, f.earlier_waits, f.later,
          f.diagnostic.related.empty() ? f.diagnostic.place : f.diagnostic.related.front().place);
  }
  const bool trouble = deadlock || std::any_of(findings.begin(), findings.end(), [](const Finding& f) {
                         return f.diagnostic.severity == Severity::Error;
                       });
  for (const Suspect& x : suspects) {
    if (trouble) causes.push_back(wait_at_fault(x.wait, x.stale, x.phase, place(x.arrive), "the next arrival"));
  }
  for (Finding& c : causes) {
    const bool known_already = std::any_of(findings.begin(), findings.end(), [&](const Finding& f) {
      return f.diagnostic.id == c.diagnostic.id && f.diagnostic.place.line == c.diagnostic.place.line;
    });
    if (!known_already) findings.push_back(std::move(c));
  }
}

/// Arrivals that overrun a barrier which nobody ever waits for: where an access went wrong for the same lack, that says
/// it better.
void Checker::State::drop_consequences() {
  // Two accesses without any order, found in both orders: the order in which they stand in the text is the one that was
  // meant, so what is found of the other one goes behind. And where some lanes lack the order, the fence that others
  // lack is not the point.
  using Lines = std::pair<SourcePlace, SourcePlace>;  // of the later and the earlier access
  std::vector<Lines> races, others;
  for (const Finding& f : findings) {
    const Diagnostic& d = f.diagnostic;
    if (rank_of(d) == 4 && !d.related.empty())
      (d.id == "data-race" ? races : others).emplace_back(d.place, d.related.front().place);
  }
  const auto in = [](const std::vector<Lines>& list, const SourcePlace& later, const SourcePlace& earlier) {
    return std::any_of(list.begin(), list.end(),
                       [&](const Lines& l) { return l.first == later && l.second == earlier; });
  };
  std::stable_partition(findings.begin(), findings.end(), [&](const Finding& f) {
    const Diagnostic& d = f.diagnostic;
    if (d.related.empty()) return true;
    const SourcePlace &later = d.place, &earlier = d.related.front().place;
    if (d.id == "data-race") return earlier.line < later.line || !in(others, earlier, later);
    return d.id != "missing-proxy-fence" || !in(races, later, earlier);
  });
  // Bytes of an operand that are not there yet, because nobody waited for those who bring them.
  std::vector<SourcePlace> early;
  for (const Finding& f : findings) {
    if (f.diagnostic.id == "async-read-before-complete" || f.diagnostic.id == "data-race")
      early.push_back(f.diagnostic.place);
  }
  std::erase_if(findings, [&early](const Finding& f) {
    return f.diagnostic.id == "bad-descriptor" &&
           std::find(early.begin(), early.end(), f.diagnostic.place) != early.end();
  });
  // Who waits for fewer bytes than come does not wait for the copies that bring the rest.
  std::vector<SourcePlace> miscounted;
  for (const Finding& f : findings) {
    if (f.diagnostic.id != "tx-bytes-mismatch") continue;
    for (const RelatedPlace& r : f.diagnostic.related) miscounted.push_back(r.place);
  }
  std::erase_if(findings, [&miscounted](const Finding& f) {
    return f.diagnostic.id == "remote-cta-gone" &&
           std::find(miscounted.begin(), miscounted.end(), f.diagnostic.place) != miscounted.end();
  });
  const bool access = std::any_of(findings.begin(), findings.end(), [](const Finding& f) {
    const Diagnostic& d = f.diagnostic;
    return d.severity == Severity::Error &&
           (rank_of(d) == 4 || d.id == "accumulator-overwritten" || d.id == "tmem-freed-early");
  });
  if (access)
    std::erase_if(findings, [](const Finding& f) {
      return f.diagnostic.id == "phase-overrun" && f.awaited != nullptr && !*f.awaited;
    });
}

void Checker::launch_end(Launch& launch) {
  State& s = *s_;
  const bool deadlock = std::any_of(launch.diagnostics.begin(), launch.diagnostics.end(),
                                    [](const Diagnostic& d) { return d.id == "deadlock"; });
  if (deadlock) s.explain_deadlock();
  s.add_causes(deadlock);
  s.drop_consequences();
  std::stable_partition(s.findings.begin(), s.findings.end(), [](const Finding& f) { return !f.latent; });
  const auto latent = std::find_if(s.findings.begin(), s.findings.end(), [](const Finding& f) { return f.latent; });
  std::for_each(s.findings.begin(), latent, [&launch](Finding& f) { launch.report(std::move(f.diagnostic)); });
  std::stable_sort(launch.diagnostics.begin(), launch.diagnostics.end(),
                   [](const Diagnostic& a, const Diagnostic& b) { return rank_of(a) < rank_of(b); });
  std::for_each(latent, s.findings.end(), [&launch](Finding& f) { launch.report(std::move(f.diagnostic)); });
  shadow_bytes_ = s.shadow_bytes.most;
  s_ = std::make_unique<State>();
}

}  // namespace handoff::check
