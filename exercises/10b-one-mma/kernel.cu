// 10b one-mma: threads write both operands into shared memory, one thread starts one tcgen05.mma, and all threads read
// the product back from tensor memory.
//
//   d[(128 * blk + m) * 256 + n] = sum over k < 16 of a[(128 * blk + m) * 16 + k] * b[n * 16 + k]
//
// Each block has 128 rows of A and all 256 rows of B (that is, the 256 columns of Bᵀ); elements are bf16, sums fp32. It
// runs as four warps: warp w reads lanes 32 w … 32 w + 31 of tensor memory, which are rows 32 w … 32 w + 31 of D.
// Chapter: chapters/10-mma/README.md
#include <cuda_bf16.h>

#include "course.cuh"
#include "descriptors.cuh"

constexpr int kM = 128;  // rows of D in a block: the lanes of tensor memory
constexpr int kN = 256;  // columns of D: columns of tensor memory, 32 bits each
constexpr int kK = 16;   // of one MMA with 16-bit elements: 32 bytes, two 16-byte units

constexpr uint32_t kInstruction = ptx::instruction_descriptor(ptx::element::bf16, kM, kN);

extern "C" __global__ void one_mma(const __nv_bfloat16* a, const __nv_bfloat16* b, float* d) {
  // Operands without swizzle. Unit u of row r (elements 8 u … 8 u + 7 along K) is tile[u][r]: 8 rows are one core
  // matrix of 128 bytes, the next 8 rows follow at once, and the other half of K lies `rows` units further.
  __shared__ alignas(128) uint4 a_tile[2][kM];
  __shared__ alignas(128) uint4 b_tile[2][kN];
  __shared__ uint64_t done;            // the mbarrier: "the MMA is complete"
  __shared__ uint32_t tmem_base_slot;  // where tcgen05.alloc leaves the address

  const int warp = threadIdx.x / 32;

  // One arrival completes the phase: that of the commit.
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

  // TODO(1): hand both operands over: make this thread's stores visible to the tensor core, then meet the issuer.
  // end TODO(1)

  if (warp == 0 && ptx::elect_one()) {
    // TODO(2): issue D = A · Bᵀ, one MMA, into the columns at `tmem_base`; have `done` told when it is complete.
    // end TODO(2)
  }

  // TODO(3): every thread waits until the MMA is complete, and orders what it will read after that.
  // end TODO(3)

  // TODO(4): read this warp's quarter of D, 32 columns at a time, and store it: one row for each thread.
  // end TODO(4)

  // This fence orders this thread's reads of tensor memory, complete since their wait::ld, before the barrier.
  ptx::tcgen05_fence_before_thread_sync();
  // Block barrier. Producer: every thread, which has read its row. Consumer: warp 0, which may give the columns back.
  __syncthreads();
  if (warp == 0) {
    // Orders the dealloc after the barrier, and so after every warp's reads.
    ptx::tcgen05_fence_after_thread_sync();
    ptx::tcgen05_dealloc(ptx::cta_group_1, tmem_base, kN);
  }
}
