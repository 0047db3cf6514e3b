// ldu.global of every width, all lanes at one address
// run: --out 512
// source: PTX §9.7.9.10
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t lane = threadIdx.x;
  uint32_t* to = out + lane * 16;
  uint32_t v, a, b, c, d;
  uint64_t w;
  const uint64_t at = __cvta_generic_to_global(in + 256);
#define LOAD(type)                                                              \
  asm volatile("ldu.global." type " %0, [%1];" : "=r"(v) : "l"(at) : "memory"); \
  *to++ = v;
  LOAD("u8")
  LOAD("s8")
  LOAD("u16")
  LOAD("s16")
  LOAD("u32")
  asm volatile("ldu.global.u64 %0, [%1];" : "=l"(w) : "l"(at) : "memory");
  *to++ = static_cast<uint32_t>(w);
  *to++ = static_cast<uint32_t>(w >> 32);
  asm volatile("ldu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
               : "l"(at + 16)
               : "memory");
  *to++ = a;
  *to++ = b;
  *to++ = c;
  *to++ = d;
}
