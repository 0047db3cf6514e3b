// min.f32 and max.f32 over all pairs of the first 32 words: zeros, subnormals, infinities, NaNs
// run: --grid 4 --block 256 --out 2048
// source: PTX §9.7.3.11 (min), §9.7.3.12 (max): "If one of the inputs is NaN, the result is the other"; −0 < +0
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t pair = blockIdx.x * blockDim.x + threadIdx.x;
  const float a = __uint_as_float(in[pair / 32]), b = __uint_as_float(in[pair % 32]);
  float low, high;
  asm volatile("min.f32 %0, %1, %2;" : "=f"(low) : "f"(a), "f"(b));
  asm volatile("max.f32 %0, %1, %2;" : "=f"(high) : "f"(a), "f"(b));
  out[2 * pair] = __float_as_uint(low);
  out[2 * pair + 1] = __float_as_uint(high);
}
