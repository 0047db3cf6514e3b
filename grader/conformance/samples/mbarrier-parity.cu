// test_wait.parity over four phases of an mbarrier: true for the phase before, false for the current one
// run: --block 32 --out 16
// source: PTX §9.7.13.15.16 (mbarrier.test_wait)
#include <cstdint>
#include <cuda/ptx>

extern "C" __global__ void conformance(const uint32_t*, uint32_t* out) {
  namespace ptx = cuda::ptx;
  __shared__ uint64_t barrier;
  if (threadIdx.x != 0) return;
  ptx::mbarrier_init(&barrier, 1);
  for (uint32_t phase = 0; phase < 4; ++phase) {
    out[4 * phase] = ptx::mbarrier_test_wait_parity(&barrier, phase % 2);
    out[4 * phase + 1] = ptx::mbarrier_test_wait_parity(&barrier, (phase + 1) % 2);
    ptx::mbarrier_arrive(&barrier);
    out[4 * phase + 2] = ptx::mbarrier_test_wait_parity(&barrier, phase % 2);
  }
}
