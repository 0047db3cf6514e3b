// redux.sync of every integer operation: by a full warp, and by members of irregular masks
// run: --out 2304
// source: PTX §9.7.13.12
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t lane = threadIdx.x;
  for (uint32_t i = 0; i < 8; ++i) {
    const uint32_t mask = i < 4 ? 0xffffffff : i == 4 ? 0x80000001 : in[300 + i] | 1;
    const uint32_t x = i == 0 ? in[128 + lane] : in[256 + 32 * i + lane];
    uint32_t r;
    uint32_t* to = out + i * 288 + lane;
    if (mask >> lane & 1) {
#define REDUX(op)                                                              \
  asm volatile("redux.sync." op " %0, %1, %2;" : "=r"(r) : "r"(x), "r"(mask)); \
  *to = r;                                                                     \
  to += 32;
      REDUX("add.u32")
      REDUX("add.s32")
      REDUX("min.u32")
      REDUX("min.s32")
      REDUX("max.u32")
      REDUX("max.s32")
      REDUX("and.b32")
      REDUX("or.b32")
      REDUX("xor.b32")
    }
    __syncwarp();
  }
}
