// The moving parts of a run: launch ⊃ domains (clusters) ⊃ CTAs ⊃ warps ⊃ fragments.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

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

inline constexpr uint64_t kNever = ~uint64_t{0};

/// Something a blocked fragment waits for.
struct WaitTarget {
  enum class Kind : uint8_t { Mbarrier, NamedBarrier, WarpSync, Async };
  Kind kind;
  Cta* owner;        ///< of the mbarrier
  uint32_t offset;   ///< mbarrier: shared offset; named barrier: id; warp sync: member mask; async: 0
  uint64_t phase;    ///< mbarrier: phase waited for; named barrier: generation
  LaneMask mask;     ///< lanes of the fragment that wait for it
  bool by_parity;
};

/// Lanes of a warp at one place: same call stack, same PC.
struct Fragment {
  enum class State : uint8_t {
    Ready,
    Parked,    ///< at a .sync/.aligned instruction whose lanes are not all here
    Blocked,   ///< waits for one of `waits`
    Spinning,  ///< a loop without effect; woken when memory that it may observe changes
    Sleeping,  ///< until wake_time
  };
  uint32_t pc = 0;
  LaneMask mask = 0;
  uint32_t stack = 0;   ///< node of Launch::stacks, 0 = the kernel itself
  State state = State::Ready;
  bool resumed = false;  ///< the instruction at pc is being executed again after a block
  uint64_t wake_time = 0;
  std::vector<WaitTarget> waits;

  // try_wait: the place where it last answered false; a second try there may sleep.
  uint32_t false_pc = ~0u;
  uint64_t false_effects = 0;
  // The barrier that was last tested without success, for reports of spinning loops.
  std::vector<WaitTarget> last_test;
  uint32_t test_pc = ~0u;
  uint32_t wait_pc = 0;  ///< instruction that blocked

  // Spin detection: see interpreter.cc.
  uint64_t effects = 0;          ///< counts side effects of this fragment
  uint64_t spin_effects = 0;
  uint32_t spin_branch = ~0u;
  uint32_t spin_count = 0, spin_next_check = 0;
  bool read_clock = false;       ///< since the last backward branch
  uint32_t spin_sleep = 0;       ///< cycles of the next sleep of a loop that watches a clock
  std::vector<std::byte> spin_snapshot;
  uint64_t seen_shared_epoch = 0, seen_global_epoch = 0;
};

struct Warp {
  std::byte* regs = nullptr;   ///< register file, 64-byte aligned
  Cta* cta = nullptr;
  uint32_t index = 0;          ///< in the CTA
  LaneMask live = 0;           ///< threads that have not exited
  std::vector<Fragment> fragments;
  uint32_t current = 0;        ///< index of the fragment that runs
  uint32_t next_pc = 0;        ///< set by control handlers
  bool reschedule = false;     ///< set by handlers that changed fragments or blocked
  bool end_slice = false;      ///< set when another warp or an event may now come first
  uint64_t time = 0;           ///< virtual time of the next instruction
  uint64_t ready_time = 0;     ///< kNever when no fragment is ready
  uint32_t turn = 0;           ///< for fairness among fragments
  std::vector<std::byte> local;  ///< local memory: lane-major, Program::local_bytes each

  Fragment& fragment() { return fragments[current]; }
  std::byte* local_of(int lane);
  /// First thread id of this warp in its CTA.
  uint32_t first_thread() const { return index * kWarpSize; }
};

/// bar/barrier state of one id.
struct NamedBarrier {
  uint32_t arrived = 0;          ///< threads of this generation
  uint32_t expected = 0;         ///< 0: every live thread
  uint64_t generation = 0;
  bool in_use = false;
  LaneMask arrived_lanes[32] = {};
  uint32_t reduction = 0;        ///< of barrier.red
  uint32_t reduction_and = 1;
};

/// State that the async layer attaches to a CTA.
struct AsyncCtaState {
  virtual ~AsyncCtaState() = default;
};

struct Cta {
  Domain* domain = nullptr;
  Launch* launch = nullptr;
  uint32_t id[3] = {};
  uint32_t linear = 0;                ///< linear index in the grid
  uint32_t rank = 0;                  ///< in the cluster
  std::vector<std::byte> smem;        ///< from offset 0; valid from kSharedBase
  std::vector<Warp> warps;
  std::vector<std::byte> register_block;
  std::array<NamedBarrier, 16> barriers;
  std::unique_ptr<AsyncCtaState> async;
  uint32_t live_threads = 0;
  uint64_t shared_epoch = 1;          ///< counts changes of shared memory and of barriers
  uint32_t guarded_lo = ~0u, guarded_hi = 0;  ///< range of shared offsets that holds live mbarriers
  bool done = false;

  std::byte* shared(uint32_t offset) { return smem.data() + offset; }
};

/// Something that happens at a virtual time in a domain.
struct Event {
  uint64_t time = 0;
  uint64_t sequence = 0;
  virtual ~Event() = default;
  virtual void fire(Domain& domain) = 0;
};

/// A cluster of CTAs that are scheduled together, with its clock and events. Without clusters: one CTA.
struct Domain {
  Launch* launch = nullptr;
  std::vector<std::unique_ptr<Cta>> ctas;
  uint32_t sm = 0;
  uint64_t now = 0;
  uint64_t started = 0;
  std::vector<std::unique_ptr<Event>> events;  ///< heap by (time, sequence)
  std::vector<std::unique_ptr<Event>> held;    ///< lazy and reverse schedules: released when nothing else can run
  uint64_t copy_engine_free = 0;               ///< time at which the TMA unit can start another transfer
  bool stuck = false;                          ///< nothing can run until global memory changes
  uint64_t stuck_epoch = 0;

  void add_event(std::unique_ptr<Event> event, uint64_t time);
  /// An asynchronous operation's completion: subject to the schedule.
  void add_completion(std::unique_ptr<Event> event, uint64_t nominal_time);
};

/// Hooks of the async layer.
struct AsyncHooks {
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

/// Limits and sizes of the device model.
struct DeviceModel {
  uint32_t sms = 148;                       ///< B200
  uint32_t smem_per_sm = 228 * 1024;
  uint32_t smem_per_cta = kSharedMax;
  uint32_t max_threads_per_sm = 2048;
  uint32_t max_ctas_per_sm = 32;
};

struct Dim {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t volume() const { return uint64_t{x} * y * z; }
};

struct LaunchConfig {
  Dim grid, block, cluster;
  uint32_t dynamic_smem = 0;                 ///< bytes
  Schedule schedule;
  uint64_t instruction_budget = 4'000'000'000ull;  ///< warp-instructions of the whole launch
  uint64_t progress_budget = 100'000'000ull;        ///< warp-instructions of one domain without any side effect
};

struct Launch {
  const Program* program = nullptr;
  LaunchConfig config;
  GlobalMemory* memory = nullptr;
  Observer* observer = nullptr;          ///< nullptr: nobody watches
  bool observe_accesses = false;
  const AsyncHooks* async = nullptr;
  DeviceModel model;
  Random random;

  std::vector<std::unique_ptr<Domain>> resident;
  uint64_t global_epoch = 1;
  Warp* running = nullptr;               ///< whose slice it is
  uint64_t next_async_id = 1;
  uint64_t next_sequence = 1;
  uint64_t warp_instructions = 0, lane_instructions = 0;
  uint64_t progress_mark = 0;            ///< warp_instructions at the last side effect
  uint64_t modeled_cycles = 0;
  std::string output;                    ///< of vprintf, bounded
  std::vector<Diagnostic> diagnostics;
  std::vector<std::string> state;        ///< deadlock report
  struct StackNode { uint32_t parent; uint32_t return_pc; uint32_t depth; };
  std::vector<StackNode> stacks{{0, 0, 0}};

  /// Adds a diagnostic unless one with the same id and line is there already.
  void report(Diagnostic diagnostic);
  /// Reports at an instruction's place.
  void report(const Inst& inst, std::string id, std::string message, std::string hint = {}, Severity severity = Severity::Error);
  uint32_t push_stack(uint32_t parent, uint32_t return_pc);
};

/// Outcome of run().
enum class LaunchStatus : uint8_t { Ok, Fault, Hang };

/// Runs a whole grid. `launch` must have program, config, memory, async set. Never throws.
LaunchStatus run(Launch& launch);

/// Problems of a configuration that the driver would refuse, as one line; empty if none.
std::string check_config(const Program& program, const LaunchConfig& config, const DeviceModel& model);

// Services for handlers (interpreter.cc).

/// A side effect of the running fragment: loops that have one are not spinning.
inline void note_effect(Warp& w) { w.fragments[w.current].effects++; }
/// Shared memory or a barrier of `cta` changed.
inline void touch_shared(Cta& cta) { cta.shared_epoch++; }
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
std::string describe_threads(const Warp& w, LaneMask mask);
/// Lane numbers of a mask as ranges: "0-3,7".
std::string lane_ranges(LaneMask mask);

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
