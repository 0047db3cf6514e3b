// div and rem of the smallest signed number by minus one, in 16, 32 and 64 bits
// run: --block 1 --out 8
// source: PTX §9.7.1.8, §9.7.1.9
//
// The ISA makes no exception for these quotients, which do not fit, and does not give them either.
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t zero = in[0];  // +0; unknown to the compiler
  const uint32_t minimum = zero ^ 0x80000000, minus_one = ~zero;
  const auto minimum16 = static_cast<uint16_t>(zero ^ 0x8000), minus_one16 = static_cast<uint16_t>(~zero);
  const uint64_t minimum64 = uint64_t{minimum} << 32, minus_one64 = ~uint64_t{zero};
  asm volatile("div.s32 %0, %1, %2;" : "=r"(out[0]) : "r"(minimum), "r"(minus_one));
  asm volatile("rem.s32 %0, %1, %2;" : "=r"(out[1]) : "r"(minimum), "r"(minus_one));
  uint16_t narrow;
  asm volatile("div.s16 %0, %1, %2;" : "=h"(narrow) : "h"(minimum16), "h"(minus_one16));
  out[2] = narrow;
  asm volatile("rem.s16 %0, %1, %2;" : "=h"(narrow) : "h"(minimum16), "h"(minus_one16));
  out[3] = narrow;
  uint64_t wide;
  asm volatile("div.s64 %0, %1, %2;" : "=l"(wide) : "l"(minimum64), "l"(minus_one64));
  out[4] = static_cast<uint32_t>(wide);
  out[5] = static_cast<uint32_t>(wide >> 32);
  asm volatile("rem.s64 %0, %1, %2;" : "=l"(wide) : "l"(minimum64), "l"(minus_one64));
  out[6] = static_cast<uint32_t>(wide);
  out[7] = static_cast<uint32_t>(wide >> 32);
}
