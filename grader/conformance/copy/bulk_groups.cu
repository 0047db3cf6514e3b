// bulk groups: wait_group 1 and 0, wait_group.read 0 and then the source written anew; an empty group
// run: --out 160
// source: PTX §9.7.9.25.5.2
#include <cstdint>

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void fence_async() { asm volatile("fence.proxy.async;" ::: "memory"); }

// Both addresses and the size are multiples of 16 bytes.
__device__ void bulk_store(void* to, uint32_t from, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(to)),
               "r"(from), "r"(bytes)
               : "memory");
}

__device__ void commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

__device__ void wait_bulk() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(128) uint32_t cells[96];
  const uint32_t lane = threadIdx.x;
  for (uint32_t k = 0; k < 3; ++k) cells[32 * k + lane] = in[256 + 32 * k + lane];
  fence_async();
  __syncwarp();
  if (lane == 0) {
    bulk_store(out, shared_address(cells), 128);
    commit();
    bulk_store(out + 32, shared_address(cells + 32), 128);
    commit();
    commit();
    asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  }
  __syncwarp();
  // Read out: the source may change, and the copies hold what it was.
  cells[lane] = ~in[512 + lane];
  cells[32 + lane] = ~in[544 + lane];
  fence_async();
  __syncwarp();
  if (lane == 0) {
    bulk_store(out + 64, shared_address(cells), 256);
    bulk_store(out + 128, shared_address(cells + 64), 128);
    commit();
    asm volatile("cp.async.bulk.wait_group 1;" ::: "memory");
    wait_bulk();
  }
}
