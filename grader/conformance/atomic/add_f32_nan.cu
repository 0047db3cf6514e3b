// atom.add.f32 with NaN operands of every kind and inf - inf, global and shared: the bits of the NaN left
// run: --out 288
// source: PTX §9.7.13.5
// undefined: the sign and the payload of a NaN result
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ float cells[32];
  const uint32_t lane = threadIdx.x;
  const uint32_t nans[8] = {0x7fc00000, 0xffc00000, 0x7fc12345, 0xffd54321,
                            0x7f800001, 0xff800001, 0x7fbfffff, 0x7fffffff};
  float* const places[2] = {cells + lane, reinterpret_cast<float*>(out) + 256 + lane};
  for (uint32_t i = 0; i < 2; ++i) {
    const float nan = __uint_as_float(nans[(lane + in[0]) & 7]);
    const float other = lane < 8 ? 1.0f : lane < 16 ? __uint_as_float(nans[lane & 3]) : __uint_as_float(0x7f800000);
    float old;
    *places[i] = lane < 24 ? nan : other;
    asm volatile("atom.add.f32 %0, [%1], %2;"
                 : "=f"(old)
                 : "l"(places[i]), "f"(lane < 24   ? other
                                       : lane < 28 ? nan
                                                   : -other)
                 : "memory");
    out[lane * 8 + 4 * i] = __float_as_uint(old);
    out[lane * 8 + 4 * i + 1] = __float_as_uint(*places[i]);
    out[lane * 8 + 4 * i + 2] = *places[i] != *places[i];
    out[lane * 8 + 4 * i + 3] = lane;
  }
}
