// cp.reduce.async.bulk.add.f32 to global memory: signed zeros, subnormals, overflow, rounding
// run: --out 256
// source: PTX §9.7.9.25.4.2
#include <cstdint>

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void fence_async() { asm volatile("fence.proxy.async;" ::: "memory"); }

__device__ void commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

__device__ void wait_bulk() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

#define REDUCE(op)                                                      \
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group." op \
               " [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(to)),  \
               "r"(shared_address(cells)), "r"(1024)                    \
               : "memory");                                             \
  to += 256;

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(128) uint32_t cells[256];
  const uint32_t lane = threadIdx.x;
  for (uint32_t k = lane; k < 256; k += 32) {
    // Finite numbers and infinities; a NaN's place is taken by a number, and infinities do not meet.
    uint32_t a = in[(k * 5 + 1) & 127], b = in[k & 127];
    if (a << 1 > 0xff000000) a &= 0x3fffffff;
    if (b << 1 > 0xff000000) b &= 0x3fffffff;
    if (a << 1 == 0xff000000 && b << 1 == 0xff000000) b = a;
    cells[k] = b;
    for (uint32_t i = 0; i < 1; ++i) out[256 * i + k] = a;
  }
  fence_async();
  __syncwarp();
  if (lane == 0) {
    uint32_t* to = out;
    REDUCE("add.f32")
    commit();
    wait_bulk();
  }
}
