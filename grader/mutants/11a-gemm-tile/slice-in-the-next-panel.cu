// Wrong: each slice is looked for one panel behind the one before it.
// A K tile is a single panel: slice 1 of b begins where the block's shared memory ends.
// expect: bad-descriptor @ 66
// needs: checker
// blind: unrun
// 11a gemm-tile: tensor copies bring the operands, the tensor core multiplies them, the threads store the result.
//
//   d[r][c] = sum over i of a[r][i] * b[c][i],   0 <= i < 64 * k_tiles
//
// a is M x K, b is N x K, both row-major (K-major operands) and both bf16 or both f16, as `type` says; d is M x N,
// float, row-major, so that n is the distance of its rows. M and N are multiples of 128. Block (x, y) computes the tile
// of 128 x 128 elements of d that starts at row 128 * y, column 128 * x. 128 threads. k_tiles may be 0; then d is 0.
//
// The tensor maps describe a and b as boxes of 128 rows x 64 columns with the 128-byte swizzle. One box of each is a K
// tile; there is room for one, the stage:
//
//            copies                        MMAs                        tcgen05.ld
//   a, b ------------->  stage  ------------------------>  accumulator  ------------->  d
//            |                         |             |
//            | full: loaded            |             | accumulator_full: the sum is complete
//            v                         |             v
//            thread 0 <----------------+             every thread
//            multiplies, loads again     empty: multiplied
//
// Dynamic shared memory: 32768 bytes, the stage.
// Chapter: chapters/11-gemm/README.md
#include <cuda.h>

#include "course.cuh"
#include "descriptors.cuh"

constexpr int kTileM = 128;                       // rows of a and d that a block works on
constexpr int kTileN = 128;                       // rows of b, which are columns of d
constexpr int kTileK = 64;                        // columns of a and b in one K tile
constexpr int kRowBytes = kTileK * 2;             // 128: a K tile is one panel of the 128-byte swizzle
constexpr int kSliceBytes = 32;                   // of each row, in one MMA: 16 columns
constexpr int kSlices = kRowBytes / kSliceBytes;  // 4 MMAs for one K tile
constexpr int kTileBytes = kTileM * kRowBytes;    // 16384, of a; b's tile is as large
constexpr int kStageBytes = 2 * kTileBytes;       // a's tile, then b's; each starts at a multiple of 1024

// Brings K tile k of a and b into `stage`. One thread calls it. It returns at once; `full` completes its phase when
// both tiles are there.
__device__ void load_tiles(const CUtensorMap* map_a, const CUtensorMap* map_b, uint8_t* stage, uint64_t* full, int k) {
  // Arrive. Producer: the copy engine, on this thread's behalf. Consumer: the thread that issues the MMAs. Changes
  // hands: the two tiles, full, once this one arrival is in and all bytes announced here have landed. No fence is
  // needed: the copies write through the async proxy and the tensor core reads through it, and the wait on `full` is
  // between them.
  ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, full, kStageBytes);
  // A coordinate names the box's first element, innermost dimension first: column, row. The map holds the rest: the
  // box of 64 x 128 elements and the swizzle.
  const int column = k * kTileK;
  const int row_a = blockIdx.y * kTileM, row_b = blockIdx.x * kTileN;
  ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, stage, map_a, {column, row_a}, full);
  ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, stage + kTileBytes, map_b, {column, row_b}, full);
}

// Issues the MMAs of one K tile: the product of the tiles in `stage` is added to the accumulator, or starts the sum if
// `first`. One thread calls it, the same for all K tiles: MMAs of one thread on one accumulator run in order
// (§9.7.16.6.2), so that nothing is needed between them.
__device__ void multiply_tiles(const uint8_t* stage, uint32_t accumulator, uint32_t instruction, bool first) {
  for (int slice = 0; slice < kSlices; slice++) {
    const uint8_t* const start = stage + slice * kTileBytes;
    const uint64_t a = ptx::smem_descriptor(start, 0, 8 * kRowBytes, ptx::swizzle::bytes_128);
    const uint64_t b = ptx::smem_descriptor(start + kTileBytes, 0, 8 * kRowBytes, ptx::swizzle::bytes_128);
    const bool add = !first || slice > 0;  // nobody has written the accumulator before the first MMA of the sum
    ptx::tcgen05_mma(ptx::kind_f16, ptx::cta_group_1, accumulator, a, b, instruction, add);
  }
}

// Stores 32 rows of d's tile, one a thread, which are as many lanes of tensor memory. `d_tile` is where the block's
// tile of d begins. A whole warp calls it, and it must be one that reaches these lanes (§9.7.16.8).
__device__ void store_rows(uint32_t accumulator, int first_row, float* d_tile, int n) {
  const uint32_t lanes = accumulator + (static_cast<uint32_t>(first_row) << 16);
  float* const row = d_tile + static_cast<size_t>(first_row + threadIdx.x % 32) * n;
  for (int column = 0; column < kTileN; column += 32) {
    uint32_t v[32];  // the bits of 32 floats
    ptx::tcgen05_ld_32x32b(v, lanes + column);
    // Wait. Producer: tensor memory. Consumer: this warp. Changes hands: the registers in `v`.
    ptx::tcgen05_wait_ld();
    for (int i = 0; i < 32; i += 4) {
      *reinterpret_cast<uint4*>(row + column + i) = make_uint4(v[i], v[i + 1], v[i + 2], v[i + 3]);
    }
  }
}

// An empty sum is 0. No MMA would run, and an accumulator that no MMA has written holds anything.
__device__ void store_zeros(float* d_tile, int n) {
  for (int i = threadIdx.x; i < kTileM * kTileN / 4; i += blockDim.x) {
    const int row = i / (kTileN / 4), column = i % (kTileN / 4) * 4;
    *reinterpret_cast<float4*>(d_tile + static_cast<size_t>(row) * n + column) = make_float4(0, 0, 0, 0);
  }
}

extern "C" __global__ void __launch_bounds__(128)
    gemm_tile(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, float* d, int n,
              int k_tiles, ptx::element type) {
  extern __shared__ __align__(1024) uint8_t stage[];
  __shared__ uint64_t full;              // phase k: K tile k is in the stage
  __shared__ uint64_t empty;             // phase k: the MMAs of K tile k are complete
  __shared__ uint64_t accumulator_full;  // one phase: the MMAs of all K tiles are complete
  __shared__ uint32_t tmem_slot;         // where the allocation leaves the address of its first column

  float* const d_tile = d + static_cast<size_t>(blockIdx.y) * kTileM * n + blockIdx.x * kTileN;
  if (k_tiles == 0) {
    store_zeros(d_tile, n);
    return;
  }

  const int warp = threadIdx.x / 32;
  const uint32_t columns = kTileN;  // of tensor memory: one for each column of d's tile, and a power of two
  if (warp == 0) {
    ptx::tcgen05_alloc(ptx::cta_group_1, &tmem_slot, columns);
    ptx::tcgen05_relinquish_alloc_permit(ptx::cta_group_1);  // this block allocates no more
  }
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);              // one arrival a phase: that of the thread which issues the copies
    ptx::mbarrier_init(&empty, 1);             // one arrival a phase: the commit's
    ptx::mbarrier_init(&accumulator_full, 1);  // one arrival: the last commit's
    // Makes the inits visible to the async proxy, by way of which copies count bytes and commits arrive. Required
    // (§9.7.13.4).
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  // Block barrier. Producers: warp 0, which allocated; thread 0, which made the barriers. Consumers: every thread,
  // which takes the address in `tmem_slot` and the barriers. No tcgen05 fence: alloc is synchronous, and it writes the
  // address as an ordinary store does (§9.7.16.6.1).
  __syncthreads();
  const uint32_t accumulator = tmem_slot;
  const uint32_t instruction = ptx::instruction_descriptor(type, kTileM, kTileN);

  if (threadIdx.x == 0) {
    uint32_t parity = 0;  // of phase k, on both barriers
    for (int k = 0; k < k_tiles; k++) {
      // Wait. Producer of the empty stage: the tensor core, by way of the commit. Consumer: this thread, on the copy
      // engine's behalf. Changes hands: the right to overwrite the stage. K tile k waits for phase k - 1, whose parity
      // is the other one; K tile 0 asks a fresh barrier for parity 1, and the answer is true at once. No fence before
      // the copies: MMAs read the stage through the async proxy, and copies write it through the same.
      while (!ptx::mbarrier_try_wait_parity(&empty, parity ^ 1)) {
      }
      load_tiles(&map_a, &map_b, stage, &full, k);

      // Wait. Producer: the two copies. Consumer: this thread, on the tensor core's behalf. Changes hands: the two
      // tiles, full. K tile k waits for phase k.
      while (!ptx::mbarrier_try_wait_parity(&full, parity)) {
      }
      // Orders the MMAs after the wait, were there another thread's tcgen05 operation behind it. Habit: behind `full`
      // are copies, which are none, and the wait itself orders them (§9.7.16.6.4 asks for nothing here).
      ptx::tcgen05_fence_after_thread_sync();
      multiply_tiles(stage, accumulator, instruction, k == 0);
      // Arrive. Producer: the tensor core, when every MMA that this thread has issued is complete. Consumer: this
      // thread. Changes hands: the stage, empty. No fence: a commit contains fence::before_thread_sync for the MMAs it
      // tracks (§9.7.16.6.4).
      ptx::tcgen05_commit(ptx::cta_group_1, &empty);
      parity ^= 1;
    }
    // Arrive. Producer: the tensor core, when every MMA that this thread has issued is complete, which is all of them.
    // Consumer: every thread. Changes hands: the accumulator, complete. No fence, as above.
    ptx::tcgen05_commit(ptx::cta_group_1, &accumulator_full);
  }

  // Wait. Producer: the tensor core, by way of the last commit. Consumer: every thread. Changes hands: the accumulator,
  // complete.
  while (!ptx::mbarrier_try_wait_parity(&accumulator_full, 0)) {
  }
  // Orders this thread's tcgen05.ld after the wait above, and so after the MMAs. Required (§9.7.16.6.4): the loads are
  // asynchronous, and the wait alone does not hold them back.
  ptx::tcgen05_fence_after_thread_sync();

  store_rows(accumulator, warp * 32, d_tile, n);  // warps 0 to 3: each has its own quarter of the lanes

  // Orders this thread's tcgen05.ld before the barrier. Habit: §9.7.16.6 asks for it where another thread's
  // asynchronous tcgen05 operation follows; dealloc is none, and wait::ld has completed the loads.
  ptx::tcgen05_fence_before_thread_sync();
  // Block barrier. Producer: every warp that read the accumulator. Consumer: warp 0. Changes hands: the accumulator,
  // free.
  __syncthreads();
  if (warp == 0) {
    // Orders what follows after the barrier. Habit, as above.
    ptx::tcgen05_fence_after_thread_sync();
    ptx::tcgen05_dealloc(ptx::cta_group_1, accumulator, columns);
  }
}
