// What CTAs of a cluster do with each other: barriers, distributed shared memory, remote arrivals, asynchronous stores,
// copies between shared memories, multicast. Rank 0 measures.
#include "probe.cuh"

constexpr int kTimes = 16;  // in a round

extern __shared__ __align__(128) unsigned char cluster_bytes[];  // two mbarriers, then the data

constexpr uint32_t kData = 128;  // where the data begins

__device__ inline uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
/// The same place in the shared memory of another CTA of the cluster.
__device__ inline uint32_t map_to(uint32_t address, uint32_t rank) {
  uint32_t remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
  return remote;
}
__device__ inline void cluster_sync() {
  asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}
/// Initialises the CTA's two mbarriers, for one arrival each, and makes them known to the cluster.
__device__ inline void init_barriers(uint32_t barriers) {
  if (threadIdx.x == 0) {
    mbarrier_init(barriers, 1);
    mbarrier_init(barriers + 8, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  cluster_sync();
}
/// Waits as mbarrier_wait does, for what other CTAs of the cluster did.
__device__ inline void wait_cluster(uint32_t barrier, uint32_t parity, uint32_t& value) {
  uint32_t done;
  do {
    asm volatile(
        "{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n\t"
        "selp.u32 %0, 1, 0, p;\n\t}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  } while (done == 0);
  value += done;
}

/// barrier.cluster.arrive and wait, kTimes times, by all threads of the cluster.
extern "C" __global__ void sync_cluster(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  measure(
      samples, zero, threadIdx.x, [] { cluster_sync(); },
      [](uint32_t&) {
#pragma unroll
        for (int k = 0; k < kTimes; ++k) cluster_sync();
      });
  cluster_sync();
}

/// ld.shared::cluster.u32 from the next CTA, a chain of one warp: each word holds its own address.
extern "C" __global__ void load_remote(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  __shared__ uint32_t words[32];
  const uint32_t remote = map_to(shared_address(&words[threadIdx.x]), cluster_rank() ^ 1);
  asm volatile("st.shared::cluster.u32 [%0], %0;" ::"r"(remote) : "memory");
  cluster_sync();
  if (cluster_rank() == 0) {
    measure(
        samples, zero, remote, [] { __syncwarp(); },
        [](uint32_t& v) {
#pragma unroll
          for (int k = 0; k < kTimes; ++k) asm volatile("ld.shared::cluster.u32 %0, [%0];" : "+r"(v)::"memory");
        });
  }
  cluster_sync();
}

/// st.shared::cluster.u32 to the next CTA, one after the other: what a store costs its warp.
extern "C" __global__ void store_remote(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  __shared__ uint32_t words[32];
  const uint32_t remote = map_to(shared_address(&words[threadIdx.x]), cluster_rank() ^ 1);
  cluster_sync();
  if (cluster_rank() == 0) {
    measure_chain(samples, zero, threadIdx.x, [remote](uint32_t& v) {
      asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(remote), "r"(v) : "memory");
    });
  }
  cluster_sync();
}

/// atom.shared::cluster.add in the next CTA by one thread, a chain.
extern "C" __global__ void atomic_remote(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  __shared__ uint32_t word;
  word = 0;
  const uint32_t remote = map_to(shared_address(&word), cluster_rank() ^ 1);
  cluster_sync();
  if (cluster_rank() == 0) {
    measure(
        samples, zero, threadIdx.x, [] {},
        [&](uint32_t& v) {
#pragma unroll
          for (int k = 0; k < kTimes; ++k) {
            asm volatile("atom.shared::cluster.add.u32 %0, [%1], 1;" : "=r"(v) : "r"(remote + (v & zero)) : "memory");
          }
        });
  }
  cluster_sync();
}

/// `send(peer)` by a thread of one CTA completes a phase that a thread of the other waits for, to and fro: 2 · kTimes
/// handoffs between rank 0 and rank 1. Each CTA's first mbarrier is the one that its own thread waits for; `bytes` is
/// what each phase expects by transactions (0: it counts an arrival).
template <class Send>
__device__ inline void measure_handoffs(uint32_t* samples, uint32_t zero, uint32_t bytes, Send send) {
  const uint32_t mine = shared_address(cluster_bytes);
  const uint32_t peer = cluster_rank() ^ 1;
  init_barriers(mine);
  const bool first = cluster_rank() == 0;
  measure(
      samples, zero, 0, [] { cluster_sync(); },
      [&](uint32_t& v) {
#pragma unroll 1
        for (int k = 0; k < kTimes; ++k) {
          if (bytes != 0) mbarrier_arrive_expect_tx(mine, bytes);
          if (first) send(peer);
          wait_cluster(mine, k & 1, v);
          if (!first) send(peer);
        }
      });
  cluster_sync();
}

/// mbarrier.arrive on a barrier of the other CTA.
extern "C" __global__ void arrive_remote(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  const uint32_t barrier = map_to(shared_address(cluster_bytes), cluster_rank() ^ 1);
  measure_handoffs(samples, zero, 0, [barrier](uint32_t) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
  });
}

/// st.async of four bytes into the other CTA, with complete_tx there.
extern "C" __global__ void st_async(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  const uint32_t barrier = map_to(shared_address(cluster_bytes), cluster_rank() ^ 1);
  measure_handoffs(samples, zero, 4, [barrier](uint32_t value) {
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(barrier + kData),
        "r"(value), "r"(barrier)
        : "memory");
  });
}

/// A bulk copy of n bytes into the other CTA's shared memory, with complete_tx there.
extern "C" __global__ void copy_remote(uint32_t* samples, unsigned char*, uint32_t n, uint32_t zero) {
  const uint32_t here = shared_address(cluster_bytes);
  const uint32_t there = map_to(here, cluster_rank() ^ 1);
  measure_handoffs(samples, zero, n, [=](uint32_t) {
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     there + kData),
                 "r"(here + kData + n), "r"(n), "r"(there)
                 : "memory");
  });
}

/// A bulk load of n bytes from L2 to all CTAs of the cluster by multicast, from its issue to the completion at rank 0.
extern "C" __global__ void multicast(uint32_t* samples, unsigned char* global, uint32_t n, uint32_t zero) {
  const uint32_t barrier = shared_address(cluster_bytes);
  init_barriers(barrier);
  uint32_t ctas;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(ctas));
  const auto mask = static_cast<uint16_t>((1u << ctas) - 1);
  uint32_t parity = 0;
  measure(
      samples, zero, 0,
      [&] {
        // Every CTA is ready for the next round before rank 0 issues it.
        mbarrier_arrive_expect_tx(barrier, n);
        cluster_sync();
      },
      [&](uint32_t& v) {
        if (cluster_rank() == 0) {
          asm volatile(
              "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, "
              "[%3], %4;" ::"r"(barrier + kData),
              "l"(__cvta_generic_to_global(global)), "r"(n), "r"(barrier), "h"(mask)
              : "memory");
        }
        wait_cluster(barrier, parity, v);
        parity ^= 1;
      });
  cluster_sync();
}
