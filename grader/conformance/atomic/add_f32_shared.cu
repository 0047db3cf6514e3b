// atom.add.f32 in shared memory: subnormals are kept; signed zeros, overflow, rounding to even
// run: --out 1024
// source: PTX §9.7.13.5
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t lane = threadIdx.x;
  uint32_t* to = out + lane * 32;
  __shared__ uint32_t cells[32];
  uint32_t* cell = cells + lane;
  const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(cell));
  for (uint32_t i = 0; i < 16; ++i) {
    // Finite numbers and infinities; a NaN's place is taken by a number.
    const uint32_t first = in[(lane * 5 + i) & 127], second = in[(lane + 9 * i) & 127];
    const uint32_t a = (first << 1) > 0xff000000 ? first & 0x3fffffff : first;
    uint32_t b = (second << 1) > 0xff000000 ? second & 0x3fffffff : second;
    if (a << 1 == 0xff000000 && b << 1 == 0xff000000) b = a;  // inf - inf is a NaN
    float old;
    *cell = a;
    asm volatile("atom.shared.add.f32 %0, [%1], %2;" : "=f"(old) : "r"(at), "f"(__uint_as_float(b)) : "memory");
    *to++ = __float_as_uint(old);
    *to++ = *cell;
  }
}
