// atom.cas of 16, 32 and 64 bits, global and shared: equal, unequal in the high or low half
// and the neighbours of a 16-bit cell
// run: --out 832
// source: PTX §9.7.13.5
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(8) uint32_t cells[64];
  const uint32_t lane = threadIdx.x;
  uint32_t* const places[2] = {cells + 2 * lane, out + 32 * 24 + 2 * lane};
  uint32_t* to = out + lane * 24;
  const uint32_t a = in[256 + lane], b = in[300 + lane], c = in[400 + lane], d = in[500 + lane];
  // Which part of the comparand is wrong.
  const uint32_t low = (lane & 3) == 1 ? a ^ 1 : a, high = (lane & 3) == 2 ? b ^ 0x80000000 : b;
  for (uint32_t i = 0; i < 2; ++i) {
    uint32_t* cell = places[i];
    cell[0] = a;
    cell[1] = b;
    uint16_t old16;
    uint32_t old32;
    uint64_t old64;
    asm volatile("atom.cas.b16 %0, [%1], %2, %3;"
                 : "=h"(old16)
                 : "l"(reinterpret_cast<uint16_t*>(cell) + (lane >> 2 & 1)),
                   "h"(static_cast<uint16_t>((lane >> 2 & 1) ? low >> 16 : low)), "h"(static_cast<uint16_t>(c))
                 : "memory");
    *to++ = old16;
    *to++ = cell[0];
    *to++ = cell[1];
    cell[0] = a;
    asm volatile("atom.cas.b32 %0, [%1], %2, %3;" : "=r"(old32) : "l"(cell), "r"(low), "r"(c) : "memory");
    *to++ = old32;
    *to++ = cell[0];
    *to++ = cell[1];
    cell[0] = a;
    asm volatile("atom.cas.b64 %0, [%1], %2, %3;"
                 : "=l"(old64)
                 : "l"(cell), "l"(static_cast<uint64_t>(high) << 32 | low), "l"(static_cast<uint64_t>(d) << 32 | c)
                 : "memory");
    *to++ = static_cast<uint32_t>(old64);
    *to++ = static_cast<uint32_t>(old64 >> 32);
    *to++ = cell[0];
    *to++ = cell[1];
  }
}
