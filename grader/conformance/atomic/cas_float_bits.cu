// atom.cas compares bits, not numbers: +0 is not -0, and equal NaNs are equal
// run: --out 512
// source: PTX §9.7.13.5
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ uint32_t cells[32];
  const uint32_t lane = threadIdx.x;
  const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(cells + lane));
  for (uint32_t i = 0; i < 8; ++i) {
    uint32_t old;
    cells[lane] = in[lane];
    asm volatile("atom.shared.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(old)
                 : "r"(at), "r"(in[i < 4 ? lane : lane ^ (i - 3)]), "r"(in[256 + lane])
                 : "memory");
    out[lane * 16 + 2 * i] = old;
    out[lane * 16 + 2 * i + 1] = cells[lane];
  }
}
