// Barriers of threads, mbarriers and fences within one CTA.
#include "probe.cuh"

constexpr int kBarriers = 16;  // in a round

/// __syncthreads, kBarriers times, by all warps of the CTA.
extern "C" __global__ void sync_threads(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  measure(
      samples, zero, threadIdx.x, [] { __syncthreads(); },
      [](uint32_t&) {
#pragma unroll
        for (int k = 0; k < kBarriers; ++k) asm volatile("bar.sync 0;" ::: "memory");
      });
}

/// bar.sync with a number and a count of threads.
extern "C" __global__ void sync_named(uint32_t* samples, unsigned char*, uint32_t n, uint32_t zero) {
  measure(
      samples, zero, threadIdx.x, [] { __syncthreads(); },
      [n](uint32_t&) {
#pragma unroll
        for (int k = 0; k < kBarriers; ++k) asm volatile("bar.sync 1, %0;" ::"r"(n) : "memory");
      });
}

/// bar.arrive by one warp releases bar.sync of another, to and fro. 2 · kBarriers handoffs; two warps.
extern "C" __global__ void arrive_named(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  measure(
      samples, zero, threadIdx.x, [] { __syncthreads(); },
      [](uint32_t&) {
        if (threadIdx.x < 32) {
#pragma unroll
          for (int k = 0; k < kBarriers; ++k) asm volatile("bar.arrive 1, 64;\n\tbar.sync 2, 64;" ::: "memory");
        } else {
#pragma unroll
          for (int k = 0; k < kBarriers; ++k) asm volatile("bar.sync 1, 64;\n\tbar.arrive 2, 64;" ::: "memory");
        }
      });
}

extern "C" __global__ void sync_warp(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  measure_chain(samples, zero, threadIdx.x, [](uint32_t&) { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); });
}

/// mbarrier.init of kBarriers objects, one after the other, by one thread.
extern "C" __global__ void init(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  __shared__ alignas(8) uint64_t cells[kBarriers];
  const uint32_t barriers = shared_address(cells);
  bool first = true;
  measure(
      samples, zero, threadIdx.x,
      [&] {
        for (int k = 0; !first && k < kBarriers; ++k) mbarrier_inval(barriers + 8 * k);
        first = false;
      },
      [&](uint32_t&) {
#pragma unroll
        for (int k = 0; k < kBarriers; ++k) mbarrier_init(barriers + 8 * k, 1);
      });
}

/// mbarrier.arrive by one thread, one after the other; no phase completes.
extern "C" __global__ void arrive(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  __shared__ alignas(8) uint64_t cell;
  const uint32_t barrier = shared_address(&cell);
  mbarrier_init(barrier, (1 << 20) - 1);
  measure_chain(samples, zero, threadIdx.x, [barrier](uint32_t&) { mbarrier_arrive(barrier); });
}

/// mbarrier.arrive whose state is used, a chain; no phase completes.
extern "C" __global__ void arrive_state(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  __shared__ alignas(8) uint64_t cell;
  const uint32_t barrier = shared_address(&cell);
  mbarrier_init(barrier, (1 << 20) - 1);
  measure_chain(samples, zero, threadIdx.x, [barrier, zero](uint32_t& v) {
    uint64_t state;
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(barrier + (v & zero)) : "memory");
    v = static_cast<uint32_t>(state);
  });
}

/// mbarrier.arrive.expect_tx by one thread, one after the other; no phase completes.
extern "C" __global__ void arrive_expect_tx(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  __shared__ alignas(8) uint64_t cell;
  const uint32_t barrier = shared_address(&cell);
  mbarrier_init(barrier, (1 << 20) - 1);
  measure_chain(samples, zero, threadIdx.x, [barrier](uint32_t&) { mbarrier_arrive_expect_tx(barrier, 16); });
}

/// mbarrier.expect_tx by one thread, one after the other.
extern "C" __global__ void expect_tx(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  __shared__ alignas(8) uint64_t cell;
  const uint32_t barrier = shared_address(&cell);
  mbarrier_init(barrier, 1);
  measure_chain(samples, zero, threadIdx.x, [barrier](uint32_t&) {
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 16;" ::"r"(barrier) : "memory");
  });
}

/// Waits for a phase that is complete: try_wait, and the branch of its loop. kChain waits.
extern "C" __global__ void wait_ready(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  __shared__ alignas(8) uint64_t cell;
  const uint32_t barrier = shared_address(&cell);
  mbarrier_init(barrier, 1);
  // The phase before the first counts as complete.
  measure_chain(samples, zero, threadIdx.x, [barrier](uint32_t& v) { mbarrier_wait(barrier, 1, v); });
}

/// test_wait for a phase that is not complete: its answer, used. kChain tests.
extern "C" __global__ void test_pending(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  __shared__ alignas(8) uint64_t cell;
  const uint32_t barrier = shared_address(&cell);
  mbarrier_init(barrier, 1);
  measure_chain(samples, zero, threadIdx.x, [barrier, zero](uint32_t& v) {
    asm volatile(
        "{\n\t.reg .pred p;\n\tmbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0;\n\tselp.u32 %0, 1, 0, p;\n\t}"
        : "=r"(v)
        : "r"(barrier + (v & zero))
        : "memory");
  });
}

/// arrive that completes the phase, and the wait for it, in one thread. kBarriers times.
extern "C" __global__ void arrive_wait_same(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  __shared__ alignas(8) uint64_t cell;
  const uint32_t barrier = shared_address(&cell);
  mbarrier_init(barrier, 1);
  measure(
      samples, zero, threadIdx.x, [] {},
      [barrier](uint32_t& v) {
#pragma unroll
        for (int k = 0; k < kBarriers; ++k) {
          mbarrier_arrive(barrier);
          mbarrier_wait(barrier, k & 1, v);
        }
      });
}

/// One thread of each of two warps: an arrival completes the phase that the other one waits for, to and fro. 2 ·
/// kBarriers handoffs.
extern "C" __global__ void arrive_wait_other(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  __shared__ alignas(8) uint64_t cells[2];
  const uint32_t ping = shared_address(&cells[0]), pong = shared_address(&cells[1]);
  if (threadIdx.x == 0) {
    mbarrier_init(ping, 1);
    mbarrier_init(pong, 1);
  }
  measure(
      samples, zero, threadIdx.x, [] { __syncthreads(); },
      [&](uint32_t& v) {
        if (threadIdx.x == 0) {
#pragma unroll
          for (int k = 0; k < kBarriers; ++k) {
            mbarrier_arrive(ping);
            mbarrier_wait(pong, k & 1, v);
          }
        } else if (threadIdx.x == 32) {
#pragma unroll
          for (int k = 0; k < kBarriers; ++k) {
            mbarrier_wait(ping, k & 1, v);
            mbarrier_arrive(pong);
          }
        }
      });
}

/// fence.proxy.async between shared memory's proxies, with nothing to wait for.
extern "C" __global__ void fence_async(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  measure_chain(samples, zero, threadIdx.x, [](uint32_t&) { fence_proxy_async(); });
}

/// st.shared and fence.proxy.async behind it. A pair counts as one.
extern "C" __global__ void store_fence_async(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  __shared__ uint32_t words[32];
  const uint32_t at = shared_address(&words[threadIdx.x]);
  measure_chain(samples, zero, threadIdx.x, [at](uint32_t& v) {
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(v) : "memory");
    fence_proxy_async();
  });
}

extern "C" __global__ void fence_cta(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  measure_chain(samples, zero, threadIdx.x, [](uint32_t&) { asm volatile("fence.acq_rel.cta;" ::: "memory"); });
}

extern "C" __global__ void fence_gpu(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  measure_chain(samples, zero, threadIdx.x, [](uint32_t&) { asm volatile("fence.acq_rel.gpu;" ::: "memory"); });
}

extern "C" __global__ void fence_mbarrier_init(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  measure_chain(samples, zero, threadIdx.x, [](uint32_t&) {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  });
}
