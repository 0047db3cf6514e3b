// fma.oob: which NaN, as a factor, makes the result +0: a bit for each of the 65536 patterns, f16 then bf16
// run: --grid 64 --out 4096
// source: PTX §9.7.4.4
// undefined: the bits of the NaN that stands for "outside of the tensor"
#include <cstdint>

#define FORM(type, one)                                                                      \
  {                                                                                          \
    uint32_t zero = 0;                                                                       \
    for (uint32_t bit = 0; bit < 32; ++bit) {                                                \
      const auto x = static_cast<uint16_t>(32 * word + bit), a = static_cast<uint16_t>(one); \
      uint16_t r, s;                                                                         \
      asm volatile("fma.rn.oob." type " %0, %1, %2, %2;" : "=h"(r) : "h"(x), "h"(a));        \
      asm volatile("fma.rn." type " %0, %1, %2, %2;" : "=h"(s) : "h"(x), "h"(a));            \
      zero |= r == 0 && s != 0 ? 1u << bit : 0u;                                             \
    }                                                                                        \
    out[word] = zero;                                                                        \
    out += 2048;                                                                             \
  }

extern "C" __global__ void conformance(const uint32_t*, uint32_t* out) {
  const uint32_t word = blockIdx.x * blockDim.x + threadIdx.x;
  FORM("f16", 0x3c00)
  FORM("bf16", 0x3f80)
}
