// five dimensions: boxes over sides and corners
// run: --out 845
// tensor-map: type=u8 dims=20x3x3x3x3 strides=32x112x352x1072 box=32x1x2x2x2 base=in+1024
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

__device__ void load_5d(uint32_t to, const CUtensorMap* map, int32_t x, int32_t y, int32_t z, int32_t w, int32_t v,
                        uint32_t bar) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4, %5, %6}], [%7];" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v), "r"(bar)
      : "memory");
}

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out, const __grid_constant__ CUtensorMap map) {
  const int32_t at[13][5] = {{0, 0, 0, 0, 0}, {-16, 0, 0, 0, 0}, {16, 1, 0, 0, 0}, {0, -1, 0, 0, 0},
                             {0, 3, 0, 0, 0}, {0, 1, -1, 0, 0},  {0, 1, 2, 0, 0},  {0, 1, 0, -1, 0},
                             {0, 1, 0, 2, 0}, {0, 1, 0, 0, -1},  {0, 1, 0, 0, 2},  {-16, 1, -1, -1, -1},
                             {16, 2, 2, 2, 2}};
  __shared__ alignas(1024) uint32_t cells[64];
  __shared__ alignas(8) uint64_t barrier;
  const uint32_t lane = threadIdx.x;
  const uint32_t bar = shared_address(&barrier);
  if (lane == 0) {
    init(bar, 1);
    fence_init();
  }
  for (uint32_t i = 0; i < 13; ++i) {
    for (uint32_t k = lane; k < 64; k += 32) cells[k] = 0xa5a5a5a5;
    fence_async();
    __syncwarp();
    if (lane == 0) {
      arrive_expect_tx(bar, 256);
      load_5d(shared_address(cells), &map, at[i][0], at[i][1], at[i][2], at[i][3], at[i][4], bar);
    }
    const uint32_t done = completes(bar, i & 1);
    for (uint32_t k = lane; k < 64; k += 32) out[64 * i + k] = cells[k];
    if (lane == 0) out[832 + i] = done;
    __syncwarp();
  }
}
