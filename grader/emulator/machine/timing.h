// The timing model: every constant in one place, each with its source. Cycles of one SM at about 1.96 GHz.
//
// The model is small on purpose. It orders events plausibly, so that the nominal schedule overlaps what a GPU would
// overlap, and it gives tune exercises a bound to be graded against. It is no simulator of a chip: issue slots are per
// warp, a warp waits for each instruction, and caches are not modelled.
//
// There are two sets. kBlackwell is what exercises are graded on; its figures are published ones. kHopper exists so
// that the model can be held against a chip at hand: docs/timing.md says how it was measured and how well it agrees.
// "SEMA": public repository SemiAnalysisAI/microbench-blackwell, results on a B200. "survey": published microbenchmarks
// of B200 and B300 collected by third parties. Where no source gives a figure the line says "guess".
#pragma once

#include <cstdint>

namespace handoff::machine {

/// What things cost, in cycles unless it says otherwise. Costs of instructions are put into them when they are decoded.
struct TimingModel {
  // Instructions: what one takes of its warp's time.
  uint16_t alu = 0;            ///< arithmetic, and what has no line of its own
  uint16_t branch = 0;         ///< any jump, taken or not
  uint16_t shared_load = 0;    ///< until the value is there
  uint16_t shared_store = 0;   ///< stores do not wait
  uint16_t global_load = 0;    ///< L2 hit
  uint16_t global_store = 0;   ///< stores do not wait
  uint16_t local_load = 0;     ///< L1 hit
  uint16_t atomic_global = 0;  ///< with a result
  uint16_t atomic_shared = 0;  ///< with a result
  uint16_t fence = 0;          ///< of any kind
  uint16_t shuffle = 0;        ///< and votes
  uint16_t mbarrier_op = 0;    ///< init, arrive, expect_tx, a test
  uint16_t tma_issue = 0;      ///< a bulk or tensor copy's instruction
  uint16_t vprintf = 0;        ///< a call
  uint16_t tmem_alloc = 0;     ///< alloc and dealloc
  // Barriers.
  uint16_t barrier_base = 0;         ///< bar.sync: last arrival to the waits …
  uint16_t barrier_per_warp_x2 = 0;  ///< … and half cycles for each warp of the CTA
  uint16_t cluster_barrier = 0;      ///< barrier.cluster: last arrival to the waits
  uint16_t mbarrier_wakeup = 0;      ///< completion of a phase to the wait that sees it
  // Asynchronous copies.
  uint16_t tma_latency = 0;          ///< issue to written
  uint16_t tma_store_read = 0;       ///< issue of a store to its source read
  uint16_t tma_bytes_per_cycle = 1;  ///< bytes a cycle of one SM's copy engine
  uint16_t cp_async_latency = 0;     ///< issue to written
  uint16_t remote_store = 0;         ///< st.async to its landing in another CTA of the cluster
  // Tensor memory and the tensor core. A single MMA takes mma_fixed_… + N/2 cycles from issue to the observed commit;
  // of these the mbarrier's wakeup and the wait are counted elsewhere.
  uint16_t tmem_access = 0;                 ///< tcgen05.ld and st
  uint16_t tmem_bytes_per_cycle = 1;        ///< bytes a cycle of a warp's tcgen05.ld
  uint16_t mma_fixed_64 = 0;                ///< A and B from shared memory, M = 64
  uint16_t mma_fixed_128 = 0;               ///< A and B from shared memory, M = 128
  uint16_t mma_fixed_tensor_a = 0;          ///< A from tensor memory
  uint16_t mma_shared_bytes_per_cycle = 1;  ///< operand bandwidth of shared memory
};

/// B200.
inline constexpr TimingModel kBlackwell{
    .alu = 2,                           // issue interval of a dependent scalar instruction, averaged; guess
    .branch = 4,                        // guess
    .shared_load = 30,                  // survey: 29 on Hopper and Blackwell
    .shared_store = 4,                  // guess
    .global_load = 290,                 // survey: L2 hit about 293 cycles on B200
    .global_store = 8,                  // guess
    .local_load = 40,                   // survey: L1 hit 39.6 cycles
    .atomic_global = 300,               // as an L2 round trip
    .atomic_shared = 40,                // guess
    .fence = 20,                        // guess
    .shuffle = 24,                      // guess
    .mbarrier_op = 8,                   // survey (B300): arrive about 8; test_wait, try_wait of a ready phase 6–8
    .tma_issue = 48,                    // survey (B300): TMA issue floor for an instruction
    .vprintf = 200,                     // guess
    .tmem_alloc = 100,                  // guess
    .barrier_base = 40,                 // survey: __syncthreads 45–89 cycles depending on the number of warps
    .barrier_per_warp_x2 = 3,           // 40 + 1.5 a warp fits that range
    .cluster_barrier = 180,             // guess
    .mbarrier_wakeup = 46,              // survey (B300): arrive to observed about 54 in all
    .tma_latency = 700,                 // L2 hit; SEMA's loaded 1 KiB figure is 1413, its minimum about 930 from DRAM
    .tma_store_read = 300,              // guess
    .tma_bytes_per_cycle = 72,          // survey: 21 TB/s of L2 over 148 SMs at 1.96 GHz
    .cp_async_latency = 600,            // SEMA ldgsts_latency 1085–1200 under load; guess for one CTA
    .remote_store = 300,                // guess
    .tmem_access = 30,                  // guess
    .tmem_bytes_per_cycle = 57,         // survey (B300)
    .mma_fixed_64 = 120,                // SEMA, fitted
    .mma_fixed_128 = 136,               // SEMA, fitted
    .mma_fixed_tensor_a = 104,          // SEMA, fitted
    .mma_shared_bytes_per_cycle = 128,  // SEMA, fitted
};

/// H200. Nothing of it has been measured yet: the figures of kBlackwell.
inline constexpr TimingModel kHopper = kBlackwell;

}  // namespace handoff::machine
