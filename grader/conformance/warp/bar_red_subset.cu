// barrier.red with a thread count: two pairs of warps at the same time, each on its own barrier
// run: --block 128 --out 384
// source: PTX §9.7.13.1
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t thread = threadIdx.x, pair = thread / 64;
  const uint32_t mine = in[256 + thread] & 1;
  uint32_t count, all, any;
  asm volatile(
      "{\n\t"
      ".reg .pred mine, p;\n\t"
      "setp.ne.u32 mine, %3, 0;\n\t"
      "barrier.red.popc.u32 %0, %4, 64, mine;\n\t"
      "setp.ne.u32 mine, %5, 0;\n\t"
      "barrier.red.and.pred p, %4, 64, mine;\n\t"
      "selp.u32 %1, 1, 0, p;\n\t"
      "barrier.red.or.pred p, %4, 64, !mine;\n\t"
      "selp.u32 %2, 1, 0, p;\n\t"
      "}"
      : "=&r"(count), "=&r"(all), "=&r"(any)
      : "r"(mine), "r"(pair + 3), "r"(pair == 0 || thread != 100 ? 1 : 0)
      : "memory");
  out[thread * 3] = count;
  out[thread * 3 + 1] = all;
  out[thread * 3 + 2] = any;
}
