// Right: one tcgen05.wait::ld for all loads, after their registers have been stored. A use of a register waits for its
// own load (PTX §9.7.16.6.4.5); wait::ld is for the columns, which are freed behind it.
#include <cuda_bf16.h>

#include "course.cuh"
#include "descriptors.cuh"

constexpr int kM = 128;  // rows of D in a block: the lanes of tensor memory
constexpr int kN = 256;  // columns of D: columns of tensor memory, 32 bits each
constexpr int kK = 16;   // of one MMA with 16-bit elements: 32 bytes, two 16-byte units

constexpr uint32_t kInstruction = ptx::instruction_descriptor(ptx::element::bf16, kM, kN);

extern "C" __global__ void one_mma(const __nv_bfloat16* a, const __nv_bfloat16* b, float* d) {
  __shared__ alignas(128) uint4 a_tile[2][kM];
  __shared__ alignas(128) uint4 b_tile[2][kN];
  __shared__ uint64_t done;            // the mbarrier: "the MMA is complete"
  __shared__ uint32_t tmem_base_slot;  // where tcgen05.alloc leaves the address

  const int warp = threadIdx.x / 32;

  if (threadIdx.x == 32) {
    ptx::mbarrier_init(&done, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  if (warp == 0) {
    ptx::tcgen05_alloc(ptx::cta_group_1, &tmem_base_slot, kN);
    ptx::tcgen05_relinquish_alloc_permit(ptx::cta_group_1);
  }
  __syncthreads();  // the barrier is initialised, and the slot holds the address
  const uint32_t tmem_base = tmem_base_slot;

  const uint64_t a_descriptor = ptx::smem_descriptor(a_tile, kM * sizeof(uint4), 8 * sizeof(uint4));
  const uint64_t b_descriptor = ptx::smem_descriptor(b_tile, kN * sizeof(uint4), 8 * sizeof(uint4));

  const uint4* a_units = reinterpret_cast<const uint4*>(a + blockIdx.x * kM * kK);
  const uint4* b_units = reinterpret_cast<const uint4*>(b);
  for (int i = threadIdx.x; i < 2 * kM; i += blockDim.x) {
    a_tile[i % 2][i / 2] = a_units[i];
  }
  for (int i = threadIdx.x; i < 2 * kN; i += blockDim.x) {
    b_tile[i % 2][i / 2] = b_units[i];
  }

  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();

  if (warp == 0 && ptx::elect_one()) {
    ptx::tcgen05_mma(ptx::kind_f16, ptx::cta_group_1, tmem_base, a_descriptor, b_descriptor, kInstruction, false);
    ptx::tcgen05_commit(ptx::cta_group_1, &done);
  }

  while (!ptx::mbarrier_try_wait_parity(&done, 0)) {
  }
  ptx::tcgen05_fence_after_thread_sync();

  const int row = blockIdx.x * kM + threadIdx.x;
  for (int column = 0; column < kN; column += 32) {
    uint32_t part[32];
    ptx::tcgen05_ld_32x32b(part, tmem_base + (warp * 32 << 16) + column);
    for (int i = 0; i < 32; i++) {
      d[row * kN + column + i] = __uint_as_float(part[i]);
    }
  }

  ptx::tcgen05_wait_ld();
  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();
  if (warp == 0) {
    ptx::tcgen05_fence_after_thread_sync();
    ptx::tcgen05_dealloc(ptx::cta_group_1, tmem_base, kN);
  }
}
