// one bit: another CTA alone
// run: --grid 4 --cluster 4 --out 384
// source: PTX §9.7.9.25.4.1, §9.7.9.27.1.2
#include <cstdint>

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void init(uint32_t bar, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ void fence_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ void fence_async() { asm volatile("fence.proxy.async;" ::: "memory"); }

__device__ void arrive_expect_tx(uint32_t bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

// 1 once the phase is over; 0 if that takes far longer than a copy: then it counts other bytes than expected.
__device__ uint32_t completes(uint32_t bar, uint32_t parity) {
  for (uint32_t i = 0; i < 2000; ++i) {
    uint32_t done;
    asm volatile(
        "{\n\t.reg .pred p;\n\tmbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n\t"
        "selp.u32 %0, 1, 0, p;\n\t}"
        : "=r"(done)
        : "r"(bar), "r"(parity)
        : "memory");
    if (done != 0) return 1;
    __nanosleep(500);
  }
  return 0;
}

__device__ uint32_t test_parity(uint32_t bar, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{\n\t.reg .pred p;\n\tmbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n\t"
      "selp.u32 %0, 1, 0, p;\n\t}"
      : "=r"(done)
      : "r"(bar), "r"(parity)
      : "memory");
  return done;
}

__device__ uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Both addresses and the size are multiples of 16 bytes.
__device__ void bulk_multicast(uint32_t to, const void* from, uint32_t bytes, uint32_t bar, uint32_t mask) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1], %2, [%3], %4;" ::"r"(to),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(bar), "h"(static_cast<uint16_t>(mask))
      : "memory");
}

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(1024) uint32_t cells[64];
  __shared__ alignas(8) uint64_t barrier;
  const uint32_t lane = threadIdx.x;
  const uint32_t rank = cluster_rank();
  const uint32_t bar = shared_address(&barrier);
  if (lane == 0) {
    init(bar, 1);
    fence_init();
  }
  for (uint32_t i = lane; i < 64; i += 32) cells[i] = 0xa5a5a5a5;
  fence_async();
  __syncwarp();
  // What each rank receives.
  const uint32_t bytes[4] = {0, 0, 64, 0};
  if (lane == 0 && bytes[rank] != 0) arrive_expect_tx(bar, bytes[rank]);
  cluster_sync();
  if (lane == 0) {
    if (rank == 3) bulk_multicast(shared_address(cells) + 128, in + 400, 64, bar, 0x4);
  }
  uint32_t done = bytes[rank] != 0 ? completes(bar, 0) : 0;
  cluster_sync();
  // A CTA that receives nothing looks when the others have theirs: a byte that was counted would hold its phase up.
  if (bytes[rank] == 0) {
    if (lane == 0) arrive_expect_tx(bar, 0);
    __syncwarp();
    done = 2 + test_parity(bar, 0);
  }
  for (uint32_t i = lane; i < 64; i += 32) out[96 * rank + i] = cells[i];
  out[96 * rank + 64 + lane] = done;
}
