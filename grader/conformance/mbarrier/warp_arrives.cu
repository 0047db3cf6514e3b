// all 32 lanes arrive at once, four warps: the phase completes with the last of them; then each waits by its own state
// run: --block 128 --out 768
// source: PTX §9.7.13.15.13
#include <cstdint>

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

__device__ uint64_t arrive(uint32_t bar) {
  uint64_t state;
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(bar) : "memory");
  return state;
}

__device__ uint32_t test_state(uint32_t bar, uint64_t state) {
  uint32_t done;
  asm volatile("{\n\t.reg .pred p;\n\tmbarrier.test_wait.shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
               : "=r"(done)
               : "r"(bar), "l"(state)
               : "memory");
  return done;
}

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(8) uint64_t barrier;
  __shared__ uint32_t cells[128];
  const uint32_t thread = threadIdx.x;
  const uint32_t bar = static_cast<uint32_t>(__cvta_generic_to_shared(&barrier));
  if (thread == 0) init(bar, 128);
  __syncthreads();
  for (uint32_t phase = 0; phase < 3; ++phase) {
    cells[thread] = in[256 + 128 * phase + thread];
    const uint64_t state = arrive(bar);
    while (test_state(bar, state) == 0) {
    }
    out[phase * 256 + thread] = cells[127 - thread];
    out[phase * 256 + 128 + thread] = test_parity(bar, phase & 1);
    __syncthreads();
  }
}
