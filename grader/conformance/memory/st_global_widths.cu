// st.global of every width from 32-bit and 64-bit registers: what is written, and that the bytes beside it stay
// run: --out 1472
// source: PTX §9.7.9.11, §9.4.1
#include <cstdint>

// From a 32-bit and from a 64-bit register, into eight bytes each.
#define STORE(type, mask)                                                                             \
  {                                                                                                   \
    asm volatile("st.global." type " [%0], %1;" ::"l"(at + (lane & mask)), "r"(narrow) : "memory");   \
    asm volatile("st.global." type " [%0], %1;" ::"l"(at + 8 + (lane & mask)), "l"(wide) : "memory"); \
    at += 16;                                                                                         \
  }
#define STORE64(type, reg, value)                                                  \
  {                                                                                \
    asm volatile("st.global." type " [%0], %1;" ::"l"(at), reg(value) : "memory"); \
    at += 8;                                                                       \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t lane = threadIdx.x;
  for (uint32_t i = 0; i < 46; ++i) out[lane * 46 + i] = 0xa5a5a5a5;
  uint64_t at = __cvta_generic_to_global(out + lane * 46);
  const uint32_t narrow = in[256 + lane];
  const uint64_t wide = static_cast<uint64_t>(in[300 + lane]) << 32 | in[400 + lane];
  STORE("u8", 7)
  STORE("s8", 7)
  STORE("b8", 7)
  STORE("u16", 6)
  STORE("s16", 6)
  STORE("b16", 6)
  STORE("u32", 4)
  STORE("s32", 4)
  STORE("b32", 4)
  STORE64("u64", "l", wide)
  STORE64("s64", "l", wide)
  STORE64("b64", "l", wide)
  STORE64("f64", "d", __longlong_as_double(static_cast<int64_t>(wide)))
  STORE64("f32", "f", __uint_as_float(in[lane]))
}
