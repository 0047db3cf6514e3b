// What the core tells whoever watches a run: the trace and the checker. The core knows only this interface.
//
// Calls come in the order in which things happen in the emulated run. Structures hold values only, valid during the call.
// A run without observers pays one null test for each memory instruction.
#pragma once

#include <cstdint>
#include <string_view>

#include "grader/emulator/machine/instruction.h"
#include "grader/emulator/machine/schedule.h"

namespace handoff::machine {

struct Cta;
struct Warp;
struct Launch;

/// Memory order of an access or fence, PTX §8.3. Weak is the default of ld and st.
enum class Sem : uint8_t { Weak, Relaxed, Acquire, Release, AcqRel, Sc, Volatile };
/// PTX §8.5. None: the instruction has no scope.
enum class Scope : uint8_t { None, Cta, Cluster, Gpu, Sys };

/// Memory that an access resolved to.
enum class Region : uint8_t { Global, Shared, Local };

/// A generic-proxy access of some lanes of a warp.
struct Access {
  enum class Kind : uint8_t { Read, Write, Atomic, Reduction };
  Warp* warp;
  const Inst* inst;
  LaneMask mask;            ///< lanes that take part
  Kind kind;
  Region region;
  Sem sem;
  Scope scope;
  uint32_t bytes;           ///< a lane
  const uint64_t* address;  ///< [32]; shared: offset in the owning CTA; global: device address; local: offset
  Cta* owner;               ///< the CTA whose shared memory it is; nullptr for global and local
};

/// Fence instructions, one value a form of async-proxy fence (PTX §9.7.13.4).
struct FenceInfo {
  enum class Kind : uint8_t { Thread, MbarrierInit, ProxyAsync, ProxyAsyncGlobal, ProxyAsyncSharedCta, ProxyAsyncSharedCluster,
                              ProxyGenericReleaseSharedCta, ProxyGenericAcquireSharedCluster, ProxyTensormapRelease, ProxyTensormapAcquire,
                              ProxyAlias, SyncRestrictAcquire, SyncRestrictRelease };
  Kind kind;
  Sem sem;
  Scope scope;
  uint64_t address;  ///< tensormap acquire: the map, of the first lane
};

/// An event of one mbarrier object.
struct MbarrierEvent {
  enum class Kind : uint8_t { Init, Inval, ExpectTx, CompleteTx, Arrive, ArriveDrop, ArriveExpectTx, TestTrue, TestFalse, PhaseComplete,
                              CopyArrive /* an asynchronous arrive of cp.async or a commit */ };
  Kind kind;
  Warp* warp;          ///< nullptr when the hardware did it
  const Inst* inst;    ///< instruction that caused it (for async operations the issuing one)
  LaneMask mask;       ///< lanes for which this event holds
  Cta* owner;          ///< CTA whose shared memory holds the object
  uint32_t offset;     ///< shared::cta offset of the object, bytes
  uint64_t phase;      ///< phase that the operation belongs to (for tests: the phase tested)
  uint32_t count;      ///< arrivals or init count
  int64_t bytes;       ///< transaction bytes
  uint32_t pending;    ///< arrivals still missing afterwards
  int64_t tx;          ///< outstanding transactions afterwards
  Sem sem;
  Scope scope;
  uint64_t op;         ///< id of the asynchronous operation, 0 if none
};

/// An asynchronous operation: a bulk copy, a cp.async.
struct AsyncOpInfo {
  enum class Kind : uint8_t { BulkLoad, BulkStore, BulkReduce, BulkSharedToShared, BulkPrefetch, CpAsync };
  enum class Milestone : uint8_t { Issued, SourceRead, Written, Signalled };
  Kind kind;
  uint64_t id;        ///< 1, 2, … in order of issue within a launch
  Warp* warp;
  const Inst* inst;
  int lane;
  Region source_region, destination_region;
  uint64_t source, destination;  ///< offset (shared) or device address (global)
  Cta* source_owner;
  Cta* destination_owner;
  uint32_t bytes;
  uint32_t mbarrier;        ///< offset of the signalled object, 0 if none
  Cta* mbarrier_owner;
};

/// Bulk groups and cp.async groups of one thread.
struct GroupEvent {
  enum class Kind : uint8_t { BulkCommit, BulkWait, BulkWaitRead, CpAsyncCommit, CpAsyncWait, CpAsyncMbarrierArrive };
  Kind kind;
  Warp* warp;
  const Inst* inst;
  LaneMask mask;
  uint32_t allowed;  ///< operand of a wait: groups that may stay pending
};

/// Named barrier events (bar, barrier, bar.warp.sync).
struct BarrierEvent {
  enum class Kind : uint8_t { Arrive, Sync, Complete, WarpSync };
  Kind kind;
  Warp* warp;
  const Inst* inst;
  LaneMask mask;
  uint32_t id;
  uint64_t generation;  ///< how often this barrier completed before
};

/// All callbacks default to nothing.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void launch_begin(Launch&) {}
  virtual void launch_end(Launch&) {}
  virtual void cta_begin(Cta&) {}
  virtual void cta_end(Cta&) {}
  virtual void access(const Access&) {}
  virtual void fence(Warp&, const Inst&, LaneMask, const FenceInfo&) {}
  virtual void barrier(const BarrierEvent&) {}
  virtual void mbarrier(const MbarrierEvent&) {}
  virtual void async_op(const AsyncOpInfo&, AsyncOpInfo::Milestone) {}
  virtual void group(const GroupEvent&) {}
  /// Whether access() is wanted at all; asked once before a launch.
  virtual bool wants_accesses() const { return true; }
};

}  // namespace handoff::machine
