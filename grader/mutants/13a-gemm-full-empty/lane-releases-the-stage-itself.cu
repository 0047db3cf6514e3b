// Wrong: the multiplying lane arrives on `empty` itself, as a thread does that has read a stage itself.
// It has only issued the MMAs. The tensor core may still read the stage when the next tiles are copied into it.
// expect: refill-before-release @ 44
// needs: checker
// blind: unrun

// 13a gemm-full-empty: a warp loads, a warp multiplies, four warps store; a ring of stages is between the first two.
//
//   d[r][c] = sum over i of a[r][i] * b[c][i],   0 <= i < 64 * k_tiles
//
// a is M x K, b is N x K, both row-major (K-major operands) and both bf16 or both f16, as `type` says; d is M x N,
// float, row-major, so that n is the distance of its rows. M and N are multiples of 128. Block (x, y) computes the tile
// of 128 x 128 elements of d that starts at row 128 * y, column 128 * x. 192 threads. k_tiles may be 0; then d is 0.
//
//   warp 0    one lane:    wait empty[s], load K tile k          --> full[s]
//   warp 1    one lane:    wait full[s], multiply K tile k       --> empty[s], and after the last --> accumulator_full
//   warps 2-5 all lanes:   wait accumulator_full, store the tile of d
//
// K tile k passes through stage s = k % stages, 1 <= stages <= 6. The loads run ahead of the MMAs by as many K tiles as
// there are stages.
//
// Dynamic shared memory: stages * 32768 bytes.
// Chapter: chapters/13-full-empty/README.md
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
constexpr int kMaxStages = 6;                     // K tile k passes through stage k % stages
constexpr int kLoadWarp = 0, kMultiplyWarp = 1;   // the other four warps store

__device__ void load_tiles(const CUtensorMap* map_a, const CUtensorMap* map_b, uint8_t* stage, uint64_t* full, int k) {
  ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, full, kStageBytes);
  const int column = k * kTileK;
  const int row_a = blockIdx.y * kTileM, row_b = blockIdx.x * kTileN;
  ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, stage, map_a, {column, row_a}, full);
  ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, stage + kTileBytes, map_b, {column, row_b}, full);
}

__device__ void multiply_tiles(const uint8_t* stage, uint32_t accumulator, uint32_t instruction, bool first) {
  for (int slice = 0; slice < kSlices; slice++) {
    const uint8_t* const start = stage + slice * kSliceBytes;
    const uint64_t a = ptx::smem_descriptor(start, 0, 8 * kRowBytes, ptx::swizzle::bytes_128);
    const uint64_t b = ptx::smem_descriptor(start + kTileBytes, 0, 8 * kRowBytes, ptx::swizzle::bytes_128);
    const bool add = !first || slice > 0;  // nobody has written the accumulator before the first MMA of the sum
    ptx::tcgen05_mma(ptx::kind_f16, ptx::cta_group_1, accumulator, a, b, instruction, add);
  }
}

__device__ void store_rows(uint32_t accumulator, int first_row, float* d_tile, int n) {
  const uint32_t lanes = accumulator + (static_cast<uint32_t>(first_row) << 16);
  float* const row = d_tile + static_cast<size_t>(first_row + threadIdx.x % 32) * n;
  for (int column = 0; column < kTileN; column += 32) {
    uint32_t v[32];  // the bits of 32 floats
    ptx::tcgen05_ld_32x32b(v, lanes + column);
    ptx::tcgen05_wait_ld();
    for (int i = 0; i < 32; i += 4) {
      *reinterpret_cast<uint4*>(row + column + i) = make_uint4(v[i], v[i + 1], v[i + 2], v[i + 3]);
    }
  }
}

__device__ void store_zeros(float* d_tile, int n) {
  for (int i = threadIdx.x; i < kTileM * kTileN / 4; i += blockDim.x) {
    const int row = i / (kTileN / 4), column = i % (kTileN / 4) * 4;
    *reinterpret_cast<float4*>(d_tile + static_cast<size_t>(row) * n + column) = make_float4(0, 0, 0, 0);
  }
}

extern "C" __global__ void __launch_bounds__(192)
    gemm_full_empty(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, float* d,
                    int n, int k_tiles, ptx::element type, int stages) {
  extern __shared__ __align__(1024) uint8_t ring[];  // `stages` times kStageBytes
  __shared__ uint64_t full[kMaxStages];              // phase p of full[s]: the stage's K tile number p is there
  __shared__ uint64_t empty[kMaxStages];             // phase p of empty[s]: the MMAs of that K tile are complete
  __shared__ uint64_t accumulator_full;              // one phase: the MMAs of all K tiles are complete
  __shared__ uint32_t tmem_slot;                     // where the allocation leaves the address of its first column

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
    for (int s = 0; s < stages; s++) {
      ptx::mbarrier_init(&full[s], 1);
      ptx::mbarrier_init(&empty[s], 1);
    }
    ptx::mbarrier_init(&accumulator_full, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  const uint32_t accumulator = tmem_slot;
  const uint32_t instruction = ptx::instruction_descriptor(type, kTileM, kTileN);

  if (warp == kLoadWarp) {
    if (ptx::elect_one()) {
      int stage = 0;        // of K tile k
      uint32_t parity = 0;  // of the round that K tile k belongs to: 0 for the first `stages` K tiles, then 1, …
      for (int k = 0; k < k_tiles; k++) {
        while (!ptx::mbarrier_try_wait_parity(&empty[stage], parity ^ 1)) {
        }
        load_tiles(&map_a, &map_b, ring + stage * kStageBytes, &full[stage], k);
        if (++stage == stages) {  // once around the ring: stage 0 again, and the next phase of every barrier
          stage = 0;
          parity ^= 1;
        }
      }
    }
  } else if (warp == kMultiplyWarp) {
    if (ptx::elect_one()) {
      int stage = 0;
      uint32_t parity = 0;
      for (int k = 0; k < k_tiles; k++) {
        while (!ptx::mbarrier_try_wait_parity(&full[stage], parity)) {
        }
        ptx::tcgen05_fence_after_thread_sync();
        multiply_tiles(ring + stage * kStageBytes, accumulator, instruction, k == 0);
        ptx::mbarrier_arrive(&empty[stage]);
        if (++stage == stages) {
          stage = 0;
          parity ^= 1;
        }
      }
      ptx::tcgen05_commit(ptx::cta_group_1, &accumulator_full);
    }
  } else {
    while (!ptx::mbarrier_try_wait_parity(&accumulator_full, 0)) {
    }
    ptx::tcgen05_fence_after_thread_sync();

    store_rows(accumulator, warp % 4 * 32, d_tile, n);
  }

  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();
  if (warp == 0) {
    ptx::tcgen05_fence_after_thread_sync();
    ptx::tcgen05_dealloc(ptx::cta_group_1, accumulator, columns);
  }
}
