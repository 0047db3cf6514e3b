// Bypass: the image is one long row to the engine, which copies a run of it for each row of the tile.
// A run goes on into the padding and into the next row; the threads put zeros where the image is not.
#include "course.cuh"
#include "tensor_map.cuh"

constexpr int kColumns = 72;
constexpr int kRows = 460;
constexpr int kPitch = 76;
constexpr int kTileColumns = 32;
constexpr int kTileRows = 16;

extern "C" __constant__ TensorMapArguments image_map = {
    .tensorDataType = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
    .tensorRank = 1,
    .globalDim = {kPitch * kRows},
    .boxDim = {kTileColumns},
    .elementStrides = {1},
    .interleave = CU_TENSOR_MAP_INTERLEAVE_NONE,
    .swizzle = CU_TENSOR_MAP_SWIZZLE_NONE,
    .l2Promotion = CU_TENSOR_MAP_L2_PROMOTION_NONE,
    .oobFill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
};

extern "C" __global__ void copy_tiles(const __grid_constant__ CUtensorMap image, float* out, int x0, int y0) {
  __shared__ alignas(128) float tile[kTileRows][kTileColumns];
  __shared__ uint64_t full;

  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();

  const int x = x0 + kTileColumns * static_cast<int>(blockIdx.x);
  const int y = y0 + kTileRows * static_cast<int>(blockIdx.y);
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, sizeof tile);
    for (int row = 0; row < kTileRows; row++) {
      const int32_t at[1] = {kPitch * (y + row) + x};
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile[row], &image, at, &full);
    }
  }
  while (!ptx::mbarrier_try_wait_parity(&full, 0)) {
  }

  constexpr int kElements = kTileColumns * kTileRows;
  float* mine = out + kElements * (blockIdx.y * gridDim.x + blockIdx.x);
  for (int i = threadIdx.x; i < kElements; i += blockDim.x) {
    const int column = x + i % kTileColumns, row = y + i / kTileColumns;
    const bool inside = column >= 0 && column < kColumns && row >= 0 && row < kRows;
    mine[i] = inside ? tile[i / kTileColumns][i % kTileColumns] : 0.0f;
  }
}
