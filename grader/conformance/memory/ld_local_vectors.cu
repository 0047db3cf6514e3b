// ld.local.v2 and .v4 of every element width: order of the elements and extension of each
// run: --out 2048
// source: PTX §9.7.9.8, §5.4.2
#include <cstdint>

#define LOAD_V2(type, reg, var)                                                                               \
  {                                                                                                           \
    var v[2];                                                                                                 \
    asm volatile("ld.local.v2." type " {%0, %1}, [%2];" : "=" reg(v[0]), "=" reg(v[1]) : "l"(at) : "memory"); \
    for (uint32_t i = 0; i < 2; ++i) {                                                                        \
      for (uint32_t k = 0; k < sizeof(var) / 4; ++k)                                                          \
        *to++ = reinterpret_cast<const uint32_t*>(v)[i * (sizeof(var) / 4) + k];                              \
    }                                                                                                         \
  }
#define LOAD_V4(type, reg, var)                                                  \
  {                                                                              \
    var v[4];                                                                    \
    asm volatile("ld.local.v4." type " {%0, %1, %2, %3}, [%4];"                  \
                 : "=" reg(v[0]), "=" reg(v[1]), "=" reg(v[2]), "=" reg(v[3])    \
                 : "l"(at)                                                       \
                 : "memory");                                                    \
    for (uint32_t i = 0; i < 4; ++i) {                                           \
      for (uint32_t k = 0; k < sizeof(var) / 4; ++k)                             \
        *to++ = reinterpret_cast<const uint32_t*>(v)[i * (sizeof(var) / 4) + k]; \
    }                                                                            \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  alignas(16) uint32_t cells[16];
  const uint32_t lane = threadIdx.x;
  for (uint32_t i = 0; i < 16; ++i) cells[i] = in[256 + 16 * lane + i];
  const uint64_t at = __cvta_generic_to_local(cells + (in[lane] & 12));
  uint32_t* to = out + lane * 64;
  LOAD_V2("u8", "r", uint32_t)
  LOAD_V2("s8", "r", int32_t)
  LOAD_V4("u8", "r", uint32_t)
  LOAD_V4("s8", "r", int32_t)
  LOAD_V2("u16", "r", uint32_t)
  LOAD_V2("s16", "l", int64_t)
  LOAD_V4("u16", "l", uint64_t)
  LOAD_V4("s16", "r", int32_t)
  LOAD_V2("u32", "r", uint32_t)
  LOAD_V2("s32", "l", int64_t)
  LOAD_V4("b32", "r", uint32_t)
  LOAD_V4("f32", "f", float)
  LOAD_V2("u64", "l", uint64_t)
  LOAD_V2("f64", "d", double)
}
