// the pending counts of the states that 32 lanes get from one arrive
// run: --out 33
// source: PTX §9.7.13.15.13
// undefined: the order in which the lanes of one instruction arrive
#include <cstdint>

__device__ void init(uint32_t bar, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ uint64_t arrive(uint32_t bar) {
  uint64_t state;
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(bar) : "memory");
  return state;
}

__device__ uint32_t pending_count(uint64_t state) {
  uint32_t count;
  asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(count) : "l"(state));
  return count;
}

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(8) uint64_t barrier;
  const uint32_t lane = threadIdx.x;
  const uint32_t bar = static_cast<uint32_t>(__cvta_generic_to_shared(&barrier));
  if (lane == 0) init(bar, 33);
  __syncwarp();
  out[lane] = pending_count(arrive(bar));
  __syncwarp();
  if (lane == 0) out[32] = pending_count(arrive(bar));
}
