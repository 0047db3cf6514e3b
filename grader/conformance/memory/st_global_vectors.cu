// st.global.v2 and .v4 of every element width: order of the elements, and that nothing beside them is written
// run: --out 1408
// source: PTX §9.7.9.11, §5.4.2
#include <cstdint>

// Sixteen bytes each; what the vector does not cover keeps its pattern.
#define STORE_V2(type, reg, a, b)                                                               \
  {                                                                                             \
    asm volatile("st.global.v2." type " [%0], {%1, %2};" ::"l"(at), reg(a), reg(b) : "memory"); \
    at += 16;                                                                                   \
  }
#define STORE_V4(type, reg, a, b, c, d)                                                                    \
  {                                                                                                        \
    asm volatile("st.global.v4." type " [%0], {%1, %2, %3, %4};" ::"l"(at), reg(a), reg(b), reg(c), reg(d) \
                 : "memory");                                                                              \
    at += 16;                                                                                              \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t lane = threadIdx.x;
  for (uint32_t i = 0; i < 44; ++i) out[lane * 44 + i] = 0xa5a5a5a5;
  uint64_t at = __cvta_generic_to_global(out + lane * 44);
  const uint32_t a = in[256 + lane], b = in[300 + lane], c = in[400 + lane], d = in[500 + lane];
  const uint64_t ab = static_cast<uint64_t>(a) << 32 | b, cd = static_cast<uint64_t>(c) << 32 | d;
  STORE_V2("u8", "r", a, b)
  STORE_V4("u8", "r", a, b, c, d)
  STORE_V4("s8", "l", ab, cd, ab >> 8, cd >> 8)
  STORE_V2("u16", "r", a, b)
  STORE_V4("b16", "r", a, b, c, d)
  STORE_V2("u32", "r", a, b)
  STORE_V2("b32", "l", ab, cd)
  STORE_V4("s32", "r", a, b, c, d)
  STORE_V4("f32", "f", __uint_as_float(a), __uint_as_float(b), __uint_as_float(c), __uint_as_float(d))
  STORE_V2("u64", "l", ab, cd)
  STORE_V2("f64", "d", __longlong_as_double(static_cast<int64_t>(ab)), __longlong_as_double(static_cast<int64_t>(cd)))
}
