// Variant: everybody arrives, thread 0 announces the bytes beforehand; the map is taken by reference, and warps write
// rows.
#include "course.cuh"
#include "tensor_map.cuh"

constexpr int kColumns = 72;
constexpr int kRows = 460;
constexpr int kPitch = 76;
constexpr int kTileColumns = 32;
constexpr int kTileRows = 16;

extern "C" __constant__ TensorMapArguments image_map = {
    .tensorDataType = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
    .tensorRank = 2,
    .globalDim = {kColumns, kRows},
    .globalStrides = {kPitch * sizeof(float)},
    .boxDim = {kTileColumns, kTileRows},
    .elementStrides = {1, 1},
    .interleave = CU_TENSOR_MAP_INTERLEAVE_NONE,
    .swizzle = CU_TENSOR_MAP_SWIZZLE_NONE,
    .l2Promotion = CU_TENSOR_MAP_L2_PROMOTION_NONE,
    .oobFill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
};

__device__ void bring(const CUtensorMap& map, float (&box)[kTileRows][kTileColumns], uint64_t& barrier, int x, int y) {
  const int32_t start[2] = {x, y};
  ptx::mbarrier_expect_tx(ptx::sem_relaxed, ptx::scope_cta, ptx::space_shared, &barrier, sizeof box);
  ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, box, &map, start, &barrier);
}

extern "C" __global__ void copy_tiles(const __grid_constant__ CUtensorMap image, float* out, int x0, int y0) {
  __shared__ alignas(128) float tile[kTileRows][kTileColumns];
  __shared__ uint64_t full;

  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, blockDim.x);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();

  if (threadIdx.x == 0) {
    bring(image, tile, full, x0 + kTileColumns * static_cast<int>(blockIdx.x),
          y0 + kTileRows * static_cast<int>(blockIdx.y));
  }
  const uint64_t arrived = ptx::mbarrier_arrive(&full);
  while (!ptx::mbarrier_try_wait(&full, arrived)) {
  }

  constexpr int kElements = kTileColumns * kTileRows;
  float* mine = out + kElements * (blockIdx.y * gridDim.x + blockIdx.x);
  const int lane = threadIdx.x % 32;
  for (int row = threadIdx.x / 32; row < kTileRows; row += blockDim.x / 32) {
    mine[row * kTileColumns + lane] = tile[row][lane];
  }
}
