// scope-too-narrow: the right kernel of the page docs/diagnostics/scope-too-narrow.md.
// run: --grid 2 --block 1 --arg in:64 --arg out:64 --arg int:64
#include "course.cuh"

// begin
#line 1 "kernel.cu"
extern "C" __global__ void __cluster_dims__(2) example(const float* in, float* out, int n) {
  __shared__ float box;
  __shared__ uint64_t full;
  ptx::mbarrier_init(&full, 1);
  ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  ptx::barrier_cluster_arrive();
  ptx::barrier_cluster_wait();
  if (ptx::get_sreg_cluster_ctarank() == 1) {
    *static_cast<float*>(__cluster_map_shared_rank(&box, 0)) = in[0];
    uint64_t* full_there = static_cast<uint64_t*>(__cluster_map_shared_rank(&full, 0));
    ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, full_there);
  } else {
    while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &full, 0)) {
    }
    out[0] = box;
  }
}
// end
