// cp.async.mbarrier.arrive.noinc of 32 lanes: .noinc counts as an expected arrival
// run: --out 512
// source: PTX §9.7.13.15.15
#include <cstdint>

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void init(uint32_t bar, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ uint32_t test_parity(uint32_t bar, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{\n\t.reg .pred p;\n\tmbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
      : "=r"(done)
      : "r"(bar), "r"(parity)
      : "memory");
  return done;
}

// Bit p: test_wait.parity with parity p.
__device__ uint32_t parities(uint32_t bar) { return test_parity(bar, 0) | test_parity(bar, 1) << 1; }

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
  __shared__ alignas(8) uint64_t barrier;
  __shared__ alignas(16) uint32_t cells[128];
  const uint32_t lane = threadIdx.x;
  const uint32_t bar = shared_address(&barrier);
  if (lane == 0) init(bar, 32);
  __syncwarp();
  for (uint32_t phase = 0; phase < 2; ++phase) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(cells + 4 * lane)),
                 "l"(__cvta_generic_to_global(in + 256 + 128 * phase + 4 * lane))
                 : "memory");
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(bar) : "memory");
    __syncwarp();
    wait_parity(bar, phase);
    for (uint32_t i = 0; i < 4; ++i) out[256 * phase + 4 * lane + i] = cells[127 - 4 * lane - i];
    out[256 * phase + 128 + lane] = parities(bar);
    __syncwarp();
  }
}
