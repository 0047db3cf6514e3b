// red.add of f32, f64, f16, f16x2, bf16 and bf16x2, scalars and vectors: the value left
// run: --out 2176
// source: PTX §9.7.13.7
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t lane = threadIdx.x;
  uint32_t* cell = out + 2048 + lane * 4;
  const uint64_t at = __cvta_generic_to_global(cell);
  uint32_t* to = out + lane * 48;
  // Exponents in the middle of every format: no NaNs, no infinities, no subnormal f32.
#define SMALL(x) (((x)&0x9fff9fff) | 0x20002000)
  uint32_t a[4], b[4];
  for (uint32_t i = 0; i < 4; ++i) {
    a[i] = SMALL(in[256 + lane * 4 + i]);
    b[i] = SMALL(in[512 + lane * 4 + i]);
  }
#define RED(op, ...)                                                        \
  for (uint32_t i = 0; i < 4; ++i) cell[i] = a[i];                          \
  asm volatile("red.global.add." op ";" ::"l"(at), __VA_ARGS__ : "memory"); \
  for (uint32_t i = 0; i < 4; ++i) *to++ = cell[i];
#define F(i) "f"(__uint_as_float(b[i]))
  RED("f32 [%0], %1", F(0))
  RED("f64 [%0], %1", "d"(__hiloint2double(static_cast<int>(b[1]), static_cast<int>(b[0]))))
  RED("noftz.f16 [%0], %1", "h"(static_cast<uint16_t>(b[0])))
  RED("noftz.bf16 [%0], %1", "h"(static_cast<uint16_t>(b[0])))
  RED("noftz.f16x2 [%0], %1", "r"(b[0]))
  RED("noftz.bf16x2 [%0], %1", "r"(b[0]))
  RED("v2.f32 [%0], {%1, %2}", F(0), F(1))
  RED("v4.f32 [%0], {%1, %2, %3, %4}", F(0), F(1), F(2), F(3))
  RED("noftz.v2.f16x2 [%0], {%1, %2}", "r"(b[0]), "r"(b[1]))
  RED("noftz.v4.f16x2 [%0], {%1, %2, %3, %4}", "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]))
  RED("noftz.v2.bf16x2 [%0], {%1, %2}", "r"(b[0]), "r"(b[1]))
  RED("noftz.v4.bf16 [%0], {%1, %2, %3, %4}", "h"(static_cast<uint16_t>(b[0])), "h"(static_cast<uint16_t>(b[0] >> 16)),
      "h"(static_cast<uint16_t>(b[1])), "h"(static_cast<uint16_t>(b[1] >> 16)))
}
