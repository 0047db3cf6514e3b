// What the probes of the timing model share: a stopwatch, loops around it, and instructions that several files use.
//
// Every probe is a kernel `(uint32_t* samples, unsigned char* global, uint32_t n, uint32_t zero)`; those of tensor
// copies take a tensor map behind these. It repeats its experiment kRounds times and writes the cycles of each round to
// samples[round]; the host leaves the first ones out, which warm caches, and takes the median of the others
// (grader/timing/measure.h). `global` is device memory that the probe may use as it likes, `n` the size that
// the probe is asked about (bytes, warps …), and `zero` is 0, which the compiler does not know.
//
// Dependencies. A clock may be read before earlier instructions have given their results, so both readings are tied to
// the data: what is measured starts from a value that depends on the first reading, and the second one is guarded by a
// predicate that needs the result. The probe `clock` measures what that costs by itself, and the host subtracts it.
#pragma once

#include <cstdint>

constexpr int kRounds = 40;
constexpr int kChain = 32;                ///< instructions in a chain, or repetitions, of one round
constexpr uint32_t kFlushed = 128 << 20;  ///< bytes that flush_l2 reads

/// Measures the cycles between its making and stop().
class Stopwatch {
 public:
  /// Starts. `value` keeps its value, and what depends on it cannot begin earlier.
  __device__ Stopwatch(uint32_t& value, uint32_t zero) {
    asm volatile("mov.u32 %0, %%clock;" : "=r"(begin_)::"memory");
    asm volatile("{\n\t.reg .b32 t;\n\tand.b32 t, %1, %2;\n\tadd.u32 %0, %0, t;\n\t}"
                 : "+r"(value)
                 : "r"(begin_), "r"(zero)
                 : "memory");
  }
  /// Cycles since then, read when `value` is known (0 for one value in 2^32, which no median notices).
  __device__ uint32_t stop(uint32_t value) const {
    uint32_t end = begin_;
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %1, 0x9e3779b9;\n\t@p mov.u32 %0, %%clock;\n\t}"
                 : "+r"(end)
                 : "r"(value)
                 : "memory");
    return end - begin_;
  }

 private:
  uint32_t begin_;
};

/// Runs `body(value)` once in each round, between two readings of the clock, and keeps thread 0's cycles. `between()`
/// runs before each round, unmeasured. All threads of the CTA call it alike.
template <class Between, class Body>
__device__ inline void measure(uint32_t* samples, uint32_t zero, uint32_t value, Between between, Body body) {
#pragma unroll 1
  for (int round = 0; round < kRounds; ++round) {
    between();
    const Stopwatch watch(value, zero);
    body(value);
    const uint32_t cycles = watch.stop(value);
    if (blockIdx.x == 0 && threadIdx.x == 0) samples[round] = cycles;
  }
}

/// The same for one warp and kChain repetitions of `step(value)`, unrolled.
template <class Step>
__device__ inline void measure_chain(uint32_t* samples, uint32_t zero, uint32_t value, Step step) {
  measure(
      samples, zero, value, [] { __syncwarp(); },
      [&](uint32_t& v) {
#pragma unroll
        for (int k = 0; k < kChain; ++k) step(v);
      });
}

__device__ inline uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

/// Reads the first 128 MiB of `global`, more than L2 holds, with all threads of the CTA.
__device__ inline void flush_l2(const unsigned char* global) {
  for (uint32_t at = threadIdx.x * 16; at < kFlushed; at += blockDim.x * 16) {
    asm volatile("{\n\t.reg .b32 a, b, c, d;\n\tld.global.cg.v4.u32 {a, b, c, d}, [%0];\n\t}" ::"l"(
                     __cvta_generic_to_global(global) + at)
                 : "memory");
  }
  __syncthreads();
}

// --- mbarriers (PTX §9.7.13.15) --------------------------------------------------------------------------------------

__device__ inline void mbarrier_init(uint32_t barrier, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
__device__ inline void mbarrier_inval(uint32_t barrier) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
__device__ inline void mbarrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ inline void mbarrier_arrive_expect_tx(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
/// Tries until the phase with this parity is complete. Adds 1 to `value` at each try, so that what follows depends on
/// the last answer.
__device__ inline void mbarrier_wait(uint32_t barrier, uint32_t parity, uint32_t& value) {
  uint32_t done;
  do {
    asm volatile(
        "{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  } while (done == 0);
  value += done;
}

// --- groups of bulk copies (PTX §9.7.9.25.1.1) -----------------------------------------------------------------------

__device__ inline void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ inline void bulk_wait() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
__device__ inline void bulk_wait_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
__device__ inline void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
