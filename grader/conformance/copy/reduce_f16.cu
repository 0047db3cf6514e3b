// cp.reduce.async.bulk to global memory of f16: add.noftz, min and max; subnormals, signed zeros, no NaNs
// run: --out 768
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
    // Exponents of all ones lose a bit: no infinities, no NaNs.
    uint32_t a = in[(k * 5 + 1) & 255], b = in[k < 128 ? 256 + k : k & 255];
    for (uint32_t h = 0; h < 32; h += 16) {
      if ((a >> h & 0x7c00) == 0x7c00) a &= ~(0x4000u << h);
      if ((b >> h & 0x7c00) == 0x7c00) b &= ~(0x4000u << h);
    }
    cells[k] = b;
    for (uint32_t i = 0; i < 3; ++i) out[256 * i + k] = a;
  }
  fence_async();
  __syncwarp();
  if (lane == 0) {
    uint32_t* to = out;
    REDUCE("add.noftz.f16")
    REDUCE("min.f16")
    REDUCE("max.f16")
    commit();
    wait_bulk();
  }
}
