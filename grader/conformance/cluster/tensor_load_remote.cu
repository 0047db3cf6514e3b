// a tensor copy into the shared memory of another CTA, signalled there
// run: --grid 2 --cluster 2 --out 192
// tensor-map: type=u32 dims=20x30 strides=96 box=8x6 base=in+1024
// source: PTX §9.7.9.27.1.2
#include <cuda.h>

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

__device__ void load_2d(uint32_t to, const CUtensorMap* map, int32_t x, int32_t y, uint32_t bar) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(bar)
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

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out, const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) uint32_t cells[64];
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
  if (lane == 0) arrive_expect_tx(bar, 192);
  cluster_sync();
  if (lane == 0) load_2d(mapa(shared_address(cells), rank ^ 1), &map, 4 + 4 * rank, 4, mapa(bar, rank ^ 1));
  const uint32_t done = completes(bar, 0);
  for (uint32_t i = lane; i < 64; i += 32) out[96 * rank + i] = cells[i];
  out[96 * rank + 64 + lane] = done;
  cluster_sync();
}
