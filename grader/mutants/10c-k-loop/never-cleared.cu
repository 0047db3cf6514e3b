// Wrong: every MMA adds to the accumulator, the first one too.
// What stood in tensor memory becomes part of the sum. Nobody has written it since the allocation.
// expect: tmem-uninitialized @ 81
// needs: checker
// blind: unrun
#include <cuda_bf16.h>

#include "course.cuh"
#include "descriptors.cuh"

constexpr int kM = 128;                             // rows of a and d
constexpr int kSlice = 16;                          // columns of a and b in one MMA
constexpr int kSliceBytes = kSlice * 2;             // 32, of each row
constexpr int kPanelBytes = 128;                    // of each row, in one panel
constexpr int kSlices = kPanelBytes / kSliceBytes;  // 4, in one panel

// Brings `rows` rows of k columns to shared memory, 16 bytes at a time. Within a row of a panel the eight units of 16
// bytes are permuted: unit u of row r goes where unit u ^ (r % 8) would be without swizzle.
__device__ void stage(uint8_t* tile, const __nv_bfloat16* from, int rows, int k) {
  const int units = k / 8;  // a row has this many units of 16 bytes, with 8 elements each
  for (int i = threadIdx.x; i < rows * units; i += blockDim.x) {
    const int row = i / units, panel = i % units / 8, unit = i % units % 8;
    uint8_t* const to = tile + (panel * rows + row) * kPanelBytes + (unit ^ row % 8) * 16;
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from + row * k + (panel * 8 + unit) * 8);
  }
}

extern "C" __global__ void k_loop(const __nv_bfloat16* a, const __nv_bfloat16* b, float* d, int n, int k) {
  extern __shared__ __align__(1024) uint8_t tiles[];  // a's panels, then b's; every panel starts at a multiple of 1024
  __shared__ uint32_t tmem_slot;                      // where the allocation leaves the address of its first column
  __shared__ uint64_t done;                           // one phase: all MMAs are complete

  if (k == 0) {
    // An empty sum is 0. No MMA would run, and an accumulator that no MMA has written holds anything.
    for (int i = threadIdx.x; i < kM * n; i += blockDim.x) d[i] = 0.0f;
    return;
  }

  const int slices = k / kSlice, panels = (slices + kSlices - 1) / kSlices;
  uint8_t* const a_tile = tiles;
  uint8_t* const b_tile = tiles + panels * kM * kPanelBytes;

  const int warp = threadIdx.x / 32;
  const uint32_t columns = 128;  // of tensor memory: one for each column of d, and a power of two
  if (warp == 0) {
    ptx::tcgen05_alloc(ptx::cta_group_1, &tmem_slot, columns);
    ptx::tcgen05_relinquish_alloc_permit(ptx::cta_group_1);  // this block allocates no more
  }
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&done, 1);  // one arrival: the commit's
    // Makes the init visible to the async proxy, by way of which the commit arrives.
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  stage(a_tile, a, kM, k);
  stage(b_tile, b, n, k);
  // Orders this thread's stores to the tiles before accesses of the async proxy, by which the tensor core reads them.
  ptx::fence_proxy_async(ptx::space_shared);
  // Block barrier. Producers: every thread, which wrote a part of the tiles; warp 0, which allocated; thread 0, which
  // made `done`. Consumers: thread 0 on the tensor core's behalf, which takes the tiles; every thread, which takes the
  // address in `tmem_slot` and the barrier.
  __syncthreads();
  const uint32_t accumulator = tmem_slot;

  if (threadIdx.x == 0) {
    const uint32_t instruction = ptx::instruction_descriptor(ptx::element::bf16, kM, n);
    for (int slice = 0; slice < slices; slice++) {
      const uint8_t* a_start = a_tile;
      const uint8_t* b_start = b_tile;
      a_start += slice / kSlices * kM * kPanelBytes;
      b_start += slice / kSlices * n * kPanelBytes;

      // The hardware permutes addresses, not distances, and rows are counted in address bits that these bytes do not
      // reach. So the step is the same as without swizzle.
      a_start += slice % kSlices * kSliceBytes;
      b_start += slice % kSlices * kSliceBytes;

      const uint64_t a_descriptor = ptx::smem_descriptor(a_start, 0, 8 * kPanelBytes, ptx::swizzle::bytes_128);
      const uint64_t b_descriptor = ptx::smem_descriptor(b_start, 0, 8 * kPanelBytes, ptx::swizzle::bytes_128);
      // it before?
      const bool add = true;
      ptx::tcgen05_mma(ptx::kind_f16, ptx::cta_group_1, accumulator, a_descriptor, b_descriptor, instruction, add);
    }
    // Arrive. Producer: the tensor core, when every MMA that this thread has issued is complete. Consumer: every thread
    // that waits on `done`. Changes hands: the accumulator, full. MMAs of one thread on one accumulator run in order,
    // so that nothing is needed between them.
    ptx::tcgen05_commit(ptx::cta_group_1, &done);
  }

  // Wait. Producer: the tensor core, by way of the commit. Consumer: every thread. Changes hands: the accumulator.
  while (!ptx::mbarrier_try_wait_parity(&done, 0)) {
  }
  // Orders this thread's tcgen05.ld below after the wait above, and so after the MMAs.
  ptx::tcgen05_fence_after_thread_sync();

  // Row r of d is lane r of tensor memory, column c is column c. Each warp reads its own quarter of the lanes.
  const uint32_t lanes = accumulator + (static_cast<uint32_t>(warp * 32) << 16);
  float* const row = d + threadIdx.x * n;
  for (int column = 0; column < n; column += 16) {
    uint32_t v[16];  // the bits of 16 floats
    ptx::tcgen05_ld_32x32b(v, lanes + column);
    // Wait. Producer: tensor memory. Consumer: this warp. Changes hands: the registers in `v`.
    ptx::tcgen05_wait_ld();
    for (int i = 0; i < 16; i += 4) {
      *reinterpret_cast<uint4*>(row + column + i) = make_uint4(v[i], v[i + 1], v[i + 2], v[i + 3]);
    }
  }

  // Orders this thread's tcgen05.ld before the barrier.
  ptx::tcgen05_fence_before_thread_sync();
  // Block barrier. Producer: every warp, which has read its quarter. Consumer: warp 0. Changes hands: the accumulator,
  // free.
  __syncthreads();
  if (warp == 0) {
    // Orders the dealloc after the barrier, and so after every warp's tcgen05.ld.
    ptx::tcgen05_fence_after_thread_sync();
    ptx::tcgen05_dealloc(ptx::cta_group_1, accumulator, columns);
  }
}
