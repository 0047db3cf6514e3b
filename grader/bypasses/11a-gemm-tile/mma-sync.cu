// Right results without tcgen05: the warps multiply with mma.sync, and sum up in registers.
#include <cuda.h>

#include "course.cuh"
#include "descriptors.cuh"

constexpr int kTileM = 128;                     // rows of a and d that a block works on
constexpr int kTileN = 128;                     // rows of b, which are columns of d
constexpr int kTileK = 64;                      // columns of a and b in one K tile
constexpr int kRowBytes = kTileK * 2;           // 128: a K tile is one panel of the 128-byte swizzle
constexpr int kTileBytes = kTileM * kRowBytes;  // 16384, of a; b's tile is as large
constexpr int kStageBytes = 2 * kTileBytes;     // a's tile, then b's; each starts at a multiple of 1024

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

// Two neighbouring elements of a row of a tile with the 128-byte swizzle: 16-byte unit u of row r lies where unit
// u ^ (r % 8) would be without.
__device__ uint32_t pair(const uint8_t* tile, int row, int column) {
  return *reinterpret_cast<const uint32_t*>(tile + row * kRowBytes + (column / 8 ^ row % 8) * 16 + column % 8 * 2);
}

// d += a * b for 16 rows, 8 columns and 16 elements of the sum: the matrix instruction of earlier GPUs.
__device__ void warp_mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, ptx::element type) {
  if (type == ptx::element::bf16) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

constexpr int kBands = 2;            // of 16 rows, for each of four warps
constexpr int kStrips = kTileN / 8;  // of 8 columns

// Rows `first_row` to + 31 of the product over one stage.
__device__ void multiply_by_warp(const uint8_t* stage, float (&sum)[kBands][kStrips][4], int first_row,
                                 ptx::element type) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4 * 2;
  for (int i = 0; i < kTileK; i += 16) {
    uint32_t a[kBands][4];
    for (int band = 0; band < kBands; band++) {
      const int row = first_row + 16 * band + g;
      a[band][0] = pair(stage, row, i + t);
      a[band][1] = pair(stage, row + 8, i + t);
      a[band][2] = pair(stage, row, i + t + 8);
      a[band][3] = pair(stage, row + 8, i + t + 8);
    }
#pragma unroll
    for (int strip = 0; strip < kStrips; strip++) {
      const uint32_t b0 = pair(stage + kTileBytes, strip * 8 + g, i + t);
      const uint32_t b1 = pair(stage + kTileBytes, strip * 8 + g, i + t + 8);
      for (int band = 0; band < kBands; band++) warp_mma(sum[band][strip], a[band], b0, b1, type);
    }
  }
}

__device__ void store_sums(const float (&sum)[kBands][kStrips][4], int first_row, float* d_tile, int n) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4 * 2;
  for (int band = 0; band < kBands; band++) {
    float* const row = d_tile + static_cast<size_t>(first_row + 16 * band + g) * n + t;
    for (int strip = 0; strip < kStrips; strip++) {
      const float(&v)[4] = sum[band][strip];
      *reinterpret_cast<float2*>(row + strip * 8) = make_float2(v[0], v[1]);
      *reinterpret_cast<float2*>(row + 8 * static_cast<size_t>(n) + strip * 8) = make_float2(v[2], v[3]);
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
  __shared__ uint64_t full;  // phase k: K tile k is in the stage

  float* const d_tile = d + static_cast<size_t>(blockIdx.y) * kTileM * n + blockIdx.x * kTileN;
  if (k_tiles == 0) {
    store_zeros(d_tile, n);
    return;
  }

  const int warp = threadIdx.x / 32;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);  // one arrival a phase: that of the thread which issues the copies
    // Makes the inits visible to the async proxy, by way of which copies count bytes and commits arrive. Required
    // (§9.7.13.4).
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  // Block barrier. Producer: thread 0, which made the barriers. Consumers: every thread.
  __syncthreads();

  float sum[kBands][kStrips][4] = {};
  uint32_t parity = 0;
  for (int k = 0; k < k_tiles; k++) {
    if (threadIdx.x == 0) load_tiles(&map_a, &map_b, stage, &full, k);
    // Wait. Producer: the two copies. Consumer: every thread. Changes hands: the two tiles, full.
    while (!ptx::mbarrier_try_wait_parity(&full, parity)) {
    }
    multiply_by_warp(stage, sum, warp * 32, type);
    // Block barrier. Producer: every thread, which has read the stage. Consumer: thread 0. Changes hands: the stage.
    __syncthreads();
    parity ^= 1;
  }
  store_sums(sum, warp * 32, d_tile, n);
}
