// elements of f32.ftz, edge patterns and random bits: what is flushed, and to what
// run: --out 288
// tensor-map: type=f32.ftz dims=4096 box=128 base=in
// source: PTX §5.5.1; CUDA Driver API, cuTensorMapEncodeTiled
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

__device__ void load_1d(uint32_t to, const CUtensorMap* map, int32_t x, uint32_t bar) {
  asm volatile(
      "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2}], [%3];" ::"r"(to),
      "l"(map), "r"(x), "r"(bar)
      : "memory");
}

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out, const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(1024) uint32_t cells[256];
  __shared__ alignas(8) uint64_t barrier;
  const uint32_t lane = threadIdx.x;
  for (uint32_t k = lane; k < 256; k += 32) cells[k] = 0xa5a5a5a5;
  const uint32_t bar = shared_address(&barrier);
  if (lane == 0) {
    init(bar, 1);
    fence_init();
  }
  fence_async();
  __syncwarp();
  if (lane == 0) {
    arrive_expect_tx(bar, 1024);
    load_1d(shared_address(cells) + 0, &map, 0, bar);
    load_1d(shared_address(cells) + 512, &map, 804, bar);
  }
  const uint32_t done = completes(bar, 0);
  for (uint32_t k = lane; k < 256; k += 32) out[k] = cells[k];
  out[256 + lane] = done;
}
