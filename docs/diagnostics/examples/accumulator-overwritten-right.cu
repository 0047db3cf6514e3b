// accumulator-overwritten: the right one of the page docs/diagnostics/accumulator-overwritten.md.
// run: --grid 1 --block 64 --arg in:1280 --arg out:128 --arg int:2
#include "course.cuh"
#include "descriptors.cuh"

// begin
#line 1 "kernel.cu"
extern "C" __global__ void example(const float* in, float* out, int n) {
  __shared__ alignas(128) float tile[1280];  // A, 128 x 8, then B, 32 x 8
  __shared__ uint64_t full, empty;
  __shared__ uint32_t slot;
  const int i = threadIdx.x;
  if (i < 32) ptx::tcgen05_alloc(ptx::cta_group_1, &slot, 32);
  if (i == 0) {
    ptx::mbarrier_init(&full, 1);
    ptx::mbarrier_init(&empty, 64);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  for (int j = i; j < 1280; j += 64) tile[j] = in[j];
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  const uint64_t a = ptx::smem_descriptor(tile, 2048, 128), b = ptx::smem_descriptor(tile + 1024, 512, 128);
  const uint32_t shape = ptx::instruction_descriptor(ptx::element::tf32, 128, 32);
  for (int t = 0; t < n; t++) {
    if (i == 0) {
      while (!ptx::mbarrier_try_wait_parity(&empty, (t & 1) ^ 1)) {
      }
      ptx::tcgen05_fence_after_thread_sync();
      ptx::tcgen05_mma(ptx::kind_tf32, ptx::cta_group_1, slot, a, b, shape, t > 0);
      ptx::tcgen05_commit(ptx::cta_group_1, &full);
    }
    while (!ptx::mbarrier_try_wait_parity(&full, t & 1)) {
    }
    ptx::tcgen05_fence_after_thread_sync();
    uint32_t v[1];
    ptx::tcgen05_ld_32x32b(v, slot + (i / 32 * 32 << 16));
    ptx::tcgen05_wait_ld();
    ptx::tcgen05_fence_before_thread_sync();
    ptx::mbarrier_arrive(&empty);
    out[t * 64 + i] = __uint_as_float(v[0]);
  }
  __syncthreads();
  ptx::tcgen05_fence_after_thread_sync();
  if (i < 32) ptx::tcgen05_dealloc(ptx::cta_group_1, slot, 32);
}
// end
