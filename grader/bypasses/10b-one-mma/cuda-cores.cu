// Right results without tensor cores and without tensor memory: each thread computes its row with multiply-adds.
#include <cuda_bf16.h>

#include "course.cuh"
#include "descriptors.cuh"

constexpr int kM = 128;
constexpr int kN = 256;
constexpr int kK = 16;

extern "C" __global__ void one_mma(const __nv_bfloat16* a, const __nv_bfloat16* b, float* d) {
  const int row = blockIdx.x * kM + threadIdx.x;
  float a_row[kK];
  for (int k = 0; k < kK; k++) {
    a_row[k] = __bfloat162float(a[row * kK + k]);
  }
  for (int n = 0; n < kN; n++) {
    float sum = 0.0f;
    for (int k = 0; k < kK; k++) {
      sum += a_row[k] * __bfloat162float(b[n * kK + k]);
    }
    d[row * kN + n] = sum;
  }
}
