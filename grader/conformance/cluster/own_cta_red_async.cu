// in a cluster: red.async into the own CTA: every operation, one cell per lane, bytes counted by the mbarrier
// run: --grid 2 --cluster 2 --out 832
// source: PTX §9.7.13.8
#include <cstdint>

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void init(uint32_t bar, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ void fence_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ uint64_t arrive_expect_tx(uint32_t bar, uint32_t bytes) {
  uint64_t state;
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 %0, [%1], %2;"
               : "=l"(state)
               : "r"(bar), "r"(bytes)
               : "memory");
  return state;
}

__device__ void wait_parity(uint32_t bar, uint32_t parity) {
  asm volatile(
      "{\n\t"
      ".reg .pred p;\n\t"
      "again_%=:\n\t"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n\t"
      "@!p bra again_%=;\n\t"
      "}" ::"r"(bar),
      "r"(parity)
      : "memory");
}

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  out += 416 * blockIdx.x;
  __shared__ alignas(16) uint32_t cells[32 * 12];
  __shared__ alignas(8) uint64_t wide[32];
  __shared__ alignas(8) uint64_t barrier;
  const uint32_t lane = threadIdx.x;
  const uint32_t bar = shared_address(&barrier);
  for (uint32_t i = 0; i < 12; ++i) cells[12 * lane + i] = in[(lane * 5 + i + 129) & 255];
  wide[lane] = static_cast<uint64_t>(in[256 + lane]) << 32 | in[288 + lane];
  if (lane == 0) {
    init(bar, 1);
    fence_init();
  }
  __syncwarp();
  if (lane == 0) arrive_expect_tx(bar, 32 * (11 * 4 + 8));
  __syncwarp();
  uint32_t to = shared_address(cells + 12 * lane);
  const uint32_t b = in[(lane * 7 + 64) & 255];
#define RED(op)                                                                             \
  asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes." op \
               " [%0], %1, [%2];" ::"r"(to),                                                \
               "r"(b), "r"(bar)                                                             \
               : "memory");                                                                 \
  to += 4;
  RED("inc.u32")
  RED("dec.u32")
  RED("min.u32")
  RED("min.s32")
  RED("max.u32")
  RED("max.s32")
  RED("add.u32")
  RED("add.s32")
  RED("and.b32")
  RED("or.b32")
  RED("xor.b32")
  asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64 [%0], %1, [%2];" ::"r"(
                   shared_address(wide + lane)),
               "l"(static_cast<uint64_t>(b) << 20), "r"(bar)
               : "memory");
  wait_parity(bar, 0);
  for (uint32_t i = 0; i < 11; ++i) out[13 * lane + i] = cells[12 * lane + i];
  out[13 * lane + 11] = static_cast<uint32_t>(wide[lane]);
  out[13 * lane + 12] = static_cast<uint32_t>(wide[lane] >> 32);
}
