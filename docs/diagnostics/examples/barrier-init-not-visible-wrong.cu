// barrier-init-not-visible: the wrong kernel of the page docs/diagnostics/barrier-init-not-visible.md.
// expect: barrier-init-not-visible @ 9
// run: --grid 1 --block 64 --arg in:64 --arg out:64 --arg int:64
#include "course.cuh"

// begin
#line 1 "kernel.cu"
extern "C" __global__ void example(const float* in, float* out, int n) {
  __shared__ alignas(16) float tile[64];
  __shared__ uint64_t full;
  const int i = threadIdx.x;
  if (i == 0) ptx::mbarrier_init(&full, 1);
  __syncthreads();
  if (i == 0) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, 256);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, in, 256, &full);
  }
  while (!ptx::mbarrier_try_wait_parity(&full, 0)) {
  }
  out[i] = tile[i];
}
// end
