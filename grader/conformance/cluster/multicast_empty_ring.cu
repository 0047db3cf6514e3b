// four phases of multicast; each CTA tells the issuer that its buffer is free
// run: --grid 2 --cluster 2 --out 512
// tensor-map: type=u32 dims=20x30 strides=96 box=8x6 base=in+1024
// source: PTX §9.7.9.25.4.1, §9.7.9.27.1.2
#include <cuda.h>

#include <cstdint>

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void init(uint32_t bar, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ void fence_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ void arrive_expect_tx(uint32_t bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

__device__ void wait_parity(uint32_t bar, uint32_t parity) {
  asm volatile(
      "{\n\t"
      ".reg .pred p;\n\t"
      "again_%=:\n\t"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n\t"
      "@!p bra again_%=;\n\t"
      "}" ::"r"(bar),
      "r"(parity)
      : "memory");
}

__device__ void multicast_2d(uint32_t to, const CUtensorMap* map, int32_t x, int32_t y, uint32_t bar, uint32_t mask) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(bar), "h"(static_cast<uint16_t>(mask))
      : "memory");
}

__device__ uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__device__ uint32_t mapa(uint32_t at, uint32_t rank) {
  uint32_t mapped;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(at), "r"(rank));
  return mapped;
}

__device__ void remote_arrive(uint32_t bar) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(bar) : "memory");
}

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out, const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) uint32_t cells[64];
  __shared__ alignas(8) uint64_t barrier, empty;
  const uint32_t lane = threadIdx.x;
  const uint32_t rank = cluster_rank();
  const uint32_t bar = shared_address(&barrier);
  if (lane == 0) {
    init(bar, 1);
    fence_init();
  }
  const uint32_t free = shared_address(&empty);
  if (lane == 0) {
    init(free, 2);
    fence_init();
  }
  cluster_sync();
  for (uint32_t i = 0; i < 4; ++i) {
    if (lane == 0) {
      arrive_expect_tx(bar, 192);
      remote_arrive(mapa(free, 0));
      if (rank == 0) {
        wait_parity(free, i & 1);
        multicast_2d(shared_address(cells), &map, 4 * i, 3 * i, bar, 0x3);
      }
    }
    __syncwarp();
    wait_parity(bar, i & 1);
    for (uint32_t k = lane; k < 48; k += 32) out[256 * rank + 64 * i + k] = cells[k];
    __syncwarp();
  }
  cluster_sync();
}
