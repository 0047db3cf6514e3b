// 32 lanes on one cell, operations that commute: the value left;
// and of add, the sum and the spread of the values returned
// run: --out 41
// source: PTX §9.7.13.5
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ uint32_t cells[8];
  const uint32_t lane = threadIdx.x;
  if (lane < 8) cells[lane] = lane == 4 || lane == 2 ? 0xffffffff : 0;
  __syncwarp();
  const uint32_t x = in[256 + lane];
  const uint32_t returned = atomicAdd(&cells[0], 1u);
  atomicAdd(&cells[1], x);
  atomicAnd(&cells[2], x | 0xffff);
  atomicOr(&cells[3], x & 0xf0f0f0f0);
  atomicMin(&cells[4], x);
  atomicMax(&cells[5], x);
  atomicXor(&cells[6], x);
  atomicInc(&cells[7], 12u);
  __syncwarp();
  if (lane < 8) out[lane] = cells[lane];
  // The values returned are 0 to 31, each once.
  out[8 + returned] = 1;
  const uint32_t sum = __reduce_add_sync(0xffffffff, returned);
  if (lane == 0) out[40] = sum;
}
