// red.global and red.shared of every 32-bit integer operation: the value left
// run: --out 2848
// source: PTX §9.7.13.7
#include <cstdint>

#define RED(op)                                                                 \
  cells[lane] = out[2816 + lane] = a;                                           \
  asm volatile("red.shared." op " [%0], %1;" ::"r"(shared), "r"(b) : "memory"); \
  asm volatile("red.global." op " [%0], %1;" ::"l"(global), "r"(b) : "memory"); \
  *to++ = cells[lane];                                                          \
  *to++ = out[2816 + lane];

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ uint32_t cells[32];
  const uint32_t lane = threadIdx.x;
  const uint32_t shared = static_cast<uint32_t>(__cvta_generic_to_shared(cells + lane));
  const uint64_t global = __cvta_generic_to_global(out + 2816 + lane);
  uint32_t* to = out + lane * 88;
  for (uint32_t round = 0; round < 4; ++round) {
    const uint32_t a = in[(lane * 4 + round) & 255], b = in[(lane * 7 + round * 37) & 255];
    RED("add.u32")
    RED("add.s32")
    RED("min.u32")
    RED("min.s32")
    RED("max.u32")
    RED("max.s32")
    RED("and.b32")
    RED("or.b32")
    RED("xor.b32")
    RED("inc.u32")
    RED("dec.u32")
  }
}
