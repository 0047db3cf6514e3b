// the destination in shared::cta
// run: --out 96
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

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out, const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(1024) uint32_t cells[64];
  __shared__ alignas(8) uint64_t barrier;
  const uint32_t lane = threadIdx.x;
  for (uint32_t k = lane; k < 64; k += 32) cells[k] = 0xa5a5a5a5;
  const uint32_t bar = shared_address(&barrier);
  if (lane == 0) {
    init(bar, 1);
    fence_init();
  }
  fence_async();
  __syncwarp();
  if (lane == 0) {
    arrive_expect_tx(bar, 192);
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
            shared_address(cells)),
        "l"(&map), "r"(4), "r"(3), "r"(bar)
        : "memory");
  }
  const uint32_t done = completes(bar, 0);
  for (uint32_t k = lane; k < 64; k += 32) out[k] = cells[k];
  out[64 + lane] = done;
}
