// bad-tensor-map: the wrong kernel of the page docs/diagnostics/bad-tensor-map.md.
// expect: bad-tensor-map @ 13
// run: --grid 1 --block 64 --arg in:1024 --arg map:32,32,8,8 --arg out:64 --arg int:8
#include <cuda.h>

#include "course.cuh"

// begin
#line 1 "kernel.cu"
extern "C" __global__ void example(const float* in, CUtensorMap map, float* out, int n) {
  __shared__ alignas(128) float tile[64];
  __shared__ uint64_t full;
  const int i = threadIdx.x;
  if (i == 0) {
    ptx::mbarrier_init(&full, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  if (i == 0) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, sizeof tile);
    const int32_t at[2] = {n, 0};
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &map, at, &full);
  }
  while (!ptx::mbarrier_try_wait_parity(&full, 0)) {
  }
  out[i] = tile[i];
}
// end
