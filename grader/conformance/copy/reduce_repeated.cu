// sixteen bulk additions of u32 and f32 on one row of global memory, each waited for: the sum in order
// run: --out 64
// source: PTX §9.7.9.25.4.2
#include <cstdint>

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void fence_async() { asm volatile("fence.proxy.async;" ::: "memory"); }

__device__ void commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

__device__ void wait_bulk() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(128) uint32_t cells[64];
  const uint32_t lane = threadIdx.x;
  out[lane] = in[256 + lane];
  out[32 + lane] = 0;
  for (uint32_t round = 0; round < 16; ++round) {
    cells[lane] = in[512 + 32 * round + lane];
    cells[32 + lane] = __float_as_uint(static_cast<float>(in[1024 + 32 * round + lane]) * 0.001f);
    fence_async();
    __syncwarp();
    if (lane == 0) {
      asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], 128;" ::"l"(
                       __cvta_generic_to_global(out)),
                   "r"(shared_address(cells))
                   : "memory");
      asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], 128;" ::"l"(
                       __cvta_generic_to_global(out + 32)),
                   "r"(shared_address(cells + 32))
                   : "memory");
      commit();
      wait_bulk();
    }
    __syncwarp();
  }
}
