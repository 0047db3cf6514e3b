// tmem-uninitialized: the wrong kernel of the page docs/diagnostics/tmem-uninitialized.md.
// expect: tmem-uninitialized @ 17
// run: --grid 1 --block 32 --arg in:1280 --arg out:1024 --arg int:1280
#include "course.cuh"
#include "descriptors.cuh"

// begin
#line 1 "kernel.cu"
extern "C" __global__ void example(const float* in, float* out, int n) {
  __shared__ alignas(128) float tile[1280];  // A, 128 x 8, then B, 32 x 8: 16-byte columns of K, without swizzle
  __shared__ uint64_t done;
  __shared__ uint32_t slot;
  const int i = threadIdx.x;
  ptx::tcgen05_alloc(ptx::cta_group_1, &slot, 32);
  if (i == 0) {
    ptx::mbarrier_init(&done, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  for (int j = i; j < n; j += 32) tile[j] = in[j];
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (i == 0) {
    const uint64_t a = ptx::smem_descriptor(tile, 2048, 128), b = ptx::smem_descriptor(tile + 1024, 512, 128);
    const uint32_t shape = ptx::instruction_descriptor(ptx::element::tf32, 128, 32);
    ptx::tcgen05_mma(ptx::kind_tf32, ptx::cta_group_1, slot, a, b, shape, true);
    ptx::tcgen05_commit(ptx::cta_group_1, &done);
  }
  while (!ptx::mbarrier_try_wait_parity(&done, 0)) {
  }
  ptx::tcgen05_fence_after_thread_sync();
  uint32_t v[32];
  ptx::tcgen05_ld_32x32b(v, slot);
  ptx::tcgen05_wait_ld();
  for (int c = 0; c < 32; c++) out[c * 32 + i] = __uint_as_float(v[c]);
  ptx::tcgen05_dealloc(ptx::cta_group_1, slot, 32);
}
// end
