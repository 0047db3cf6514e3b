// The moving parts of a run: launch ⊃ domains (clusters) ⊃ CTAs ⊃ warps ⊃ fragments.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "grader/emulator/machine/aligned_bytes.h"
#include "grader/emulator/machine/device_model.h"
#include "grader/emulator/machine/diagnostic.h"
#include "grader/emulator/machine/instruction.h"
#include "grader/emulator/machine/memory.h"
#include "grader/emulator/machine/observer.h"
#include "grader/emulator/machine/program.h"
#include "grader/emulator/machine/random.h"
#include "grader/emulator/machine/schedule.h"

namespace handoff::machine {

struct Cta;
struct Domain;
struct Launch;

/// A virtual time that never comes.
inline constexpr uint64_t kNever = ~uint64_t{0};

/// Something a blocked fragment waits for.
struct WaitTarget {
  /// An mbarrier's phase, a bar/barrier, bar.warp.sync, the thread's own asynchronous operations, columns of tensor
  /// memory (owner: the CTA that wants them), that the other CTA of a pair allocates or frees tensor memory, too
  /// (owner: the CTA that waits), or barrier.cluster (owner: the CTA of the waiting thread).
  enum class Kind : uint8_t { Mbarrier, NamedBarrier, WarpSync, Async, TensorMemory, TensorPair, ClusterBarrier };
  Kind kind;        ///< what is waited for
  Cta* owner;       ///< of the mbarrier
  uint32_t offset;  ///< mbarrier: shared offset; named barrier: id; warp sync: member mask; async: 0;
                    ///< pair: 0 alloc, 1 dealloc
  uint64_t phase;   ///< mbarrier: phase waited for; named barrier: generation
  LaneMask mask;    ///< lanes of the fragment that wait for it
  bool by_parity;   ///< mbarrier: the wait names a parity rather than a token
};

/// Lanes of a warp at one place: same call stack, same PC.
struct Fragment {
  /// Whether it can run, and if not, why.
  enum class State : uint8_t {
    Ready,     ///< can run
    Parked,    ///< at a .sync/.aligned instruction whose lanes are not all here
    Blocked,   ///< waits for one of `waits`
    Spinning,  ///< a loop without effect; woken when memory that it may observe changes
    Sleeping,  ///< until wake_time
  };
  uint32_t pc = 0;                ///< index into Program::code
  LaneMask mask = 0;              ///< its lanes
  uint32_t stack = 0;             ///< node of Launch::stacks, 0 = the kernel itself
  State state = State::Ready;     ///< as above
  bool resumed = false;           ///< the instruction at pc is being executed again after a block
  uint64_t wake_time = 0;         ///< Sleeping: virtual time at which it goes on
  std::vector<WaitTarget> waits;  ///< Blocked: any of these wakes it

  /// try_wait: the place where it last answered false, and `effects` at that time; a second try there may sleep.
  ///@{
  uint32_t false_pc = ~0u;
  uint64_t false_effects = 0;
  ///@}
  /// The barrier that was last tested without success and the place of the test, for reports of spinning loops.
  ///@{
  std::vector<WaitTarget> last_test;
  uint32_t test_pc = ~0u;
  ///@}
  uint32_t wait_pc = 0;  ///< instruction that blocked

  /// What it waits for: any of what blocks it; of a loop, what it last tested without success.
  const std::vector<WaitTarget>& targets() const { return state == State::Blocked ? waits : last_test; }
  /// Is it blocked at one of them, or does it spin on one?
  bool waiting() const { return state == State::Blocked || state == State::Spinning; }

  // Spin detection: see interpreter.cc.
  uint64_t effects = 0;  ///< counts side effects of this fragment
  /// `effects` when the backward branch was taken last, that branch, how often in a row, and the count at which to look
  /// next.
  ///@{
  uint64_t spin_effects = 0;
  uint32_t spin_branch = ~0u;
  uint32_t spin_count = 0, spin_next_check = 0;
  ///@}
  bool read_clock = false;               ///< since the last backward branch
  uint32_t spin_sleep = 0;               ///< cycles of the next sleep of a loop that watches a clock
  std::vector<std::byte> spin_snapshot;  ///< registers that the loop carries, at the last look
  /// shared_epoch() and Launch::global_epoch at the last look.
  ///@{
  uint64_t seen_shared_epoch = 0, seen_global_epoch = 0;
  ///@}
};

/// Which lanes of a warp have executed which collective instructions, for the question of whether somebody passed one
/// by. A small cache: where two instructions share an entry it says nothing of either from then on.
class CollectiveHistory {
 public:
  /// The lanes executed the collective at this place.
  void add(uint32_t pc, LaneMask mask) {
    Entry& e = entries_[index(pc)];
    if (e.pc == ~0u) e.pc = pc;
    e.shared = e.shared || e.pc != pc;
    e.mask |= mask;
  }
  /// Has none of the lanes executed the collective at this place, for certain?
  bool never(uint32_t pc, LaneMask mask) const {
    const Entry& e = entries_[index(pc)];
    return e.pc == ~0u || (!e.shared && (e.pc != pc || (e.mask & mask) == 0));
  }

 private:
  struct Entry {
    uint32_t pc = ~0u;
    LaneMask mask = 0;
    bool shared = false;
  };
  static size_t index(uint32_t pc) { return pc * 2654435761u >> 28; }  // of 16, scattered
  std::array<Entry, 16> entries_;
};

/// 32 threads with their registers.
struct Warp {
  std::byte* regs = nullptr;        ///< register file, 64-byte aligned
  Cta* cta = nullptr;               ///< whose warp it is
  uint32_t index = 0;               ///< in the CTA
  LaneMask live = 0;                ///< threads that have not exited
  std::vector<Fragment> fragments;  ///< disjoint lanes, all live ones together
  uint32_t current = 0;             ///< index of the fragment that runs
  uint32_t next_pc = 0;             ///< set by control handlers
  bool reschedule = false;          ///< set by handlers that changed fragments or blocked
  bool end_slice = false;           ///< set when another warp or an event may now come first
  uint64_t time = 0;                ///< virtual time of the next instruction
  uint64_t ready_time = 0;          ///< kNever when no fragment is ready
  uint32_t turn = 0;                ///< for fairness among fragments
  CollectiveHistory collectives;    ///< what its lanes have executed together
  /// barrier.cluster: lanes that have arrived in the phase that is not complete, and lanes that have arrived and not
  /// waited since.
  ///@{
  LaneMask cluster_arrived = 0, cluster_unwaited = 0;
  ///@}
  std::vector<const Inst*> register_requests;  ///< setmaxnreg instructions executed, in order
  std::vector<std::byte> local;                ///< local memory: lane-major, Program::local_bytes each

  /// The fragment that runs.
  Fragment& fragment() { return fragments[current]; }
  /// Local memory of a lane, Program::local_bytes.
  std::byte* local_of(int lane);
  /// First thread id of this warp in its CTA.
  uint32_t first_thread() const { return index * kWarpSize; }
};

/// bar/barrier state of one id.
struct NamedBarrier {
  uint32_t arrived = 0;             ///< threads of this generation
  uint32_t expected = 0;            ///< 0: every live thread
  uint64_t generation = 0;          ///< completions so far
  bool in_use = false;              ///< some thread of this generation has arrived
  LaneMask arrived_lanes[32] = {};  ///< of this generation, by warp
  uint32_t reduction = 0;           ///< of barrier.red: .popc and .or
  uint32_t reduction_and = 1;       ///< of barrier.red.and
};

/// State that the async layer attaches to a CTA.
struct AsyncCtaState {
  virtual ~AsyncCtaState() = default;
};

/// A block: its warps, its shared memory and its barriers.
struct Cta {
  Domain* domain = nullptr;  ///< its cluster
  Launch* launch = nullptr;  ///< its grid
  uint32_t id[3] = {};       ///< %ctaid: x, y, z
  uint32_t linear = 0;       ///< linear index in the grid
  uint32_t rank = 0;         ///< in the cluster
  uint32_t window = 0;       ///< first address of its shared::cta window: rank << kRankShift
  uint32_t sm = 0;           ///< where it resides
  /// Time at which its TMA unit can start another load, and at which the way that loads and stores share is free.
  ///@{
  uint64_t load_engine_free = 0, copy_port_free = 0;
  ///@}
  AlignedBytes smem;                      ///< from offset 0; valid from kSharedBase
  std::vector<Warp> warps;                ///< by index
  std::vector<std::byte> register_block;  ///< Warp::regs point into it
  std::array<NamedBarrier, 16> barriers;  ///< by id
  std::unique_ptr<AsyncCtaState> async;   ///< mbarriers, copies and groups; the async layer's
  uint32_t live_threads = 0;              ///< threads that have not exited
  uint64_t shared_epoch = 1;              ///< counts changes of shared memory and of barriers
  /// Range [lo, hi) of shared offsets that holds live mbarriers.
  ///@{
  uint32_t guarded_lo = ~0u, guarded_hi = 0;
  ///@}
  bool done = false;  ///< every thread has exited

  /// Host address of a shared::cta offset.
  std::byte* shared(uint32_t offset) { return smem.data() + offset; }
};

/// Something that happens at a virtual time in a domain.
struct Event {
  uint64_t time = 0;      ///< virtual time at which it fires
  uint64_t sequence = 0;  ///< order of issue, which decides between events of one time
  virtual ~Event() = default;
  /// Does it.
  virtual void fire(Domain& domain) = 0;
};

/// A cluster of CTAs that are scheduled together, with its clock and events. Without clusters: one CTA.
struct Domain {
  Launch* launch = nullptr;                    ///< its grid
  std::vector<std::unique_ptr<Cta>> ctas;      ///< by rank
  uint64_t now = 0;                            ///< its clock, cycles
  uint64_t started = 0;                        ///< `now` when it became resident
  std::vector<std::unique_ptr<Event>> events;  ///< heap by (time, sequence)
  std::vector<std::unique_ptr<Event>> held;    ///< lazy and reverse schedules: released when nothing else can run
  uint64_t cluster_phase = 0;                  ///< completions of barrier.cluster
  uint64_t cluster_seen = 0;                   ///< time at which waits see the last of them
  bool stuck = false;                          ///< nothing can run until global memory changes
  uint64_t stuck_epoch = 0;                    ///< Launch::global_epoch when it got stuck
  uint32_t unanswered = 0;                     ///< tests of mbarriers that were false since one of `held` was released

  /// `event` fires at virtual time `time`, whatever the schedule.
  void add_event(std::unique_ptr<Event> event, uint64_t time);
  /// An asynchronous operation's completion: subject to the schedule.
  void add_completion(std::unique_ptr<Event> event, uint64_t nominal_time);
};

/// Hooks of the async layer.
struct AsyncHooks {
  /// The state of a CTA that starts.
  std::unique_ptr<AsyncCtaState> (*make_state)(Cta& cta) = nullptr;
  /// At the CTA's end: may report copies in flight. Called before shared memory goes away.
  void (*cta_end)(Cta& cta) = nullptr;
  /// One line for each live barrier, for deadlock reports.
  void (*describe_barriers)(Cta& cta, std::vector<std::string>& out) = nullptr;
  /// A generic or asynchronous write of [offset, offset+bytes) in the guarded range; true if it hits a live barrier.
  bool (*hits_barrier)(Cta& cta, uint32_t offset, uint32_t bytes) = nullptr;
  /// "full, parity 0": a wait target in words.
  std::string (*describe_wait)(const WaitTarget& target) = nullptr;
};

/// Extent of a grid, block or cluster.
struct Dim {
  /// At least 1 each.
  ///@{
  uint32_t x = 1, y = 1, z = 1;
  ///@}
  /// The product.
  uint64_t volume() const { return uint64_t{x} * y * z; }
};

/// How a kernel is launched.
struct LaunchConfig {
  /// Grid and cluster in CTAs, block in threads.
  ///@{
  Dim grid, block, cluster;
  ///@}
  uint32_t dynamic_smem = 0;  ///< bytes
  /// Device address of the words {bytes, barrier} through which the CTAs of a cooperative launch synchronize; 0: it is
  /// no such launch. The kernel finds the upper half in %envreg1, the lower in %envreg2 (PTX §10 leaves these registers
  /// to the driver; CUDA's cooperative_groups read them so).
  uint64_t grid_workspace = 0;
  Schedule schedule;                               ///< order of warps and completions
  uint64_t instruction_budget = 4'000'000'000ull;  ///< warp-instructions of the whole launch
  uint64_t progress_budget = 100'000'000ull;       ///< warp-instructions of one domain without any side effect
};

/// The clusters of a grid that have not started.
class LaunchQueue {
 public:
  virtual ~LaunchQueue() = default;
  /// Takes one of them off the grid at time `now` (clusterlaunchcontrol.try_cancel, PTX §9.7.13.17): %ctaid of its
  /// first CTA, or nullopt if none is left.
  virtual std::optional<std::array<uint32_t, 3>> cancel(uint64_t now) = 0;
};

/// A grid: what is run, how, and what came of it. What is looked at most comes first, in one cache line, and whether
/// anybody watches with it: a copy that has just been written leaves little else in the cache.
struct alignas(64) Launch {
  const Program* program = nullptr;   ///< the kernel
  GlobalMemory* memory = nullptr;     ///< where global addresses point
  Observer* observer = nullptr;       ///< nullptr: nobody watches
  const AsyncHooks* async = nullptr;  ///< the async layer
  Warp* running = nullptr;            ///< whose slice it is
  uint64_t global_epoch = 1;          ///< counts changes of global memory
  uint64_t next_async_id = 1;         ///< AsyncOpInfo::id of the next operation
  uint64_t next_sequence = 1;         ///< Event::sequence of the next event

  /// Executed so far, by warps and by lanes.
  ///@{
  uint64_t warp_instructions = 0, lane_instructions = 0;
  ///@}
  bool observe_accesses = false;  ///< Observer::wants_accesses(), asked once
  LaunchConfig config;            ///< grid, block, schedule
  DeviceModel model;              ///< limits of the device
  Random random;                  ///< of the random schedule

  std::vector<std::unique_ptr<Domain>> resident;  ///< started and not finished
  LaunchQueue* queue = nullptr;                   ///< while the grid runs
  uint64_t progress_mark = 0;                     ///< warp_instructions at the last side effect
  uint64_t modeled_cycles = 0;                    ///< virtual time at the end of the last domain
  std::string output;                             ///< of vprintf, bounded
  std::vector<Diagnostic> diagnostics;            ///< what was found, in order
  std::vector<std::string> state;                 ///< deadlock report
  std::string failure;                            ///< message of the fault or hang that ended it
  /// A call: nodes form a tree, so equal stacks have equal numbers.
  struct StackNode {
    uint32_t parent;     ///< node of the caller
    uint32_t return_pc;  ///< where the caller goes on
  };
  std::vector<StackNode> stacks{{0, 0}};  ///< Fragment::stack is an index

  /// Adds a diagnostic unless one with the same id and line is there already.
  void report(Diagnostic diagnostic);
  /// Reports at an instruction's place.
  void report(const Inst& inst, std::string id, std::string message, std::string hint = {},
              Severity severity = Severity::Error);
  /// The node of a call made at stack `parent` that returns to `return_pc`; made where there is none yet.
  uint32_t push_stack(uint32_t parent, uint32_t return_pc);
};

/// What things cost on the device that `launch` runs on.
inline const TimingModel& timing_of(const Launch& launch) { return *launch.model.timing; }

/// Who watches `launch`; nullptr: nobody. The core asks only here, so that a build without hooks has no trace of them.
/// What is told to one stands out of the way of those who run unwatched.
inline Observer* watcher(const Launch& launch) {
  return kHooks && __builtin_expect(launch.observer != nullptr, 0) ? launch.observer : nullptr;
}
/// Whether that one wants to know of every access.
inline bool watches_accesses(const Launch& launch) { return kHooks && launch.observe_accesses; }

/// Outcome of run().
enum class LaunchStatus : uint8_t { Ok, Fault, Hang };

/// Runs a whole grid. `launch` must have program, config, memory, async set. Never throws.
LaunchStatus run(Launch& launch);

/// The cluster that a launch has: `config.cluster`, or what the kernel declares (__cluster_dims__) where that is one
/// CTA.
Dim effective_cluster(const Program& program, const LaunchConfig& config);

/// Problems of a configuration that the driver would refuse, as one line; empty if none.
std::string check_config(const Program& program, const LaunchConfig& config, const DeviceModel& model);

// Services for handlers (interpreter.cc).

/// A side effect of the running fragment: loops that have one are not spinning.
inline void note_effect(Warp& w) { w.fragments[w.current].effects++; }
/// Shared memory or a barrier of `cta` changed.
inline void touch_shared(Cta& cta) { cta.shared_epoch++; }
/// Counts changes of the shared memory that threads of the cluster can see.
inline uint64_t shared_epoch(const Domain& domain) {
  uint64_t sum = 0;
  for (const auto& cta : domain.ctas) sum += cta->shared_epoch;
  return sum;
}
/// Global memory changed.
inline void touch_global(Launch& launch) { launch.global_epoch++; }
/// Blocks the running fragment at its current instruction, which is executed again when one of `waits` changed.
void block_and_retry(Warp& w, std::vector<WaitTarget> waits);
/// Blocks the running fragment behind its current instruction.
void block_and_continue(Warp& w, std::vector<WaitTarget> waits);
/// Wakes fragments of `cta`'s domain that wait for this target, at time `when`.
void wake(Domain& domain, WaitTarget::Kind kind, Cta* owner, uint32_t offset, uint64_t when);
/// Ends lanes of the running fragment.
void exit_lanes(Warp& w, LaneMask mask);
/// Re-reads whether any fragment can run.
void refresh(Warp& w);
/// "CTA 3 warp 1 lanes 0-31": for messages.
std::string describe_lanes(const Warp& w, LaneMask mask);
/// "CTA 3 threads 40-63", numbered in the CTA; the CTA is left out where it is the only one.
std::string describe_threads(const Warp& w, LaneMask mask);
/// Lane numbers of a mask as ranges: "0-3,7".
std::string lane_ranges(LaneMask mask);

/// The end of shared_owner() where there is no such memory; `subject` begins the message.
[[noreturn]] void fault_shared_owner(const Warp& w, uint32_t address, const std::string& subject);
/// The CTA whose shared memory a shared::cluster address names. `own_only`: the instruction is of .shared::cta, which
/// is the executing CTA's. `subject()` begins the message of a fault: "warp 0 lane 3 reads 4 bytes at". Faults
/// `out-of-bounds` and, where that CTA has ended, `remote-cta-gone`.
template <class Subject>
Cta* shared_owner(const Warp& w, uint32_t address, bool own_only, const Subject& subject) {
  const uint32_t rank = address >> kRankShift;
  if (rank == w.cta->rank) return w.cta;
  const auto& ctas = w.cta->domain->ctas;
  if (own_only || rank >= ctas.size() || ctas[rank]->done) fault_shared_owner(w, address, subject());
  return ctas[rank].get();
}

/// Reads through a generic pointer of one lane; false if the bytes are not all there.
bool read_generic(Warp& w, int lane, uint64_t address, void* out, uint32_t bytes);

/// Calls f(lane) for each lane of the mask, lowest first.
template <class F>
inline void for_lanes(LaneMask mask, F&& f) {
  while (mask != 0) {
    f(__builtin_ctz(mask));
    mask &= mask - 1;
  }
}

}  // namespace handoff::machine
