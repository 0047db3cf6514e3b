// elect.sync elects exactly one member, and tells all of them which
// run: --out 272
// source: PTX §9.7.13.14
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t lane = threadIdx.x;
  for (uint32_t i = 0; i < 8; ++i) {
    const uint32_t mask = i == 0 ? 0xffffffff : i == 1 ? 0x80000000 : in[256 + i] | 2;
    uint32_t leader = 0, mine = 0;
    if (mask >> lane & 1) {
      asm volatile("{\n\t.reg .pred p;\n\telect.sync %0|p, %2;\n\tselp.u32 %1, 1, 0, p;\n\t}"
                   : "=r"(leader), "=r"(mine)
                   : "r"(mask));
    }
    __syncwarp();
    const uint32_t elected = __ballot_sync(0xffffffff, mine != 0);
    const bool right = (mask >> lane & 1) == 0 || elected == 1u << leader;
    if (lane == 0) {
      out[i * 34] = static_cast<uint32_t>(__popc(elected));
      out[i * 34 + 1] = (elected & ~mask) == 0;
    }
    out[i * 34 + 2 + lane] = right;
  }
}
