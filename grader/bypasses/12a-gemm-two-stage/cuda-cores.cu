// Right results without the tensor core: two stages, and the threads multiply.
#include <cuda.h>
#include <cuda_fp16.h>

#include "course.cuh"
#include "descriptors.cuh"

constexpr int kTileM = 128;                     // rows of a and d that a block works on
constexpr int kTileN = 128;                     // rows of b, which are columns of d
constexpr int kTileK = 64;                      // columns of a and b in one K tile
constexpr int kRowBytes = kTileK * 2;           // 128: a K tile is one panel of the 128-byte swizzle
constexpr int kTileBytes = kTileM * kRowBytes;  // 16384, of a; b's tile is as large
constexpr int kStageBytes = 2 * kTileBytes;     // a's tile, then b's; each starts at a multiple of 1024
constexpr int kStages = 2;                      // K tile k passes through stage k % kStages

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

// An element of a tile with the 128-byte swizzle: 16-byte unit u of row r lies where unit u ^ (r % 8) would be without.
__device__ float element(const uint8_t* tile, int row, int column, ptx::element type) {
  const uint16_t bits =
      *reinterpret_cast<const uint16_t*>(tile + row * kRowBytes + (column / 8 ^ row % 8) * 16 + column % 8 * 2);
  return type == ptx::element::bf16 ? __uint_as_float(static_cast<uint32_t>(bits) << 16)
                                    : __half2float(__ushort_as_half(bits));
}

constexpr int kRows = 8, kColumns = 16;  // of d, for each of 128 threads

__device__ void multiply_by_threads(const uint8_t* stage, float (&sum)[kRows][kColumns], ptx::element type) {
  const int row = threadIdx.x / 8 * kRows, column = threadIdx.x % 8 * kColumns;
  for (int i = 0; i < kTileK; i++) {
    float b[kColumns];
    for (int c = 0; c < kColumns; c++) b[c] = element(stage + kTileBytes, column + c, i, type);
    for (int r = 0; r < kRows; r++) {
      const float a = element(stage, row + r, i, type);
      for (int c = 0; c < kColumns; c++) sum[r][c] += a * b[c];
    }
  }
}

__device__ void store_sums(const float (&sum)[kRows][kColumns], float* d_tile, int n) {
  const int row = threadIdx.x / 8 * kRows, column = threadIdx.x % 8 * kColumns;
  for (int r = 0; r < kRows; r++) {
    for (int c = 0; c < kColumns; c++) d_tile[static_cast<size_t>(row + r) * n + column + c] = sum[r][c];
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
    gemm_two_stage(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, float* d,
                   int n, int k_tiles, ptx::element type) {
  extern __shared__ __align__(1024) uint8_t stages[];  // kStages times kStageBytes
  __shared__ uint64_t full[kStages];                   // phase p of full[s]: the stage's K tile number p is there

  float* const d_tile = d + static_cast<size_t>(blockIdx.y) * kTileM * n + blockIdx.x * kTileN;
  if (k_tiles == 0) {
    store_zeros(d_tile, n);
    return;
  }

  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; s++) {
      ptx::mbarrier_init(&full[s], 1);  // one arrival a phase: that of the thread which issues the copies
    }
    // Makes the inits visible to the async proxy, by way of which copies count bytes and commits arrive. Required
    // (§9.7.13.4).
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  // Block barrier. Producer: thread 0, which made the barriers. Consumers: every thread.
  __syncthreads();

  float sum[kRows][kColumns] = {};
  if (threadIdx.x == 0) load_tiles(&map_a, &map_b, stages, &full[0], 0);
  for (int k = 0; k < k_tiles; k++) {
    const int stage = k % kStages, other = stage ^ 1;
    // The other stage is free: the block barrier below came after its last reader.
    if (threadIdx.x == 0 && k + 1 < k_tiles)
      load_tiles(&map_a, &map_b, stages + other * kStageBytes, &full[other], k + 1);
    // Wait. Producer: the two copies. Consumer: every thread. Changes hands: the two tiles, full.
    while (!ptx::mbarrier_try_wait_parity(&full[stage], k / kStages % 2)) {
    }
    multiply_by_threads(stages + stage * kStageBytes, sum, type);
    // Block barrier. Producer: every thread, which has read the stage. Consumer: thread 0. Changes hands: the stage.
    __syncthreads();
  }
  store_sums(sum, d_tile, n);
}
