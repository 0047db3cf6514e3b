// local memory at one address is another cell in every thread, also for addresses computed at run time
// run: --block 64 --out 512
// source: PTX §5.1.5
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  uint32_t cells[8];
  const uint32_t thread = threadIdx.x;
  for (uint32_t i = 0; i < 8; ++i) cells[(i + in[512]) & 7] = in[256 + 8 * thread + i];
  const uint32_t written = in[512] & 7;  // the index is the same in all threads
  cells[written] ^= thread;
  __syncthreads();
  for (uint32_t i = 0; i < 8; ++i) out[thread * 8 + i] = cells[i];
}
