// The timing model: every constant in one place, each with its source. Cycles of one SM at about 1.96 GHz.
//
// The model is small on purpose. It orders events plausibly, so that the nominal schedule overlaps what a GPU would
// overlap, and it gives tune exercises a bound to be graded against. It is no simulator of a chip: issue slots are per
// warp, a warp waits for each instruction, and caches are not modelled.
//
// There are two sets. kBlackwell is what exercises are graded on; its figures are published ones. kHopper exists so
// that the model can be held against a chip at hand: docs/timing.md says how it was measured and how well it agrees.
// "SEMA": public repository SemiAnalysisAI/microbench-blackwell, results on a B200. "survey": published microbenchmarks
// of B200 and B300 collected by third parties. "Hopper: NAME": measured on an H200 by the probe NAME
// (docs/results/timing-h200-2026-11-30.json). Where no source gives a figure the line says "guess".
#pragma once

#include <cstdint>

namespace handoff::machine {

/// What things cost, in cycles unless it says otherwise. Costs of instructions are put into them when they are decoded.
struct TimingModel {
  // Instructions: what one takes of its warp's time.
  uint16_t alu = 0;               ///< arithmetic, and what has no line of its own
  uint16_t float64 = 0;           ///< arithmetic in f64
  uint16_t special = 0;           ///< sin, ex2, rcp … of f32 and narrower
  uint16_t branch = 0;            ///< any jump, taken or not
  uint16_t clock = 0;             ///< reading one
  uint16_t shared_load = 0;       ///< until the value is there
  uint16_t shared_load_wide = 0;  ///< the same for 16 bytes a lane
  uint16_t shared_store = 0;      ///< stores do not wait
  uint16_t global_load = 0;       ///< L2 hit
  uint16_t global_store = 0;      ///< stores do not wait
  uint16_t local_load = 0;        ///< L1 hit
  uint16_t atomic_global = 0;     ///< with a result
  uint16_t atomic_shared = 0;     ///< with a result
  uint16_t reduce_shared = 0;     ///< red: without
  uint16_t remote_access = 0;     ///< more, where a load or an atomic with a result reaches another CTA of the cluster
  uint16_t fence = 0;             ///< of scope .cta, and proxy fences
  uint16_t fence_gpu = 0;         ///< of a wider scope; also inside a release of scope .cluster
  uint16_t fence_mbarrier_init = 0;  ///< fence.mbarrier_init
  uint16_t warp_sync = 0;            ///< bar.warp.sync of lanes that are together
  uint16_t shuffle = 0;              ///< and match, redux
  uint16_t vote = 0;                 ///< vote
  uint16_t mbarrier_op = 0;          ///< init, inval, and what has no line of its own
  uint16_t mbarrier_arrive = 0;      ///< without a result
  uint16_t mbarrier_expect_tx = 0;   ///< expect_tx, arrive.expect_tx without a result
  uint16_t mbarrier_state = 0;       ///< an arrive until its state is there
  uint16_t mbarrier_test = 0;        ///< test_wait until the answer is there
  uint16_t mbarrier_try = 0;         ///< try_wait, the same, where the phase is complete
  uint16_t tma_issue = 0;            ///< a bulk or tensor copy's instruction that loads
  uint16_t tma_store_issue = 0;      ///< one that stores, bulk
  uint16_t tensor_store_issue = 0;   ///< one that stores, tensor
  uint16_t vprintf = 0;              ///< a call
  uint16_t tmem_alloc = 0;           ///< alloc and dealloc
  // Barriers.
  uint16_t barrier_base = 0;           ///< bar.sync: last arrival to the waits …
  uint16_t barrier_per_warp_x2 = 0;    ///< … and half cycles for each warp of the CTA …
  uint16_t barrier_counted = 0;        ///< … and more where it names a count of threads
  uint16_t cluster_barrier = 0;        ///< barrier.cluster: last arrival, its release done, to the waits
  uint16_t mbarrier_wakeup = 0;        ///< completion of a phase by a thread of the CTA to the wait that sees it
  uint16_t mbarrier_wakeup_async = 0;  ///< the same by a copy, or by an arrival from another CTA
  uint16_t remote_arrive = 0;          ///< an arrival to its landing in another CTA of the cluster
  // Asynchronous copies.
  uint16_t tma_latency = 0;                  ///< issue of a load to written
  uint16_t tma_bytes_per_cycle = 1;          ///< bytes a cycle of one SM's copy engine, loads
  uint16_t tma_store_read = 0;               ///< issue of a store to its source read
  uint16_t tma_store_latency = 0;            ///< issue of a store to written
  uint16_t tma_reduce = 0;                   ///< more, where the store is a reduction
  uint16_t tma_store_bytes_per_cycle = 1;    ///< bytes a cycle, stores
  uint16_t tma_port_bytes_per_cycle = 1;     ///< of loads on the way that stores take too, at their own rate
  uint16_t tma_cluster_latency = 0;          ///< issue of a copy from shared memory to shared memory to written
  uint16_t tma_cluster_bytes_per_cycle = 1;  ///< bytes a cycle of these
  uint16_t cp_async_latency = 0;             ///< issue to written
  uint16_t remote_store = 0;                 ///< st.async to its landing in another CTA of the cluster
  // Tensor memory and the tensor core. A single MMA takes mma_fixed_… + N/2 cycles from issue to the observed commit;
  // of these the mbarrier's wakeup and the wait are counted elsewhere.
  uint16_t tmem_access = 0;           ///< tcgen05.ld and st
  uint16_t tmem_bytes_per_cycle = 1;  ///< bytes a cycle of a warp's tcgen05.ld
  uint16_t mma_fixed_64 = 0;          ///< A and B from shared memory, M = 64
  uint16_t mma_fixed_128 = 0;         ///< A and B from shared memory, M = 128
  uint16_t mma_fixed_tensor_a = 0;    ///< A from tensor memory
  /// With .cta_group::2: M = 128 and 256, A from shared memory and from tensor memory.
  ///@{
  uint16_t mma_pair_128 = 0, mma_pair_256 = 0, mma_pair_128_tensor_a = 0, mma_pair_256_tensor_a = 0;
  ///@}
  uint16_t mma_shared_bytes_per_cycle = 1;  ///< operand bandwidth of shared memory
};

/// B200.
inline constexpr TimingModel kBlackwell{
    .alu = 2,                  // guess: Hopper has 4 in a chain (alu.fma), 1 where nothing waits (alu.fma_independent)
    .float64 = 8,              // Hopper: f64.fma
    .special = 17,             // Hopper: mufu.ex2
    .branch = 4,               // guess; Hopper has 15 where the warp has nothing else to do (loop)
    .clock = 28,               // Hopper: clock
    .shared_load = 30,         // survey: 29 on Hopper and Blackwell
    .shared_load_wide = 36,    // six more, Hopper: shared.load_v4
    .shared_store = 4,         // guess
    .global_load = 290,        // survey: L2 hit about 293 cycles on B200
    .global_store = 8,         // guess
    .local_load = 40,          // survey: L1 hit 39.6 cycles
    .atomic_global = 314,      // Hopper: global.atomic
    .atomic_shared = 24,       // Hopper: shared.atomic
    .reduce_shared = 4,        // Hopper: shared.reduce
    .remote_access = 172,      // Hopper: cluster.load, cluster.atomic
    .fence = 9,                // Hopper: fence.cta, fence.proxy_async
    .fence_gpu = 268,          // Hopper: fence.gpu
    .fence_mbarrier_init = 0,  // Hopper: fence.mbarrier_init, which is no instruction there
    .warp_sync = 0,            // Hopper: barrier.warp
    .shuffle = 24,             // Hopper: shuffle
    .vote = 9,                 // Hopper: vote
    .mbarrier_op = 8,          // Hopper: mbarrier.init
    .mbarrier_arrive = 8,      // survey (B300): arrive about 8
    .mbarrier_expect_tx = 8,   // as an arrival
    .mbarrier_state = 23,      // Hopper: mbarrier.arrive_state
    .mbarrier_test = 8,        // survey (B300): test_wait, try_wait of a ready phase 6–8
    .mbarrier_try = 8,         // survey (B300): as above
    .tma_issue = 48,           // survey (B300): TMA issue floor for an instruction
    .tma_store_issue = 48,     // survey (B300): as above
    .tensor_store_issue = 48,  // survey (B300): as above
    .vprintf = 200,            // guess
    .tmem_alloc = 100,         // guess
    .barrier_base = 40,        // survey: __syncthreads 45–89 cycles depending on the number of warps
    .barrier_per_warp_x2 = 3,  // 40 + 1.5 a warp fits that range
    .barrier_counted = 10,     // Hopper: barrier.named
    .cluster_barrier = 127,    // survey (B300): about 395 with the release
    .mbarrier_wakeup = 46,     // survey (B300): arrive to observed about 54 in all
    .mbarrier_wakeup_async = 46,        // as by a thread
    .remote_arrive = 83,                // Hopper: cluster.arrive
    .tma_latency = 700,                 // L2 hit; SEMA's loaded 1 KiB figure is 1413, its minimum about 930 from DRAM
    .tma_bytes_per_cycle = 72,          // survey: 21 TB/s of L2 over 148 SMs at 1.96 GHz
    .tma_store_read = 300,              // guess for a loaded chip; one CTA alone on Hopper has 9 (bulk.store_read)
    .tma_store_latency = 700,           // guess, as a load; on Hopper a wait ends after 9 (bulk.store_written)
    .tma_reduce = 40,                   // Hopper: bulk.reduce_written
    .tma_store_bytes_per_cycle = 32,    // Hopper: bulk.store_read, bulk.stream_stores
    .tma_port_bytes_per_cycle = 128,    // Hopper: bulk.stream_in_and_out, bulk.stream_in_and_quarter
    .tma_cluster_latency = 56,          // Hopper: cluster.copy
    .tma_cluster_bytes_per_cycle = 32,  // survey (B300): bulk copies in distributed shared memory
    .cp_async_latency = 600,            // SEMA ldgsts_latency 1085–1200 under load; guess for one CTA
    .remote_store = 83,                 // Hopper: cluster.st_async
    .tmem_access = 30,                  // guess
    .tmem_bytes_per_cycle = 57,         // survey (B300)
    .mma_fixed_64 = 120,                // SEMA, fitted
    .mma_fixed_128 = 136,               // SEMA, fitted
    .mma_fixed_tensor_a = 104,          // SEMA, fitted
    .mma_pair_128 = 165,                // SEMA, fitted
    .mma_pair_256 = 170,                // SEMA, fitted
    .mma_pair_128_tensor_a = 146,       // SEMA, fitted
    .mma_pair_256_tensor_a = 138,       // SEMA, fitted
    .mma_shared_bytes_per_cycle = 128,  // SEMA, fitted
};

/// H200: fitted to the probes that each line names. What has no counterpart there, or was not measured, is as in
/// kBlackwell.
inline constexpr TimingModel kHopper{
    .alu = 4,                  // alu.*: chains
    .float64 = 8,              // f64.fma
    .special = 17,             // mufu.ex2
    .branch = 15,              // loop: 27 with three arithmetic instructions
    .clock = 28,               // clock
    .shared_load = 23,         // shared.load/1
    .shared_load_wide = 29,    // shared.load_v4
    .shared_store = 8,         // fence.store_proxy_async: with a fence behind it
    .global_load = 286,        // global.load_l2
    .global_store = 8,         // guess
    .local_load = 37,          // global.load_l1
    .atomic_global = 314,      // global.atomic
    .atomic_shared = 24,       // shared.atomic
    .reduce_shared = 4,        // shared.reduce
    .remote_access = 172,      // cluster.load, cluster.atomic
    .fence = 9,                // fence.cta, fence.proxy_async
    .fence_gpu = 268,          // fence.gpu
    .fence_mbarrier_init = 0,  // fence.mbarrier_init
    .warp_sync = 0,            // barrier.warp
    .shuffle = 24,             // shuffle
    .vote = 9,                 // vote
    .mbarrier_op = 4,          // mbarrier.init
    .mbarrier_arrive = 5,      // mbarrier.arrive
    .mbarrier_expect_tx = 6,   // mbarrier.arrive_expect_tx
    .mbarrier_state = 23,      // mbarrier.arrive_state
    .mbarrier_test = 34,       // mbarrier.test_pending
    .mbarrier_try = 22,        // mbarrier.wait_ready, mbarrier.arrive_wait_same
    .tma_issue = 44,           // bulk.issue
    .tma_store_issue = 4,      // bulk.store_read/128
    .tensor_store_issue = 28,  // tensor.store_read/1024
    .vprintf = 200,            // guess
    .tmem_alloc = kBlackwell.tmem_alloc,
    .barrier_base = 6,                  // barrier.syncthreads
    .barrier_per_warp_x2 = 4,           // barrier.syncthreads
    .barrier_counted = 10,              // barrier.named
    .cluster_barrier = 79,              // cluster.sync, less the release
    .mbarrier_wakeup = 129,             // mbarrier.arrive_wait_other
    .mbarrier_wakeup_async = 0,         // cp_async.mbarrier beside cp_async.group
    .remote_arrive = 83,                // cluster.arrive, less the release
    .tma_latency = 199,                 // bulk.load/16
    .tma_bytes_per_cycle = 96,          // bulk.load/65536, bulk.stream_loads/16384
    .tma_store_read = 9,                // bulk.store_read
    .tma_store_latency = 9,             // bulk.store_written
    .tma_reduce = 40,                   // bulk.reduce_written
    .tma_store_bytes_per_cycle = 32,    // bulk.store_read, bulk.stream_stores
    .tma_port_bytes_per_cycle = 128,    // bulk.stream_in_and_out, bulk.stream_in_and_quarter
    .tma_cluster_latency = 56,          // cluster.copy
    .tma_cluster_bytes_per_cycle = 21,  // cluster.copy
    .cp_async_latency = 298,            // cp_async.group, cp_async.mbarrier
    .remote_store = 83,                 // cluster.st_async
    .tmem_access = kBlackwell.tmem_access,
    .tmem_bytes_per_cycle = kBlackwell.tmem_bytes_per_cycle,
    .mma_fixed_64 = kBlackwell.mma_fixed_64,
    .mma_fixed_128 = kBlackwell.mma_fixed_128,
    .mma_fixed_tensor_a = kBlackwell.mma_fixed_tensor_a,
    .mma_pair_128 = kBlackwell.mma_pair_128,
    .mma_pair_256 = kBlackwell.mma_pair_256,
    .mma_pair_128_tensor_a = kBlackwell.mma_pair_128_tensor_a,
    .mma_pair_256_tensor_a = kBlackwell.mma_pair_256_tensor_a,
    .mma_shared_bytes_per_cycle = kBlackwell.mma_shared_bytes_per_cycle,
};

}  // namespace handoff::machine
