// 05a tensor-map: the copy engine cuts tiles out of an image; a tensor map tells it what the image is.
//
//   out[512 * b + 32 * r + c] = the image at column x + c, row y + r, and 0 outside it;   0 <= c < 32, 0 <= r < 16
//
// The image has 72 columns and 460 rows of floats. A row takes 76 floats of memory: the last four are padding, not
// image. Block b = blockIdx.y * gridDim.x + blockIdx.x copies the tile of 32 columns and 16 rows whose first element is
// at x = x0 + 32 * blockIdx.x, y = y0 + 16 * blockIdx.y. A tile may lie in part or wholly outside the image, on any
// side of it; x0 is a multiple of 4. The map is the kernel's only way to the image. Chapter:
// chapters/05-tensor-maps/README.md
#include "course.cuh"
#include "tensor_map.cuh"

constexpr int kColumns = 72;      // of the image, floats
constexpr int kRows = 460;        // of the image
constexpr int kPitch = 76;        // from row to row, floats
constexpr int kTileColumns = 32;  // floats
constexpr int kTileRows = 16;

// What the harness hands to cuTensorMapEncodeTiled. Dimensions count from the innermost: columns first, then rows.
extern "C" __constant__ TensorMapArguments image_map = {
    // TODO(1): the tensor: type of an element, number of dimensions, extents, and the distance between rows.
    .tensorDataType = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
    .tensorRank = 2,
    .globalDim = {kColumns, kRows},             // where the image ends: beyond it the engine delivers zeros
    .globalStrides = {kPitch * sizeof(float)},  // 304 bytes. Of the columns there is none to state: they are neighbours
    // end TODO(1)
    // TODO(2): the box that one copy brings: its extents, and the steps inside it.
    .boxDim = {kTileColumns, kTileRows},  // 32 floats make 128 bytes, a multiple of 16
    .elementStrides = {1, 1},             // every column, every row
    // end TODO(2)
    .interleave = CU_TENSOR_MAP_INTERLEAVE_NONE,
    .swizzle = CU_TENSOR_MAP_SWIZZLE_NONE,  // in shared memory the rows of the box follow each other
    .l2Promotion = CU_TENSOR_MAP_L2_PROMOTION_NONE,
    .oobFill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,  // zeros
};

extern "C" __global__ void copy_tiles(const __grid_constant__ CUtensorMap image, float* out, int x0, int y0) {
  __shared__ alignas(128) float tile[kTileRows][kTileColumns];  // a tensor copy needs 128-byte alignment
  __shared__ uint64_t full;                                     // the mbarrier: "the tile is full"

  // One arrival completes the phase, that of the thread which issues the copy. The fence makes the init visible to the
  // copy engine, the barrier makes it visible to the block's threads.
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();

  if (threadIdx.x == 0) {
    // TODO(3): say where this block's box begins, announce its bytes on `full`, and copy it.
    // Elements, innermost first. The start may be negative, and the box may reach over every edge.
    const int32_t start[2] = {x0 + kTileColumns * static_cast<int>(blockIdx.x),
                              y0 + kTileRows * static_cast<int>(blockIdx.y)};
    // Arrive. Producer: the copy engine, on this thread's behalf. Consumer: every thread of the block. Changes hands:
    // the tile, once this one arrival is in and the 2048 bytes have landed. Those are the bytes of the whole box,
    // wherever it lies: zeros that stand for the outside are written, and counted, like all others.
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, sizeof tile);
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &image, start, &full);
    // end TODO(3)
  }

  // TODO(4): every thread waits for phase 0 of `full`.
  // Wait. Producer: the copy engine. Consumer: this thread. Changes hands: the tile, which ordinary loads may read once
  // the wait has returned true; this direction needs no proxy fence.
  while (!ptx::mbarrier_try_wait_parity(&full, 0)) {
  }
  // end TODO(4)

  constexpr int kElements = kTileColumns * kTileRows;
  float* mine = out + kElements * (blockIdx.y * gridDim.x + blockIdx.x);
  for (int i = threadIdx.x; i < kElements; i += blockDim.x) {
    mine[i] = tile[i / kTileColumns][i % kTileColumns];
  }
}
