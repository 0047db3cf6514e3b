// parameters of a device function, by value, of every width and signedness: ld.param and st.param
// run: --out 384
// source: PTX §5.1.6, §9.7.9.8
#include <cstdint>

struct Fields {
  uint8_t u8;
  int8_t s8;
  uint16_t u16;
  int16_t s16;
  uint32_t u32;
  int64_t s64;
  double f64;
  float f32;
};

struct Results {
  uint32_t word[12];
};

__device__ __noinline__ Results spread(Fields f, int8_t byte, uint16_t half) {
  Results r;
  r.word[0] = f.u8;
  r.word[1] = static_cast<uint32_t>(static_cast<int32_t>(f.s8));
  r.word[2] = f.u16;
  r.word[3] = static_cast<uint32_t>(static_cast<int32_t>(f.s16));
  r.word[4] = f.u32;
  r.word[5] = static_cast<uint32_t>(f.s64);
  r.word[6] = static_cast<uint32_t>(f.s64 >> 32);
  r.word[7] = static_cast<uint32_t>(__double_as_longlong(f.f64));
  r.word[8] = static_cast<uint32_t>(__double_as_longlong(f.f64) >> 32);
  r.word[9] = __float_as_uint(f.f32);
  r.word[10] = static_cast<uint32_t>(static_cast<int32_t>(byte));
  r.word[11] = half;
  return r;
}

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t lane = threadIdx.x;
  Fields f;
  const uint32_t* from = in + 256 + 8 * lane;
  f.u8 = static_cast<uint8_t>(from[0]);
  f.s8 = static_cast<int8_t>(from[1]);
  f.u16 = static_cast<uint16_t>(from[2]);
  f.s16 = static_cast<int16_t>(from[3]);
  f.u32 = from[4];
  f.s64 = static_cast<int64_t>(from[5]) << 32 | from[6];
  f.f64 = __longlong_as_double(static_cast<int64_t>(from[7]) << 31 ^ from[0]);
  f.f32 = __uint_as_float(in[lane]);
  const Results r = spread(f, static_cast<int8_t>(from[1]), static_cast<uint16_t>(from[2]));
  for (uint32_t i = 0; i < 12; ++i) out[lane * 12 + i] = r.word[i];
}
