// atom.shared of every 32-bit integer operation: the value returned and the value left, one cell per lane
// run: --out 3072
// source: PTX §9.7.13.5
#include <cstdint>

// The cell holds a; what the atomic returns, and what it leaves.
#define ATOM(op)                                                                               \
  {                                                                                            \
    *cell = a;                                                                                 \
    uint32_t old;                                                                              \
    asm volatile("atom.shared." op " %0, [%1], %2;" : "=r"(old) : "r"(at), "r"(b) : "memory"); \
    *to++ = old;                                                                               \
    *to++ = *cell;                                                                             \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t lane = threadIdx.x;
  __shared__ uint32_t cells[32];
  uint32_t* cell = cells + lane;
  const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(cell));
  uint32_t* to = out + lane * 96;
  for (uint32_t round = 0; round < 4; ++round) {
    const uint32_t a = in[(lane * 4 + round) & 255], b = in[(lane * 7 + round * 37) & 255];
    ATOM("add.u32")
    ATOM("add.s32")
    ATOM("min.u32")
    ATOM("min.s32")
    ATOM("max.u32")
    ATOM("max.s32")
    ATOM("and.b32")
    ATOM("or.b32")
    ATOM("xor.b32")
    ATOM("exch.b32")
    ATOM("inc.u32")
    ATOM("dec.u32")
  }
}
