// Right results, no tensor memory: the second pass reads the row from global memory again.
#include "course.cuh"

constexpr int kRows = 128;

extern "C" __global__ void tensor_memory(const float* in, float* out, int columns, int tiles) {
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int base = tile * columns * kRows + threadIdx.x;
    float largest = -INFINITY;
    for (int c = 0; c < columns; c++) largest = fmaxf(largest, in[base + c * kRows]);
    for (int c = 0; c < columns; c++) out[base + c * kRows] = in[base + c * kRows] - largest;
  }
}
