// The timing model: every constant in one place, each with its source. Cycles of one SM at about 1.96 GHz.
//
// The model is small on purpose. It orders events plausibly, so that the nominal schedule overlaps what a GPU would
// overlap, and it gives tune exercises a bound to be graded against. It is no simulator of a chip: issue slots are per
// warp, and caches are not modelled. "SEMA": public repository SemiAnalysisAI/microbench-blackwell, results on a B200.
// "survey": published microbenchmarks of B200 and B300 collected by third parties. Where no source gives a figure the
// line says "guess".
#pragma once

#include <cstdint>

namespace handoff::machine::timing {

inline constexpr uint32_t kAlu = 2;              ///< issue interval of a dependent scalar instruction, averaged; guess
inline constexpr uint32_t kSpecialFunction = 8;  ///< rcp, sqrt, sin…; guess
inline constexpr uint32_t kDouble = 16;          ///< f64 arithmetic; guess
inline constexpr uint32_t kBranch = 4;           ///< guess
inline constexpr uint32_t kSharedAccess = 30;    ///< survey: 29 cycles of latency on Hopper and Blackwell
inline constexpr uint32_t kSharedStore = 4;      ///< stores do not wait; guess
inline constexpr uint32_t kGlobalLoad = 290;     ///< survey: L2 hit about 293 cycles on B200
inline constexpr uint32_t kGlobalStore = 8;      ///< stores do not wait; guess
inline constexpr uint32_t kLocalAccess = 40;     ///< survey: L1 hit 39.6 cycles
inline constexpr uint32_t kAtomicGlobal = 300;   ///< as an L2 round trip
inline constexpr uint32_t kAtomicShared = 40;    ///< guess
inline constexpr uint32_t kFence = 20;           ///< guess
inline constexpr uint32_t kShuffle = 24;         ///< guess
inline constexpr uint32_t kBarrierBase = 40;  ///< survey: __syncthreads 45–89 cycles depending on the number of warps
inline constexpr uint32_t kBarrierPerWarpX2 = 3;  ///< half cycles a warp: 40 + 1.5 a warp fits that range
inline constexpr uint32_t kClusterBarrier = 180;  ///< barrier.cluster: last arrival to the waits; guess
inline constexpr uint32_t kRemoteStore = 300;     ///< st.async to its landing in another CTA of the cluster; guess
inline constexpr uint32_t kMbarrierOp = 8;  ///< survey (B300): arrive about 8, test_wait, try_wait (ready phase) 6–8
inline constexpr uint32_t kMbarrierWakeup = 46;  ///< survey (B300): arrive to observed about 54 in all
inline constexpr uint32_t kTmaIssue = 48;        ///< survey (B300): TMA issue floor for an instruction
/// L2 hit; SEMA's loaded 1 KiB figure is 1413, its minimum about 930 from DRAM.
inline constexpr uint32_t kTmaLatency = 700;
inline constexpr uint32_t kTmaStoreRead = 300;      ///< issue to source read of a bulk store; guess
inline constexpr uint32_t kTmaBytesPerCycle = 72;   ///< 21 TB/s of L2 over 148 SMs at 1.96 GHz (survey)
inline constexpr uint32_t kCpAsyncLatency = 600;    ///< SEMA ldgsts_latency 1085–1200 under load; guess for one CTA
inline constexpr uint32_t kVprintf = 200;           ///< guess
inline constexpr uint32_t kTmemAlloc = 100;         ///< guess
inline constexpr uint32_t kTmemAccess = 30;         ///< latency of tcgen05.ld and st; guess
inline constexpr uint32_t kTmemBytesPerCycle = 57;  ///< of a warp's tcgen05.ld; survey (B300)
/// SEMA, fitted: a single MMA from issue to the observed commit takes kMmaFixed… + N/2 cycles; of these the mbarrier's
/// wakeup and the wait are counted elsewhere.
///@{
inline constexpr uint32_t kMmaFixed64 = 120;       ///< A and B from shared memory, M = 64
inline constexpr uint32_t kMmaFixed128 = 136;      ///< A and B from shared memory, M = 128
inline constexpr uint32_t kMmaFixedTensorA = 104;  ///< A from tensor memory
///@}
inline constexpr uint32_t kMmaSharedBytesPerCycle = 128;  ///< operand bandwidth of shared memory; SEMA, fitted

}  // namespace handoff::machine::timing
