// ld.const of every width and signedness into 32-bit and 64-bit registers: zero or sign extension
// run: --out 1152
// source: PTX §9.7.9.8, §9.4.1
#include <cstdint>
#include <cstring>

// Every byte has its own value; signs alternate irregularly.
__constant__ alignas(8) uint32_t kCells[16] = {0x80ff7f01, 0xfe817d02, 0x0382fc7b, 0x84f90576, 0x7ff58006, 0xf1f27287,
                                               0x88e9708a, 0x8b6ce7ec, 0x8d65de8c, 0xdb8f5e90, 0x91d25855, 0xcf92944c,
                                               0x45c996c3, 0x99403c98, 0xb5379bb1, 0x9ea82aa0};

// Into a 32-bit and a 64-bit register: three words of out. `mask` moves the address within eight bytes, by lane.
#define LOAD(type, mask)                                                                             \
  {                                                                                                  \
    uint32_t narrow;                                                                                 \
    uint64_t wide;                                                                                   \
    asm volatile("ld.const." type " %0, [%1];" : "=r"(narrow) : "l"(at + (lane & mask)) : "memory"); \
    asm volatile("ld.const." type " %0, [%1];" : "=l"(wide) : "l"(at + (lane & mask)) : "memory");   \
    *to++ = narrow;                                                                                  \
    *to++ = static_cast<uint32_t>(wide);                                                             \
    *to++ = static_cast<uint32_t>(wide >> 32);                                                       \
  }
#define LOAD64(type, reg, var)                                                        \
  {                                                                                   \
    var wide;                                                                         \
    asm volatile("ld.const." type " %0, [%1];" : "=" reg(wide) : "l"(at) : "memory"); \
    uint64_t bits;                                                                    \
    memcpy(&bits, &wide, 8);                                                          \
    *to++ = static_cast<uint32_t>(bits);                                              \
    *to++ = static_cast<uint32_t>(bits >> 32);                                        \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t lane = threadIdx.x;
  const uint64_t at = __cvta_generic_to_constant(kCells + 2 * ((lane + in[lane]) & 7));
  uint32_t* to = out + lane * 36;
  LOAD("u8", 7)
  LOAD("s8", 7)
  LOAD("b8", 7)
  LOAD("u16", 6)
  LOAD("s16", 6)
  LOAD("b16", 6)
  LOAD("u32", 4)
  LOAD("s32", 4)
  LOAD("b32", 4)
  LOAD64("u64", "l", uint64_t)
  LOAD64("s64", "l", uint64_t)
  LOAD64("b64", "l", uint64_t)
  LOAD64("f64", "d", double)
  float f;
  asm volatile("ld.const.f32 %0, [%1];" : "=f"(f) : "l"(at) : "memory");
  *to = __float_as_uint(f);
}
