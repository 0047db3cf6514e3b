// 09a tensor-memory: every row of a tile minus its largest element. A row waits in tensor memory until that is known.
//
//   out[t][c][r] = in[t][c][r] - max over k of in[t][k][r],   for every tile t < tiles, column c < columns, row r < 128
//
// A tile has 128 rows and `columns` columns (32, 64 or 128) of floats, stored column by column. Block b works on tiles
// b, b + gridDim.x, b + 2 * gridDim.x, …; it may get no tile at all. It has 128 threads, one a row; row r of the tile
// goes to lane r of tensor memory. Two passes: the first brings the row from global memory, finds its largest element
// and puts the row into tensor memory; the second takes it from there. Chapter: chapters/09-tensor-memory/README.md
#include "course.cuh"

constexpr int kRows = 128;  // of a tile; lanes of tensor memory; threads of a block
constexpr int kChunk = 16;  // columns that one tcgen05.st or tcgen05.ld moves

extern "C" __global__ void tensor_memory(const float* in, float* out, int columns, int tiles) {
  __shared__ uint32_t slot;  // tcgen05.alloc writes the address of the columns here

  const int row = threadIdx.x;        // and the lane of tensor memory that belongs to this thread
  const int warp = threadIdx.x / 32;  // 0 … 3: reaches lanes 32 * warp … 32 * warp + 31
  uint32_t tmem = 0;                  // column 0 of the warp's lanes: lane in bits 31:16, column in bits 15:0

  // TODO(1): warp 0 allocates `columns` columns, their address to `slot`, and gives up the permit to allocate. Then
  // every thread of the block makes of the address that of its warp's quarter of the lanes: `tmem`.
  // end TODO(1)

  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int base = tile * columns * kRows + row;
    float largest = -INFINITY;

    for (int c = 0; c < columns; c += kChunk) {
      uint32_t v[kChunk];  // tensor memory has cells of 32 bits, and asks no type
      for (int i = 0; i < kChunk; i++) {
        const float x = in[base + (c + i) * kRows];
        largest = fmaxf(largest, x);
        v[i] = __float_as_uint(x);
      }
      // TODO(2): store `v` to columns c … c + 15 of this thread's lane.
      // end TODO(2)
    }

    // TODO(3): the second pass loads what the first has stored.
    // end TODO(3)

    for (int c = 0; c < columns; c += kChunk) {
      uint32_t v[kChunk] = {};
      // TODO(4): load columns c … c + 15 of this thread's lane into `v`, for use here and now.
      // end TODO(4)
      for (int i = 0; i < kChunk; i++) {
        out[base + (c + i) * kRows] = __uint_as_float(v[i]) - largest;
      }
    }
  }

  // TODO(5): when every warp is done with the columns, warp 0 gives them back.
  // end TODO(5)
}
