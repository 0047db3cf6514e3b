// pending_count of the states that arrivals of several counts return: what was pending before each
// run: --out 18
// source: PTX §9.7.13.15.17
#include <cstdint>

__device__ void init(uint32_t bar, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ uint64_t arrive(uint32_t bar) {
  uint64_t state;
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(bar) : "memory");
  return state;
}

__device__ uint64_t arrive_n(uint32_t bar, uint32_t count) {
  uint64_t state;
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1], %2;" : "=l"(state) : "r"(bar), "r"(count) : "memory");
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

__device__ uint32_t pending_count(uint64_t state) {
  uint32_t count;
  asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(count) : "l"(state));
  return count;
}

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(8) uint64_t barrier;
  if (threadIdx.x != 0) return;
  const uint32_t bar = static_cast<uint32_t>(__cvta_generic_to_shared(&barrier));
  uint32_t* to = out;
  init(bar, 10);
  for (uint32_t phase = 0; phase < 3; ++phase) {
    *to++ = pending_count(arrive(bar));
    *to++ = pending_count(arrive_n(bar, 4));
    *to++ = pending_count(arrive_n(bar, 2));
    *to++ = pending_count(arrive(bar));
    const uint64_t last = arrive_n(bar, 2);
    *to++ = pending_count(last);
    *to++ = test_state(bar, last);
  }
}
