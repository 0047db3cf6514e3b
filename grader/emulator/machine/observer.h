// What the core tells whoever watches a run: the trace and the checker. The core knows only this interface.
//
// Calls come in the order in which things happen in the emulated run. Structures hold values only, valid during the
// call. A run without observers pays one null test for each memory instruction; tools/hooks_cost.py measures it against
// a build that has no calls of observers at all.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "grader/emulator/machine/instruction.h"
#include "grader/emulator/machine/schedule.h"

namespace handoff::machine {

struct Cta;
struct Warp;
struct Launch;

/// Whether the core calls observers. False only in the build that measures what the calls cost; there a launch that
/// asks to be watched is not.
#ifdef HANDOFF_NO_HOOKS
inline constexpr bool kHooks = false;
#else
inline constexpr bool kHooks = true;
#endif

/// Memory order of an access or fence, PTX §8.3. Weak is the default of ld and st.
enum class Sem : uint8_t { Weak, Relaxed, Acquire, Release, AcqRel, Sc, Volatile };
/// PTX §8.5. None: the instruction has no scope.
enum class Scope : uint8_t { None, Cta, Cluster, Gpu, Sys };

/// Memory that an access resolved to.
enum class Region : uint8_t { Global, Shared, Local };

/// A generic-proxy access of some lanes of a warp.
struct Access {
  /// Atomic answers with the old value, Reduction does not.
  enum class Kind : uint8_t { Read, Write, Atomic, Reduction };
  Warp* warp;               ///< who
  const Inst* inst;         ///< the instruction
  LaneMask mask;            ///< lanes that take part
  Kind kind;                ///< what is done
  Region region;            ///< where
  Sem sem;                  ///< its memory order
  Scope scope;              ///< None for a weak access
  uint32_t bytes;           ///< a lane
  const uint64_t* address;  ///< [32]; shared: offset in the owning CTA; global: device address; local: offset
  Cta* owner;               ///< the CTA whose shared memory it is; nullptr for global and local
  /// Of st: what each element of a lane comes from, as the operand pool names it; else nullptr.
  const uint32_t* stored = nullptr;
};

/// Do these lanes of `access` store the same value, element by element? Only a st is known to. To be asked while the
/// observer is told of the access: registers change afterwards.
bool stores_alike(const Access& access, LaneMask lanes);

/// Fence instructions, one value a form of async-proxy fence (PTX §9.7.13.4).
struct FenceInfo {
  /// Thread: fence and membar. The others are named after their qualifiers.
  enum class Kind : uint8_t {
    Thread,
    MbarrierInit,
    ProxyAsync,
    ProxyAsyncGlobal,
    ProxyAsyncSharedCta,
    ProxyAsyncSharedCluster,
    ProxyGenericReleaseSharedCta,
    ProxyGenericAcquireSharedCluster,
    ProxyTensormapRelease,
    ProxyTensormapAcquire,
    ProxyAlias,
    SyncRestrictAcquire,
    SyncRestrictRelease
  };
  Kind kind;         ///< which fence
  Sem sem;           ///< its memory order
  Scope scope;       ///< its scope
  uint64_t address;  ///< tensormap acquire: the map, of the first lane
};

/// An event of one mbarrier object.
struct MbarrierEvent {
  /// PhaseComplete follows the operation that completed the phase.
  enum class Kind : uint8_t {
    Init,
    Inval,
    ExpectTx,
    CompleteTx,
    Arrive,
    ArriveDrop,
    ArriveExpectTx,
    TestTrue,
    TestFalse,
    PhaseComplete,
    CopyArrive /* an asynchronous arrive of cp.async or a commit */
  };
  Kind kind;         ///< what happened
  Warp* warp;        ///< nullptr when the hardware did it
  const Inst* inst;  ///< instruction that caused it (for async operations the issuing one)
  LaneMask mask;     ///< lanes for which this event holds
  Cta* owner;        ///< CTA whose shared memory holds the object
  uint32_t offset;   ///< shared::cta offset of the object, bytes
  uint64_t phase;    ///< phase that the operation belongs to (for tests: the phase tested)
  uint32_t count;    ///< arrivals or init count
  int64_t bytes;     ///< transaction bytes
  uint32_t pending;  ///< arrivals still missing afterwards
  int64_t tx;        ///< outstanding transactions afterwards
  Sem sem;           ///< memory order of the instruction
  Scope scope;       ///< scope of the instruction
  uint64_t op;       ///< id of the asynchronous operation, 0 if none
};

/// Bytes of global memory that lie side by side.
struct ByteRun {
  uint64_t address;  ///< device address of the first
  uint32_t bytes;    ///< how many
};

/// A matrix that a tcgen05.mma or tcgen05.cp reads from shared memory.
struct MatrixRead {
  char name;                           ///< 'A' or 'B'; 'S', the source, of a tcgen05.cp
  const std::vector<ByteRun>* runs;    ///< its bytes: ascending shared::cta offsets, disjoint
  const std::vector<uint32_t>* units;  ///< offsets of its 16-byte units, row after row (K-major) or k after k
  uint32_t units_per_row;              ///< units along K of a row; along MN of a k where MN-major
  bool mn_major;                       ///< which of the two
};

/// An asynchronous operation: a bulk copy, a tensor copy, a cp.async, an MMA, st.async and red.async (RemoteStore,
/// RemoteReduce: from registers, so source_region is Local, through the generic proxy).
struct AsyncOpInfo {
  /// By direction, as seen from the CTA: BulkLoad and TensorLoad fill shared memory; BulkStore, BulkReduce, TensorStore
  /// and TensorReduce empty it. Mma and TensorMemoryCopy (tcgen05.cp) read shared memory through `matrices`; what they
  /// do to tensor memory is told by the TensorEvent that follows. LaunchCancel is clusterlaunchcontrol.try_cancel: it
  /// writes its response to shared memory and reads nothing (source_region is Local), through the async proxy.
  enum class Kind : uint8_t {
    BulkLoad,
    BulkStore,
    BulkReduce,
    BulkSharedToShared,
    BulkPrefetch,
    CpAsync,
    TensorLoad,
    TensorStore,
    TensorReduce,
    TensorPrefetch,
    Mma,
    RemoteStore,
    RemoteReduce,
    TensorMemoryCopy,
    LaunchCancel
  };
  /// Stages of its life, in order; Signalled where an mbarrier is told.
  enum class Milestone : uint8_t { Issued, SourceRead, Written, Signalled };
  Kind kind;         ///< which operation
  uint64_t id;       ///< 1, 2, … in order of issue within a launch
  Warp* warp;        ///< of the issuing thread
  const Inst* inst;  ///< that issued it
  int lane;          ///< of the issuing thread
  /// Memory read and memory written.
  ///@{
  Region source_region, destination_region;
  ///@}
  /// Offset (shared) or device address (global).
  ///@{
  uint64_t source, destination;
  ///@}
  Cta* source_owner;       ///< whose shared memory is read; nullptr for global
  Cta* destination_owner;  ///< whose shared memory is written; nullptr for global
  uint32_t bytes;          ///< of the copy; of a tensor copy: of the whole box, also where it lies outside the tensor
  uint32_t mbarrier;       ///< offset of the signalled object, 0 if none
  Cta* mbarrier_owner;     ///< whose shared memory holds that object
  /// Bytes of shared memory from the first to behind the last that a tensor copy touches; 0: `bytes`.
  uint32_t shared_bytes = 0;
  /// The bytes that a tensor copy touches in global memory: those inside the tensor, in the order of the box, adjacent
  /// ones merged; none where the box lies outside. nullptr: `bytes` from `source` or `destination` on.
  const std::vector<ByteRun>* global_runs = nullptr;
  /// What an MMA or a TensorMemoryCopy reads from shared memory: one matrix or two, nullptr for the others.
  const std::vector<MatrixRead>* matrices = nullptr;
  /// With .cta_group::2 the other CTA of the pair, of whose shared memory the same bytes are read; nullptr: none.
  Cta* peer = nullptr;
  /// Generic address of the tensor map that a tensor copy reads, through the tensormap proxy; 0: none.
  uint64_t tensor_map = 0;
  /// Cycles in which the timing model has the CTA's copy engine or tensor core work on it. Equal: no such unit does, or
  /// its work is told with another operation (a multicast is read once).
  ///@{
  uint64_t busy_from = 0, busy_until = 0;
  ///@}
  uint64_t port_cycles = 0;  ///< for which a copy holds the way that the CTA's loads and stores share
  /// .cp_mask: bit j says whether byte j of each 16 bytes of `destination` is written.
  uint16_t byte_mask = 0xffff;
};

/// Cells of tensor memory. A half is 16 lanes: half h covers lanes 16·h to 16·h + 15.
struct TensorRegion {
  uint8_t halves;    ///< bit h: half h
  uint16_t column;   ///< the first
  uint16_t columns;  ///< how many
  bool write;        ///< written (perhaps read too), else only read
};

/// Something that concerns tensor memory (PTX §9.7.16).
struct TensorEvent {
  /// What happened, by instruction; MmaDone, CopyDone: the hardware finished one. Copy is tcgen05.cp.
  enum class Kind : uint8_t {
    Alloc,
    Dealloc,
    Relinquish,
    Load,
    Store,
    WaitLoad,
    WaitStore,
    FenceBefore,
    FenceAfter,
    Mma,
    MmaDone,
    Copy,
    CopyDone,
    Commit
  };
  Kind kind;         ///< what happened
  Warp* warp;        ///< of the threads
  const Inst* inst;  ///< the instruction; of MmaDone, CopyDone: the one that issued it
  LaneMask mask;     ///< lanes for which this event holds
  /// Cells that a Load, Store, Mma or Copy touches; nullptr else. Alloc, Dealloc: one region, the columns.
  const std::vector<TensorRegion>* regions = nullptr;
  /// With .cta_group::2 the other CTA of the pair, where it is concerned: Mma and Copy touch the same cells of its
  /// tensor memory; Dealloc: it still holds the columns. Alloc: columns are there in both CTAs from now on (told once
  /// for the pair; what is told of the other warp has nullptr).
  Cta* peer = nullptr;
  uint64_t op = 0;               ///< Mma, Copy and when they are done: AsyncOpInfo::id. Commit: the last one; 0: none
  uint64_t amount = 0;           ///< Load, Store: bytes of registers; Copy: bytes; Mma: 2·M·N·K
  bool reads_d = false;          ///< Mma: enable-input-d
  uint64_t shape = 0;            ///< Mma: equal for MMAs of one kind, shape and accumulator
  Cta* barrier_owner = nullptr;  ///< Commit: whose barrier
  uint32_t barrier = 0;          ///< Commit: its shared::cta offset
  bool further = false;          ///< Commit: one more barrier of a multicast; the first one was told before
};

/// Bulk groups and cp.async groups of one thread.
struct GroupEvent {
  /// Commit, the two waits of bulk groups; the same of cp.async, and its asynchronous arrive.
  enum class Kind : uint8_t { BulkCommit, BulkWait, BulkWaitRead, CpAsyncCommit, CpAsyncWait, CpAsyncMbarrierArrive };
  Kind kind;         ///< what happened
  Warp* warp;        ///< of the threads
  const Inst* inst;  ///< the instruction
  LaneMask mask;     ///< lanes for which this event holds
  uint32_t allowed;  ///< operand of a wait: groups that may stay pending
};

/// Named barrier events (bar, barrier, bar.warp.sync) and those of barrier.cluster.
struct BarrierEvent {
  /// Complete follows the last arrival; WarpSync is an arrival at bar.warp.sync. Of barrier.cluster: an arrival, the
  /// completion behind the last one, a wait that has found its phase complete.
  enum class Kind : uint8_t { Arrive, Sync, Complete, WarpSync, ClusterArrive, ClusterComplete, ClusterWait };
  Kind kind;             ///< what happened
  Warp* warp;            ///< of the threads; of Complete: some warp of the CTA
  const Inst* inst;      ///< the instruction; nullptr for Complete
  LaneMask mask;         ///< lanes that arrive or have waited; 0 for Complete
  uint32_t id;           ///< 0–15; of WarpSync: the member mask; of barrier.cluster: 0
  uint64_t generation;   ///< how often this barrier completed before
  bool relaxed = false;  ///< ClusterArrive: publishes nothing
};

/// All callbacks default to nothing.
class Observer {
 public:
  virtual ~Observer() = default;
  /// Before the first CTA starts.
  virtual void launch_begin(Launch&) {}
  /// After the last CTA, or after the fault or hang that ended the launch: its diagnostics stand and may be added to.
  virtual void launch_end(Launch&) {}
  /// Before the first instruction of a CTA.
  virtual void cta_begin(Cta&) {}
  /// After the last instruction of a CTA, while its shared memory is still there.
  virtual void cta_end(Cta&) {}
  /// A warp executed instructions between these two cycles; it may have waited for their results, but for nobody else.
  virtual void slice(Warp&, uint64_t /*begin*/, uint64_t /*end*/) {}
  /// A memory access of the generic proxy; only if wants_accesses().
  virtual void access(const Access&) {}
  /// A fence by the lanes of the mask.
  virtual void fence(Warp&, const Inst&, LaneMask, const FenceInfo&) {}
  /// A named barrier or bar.warp.sync.
  virtual void barrier(const BarrierEvent&) {}
  /// An operation on an mbarrier, by threads or by the hardware.
  virtual void mbarrier(const MbarrierEvent&) {}
  /// An asynchronous operation reached a milestone.
  virtual void async_op(const AsyncOpInfo&, AsyncOpInfo::Milestone) {}
  /// Something that concerns tensor memory.
  virtual void tensor(const TensorEvent&) {}
  /// Threads committed a group or waited for groups.
  virtual void group(const GroupEvent&) {}
  /// Whether access() is wanted at all; asked once before a launch.
  virtual bool wants_accesses() const { return true; }
};

}  // namespace handoff::machine
