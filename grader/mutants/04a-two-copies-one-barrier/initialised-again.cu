// Wrong: the barrier is initialised again between the two copies.
// It is live, it has counted an arrival, and a copy is about to signal it.
// expect: barrier-overwritten @ 25
// needs: core
#include "course.cuh"

constexpr int kTile = 1024;

extern "C" __global__ void two_copies(const float* in, float* out, int n) {
  __shared__ alignas(16) float tile[kTile];
  __shared__ uint64_t full;

  const int base = blockIdx.x * kTile;
  const uint32_t half_bytes = kTile / 2 * sizeof(float);

  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();

  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, 2 * half_bytes);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, &tile[0], &in[base], half_bytes, &full);
    ptx::mbarrier_init(&full, 1);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, &tile[512], &in[base + 512], half_bytes, &full);
  }

  while (!ptx::mbarrier_try_wait_parity(&full, 0)) {
  }

  for (int i = threadIdx.x; i < kTile; i += blockDim.x) {
    out[base + i] = 2.0f * tile[i] + tile[kTile - 1 - i];
  }
}
