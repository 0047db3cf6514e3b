// atom.add.f64, global and shared: subnormals are kept, rounding to even, infinities
// run: --out 1088
// source: PTX §9.7.13.5
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ double cells[32];
  const uint32_t lane = threadIdx.x;
  double* const places[2] = {cells + lane, reinterpret_cast<double*>(out + 1024) + lane};
  uint32_t* to = out + lane * 32;
  for (uint32_t i = 0; i < 8; ++i) {
    double* cell = places[i & 1];
    // High words from the list of f32 patterns; exponents of all ones get a mantissa of zero: infinities, no NaNs.
    uint64_t bits[2];
    for (uint32_t k = 0; k < 2; ++k) {
      bits[k] = static_cast<uint64_t>(in[(lane * 3 + i + 20 * k) & 127]) << 32 | in[256 + lane * 8 + i];
      if ((bits[k] >> 52 & 0x7ff) == 0x7ff) bits[k] &= 0xfff0000000000000;
    }
    if ((bits[0] >> 52 & 0x7ff) == 0x7ff && (bits[1] >> 52 & 0x7ff) == 0x7ff) bits[1] = bits[0];
    *cell = __longlong_as_double(static_cast<int64_t>(bits[0]));
    double old;
    asm volatile("atom.add.f64 %0, [%1], %2;"
                 : "=d"(old)
                 : "l"(cell), "d"(__longlong_as_double(static_cast<int64_t>(bits[1])))
                 : "memory");
    const uint64_t was = static_cast<uint64_t>(__double_as_longlong(old)),
                   is = static_cast<uint64_t>(__double_as_longlong(*cell));
    *to++ = static_cast<uint32_t>(was);
    *to++ = static_cast<uint32_t>(was >> 32);
    *to++ = static_cast<uint32_t>(is);
    *to++ = static_cast<uint32_t>(is >> 32);
  }
}
