// Variant: the tensor is one of 32-bit integers, which is the same bits, its arguments in order and without names; the
// threads ask with test_wait.
#include "course.cuh"
#include "tensor_map.cuh"

constexpr int kColumns = 72;
constexpr int kRows = 460;
constexpr int kPitch = 76;
constexpr int kTileColumns = 32;
constexpr int kTileRows = 16;

extern "C" __constant__ TensorMapArguments image_map{CU_TENSOR_MAP_DATA_TYPE_INT32,
                                                     2,
                                                     {kColumns, kRows},
                                                     {kPitch * 4},
                                                     {kTileColumns, kTileRows},
                                                     {1, 1},
                                                     CU_TENSOR_MAP_INTERLEAVE_NONE,
                                                     CU_TENSOR_MAP_SWIZZLE_NONE,
                                                     CU_TENSOR_MAP_L2_PROMOTION_L2_128B};

extern "C" __global__ void copy_tiles(const __grid_constant__ CUtensorMap image, float* out, int x0, int y0) {
  __shared__ alignas(128) int tile[kTileRows][kTileColumns];
  __shared__ uint64_t full;

  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();

  if (threadIdx.x == 0) {
    const int32_t start[2] = {x0 + kTileColumns * static_cast<int>(blockIdx.x),
                              y0 + kTileRows * static_cast<int>(blockIdx.y)};
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, sizeof tile);
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &image, start, &full);
  }
  while (!ptx::mbarrier_test_wait_parity(&full, 0)) {
  }

  constexpr int kElements = kTileColumns * kTileRows;
  float* mine = out + kElements * (blockIdx.y * gridDim.x + blockIdx.x);
  for (int i = threadIdx.x; i < kElements; i += blockDim.x) {
    mine[i] = __int_as_float(tile[i / kTileColumns][i % kTileColumns]);
  }
}
