// Shared, global and local memory through ordinary loads, stores and atomics. One warp unless it says otherwise; the
// address of each access depends on the result of the one before.
#include "probe.cuh"

constexpr int kLoads = 16;  // in a round, where caches must not be left

/// ld.shared.u32, a chain: each word holds its own address. Lane l reads word l · n, so n is the number of lanes that
/// want the same bank (1, 2, 4 … 32).
extern "C" __global__ void load_shared(uint32_t* samples, unsigned char*, uint32_t n, uint32_t zero) {
  __shared__ uint32_t words[32 * 32];
  const uint32_t at = shared_address(&words[threadIdx.x * n]);
  words[threadIdx.x * n] = at;
  __syncwarp();
  measure_chain(samples, zero, at, [](uint32_t& v) { asm volatile("ld.shared.u32 %0, [%0];" : "+r"(v)::"memory"); });
}

/// ld.shared.v4.u32, a chain: 512 bytes for the warp.
extern "C" __global__ void load_shared_v4(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  __shared__ alignas(16) uint32_t words[32 * 4];
  const uint32_t at = shared_address(&words[threadIdx.x * 4]);
  words[threadIdx.x * 4] = at;
  __syncwarp();
  measure_chain(samples, zero, at, [](uint32_t& v) {
    asm volatile("{\n\t.reg .b32 a, b, c;\n\tld.shared.v4.u32 {%0, a, b, c}, [%0];\n\t}" : "+r"(v)::"memory");
  });
}

/// st.shared.u32, one after the other to the same words: what a store costs its warp.
extern "C" __global__ void store_shared(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  __shared__ uint32_t words[32];
  const uint32_t at = shared_address(&words[threadIdx.x]);
  measure_chain(samples, zero, threadIdx.x, [at](uint32_t& v) {
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(v) : "memory");
  });
}

/// st.shared.u32 and ld.shared.u32 of the same word. A pair counts as one.
extern "C" __global__ void store_load_shared(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  __shared__ uint32_t words[32];
  const uint32_t at = shared_address(&words[threadIdx.x]);
  measure_chain(samples, zero, threadIdx.x, [at](uint32_t& v) {
    asm volatile("st.shared.u32 [%1], %0;\n\tld.shared.u32 %0, [%1];" : "+r"(v) : "r"(at) : "memory");
  });
}

/// atom.shared.add by one thread, a chain.
extern "C" __global__ void atomic_shared(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  __shared__ uint32_t word;
  word = 0;
  const uint32_t at = shared_address(&word);
  measure_chain(samples, zero, threadIdx.x, [at, zero](uint32_t& v) {
    asm volatile("{\n\t.reg .b32 a;\n\tand.b32 a, %0, %2;\n\tadd.u32 a, a, %1;\n\tatom.shared.add.u32 %0, [a], 1;\n\t}"
                 : "+r"(v)
                 : "r"(at), "r"(zero)
                 : "memory");
  });
}

/// red.shared.add by one thread, one after the other.
extern "C" __global__ void reduce_shared(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  __shared__ uint32_t word;
  word = 0;
  const uint32_t at = shared_address(&word);
  measure_chain(samples, zero, threadIdx.x, [at](uint32_t&) {
    asm volatile("red.shared.add.u32 [%0], 1;" ::"r"(at) : "memory");
  });
}

/// A chain of kLoads loads from global memory by one warp, 128 bytes each, `step` bytes apart; `load(address)` gives
/// what it read. `Again`: every round reads the same lines.
template <bool Again, class Load>
__device__ inline void measure_loads(uint32_t* samples, const unsigned char* global, uint32_t step, uint32_t zero,
                                     Load load) {
  const uint64_t base = __cvta_generic_to_global(global) + threadIdx.x * 4;
  uint64_t at = base;
  measure(
      samples, zero, threadIdx.x, [] { __syncwarp(); },
      [&](uint32_t& v) {
#pragma unroll
        for (int k = 0; k < kLoads; ++k) v = load(at + static_cast<uint64_t>(k) * step + (v & zero));
        if (!Again) at += static_cast<uint64_t>(kLoads) * step;
      });
}

__device__ inline uint32_t load_cg(uint64_t address) {
  uint32_t v;
  asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  return v;
}

/// Hits in L1.
extern "C" __global__ void load_l1(uint32_t* samples, unsigned char* global, uint32_t n, uint32_t zero) {
  measure_loads<true>(samples, global, n, zero, [](uint64_t address) {
    uint32_t v;
    asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
    return v;
  });
}

/// Hits in L2: .cg does not look into L1.
extern "C" __global__ void load_l2(uint32_t* samples, unsigned char* global, uint32_t n, uint32_t zero) {
  measure_loads<true>(samples, global, n, zero, load_cg);
}

/// Misses everywhere: the lines were never read before, and reading 128 MiB of other memory has emptied L2 first. 1024
/// threads read, one warp measures.
extern "C" __global__ void load_dram(uint32_t* samples, unsigned char* global, uint32_t n, uint32_t zero) {
  flush_l2(global);
  if (threadIdx.x >= 32) return;
  global += kFlushed;
  measure_loads<false>(samples, global, n, zero, load_cg);
}

/// st.global.u32 by one warp, one after the other: what a store costs its warp.
extern "C" __global__ void store_global(uint32_t* samples, unsigned char* global, uint32_t, uint32_t zero) {
  const uint64_t at = __cvta_generic_to_global(global) + threadIdx.x * 4;
  measure_chain(samples, zero, threadIdx.x, [at](uint32_t& v) {
    asm volatile("st.global.u32 [%0], %1;" ::"l"(at), "r"(v) : "memory");
  });
}

/// atom.global.add by one thread, a chain.
extern "C" __global__ void atomic_global(uint32_t* samples, unsigned char* global, uint32_t, uint32_t zero) {
  const uint64_t base = __cvta_generic_to_global(global);
  measure(
      samples, zero, threadIdx.x, [] { __syncwarp(); },
      [&](uint32_t& v) {
#pragma unroll
        for (int k = 0; k < kLoads; ++k) {
          const uint64_t address = base + (v & zero);
          asm volatile("atom.global.add.u32 %0, [%1], 1;" : "=r"(v) : "l"(address) : "memory");
        }
      });
}

/// One cp.async of 16 bytes by each lane, from its issue to the end of its group; the source is in L2.
extern "C" __global__ void cp_async(uint32_t* samples, unsigned char* global, uint32_t, uint32_t zero) {
  __shared__ alignas(16) unsigned char to[512];
  const uint32_t at = shared_address(to) + threadIdx.x * 16;
  const uint64_t from = __cvta_generic_to_global(global) + threadIdx.x * 16;
  measure(
      samples, zero, threadIdx.x, [] { __syncwarp(); },
      [&](uint32_t& v) {
        asm volatile(
            "cp.async.cg.shared.global [%0], [%1], 16;\n\tcp.async.commit_group;\n\tcp.async.wait_group 0;" ::"r"(at),
            "l"(from + (v & zero))
            : "memory");
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(at) : "memory");
      });
}

/// The same, reported by an mbarrier: cp.async.mbarrier.arrive.noinc of 32 lanes, and a wait.
extern "C" __global__ void cp_async_mbarrier(uint32_t* samples, unsigned char* global, uint32_t, uint32_t zero) {
  __shared__ alignas(16) unsigned char to[512];
  __shared__ alignas(8) uint64_t cell;
  const uint32_t at = shared_address(to) + threadIdx.x * 16, barrier = shared_address(&cell);
  const uint64_t from = __cvta_generic_to_global(global) + threadIdx.x * 16;
  if (threadIdx.x == 0) mbarrier_init(barrier, 32);
  uint32_t parity = 0;
  measure(
      samples, zero, threadIdx.x, [] { __syncwarp(); },
      [&](uint32_t& v) {
        asm volatile(
            "cp.async.cg.shared.global [%0], [%1], 16;\n\tcp.async.mbarrier.arrive.noinc.shared.b64 [%2];" ::"r"(at),
            "l"(from + (v & zero)), "r"(barrier)
            : "memory");
        mbarrier_wait(barrier, parity, v);
        parity ^= 1;
      });
}
