// Bulk copies between global and shared memory (PTX §9.7.9.25.5.2): latency by size, what issuing costs, and the rate
// of a stream. One thread of each CTA issues; sources are in L2 once the first rounds have read them.
#include "probe.cuh"

extern __shared__ __align__(128) unsigned char shared_bytes[];  // an mbarrier for each stage, then the data

constexpr uint32_t kData = 128;  // where the data begins

__device__ inline void bulk_load(uint32_t to, const unsigned char* from, uint32_t bytes, uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier)
               : "memory");
}
__device__ inline void bulk_store(unsigned char* to, uint32_t from, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(to)),
               "r"(from), "r"(bytes)
               : "memory");
}

/// A load of n bytes: arrive.expect_tx, the copy, and the wait for it.
extern "C" __global__ void load(uint32_t* samples, unsigned char* global, uint32_t n, uint32_t zero) {
  const uint32_t barrier = shared_address(shared_bytes), data = barrier + kData;
  mbarrier_init(barrier, 1);
  fence_proxy_async();
  uint32_t parity = 0;
  measure(
      samples, zero, 0, [] {},
      [&](uint32_t& v) {
        mbarrier_arrive_expect_tx(barrier, n);
        bulk_load(data, global, n, barrier);
        mbarrier_wait(barrier, parity, v);
        parity ^= 1;
      });
}

/// The same from DRAM: every round loads bytes that nothing has read before, and L2 holds others. One thread of 1024
/// measures, the others help to empty L2.
extern "C" __global__ void load_dram(uint32_t* samples, unsigned char* global, uint32_t n, uint32_t zero) {
  const uint32_t barrier = shared_address(shared_bytes), data = barrier + kData;
  flush_l2(global);
  if (threadIdx.x != 0) return;
  mbarrier_init(barrier, 1);
  fence_proxy_async();
  const unsigned char* from = global + kFlushed;
  uint32_t parity = 0;
  measure(
      samples, zero, 0, [&] { from += 2 * n; },
      [&](uint32_t& v) {
        mbarrier_arrive_expect_tx(barrier, n);
        bulk_load(data, from, n, barrier);
        mbarrier_wait(barrier, parity, v);
        parity ^= 1;
      });
}

/// Eight loads of n bytes issued one behind the other: only the issuing is measured.
extern "C" __global__ void issue(uint32_t* samples, unsigned char* global, uint32_t n, uint32_t zero) {
  const uint32_t barrier = shared_address(shared_bytes), data = barrier + kData;
  mbarrier_init(barrier, 1);
  fence_proxy_async();
  uint32_t parity = 0, unused = 0;
  bool first = true;
  measure(
      samples, zero, 0,
      [&] {
        if (!first) {
          mbarrier_wait(barrier, parity, unused);
          parity ^= 1;
        }
        first = false;
        mbarrier_arrive_expect_tx(barrier, 8 * n);
      },
      [&](uint32_t&) {
#pragma unroll
        for (int k = 0; k < 8; ++k) bulk_load(data + k * n, global + k * n, n, barrier);
      });
  mbarrier_wait(barrier, parity, unused);
}

/// A stream of 32 loads of n bytes through a ring of four stages, the same 32 · n bytes round after round. CTAs of a
/// large grid share them, four or so each, so that L2 can hold them all. The whole stream is measured, its start and
/// end included.
extern "C" __global__ void stream_loads(uint32_t* samples, unsigned char* global, uint32_t n, uint32_t zero) {
  constexpr int kStages = 4, kPieces = 32;
  const uint32_t barriers = shared_address(shared_bytes), data = barriers + kData;
  for (int s = 0; s < kStages; ++s) mbarrier_init(barriers + 8 * s, 1);
  fence_proxy_async();
  const unsigned char* from = global + static_cast<uint64_t>(blockIdx.x % 33) * kPieces * n;
  const auto start = [&](int piece) {
    const int stage = piece % kStages;
    mbarrier_arrive_expect_tx(barriers + 8 * stage, n);
    bulk_load(data + stage * n, from + static_cast<uint64_t>(piece) * n, n, barriers + 8 * stage);
  };
  measure(
      samples, zero, 0, [] {},
      [&](uint32_t& v) {
        for (int piece = 0; piece < kStages; ++piece) start(piece);
#pragma unroll 4
        for (int piece = 0; piece < kPieces; ++piece) {
          // A stage has an even number of phases in a round, so each round begins with the same parity.
          mbarrier_wait(barriers + 8 * (piece % kStages), piece / kStages & 1, v);
          if (piece + kStages < kPieces) start(piece + kStages);
        }
      });
}

/// A store of n bytes, until its source may be written again (wait_group.read).
extern "C" __global__ void store_read(uint32_t* samples, unsigned char* global, uint32_t n, uint32_t zero) {
  const uint32_t data = shared_address(shared_bytes) + kData;
  measure(
      samples, zero, 0, [] { bulk_wait(); },
      [&](uint32_t&) {
        bulk_store(global, data, n);
        bulk_commit();
        bulk_wait_read();
      });
  bulk_wait();
}

/// A store of n bytes, until it has been written (wait_group).
extern "C" __global__ void store_written(uint32_t* samples, unsigned char* global, uint32_t n, uint32_t zero) {
  const uint32_t data = shared_address(shared_bytes) + kData;
  measure(
      samples, zero, 0, [] {},
      [&](uint32_t&) {
        bulk_store(global, data, n);
        bulk_commit();
        bulk_wait();
      });
}

/// A reduction (add.u32) of n bytes in global memory, until it has been written.
extern "C" __global__ void reduce_written(uint32_t* samples, unsigned char* global, uint32_t n, uint32_t zero) {
  const uint32_t data = shared_address(shared_bytes) + kData;
  measure(
      samples, zero, 0, [] {},
      [&](uint32_t&) {
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;" ::"l"(
                         __cvta_generic_to_global(global)),
                     "r"(data), "r"(n)
                     : "memory");
        bulk_commit();
        bulk_wait();
      });
}

/// A stream of 32 stores of n bytes from four stages, a group each: at most four are unread at a time. Measured until
/// the last has been read.
extern "C" __global__ void stream_stores(uint32_t* samples, unsigned char* global, uint32_t n, uint32_t zero) {
  constexpr int kStages = 4, kPieces = 32;
  const uint32_t data = shared_address(shared_bytes) + kData;
  unsigned char* to = global + static_cast<uint64_t>(blockIdx.x) * kPieces * n;
  measure(
      samples, zero, 0, [] { bulk_wait(); },
      [&](uint32_t&) {
#pragma unroll 4
        for (int piece = 0; piece < kPieces; ++piece) {
          bulk_store(to + static_cast<uint64_t>(piece) * n, data + piece % kStages * n, n);
          bulk_commit();
          asm volatile("cp.async.bulk.wait_group.read 3;" ::: "memory");
        }
        bulk_wait_read();
      });
  bulk_wait();
}

/// Both ways: stream_loads, and behind each piece that has landed a store of `bytes` from stages of its own, at most
/// four of which are unread at a time. Measured until the last load has landed and the last store has been read.
template <int kDivisor>
__device__ void stream_both_ways(uint32_t* samples, unsigned char* global, uint32_t n, uint32_t zero) {
  constexpr int kStages = 4, kPieces = 32;
  const uint32_t barriers = shared_address(shared_bytes), data = barriers + kData, outgoing = data + kStages * n;
  const uint32_t bytes = n / kDivisor;
  for (int s = 0; s < kStages; ++s) mbarrier_init(barriers + 8 * s, 1);
  fence_proxy_async();
  unsigned char* const to = global + static_cast<uint64_t>(kPieces) * n;
  const auto start = [&](int piece) {
    const int stage = piece % kStages;
    mbarrier_arrive_expect_tx(barriers + 8 * stage, n);
    bulk_load(data + stage * n, global + static_cast<uint64_t>(piece) * n, n, barriers + 8 * stage);
  };
  measure(
      samples, zero, 0, [] { bulk_wait(); },
      [&](uint32_t& v) {
        for (int piece = 0; piece < kStages; ++piece) start(piece);
#pragma unroll 4
        for (int piece = 0; piece < kPieces; ++piece) {
          mbarrier_wait(barriers + 8 * (piece % kStages), piece / kStages & 1, v);
          if (piece + kStages < kPieces) start(piece + kStages);
          bulk_store(to + static_cast<uint64_t>(piece) * bytes, outgoing + piece % kStages * n, bytes);
          bulk_commit();
          asm volatile("cp.async.bulk.wait_group.read 3;" ::: "memory");
        }
        bulk_wait_read();
      });
  bulk_wait();
}

/// As many bytes out as in.
extern "C" __global__ void stream_in_and_out(uint32_t* samples, unsigned char* global, uint32_t n, uint32_t zero) {
  stream_both_ways<1>(samples, global, n, zero);
}

/// A quarter as many bytes out as in.
extern "C" __global__ void stream_in_and_quarter(uint32_t* samples, unsigned char* global, uint32_t n, uint32_t zero) {
  stream_both_ways<4>(samples, global, n, zero);
}
