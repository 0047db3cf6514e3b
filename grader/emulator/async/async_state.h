// State that asynchronous units keep for a CTA: its mbarriers, the copies in flight, each thread's groups.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "grader/emulator/async/tensor_memory.h"
#include "grader/emulator/machine/warp.h"

namespace handoff::async {

using machine::Cta;
using machine::Inst;
using machine::LaneMask;
using machine::Warp;

/// One mbarrier object. Ranges: PTX §9.7.13.15.2.
struct Mbarrier {
  uint32_t offset = 0;     ///< shared::cta offset, bytes
  uint64_t phase = 0;      ///< completed phases since init
  uint64_t completed = 0;  ///< time at which the last of them completed
  uint32_t expected = 0;   ///< arrivals of the next phase
  uint32_t pending = 0;    ///< arrivals missing in this phase
  int64_t tx = 0;          ///< outstanding transactions, bytes; negative when a copy lands before its expect_tx
  // For reports; the first three of the current phase:
  int64_t announced = 0;              ///< bytes by expect_tx
  int64_t arrived = 0;                ///< bytes by complete_tx
  const Inst* last_expect = nullptr;  ///< the last expect_tx; nullptr: none yet
  const Inst* init = nullptr;         ///< the mbarrier.init
};

inline constexpr uint32_t kMaxCount = (1u << 20) - 1;  ///< of arrivals and, in absolute value, of tx

/// Bulk copies or cp.async operations of one thread that were committed together.
struct Group {
  uint32_t unread = 0;     ///< operations whose source is not read yet
  uint32_t unwritten = 0;  ///< operations whose destination is not written yet
};

/// An asynchronous arrive that waits for a thread's cp.async operations.
struct PendingArrive {
  std::vector<std::shared_ptr<Group>> waits;  ///< operations that must be written first
  Cta* owner;                                 ///< CTA whose shared memory holds the mbarrier
  uint32_t offset;                            ///< of the mbarrier, bytes
  const Inst* inst;                           ///< the cp.async.mbarrier.arrive
  uint64_t op;                                ///< last cp.async of the thread before it
};

/// Groups of one thread.
struct ThreadGroups {
  /// Not committed yet: bulk copies, cp.async; nullptr while empty.
  ///@{
  std::shared_ptr<Group> open_bulk, open_copy;
  ///@}
  /// Committed, oldest first: bulk groups, cp.async groups.
  ///@{
  std::deque<std::shared_ptr<Group>> bulk, copy;
  ///@}
  std::vector<std::shared_ptr<Group>> copies;  ///< every cp.async operation's own, for cp.async.mbarrier.arrive
  std::vector<PendingArrive> arrives;          ///< of cp.async.mbarrier.arrive, not due yet
  uint64_t last_copy = 0;                      ///< id of the last cp.async operation
};

/// A copy in flight that touches this CTA's shared memory.
struct InFlight {
  uint64_t id;         ///< AsyncOpInfo::id
  const Inst* inst;    ///< that issued it
  bool reads_shared;   ///< source here and not read yet
  bool writes_shared;  ///< destination here and not written yet
  uint32_t bytes;      ///< of the copy
};

/// What waits in the tensor core's queue: an MMA, or a commit behind the operations that it tracks (tcgen05.cc).
struct TensorCoreItem;

/// The tensor core of a CTA and the CTA's tensor memory. One operation after the other: PTX §9.7.16.6.2 makes MMAs of
/// one accumulator, and MMAs and the commit behind them, execute in order.
struct TensorCore {
  TensorMemory memory;                                ///< cells and allocations
  std::deque<std::unique_ptr<TensorCoreItem>> queue;  ///< in order of issue
  uint64_t free = 0;                                  ///< time at which the next MMA can start
  std::unordered_map<uint32_t, uint64_t> last_mma;    ///< by thread: id of its last MMA
  /// By warp: time at which its last tcgen05.ld, st is done.
  ///@{
  std::unordered_map<uint32_t, uint64_t> loaded, stored;
  ///@}

  TensorCore();
  ~TensorCore();
};

/// What the async layer attaches to a CTA.
struct State : machine::AsyncCtaState {
  std::vector<Mbarrier> barriers;                     ///< live ones: initialised and not invalidated
  std::unordered_map<uint32_t, ThreadGroups> groups;  ///< by thread index in the CTA
  std::vector<InFlight> in_flight;                    ///< in order of issue
  std::vector<machine::AlignedBytes> spare_staging;   ///< buffers of copies that have landed, for the next ones
  TensorCore tensor;                                  ///< tensor memory and MMAs
  bool saw_launch_refused = false;                    ///< a thread has read the response of a failed try_cancel

  /// The live barrier at a shared::cta offset; nullptr if there is none.
  Mbarrier* find(uint32_t offset);
  /// Groups of the thread at `lane` of `w`.
  ThreadGroups& of(const Warp& w, int lane) { return groups[w.first_thread() + static_cast<uint32_t>(lane)]; }
};

/// The async layer's state of `cta`.
inline State& state(Cta& cta) { return static_cast<State&>(*cta.async); }

/// A shared address resolved to a CTA and an offset.
struct SharedPlace {
  Cta* owner;       ///< whose shared memory it is
  uint32_t offset;  ///< shared::cta offset, bytes
};
/// How an instruction names shared memory: .shared::cta, .shared::cluster, or no space at all.
enum class SharedWindow : uint8_t { Cta, Cluster, Generic };
/// Resolves an address operand that must lie in shared memory: of the executing CTA, of one of its cluster, or of
/// either by a generic address. Faults `out-of-bounds`, `misaligned` or, where that CTA has ended, `remote-cta-gone`.
SharedPlace shared_place(Warp& w, int lane, uint64_t address, SharedWindow window, uint32_t bytes, uint32_t alignment,
                         const char* what);

/// Reads a 32- or 64-bit address operand of a lane.
inline uint64_t address_of(const Warp& w, const machine::MemoryOperand& m, int lane) {
  const uint64_t base =
      m.wide ? machine::lanes<uint64_t>(w.regs, m.slot)[lane] : machine::lanes<uint32_t>(w.regs, m.slot)[lane];
  return base + static_cast<uint64_t>(m.offset);
}

// Operations of the hardware on an mbarrier.

/// complete_tx of `bytes` for operation `op` issued by `inst`.
void complete_tx(Cta& owner, uint32_t offset, int64_t bytes, const Inst* inst, uint64_t op);
/// An asynchronous arrive(1) for `inst`, `what` in words; `op` is the last cp.async or MMA of the thread that it stands
/// for, 0 if there was none.
void arrive_async(Cta& owner, uint32_t offset, const Inst* inst, uint64_t op, const char* what);
/// The live barrier at `offset` of `owner`, or a `barrier-not-initialized` fault.
Mbarrier& live_barrier(Cta& owner, uint32_t offset, const char* what);
/// "full" for a barrier at this offset.
std::string barrier_name(const Cta& owner, uint32_t offset);
/// The same, where the CTA may have ended.
std::string barrier_name(const machine::Program& program, uint32_t offset);

/// Hooks for machine::Launch::async.
const machine::AsyncHooks& hooks();

/// mbarrier.* (mbarrier.cc).
void register_mbarrier_decoders(machine::DecoderTable& table);
/// cp.async.bulk, cp.reduce.async.bulk and their groups (bulk_copy.cc).
void register_bulk_copy_decoders(machine::DecoderTable& table);
/// st.async and red.async (remote_store.cc).
void register_remote_store_decoders(machine::DecoderTable& table);
/// cp.async and its groups (cp_async.cc).
void register_cp_async_decoders(machine::DecoderTable& table);
/// cp.async.bulk.tensor and its kin (tensor_copy.cc).
void register_tensor_copy_decoders(machine::DecoderTable& table);
/// tensormap.replace and tensormap.cp_fenceproxy (tensor_map_ops.cc).
void register_tensor_map_decoders(machine::DecoderTable& table);
/// clusterlaunchcontrol.* (launch_control.cc).
void register_launch_control_decoders(machine::DecoderTable& table);
/// tcgen05.* (tcgen05.cc).
void register_tcgen05_decoders(machine::DecoderTable& table);
/// What is wrong with tensor memory at the CTA's end, and the end of its allocations.
void end_tensor_memory(Cta& cta);
/// All of the above.
void register_async_decoders(machine::DecoderTable& table);

}  // namespace handoff::async
