// refill-before-release: the wrong kernel of the page docs/diagnostics/refill-before-release.md.
// expect: refill-before-release @ 19
// run: --grid 1 --block 64 --arg in:128 --arg out:128 --arg int:128
#include "course.cuh"

// begin
#line 1 "kernel.cu"
extern "C" __global__ void example(const float* in, float* out, int n) {
  __shared__ alignas(16) float tile[64];
  __shared__ uint64_t full;
  const int i = threadIdx.x;
  if (i == 0) {
    ptx::mbarrier_init(&full, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  if (i == 0) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, 256);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, in, 256, &full);
  }
  while (!ptx::mbarrier_try_wait_parity(&full, 0)) {
  }
  out[i] = tile[i];
  if (i == 0) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, 256);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, in + 64, 256, &full);  // others may still read
  }
  while (!ptx::mbarrier_try_wait_parity(&full, 1)) {
  }
  out[64 + i] = tile[i];
}
// end
