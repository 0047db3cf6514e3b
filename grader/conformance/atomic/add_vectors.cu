// atom.global.add of vectors: .v2 and .v4 of f32, .v2, .v4 and .v8 of f16 and bf16, .v2 and .v4 of f16x2 and bf16x2
// run: --out 2176
// source: PTX §9.7.13.5
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t lane = threadIdx.x;
  uint32_t* cell = out + 2048 + lane * 4;
  const uint64_t at = __cvta_generic_to_global(cell);
  uint32_t* to = out + lane * 64;
  // Exponents in the middle of every format: no NaNs, no infinities, no subnormal f32.
#define SMALL(x) (((x)&0x9fff9fff) | 0x20002000)
  uint32_t a[4], b[4], old[4];
  float f[4], fold[4];
  uint16_t h[8], hold[8];
  for (uint32_t i = 0; i < 4; ++i) {
    a[i] = SMALL(in[256 + lane * 4 + i]);
    b[i] = SMALL(in[512 + lane * 4 + i]);
    f[i] = __uint_as_float(b[i]);
    h[2 * i] = static_cast<uint16_t>(b[i]);
    h[2 * i + 1] = static_cast<uint16_t>(b[i] >> 16);
  }
#define FRESH                          \
  for (uint32_t i = 0; i < 4; ++i) {   \
    cell[i] = a[i];                    \
    old[i] = 0;                        \
    fold[i] = 0;                       \
    hold[2 * i] = hold[2 * i + 1] = 0; \
  }
#define KEEP(value)                               \
  for (uint32_t i = 0; i < 4; ++i) *to++ = value; \
  for (uint32_t i = 0; i < 4; ++i) *to++ = cell[i];
#define HALVES (hold[2 * i] | static_cast<uint32_t>(hold[2 * i + 1]) << 16)
  FRESH
  asm volatile("atom.global.add.v2.f32 {%0, %1}, [%2], {%3, %4};"
               : "=f"(fold[0]), "=f"(fold[1])
               : "l"(at), "f"(f[0]), "f"(f[1])
               : "memory");
  KEEP(__float_as_uint(fold[i]))
  FRESH
  asm volatile("atom.global.add.v4.f32 {%0, %1, %2, %3}, [%4], {%5, %6, %7, %8};"
               : "=f"(fold[0]), "=f"(fold[1]), "=f"(fold[2]), "=f"(fold[3])
               : "l"(at), "f"(f[0]), "f"(f[1]), "f"(f[2]), "f"(f[3])
               : "memory");
  KEEP(__float_as_uint(fold[i]))
  FRESH
  asm volatile("atom.global.add.noftz.v2.f16 {%0, %1}, [%2], {%3, %4};"
               : "=h"(hold[0]), "=h"(hold[1])
               : "l"(at), "h"(h[0]), "h"(h[1])
               : "memory");
  KEEP(HALVES)
  FRESH
  asm volatile("atom.global.add.noftz.v4.bf16 {%0, %1, %2, %3}, [%4], {%5, %6, %7, %8};"
               : "=h"(hold[0]), "=h"(hold[1]), "=h"(hold[2]), "=h"(hold[3])
               : "l"(at), "h"(h[0]), "h"(h[1]), "h"(h[2]), "h"(h[3])
               : "memory");
  KEEP(HALVES)
  FRESH
  asm volatile(
      "atom.global.add.noftz.v8.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8], {%9, %10, %11, %12, %13, %14, %15, %16};"
      : "=h"(hold[0]), "=h"(hold[1]), "=h"(hold[2]), "=h"(hold[3]), "=h"(hold[4]), "=h"(hold[5]), "=h"(hold[6]),
        "=h"(hold[7])
      : "l"(at), "h"(h[0]), "h"(h[1]), "h"(h[2]), "h"(h[3]), "h"(h[4]), "h"(h[5]), "h"(h[6]), "h"(h[7])
      : "memory");
  KEEP(HALVES)
  FRESH
  asm volatile(
      "atom.global.add.noftz.v8.bf16 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8], {%9, %10, %11, %12, %13, %14, %15, %16};"
      : "=h"(hold[0]), "=h"(hold[1]), "=h"(hold[2]), "=h"(hold[3]), "=h"(hold[4]), "=h"(hold[5]), "=h"(hold[6]),
        "=h"(hold[7])
      : "l"(at), "h"(h[0]), "h"(h[1]), "h"(h[2]), "h"(h[3]), "h"(h[4]), "h"(h[5]), "h"(h[6]), "h"(h[7])
      : "memory");
  KEEP(HALVES)
  FRESH
  asm volatile("atom.global.add.noftz.v2.f16x2 {%0, %1}, [%2], {%3, %4};"
               : "=r"(old[0]), "=r"(old[1])
               : "l"(at), "r"(b[0]), "r"(b[1])
               : "memory");
  KEEP(old[i])
  FRESH
  asm volatile("atom.global.add.noftz.v4.bf16x2 {%0, %1, %2, %3}, [%4], {%5, %6, %7, %8};"
               : "=r"(old[0]), "=r"(old[1]), "=r"(old[2]), "=r"(old[3])
               : "l"(at), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3])
               : "memory");
  KEEP(old[i])
}
