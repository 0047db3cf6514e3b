// What a run did, recorded: events in order and totals. Harnesses state the mechanism they ask for over this.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "grader/emulator/machine/diagnostic.h"
#include "grader/emulator/machine/observer.h"
#include "grader/emulator/trace/bank_conflicts.h"

namespace handoff::trace {

/// One recorded event of the asynchronous protocol.
struct Event {
  /// What happened. Wait events are recorded for waits that answered.
  enum class Kind : uint8_t {
    CopyIssued,
    CopyRead,
    CopyWritten,
    CopySignalled,
    Init,
    Inval,
    Expect,
    Complete,
    Arrive,
    PhaseComplete,
    WaitTrue,
    WaitFalse,
    BlockBarrier,
    Commit,
    GroupWait,
    TmemAlloc,
    TmemDealloc,
    TmemLoad,
    TmemStore,
    MmaIssued,
    MmaDone,
    TcgenCommit
  };
  Kind kind;             ///< what happened
  uint64_t cycle = 0;    ///< virtual time
  uint32_t cta = 0;      ///< linear index in the grid
  int32_t warp = -1;     ///< −1: the hardware
  uint32_t mask = 0;     ///< lanes
  uint32_t line = 0;     ///< in the learner's file, 0 unknown
  std::string object;    ///< barrier, destination or columns: "full", "tile+2048", "columns 0-127"
  uint64_t phase = 0;    ///< of the barrier
  int64_t bytes = 0;     ///< of the copy, of registers to or from tensor memory, or announced
  uint32_t pending = 0;  ///< arrivals missing afterwards
  int64_t tx = 0;        ///< tx-count afterwards
  uint64_t op = 0;       ///< id of the asynchronous operation
  /// CopyIssued, MmaIssued: cycles in which the CTA's copy engine or tensor core works on it. Equal: see AsyncOpInfo.
  ///@{
  uint64_t busy_from = 0, busy_until = 0;
  ///@}
};
/// What happened, in words: "copy issued".
const char* name_of(Event::Kind kind);

/// Cycles of modeled time: `begin` and those after it, up to before `end`.
struct Span {
  /// Cycles.
  ///@{
  uint64_t begin = 0, end = 0;
  ///@}
};

/// What one CTA and its units did, in modeled time. Spans are in order; those that touch are one.
struct Activity {
  /// From the start of the CTA to the end of its last warp, cycles.
  ///@{
  uint64_t begin = 0, end = 0;
  ///@}
  std::vector<Span> loads;               ///< its copy engine moves bytes into shared memory
  std::vector<Span> stores;              ///< its copy engine moves bytes out
  std::vector<Span> mmas;                ///< its tensor core multiplies
  std::vector<std::vector<Span>> warps;  ///< a warp executes instructions, and waits for nobody
  uint64_t operations = 0;               ///< copies and MMAs among these
};

/// Totals of a run.
struct Totals {
  uint64_t bulk_copies = 0;           ///< bulk loads and stores issued
  uint64_t bulk_bytes_to_shared = 0;  ///< bytes that bulk copies wrote to shared memory
  uint64_t bulk_bytes_to_global = 0;  ///< bytes that bulk copies wrote to global memory
  uint64_t cp_async_bytes = 0;        ///< bytes that non-bulk cp.async wrote
  uint64_t arrivals = 0;              ///< arrivals of threads on mbarriers (arrive.expect_tx included)
  uint64_t expected_bytes = 0;        ///< announced by expect_tx
  uint64_t completed_bytes = 0;       ///< counted by complete_tx
  uint64_t waits_true = 0;            ///< threads whose wait answered true
  uint64_t waits_false = 0;           ///< threads whose wait answered false
  uint64_t phases = 0;                ///< phases completed
  uint64_t block_barriers = 0;        ///< completions of bar/barrier
  uint64_t global_load_bytes = 0;     ///< read from global memory by ordinary loads
  uint64_t global_store_bytes = 0;    ///< written to global memory by ordinary stores
  uint64_t global_atomics = 0;        ///< threads' atomics on global memory
  uint64_t shared_atomics = 0;        ///< threads' atomics on shared memory
  uint64_t shared_load_bytes = 0;     ///< read from shared memory by ordinary loads
  uint64_t shared_store_bytes = 0;    ///< written to shared memory by ordinary stores
  uint64_t shared_accesses = 0;       ///< warps' loads, stores and atomics of their own CTA's shared memory
  uint64_t shared_wavefronts = 0;     ///< passes through the banks that these took
  uint64_t shared_minimum = 0;        ///< passes that they would have taken without bank conflicts
  uint64_t distributed_accesses = 0;  ///< warps' loads, stores and atomics of other CTAs' shared memory
  uint64_t tmem_allocations = 0;      ///< tcgen05.alloc executed
  uint64_t tmem_columns = 0;          ///< columns that they allocated
  uint64_t tmem_load_bytes = 0;       ///< that tcgen05.ld returned to registers
  uint64_t tmem_store_bytes = 0;      ///< that tcgen05.st wrote
  uint64_t mma_instructions = 0;      ///< tcgen05.mma executed
  uint64_t mma_flops = 0;             ///< 2·M·N·K of each of them
  uint64_t tcgen_commits = 0;         ///< tcgen05.commit executed
  uint64_t warp_instructions = 0;     ///< executed
  uint64_t lane_instructions = 0;     ///< executed, a lane
  uint64_t cta_cycles = 0;            ///< modeled lives of all CTAs, added up
  uint64_t load_busy = 0;             ///< cycles in which their copy engines moved bytes into shared memory …
  uint64_t store_busy = 0;            ///< … and out of it
  uint64_t port_busy = 0;             ///< cycles in which loads or stores held the way that they share
  uint64_t mma_busy = 0;              ///< cycles in which their tensor cores multiplied
};

/// What the accesses of one line to their own CTA's shared memory took of the banks. See trace/bank_conflicts.h.
struct SharedLine {
  SourcePlace place;        ///< in the learner's file
  uint64_t accesses = 0;    ///< a warp's instruction counts once
  uint64_t wavefronts = 0;  ///< passes through the banks
  uint64_t minimum = 0;     ///< passes without conflicts
  uint32_t ways = 0;        ///< most words that a bank had to serve in one pass of the lanes; 1: never a conflict
  /// Wavefronts above the minimum: what bank conflicts cost.
  uint64_t above() const { return wavefronts - minimum; }
};

/// A recorded run.
struct Trace {
  Totals totals;  ///< of the whole grid
  /// Lines that access shared memory: dearest conflicts first, then in the order of the file.
  std::vector<SharedLine> shared_lines;
  Activity first_cta;         ///< of the CTA with index 0
  std::vector<Event> events;  ///< in order; the first kMaxEvents only
  bool truncated = false;     ///< events were left out
};

/// Events kept of one run.
inline constexpr size_t kMaxEvents = 100'000;

/// Fills a Trace while a launch runs.
class Recorder : public machine::Observer {
 public:
  /// `with_accesses`: count ordinary loads and stores too, with their bank conflicts, which makes the run slower.
  explicit Recorder(bool with_accesses) : with_accesses_(with_accesses) {}
  void launch_begin(machine::Launch& launch) override;
  void launch_end(machine::Launch& launch) override;
  void cta_begin(machine::Cta& cta) override;
  void cta_end(machine::Cta& cta) override;
  void slice(machine::Warp& warp, uint64_t begin, uint64_t end) override;
  void access(const machine::Access& access) override;
  void barrier(const machine::BarrierEvent& event) override;
  void mbarrier(const machine::MbarrierEvent& event) override;
  void async_op(const machine::AsyncOpInfo& info, machine::AsyncOpInfo::Milestone milestone) override;
  void group(const machine::GroupEvent& event) override;
  void tensor(const machine::TensorEvent& event) override;
  bool wants_accesses() const override { return with_accesses_; }
  /// The finished record.
  Trace take() { return std::move(trace_); }

 private:
  uint64_t hardware_time(const machine::Cta& cta) const;
  Event& add(Event::Kind kind, const machine::Inst* inst, machine::Warp* warp, machine::Cta* cta, uint64_t cycle);
  void count_shared(const machine::Access& access);
  void count_work(const machine::AsyncOpInfo& op);
  void sum_up_lines();
  bool with_accesses_;
  struct Counted {
    SharedOp op = SharedOp::Load;
    uint32_t ways = 0;
    uint64_t accesses = 0, wavefronts = 0, minimum = 0;
  };
  std::vector<Counted> by_instruction_;  // index as in Program::code
  const machine::Launch* launch_ = nullptr;
  Trace trace_;
  Event overflow_;
  Span mma_;  // when the tensor core works on the MMA that the next TensorEvent tells of
};

}  // namespace handoff::trace
