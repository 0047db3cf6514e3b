// atom.add.noftz.bf16 and .bf16x2, global and shared: subnormals are kept, each half on its own, the neighbour stays
// run: --out 1056
// source: PTX §9.7.13.5
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ uint32_t cells[32];
  const uint32_t lane = threadIdx.x;
  uint32_t* const places[2] = {cells + lane, out + 1024 + lane};
  uint32_t* to = out + lane * 32;
  for (uint32_t i = 0; i < 8; ++i) {
    uint32_t* cell = places[i & 1];
    // Exponents of all ones lose a bit: no infinities of both signs, no NaNs.
    uint32_t a = in[(lane * 7 + i * 3) & 255], b = in[256 + lane * 8 + i] ^ (i & 4 ? a & 0x7f007f00 : 0);
    if (i < 2) b = in[(lane * 13 + i) & 255];
    for (uint32_t k = 0; k < 2; ++k) {
      if ((a >> 16 * k & 0x7f80) == 0x7f80) a &= ~(0x4000u << 16 * k);
      if ((b >> 16 * k & 0x7f80) == 0x7f80) b &= ~(0x4000u << 16 * k);
    }
    *cell = a;
    uint32_t old;
    uint16_t old16;
    asm volatile("atom.add.noftz.bf16x2 %0, [%1], %2;" : "=r"(old) : "l"(cell), "r"(b) : "memory");
    *to++ = old;
    *to++ = *cell;
    *cell = a;
    asm volatile("atom.add.noftz.bf16 %0, [%1], %2;"
                 : "=h"(old16)
                 : "l"(reinterpret_cast<uint16_t*>(cell) + (lane & 1)), "h"(static_cast<uint16_t>(b))
                 : "memory");
    *to++ = old16;
    *to++ = *cell;
  }
}
