// A tensor map, encoded by the driver's function that the runtime hands out, and a tile that arrives through it.
#include <cuda.h>

#include <cuda/ptx>
#include <vector>

#include "check.h"

namespace ptx = cuda::ptx;

constexpr int kWidth = 32, kHeight = 8;  // of a tile

__global__ void tile_sum(const __grid_constant__ CUtensorMap map, int* out) {
  __shared__ alignas(128) int tile[kHeight][kWidth];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    ptx::fence_proxy_async(ptx::space_shared);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, sizeof tile);
    const int at[2] = {static_cast<int>(blockIdx.x) * kWidth, static_cast<int>(blockIdx.y) * kHeight};
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &map, at, &full);
  }
  __syncthreads();
  while (!ptx::mbarrier_try_wait_parity(&full, 0)) {
  }
  int sum = 0;
  for (int row = 0; row < kHeight; ++row) sum += tile[row][threadIdx.x];
  atomicAdd(out, sum);
}

using Encode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*,
                            const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                            CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

int main() {
  constexpr cuuint64_t kColumns = 100, kRows = 30;
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found));
  EXPECT(found == cudaDriverEntryPointSuccess && entry != nullptr);
  const auto encode = reinterpret_cast<Encode>(entry);
  std::vector<int> in(kColumns * kRows);
  int expected = 0, got = 0;
  for (size_t i = 0; i < in.size(); ++i) expected += in[i] = static_cast<int>(i % 1000);
  int *din, *dout;
  CHECK(cudaMalloc(&din, in.size() * sizeof(int)));
  CHECK(cudaMalloc(&dout, sizeof(int)));
  CHECK(cudaMemcpy(din, in.data(), in.size() * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(dout, 0, sizeof(int)));
  CUtensorMap map;
  const cuuint64_t dim[2] = {kColumns, kRows}, stride[1] = {kColumns * sizeof(int)};
  const cuuint32_t box[2] = {kWidth, kHeight}, step[2] = {1, 1};
  const auto with = [&](const cuuint64_t* strides) {
    return encode(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, din, dim, strides, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                  CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  const cuuint64_t odd[1] = {kColumns * sizeof(int) + 4};
  EXPECT(with(odd) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(with(stride) == CUDA_SUCCESS);
  // Tiles reach beyond the tensor's edges, where zeros are loaded.
  tile_sum<<<dim3((kColumns + kWidth - 1) / kWidth, (kRows + kHeight - 1) / kHeight), kWidth>>>(map, dout);
  CHECK(cudaMemcpy(&got, dout, sizeof got, cudaMemcpyDeviceToHost));
  EXPECT(got == expected);
}
