// remote-cta-gone: the right kernel of the page docs/diagnostics/remote-cta-gone.md.
// run: --grid 2 --block 32 --arg in:64 --arg out:64 --arg int:64
#include "course.cuh"

// begin
#line 1 "kernel.cu"
extern "C" __global__ void __cluster_dims__(2) example(const float* in, float* out, int n) {
  __shared__ float tile[32];
  const int i = threadIdx.x;
  const uint32_t rank = ptx::get_sreg_cluster_ctarank();
  tile[i] = in[32 * rank + i];
  ptx::barrier_cluster_arrive();
  ptx::barrier_cluster_wait();
  const float* there = static_cast<const float*>(__cluster_map_shared_rank(tile, rank ^ 1));
  out[32 * rank + i] = there[i];
  ptx::barrier_cluster_arrive();
  ptx::barrier_cluster_wait();  // nobody leaves before everybody has read
}
// end
