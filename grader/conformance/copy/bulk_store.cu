// cp.async.bulk from shared to global memory: 16 to 4096 bytes at different multiples of 16;
// nothing beside them changes
// run: --out 2100
// source: PTX §9.7.9.25.4.1
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
  __shared__ alignas(128) uint32_t cells[1088];
  const uint32_t lane = threadIdx.x;
  const uint32_t sizes[8] = {16, 32, 48, 128, 144, 1008, 2048, 4096};
  for (uint32_t k = lane; k < 1088; k += 32) cells[k] = in[256 + k];
  fence_async();
  __syncwarp();
  if (lane == 0) {
    uint32_t place = 4;
    for (uint32_t i = 0; i < 8; ++i) {
      bulk_store(out + place, shared_address(cells) + 16 * ((3 * i) & 7), sizes[i]);
      place += sizes[i] / 4 + 4 * (i + 1);
    }
    commit();
    wait_bulk();
  }
}
