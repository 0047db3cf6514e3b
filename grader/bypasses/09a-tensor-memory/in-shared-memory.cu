// Right results, no tensor memory: the first 64 columns of the tile are in shared memory, the others are read again.
#include "course.cuh"

constexpr int kRows = 128;
constexpr int kStaged = 64;

extern "C" __global__ void tensor_memory(const float* in, float* out, int columns, int tiles) {
  __shared__ float staged[kStaged][kRows];
  const int row = threadIdx.x;
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int base = tile * columns * kRows + row;
    float largest = -INFINITY;
    for (int c = 0; c < columns; c++) {
      const float x = in[base + c * kRows];
      largest = fmaxf(largest, x);
      if (c < kStaged) staged[c][row] = x;
    }
    for (int c = 0; c < columns; c++) {
      out[base + c * kRows] = (c < kStaged ? staged[c][row] : in[base + c * kRows]) - largest;
    }
  }
}
