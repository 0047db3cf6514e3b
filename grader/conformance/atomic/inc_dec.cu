// atom.inc and .dec at their edges: below, at and above the limit, limit 0, limit 0xffffffff
// run: --out 384
// source: PTX §9.7.13.5
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ uint32_t cells[32];
  const uint32_t lane = threadIdx.x;
  const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(cells + lane));
  const uint32_t limit = (lane < 8 ? 5 : lane < 16 ? 0 : lane < 24 ? 0xffffffff : 0x80000000);
  const uint32_t start = limit + (lane & 7) - 4;
  uint32_t* to = out + lane * 12;
  uint32_t old;
  cells[lane] = start;
  for (uint32_t i = 0; i < 6; ++i) {
    asm volatile("atom.shared.inc.u32 %0, [%1], %2;" : "=r"(old) : "r"(at), "r"(limit) : "memory");
    to[i] = old;
  }
  cells[lane] = start;
  for (uint32_t i = 6; i < 12; ++i) {
    asm volatile("atom.shared.dec.u32 %0, [%1], %2;" : "=r"(old) : "r"(at), "r"(limit) : "memory");
    to[i] = old;
  }
}
