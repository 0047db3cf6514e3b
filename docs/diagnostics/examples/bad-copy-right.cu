// bad-copy: the right one of the page docs/diagnostics/bad-copy.md.
// run: --grid 1 --block 64 --arg in:61 --arg out:61 --arg int:61
#include "course.cuh"

// begin
#line 1 "kernel.cu"
extern "C" __global__ void example(const float* in, float* out, int n) {
  __shared__ alignas(16) float tile[64];
  __shared__ uint64_t full;
  const int i = threadIdx.x;
  const uint32_t bytes = n * 4 / 16 * 16;
  if (i == 0) {
    ptx::mbarrier_init(&full, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  if (i == 0) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, bytes);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, in, bytes, &full);
  }
  while (!ptx::mbarrier_try_wait_parity(&full, 0)) {
  }
  if (i < n) out[i] = i < bytes / 4 ? tile[i] : in[i];  // the ragged tail by threads
}
// end
